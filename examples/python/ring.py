"""A ring and a sum: oshrun -n 4 python3 ring.py

Each PE puts a row of numbers to its neighbour and then a flag, and waits for its own flag. Then all sum their rows, take
one's, and draw work from a counter. What comes is checked.
"""

import numpy as np

import shmem_ctypes as shmem


def ring(me, n):
    row, flag = shmem.zeros(1000), shmem.zeros(1, np.int64)
    for turn in range(1, 4):
        shmem.put(row, np.arange(1000) + 1000 * me + turn, (me + 1) % n)
        shmem.fence()
        shmem.put(flag, [turn], (me + 1) % n)
        shmem.wait_until(flag, shmem.GE, turn)
        left = (me + n - 1) % n
        assert np.array_equal(row, np.arange(1000) + 1000 * left + turn)
        shmem.barrier_all()
    # Element by element, from a remote PE.
    assert np.array_equal(shmem.get(row[10:20], (me + 1) % n), np.arange(10, 20) + 1000 * me + 3)
    shmem.barrier_all()
    shmem.free(flag)
    shmem.free(row)


def sums(me, n):
    mine, total = shmem.zeros((4, 5), np.float32), shmem.zeros((4, 5), np.float32)
    mine[:] = me + 1
    mine[2, 3] = me
    shmem.reduce("sum", total, mine)
    assert total[0, 0] == n * (n + 1) / 2 and total[2, 3] == n * (n - 1) / 2
    shmem.barrier_all()
    shmem.reduce("max", total, mine)
    assert total[0, 0] == n and total[2, 3] == n - 1
    shmem.broadcast(total, mine, n - 1)
    assert total[3, 4] == n
    every = shmem.zeros((n, 4, 5), np.float32)
    shmem.fcollect(every, mine)
    assert [int(all[2, 3]) for all in every] == list(range(n))
    shmem.barrier_all()


def work(me, n):
    counter, done = shmem.zeros(1, np.uint64), shmem.zeros(1, np.int32)
    while (piece := shmem.atomic_fetch_add(counter, 1, 0)) < 30:
        shmem.atomic_add(done, int(piece), n - 1)
    shmem.barrier_all()
    if me == n - 1:
        assert done[0] == 30 * 29 // 2


def main():
    shmem.init()
    me, n = shmem.my_pe(), shmem.n_pes()
    ring(me, n)
    sums(me, n)
    work(me, n)
    if me == 0:
        print(f"{n} PEs: right")
    shmem.finalize()


if __name__ == "__main__":
    main()
