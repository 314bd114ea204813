"""The bitcode, and the state of modules."""

import ctypes
import os

_HOST = "libnvshmem_host.so.3"
_DEVICE = "libnvshmem_device.bc"
_has_hook = False


def _folders():
    """The folders in which the bitcode may lie."""
    if "NVSHMEM_LIB_DIR" in os.environ:
        yield os.environ["NVSHMEM_LIB_DIR"]
    if "NVSHMEM_HOME" in os.environ:
        yield os.path.join(os.environ["NVSHMEM_HOME"], "lib")
    # Beside the host library, if the process has it already.
    try:
        with open("/proc/self/maps") as maps:
            for line in maps:
                path = line.split(maxsplit=5)[5:]
                if path and os.path.basename(path[0].strip()) == _HOST:
                    yield os.path.dirname(path[0].strip())
    except OSError:
        pass
    yield from filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(":"))
    # In oxshmem's installed folder for NVSHMEM, where this package lies beside it.
    yield os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "lib"))


def library():
    """The path of the bitcode."""
    folders = list(dict.fromkeys(_folders()))
    for folder in folders:
        path = os.path.join(folder, _DEVICE)
        if os.path.exists(path):
            return path
    looked = ", ".join(folders) or "no folder"
    raise FileNotFoundError(f"oxshmem_triton: {_DEVICE} was looked for in {looked}, and is not there: NVSHMEM_LIB_DIR names its folder")


def extern_libs():
    """The option `extern_libs` of a kernel that makes calls of this package. From then on, each module that has them is given its
    state when Triton loads it. NVSHMEM is to be initialised before."""
    global _has_hook
    if not _has_hook:
        import triton

        # 3.5 to 3.8 have all that is needed here, but an assertion of their compiler fails at barriers and waits for several words.
        if tuple(int(part) for part in triton.__version__.split(".")[:2]) < (3, 9):
            raise RuntimeError(f"oxshmem_triton: Triton is {triton.__version__}; 3.9 or newer is needed, since older ones fail at some calls")
        triton.knobs.runtime.kernel_load_end_hook.add(_on_load)
        _has_hook = True
    return {"libnvshmem_device": library()}


def _on_load(module, function, name, metadata_group, hash):
    if _has_state(module):
        init_module(module, name)


def _has_state(module):
    driver = ctypes.CDLL("libcuda.so.1")
    at, size = ctypes.c_void_p(), ctypes.c_size_t()
    return driver.cuModuleGetGlobal_v2(ctypes.byref(at), ctypes.byref(size), ctypes.c_void_p(module), b"oxshmem_state") == 0


def init_module(module, name="its kernel"):
    """Gives a CUmodule its state: `extern_libs` has this done for modules that Triton loads."""
    status = _host().nvshmemx_cumodule_init(ctypes.c_void_p(module))
    if status != 0:
        raise RuntimeError(f"oxshmem_triton: nvshmemx_cumodule_init gave {status} for the module of {name}. Its reason is on standard "
                           "error. NVSHMEM has to be initialised before a kernel is launched for the first time")


def finalize_module(module):
    """The end of what `init_module` began, before the module is unloaded."""
    status = _host().nvshmemx_cumodule_finalize(ctypes.c_void_p(module))
    if status != 0:
        raise RuntimeError(f"oxshmem_triton: nvshmemx_cumodule_finalize gave {status}")


def _host():
    try:
        return ctypes.CDLL(_HOST, mode=ctypes.RTLD_GLOBAL)
    except OSError as error:
        raise RuntimeError(f"oxshmem_triton: {_HOST} cannot be loaded ({error}): LD_LIBRARY_PATH has to name its folder") from None
