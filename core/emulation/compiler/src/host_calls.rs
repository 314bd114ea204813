//! The host's calls of oxshmem, for programs that are built for the race detector.
//!
//! The detector does not see what the library does. So a checked program has functions of its own under the names of the calls that it makes.
//! They tell the detector, call the library's twin (`pshmem_...`; of NVSHMEM's names the library's own function), and tell it that the call is
//! over, and whether the host may have heard of other PEs by it. A function that the program defines under such a name counts instead.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::elf;
use crate::error::Failure;
use crate::signature::Signature;
use crate::toolchain::{Toolchain, run};

/// Parts of the names of calls that end when others have done something, or give what others have written.
const HEARS: [&str; 25] = [
    "get",
    "_g",
    "fetch",
    "swap",
    "wait",
    "test",
    "barrier",
    "sync",
    "quiet",
    "broadcast",
    "collect",
    "alltoall",
    "reduce",
    "to_all",
    "scan",
    "malloc",
    "calloc",
    "realloc",
    "align",
    "free",
    "set_lock",
    "team_split",
    "cuda_init",
    "cuda_team",
    "finalize",
];
/// Parts of the names of others.
const SILENT: [&str; 5] = [
    "get_config",
    "get_team",
    "get_version",
    "get_name",
    "on_stream",
];

/// A function of these: its arguments, at most four words of them on the stack, go to the twin, and the result comes back.
const SOURCE: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

enum { TELLS, HEARS, MEETS };
/* As `Operand` of the driver; WRITTEN is added. */
enum { SOURCE = 1, DEST, SIGNALLED, FETCHED, WRITTEN = 8 };
enum { NONE = 255 };
/* A nonblocking call has the operands here and at another PE, a count of their elements, and their size; all by the number of the argument. */
struct call {
    unsigned about;
    unsigned char kind, here, here_as, there, there_as, count, pe;
    unsigned short size;
};
static unsigned (*calls)(const uintptr_t *arguments, unsigned about, unsigned long meeting);
static void (*operand)(uintptr_t at, size_t bytes, unsigned kind);
static void (*returns)(int heard, unsigned long meeting);
/* One for the process. The driver looks for it. */
__attribute__((weak)) unsigned long oxshmem_meetings;
__attribute__((weak)) extern void *pshmemx_cuda_ptr(const void *dest, int pe);

/* Those on the stack lie behind the caller's frame. */
static uintptr_t argument(const uintptr_t *arguments, unsigned number) {
    return arguments[number < 6 ? number : number + 20];
}

static void operands(const uintptr_t *arguments, const struct call *call, unsigned on_gpu) {
    const size_t bytes = call->size * (call->count == NONE ? 1 : argument(arguments, call->count));
    if (on_gpu & 1u << call->here) {
        operand(arguments[call->here], bytes, call->here_as);
    }
    if (call->there != NONE && on_gpu & 1u << call->there && pshmemx_cuda_ptr) {
        void *there = pshmemx_cuda_ptr((void *)arguments[call->there], (int)argument(arguments, call->pe));
        if (there) {
            operand((uintptr_t)there, bytes, call->there_as);
        }
    }
}

/* Gives whether the driver was told. */
__attribute__((used)) static int oxshmem_calls(const uintptr_t *arguments, const struct call *call) {
    if (!__atomic_load_n(&returns, __ATOMIC_ACQUIRE)) {
        *(void **)&calls = dlsym(RTLD_DEFAULT, "softcuda_host_calls");
        *(void **)&operand = dlsym(RTLD_DEFAULT, "softcuda_host_operand");
        __atomic_store_n((void **)&returns, dlsym(RTLD_DEFAULT, "softcuda_host_returns"), __ATOMIC_RELEASE);
    }
    unsigned long meeting = call->kind == MEETS ? __atomic_add_fetch(&oxshmem_meetings, 1, __ATOMIC_RELAXED) : 0;
    if (!__atomic_load_n(&returns, __ATOMIC_ACQUIRE)) {
        return 0;
    }
    const unsigned on_gpu = calls(arguments, call->about, meeting);
    if (call->here != NONE) {
        operands(arguments, call, on_gpu);
    }
    return 1;
}
__attribute__((used)) static void oxshmem_returns(const struct call *call, int told) {
    if (told) {
        returns(call->kind != TELLS, call->kind == MEETS ? __atomic_load_n(&oxshmem_meetings, __ATOMIC_RELAXED) : 0);
    }
}

