"""Several threads of a PE."""

import threading
import time

import numpy as np
import pytest

from oxshmem import errors


def run(*functions):
    failures = []

    def guarded(function):
        try:
            function()
        except BaseException as error:  # noqa: BLE001 - shown below
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(function,)) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def test_a_wait_lets_other_threads_run(world, right):
    flag, ran = world.zeros(1, "int64"), []

    def waits():
        world.wait_until(flag, "==", 1)
        ran.append("waited")

    def sets():
        time.sleep(0.05)
        ran.append("set")
        world.p(flag, 1, world.my_pe)
        world.quiet()

    run(waits, sets)
    assert ran == ["set", "waited"]
    world.barrier_all()
    flag.free()


def test_threads_put_at_once(world, right, left):
    x, count = world.zeros((4, 1000), "int64"), world.zeros(1, "int64")

    def puts(i):
        def act():
            for _ in range(50):
                world.put(x[i], np.full(1000, world.my_pe * 10 + i), right)
                world.put_nbi(x[i], np.full(1000, world.my_pe * 10 + i), right)
                world.atomic_inc(count, right)
                world.quiet()

        return act

    run(*(puts(i) for i in range(4)))
    world.barrier_all()
    assert (x == left * 10 + np.arange(4)[:, None]).all() and count[0] == 200
    x.free()
    count.free()


def test_threads_with_teams_of_their_own(world):
    teams = [world.team.split_list(range(world.n_pes)) for _ in range(2)]
    sums = world.zeros((2, 8), "int64")
    sums[:] = world.my_pe + 1
    world.barrier_all()

    def reduces(i):
        def act():
            for _ in range(10):
                teams[i].reduce(sums[i], sums[i], "max")

        return act

    run(reduces(0), reduces(1))
    assert (sums == world.n_pes).all()
    for team in teams:
        team.destroy()
    sums.free()


def test_the_end_waits_for_no_thread(world):
    flag = world.zeros(1, "int64")
    began = threading.Event()

    def waits():
        began.set()
        world.wait_until(flag, "==", 1)

    thread = threading.Thread(target=waits)
    thread.start()
    began.wait()
    time.sleep(0.1)
    with pytest.raises(errors.ArgumentError, match="another thread"):
        world.finalize()
    world.p(flag, 1, world.my_pe)
    world.quiet()
    thread.join()
    world.barrier_all()
    flag.free()
