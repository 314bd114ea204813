"""What examples/python refuses by an exception, before the library hears of it."""

import numpy as np

import shmem_ctypes as shmem


def refused(error, words, call, *arguments):
    try:
        call(*arguments)
    except error as told:
        assert words in str(told), told
    else:
        raise AssertionError(f"{call.__name__} took {arguments}")


def main():
    shmem.init()
    me = shmem.my_pe()
    for dtype in (">i8", ">u4"):
        word = shmem.zeros(1, dtype)
        refused(TypeError, "byte order", shmem.atomic_add, word, 1, me)
        refused(TypeError, "byte order", shmem.atomic_fetch_add, word, 1, me)
        refused(TypeError, "byte order", shmem.wait_until, word, shmem.EQ, 0)
    for dtype in (">f8", ">i2"):
        refused(TypeError, "byte order", shmem.reduce, "sum", shmem.zeros(4, dtype), shmem.zeros(4, dtype))
    # What copies bytes takes them: they come as they were.
    far = shmem.zeros(3, ">i4")
    shmem.put(far, [1, 2, 3], me)
    assert list(shmem.get(far, me)) == [1, 2, 3]
    refused(TypeError, "one integer", shmem.atomic_add, shmem.zeros(2, np.int64), 1, me)
    refused(TypeError, "one integer", shmem.atomic_add, shmem.zeros(1, np.int8), 1, me)
    refused(TypeError, "no functions", shmem.reduce, "sum", shmem.zeros(2, "U4"), shmem.zeros(2, "U4"))
    refused(ValueError, "one after the other", shmem.put, shmem.zeros(8)[::2], np.zeros(4), me)
    refused(ValueError, "for a place of", shmem.put, shmem.zeros(8), np.zeros(4), me)
    refused(ValueError, "differ", shmem.reduce, "sum", shmem.zeros(4), shmem.zeros(5))
    refused(ValueError, "differ", shmem.broadcast, shmem.zeros(4), shmem.zeros(5), 0)
    refused(ValueError, "as large as all", shmem.fcollect, shmem.zeros(4), shmem.zeros(4))
    if me == 0:
        print("all refused")
    shmem.finalize()


if __name__ == "__main__":
    main()
