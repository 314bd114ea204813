"""A program of nvshmem.core: processes that join by a unique id, buffers, transfers, signals and collective calls on streams, atomics,
teams, and the end. Each checks what it gets. Run by ci/test-nvshmem4py on the software CUDA driver.

    nvshmem4py_program.py PES mapped|apart KERNELS.ptx     apart: GPUs do not reach each other's memory
"""

import ctypes
import multiprocessing
import os
import runpy
import sys
import time
import traceback

import numpy as np

N = 1000


def program(rank, pes, is_mapped, send_id, receive_id):
    import nvshmem.bindings as bindings
    import nvshmem.core as shmem
    from cuda.bindings import driver
    from cuda.core import Device
    from nvshmem.core.collective import collective_on_buffer

    def check(result):
        assert result[0] == driver.CUresult.CUDA_SUCCESS, result
        return result[1] if len(result) > 1 else None

    check(driver.cuInit(0))
    device = Device(rank % check(driver.cuDeviceGetCount()))
    device.set_current()
    stream = device.create_stream()

    def filled(array):
        """A buffer of symmetric memory with these numbers, on all PEs before one of them writes to another's."""
        buffer = shmem.buffer(array.nbytes)
        check(driver.cuMemcpyHtoD(int(buffer.handle), array.ctypes.data, array.nbytes))
        check(driver.cuCtxSynchronize())
        bindings.barrier_all()
        buffers.append(buffer)
        return buffer

    def numbers(buffer, kind):
        stream.sync()
        array = np.empty(buffer.size // np.dtype(kind).itemsize, kind)
        check(driver.cuMemcpyDtoH(array.ctypes.data, int(buffer.handle), array.nbytes))
        return array

    assert shmem.get_name().lower().find("oxshmem") >= 0, shmem.get_name()
    version = shmem.get_version()
    assert version.libnvshmem_version.startswith("3."), version

    # The first process makes the id, the others take it.
    uid = shmem.get_unique_id(empty=rank != 0)
    if rank == 0:
        for pipe in send_id:
            pipe.send(bytes(uid._data.tobytes()))
    else:
        ctypes.memmove(uid.ptr, receive_id.recv(), 128)
    shmem.init(device=device, uid=uid, rank=rank, nranks=pes, initializer_method="uid")
    me, n = shmem.my_pe(), shmem.n_pes()
    assert (me, n) == (rank, pes), (me, n)
    right, left = (me + 1) % n, (me - 1) % n
    assert shmem.team_my_pe(shmem.Teams.TEAM_WORLD) == me and shmem.team_n_pes(shmem.Teams.TEAM_WORLD) == n
    assert shmem.init_status() == shmem.InitStatus.STATUS_IS_INITIALIZED, shmem.init_status()

    buffers = []
    source = filled(np.arange(N, dtype=np.float32) + 1000 * me)
    dest = filled(np.zeros(N, np.float32))
    signal = filled(np.zeros(1, np.uint64))

    # A put with a signal, a get, nonblocking ones.
    shmem.put_signal(dest, source, signal, 7, shmem.SignalOp.SIGNAL_SET, right, stream)
    shmem.signal_wait(signal, 7, shmem.ComparisonType.CMP_EQ, stream)
    assert (numbers(dest, np.float32) == np.arange(N) + 1000 * left).all()
    assert shmem.signal_fetch(signal) == 7
    shmem.barrier_all(stream)
    shmem.get(dest, source, right, stream)
    assert (numbers(dest, np.float32) == np.arange(N) + 1000 * right).all()
    shmem.barrier_all(stream)
    shmem.put_nbi(dest, source, right, stream)
    shmem.flush(stream)
    shmem.quiet(stream)
    shmem.signal_op(signal, 3, shmem.SignalOp.SIGNAL_ADD, right, stream)
    shmem.signal_wait(signal, 10, shmem.ComparisonType.CMP_GE, stream)
    assert (numbers(dest, np.float32) == np.arange(N) + 1000 * left).all()
    shmem.barrier(shmem.Teams.TEAM_WORLD, stream)

    # Collective calls, of several types.
    for kind, name in ((np.float32, "float"), (np.float64, "double"), (np.int64, "int64"), (np.uint8, "uint8"), (np.float16, "half")):
        part = filled(np.arange(100).astype(kind) + kind(me))
        whole = filled(np.zeros(100, kind))
        for operation, expected in (("sum", np.arange(100) * n + n * (n - 1) // 2), ("max", np.arange(100) + n - 1), ("min", np.arange(100))):
            collective_on_buffer("reduce", shmem.Teams.TEAM_WORLD, whole, part, dtype=name, op=operation, stream=stream)
            assert (numbers(whole, kind) == expected.astype(kind)).all(), (name, operation)
        everyone = filled(np.zeros(100 * n, kind))
        collective_on_buffer("fcollect", shmem.Teams.TEAM_WORLD, everyone, part, dtype=name, stream=stream)
        assert (numbers(everyone, kind) == np.concatenate([np.arange(100) + pe for pe in range(n)]).astype(kind)).all(), name
        collective_on_buffer("broadcast", shmem.Teams.TEAM_WORLD, whole, part, dtype=name, root=n - 1, stream=stream)
        assert (numbers(whole, kind) == (np.arange(100) + n - 1).astype(kind)).all(), name
        turned = filled(np.zeros(100 * n, kind))
        collective_on_buffer("alltoall", shmem.Teams.TEAM_WORLD, turned, everyone, dtype=name, stream=stream)
        # Block i of this PE's source comes from PE i, and all PEs have the same source.
        assert (numbers(turned, kind) == np.tile(np.arange(100) + me, n).astype(kind)).all(), name
        share = filled(np.zeros(100, kind))
        collective_on_buffer("reducescatter", shmem.Teams.TEAM_WORLD, share, everyone, dtype=name, op="sum", stream=stream)
        assert (numbers(share, kind) == ((np.arange(100) + me) * n).astype(kind)).all(), name
    shmem.sync_all(stream)
    stream.sync()

    # Atomics of the host, on the first PE's word.
    word = filled(np.zeros(2, np.int64))
    shmem.atomic_add(word, 5, 0, dtype="int64")
    shmem.atomic_inc(word, 0, offset=1, dtype="int64")
    bindings.barrier_all()
    assert shmem.atomic_fetch(word, 0, dtype="int64") == 5 * n and shmem.atomic_fetch(word, 0, offset=1, dtype="int64") == n
    bindings.barrier_all()

    # A peer's memory, where this GPU reaches it; else there is none.
    if is_mapped:
        theirs = shmem.get_peer_buffer(source, right)
        assert (numbers(theirs, np.float32) == np.arange(N) + 1000 * right).all()
    else:
        assert bindings.ptr(int(source.handle), right) == 0

    # A module of kernels gets its state by the hook that oxshmem_triton gives to Triton. Other modules are left alone.
    host = runpy.run_path(f"{os.path.dirname(__file__)}/../python/oxshmem_triton/host.py")
    with open(sys.argv[3], "rb") as kernels:
        module = check(driver.cuModuleLoadData(kernels.read() + b"\0"))
    kernel = check(driver.cuModuleGetFunction(module, b"neighbours"))

    def launch(more):
        check(driver.cuMemsetD8(int(word.handle), 0, 16))
        check(driver.cuCtxSynchronize())
        bindings.barrier_all()
        arguments = ((int(word.handle), more), (ctypes.c_void_p, ctypes.c_longlong))
        check(driver.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, int(stream.handle), arguments, 0))
        assert numbers(word, np.int64)[0] == more + left
        bindings.barrier_all()

    host["_on_load"](int(module), None, "neighbours", {}, "")
    launch(77)
    host["finalize_module"](int(module))
    # The same by nvshmem.core's own function.
    shmem.module_init(shmem.NvshmemKernelObject.from_handle(int(module)))
    launch(88)
    other = check(driver.cuModuleLoadData(b".version 7.0\n.target sm_70\n.address_size 64\n\0"))
    host["_on_load"](int(other), None, "another", {}, "")
    try:
        host["init_module"](int(other))
    except RuntimeError as error:
        assert "nvshmemx_cumodule_init gave" in str(error), error
    else:
        raise AssertionError("a module without oxshmem_state was taken")

    # A team of the even PEs.
    team = shmem.team_split_strided(shmem.Teams.TEAM_WORLD, 0, 2, (n + 1) // 2, shmem.TeamConfig(), 0, "EVEN")
    if me % 2 == 0:
        assert shmem.team_my_pe(team) == me // 2 and shmem.team_n_pes(team) == (n + 1) // 2
        collective_on_buffer("reduce", team, dest, source, dtype="float", op="max", stream=stream)
        assert numbers(dest, np.float32)[0] == 1000 * ((n - 1) // 2 * 2)
        shmem.team_destroy(team)
    bindings.barrier_all()
    for buffer in buffers:
        shmem.free(buffer)
    shmem.finalize()
    print(f"PE {me} of {n}: right", flush=True)


def run(*arguments):
    try:
        program(*arguments)
    except BaseException:
        traceback.print_exc()
        sys.exit(1)


def main():
    pes = int(sys.argv[1])
    context = multiprocessing.get_context("spawn")
    pipes = [context.Pipe(duplex=False) for _ in range(1, pes)]
    processes = [context.Process(target=run, args=(rank, pes, sys.argv[2] == "mapped", [send for _, send in pipes] if rank == 0 else [],
                                                   pipes[rank - 1][0] if rank else None)) for rank in range(pes)]
    for process in processes:
        process.start()
    end = time.monotonic() + 240
    while any(process.exitcode is None for process in processes):
        failed = any(process.exitcode for process in processes)
        if failed or time.monotonic() > end:
            print("a process has failed" if failed else "processes have not come to their end in 240 s", file=sys.stderr)
            for process in processes:
                process.kill()
            sys.exit(1)
        time.sleep(0.05)
    sys.exit(any(process.exitcode for process in processes))


if __name__ == "__main__":
    main()
