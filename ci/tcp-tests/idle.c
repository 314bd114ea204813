/* PEs that have talked to each other, and then do nothing for a while: idle SECONDS. Each prints how often its threads,
 * beside the first, were woken in that time. */
#define _POSIX_C_SOURCE 200809L
#include <dirent.h>
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static long switches(void)
{
    DIR *tasks = opendir("/proc/self/task");
    long sum = 0;
    for (struct dirent *one; tasks && (one = readdir(tasks));) {
        char path[300], line[200];
        long count;
        if (one->d_name[0] == '.' || atol(one->d_name) == getpid())
            continue;
        snprintf(path, sizeof path, "/proc/self/task/%s/status", one->d_name);
        FILE *status = fopen(path, "r");
        while (status && fgets(line, sizeof line, status))
            if (sscanf(line, "voluntary_ctxt_switches: %ld", &count) == 1)
                sum += count;
        if (status)
            fclose(status);
    }
    if (tasks)
        closedir(tasks);
    return sum;
}

int main(int argc, char **argv)
{
    int seconds = argc > 1 ? atoi(argv[1]) : 5;
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes();
    long *x = shmem_calloc(n, sizeof(long));
    for (int pe = 0; pe < n; pe++)
        shmem_long_p(x + me, me + 1, pe);
    shmem_barrier_all();
    for (int pe = 0; pe < n; pe++)
        if (x[pe] != pe + 1)
            return printf("PE %d: %ld of PE %d\n", me, x[pe], pe), 1;
    sleep(2);
    long before = switches();
    sleep((unsigned)seconds);
    printf("woken %ld times in %d s\n", switches() - before, seconds);
    fflush(stdout);
    shmem_finalize();
    return 0;
}
