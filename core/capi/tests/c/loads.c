/* Is not linked with the library, and loads it: argv[1]. */
#include <dlfcn.h>
#include <stdio.h>

static long variable;

int main(int argc, char **argv)
{
    void *library = dlopen(argc > 1 ? argv[1] : "", RTLD_NOW);
    void (*init)(void), (*finalize)(void), (*barrier)(void), (*p)(long *, long, int);
    int (*accessible)(const void *, int), (*my_pe)(void), (*n_pes)(void), wrong;
    void *(*get)(size_t);
    long *x;
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    *(void **)&init = dlsym(library, "shmem_init");
    *(void **)&finalize = dlsym(library, "shmem_finalize");
    *(void **)&barrier = dlsym(library, "shmem_barrier_all");
    *(void **)&p = dlsym(library, "shmem_long_p");
    *(void **)&accessible = dlsym(library, "shmem_addr_accessible");
    *(void **)&my_pe = dlsym(library, "shmem_my_pe");
    *(void **)&n_pes = dlsym(library, "shmem_n_pes");
    *(void **)&get = dlsym(library, "shmem_malloc");
    init();
    x = get(sizeof(long));
    p(x, my_pe() + 5, (my_pe() + 1) % n_pes());
    barrier();
    wrong = *x != (my_pe() + n_pes() - 1) % n_pes() + 5 || accessible(&variable, my_pe());
    finalize();
    return wrong;
}
