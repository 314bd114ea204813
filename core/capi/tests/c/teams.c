/* Teams, contexts and sessions. */
#include "check.h"

static void predefined(void)
{
    shmem_team_config_t config = {77};
    CHECK(shmem_team_my_pe(SHMEM_TEAM_WORLD) == me && shmem_team_n_pes(SHMEM_TEAM_WORLD) == n);
    CHECK(shmem_team_my_pe(SHMEM_TEAM_SHARED) >= 0 && shmem_team_n_pes(SHMEM_TEAM_SHARED) >= 1);
    CHECK(shmem_team_get_config(SHMEM_TEAM_WORLD, SHMEM_TEAM_NUM_CONTEXTS, &config) == 0);
    CHECK(config.num_contexts == 0);
    CHECK(shmem_team_get_config(SHMEM_TEAM_WORLD, 0, NULL) == 0);
    CHECK(shmem_team_get_config(SHMEM_TEAM_WORLD, SHMEM_TEAM_NUM_CONTEXTS, NULL) != 0);
}

static void invalid(void)
{
    shmem_team_config_t config = {77};
    shmem_team_t team = SHMEM_TEAM_WORLD, other = SHMEM_TEAM_WORLD;
    shmem_ctx_t ctx = SHMEM_CTX_DEFAULT;
    CHECK(shmem_team_my_pe(SHMEM_TEAM_INVALID) == -1 && shmem_team_n_pes(SHMEM_TEAM_INVALID) == -1);
    CHECK(shmem_team_translate_pe(SHMEM_TEAM_INVALID, 0, SHMEM_TEAM_WORLD) == -1);
    CHECK(shmem_team_translate_pe(SHMEM_TEAM_WORLD, 0, SHMEM_TEAM_INVALID) == -1);
    CHECK(shmem_team_translate_pe(SHMEM_TEAM_WORLD, n, SHMEM_TEAM_WORLD) == -1);
    CHECK(shmem_team_translate_pe(SHMEM_TEAM_WORLD, -1, SHMEM_TEAM_WORLD) == -1);
    CHECK(shmem_team_get_config(SHMEM_TEAM_INVALID, SHMEM_TEAM_NUM_CONTEXTS, &config) != 0);
    CHECK(config.num_contexts == 77);
    shmem_team_destroy(SHMEM_TEAM_INVALID);
    CHECK(shmem_team_create_ctx(SHMEM_TEAM_INVALID, 0, &ctx) != 0 && ctx == SHMEM_CTX_INVALID);
    CHECK(shmem_team_split_strided(SHMEM_TEAM_INVALID, 0, 1, 1, NULL, 0, &team) != 0);
    CHECK(team == SHMEM_TEAM_INVALID);
    team = SHMEM_TEAM_WORLD;
    CHECK(shmem_team_split_2d(SHMEM_TEAM_INVALID, 1, NULL, 0, &team, NULL, 0, &other) != 0);
    CHECK(team == SHMEM_TEAM_INVALID && other == SHMEM_TEAM_INVALID);
    team = SHMEM_TEAM_WORLD;
    CHECK(shmem_ctx_get_team(SHMEM_CTX_INVALID, &team) != 0 && team == SHMEM_TEAM_INVALID);
    CHECK(shmem_ctx_get_team(SHMEM_CTX_DEFAULT, &team) == 0 && team == SHMEM_TEAM_WORLD);
    shmem_ctx_destroy(SHMEM_CTX_INVALID);
    shmem_ctx_fence(SHMEM_CTX_INVALID);
    shmem_ctx_quiet(SHMEM_CTX_INVALID);
    shmem_ctx_pe_quiet(SHMEM_CTX_INVALID, NULL, 0);
    shmem_ctx_session_start(SHMEM_CTX_INVALID, 0, NULL, 0);
    shmem_ctx_session_stop(SHMEM_CTX_INVALID);
}

/* Triplets that leave the parent: an error on all, and no team. */
static void wrong_splits(void)
{
    const int wrong[][3] = {{0, 1, 0}, {0, 1, -1}, {-1, 1, 1}, {0, 0, 2}, {0, -1, 2}, {1 << 30, 1 << 30, 8}, {0, 1 << 30, 3}};
    size_t i;
    shmem_team_t team, other;
    for (i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        team = SHMEM_TEAM_WORLD;
        CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, wrong[i][0], wrong[i][1], wrong[i][2], NULL, 0, &team) != 0);
        CHECK(team == SHMEM_TEAM_INVALID);
    }
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, n + 1, NULL, 0, &team) != 0);
    CHECK(shmem_team_split_2d(SHMEM_TEAM_WORLD, 0, NULL, 0, &team, NULL, 0, &other) != 0);
    CHECK(team == SHMEM_TEAM_INVALID && other == SHMEM_TEAM_INVALID);
}

