/* What the modes of peers-c share: the clock, how a row is timed, and what all PEs agree on. The numbers
 * are those of ../src/sizes.rs. */
#ifndef TIMING_H
#define TIMING_H

#include <stddef.h>

enum { WORDS = 512, BATCHES = 15, FEWEST_BATCHES = 3, LARGEST = 16 << 20, FIRST_BLOCK = 64 << 20 };

double now_ns(void);

/* Keeps the compiler from moving or dropping what memory holds. */
#define BARRIER_FOR_COMPILER() __asm__ volatile("" ::: "memory")

/* With a processor for each PE, each keeps to its own. */
void pin(void);

/* Gets ready to time; every mode calls it, all PEs together. */
void timing_init(void);

/* Prints a row: the median of so many nanoseconds per operation. */
void report(const char *row, double *ns_per_op, int batches);

/* Of PE 0 alone, after a warm-up that also finds how many make a batch; one operation of the loop
 * counts as `each`. */
void alone(const char *row, void (*loop)(long), double each);

/* All PEs together; PE 0 decides the repetitions and reports. */
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
void first(void);
void memory(void);

#endif
