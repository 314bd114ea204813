//! The calls that take or return a `long double` itself, for which Rust has no type: it lies on the stack when it is
//! passed (8 bytes above its end in the caller), and in the first x87 register when it is returned.

use std::arch::{global_asm, naked_asm};
use std::ffi::c_int;

use oxshmem::LongDouble;

use crate::handles::Ctx;
use crate::rma;

/// `void pshmem_longdouble_p(long double *dest, long double value, int pe)`
///
/// # Safety
///
/// As in the specification.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pshmem_longdouble_p() {
    naked_asm!(
        // dest, pe: the third argument is the value's address.
        "lea rdx, [rsp + 8]",
        "jmp {inner}",
        inner = sym p,
    )
}

/// `void pshmem_ctx_longdouble_p(shmem_ctx_t ctx, long double *dest, long double value, int pe)`
///
/// # Safety
///
/// As in the specification.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pshmem_ctx_longdouble_p() {
    naked_asm!("lea rcx, [rsp + 8]", "jmp {inner}", inner = sym ctx_p)
}

/// `long double pshmem_longdouble_g(const long double *source, int pe)`
///
/// # Safety
///
/// As in the specification.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pshmem_longdouble_g() {
    naked_asm!(
        // Room for the value, whose address is the third argument; 8 more align the stack.
        "sub rsp, 24",
        "mov rdx, rsp",
        "call {inner}",
        "fld tbyte ptr [rsp]",
        "add rsp, 24",
        "ret",
        inner = sym g,
    )
}

/// `long double pshmem_ctx_longdouble_g(shmem_ctx_t ctx, const long double *source, int pe)`
///
/// # Safety
///
/// As in the specification.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pshmem_ctx_longdouble_g() {
    naked_asm!(
        "sub rsp, 24",
        "mov rcx, rsp",
        "call {inner}",
        "fld tbyte ptr [rsp]",
        "add rsp, 24",
        "ret",
        inner = sym ctx_g,
    )
}

unsafe extern "C" fn p(dest: *mut LongDouble, pe: c_int, value: *const LongDouble) {
    // SAFETY: the value lies on the caller's stack, aligned to 16 bytes as the calling convention says.
    unsafe { rma::p("shmem_longdouble_p", Ctx::DEFAULT, dest, value.read(), pe) }
}

unsafe extern "C" fn ctx_p(ctx: Ctx, dest: *mut LongDouble, pe: c_int, value: *const LongDouble) {
    // SAFETY: as above.
    unsafe { rma::p("shmem_ctx_longdouble_p", ctx, dest, value.read(), pe) }
}

unsafe extern "C" fn g(source: *const LongDouble, pe: c_int, value: *mut LongDouble) {
    // SAFETY: the caller has made room for the value.
    unsafe { value.write_unaligned(rma::g("shmem_longdouble_g", Ctx::DEFAULT, source, pe)) }
}

unsafe extern "C" fn ctx_g(ctx: Ctx, source: *const LongDouble, pe: c_int, value: *mut LongDouble) {
    // SAFETY: as above.
    unsafe { value.write_unaligned(rma::g("shmem_ctx_longdouble_g", ctx, source, pe)) }
}

// As of the generated functions.
global_asm!(
    ".weak shmem_longdouble_p",
    ".type shmem_longdouble_p, @function",
    ".set shmem_longdouble_p, pshmem_longdouble_p",
    ".weak shmem_ctx_longdouble_p",
    ".type shmem_ctx_longdouble_p, @function",
    ".set shmem_ctx_longdouble_p, pshmem_ctx_longdouble_p",
    ".weak shmem_longdouble_g",
    ".type shmem_longdouble_g, @function",
    ".set shmem_longdouble_g, pshmem_longdouble_g",
    ".weak shmem_ctx_longdouble_g",
    ".type shmem_ctx_longdouble_g, @function",
    ".set shmem_ctx_longdouble_g, pshmem_ctx_longdouble_g",
);
