/* Programs on grids in C11's way, by the macros: a stencil with put_signal, Cannon's product of matrices with the teams of
   a split, a pipeline, work that is drawn by a counter, and all-to-all by contexts. */
#include <shmem.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"

static int me, n;

/* Rows of a ring of PEs, each with a row of its neighbours' above and below; what is summed stays the same. */
static void stencil(void)
{
    enum { ROWS = 4, WIDTH = 17, STEPS = 12 };
    static double grid[2][ROWS + 2][WIDTH];
    static uint64_t from_above, from_below;
    static double sum, sum_all;
    const int above = (me + n - 1) % n, below = (me + 1) % n;
    memset(grid, 0, sizeof grid);
    for (int r = 1; r <= ROWS; r++)
        for (int c = 0; c < WIDTH; c++) grid[0][r][c] = (me * ROWS + r) * 31 % 7 + c;
    for (int r = 1; r <= ROWS; r++)
        for (int c = 0; c < WIDTH; c++) sum += grid[0][r][c];
    shmem_sum_reduce(SHMEM_TEAM_WORLD, &sum_all, &sum, 1);
    const double before = sum_all;
    shmem_sync(SHMEM_TEAM_WORLD);
    for (int step = 0; step < STEPS; step++) {
        double(*now)[WIDTH] = grid[step % 2], (*then)[WIDTH] = grid[1 - step % 2];
        shmem_put_signal(now[ROWS + 1], now[1], WIDTH, &from_below, 1, SHMEM_SIGNAL_ADD, above);
        shmem_put_signal_nbi(now[0], now[ROWS], WIDTH, &from_above, 1, SHMEM_SIGNAL_ADD, below);
        shmem_signal_wait_until(&from_above, SHMEM_CMP_GE, (uint64_t)step + 1);
        shmem_signal_wait_until(&from_below, SHMEM_CMP_GE, (uint64_t)step + 1);
        for (int r = 1; r <= ROWS; r++)
            for (int c = 0; c < WIDTH; c++)
                then[r][c] = 0.5 * now[r][c] + 0.25 * (now[r - 1][c] + now[r + 1][c]);
        /* Nobody puts into a grid that its neighbour still reads. */
        shmem_barrier_all();
    }
    sum = 0;
    for (int r = 1; r <= ROWS; r++)
        for (int c = 0; c < WIDTH; c++) sum += grid[STEPS % 2][r][c];
    shmem_sum_reduce(SHMEM_TEAM_WORLD, &sum_all, &sum, 1);
    CHECK(sum_all - before < 1e-6 * before && before - sum_all < 1e-6 * before);
    shmem_barrier_all();
}

/* On the largest square of PEs; those left over are in no team, and wait. */
static void cannon(void)
{
    enum { B = 3 };
    int side = 1;
    while ((side + 1) * (side + 1) <= n) side++;
    shmem_team_t square, row, column;
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, side * side, NULL, 0, &square) == 0);
    long *a = shmem_calloc(2 * B * B, sizeof(long)), *b = shmem_calloc(2 * B * B, sizeof(long)), c[B][B] = {{0}};
    if (square != SHMEM_TEAM_INVALID) {
        CHECK(shmem_team_split_2d(square, side, NULL, 0, &row, NULL, 0, &column) == 0);
        const int x = shmem_team_my_pe(row), y = shmem_team_my_pe(column), shift = (x + y) % side;
        shmem_team_config_t config = {.num_contexts = 1};
        CHECK(shmem_team_get_config(row, SHMEM_TEAM_NUM_CONTEXTS, &config) == 0);
        shmem_ctx_t to_left, to_above;
        CHECK(shmem_team_create_ctx(row, 0, &to_left) == 0 && shmem_team_create_ctx(column, SHMEM_CTX_SERIALIZED, &to_above) == 0);
        /* Element (r, c) of the first matrix is r + 2c, of the second r * c + 1. */
        for (int i = 0; i < B; i++)
            for (int k = 0; k < B; k++) {
                a[i * B + k] = (y * B + i) + 2 * (shift * B + k);
                b[i * B + k] = (shift * B + i) * (x * B + k) + 1;
            }
        shmem_sync(square);
        for (int step = 0; step < side; step++) {
            long *a_now = a + step % 2 * B * B, *b_now = b + step % 2 * B * B;
            shmem_put_nbi(to_left, a + (step + 1) % 2 * B * B, a_now, B * B, (x + side - 1) % side);
            shmem_put(to_above, b + (step + 1) % 2 * B * B, b_now, B * B, (y + side - 1) % side);
            for (int i = 0; i < B; i++)
                for (int j = 0; j < B; j++)
                    for (int k = 0; k < B; k++) c[i][j] += a_now[i * B + k] * b_now[k * B + j];
            shmem_ctx_quiet(to_left);
            shmem_ctx_quiet(to_above);
            shmem_sync(square);
        }
        for (int i = 0; i < B; i++)
            for (int j = 0; j < B; j++) {
                long right = 0;
                for (int k = 0; k < side * B; k++) right += (y * B + i + 2 * k) * ((long)k * (x * B + j) + 1);
                CHECK(c[i][j] == right);
            }
        shmem_ctx_destroy(to_above);
        shmem_ctx_destroy(to_left);
        shmem_team_destroy(column);
        shmem_team_destroy(row);
    }
    shmem_team_destroy(square);
    shmem_free(b);
    shmem_free(a);
}

