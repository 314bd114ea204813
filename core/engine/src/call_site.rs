//! Call sites: the place of the program's call that a thread is in, for errors and reports of hangs.

use std::cell::Cell;
use std::panic::Location;
use std::sync::atomic::{AtomicBool, Ordering};

/// The place of a call in the source of a program, or of the library, which makes calls for itself, too. One word: each
/// call that is not a fast path stores it.
pub type CallSite = &'static Location<'static>;

thread_local! {
    /// The place of the call that this thread is in.
    static CURRENT: Cell<Option<CallSite>> = const { Cell::new(None) };
}

/// Whether places are left out: a program in another language has none.
static HIDDEN: AtomicBool = AtomicBool::new(false);

/// Leaves places out, in the whole process from here on.
pub fn hide() {
    HIDDEN.store(true, Ordering::Relaxed);
}

/// Whether a place lies in the program, and is to be named. `library` begins the path of each of the library's own
/// source files.
#[must_use]
pub fn is_programs(site: CallSite, library: &str) -> bool {
    !site.file().starts_with(library) && !HIDDEN.load(Ordering::Relaxed)
}

/// The call that this thread is in, until this is dropped; then the outer one again.
#[derive(Debug)]
#[must_use]
pub struct Entered {
    outer: Option<CallSite>,
}

impl Entered {
    /// Whether the call is made within another one of this thread.
    #[inline]
    #[must_use]
    pub fn is_inner(&self) -> bool {
        self.outer.is_some()
    }
}

impl Drop for Entered {
    #[inline]
    fn drop(&mut self) {
        CURRENT.set(self.outer);
    }
}

/// Enters a call. A call within another one has the place of the outer one.
#[inline]
pub fn enter(site: CallSite) -> Entered {
    let outer = CURRENT.get();
    CURRENT.set(Some(outer.unwrap_or(site)));
    Entered { outer }
}

/// The place of the call that this thread is in.
#[must_use]
pub fn current() -> Option<CallSite> {
    CURRENT.get()
}

/// The place of the call that this thread is in, as the end of a message; empty where it is in none, or in the
/// [library's own](is_programs).
#[must_use]
pub fn called_at(library: &str) -> String {
    let site = CURRENT.get().filter(|site| is_programs(site, library));
    site.map_or_else(String::new, |site| {
        format!("; called at {}:{}", site.file(), site.line())
    })
}
