/* What the library says of calls that make no sense: with a wrong argument, before it is initialized, and after it was
   finalized. Each is tried in a process of its own, which is a job of one PE: it ends with status 1 and a message that
   names the call and the argument, or the call returns; nothing crashes, and nothing hangs. */
#include <shmemx.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "wrong.h"

static void *room, *other, *word, *work;
/* Not symmetric: a variable of the program would be. */
static void *mine;
/* Destroyed, and others are in their place. */
static shmem_team_t ended_team;
static shmem_ctx_t ended_ctx;

static const struct {
    const char *call, *tells;
} wrong[] = {
#define ENTRY(number, call, tells, statement) {#call, tells},
    WRONG(ENTRY)};

static const struct {
    const char *call, *tells;
} nulls[] = {NULLS(ENTRY)};

static const char *const any[] = {
#define NAME(number, call, statement) #call,
    ANY(NAME)};

static void call_wrong(size_t number)
{
    switch (number) {
#define CASE(number, call, tells, statement) case number: statement; break;
        WRONG(CASE)
    }
}

static void call_null(size_t number)
{
    switch (number) {
        NULLS(CASE)
    }
}

static void call_any(size_t number)
{
    switch (number) {
#define PLAIN(number, call, statement) case number: statement; break;
        ANY(PLAIN)
    }
}

static void end_some(void)
{
    shmem_team_t next_team;
    shmem_ctx_t next_ctx;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 1, NULL, 0, &ended_team);
    shmem_team_destroy(ended_team);
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 1, NULL, 0, &next_team);
    shmem_ctx_create(0, &ended_ctx);
    shmem_ctx_destroy(ended_ctx);
    shmem_ctx_create(0, &next_ctx);
    if (next_team == ended_team || next_ctx == ended_ctx) _exit(2);
}

static void allocate(void)
{
    shmem_init();
    room = shmem_calloc(1, 4096);
    other = shmem_calloc(1, 4096);
    word = shmem_calloc(1, 64);
    work = shmem_calloc(1, 4096);
    end_some();
}

static void with_wrong(size_t number)
{
    allocate();
    call_wrong(number);
}

static void with_null(size_t number)
{
    setenv("OXSHMEM_CHECK", "1", 1);
    allocate();
    call_null(number);
}

static void before(size_t number)
{
    room = other = word = work = mine;
    call_any(number);
}

static void after(size_t number)
{
    shmem_init();
    room = other = word = work = mine;
    shmem_finalize();
    call_any(number);
}

/* Calls that tell nothing where there is no library, and what holds of them then. */
#define SAYS(X)                                                                                                       \
    X(shmem_query_initialized, (shmem_query_initialized(&number), number == 0))                                       \
    X(shmem_info_get_version, (shmem_info_get_version(&number, NULL), number == SHMEM_MAJOR_VERSION))                 \
    X(shmem_info_get_name, (shmem_info_get_name(name), strcmp(name, SHMEM_VENDOR_STRING) == 0))                       \
    X(shmem_pcontrol, (shmem_pcontrol(1), 1))                                                                         \
    X(shmemx_wtime, shmemx_wtime() > 0)                                                                               \
    X(shmemx_cuda_device, shmemx_cuda_device() == -1)                                                                 \
    X(shmemx_cuda_ptr, shmemx_cuda_ptr(room, 0) == NULL && shmemx_cuda_ptr(&room, 0) == NULL)                         \
    X(shmem_pe_accessible, shmem_pe_accessible(0) == 0)                                                               \
    X(shmem_addr_accessible, shmem_addr_accessible(room, 0) == 0 && shmem_addr_accessible(&room, 0) == 0)             \
    X(shmem_ptr, shmem_ptr(room, 0) == NULL && shmem_ptr(&room, 0) == NULL)                                           \
    X(shmem_team_ptr, shmem_team_ptr(SHMEM_TEAM_WORLD, room, 0) == NULL)                                              \
    X(shmem_team_my_pe, shmem_team_my_pe(SHMEM_TEAM_WORLD) == -1)                                                     \
    X(shmem_team_n_pes, shmem_team_n_pes(SHMEM_TEAM_WORLD) == -1)                                                     \
    X(shmem_team_translate_pe, shmem_team_translate_pe(SHMEM_TEAM_WORLD, 0, SHMEM_TEAM_WORLD) == -1)                  \
    X(shmem_team_get_config,                                                                                          \
      shmem_team_get_config(SHMEM_TEAM_WORLD, SHMEM_TEAM_NUM_CONTEXTS, &config) != 0 && config.num_contexts == 77)    \
    X(shmem_ctx_get_team, shmem_ctx_get_team(SHMEM_CTX_DEFAULT, &team) != 0 && team == SHMEM_TEAM_INVALID)

/* Calls for GPUs that give a status. A library without the feature says so of each. */
#ifdef NO_CUDA
#define CUDA_STATUSES(X)
#else
#define CUDA_STATUSES(X)                                                                                               \
    X(shmemx_cuda_init, shmemx_cuda_init() != 0)                                                                      \
    X(shmemx_cuda_check, shmemx_cuda_check() != 0)                                                                    \
    X(shmemx_cuda_team, shmemx_cuda_team(SHMEM_TEAM_WORLD) == -1)                                                     \
    X(shmemx_cuda_reserve_teams, shmemx_cuda_reserve_teams(1) != 0)                                                   \
    X(shmemx_cuda_resume, shmemx_cuda_resume() != 0)
