"""oxshmem for Spack: from a checkout, as no archive of sources has an address yet.

    spack repo add ci/packages/spack
    spack dev-build oxshmem@0.2.0        # in the checkout's folder
"""

from spack.package import *

try:
    from spack_repo.builtin.build_systems.generic import Package  # Spack 1.0 and newer
except ImportError:
    from spack.package import Package


class Oxshmem(Package):
    """OpenSHMEM in C and C++, calls inside CUDA kernels, and NVSHMEM's names: symmetric shared memory for CPU and GPU clusters."""

    license("MIT OR Apache-2.0")
    version("0.2.0")

    variant("hwloc", default=True, description="topology by hwloc")
    variant("verbs", default=True, description="other hosts by RDMA")
    variant("ofi", default=True, description="other hosts by libfabric")

    depends_on("c", type="build")
    depends_on("rust@1.88:", type="build")
    depends_on("gmake", type="build")
    depends_on("binutils", type="build")
    # They are opened when a program runs.
    depends_on("hwloc@2.1:2", type="run", when="+hwloc")
    depends_on("rdma-core", type="run", when="+verbs")
    depends_on("libfabric@1.17:", type="run", when="+ofi")

    conflicts("platform=darwin", msg="oxshmem needs Linux")
    conflicts("target=aarch64:", msg="oxshmem has run on x86-64 alone")

    def install(self, spec, prefix):
        make("install", f"PREFIX={prefix}")

    def setup_run_environment(self, env):
        for name in ("hwloc", "rdma-core", "libfabric"):
            if name in self.spec:
                for folder in self.spec[name].libs.directories:
                    env.prepend_path("LD_LIBRARY_PATH", folder)
