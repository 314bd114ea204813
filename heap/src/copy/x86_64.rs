//! [`copy`](super::copy) for x86-64.
//!
//! Every routine has one skeleton: stores of 1, 2 and 4 bytes until the destination is a multiple
//! of 8; for long copies more until it is a multiple of 64, then the *bulk* (a vector loop,
//! `rep movsq`, or non-temporal stores); then blocks of 128, 64, 32, 16 and 8 bytes by the bits of
//! the remaining length; then 4, 2 and 1. No byte is written twice, and no boundary between two
//! accesses lies inside an aligned word: a vector store that straddles a cache line is split there,
//! at a multiple of 8. [`copy_short`] comes before them.

use std::arch::x86_64::{__cpuid, _rdtsc};
use std::arch::{asm, naked_asm};
use std::cell::Cell;
use std::mem;
use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicPtr};

use super::strategies::Routine;

/// From here on, where source and destination agree modulo 8, `rep movsq` beats the vector loop.
///
/// All three limits were measured with `benches/copy.rs` on a Xeon of family 6, model 167. The loop
/// is slow where the two sides are equal modulo 4096, which in a symmetric heap is the normal case
/// (presumably each load is held up by the store one page earlier, which is still in the store
/// buffer); the string instruction is not. Where the sides differ modulo 8 it takes 2 to 10 times
/// as long, and is never used.
const STRING_MIN: usize = 8 << 10;

/// At these lengths, where the sides differ modulo 8, 16-byte vectors are faster than longer ones,
/// whose every load straddles two cache lines: 1.03 of memcpy's speed against 0.95.
const NARROW: Range<usize> = 32 << 10..1 << 20;

/// From so many bytes in all on, stores bypass the caches: 1.3 times as fast as memcpy at 64 MiB, but slower than it
/// at 16 MiB, where the data fits a cache.
const STREAM_MIN: usize = 64 << 20;

/// The shortest copy that may be part of a [stream](copy_on): below it the clock costs more than it brings.
const STREAM_PART: usize = 16 << 10;

/// One piece of a long copy, at whose end the clock is read.
const PIECE: usize = 128 << 10;

/// Bytes of the destination that are fetched ahead at a time.
const AHEAD: usize = 2 << 10;

/// Ticks of the time-stamp counter per cache line. A copy that takes more came from or went to memory, not caches: on the
/// CPU named at [`FETCHES_AHEAD`] a line takes 4 to 6 ticks between caches, and 8 to 14 with memory.
const SLOW: u64 = 7;

/// Bytes of a cache line, within which a scalar access of up to 8 bytes is one, aligned or not.
const LINE: usize = 64;

/// The routine for short copies: the widest vectors that this CPU runs well. Until the first copy,
/// `resolve`. Relaxed is enough: whichever value a thread sees is a right one.
static VECTOR: AtomicPtr<()> = AtomicPtr::new(resolve as *mut ());

/// The routine for copies of `STRING_MIN` bytes or more whose sides agree modulo 8. As `VECTOR`.
static WORDS: AtomicPtr<()> = AtomicPtr::new(resolve as *mut ());

/// Whether slow streams are copied by [`copy_ahead`]. AMD's CPUs, of which a Zen 4 was measured: 1.1 to 1.5 times as fast
/// as the string instruction alone. Most is gained where source and destination are the same object of two PEs, whose
/// lines then compete for the same part of the memory.
static FETCHES_AHEAD: AtomicBool = AtomicBool::new(false);

/// The last long copy of a thread.
#[derive(Clone, Copy)]
struct Last {
    /// The address behind its destination.
    end: usize,
    /// Whether its last piece was slow.
    slow: bool,
}

thread_local! {
    static LAST: Cell<Last> = const { Cell::new(Last { end: 0, slow: false }) };
}

/// See [`super::copy`].
///
/// # Safety
///
/// As [`super::copy`].
#[inline]
pub unsafe fn copy(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: the contract is passed on.
    unsafe { copy_chunk(dst, src, len, len) }
}

