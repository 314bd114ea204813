/* The functions that all modes of peers-c use: the clock, the timing of a row, and the agreement of all PEs. The
 * numbers are those of ../src/sizes.rs. */
#ifndef TIMING_H
#define TIMING_H

#include <stddef.h>

enum { WORDS = 512, BATCHES = 15, FEWEST_BATCHES = 3, LARGEST = 16 << 20, FIRST_BLOCK = 64 << 20 };

double now_ns(void);

/* Keeps the compiler from moving or dropping accesses to memory. */
#define BARRIER_FOR_COMPILER() __asm__ volatile("" ::: "memory")

/* Binds each PE to a processor of its own, if there are enough. */
void pin(void);

/* Prepares the timing; every mode calls it, all PEs together. */
void timing_init(void);

/* Prints a row: the median of so many nanoseconds per operation. */
void report(const char *row, double *ns_per_op, int batches);

/* Times on PE 0 alone, after a warm-up that also finds how many repetitions make a batch; one repetition of the
 * loop counts as `each` operations. */
void alone(const char *row, void (*loop)(long), double each);

/* Times on all PEs together; PE 0 decides the repetitions and reports. */
void together(const char *row, void (*loop)(long), double each);

/* Ends the job: a result was wrong. */
void wrong(const char *row);

/* The modes. */
void micro(void);
void barrier_alone(void);
void collectives(void);
void gups(void);
void sort(void);
void patterns(void);
void tcp(void);
void first(void);
void memory(void);

#endif
