"""Whole programs: their starts, their ends, and what they leave. Each is a job of its own, so that no job runs these tests."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

pytestmark = pytest.mark.skipif("OXSHMEM_RANK" in os.environ, reason="starts jobs: run it outside of one")


def start(pes, program, **more):
    return subprocess.Popen(
        [sys.executable, "-m", "oxshmem", "run", "-n", str(pes), "--timeout", "60s", "python", "-c", textwrap.dedent(program)],
        text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more,
    )  # fmt: skip


def run(pes, program):
    """The status and both outputs of a job."""
    process = start(pes, program)
    out, errors = process.communicate()
    return process.returncode, out, errors


def alone(program):
    """The same of a program that nobody launched."""
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], text=True, capture_output=True, timeout=60, check=False)
    return done.returncode, done.stdout, done.stderr


def test_a_world_of_one_needs_no_launcher():
    status, out, errors = alone("""
        import oxshmem
        with oxshmem.init() as world:
            x = world.zeros(3, "int64")
            world.put(x, [1, 2, 3], 0)
            print(world, x)
        print(x)
    """)
    assert (status, errors) == (0, ""), errors
    assert out == "<World of PE 0 of 1> [1 2 3]\n[1 2 3]\n"


def test_the_program_of_the_package():
    import oxshmem

    program = oxshmem.__doc__.split("::\n")[1].split("\nStart it")[0]
    for pes in (1, 4):
        assert run(pes, program) == (0, "", "")


def test_arrays_outlive_their_world():
    status, out, errors = run(2, """
        import gc, numpy as np, oxshmem
        world = oxshmem.init()
        x = world.zeros(1000, "int64")
        view = x[10:20]
        world.put(view, [7] * 10, 1 - world.my_pe)
        nobody_uses = world.zeros(1 << 20)
        peer = x.peer(1 - world.my_pe)
        world.finalize()
        del world, x, nobody_uses
        gc.collect()
        assert (view == 7).all() and (peer[10:20] == 7).all()
        # The other PE may be behind: only what it does not look at is changed.
        view.base[:10] = 8
        # The last array's end unmaps the memory; nothing is left that could touch it.
        del view, peer
        gc.collect()
    """)
    assert (status, errors) == (0, ""), errors


def test_calls_after_the_end_say_so():
    status, out, errors = run(2, """
        import numpy as np, oxshmem
        from oxshmem import errors
        with oxshmem.init() as world:
            x, context, team = world.zeros(3), world.create_context(), world.team
        assert not world.is_live
        for call in (lambda: world.put(x, [1, 2, 3], 0), lambda: world.barrier_all(), lambda: world.zeros(3), context.quiet, team.sync, x.free,
                     world.finalize, lambda: world.atomic_fetch(x[:1], 0)):
            try:
                call()
            except errors.WorldEnded as error:
                assert "finalize()" in str(error)
            else:
                raise SystemExit("no error")
        # Ends within ends are no errors.
        with context, team, world:
            pass
        try:
            oxshmem.init()
        except errors.AlreadyJoined:
            print("once")
    """)
    assert status == 0, errors
    assert out == "once\n" * 2


def test_a_program_that_does_not_finalize_is_finalized():
    status, out, errors = run(3, """
        import oxshmem
        world = oxshmem.init()
        x = world.zeros(3)
        world.put_nbi(x, [1, 2, 3], (world.my_pe + 1) % 3)
    """)
    assert (status, errors) == (0, ""), errors


def test_a_forgotten_world_is_not_lost():
    status, out, errors = run(2, """
        import gc, oxshmem
        oxshmem.init()
        gc.collect()
    """)
    assert (status, errors) == (0, ""), errors


def test_an_exception_ends_the_job():
    begin = time.monotonic()
    status, out, errors = run(2, """
        import oxshmem
        with oxshmem.init() as world:
            if world.my_pe == 1:
                raise ValueError("on purpose")
            world.barrier_all()
    """)
    assert status != 0 and "ValueError: on purpose" in errors
    assert time.monotonic() - begin < 30


def test_a_status_ends_the_job():
    status, out, errors = run(2, """
        import sys, oxshmem
        world = oxshmem.init()
        if world.my_pe == 1:
            sys.exit(7)
        world.barrier_all()
    """)
    assert status == 7, errors


def test_an_exit_with_status_0_is_an_end():
    status, out, errors = run(2, """
        import sys, oxshmem
        with oxshmem.init() as world:
            x = world.zeros(1, "int64")
            world.atomic_inc(x, 0)
            sys.exit()
    """)
    assert (status, errors) == (0, ""), errors


def test_global_exit():
    status, out, errors = run(2, """
        import time, oxshmem
        world = oxshmem.init()
        if world.my_pe == 1:
            world.global_exit(9)
        time.sleep(50)
    """)
    assert status == 9, errors


def test_a_lost_pe_is_an_exception():
    status, out, errors = run(2, """
        import os, oxshmem
        from oxshmem import errors
        world = oxshmem.init()
        flag = world.zeros(1, "int64")
        if world.my_pe == 1:
            world.abandon()
            world.is_live or print("left")
            os._exit(0)
        try:
            world.wait_until(flag, "==", 1)
        except errors.PeerLost as error:
            assert error.pe == 1 and error.call == "wait_until" and isinstance(error, ConnectionError)
            print("lost")
        assert world.acknowledge_lost() == [1]
        os._exit(0)
    """)
    assert "lost\n" in out, (status, out, errors)


def test_a_deadline_is_an_exception():
    status, out, errors = alone("""
        import oxshmem
        world = oxshmem.init(timeout=0.3)
        flag = world.zeros(1, "int64")
        try:
            world.wait_until(flag, "==", 1)
        except TimeoutError as error:
            assert isinstance(error, oxshmem.Error) and error.me == 0 and error.waited >= 0.3 and error.limit == 0.3
            print("late")
    """)
    assert (status, out) == (0, "late\n"), errors


def test_a_wait_is_interrupted():
    program = """
        import oxshmem
        world = oxshmem.init()
        flag = world.zeros(1, "int64")
        try:
            print("waits", flush=True)
            world.wait_until(flag, "==", 1)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    """
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)], text=True, stdout=subprocess.PIPE)
    assert process.stdout.readline() == "waits\n"
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=30)[0] == "interrupted\n" and process.returncode == 0


def test_a_forked_process_is_no_pe():
    status, out, errors = run(2, """
        import os, oxshmem
        from oxshmem import errors
        world = oxshmem.init()
        x = world.zeros(1)
        child = os.fork()
        if child == 0:
            for call in (world.barrier_all, lambda: world.put(x, [1], 0), world.finalize, oxshmem.init):
                try:
                    call()
                except errors.ForkedProcess as error:
                    assert "spawn" in str(error)
                else:
                    os._exit(1)
            raise SystemExit(0)
        assert os.waitpid(child, 0)[1] == 0
        world.finalize()
    """)
    assert (status, errors) == (0, ""), errors


def test_checked_mode_finds_a_race():
    status, out, errors = run(2, """
        import oxshmem
        from oxshmem import errors
        with oxshmem.init(check=True, heap_size=1 << 20) as world:
            assert world.heap_limit == 1 << 20
            x = world.zeros(1, "int64")
            if world.my_pe == 0:
                world.atomic_add(x, 1, 1)
            world.sync_all()
            if world.my_pe == 1:
                try:
                    world.p(x, 1, 1)
                except errors.Conflict as error:
                    assert error.what and "OXSHMEM_CHECK" in str(error)
                    print("found")
            world.sync_all()
    """)
    assert "found" in out, (status, out, errors)


def test_hosts_and_settings():
    status, out, errors = run(2, """
        import oxshmem
        with oxshmem.init(heap_size=1 << 22, atomics="cpu", model="relaxed", timeout=30) as world:
            assert len(world.hosts) == 2 and world.heap_limit == 1 << 22 and world.is_accessible(1)
            assert world.gpu is None
    """)
    assert (status, errors) == (0, ""), errors


def test_the_command_is_carried():
    shown = subprocess.run([sys.executable, "-m", "oxshmem", "--version"], text=True, capture_output=True, check=False)
    assert shown.returncode == 0 and shown.stdout.startswith("oxshmem "), shown


@pytest.mark.parametrize("page, count", [("python.md", 2), ("first-steps-python.md", 1)])
def test_the_programs_of_the_pages(page, count):
    # ci/test-python puts the pages beside this file.
    file = os.path.join(os.path.dirname(__file__), page)
    if not os.path.exists(file):
        pytest.skip("the page is not here")
    with open(file, encoding="utf-8") as text:
        blocks = [block.split("```")[0] for block in text.read().split("```python\n")[1:]]
    programs = [block for block in blocks if block.startswith("import") and "import oxshmem\n" in block]
    assert len(programs) == count
    for program in programs:
        for pes in (1, 4):
            status, _, errors = run(pes, program)
            assert (status, errors) == (0, ""), (pes, errors)
