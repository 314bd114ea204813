//! For tests that need a driver.

use crate::Result;

/// What a test has asked the driver for. Without it none, said in one line: the test is not run; or a
/// failure, where `OXSHMEM_TEST_CUDA=1` says that there must be a driver.
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
