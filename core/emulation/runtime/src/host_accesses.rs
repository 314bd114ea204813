//! Accesses of the host's code, in programs that are built for the race detector: the functions that the compiler has them call.
//!
//! The detector looks at those to page-locked memory, which kernels reach, too. Volatile and atomic accesses are not told: by them the
//! host and kernels tell each other of something, and the detector knows the kernels'.

use std::arch::naked_asm;
use std::ffi::c_int;
use std::sync::OnceLock;

use crate::driver::symbol;

type Access = extern "C" fn(at: usize, bytes: usize, writes: c_int, place: usize);

/// Tells the driver of an access.
extern "C" fn access(at: usize, bytes: usize, writes: c_int, place: usize) {
    static TELL: OnceLock<Option<Access>> = OnceLock::new();
    let tell = TELL.get_or_init(|| {
        let address = symbol(c"softcuda_host_access")?;
        // SAFETY: the driver's function of that name has this type.
        Some(unsafe { std::mem::transmute::<usize, Access>(address) })
    });
    if let Some(tell) = tell {
        tell(at, bytes, writes, place);
    }
}

extern "C" fn copy(to: usize, from: usize, bytes: usize, place: usize) {
    access(from, bytes, 0, place);
    access(to, bytes, 1, place);
}

extern "C" fn fill(to: usize, _: usize, bytes: usize, place: usize) {
    access(to, bytes, 1, place);
}

macro_rules! accesses {
    ($($name:ident $bytes:literal $writes:literal;)*) => {$(
        /// The compiler's call before such an access.
        ///
        /// # Safety
        ///
        /// None: the address is only compared.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name(at: usize) {
            // The place is where it returns to.
            naked_asm!(
                "mov esi, {bytes}",
                "mov edx, {writes}",
                "mov rcx, [rsp]",
                "jmp {access}",
                bytes = const $bytes,
                writes = const $writes,
                access = sym access,
            )
        }
    )*};
}

accesses! {
    __tsan_read1 1 0;
    __tsan_read2 2 0;
    __tsan_read4 4 0;
    __tsan_read8 8 0;
    __tsan_read16 16 0;
    __tsan_write1 1 1;
    __tsan_write2 2 1;
    __tsan_write4 4 1;
    __tsan_write8 8 1;
    __tsan_write16 16 1;
    __tsan_unaligned_read1 1 0;
    __tsan_unaligned_read2 2 0;
    __tsan_unaligned_read4 4 0;
    __tsan_unaligned_read8 8 0;
    __tsan_unaligned_read16 16 0;
    __tsan_unaligned_write1 1 1;
    __tsan_unaligned_write2 2 1;
    __tsan_unaligned_write4 4 1;
    __tsan_unaligned_write8 8 1;
    __tsan_unaligned_write16 16 1;
    __tsan_vptr_read 8 0;
    __tsan_vptr_update 8 1;
}

macro_rules! ignored {
    ($($name:ident)*) => {$(
        /// The compiler's call before such an access, or at the start.
        #[unsafe(no_mangle)]
        pub extern "C" fn $name() {}
    )*};
}

ignored! {
    __tsan_init
    __tsan_volatile_read1 __tsan_volatile_read2 __tsan_volatile_read4 __tsan_volatile_read8 __tsan_volatile_read16
    __tsan_volatile_write1 __tsan_volatile_write2 __tsan_volatile_write4 __tsan_volatile_write8 __tsan_volatile_write16
    __tsan_unaligned_volatile_read1 __tsan_unaligned_volatile_read2 __tsan_unaligned_volatile_read4
    __tsan_unaligned_volatile_read8 __tsan_unaligned_volatile_read16
    __tsan_unaligned_volatile_write1 __tsan_unaligned_volatile_write2 __tsan_unaligned_volatile_write4
    __tsan_unaligned_volatile_write8 __tsan_unaligned_volatile_write16
}

macro_rules! blocks {
    ($($name:ident $tell:ident $does:path;)*) => {$(
        /// The compiler's call in place of the C library's, which it then makes.
        ///
        /// # Safety
        ///
        /// That of the C library's function.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name(to: usize, from: usize, bytes: usize) -> usize {
            naked_asm!(
                "push rdi",
                "push rsi",
                "push rdx",
                "mov rcx, [rsp + 24]",
                "call {tell}",
                "pop rdx",
                "pop rsi",
                "pop rdi",
                "jmp {does}",
                tell = sym $tell,
                does = sym $does,
            )
        }
    )*};
}

blocks! {
    __tsan_memcpy copy libc::memcpy;
    __tsan_memmove copy libc::memmove;
    __tsan_memset fill libc::memset;
}
