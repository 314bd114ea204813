/* What OpenSHMEM had before its version 1.5, and old programs call. Included by shmem.h. */
#ifndef OXSHMEM_REMOVED_H
#define OXSHMEM_REMOVED_H

/* Of the caches of vector machines. There is nothing to do: memory is coherent. */
static __inline__ void shmem_clear_cache_inv(void) {}
static __inline__ void shmem_set_cache_inv(void) {}
static __inline__ void shmem_clear_cache_line_inv(void *dest) { (void)dest; }
static __inline__ void shmem_set_cache_line_inv(void *dest) { (void)dest; }
static __inline__ void shmem_udcflush(void) {}
static __inline__ void shmem_udcflush_line(void *dest) { (void)dest; }

/* C11 and C++ have it of all types. */
#if !defined(__cplusplus) && (!defined(__STDC_VERSION__) || __STDC_VERSION__ < 201112L)
static __inline__ long shmem_swap(long *dest, long value, int pe) { return shmem_long_swap(dest, value, pe); }
#endif

#endif
