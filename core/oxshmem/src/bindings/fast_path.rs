//! Operations where they are this CPU's own instructions; else nothing is done.
//!
//! A binding's slow path then needs nothing of the fast one: neither its arguments in memory nor its registers.

use bytemuck::Pod;
use oxshmem_transport::{AtomicOp, Operands};

use crate::atomics::AtomicValue;
use crate::context::Context;
use crate::sym::Sym;

/// [`Context::p`] where it is a store of this CPU; else nothing is done, and the result is false.
#[inline(always)]
#[must_use]
pub fn try_p<T: Pod>(context: &Context<'_>, dst: Sym<T>, value: T, pe: usize) -> bool {
    context.try_p(dst, value, pe)
}

/// [`Context::g`] where it is a load of this CPU; else nothing is done.
#[inline(always)]
#[must_use]
pub fn try_g<T: Pod>(context: &Context<'_>, src: Sym<T>, pe: usize) -> Option<T> {
    context.try_g(src, pe)
}

/// [`Context::put_raw`] where it is the store of one aligned word by this CPU; else nothing is done, and the result is false.
///
/// # Safety
///
/// As [`Context::put_raw`].
#[inline(always)]
#[must_use]
pub unsafe fn try_put<T: Pod>(
    context: &Context<'_>,
    dst: Sym<T>,
    source: *const T,
    pe: usize,
) -> bool {
    let clean = context.worker.peers.clean_store_span(dst, pe);
    let Some(span) = clean.or_else(|| context.worker.peers.span(dst, pe)) else {
        return false;
    };
    // SAFETY: the caller promises as many readable elements as the span has.
    let is_word = unsafe { span.copy_word_from_raw(source.cast(), dst.bytes()) };
    if is_word && clean.is_none() {
        context.worker.peers.mark_dirty(pe);
    }
    is_word
}

/// [`Context::get_raw`] where it is the load of one aligned word by this CPU; else nothing is done, and the result is false.
///
/// # Safety
///
/// As [`Context::get_raw`].
#[inline(always)]
#[must_use]
pub unsafe fn try_get<T: Pod>(
    context: &Context<'_>,
    destination: *mut T,
    src: Sym<T>,
    pe: usize,
) -> bool {
    let Some(span) = context.worker.peers.span(src, pe) else {
        return false;
    };
    // SAFETY: the caller promises as many writable elements as the span has.
    let is_word = unsafe { span.copy_word_to_raw(destination.cast(), src.bytes()) };
    context.worker.order_read(span);
    is_word
}

/// An atomic where it is an instruction of this CPU: gives the old value, of operations that have one. Else nothing is done.
#[inline(always)]
#[must_use]
pub fn try_atomic<T: AtomicValue>(
    context: &Context<'_>,
    op: AtomicOp,
    word: Sym<T>,
    operand: T,
    compare: T,
    pe: usize,
) -> Option<T> {
    let operands = Operands {
        operand: operand.bits(),
        compare: compare.bits(),
    };
    context
        .try_rmw(op, word, operands, pe, false)
        .map(T::of_bits)
}

/// [`Context::quiet`] where only this CPU has operations to complete; else nothing is done, and the result is false.
#[inline(always)]
#[must_use]
pub fn try_quiet(context: &Context<'_>) -> bool {
    context.worker.try_quiet()
}