/* Pieces go from PE to PE, each of which adds its number; the last one hands back what room there is. */
static void pipeline(void)
{
    enum { PIECES = 10, DEEP = 3, LEN = 50 };
    int *slots = shmem_malloc(sizeof(int[DEEP][LEN]));
    uint64_t *arrived = shmem_calloc(DEEP, sizeof *arrived), *room = shmem_calloc(1, sizeof *room);
    int piece[LEN];
    for (uint64_t i = 0; i < PIECES; i++) {
        if (me == 0)
            for (int k = 0; k < LEN; k++) piece[k] = (int)i * 100 + k;
        else {
            shmem_signal_wait_until(arrived + i % DEEP, SHMEM_CMP_EQ, i + 1);
            memcpy(piece, slots + i % DEEP * LEN, sizeof piece);
            shmem_atomic_inc(room, me - 1);
        }
        for (int k = 0; k < LEN; k++) piece[k] += me;
        if (me < n - 1) {
            if (i >= DEEP) shmem_wait_until(room, SHMEM_CMP_GE, i - DEEP + 1);
            shmem_put_signal(slots + i % DEEP * LEN, piece, LEN, arrived + i % DEEP, i + 1, SHMEM_SIGNAL_SET, me + 1);
        } else
            for (int k = 0; k < LEN; k++) CHECK(piece[k] == (int)i * 100 + k + n * (n - 1) / 2);
    }
    shmem_barrier_all();
    shmem_free(room);
    shmem_free(arrived);
    shmem_free(slots);
}

/* Rows of the Mandelbrot set, drawn by a counter; each is put where PE 0 has the picture. */
static void mandelbrot(void)
{
    enum { SIZE = 24, DEPTH = 50 };
    static unsigned next;
    static unsigned short picture[SIZE][SIZE];
    static int done[64];
    for (unsigned r; (r = shmem_atomic_fetch_inc(&next, 0)) < SIZE;) {
        unsigned short line[SIZE];
        for (int c = 0; c < SIZE; c++) {
            double x = 0, y = 0, cx = -2 + 3.0 * c / SIZE, cy = -1.5 + 3.0 * r / SIZE;
            int i = 0;
            while (i < DEPTH && x * x + y * y < 4) {
                const double t = x * x - y * y + cx;
                y = 2 * x * y + cy;
                x = t;
                i++;
            }
            line[c] = (unsigned short)(i + 1);
        }
        shmem_put(picture[r], line, SIZE, 0);
    }
    shmem_fence();
    shmem_atomic_set(&done[me], 1, 0);
    if (me == 0) {
        int left_out[64] = {0};
        for (int seen = 0; seen < n;) {
            size_t which[64], count = shmem_wait_until_some(done, (size_t)n, which, left_out, SHMEM_CMP_EQ, 1);
            for (size_t i = 0; i < count; i++, seen++) left_out[which[i]] = 1;
        }
        CHECK(shmem_wait_until_any(done, (size_t)n, left_out, SHMEM_CMP_EQ, 1) == SIZE_MAX);
        for (int r = 1; r < SIZE; r++)
            for (int c = 0; c < SIZE; c++)
                CHECK(picture[r][c] > 0 && picture[r][c] <= DEPTH + 1 && picture[r][c] == picture[SIZE - r][c]);
    }
    shmem_barrier_all();
}

/* Each to each, by a context of its own, a flag after the value; and what C11 has several meanings of. */
static void exchange(void)
{
    long long *from = shmem_calloc((size_t)n, sizeof *from);
    int *flags = shmem_calloc((size_t)n, sizeof *flags), one = 1;
    shmem_ctx_t ctx;
    CHECK(shmem_ctx_create(SHMEM_CTX_PRIVATE, &ctx) == 0);
    for (int pe = 0; pe < n; pe++) {
        shmem_p(ctx, from + me, 1000LL * me + pe, pe);
        shmem_ctx_fence(ctx);
        shmem_atomic_add(ctx, flags + me, one, pe);
    }
    shmem_wait_until_all(flags, (size_t)n, NULL, SHMEM_CMP_NE, 0);
    for (int pe = 0; pe < n; pe++) {
        CHECK(from[pe] == 1000LL * pe + me);
        CHECK(shmem_g(ctx, from + me, pe) == shmem_g(from + me, pe));
    }
    shmem_ctx_destroy(ctx);
    shmem_barrier_all();
    shmem_free(flags);
    shmem_free(from);
}

int main(void)
{
    int provided;
    if (shmem_init_thread(SHMEM_THREAD_FUNNELED, &provided) != 0) return 1;
    me = shmem_my_pe();
    n = shmem_n_pes();
    stencil();
    cannon();
    pipeline();
    mandelbrot();
    exchange();
    if (me == 0) puts("right");
    shmem_finalize();
    return 0;
}
