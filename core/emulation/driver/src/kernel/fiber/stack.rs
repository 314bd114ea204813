//! Stacks of fibers, which are kept for later ones.

use std::sync::Mutex;

use corosensei::stack::DefaultStack;

use crate::sync::lock;

/// The bytes of a stack. Memory is used only where a kernel touches it.
const BYTES: usize = 128 << 10;
/// Stacks that are kept when no fiber uses them.
const KEPT: usize = 2048;

static FREE: Mutex<Vec<DefaultStack>> = Mutex::new(Vec::new());

/// A stack; `None` where the machine has no more memory or mappings.
pub(super) fn take() -> Option<DefaultStack> {
    let kept = lock(&FREE).pop();
    kept.or_else(|| DefaultStack::new(BYTES).ok())
}

/// Keeps a stack for the next fiber.
pub(super) fn give_back(stack: DefaultStack) {
    let mut free = lock(&FREE);
    if free.len() < KEPT {
        free.push(stack);
    }
}