/* `twin` is the library's function, as an operand of a call. */
#define CALL(name, twin, ...)                                                                      \
    __attribute__((used)) static const struct call about_##name = {__VA_ARGS__};                   \
    __asm__(".text\n.weak " #name "\n.type " #name ",@function\n" #name ":\n"                      \
            "push %rbp\nmov %rsp,%rbp\nsub $192,%rsp\n"                                            \
            "mov %rdi,(%rsp)\nmov %rsi,8(%rsp)\nmov %rdx,16(%rsp)\n"                               \
            "mov %rcx,24(%rsp)\nmov %r8,32(%rsp)\nmov %r9,40(%rsp)\n"                              \
            "movups %xmm0,48(%rsp)\nmovups %xmm1,64(%rsp)\nmovups %xmm2,80(%rsp)\n"                \
            "movups %xmm3,96(%rsp)\nmov %rsp,%rdi\nlea about_" #name "(%rip),%rsi\n"               \
            "call oxshmem_calls\nmov %eax,-8(%rbp)\n"                                              \
            "mov (%rsp),%rdi\nmov 8(%rsp),%rsi\nmov 16(%rsp),%rdx\n"                               \
            "mov 24(%rsp),%rcx\nmov 32(%rsp),%r8\nmov 40(%rsp),%r9\n"                              \
            "movups 48(%rsp),%xmm0\nmovups 64(%rsp),%xmm1\nmovups 80(%rsp),%xmm2\n"                \
            "movups 96(%rsp),%xmm3\n"                                                              \
            "push 40(%rbp)\npush 32(%rbp)\npush 24(%rbp)\npush 16(%rbp)\n"                         \
            "call " twin "\nadd $32,%rsp\n"                                                        \
            "mov %rax,(%rsp)\nmov %rdx,8(%rsp)\nmovups %xmm0,16(%rsp)\nmovups %xmm1,32(%rsp)\n"    \
            "lea about_" #name "(%rip),%rdi\nmov -8(%rbp),%esi\ncall oxshmem_returns\n"            \
            "mov (%rsp),%rax\nmov 8(%rsp),%rdx\nmovups 16(%rsp),%xmm0\nmovups 32(%rsp),%xmm1\n"    \
            "leave\nret\n.size " #name ",.-" #name "\n");

/* A function without a twin: the next one of its name is the library's. */
#define NEXT(name, ...)                                                                            \
    __attribute__((used)) static void *next_##name;                                                \
    __attribute__((constructor(101))) static void find_##name(void) {                              \
        next_##name = dlsym(RTLD_NEXT, #name);                                                     \
    }                                                                                              \
    CALL(name, "*next_" #name "(%rip)", __VA_ARGS__)
"#;

fn hears(name: &str) -> bool {
    let has = |part: &&str| match *part {
        "_g" => name.ends_with("_g"),
        part => name.contains(part),
    };
    HEARS.iter().any(has) && !SILENT.iter().any(has)
}

/// The kind of a call, as the source numbers them: the host only tells by it, or hears, or meets all others.
fn kind(name: &str) -> u32 {
    match name {
        "shmem_barrier_all" | "shmem_sync_all" | "nvshmem_barrier_all" | "nvshmem_sync_all" => 2,
        name => u32::from(hears(name)),
    }
}

/// Parts of the names of calls that complete nonblocking ones.
const QUIETS: [&str; 8] = [
    "quiet", "barrier", "malloc", "calloc", "realloc", "align", "free", "finalize",
];

/// The bits of a call that completes nonblocking ones, as the driver numbers them, above those of its addresses.
fn completes(name: &str) -> u32 {
    if name.contains("on_stream") {
        return 0;
    }
    let quiets = QUIETS.iter().any(|part| name.contains(part)) || name.ends_with("ctx_destroy");
    match name.ends_with("fence") {
        _ if quiets => 1 << 6,
        true => 1 << 7,
        false => 0,
    }
}

/// A call's description, as the source has it.
fn call(name: &str) -> String {
    let (kind, completes) = (kind(name), completes(name));
    if name.starts_with("nvshmem") {
        // Its data goes by work of a stream, which the driver sees.
        return format!("{completes}u, {kind}, NONE");
    }
    let Some(signature) = Signature::of(name) else {
        // All that may be an address counts as one.
        return format!("{}u, {kind}, NONE", completes | 63);
    };
    let about = completes | signature.addresses();
    match nonblocking(name, &signature) {
        Some(operands) => format!("{about}u, {kind}, {operands}"),
        None => format!("{about}u, {kind}, NONE"),
    }
}

/// The operands of a nonblocking call; none if it is none.
fn nonblocking(name: &str, signature: &Signature) -> Option<String> {
    if !name.ends_with("_nbi") {
        return None;
    }
    let number = |parameter: &str| signature.number(parameter);
    let size = |parameter: &str| {
        let bits: String = name.chars().filter(char::is_ascii_digit).collect();
        match signature.element(parameter)? {
            // Calls by size have it in bits.
            "void" => Some(match bits.parse::<u32>() {
                Ok(bits) => (bits / 8).to_string(),
                Err(_) => "1".to_owned(),
            }),
            kind => Some(format!("sizeof({kind})")),
        }
    };
    if let Some(here) = number("fetch") {
        return Some(format!(
            "{here}, FETCHED | WRITTEN, NONE, 0, NONE, 0, {}",
            size("fetch")?
        ));
    }
    let (dest, source) = (number("dest")?, number("source")?);
    let (count, pe) = (number("nelems")?, number("pe")?);
    let size = size("dest")?;
    let operands = match name {
        name if name.contains("get") => {
            format!("{dest}, FETCHED | WRITTEN, {source}, FETCHED")
        }
        // A PE that sees the signal sees the data.
        name if name.contains("signal") => format!("{source}, SOURCE, NONE, 0"),
        _ => format!("{source}, SOURCE, {dest}, DEST | WRITTEN"),
    };
    Some(format!("{operands}, {count}, {pe}, {size}"))
}

/// The calls that these objects, archives and libraries make, as far as the library has a twin of them.
fn calls(files: &[PathBuf], library: &Path) -> BTreeSet<String> {
    let of = |path: &Path| -> BTreeSet<String> {
        let bytes = fs::read(path).unwrap_or_default();
        let names = elf::names(&bytes);
        names
            .filter_map(|name| Some(std::str::from_utf8(name).ok()?.to_owned()))
            .collect()
    };
    let twins = of(library);
    let mut calls = BTreeSet::new();
    let (nvshmem, files): (Vec<_>, Vec<_>) = files.iter().partition(|path| is_nvshmem(path));
    let nvshmem: BTreeSet<String> = nvshmem.into_iter().flat_map(|path| of(path)).collect();
    for path in files {
        // Where a twin is called, too, the table may have its name alone.
        let names = of(path).into_iter();
        let names = names.map(|name| {
            name.strip_prefix("pshmem")
                .map_or(name.clone(), |rest| format!("shmem{rest}"))
        });
        calls.extend(names.filter(|name| {
            name.starts_with("shmem") && twins.contains(&format!("p{name}"))
                || name.starts_with("nvshmem") && nvshmem.contains(name)
        }));
    }
    calls
}

/// Whether this is the library of NVSHMEM's calls.
fn is_nvshmem(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with("libnvshmem_host.so")
}

/// The words for the linker that go with it: the driver finds this variable in the program.
pub(crate) const EXPORT: &str = "-Wl,--export-dynamic-symbol=oxshmem_meetings";

/// The object with these functions; none if the program needs none.
pub(crate) fn object(
    tools: &Toolchain,
    files: &[PathBuf],
    library: &Path,
    work: &Path,
) -> Result<Option<PathBuf>, Failure> {
    let calls = calls(files, library);
    if calls.is_empty() {
        return Ok(None);
    }
    let (source, object) = (work.join("host-calls.c"), work.join("host-calls.o"));
    let lines = calls.iter().map(|name| match name.starts_with("nvshmem") {
        true => format!("NEXT({name}, {})\n", call(name)),
        false => format!("CALL({name}, \"p{name}@PLT\", {})\n", call(name)),
    });
    let text = format!("{SOURCE}{}", lines.collect::<String>());
    fs::write(&source, text).map_err(|error| Failure::file(&source, &error))?;
    let mut command = Command::new(&tools.clang);
    command
        .args(["-fPIC", "-O1", "-c", "-o"])
        .arg(&object)
        .arg(&source);
    run(&mut command)?;
    Ok(Some(object))
}

#[cfg(test)]
mod tests {
    use super::{call, hears};

    #[test]
    fn a_host_hears_by_calls_that_wait_or_read() {
        for name in [
            "shmem_long_g",
            "shmem_ctx_getmem",
            "shmem_long_wait_until_all",
            "shmem_signal_wait_until",
            "shmem_barrier_all",
            "shmem_long_atomic_fetch_inc",
            "shmem_int_sum_reduce",
            "shmem_int_sum_to_all",
            "shmem_malloc",
            "shmem_quiet",
        ] {
            assert!(hears(name), "{name}");
        }
        for name in [
            "shmem_long_p",
            "shmem_putmem_signal",
            "shmem_long_atomic_add",
            "shmem_fence",
            "shmem_my_pe",
            "shmem_team_get_config",
            "shmemx_getmem_on_stream",
        ] {
            assert!(!hears(name), "{name}");
        }
    }

    #[test]
    fn a_nonblocking_call_tells_of_its_operands_and_a_quiet_ends_their_use() {
        for (name, about) in [
            (
                "shmem_long_put_nbi",
                "3u, 0, 1, SOURCE, 0, DEST | WRITTEN, 2, 3, sizeof(long)",
            ),
            (
                "shmem_ctx_put32_nbi",
                "6u, 0, 2, SOURCE, 1, DEST | WRITTEN, 3, 4, 4",
            ),
            (
                "shmem_getmem_nbi",
                "3u, 1, 0, FETCHED | WRITTEN, 1, FETCHED, 2, 3, 1",
            ),
            (
                "shmem_int_atomic_fetch_add_nbi",
                "3u, 1, 0, FETCHED | WRITTEN, NONE, 0, NONE, 0, sizeof(int)",
            ),
            (
                "shmem_double_put_signal_nbi",
                "11u, 0, 1, SOURCE, NONE, 0, 2, 6, sizeof(double)",
            ),
            ("shmem_quiet", "64u, 1, NONE"),
            ("shmem_fence", "128u, 0, NONE"),
            ("shmem_sync_all", "0u, 2, NONE"),
            ("shmem_double_p", "1u, 0, NONE"),
            ("shmem_of_another_library", "63u, 0, NONE"),
            ("nvshmem_barrier_all", "64u, 2, NONE"),
            ("nvshmemx_long_put_nbi_on_stream", "0u, 0, NONE"),
            ("nvshmem_long_get", "0u, 1, NONE"),
        ] {
            assert_eq!(call(name), about, "{name}");
        }
    }
}