static void strided(void)
{
    shmem_team_config_t config = {3}, got;
    shmem_team_t even, back, alone;
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 2, (n + 1) / 2, &config, SHMEM_TEAM_NUM_CONTEXTS, &even) == 0);
    if (me % 2 == 0) {
        CHECK(shmem_team_my_pe(even) == me / 2 && shmem_team_n_pes(even) == (n + 1) / 2);
        CHECK(shmem_team_translate_pe(even, me / 2, SHMEM_TEAM_WORLD) == me);
        CHECK(shmem_team_get_config(even, SHMEM_TEAM_NUM_CONTEXTS, &got) == 0 && got.num_contexts == 3);
        /* A team of a team, in reverse. */
        CHECK(shmem_team_split_strided(even, shmem_team_n_pes(even) - 1, -1, shmem_team_n_pes(even), NULL, 0, &back) == 0);
        CHECK(shmem_team_my_pe(back) == shmem_team_n_pes(even) - 1 - me / 2);
        CHECK(shmem_team_sync(back) == 0 && shmem_team_sync(even) == 0);
        shmem_team_destroy(back);
    } else {
        CHECK(even == SHMEM_TEAM_INVALID);
        CHECK(shmem_team_translate_pe(SHMEM_TEAM_WORLD, 0, even) == -1);
    }
    shmem_team_destroy(even);
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, n - 1, 0, 1, NULL, 0, &alone) == 0);
    CHECK((alone != SHMEM_TEAM_INVALID) == (me == n - 1));
    shmem_team_destroy(alone);
}

static void in_two_dimensions(void)
{
    int xrange;
    for (xrange = 1; xrange <= n + 1; xrange++) {
        shmem_team_t x, y;
        int wide = xrange < n ? xrange : n;
        int row = me / wide, column = me % wide, rows = (n + wide - 1) / wide;
        CHECK(shmem_team_split_2d(SHMEM_TEAM_WORLD, xrange, NULL, 0, &x, NULL, 0, &y) == 0);
        CHECK(shmem_team_my_pe(x) == column && shmem_team_my_pe(y) == row);
        CHECK(shmem_team_n_pes(x) == (row == rows - 1 ? n - row * wide : wide));
        CHECK(shmem_team_n_pes(y) == (n - column + wide - 1) / wide);
        shmem_team_destroy(x);
        shmem_team_destroy(y);
    }
}

/* A context of a team numbers PEs as the team does, and ends with it. */
static void contexts_of_teams(void)
{
    shmem_team_t down, of;
    shmem_ctx_t ctx, left_over;
    long *x = shmem_calloc(1, sizeof(long));
    uint64_t *signal = shmem_calloc(1, sizeof(uint64_t));
    const int target = 0;
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, n - 1, -1, n, NULL, 0, &down) == 0);
    CHECK(shmem_team_create_ctx(down, SHMEM_CTX_SERIALIZED, &ctx) == 0);
    CHECK(shmem_team_create_ctx(down, SHMEM_CTX_NOSTORE, &left_over) == 0 && left_over != ctx);
    CHECK(shmem_ctx_get_team(ctx, &of) == 0 && of == down);
    shmem_ctx_long_atomic_add(ctx, x, me + 1, 0);
    shmem_ctx_long_put_signal(ctx, NULL, NULL, 0, signal, 1, SHMEM_SIGNAL_ADD, 0);
    shmem_ctx_pe_quiet(ctx, &target, 1);
    shmem_ctx_long_atomic_add(left_over, x, 1000, 0);
    shmem_ctx_fence(left_over);
    /* Ends `left_over` too, which completes it. */
    shmem_ctx_destroy(ctx);
    shmem_team_destroy(down);
    shmem_barrier_all();
    CHECK(*x == (me == n - 1 ? n * (n + 1) / 2 + 1000 * n : 0));
    CHECK(shmem_signal_fetch(signal) == (uint64_t)(me == n - 1 ? n : 0));
    CHECK(shmem_ctx_get_team(left_over, &of) != 0);
    shmem_free(signal);
    shmem_free(x);
}

