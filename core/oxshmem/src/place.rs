//! Call sites: errors and reports of hangs name the file and the line of the program's call.
//!
//! Public calls are `#[track_caller]`. Fast paths carry no call site: it is an argument of the slow path alone.

use std::collections::BTreeMap;
use std::panic::Location;
use std::sync::{Mutex, PoisonError};

use oxshmem_engine::call_site::{self, CallSite};

use crate::error::{Error, Result};

/// The start of the path of each source file of this crate.
pub(crate) fn sources() -> &'static str {
    file!().trim_end_matches("place.rs")
}

/// Makes a call of the program's: its error names the place of the call, and so does a report of a wait in it. A call
/// within another one has the place of the outer one.
#[inline]
#[track_caller]
pub(crate) fn placed<R>(call: impl FnOnce() -> Result<R>) -> Result<R> {
    let place = Location::caller();
    let entered = call_site::enter(place);
    let is_inner = entered.is_inner();
    let done = call();
    drop(entered);
    match done {
        // Errors have arms of their own: they are long, and success copies none.
        Ok(done) => Ok(done),
        Err(error) if is_inner => Err(error),
        Err(error) => Err(error.at(place)),
    }
}

/// `put at src/main.rs:12`. The name is leaked, since errors hold it by reference; there are no more names than lines with
/// calls.
fn named(call: &'static str, place: CallSite) -> &'static str {
    static NAMES: Mutex<BTreeMap<(&str, &str, u32), &str>> = Mutex::new(BTreeMap::new());
    if !call_site::is_programs(place, sources()) {
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
        match call_site::current() {
            Some(_) => self,
            None => self.at(Location::caller()),
        }
    }

    #[cold]
    fn at(mut self, place: CallSite) -> Self {
        if let Some(call) = self.call_mut() {
            *call = named(call, place);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use oxshmem_engine::call_site;

    use crate::error::Result;
    use crate::place::placed;

    #[test]
    fn a_call_within_another_has_the_place_of_that() {
        let line = || Ok(call_site::current().map(|site| site.line()));
        let (here, seen) = (line!(), placed(|| placed(line)));
        assert_eq!(seen.unwrap(), Some(here));
        assert!(call_site::current().is_none());
    }

    #[test]
    fn a_call_that_panics_is_over() {
        let panics = || placed(|| -> Result<()> { panic!("on purpose") });
        assert!(std::panic::catch_unwind(panics).is_err());
        assert!(call_site::current().is_none());
    }
}
