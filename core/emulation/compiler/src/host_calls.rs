//! The host's calls of oxshmem, for programs that are built for the race detector.
//!
//! The detector does not see what the library does. So a checked program has functions of its own under the names of the calls that it makes.
//! They tell the detector, call the library's twin (`pshmem_...`), and tell it that the call is over, and whether the host may have heard of
//! other PEs by it. A function that the program defines under such a name counts instead.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::elf;
use crate::error::Failure;
use crate::toolchain::{Toolchain, run};

/// Parts of the names of calls that end when others have done something, or give what others have written.
const HEARS: [&str; 23] = [
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

enum { TELLS, HEARS, MEETS };
static void (*calls)(const void *const *arguments, unsigned long meeting);
static void (*returns)(int heard, unsigned long meeting);
/* One for the process. The driver looks for it. */
__attribute__((weak)) unsigned long oxshmem_meetings;

/* Gives whether the driver was told. */
__attribute__((used)) static int oxshmem_calls(const void *const *arguments, int kind) {
    if (!__atomic_load_n(&returns, __ATOMIC_ACQUIRE)) {
        *(void **)&calls = dlsym(RTLD_DEFAULT, "softcuda_host_calls");
        __atomic_store_n((void **)&returns, dlsym(RTLD_DEFAULT, "softcuda_host_returns"), __ATOMIC_RELEASE);
    }
    unsigned long meeting = kind == MEETS ? __atomic_add_fetch(&oxshmem_meetings, 1, __ATOMIC_RELAXED) : 0;
    if (!__atomic_load_n(&returns, __ATOMIC_ACQUIRE)) {
        return 0;
    }
    calls(arguments, meeting);
    return 1;
}
__attribute__((used)) static void oxshmem_returns(int kind, int told) {
    if (told) {
        returns(kind != TELLS, kind == MEETS ? __atomic_load_n(&oxshmem_meetings, __ATOMIC_RELAXED) : 0);
    }
}

#define CALL(name, kind)                                                                           \
    __asm__(".text\n.weak " #name "\n.type " #name ",@function\n" #name ":\n"                      \
            "push %rbp\nmov %rsp,%rbp\nsub $192,%rsp\n"                                           \
            "mov %rdi,(%rsp)\nmov %rsi,8(%rsp)\nmov %rdx,16(%rsp)\n"                              \
            "mov %rcx,24(%rsp)\nmov %r8,32(%rsp)\nmov %r9,40(%rsp)\n"                             \
            "movups %xmm0,48(%rsp)\nmovups %xmm1,64(%rsp)\nmovups %xmm2,80(%rsp)\n"               \
            "movups %xmm3,96(%rsp)\nmov %rsp,%rdi\nmov $" #kind ",%esi\n"                          \
            "call oxshmem_calls\nmov %eax,-8(%rbp)\n"     \
            "mov (%rsp),%rdi\nmov 8(%rsp),%rsi\nmov 16(%rsp),%rdx\n"                              \
            "mov 24(%rsp),%rcx\nmov 32(%rsp),%r8\nmov 40(%rsp),%r9\n"                             \
            "movups 48(%rsp),%xmm0\nmovups 64(%rsp),%xmm1\nmovups 80(%rsp),%xmm2\n"               \
            "movups 96(%rsp),%xmm3\n"                                                              \
            "push 40(%rbp)\npush 32(%rbp)\npush 24(%rbp)\npush 16(%rbp)\n"                        \
            "call p" #name "@PLT\nadd $32,%rsp\n"                                                 \
            "mov %rax,(%rsp)\nmov %rdx,8(%rsp)\nmovups %xmm0,16(%rsp)\nmovups %xmm1,32(%rsp)\n"   \
            "mov $" #kind ",%edi\nmov -8(%rbp),%esi\ncall oxshmem_returns\n"                                        \
            "mov (%rsp),%rax\nmov 8(%rsp),%rdx\nmovups 16(%rsp),%xmm0\nmovups 32(%rsp),%xmm1\n"   \
            "leave\nret\n.size " #name ",.-" #name "\n");
"#;

/// The names in the symbol tables of a file.
fn names(bytes: &[u8]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for file in elf::files(bytes) {
        let tables = [".strtab", ".dynstr"].map(|name| elf::section(file, name));
        for name in tables
            .into_iter()
            .flatten()
            .flat_map(|names| names.split(|byte| *byte == 0))
        {
            found.extend(std::str::from_utf8(name).map(str::to_owned));
        }
    }
    found
}

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
        "shmem_barrier_all" | "shmem_sync_all" => 2,
        name => u32::from(hears(name)),
    }
}

/// The calls that these objects, archives and libraries make, as far as the library has a twin of them.
fn calls(files: &[PathBuf], library: &Path) -> BTreeSet<String> {
    let of = |path: &Path| names(&fs::read(path).unwrap_or_default());
    let twins = of(library);
    let mut calls = BTreeSet::new();
    for path in files {
        // Where a twin is called, too, the table may have its name alone.
        let names = of(path).into_iter();
        let names = names.map(|name| {
            name.strip_prefix("pshmem")
                .map_or(name.clone(), |rest| format!("shmem{rest}"))
        });
        calls.extend(
            names.filter(|name| name.starts_with("shmem") && twins.contains(&format!("p{name}"))),
        );
    }
    calls
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
    let lines = calls
        .iter()
        .map(|name| format!("CALL({name}, {})\n", kind(name)));
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
    use super::hears;

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
}