#endif

/* Calls that give a status, give what is none, and tell why. */
#define GIVES(X)                                                                                                      \
    CUDA_STATUSES(X)                                                                                                   \
    X(shmem_ctx_create, shmem_ctx_create(0, &ctx) != 0 && ctx == SHMEM_CTX_INVALID)                                   \
    X(shmem_team_create_ctx, shmem_team_create_ctx(SHMEM_TEAM_WORLD, 0, &ctx) != 0 && ctx == SHMEM_CTX_INVALID)       \
    X(shmem_team_split_strided,                                                                                       \
      shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 1, NULL, 0, &team) != 0 && team == SHMEM_TEAM_INVALID)         \
    X(shmem_team_split_2d, shmem_team_split_2d(SHMEM_TEAM_WORLD, 1, NULL, 0, &team, NULL, 0, &other_team) != 0        \
                               && team == SHMEM_TEAM_INVALID && other_team == SHMEM_TEAM_INVALID)

#define CALL(call, holds) #call,
static const char *const may_return[] = {SAYS(CALL) GIVES(CALL)};
#define ONE(call, holds) +1
enum { MAY_RETURN = sizeof may_return / sizeof *may_return, TELL_NOTHING = 0 SAYS(ONE) };

static int returns(const char *call)
{
    size_t i;
    for (i = 0; i < MAY_RETURN; i++)
        if (strcmp(may_return[i], call) == 0) return 1;
    return 0;
}

/* Ends with 3 if what the call says or gives does not hold. */
static void ask(size_t which)
{
    char name[SHMEM_MAX_NAME_LEN] = "";
    int number = 77;
    shmem_team_t team = SHMEM_TEAM_WORLD, other_team = SHMEM_TEAM_WORLD;
    shmem_team_config_t config = {77};
    shmem_ctx_t ctx = SHMEM_CTX_DEFAULT;
    size_t at = 0;
#define HOLDS(call, holds) if (at++ == which && !(holds)) _exit(3);
    SAYS(HOLDS)
    GIVES(HOLDS)
}

static void ask_before(size_t which)
{
    room = mine;
    ask(which);
}

/* Of what was symmetric. */
static void ask_after(size_t which)
{
    shmem_init();
    room = shmem_malloc(64);
    shmem_finalize();
    ask(which);
}

/* Tries one in a process; gives whether that ended with the status, and told what it should, be it nothing. */
static int tried(void (*act)(size_t), size_t number, const char *call, const char *tells, int ends_with)
{
    char told[4000], begin[200];
    size_t len = 0;
    ssize_t got;
    int ends[2], status;
    pid_t child;
    if (pipe(ends) != 0) return 0;
    child = fork();
    if (child == 0) {
        dup2(ends[1], 2);
        close(ends[0]);
        close(ends[1]);
        alarm(100);
        act(number);
        _exit(0);
    }
    close(ends[1]);
    while (len < sizeof told - 1 && (got = read(ends[0], told + len, sizeof told - 1 - len)) > 0) len += (size_t)got;
    told[len] = 0;
    close(ends[0]);
    if (waitpid(child, &status, 0) != child) return 0;
    snprintf(begin, sizeof begin, "%s: %s", call, tells == NULL ? "" : tells);
    if (WIFEXITED(status) && WEXITSTATUS(status) == ends_with && (tells == NULL ? len == 0 : strstr(told, begin) != NULL)) return 1;
    fprintf(stderr, "%s, where status %d and \"%s\" were to be: wait status %#x, and it said: %s\n", call, ends_with, begin, status, told);
    return 0;
}

int main(void)
{
    static const char none[] = "oxshmem is not initialized";
    size_t i, failed = 0;
    mine = malloc(4096);
    memset(mine, 0, 4096);
    for (i = 0; i < sizeof wrong / sizeof *wrong; i++) failed += !tried(with_wrong, i, wrong[i].call, wrong[i].tells, 1);
    for (i = 0; i < sizeof nulls / sizeof *nulls; i++) failed += !tried(with_null, i, nulls[i].call, nulls[i].tells, 1);
    for (i = 0; i < sizeof any / sizeof *any; i++) {
        /* One finalize more than there were initializations is nothing. */
        int is_nothing = strcmp(any[i], "shmem_finalize") == 0;
        if (returns(any[i])) continue;
        failed += !tried(before, i, any[i], none, 1) + !tried(after, i, any[i], is_nothing ? NULL : none, !is_nothing);
    }
    for (i = 0; i < MAY_RETURN; i++) {
        const char *tells = i < TELL_NOTHING ? NULL : none;
        failed += !tried(ask_before, i, may_return[i], tells, 0) + !tried(ask_after, i, may_return[i], tells, 0);
    }
    printf("%zu wrong arguments, %zu calls: %zu not as they should\n", sizeof wrong / sizeof *wrong + sizeof nulls / sizeof *nulls, sizeof any / sizeof *any, failed);
    return failed != 0;
}
