/* Prints the rate of the processor's time stamp counter in kHz; fails where there is none. */
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#if defined(__x86_64__) || defined(__i386__)
#include <x86intrin.h>

static int64_t nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_RAW, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* The clock and the counter at one time: of several pairs, that which was read without an interruption. */
static void read_both(int64_t *at, uint64_t *ticks) {
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < 100; ++i) {
        const uint64_t before = __rdtsc();
        const int64_t now = nanoseconds();
        const uint64_t after = __rdtsc();
        if (after - before < best) {
            best = after - before;
            *at = now;
            *ticks = before + best / 2;
        }
    }
}

int main(void) {
    const struct timespec pause = {0, 50000000};
    int64_t began, ended;
    uint64_t first, last;
    read_both(&began, &first);
    nanosleep(&pause, NULL);
    read_both(&ended, &last);
    printf("%.0f\n", (double)(last - first) * 1e6 / (double)(ended - began));
    return 0;
}
#else
int main(void) { return 1; }
#endif