/// [`copy`] of up to 8 bytes that are no aligned word: 2, 4 or 8 within a cache line by one access.
///
/// # Safety
///
/// As [`super::copy`].
pub unsafe fn copy_short(dst: *mut u8, src: *const u8, len: usize) {
    let whole = LINE - dst.addr() % LINE >= len;
    // SAFETY: in range by the contract. The compiler takes it that any memory is changed, as by a call.
    unsafe {
        match len {
            8 if whole => asm!("mov {0}, [{1}]", "mov [{2}], {0}",
                out(reg) _, in(reg) src, in(reg) dst, options(nostack, preserves_flags)),
            4 if whole => asm!("mov {0:e}, [{1}]", "mov [{2}], {0:e}",
                out(reg) _, in(reg) src, in(reg) dst, options(nostack, preserves_flags)),
            2 if whole => asm!("movzx {0:e}, word ptr [{1}]", "mov [{2}], {0:x}",
                out(reg) _, in(reg) src, in(reg) dst, options(nostack, preserves_flags)),
            _ => call(&VECTOR, dst, src, len),
        }
    }
}

/// See [`super::copy_chunk`].
///
/// # Safety
///
/// As [`super::copy`].
#[inline]
pub unsafe fn copy_chunk(dst: *mut u8, src: *const u8, len: usize, total: usize) {
    // SAFETY: the contract is passed on.
    unsafe {
        if len < STRING_MIN {
            call(&VECTOR, dst, src, len);
        } else {
            copy_long(dst, src, len, total);
        }
    }
}

/// [`copy_chunk`] from `STRING_MIN` bytes on.
///
/// # Safety
///
/// As [`super::copy`].
unsafe fn copy_long(dst: *mut u8, src: *const u8, len: usize, total: usize) {
    // SAFETY: the contract is passed on; every x86-64 CPU has SSE2.
    unsafe {
        if total >= STREAM_MIN {
            copy_stream(dst, src, len);
        } else if (dst.addr() ^ src.addr()).is_multiple_of(8) {
            if len >= STREAM_PART && FETCHES_AHEAD.load(Relaxed) {
                copy_on(dst, src, len);
            } else {
                call(&WORDS, dst, src, len);
            }
        } else if NARROW.contains(&len) {
            copy_sse2(dst, src, len);
        } else {
            call(&VECTOR, dst, src, len);
        }
    }
}

/// A copy that may be part of a stream: a program's next window, or the next piece of a large block. A piece that goes on
/// where the one before ended is copied as that one went: after a slow one, lines are fetched ahead.
///
/// # Safety
///
/// As [`super::copy`]. Source and destination agree modulo 8.
unsafe fn copy_on(dst: *mut u8, src: *const u8, len: usize) {
    let last = LAST.get();
    let goes_on = last.end == dst.addr();
    let mut slow = goes_on && last.slow;
    if !goes_on && len <= PIECE {
        // SAFETY: the contract is passed on.
        unsafe { call(&WORDS, dst, src, len) };
    } else {
        let mut done = 0;
        // SAFETY: it reads a counter.
        let mut before = unsafe { _rdtsc() };
        while done < len {
            // Pieces end at multiples of a line, so that no word is divided.
            let piece = (PIECE - (dst.addr() + done) % LINE).min(len - done);
            // SAFETY: the pieces lie within the ranges of the contract, one after the other.
            let now = unsafe {
                let (dst, src) = (dst.add(done), src.add(done));
                if slow {
                    copy_ahead(dst, src, piece);
                } else {
                    call(&WORDS, dst, src, piece);
                }
                _rdtsc()
            };
            slow = now.wrapping_sub(before) / SLOW > (piece / LINE) as u64;
            before = now;
            done += piece;
        }
    }
    LAST.set(Last {
        end: dst.addr() + len,
        slow,
    });
}

/// Words by `rep movsq`, while the next lines of the destination come here.
///
/// # Safety
///
/// As [`super::copy`].
unsafe extern "C" fn copy_ahead(dst: *mut u8, src: *const u8, len: usize) {
    let mut done = 0;
    while done < len {
        // Chunks end at multiples of a line, so that no word is divided.
        let chunk = (AHEAD - (dst.addr() + done) % LINE).min(len - done);
        let next = done + chunk;
        for line in (next..(next + AHEAD).min(len)).step_by(LINE) {
            prefetch_write(dst.wrapping_add(line));
        }
        // SAFETY: the chunks lie within the ranges of the contract, one after the other.
        unsafe { copy_string(dst.add(done), src.add(done), chunk) };
        done = next;
    }
}

/// Calls the routine in `VECTOR` or `WORDS`.
///
/// # Safety
///
/// As [`super::copy`].
#[inline]
unsafe fn call(routine: &AtomicPtr<()>, dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: both statics only ever hold a `Routine` that this CPU can run; the contract is passed
    // on to it.
    unsafe {
        let routine = mem::transmute::<*mut (), Routine>(routine.load(Relaxed));
        routine(dst, src, len);
    }
}

