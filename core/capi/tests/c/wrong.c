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

static void with_wrong(size_t number)
{
    shmem_init();
    room = shmem_calloc(1, 4096);
    other = shmem_calloc(1, 4096);
    word = shmem_calloc(1, 64);
    work = shmem_calloc(1, 4096);
    end_some();
    call_wrong(number);
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

/* Those that may be called at any time, or say by what they return that there is nothing. */
static int may_return(const char *call)
{
    static const char *const calls[] = {
        "shmem_query_initialized", "shmem_pe_accessible", "shmem_addr_accessible", "shmem_ptr", "shmem_team_ptr",
        "shmem_info_get_version", "shmem_info_get_name", "shmem_pcontrol", "shmemx_wtime", "shmem_team_my_pe", "shmem_team_n_pes",
        "shmem_team_get_config", "shmem_team_translate_pe", "shmem_ctx_get_team", "shmem_ctx_create", "shmem_team_create_ctx",
        "shmem_team_split_strided", "shmem_team_split_2d"};
    size_t i;
    for (i = 0; i < sizeof calls / sizeof *calls; i++)
        if (strcmp(calls[i], call) == 0) return 1;
    return 0;
}

/* What those that say by a value that there is nothing say where there is no library: of the same calls. */
static void ask(size_t number)
{
    char name[SHMEM_MAX_NAME_LEN] = "";
    int major = 0, initialized = 77;
    shmem_team_t team = SHMEM_TEAM_WORLD, other = SHMEM_TEAM_WORLD;
    shmem_team_config_t config = {0};
    shmem_ctx_t ctx = SHMEM_CTX_DEFAULT;
    int said;
    shmem_query_initialized(&initialized);
    shmem_info_get_version(&major, NULL);
    shmem_info_get_name(name);
    switch (number) {
    case 0: said = initialized == 0; break;
    case 1: said = shmem_pe_accessible(0) == 0; break;
    case 2: said = shmem_addr_accessible(mine, 0) == 0; break;
    case 3: said = shmem_ptr(mine, 0) == NULL && shmem_team_ptr(SHMEM_TEAM_WORLD, mine, 0) == NULL; break;
    case 4: said = major == SHMEM_MAJOR_VERSION && strcmp(name, SHMEM_VENDOR_STRING) == 0; break;
    case 5: said = shmem_team_my_pe(SHMEM_TEAM_WORLD) == -1 && shmem_team_n_pes(SHMEM_TEAM_WORLD) == -1; break;
    case 6: said = shmem_team_translate_pe(SHMEM_TEAM_WORLD, 0, SHMEM_TEAM_WORLD) == -1; break;
    case 7: said = shmem_team_get_config(SHMEM_TEAM_WORLD, 0, &config) != 0; break;
    case 8: said = shmem_ctx_get_team(SHMEM_CTX_DEFAULT, &team) != 0 && team == SHMEM_TEAM_INVALID; break;
    case 9: said = shmem_ctx_create(0, &ctx) != 0 && ctx == SHMEM_CTX_INVALID; break;
    case 10: said = shmem_team_create_ctx(SHMEM_TEAM_WORLD, 0, &ctx) != 0 && ctx == SHMEM_CTX_INVALID; break;
    case 11: said = shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 1, NULL, 0, &team) != 0 && team == SHMEM_TEAM_INVALID; break;
    default:
        said = shmem_team_split_2d(SHMEM_TEAM_WORLD, 1, NULL, 0, &team, NULL, 0, &other) != 0 && team == SHMEM_TEAM_INVALID
            && other == SHMEM_TEAM_INVALID;
    }
    _exit(said ? 0 : 3);
}
enum { ASKED = 13 };

static void ask_after(size_t number)
{
    shmem_init();
    shmem_finalize();
    ask(number);
}

/* Tries one in a process; gives whether it went as it should. */
static int tried(void (*act)(size_t), size_t number, const char *call, const char *tells, int returns)
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
    snprintf(begin, sizeof begin, "%s: %s", call, tells);
    /* By what value is asked below. */
    if (returns && WIFEXITED(status) && WEXITSTATUS(status) <= 1) return 1;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 1 && strstr(told, begin) != NULL) return 1;
    fprintf(stderr, "%s, where \"%s\" was to be said: wait status %#x, and it said: %s\n", call, tells, status, told);
    return 0;
}

int main(void)
{
    size_t i, failed = 0;
    mine = malloc(4096);
    memset(mine, 0, 4096);
    for (i = 0; i < sizeof wrong / sizeof *wrong; i++) failed += !tried(with_wrong, i, wrong[i].call, wrong[i].tells, 0);
    for (i = 0; i < sizeof any / sizeof *any; i++) {
        failed += !tried(before, i, any[i], "oxshmem is not initialized", may_return(any[i]));
        failed += !tried(after, i, any[i], "oxshmem is not initialized",
                         may_return(any[i]) || strcmp(any[i], "shmem_finalize") == 0);
    }
    for (i = 0; i < ASKED; i++) {
        char which[40];
        snprintf(which, sizeof which, "question %zu", i);
        failed += !tried(ask, i, which, "nothing", 1) + !tried(ask_after, i, which, "nothing", 1);
    }
    printf("%zu wrong arguments, %zu calls: %zu not as they should\n", sizeof wrong / sizeof *wrong, sizeof any / sizeof *any, failed);
    return failed != 0;
}
