//! Call sites: errors and reports of hangs name the file and the line of the program's call.
//!
//! Public calls are `#[track_caller]`. Fast paths carry no call site: it is an argument of the slow path alone.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::panic::Location;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::{Error, Result};

type Place = &'static Location<'static>;

thread_local! {
    /// The place of the program's call that this thread is in.
    static CURRENT: Cell<Option<Place>> = const { Cell::new(None) };
}

/// Whether places are left out: a program in another language has none.
static HIDDEN: AtomicBool = AtomicBool::new(false);

/// Leaves places out, in the whole process from here on.
pub(crate) fn hide() {
    HIDDEN.store(true, Ordering::Relaxed);
}

/// Restores the outer call of this thread when it is dropped.
struct Outer(Option<Place>);

impl Drop for Outer {
    fn drop(&mut self) {
        CURRENT.set(self.0);
    }
}

/// Makes a call of the program's: its error names the place of the call, and so does a report of a wait in it. A call
/// within another one has the place of the outer one.
#[inline]
#[track_caller]
pub(crate) fn placed<R>(call: impl FnOnce() -> Result<R>) -> Result<R> {
    let outer = CURRENT.get();
    let place = outer.unwrap_or(Location::caller());
    CURRENT.set(Some(place));
    let restores = Outer(outer);
    let done = call();
    drop(restores);
    match outer {
        Some(_) => done,
        None => done.map_err(|error| error.at(place)),
    }
}

/// The place of the call that this thread is in, as the end of a message; empty where it is in none.
pub(crate) fn called_at() -> String {
    let place = CURRENT.get().filter(|place| is_programs(place));
    place.map_or_else(String::new, |place| {
        format!("; called at {}:{}", place.file(), place.line())
    })
}

/// Whether a place lies in the program. The library makes calls for itself, too.
fn is_programs(place: Place) -> bool {
    let own = file!().trim_end_matches("place.rs");
    !place.file().starts_with(own) && !HIDDEN.load(Ordering::Relaxed)
}

/// `put at src/main.rs:12`. The name is leaked, since errors hold it by reference; there are no more names than lines with
/// calls.
fn named(call: &'static str, place: Place) -> &'static str {
    static NAMES: Mutex<BTreeMap<(&str, &str, u32), &str>> = Mutex::new(BTreeMap::new());
    if !is_programs(place) {
        return call;
    }
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    names
        .entry((call, place.file(), place.line()))
        .or_insert_with(|| format!("{call} at {}:{}", place.file(), place.line()).leak())
}

impl Error {
    /// The error with the caller's place, if the caller is not within a call that is [`placed`].
    #[cold]
    #[track_caller]
    pub(crate) fn here(self) -> Self {
        match CURRENT.get() {
            Some(_) => self,
            None => self.at(Location::caller()),
        }
    }

    #[cold]
    fn at(mut self, place: Place) -> Self {
        if let Some(call) = self.call_mut() {
            *call = named(call, place);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::{CURRENT, placed};
    use crate::Result;

    #[test]
    fn a_call_within_another_has_the_place_of_that() {
        let line = || Ok(CURRENT.get().map(|place| place.line()));
        let (here, seen) = (line!(), placed(|| placed(line)));
        assert_eq!(seen.unwrap(), Some(here));
        assert!(CURRENT.get().is_none());
    }

    #[test]
    fn a_call_that_panics_is_over() {
        let panics = || placed(|| -> Result<()> { panic!("on purpose") });
        assert!(std::panic::catch_unwind(panics).is_err());
        assert!(CURRENT.get().is_none());
    }
}