/// Asks the CPU what it has, sets `VECTOR` and `WORDS`, and copies.
///
/// # Safety
///
/// As [`super::copy`].
#[cold]
unsafe extern "C" fn resolve(dst: *mut u8, src: *const u8, len: usize) {
    let vector: Routine = if has_wide_vectors() {
        copy_avx512
    } else if is_x86_feature_detected!("avx") {
        copy_avx
    } else {
        copy_sse2
    };
    // Without fast strings `rep movsq` would still be right, but slow.
    let words = if is_x86_feature_detected!("ermsb") {
        copy_string
    } else {
        vector
    };
    WORDS.store(words as *mut (), Relaxed);
    FETCHES_AHEAD.store(
        words as *mut () == copy_string as *mut () && is_amd(),
        Relaxed,
    );
    VECTOR.store(vector as *mut (), Relaxed);
    // SAFETY: the contract is passed on; the CPU has what the routine needs.
    unsafe { vector(dst, src, len) }
}

/// See [`super::prefetch_write`]. `_mm_prefetch` asks to read only, where the compiler may not take it that every CPU has this.
#[inline(always)]
pub fn prefetch_write(at: *const u8) {
    // SAFETY: it faults at no address, and changes nothing that a program sees; CPUs that do not know it pass over it.
    unsafe {
        asm!("prefetchw [{}]", in(reg) at, options(nostack, preserves_flags, readonly));
    }
}

/// See [`super::prefetch_read`].
#[inline(always)]
pub fn prefetch_read(at: *const u8) {
    // SAFETY: it faults at no address, and changes nothing that a program sees.
    unsafe {
        asm!("prefetcht0 [{}]", in(reg) at, options(nostack, preserves_flags, readonly));
    }
}

/// See [`super::fill_zero`].
///
/// # Safety
///
/// As [`super::fill_zero`].
pub unsafe fn fill_zero(dst: *mut u8, len: usize) {
    // SAFETY: the contract is passed on.
    unsafe { zero(dst, len) }
}

/// The strategies that this CPU can run.
pub fn strategies() -> Vec<(&'static str, Routine)> {
    let mut all: Vec<(&'static str, Routine)> = vec![
        ("sse2", copy_sse2),
        ("string", copy_string),
        ("ahead", copy_ahead),
        ("stream", copy_stream),
    ];
    if is_x86_feature_detected!("avx") {
        all.push(("avx", copy_avx));
    }
    if has_wide_vectors() {
        all.push(("avx512", copy_avx512));
    }
    all
}

/// Whether AMD made this CPU.
pub fn is_amd() -> bool {
    #[allow(
        unused_unsafe,
        reason = "newer versions of Rust have it as a safe function"
    )]
    // SAFETY: every CPU of x86-64 has the instruction and its leaf 0.
    let maker = unsafe { __cpuid(0) };
    [maker.ebx, maker.edx, maker.ecx].map(u32::to_le_bytes) == [*b"Auth", *b"enti", *b"cAMD"]
}

/// Whether to use 64-byte vectors. VBMI2 stands for "Ice Lake or Zen 4, or later": on CPUs before
/// them 64-byte vectors lower the clock.
fn has_wide_vectors() -> bool {
    is_x86_feature_detected!("avx512vbmi2") && is_x86_feature_detected!("avx512vl")
}

/// One block of `$size` bytes, taken if that bit of the remaining length (dl) is set.
macro_rules! block {
    ($size:literal, $($line:literal),+) => {
        concat!(
            "test dl, ", $size, "\njz 2f\n",
            $($line, "\n",)+
            "add rsi, ", $size, "\nadd rdi, ", $size, "\n2:\n"
        )
    };
}

/// One block of `$size` bytes, taken if that bit of the destination's address (dil) is set. The
/// caller knows that enough bytes are left.
macro_rules! align {
    ($size:literal, $($line:literal),+) => {
        concat!(
            "test dil, ", $size, "\njz 2f\n",
            $($line, "\n",)+
            "add rsi, ", $size, "\nadd rdi, ", $size, "\nsub rdx, ", $size, "\n2:\n"
        )
    };
}

