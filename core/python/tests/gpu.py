"""The CUDA driver for tests: memory and streams of a program's own, without a package of CUDA's."""

import ctypes
import os

import numpy as np


class Driver:
    """The driver that oxshmem uses, with a GPU's primary context."""

    def __init__(self, gpu):
        self.library = ctypes.CDLL(os.environ.get("OXSHMEM_CUDA_LIBRARY", "libcuda.so.1"))
        self.call("cuInit", 0)
        device, self.context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuDeviceGet", ctypes.byref(device), gpu)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), device)
        self.call("cuCtxSetCurrent", self.context)

    def call(self, name, *arguments):
        status = getattr(self.library, name)(*arguments)
        assert status == 0, f"{name}: {status}"

    def stream(self):
        handle = ctypes.c_void_p()
        self.call("cuStreamCreate", ctypes.byref(handle), 1)
        return handle.value


class Memory:
    """An array on the GPU, as another library would have it: by __cuda_array_interface__ alone."""

    def __init__(self, driver, values):
        self.driver, self.values = driver, np.ascontiguousarray(values)
        self.pointer = ctypes.c_uint64()
        driver.call("cuMemAlloc_v2", ctypes.byref(self.pointer), ctypes.c_size_t(self.values.nbytes))
        driver.call("cuMemcpyHtoD_v2", self.pointer, ctypes.c_void_p(self.values.ctypes.data), ctypes.c_size_t(self.values.nbytes))
        # The copy may still be on its way: without a stream in the interface it has to be there.
        driver.call("cuCtxSynchronize")

    @property
    def __cuda_array_interface__(self):
        return {
            "shape": self.values.shape, "typestr": self.values.dtype.str, "data": (self.pointer.value, False), "version": 3, "strides": None,
            "stream": None,
        }  # fmt: skip

    def get(self):
        out = np.empty_like(self.values)
        self.driver.call("cuMemcpyDtoH_v2", ctypes.c_void_p(out.ctypes.data), self.pointer, ctypes.c_size_t(out.nbytes))
        return out