/* Handles of a team and of a context that were destroyed: none, also when others are in their place. */
static void ended(int another)
{
    shmem_team_config_t config = {77};
    shmem_team_t team, next = SHMEM_TEAM_INVALID, made = SHMEM_TEAM_WORLD, other = SHMEM_TEAM_WORLD;
    shmem_ctx_t ctx, next_ctx = SHMEM_CTX_INVALID, of_team, made_ctx = SHMEM_CTX_DEFAULT;
    long *x = shmem_malloc(sizeof *x);
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, n, NULL, 0, &team) == 0);
    CHECK(shmem_ctx_create(0, &ctx) == 0 && shmem_team_create_ctx(team, 0, &of_team) == 0);
    shmem_ctx_destroy(ctx);
    shmem_team_destroy(team);
    if (another) {
        CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, n - 1, -1, n, NULL, 0, &next) == 0 && next != team);
        CHECK(shmem_ctx_create(0, &next_ctx) == 0 && next_ctx != ctx && next_ctx != of_team);
    }
    CHECK(shmem_team_my_pe(team) == -1 && shmem_team_n_pes(team) == -1);
    CHECK(shmem_team_translate_pe(team, 0, SHMEM_TEAM_WORLD) == -1);
    CHECK(shmem_team_translate_pe(SHMEM_TEAM_WORLD, 0, team) == -1);
    CHECK(shmem_team_get_config(team, SHMEM_TEAM_NUM_CONTEXTS, &config) != 0 && config.num_contexts == 77);
    CHECK(shmem_team_get_config(team, 0, NULL) != 0);
    CHECK(shmem_team_ptr(team, x, 0) == NULL);
    CHECK(shmem_team_create_ctx(team, 0, &made_ctx) != 0 && made_ctx == SHMEM_CTX_INVALID);
    CHECK(shmem_team_split_strided(team, 0, 1, 1, NULL, 0, &made) != 0 && made == SHMEM_TEAM_INVALID);
    made = SHMEM_TEAM_WORLD;
    CHECK(shmem_team_split_2d(team, 1, NULL, 0, &made, NULL, 0, &other) != 0);
    CHECK(made == SHMEM_TEAM_INVALID && other == SHMEM_TEAM_INVALID);
    CHECK(shmem_team_sync(team) != 0 && shmem_long_sum_reduce(team, x, x, 1) != 0);
    made = SHMEM_TEAM_WORLD;
    CHECK(shmem_ctx_get_team(ctx, &made) != 0 && made == SHMEM_TEAM_INVALID);
    made = SHMEM_TEAM_WORLD;
    CHECK(shmem_ctx_get_team(of_team, &made) != 0 && made == SHMEM_TEAM_INVALID);
    if (another) {
        CHECK(shmem_team_my_pe(next) == n - 1 - me && shmem_team_sync(next) == 0);
        shmem_ctx_destroy(next_ctx);
        shmem_team_destroy(next);
    }
    shmem_free(x);
}

static void many_contexts(void)
{
    enum { COUNT = 20 };
    shmem_ctx_t ctxs[COUNT];
    long *x = shmem_calloc(COUNT, sizeof(long));
    int i, round;
    for (round = 0; round < 3; round++) {
        for (i = 0; i < COUNT; i++)
            CHECK(shmem_ctx_create(i % 2 ? SHMEM_CTX_PRIVATE : 0, &ctxs[i]) == 0);
        for (i = 0; i < COUNT; i++)
            shmem_ctx_long_atomic_inc(ctxs[i], x + i, right);
        for (i = 0; i < COUNT; i++)
            shmem_ctx_destroy(ctxs[(i * 7) % COUNT]);
    }
    CHECK(shmem_ctx_create(1L << 40, &ctxs[0]) != 0 && ctxs[0] == SHMEM_CTX_INVALID);
    shmem_barrier_all();
    for (i = 0; i < COUNT; i++)
        CHECK(x[i] == 3);
    shmem_free(x);
}

/* As many as there is room for, on one PE alone: the others, and it, can still make one together. */
static void many_teams(int count)
{
    shmem_team_t *many = malloc(count * sizeof *many), alone, x, y;
    int i;
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 1, NULL, 0, &alone) == 0);
    for (i = 0; me == 0 && i < count; i++)
        CHECK(shmem_team_split_strided(alone, 0, 1, 1, NULL, 0, &many[i]) == 0);
    CHECK(shmem_team_split_2d(SHMEM_TEAM_WORLD, n, NULL, 0, &x, NULL, 0, &y) == 0);
    CHECK(shmem_team_sync(x) == 0 && shmem_team_n_pes(y) == 1);
    for (i = 0; me == 0 && i < count; i++) {
        CHECK(shmem_team_my_pe(many[i]) == 0);
        shmem_team_destroy(many[i]);
    }
    shmem_team_destroy(alone);
    shmem_team_destroy(x);
    shmem_team_destroy(y);
    free(many);
}

static void sessions(void)
{
    shmem_ctx_session_config_t config = {1000};
    long *x = shmem_calloc(1, sizeof(long));
    int i;
    shmem_ctx_session_stop(SHMEM_CTX_DEFAULT);
    shmem_ctx_session_start(SHMEM_CTX_DEFAULT, SHMEM_CTX_SESSION_BATCH, &config, SHMEM_CTX_SESSION_TOTAL_OPS);
    /* Once more, without a word of what is to come. */
    shmem_ctx_session_start(SHMEM_CTX_DEFAULT, 0, NULL, 0);
    for (i = 0; i < 100; i++)
        shmem_long_atomic_inc(x, right);
    shmem_ctx_session_stop(SHMEM_CTX_DEFAULT);
    shmem_barrier_all();
    CHECK(*x == 100);
    shmem_free(x);
}

int main(int argc, char **argv)
{
    begin();
    if (argc > 1)
        many_teams(atoi(argv[1]));
    predefined();
    invalid();
    wrong_splits();
    strided();
    in_two_dimensions();
    contexts_of_teams();
    ended(0);
    ended(1);
    many_contexts();
    sessions();
    shmem_finalize();
    return 0;
}
