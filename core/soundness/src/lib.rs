//! An empty library. Its tests, `tests/hostile`, call every public function of oxshmem like a
//! program that wants to corrupt memory but has no `unsafe`. `docs/soundness.md` says why such a
//! program cannot.

#![forbid(unsafe_code)]
