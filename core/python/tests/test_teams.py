"""Teams and contexts."""

import numpy as np
import pytest

from oxshmem import errors


def test_the_teams_that_are_always_there(world):
    team = world.team
    assert team.n_pes == world.n_pes and team.my_pe == world.my_pe
    assert team.world_pes == tuple(range(world.n_pes))
    assert world.my_pe in world.shared_team.world_pes
    with pytest.raises(errors.ArgumentError, match="always there"):
        team.destroy()
    with world.team as team:
        team.sync()
    world.team.barrier()


def test_a_strided_team(world):
    me, n = world.my_pe, world.n_pes
    half = (n + 1) // 2
    team = world.team.split_strided(0, 2, half)
    assert (team is not None) == (me % 2 == 0)
    x = world.zeros(3, "int64")
    x[:] = me
    world.barrier_all()
    if team is not None:
        with team:
            assert team.my_pe == me // 2 and team.n_pes == half
            assert team.translate(team.n_pes - 1, world.team) == 2 * (half - 1)
            assert world.team.translate(1, team) is None
            team.reduce(x, x)
            assert (x == sum(range(0, n, 2))).all()
            team.barrier()
        with pytest.raises(errors.ArgumentError, match="destroyed"):
            team.sync()
    world.barrier_all()
    x.free()


def test_lists_colours_and_rows(world):
    me, n = world.my_pe, world.n_pes
    with world.team.split_list(range(n - 1, -1, -1)) as backwards:
        assert backwards.my_pe == n - 1 - me
    with world.team.split_colors([pe % 2 for pe in range(n)]) as same:
        assert same.world_pes == tuple(range(me % 2, n, 2))
    row, column = world.team.split_2d(2)
    with row, column:
        assert row.world_pes == tuple(pe for pe in range(n) if pe // 2 == me // 2)
        assert column.world_pes == tuple(range(me % 2, n, 2))


def test_a_context_completes_its_own_operations(world, right, left):
    x = world.zeros(4, "int64")
    with world.create_context() as context:
        assert (context.my_pe, context.n_pes) == (world.my_pe, world.n_pes)
        context.put_nbi(x, np.full(4, world.my_pe + 1), right)
        context.fence()
        context.quiet()
        context.atomic_inc(x[:1], right)
    world.sync_all()
    assert list(x) == [left + 2] + [left + 1] * 3
    with pytest.raises(errors.ArgumentError, match="destroyed"):
        context.quiet()
    with pytest.raises(errors.ArgumentError, match="destroyed"):
        context.destroy()
    world.barrier_all()
    x.free()


def test_a_teams_context_has_its_numbers(world):
    n = world.n_pes
    x = world.zeros(1, "int64")
    team = world.team.split_list(range(n - 1, -1, -1))
    with team, team.create_context(nostore=True) as context:
        assert context.my_pe == n - 1 - world.my_pe
        context.p(x, world.my_pe + 10, 0)
        context.quiet()
        team.barrier()
        if world.my_pe == n - 1:
            assert 10 <= x[0] < 10 + n
        with pytest.raises(errors.NoSuchPe):
            context.p(x, 1, n)
        team.sync()
    # The team's end ends contexts that are left.
    with world.team.split_list(range(n)) as team:
        left = team.create_context()
    with pytest.raises(errors.ArgumentError):
        left.quiet()
    x.free()


def test_wrong_teams(world):
    with pytest.raises(errors.ArgumentError):
        world.team.split_strided(0, 1, world.n_pes + 1)
    with pytest.raises((errors.ArgumentError, OverflowError)):
        world.team.split_strided(-1, 1, 1)
    world.barrier_all()


def test_a_member_that_fails_does_not_hang_the_others(world):
    if world.n_pes == 1:
        pytest.skip("there is no other")
    team = world.team.split_list(range(world.n_pes))
    if world.my_pe == 0:
        with pytest.raises(ZeroDivisionError), team:
            1 / 0
    else:
        with pytest.raises(errors.CollectivesEnded) as raised, team:
            team.sync()
        assert raised.value.why
    world.barrier_all()
