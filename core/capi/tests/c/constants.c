/* The constants: those that sizes of arrays and the preprocessor take, what differs, what is an old name of another. With
   argv[1] an initialization that cannot be, which is told by its status. */
#include "check.h"

/* Those that size static arrays, or that programs ask of the preprocessor, by both. */
#define OLD_ALIASES(X)                                                                                                     \
    X(SYNC_VALUE) X(BARRIER_SYNC_SIZE) X(BCAST_SYNC_SIZE) X(COLLECT_SYNC_SIZE) X(REDUCE_SYNC_SIZE)                        \
    X(REDUCE_MIN_WRKDATA_SIZE) X(MAJOR_VERSION) X(MINOR_VERSION) X(MAX_NAME_LEN) X(CMP_EQ) X(CMP_NE) X(CMP_GT) X(CMP_GE)  \
    X(CMP_LT) X(CMP_LE)
#define SAME(NAME) static const char same_##NAME[_SHMEM_##NAME == SHMEM_##NAME ? 1 : -1] = {0};
OLD_ALIASES(SAME)
#define USE(NAME) (void)same_##NAME;

#if SHMEM_MAJOR_VERSION != 1 || SHMEM_MINOR_VERSION != 6 || SHMEM_MAX_NAME_LEN < 1
#error "versions"
#endif
#if _SHMEM_MAJOR_VERSION != 1 || _SHMEM_MINOR_VERSION != 6 || _SHMEM_MAX_NAME_LEN < 1
#error "versions"
#endif
#if SHMEM_SYNC_SIZE < 1 || SHMEM_BARRIER_SYNC_SIZE < 1 || SHMEM_BCAST_SYNC_SIZE < 1 || SHMEM_COLLECT_SYNC_SIZE < 1
#error "pSync"
#endif
#if SHMEM_REDUCE_SYNC_SIZE < 1 || SHMEM_ALLTOALL_SYNC_SIZE < 1 || SHMEM_ALLTOALLS_SYNC_SIZE < 1
#error "pSync"
#endif
#if _SHMEM_BARRIER_SYNC_SIZE < 1 || _SHMEM_BCAST_SYNC_SIZE < 1 || _SHMEM_COLLECT_SYNC_SIZE < 1 || _SHMEM_REDUCE_SYNC_SIZE < 1
#error "pSync"
#endif
#if SHMEM_REDUCE_MIN_WRKDATA_SIZE < 1 || _SHMEM_REDUCE_MIN_WRKDATA_SIZE < 1
#error "pWrk"
#endif
#if !(SHMEM_THREAD_SINGLE < SHMEM_THREAD_FUNNELED && SHMEM_THREAD_FUNNELED < SHMEM_THREAD_SERIALIZED)
#error "thread levels"
#endif
#if !(SHMEM_THREAD_SERIALIZED < SHMEM_THREAD_MULTIPLE)
#error "thread levels"
#endif

static long pSync[SHMEM_SYNC_SIZE + SHMEM_ALLTOALL_SYNC_SIZE + SHMEM_ALLTOALLS_SYNC_SIZE] = {SHMEM_SYNC_VALUE};

/* Each is a case of its own: equal ones do not compile. */
static int compares(int how)
{
    switch (how) {
    case SHMEM_CMP_EQ:
    case SHMEM_CMP_NE:
    case SHMEM_CMP_GT:
    case SHMEM_CMP_GE:
    case SHMEM_CMP_LT:
    case SHMEM_CMP_LE: return 1;
    default: return 0;
    }
}

static int signals(int how)
{
    switch (how) {
    case SHMEM_SIGNAL_SET:
    case SHMEM_SIGNAL_ADD: return 1;
    default: return 0;
    }
}

/* Options are bits: none of them is in another. */
static int is_apart(long a, long b, long c)
{
    return a && b && c && !(a & b) && !(a & c) && !(b & c);
}

int main(int argc, char **argv)
{
    char name[SHMEM_MAX_NAME_LEN];
    int major, minor, level = 77;
    if (argc > 1) {
        int status = shmem_init_thread(SHMEM_THREAD_SERIALIZED, &level);
        shmem_query_initialized(&major);
        printf("%s: status %d, initialized %d\n", argv[1], status != 0, major);
        return 0;
    }
    begin();
    OLD_ALIASES(USE)
    CHECK(strcmp(_SHMEM_VENDOR_STRING, SHMEM_VENDOR_STRING) == 0 && sizeof SHMEM_VENDOR_STRING <= SHMEM_MAX_NAME_LEN);
    shmem_info_get_name(name);
    CHECK(strcmp(name, SHMEM_VENDOR_STRING) == 0);
    shmem_info_get_version(&major, &minor);
    CHECK(major == SHMEM_MAJOR_VERSION && minor == SHMEM_MINOR_VERSION);
    CHECK(compares(SHMEM_CMP_LE) && !compares(77) && signals(SHMEM_SIGNAL_ADD) && !signals(77) && pSync[0] == SHMEM_SYNC_VALUE);
    CHECK(is_apart(SHMEM_CTX_SERIALIZED, SHMEM_CTX_PRIVATE, SHMEM_CTX_NOSTORE));
    CHECK(is_apart(SHMEM_MALLOC_ATOMICS_REMOTE, SHMEM_MALLOC_SIGNAL_REMOTE, 1L << 30));
    CHECK(SHMEM_CTX_SESSION_BATCH && SHMEM_CTX_SESSION_TOTAL_OPS && SHMEM_TEAM_NUM_CONTEXTS);
    CHECK(SHMEM_TEAM_WORLD != SHMEM_TEAM_SHARED && SHMEM_TEAM_WORLD != SHMEM_TEAM_INVALID && SHMEM_TEAM_SHARED != SHMEM_TEAM_INVALID);
    CHECK(SHMEM_CTX_DEFAULT != SHMEM_CTX_INVALID);
    shmem_finalize();
    return 0;
}
