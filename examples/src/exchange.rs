//! An exchange of messages whose amounts only the senders know, such as a search's next vertices.
//!
//! Each PE has an inbox with a cursor. A sender advances the cursor by an atomic fetch-and-add,
//! which reserves it a range of the inbox (M28), and puts its items there. The owner reads after a
//! barrier, which completes the puts of all.

use oxshmem::{Pod, Result, Sym, World};

/// An inbox on every PE.
#[derive(Debug)]
pub struct Exchange<'w, T> {
    world: &'w World,
    inbox: Sym<T>,
    cursor: Sym<u64>,
}

impl<'w, T: Pod> Exchange<'w, T> {
    /// Makes empty inboxes for `capacity` items each. Collective; `capacity` is the same on every PE.
    pub fn new(world: &'w World, capacity: usize) -> Result<Self> {
        Ok(Exchange {
            world,
            inbox: world.alloc(capacity)?,
            cursor: world.alloc_zeroed(1)?,
        })
    }

    /// Puts items into a PE's inbox, behind those that others have sent. They are there after the
    /// next barrier; `items` may be reused at once (M15).
    ///
    /// `Error::OutOfRange` if they do not fit.
    pub fn send(&self, items: &[T], pe: usize) -> Result<()> {
        if items.is_empty() {
            return Ok(());
        }
        let at = self.world.fetch_add(self.cursor, items.len() as u64, pe)? as usize;
        let place = self.inbox.range(at..at.saturating_add(items.len()))?;
        self.world.put(place, items, pe)
    }

    /// Reads the items that this PE was sent before the last barrier, in any order, into `items`,
    /// and empties the inbox. Others may send again when they know that it is empty: after the next
    /// barrier, for example.
    pub fn receive(&self, items: &mut Vec<T>) -> Result<()> {
        let sent = self.world.swap(self.cursor, 0, self.world.my_pe())? as usize;
        items.resize(sent, T::zeroed());
        self.world.read(items, self.inbox.range(..sent)?)
    }

    /// Frees the memory. Collective.
    pub fn free(self) -> Result<()> {
        self.world.free(self.cursor)?;
        self.world.free(self.inbox)
    }
}