/// As `align!`, for the first bytes of a copy of any length: if fewer than `$size` bytes are left,
/// goes to label 7. There the blocks are smaller than `$size`, hence aligned too.
macro_rules! head {
    ($size:literal, $($line:literal),+) => {
        concat!(
            "test dil, ", $size, "\njz 2f\ncmp rdx, ", $size, "\njb 7b\n",
            $($line, "\n",)+
            "add rsi, ", $size, "\nadd rdi, ", $size, "\nsub rdx, ", $size, "\n2:\n"
        )
    };
}

/// A bulk: 256 bytes per round while so many are left.
macro_rules! rounds {
    ([$($load:expr),+], [$($store:expr),+]) => {
        concat!(
            "mov rcx, rdx\nshr rcx, 8\njz 3f\n.p2align 5\n2:\n",
            $($load, "\n",)+ "add rsi, 256\n",
            $($store, "\n",)+ "add rdi, 256\ndec rcx\njnz 2b\n3:\nand edx, 255\n"
        )
    };
}

/// Defines one routine: rdi = destination, rsi = source, rdx = length; it clobbers rax, rcx and
/// vector registers, as the ABI allows. `bulk` gets at least 200 bytes and a destination that is a
/// multiple of 64; it leaves fewer than 256 in edx, and the zero flag set if none.
macro_rules! routine {
    (
        $(#[$doc:meta])* $name:ident,
        bulk: $bulk:expr,
        blocks: [$($block:expr),+], small_blocks: [$($small_block:expr),+],
        align: [$($align:expr),+],
        start: [$($start:literal),*], finish: [$($finish:literal),*]
    ) => {
        $(#[$doc])*
        ///
        /// # Safety
        ///
        /// As [`super::copy`], and the CPU has the instructions that the routine is named after.
        #[unsafe(naked)]
        unsafe extern "C" fn $name(dst: *mut u8, src: *const u8, len: usize) {
            naked_asm!(
                $($start,)*
                "test dil, 7",
                "jnz 8f",
                // The destination is a multiple of 8.
                "5:",
                "cmp rdx, 256",
                "jae 9f",
                // Fewer than 256 bytes are left, in edx.
                "6:",
                $($block,)+
                "and edx, 63",
                "jz 4f",
                $($small_block,)+
                block!(8, "mov rax, [rsi]", "mov [rdi], rax"),
                // Fewer than 8 bytes are left.
                "7:",
                "test dl, 7",
                "jz 4f",
                block!(4, "mov eax, [rsi]", "mov [rdi], eax"),
                block!(2, "movzx eax, word ptr [rsi]", "mov [rdi], ax"),
                block!(1, "movzx eax, byte ptr [rsi]", "mov [rdi], al"),
                "4:",
                $($finish,)*
                "ret",
                // The destination is not a multiple of 8.
                "8:",
                head!(1, "movzx eax, byte ptr [rsi]", "mov [rdi], al"),
                head!(2, "movzx eax, word ptr [rsi]", "mov [rdi], ax"),
                head!(4, "mov eax, [rsi]", "mov [rdi], eax"),
                "jmp 5b",
                // At least 256 bytes are left: make the destination a multiple of 64.
                "9:",
                "test dil, 63",
                "jz 3f",
                align!(8, "mov rax, [rsi]", "mov [rdi], rax"),
                $($align,)+
                "3:",
                $bulk,
                "jnz 6b",
                $($finish,)*
                "ret",
            )
        }
    };
}

routine! {
    /// Vectors of 64 bytes. Registers 16 and up leave nothing behind that slows SSE code.
    copy_avx512,
    bulk: rounds!(
        ["vmovdqu64 zmm16, [rsi]", "vmovdqu64 zmm17, [rsi + 64]",
         "vmovdqu64 zmm18, [rsi + 128]", "vmovdqu64 zmm19, [rsi + 192]"],
        ["vmovdqa64 [rdi], zmm16", "vmovdqa64 [rdi + 64], zmm17",
         "vmovdqa64 [rdi + 128], zmm18", "vmovdqa64 [rdi + 192], zmm19"]
    ),
    blocks: [
        block!(128, "vmovdqu64 zmm16, [rsi]", "vmovdqu64 zmm17, [rsi + 64]",
            "vmovdqu64 [rdi], zmm16", "vmovdqu64 [rdi + 64], zmm17"),
        block!(64, "vmovdqu64 zmm16, [rsi]", "vmovdqu64 [rdi], zmm16")
    ],
    small_blocks: [
        block!(32, "vmovdqu64 ymm16, [rsi]", "vmovdqu64 [rdi], ymm16"),
        block!(16, "vmovdqu64 xmm16, [rsi]", "vmovdqu64 [rdi], xmm16")
    ],
    align: [
        align!(16, "vmovdqu64 xmm16, [rsi]", "vmovdqu64 [rdi], xmm16"),
        align!(32, "vmovdqu64 ymm16, [rsi]", "vmovdqu64 [rdi], ymm16")
    ],
    start: [], finish: []
}

routine! {
    /// Vectors of 32 bytes.
    copy_avx,
    bulk: rounds!(
        ["vmovdqu ymm0, [rsi]", "vmovdqu ymm1, [rsi + 32]",
         "vmovdqu ymm2, [rsi + 64]", "vmovdqu ymm3, [rsi + 96]",
         "vmovdqu ymm4, [rsi + 128]", "vmovdqu ymm5, [rsi + 160]",
         "vmovdqu ymm6, [rsi + 192]", "vmovdqu ymm7, [rsi + 224]"],
        ["vmovdqa [rdi], ymm0", "vmovdqa [rdi + 32], ymm1",
         "vmovdqa [rdi + 64], ymm2", "vmovdqa [rdi + 96], ymm3",
         "vmovdqa [rdi + 128], ymm4", "vmovdqa [rdi + 160], ymm5",
         "vmovdqa [rdi + 192], ymm6", "vmovdqa [rdi + 224], ymm7"]
    ),
    blocks: [
        block!(128, "vmovdqu ymm0, [rsi]", "vmovdqu ymm1, [rsi + 32]",
            "vmovdqu ymm2, [rsi + 64]", "vmovdqu ymm3, [rsi + 96]",
            "vmovdqu [rdi], ymm0", "vmovdqu [rdi + 32], ymm1",
            "vmovdqu [rdi + 64], ymm2", "vmovdqu [rdi + 96], ymm3"),
        block!(64, "vmovdqu ymm0, [rsi]", "vmovdqu ymm1, [rsi + 32]",
            "vmovdqu [rdi], ymm0", "vmovdqu [rdi + 32], ymm1")
    ],
    small_blocks: [
        block!(32, "vmovdqu ymm0, [rsi]", "vmovdqu [rdi], ymm0"),
        block!(16, "vmovdqu xmm0, [rsi]", "vmovdqu [rdi], xmm0")
    ],
    align: [
        align!(16, "vmovdqu xmm0, [rsi]", "vmovdqu [rdi], xmm0"),
        align!(32, "vmovdqu ymm0, [rsi]", "vmovdqu [rdi], ymm0")
    ],
    start: [], finish: ["vzeroupper"]
}

/// Defines a routine that uses 16-byte vectors outside its bulk.
macro_rules! routine_sse2 {
    (
        $(#[$doc:meta])* $name:ident, bulk: $bulk:expr,
        start: [$($start:literal),*], finish: [$($finish:literal),*]
    ) => {
        routine! {
            $(#[$doc])* $name,
            bulk: $bulk,
            blocks: [
                block!(128, "movdqu xmm0, [rsi]", "movdqu xmm1, [rsi + 16]",
                    "movdqu xmm2, [rsi + 32]", "movdqu xmm3, [rsi + 48]",
                    "movdqu xmm4, [rsi + 64]", "movdqu xmm5, [rsi + 80]",
                    "movdqu xmm6, [rsi + 96]", "movdqu xmm7, [rsi + 112]",
                    "movdqu [rdi], xmm0", "movdqu [rdi + 16], xmm1",
                    "movdqu [rdi + 32], xmm2", "movdqu [rdi + 48], xmm3",
                    "movdqu [rdi + 64], xmm4", "movdqu [rdi + 80], xmm5",
                    "movdqu [rdi + 96], xmm6", "movdqu [rdi + 112], xmm7"),
                block!(64, "movdqu xmm0, [rsi]", "movdqu xmm1, [rsi + 16]",
                    "movdqu xmm2, [rsi + 32]", "movdqu xmm3, [rsi + 48]",
                    "movdqu [rdi], xmm0", "movdqu [rdi + 16], xmm1",
                    "movdqu [rdi + 32], xmm2", "movdqu [rdi + 48], xmm3")
            ],
            small_blocks: [
                block!(32, "movdqu xmm0, [rsi]", "movdqu xmm1, [rsi + 16]",
                    "movdqu [rdi], xmm0", "movdqu [rdi + 16], xmm1"),
                block!(16, "movdqu xmm0, [rsi]", "movdqu [rdi], xmm0")
            ],
            align: [
                align!(16, "movdqu xmm0, [rsi]", "movdqu [rdi], xmm0"),
                align!(32, "movdqu xmm0, [rsi]", "movdqu xmm1, [rsi + 16]",
                    "movdqu [rdi], xmm0", "movdqu [rdi + 16], xmm1")
            ],
            start: [$($start),*], finish: [$($finish),*]
        }
    };
}

/// A bulk of 16-byte vectors, stored with `$store`.
macro_rules! rounds_sse2 {
    ($store:literal) => {
        rounds!(
            [
                "movdqu xmm0, [rsi]",
                "movdqu xmm1, [rsi + 16]",
                "movdqu xmm2, [rsi + 32]",
                "movdqu xmm3, [rsi + 48]",
                "movdqu xmm4, [rsi + 64]",
                "movdqu xmm5, [rsi + 80]",
                "movdqu xmm6, [rsi + 96]",
                "movdqu xmm7, [rsi + 112]",
                "movdqu xmm8, [rsi + 128]",
                "movdqu xmm9, [rsi + 144]",
                "movdqu xmm10, [rsi + 160]",
                "movdqu xmm11, [rsi + 176]",
                "movdqu xmm12, [rsi + 192]",
                "movdqu xmm13, [rsi + 208]",
                "movdqu xmm14, [rsi + 224]",
                "movdqu xmm15, [rsi + 240]"
            ],
            [
                concat!($store, " [rdi + 0], xmm0"),
                concat!($store, " [rdi + 16], xmm1"),
                concat!($store, " [rdi + 32], xmm2"),
                concat!($store, " [rdi + 48], xmm3"),
                concat!($store, " [rdi + 64], xmm4"),
                concat!($store, " [rdi + 80], xmm5"),
                concat!($store, " [rdi + 96], xmm6"),
                concat!($store, " [rdi + 112], xmm7"),
                concat!($store, " [rdi + 128], xmm8"),
                concat!($store, " [rdi + 144], xmm9"),
                concat!($store, " [rdi + 160], xmm10"),
                concat!($store, " [rdi + 176], xmm11"),
                concat!($store, " [rdi + 192], xmm12"),
                concat!($store, " [rdi + 208], xmm13"),
                concat!($store, " [rdi + 224], xmm14"),
                concat!($store, " [rdi + 240], xmm15")
            ]
        )
    };
}

routine_sse2! {
    /// Vectors of 16 bytes.
    copy_sse2,
    bulk: rounds_sse2!("movdqa"),
    start: [], finish: []
}

routine_sse2! {
    /// Vectors of 16 bytes, stored past the caches. Such stores may pass ordinary ones both ways: the
    /// first fence keeps them behind all that was stored before the call, which a peer that sees
    /// them may rely on; the last one before all that is stored after it.
    copy_stream,
    bulk: rounds_sse2!("movntdq"),
    start: ["sfence"], finish: ["sfence"]
}

routine_sse2! {
    /// Words by `rep movsq`.
    copy_string,
    bulk: "mov rcx, rdx\nshr rcx, 3\nrep movsq\nand edx, 7\n",
    start: [], finish: []
}

/// See [`super::fill_zero`]: rdi = destination, rsi = length.
///
/// # Safety
///
/// As [`super::fill_zero`].
#[unsafe(naked)]
unsafe extern "C" fn zero(dst: *mut u8, len: usize) {
    naked_asm!(
        "mov rdx, rsi",
        "xor eax, eax",
        "test dil, 7",
        "jz 5f",
        "jmp 8f",
        // Fewer bytes are left than the destination's alignment, or than 8.
        "7:",
        "test dl, 4",
        "jz 2f",
        "mov [rdi], eax",
        "add rdi, 4",
        "2:",
        "test dl, 2",
        "jz 2f",
        "mov [rdi], ax",
        "add rdi, 2",
        "2:",
        "test dl, 1",
        "jz 2f",
        "mov [rdi], al",
        "2:",
        "ret",
        // The source register counts along unused.
        "8:",
        head!(1, "mov [rdi], al"),
        head!(2, "mov [rdi], ax"),
        head!(4, "mov [rdi], eax"),
        "5:",
        "mov rcx, rdx",
        "shr rcx, 3",
        "rep stosq",
        "jmp 7b",
    )
}
