//! oxshmem's own files: the headers of programs that call it, and the source of its kernels.

macro_rules! files {
    ($folder:literal: $($name:literal)*) => {
        &[$(($name, include_str!(concat!("../library/", $folder, $name)))),*]
    };
}
/// Names and texts, by folder.
type Headers = [&'static [(&'static str, &'static str)]; 2];
/// The headers of programs.
pub(crate) const HEADERS: Headers = [
    files!("core/capi/include/":
        "shmem.h" "shmemx.h" "pshmem.h" "mpp/shmem.h" "mpp/shmemx.h" "oxshmem/base.h" "oxshmem/generics.h"
        "oxshmem/overloads.h" "oxshmem/removed.h" "oxshmem/inline.h" "oxshmem/direct.h" "oxshmem/shmem4py.h"
    ),
    files!("core/device/include/": "oxshmem.cuh"),
];
/// The source of the library's own kernels, with the folders by which they name each other.
pub(crate) const SOURCES: &[(&str, &str)] = files!("":
    "transport/nvlink/device/atomic.cuh" "transport/nvlink/device/barrier.cuh" "transport/nvlink/device/compare.cuh"
    "transport/nvlink/device/copy.cuh" "transport/nvlink/device/host_shim.h" "transport/nvlink/device/kernel.cuh"
    "transport/nvlink/device/kernels.cu" "transport/nvlink/device/perform.cuh" "transport/nvlink/device/put.cuh"
    "transport/nvlink/device/reduce.cu" "transport/nvlink/device/stoppable.cuh" "transport/nvlink/device/wait.cuh"
    "transport/nvlink/device/half.cuh" "transport/nvlink/device/words.cuh" "core/device/header/inbox.cuh"
    "core/device/kernels/serve.cu" "core/device/kernels/stream.cu" "core/device/include/oxshmem.cuh"
);
/// Each module, and its PTX, which lists its kernels.
pub(crate) const MODULES: [(&str, &str); 4] = [
    (
        "transport/nvlink/device/kernels.cu",
        include_str!("../library/transport/nvlink/device/kernels.ptx"),
    ),
    (
        "transport/nvlink/device/reduce.cu",
        include_str!("../library/transport/nvlink/device/reduce.ptx"),
    ),
    (
        "core/device/kernels/serve.cu",
        include_str!("../library/core/device/kernels/serve.ptx"),
    ),
    (
        "core/device/kernels/stream.cu",
        include_str!("../library/core/device/kernels/stream.ptx"),
    ),
];
/// Everything that is unpacked or compiled once.
pub(crate) const ALL: (Headers, &[(&str, &str)]) = (HEADERS, SOURCES);
