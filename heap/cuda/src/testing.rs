//! For tests that need a driver.

use crate::error::Result;

/// The object that a test needs of the driver. Without a driver none, with one line of output: the test does not
/// run; with `OXSHMEM_TEST_CUDA=1`, which says that there must be a driver, a failure.
///
/// # Panics
///
/// That failure.
pub fn present<T>(asked: Result<T>) -> Option<T> {
    match asked {
        Ok(given) => Some(given),
        Err(error) => {
            let must = std::env::var("OXSHMEM_TEST_CUDA").is_ok_and(|value| value == "1");
            assert!(!must, "OXSHMEM_TEST_CUDA=1, but: {error}");
            println!("no CUDA driver: not run");
            None
        }
    }
}
