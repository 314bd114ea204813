//! Nothing of its own: `tests/hostile` calls every public function of oxshmem as a program would that wants to corrupt
//! memory and may not write `unsafe`. `docs/soundness.md` says why it cannot.

#![forbid(unsafe_code)]
