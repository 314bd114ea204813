/* One name for the functions of all types, in C11. Included by shmem.h. */
/* Generated from oxshmem's table (core/capi/table); do not edit. */
#ifndef OXSHMEM_GENERICS_H
#define OXSHMEM_GENERICS_H

/* Its first and its second argument, if followed by enough others. */
#define OXSHMEM_FIRST(first, ...) first
#define OXSHMEM_SECOND(first, second, ...) second

/* What is chosen for a type of which there is no function: nothing fits as its argument. */
struct oxshmem_no_such_type;
void oxshmem_no_such_call(struct oxshmem_no_such_type, struct oxshmem_no_such_type);

/* The same functions, for objects that may be volatile. */
void oxshmem_longdouble_put(volatile long double *dest, volatile const long double *source, size_t nelems, int pe) __asm__("shmem_longdouble_put");
void oxshmem_ctx_float_put(shmem_ctx_t ctx, volatile float *dest, volatile const float *source, size_t nelems, int pe) __asm__("shmem_ctx_float_put");
void oxshmem_ctx_double_put(shmem_ctx_t ctx, volatile double *dest, volatile const double *source, size_t nelems, int pe) __asm__("shmem_ctx_double_put");
void oxshmem_ctx_longdouble_put(shmem_ctx_t ctx, volatile long double *dest, volatile const long double *source, size_t nelems, int pe) __asm__("shmem_ctx_longdouble_put");
void oxshmem_ctx_char_put(shmem_ctx_t ctx, volatile char *dest, volatile const char *source, size_t nelems, int pe) __asm__("shmem_ctx_char_put");
void oxshmem_ctx_schar_put(shmem_ctx_t ctx, volatile signed char *dest, volatile const signed char *source, size_t nelems, int pe) __asm__("shmem_ctx_schar_put");
void oxshmem_ctx_short_put(shmem_ctx_t ctx, volatile short *dest, volatile const short *source, size_t nelems, int pe) __asm__("shmem_ctx_short_put");
void oxshmem_ctx_int_put(shmem_ctx_t ctx, volatile int *dest, volatile const int *source, size_t nelems, int pe) __asm__("shmem_ctx_int_put");
void oxshmem_ctx_long_put(shmem_ctx_t ctx, volatile long *dest, volatile const long *source, size_t nelems, int pe) __asm__("shmem_ctx_long_put");
void oxshmem_ctx_longlong_put(shmem_ctx_t ctx, volatile long long *dest, volatile const long long *source, size_t nelems, int pe) __asm__("shmem_ctx_longlong_put");
void oxshmem_ctx_uchar_put(shmem_ctx_t ctx, volatile unsigned char *dest, volatile const unsigned char *source, size_t nelems, int pe) __asm__("shmem_ctx_uchar_put");
void oxshmem_ctx_ushort_put(shmem_ctx_t ctx, volatile unsigned short *dest, volatile const unsigned short *source, size_t nelems, int pe) __asm__("shmem_ctx_ushort_put");
void oxshmem_ctx_uint_put(shmem_ctx_t ctx, volatile unsigned int *dest, volatile const unsigned int *source, size_t nelems, int pe) __asm__("shmem_ctx_uint_put");
void oxshmem_ctx_ulong_put(shmem_ctx_t ctx, volatile unsigned long *dest, volatile const unsigned long *source, size_t nelems, int pe) __asm__("shmem_ctx_ulong_put");
void oxshmem_ctx_ulonglong_put(shmem_ctx_t ctx, volatile unsigned long long *dest, volatile const unsigned long long *source, size_t nelems, int pe) __asm__("shmem_ctx_ulonglong_put");
void oxshmem_longdouble_p(volatile long double *dest, long double value, int pe) __asm__("shmem_longdouble_p");
void oxshmem_ctx_float_p(shmem_ctx_t ctx, volatile float *dest, float value, int pe) __asm__("shmem_ctx_float_p");
void oxshmem_ctx_double_p(shmem_ctx_t ctx, volatile double *dest, double value, int pe) __asm__("shmem_ctx_double_p");
void oxshmem_ctx_longdouble_p(shmem_ctx_t ctx, volatile long double *dest, long double value, int pe) __asm__("shmem_ctx_longdouble_p");
void oxshmem_ctx_char_p(shmem_ctx_t ctx, volatile char *dest, char value, int pe) __asm__("shmem_ctx_char_p");
void oxshmem_ctx_schar_p(shmem_ctx_t ctx, volatile signed char *dest, signed char value, int pe) __asm__("shmem_ctx_schar_p");
void oxshmem_ctx_short_p(shmem_ctx_t ctx, volatile short *dest, short value, int pe) __asm__("shmem_ctx_short_p");
void oxshmem_ctx_int_p(shmem_ctx_t ctx, volatile int *dest, int value, int pe) __asm__("shmem_ctx_int_p");
void oxshmem_ctx_long_p(shmem_ctx_t ctx, volatile long *dest, long value, int pe) __asm__("shmem_ctx_long_p");
void oxshmem_ctx_longlong_p(shmem_ctx_t ctx, volatile long long *dest, long long value, int pe) __asm__("shmem_ctx_longlong_p");
void oxshmem_ctx_uchar_p(shmem_ctx_t ctx, volatile unsigned char *dest, unsigned char value, int pe) __asm__("shmem_ctx_uchar_p");
void oxshmem_ctx_ushort_p(shmem_ctx_t ctx, volatile unsigned short *dest, unsigned short value, int pe) __asm__("shmem_ctx_ushort_p");
void oxshmem_ctx_uint_p(shmem_ctx_t ctx, volatile unsigned int *dest, unsigned int value, int pe) __asm__("shmem_ctx_uint_p");
void oxshmem_ctx_ulong_p(shmem_ctx_t ctx, volatile unsigned long *dest, unsigned long value, int pe) __asm__("shmem_ctx_ulong_p");
void oxshmem_ctx_ulonglong_p(shmem_ctx_t ctx, volatile unsigned long long *dest, unsigned long long value, int pe) __asm__("shmem_ctx_ulonglong_p");
void oxshmem_float_iput(volatile float *dest, volatile const float *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) __asm__("shmem_float_iput");
void oxshmem_double_iput(volatile double *dest, volatile const double *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) __asm__("shmem_double_iput");
void oxshmem_longdouble_iput(volatile long double *dest, volatile const long double *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) __asm__("shmem_longdouble_iput");
void oxshmem_char_iput(volatile char *dest, volatile const char *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) __asm__("shmem_char_iput");
void oxshmem_schar_iput(volatile signed char *dest, volatile const signed char *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) __asm__("shmem_schar_iput");
void oxshmem_short_iput(volatile short *dest, volatile const short *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) __asm__("shmem_short_iput");
void oxshmem_int_iput(volatile int *dest, volatile const int *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) __asm__("shmem_int_iput");
void oxshmem_long_iput(volatile long *dest, volatile const long *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) __asm__("shmem_long_iput");
void oxshmem_longlong_iput(volatile long long *dest, volatile const long long *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) __asm__("shmem_longlong_iput");
void oxshmem_uchar_iput(volatile unsigned char *dest, volatile const unsigned char *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) __asm__("shmem_uchar_iput");
void oxshmem_ushort_iput(volatile unsigned short *dest, volatile const unsigned short *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) __asm__("shmem_ushort_iput");
void oxshmem_uint_iput(volatile unsigned int *dest, volatile const unsigned int *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) __asm__("shmem_uint_iput");
void oxshmem_ulong_iput(volatile unsigned long *dest, volatile const unsigned long *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) __asm__("shmem_ulong_iput");
void oxshmem_ulonglong_iput(volatile unsigned long long *dest, volatile const unsigned long long *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) __asm__("shmem_ulonglong_iput");
void oxshmem_ctx_float_iput(shmem_ctx_t ctx, volatile float *dest, volatile const float *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) __asm__("shmem_ctx_float_iput");
void oxshmem_ctx_double_iput(shmem_ctx_t ctx, volatile double *dest, volatile const double *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) __asm__("shmem_ctx_double_iput");
void oxshmem_ctx_longdouble_iput(shmem_ctx_t ctx, volatile long double *dest, volatile const long double *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) __asm__("shmem_ctx_longdouble_iput");
void oxshmem_ctx_char_iput(shmem_ctx_t ctx, volatile char *dest, volatile const char *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) __asm__("shmem_ctx_char_iput");
void oxshmem_ctx_schar_iput(shmem_ctx_t ctx, volatile signed char *dest, volatile const signed char *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) __asm__("shmem_ctx_schar_iput");
void oxshmem_ctx_short_iput(shmem_ctx_t ctx, volatile short *dest, volatile const short *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) __asm__("shmem_ctx_short_iput");
void oxshmem_ctx_int_iput(shmem_ctx_t ctx, volatile int *dest, volatile const int *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) __asm__("shmem_ctx_int_iput");
void oxshmem_ctx_long_iput(shmem_ctx_t ctx, volatile long *dest, volatile const long *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) __asm__("shmem_ctx_long_iput");
void oxshmem_ctx_longlong_iput(shmem_ctx_t ctx, volatile long long *dest, volatile const long long *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) __asm__("shmem_ctx_longlong_iput");
void oxshmem_ctx_uchar_iput(shmem_ctx_t ctx, volatile unsigned char *dest, volatile const unsigned char *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) __asm__("shmem_ctx_uchar_iput");
void oxshmem_ctx_ushort_iput(shmem_ctx_t ctx, volatile unsigned short *dest, volatile const unsigned short *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) __asm__("shmem_ctx_ushort_iput");
void oxshmem_ctx_uint_iput(shmem_ctx_t ctx, volatile unsigned int *dest, volatile const unsigned int *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) __asm__("shmem_ctx_uint_iput");
void oxshmem_ctx_ulong_iput(shmem_ctx_t ctx, volatile unsigned long *dest, volatile const unsigned long *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) __asm__("shmem_ctx_ulong_iput");
void oxshmem_ctx_ulonglong_iput(shmem_ctx_t ctx, volatile unsigned long long *dest, volatile const unsigned long long *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) __asm__("shmem_ctx_ulonglong_iput");
void oxshmem_float_ibput(volatile float *dest, volatile const float *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) __asm__("shmem_float_ibput");
void oxshmem_double_ibput(volatile double *dest, volatile const double *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) __asm__("shmem_double_ibput");
void oxshmem_longdouble_ibput(volatile long double *dest, volatile const long double *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) __asm__("shmem_longdouble_ibput");
void oxshmem_char_ibput(volatile char *dest, volatile const char *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) __asm__("shmem_char_ibput");
void oxshmem_schar_ibput(volatile signed char *dest, volatile const signed char *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) __asm__("shmem_schar_ibput");
void oxshmem_short_ibput(volatile short *dest, volatile const short *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) __asm__("shmem_short_ibput");
void oxshmem_int_ibput(volatile int *dest, volatile const int *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) __asm__("shmem_int_ibput");
void oxshmem_long_ibput(volatile long *dest, volatile const long *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) __asm__("shmem_long_ibput");
void oxshmem_longlong_ibput(volatile long long *dest, volatile const long long *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) __asm__("shmem_longlong_ibput");
void oxshmem_uchar_ibput(volatile unsigned char *dest, volatile const unsigned char *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) __asm__("shmem_uchar_ibput");
void oxshmem_ushort_ibput(volatile unsigned short *dest, volatile const unsigned short *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) __asm__("shmem_ushort_ibput");
void oxshmem_uint_ibput(volatile unsigned int *dest, volatile const unsigned int *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) __asm__("shmem_uint_ibput");
void oxshmem_ulong_ibput(volatile unsigned long *dest, volatile const unsigned long *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) __asm__("shmem_ulong_ibput");
void oxshmem_ulonglong_ibput(volatile unsigned long long *dest, volatile const unsigned long long *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) __asm__("shmem_ulonglong_ibput");
void oxshmem_ctx_float_ibput(shmem_ctx_t ctx, volatile float *dest, volatile const float *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) __asm__("shmem_ctx_float_ibput");
void oxshmem_ctx_double_ibput(shmem_ctx_t ctx, volatile double *dest, volatile const double *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) __asm__("shmem_ctx_double_ibput");
void oxshmem_ctx_longdouble_ibput(shmem_ctx_t ctx, volatile long double *dest, volatile const long double *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) __asm__("shmem_ctx_longdouble_ibput");
void oxshmem_ctx_char_ibput(shmem_ctx_t ctx, volatile char *dest, volatile const char *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) __asm__("shmem_ctx_char_ibput");
void oxshmem_ctx_schar_ibput(shmem_ctx_t ctx, volatile signed char *dest, volatile const signed char *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) __asm__("shmem_ctx_schar_ibput");
void oxshmem_ctx_short_ibput(shmem_ctx_t ctx, volatile short *dest, volatile const short *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) __asm__("shmem_ctx_short_ibput");
void oxshmem_ctx_int_ibput(shmem_ctx_t ctx, volatile int *dest, volatile const int *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) __asm__("shmem_ctx_int_ibput");
void oxshmem_ctx_long_ibput(shmem_ctx_t ctx, volatile long *dest, volatile const long *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) __asm__("shmem_ctx_long_ibput");
void oxshmem_ctx_longlong_ibput(shmem_ctx_t ctx, volatile long long *dest, volatile const long long *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) __asm__("shmem_ctx_longlong_ibput");
void oxshmem_ctx_uchar_ibput(shmem_ctx_t ctx, volatile unsigned char *dest, volatile const unsigned char *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) __asm__("shmem_ctx_uchar_ibput");
void oxshmem_ctx_ushort_ibput(shmem_ctx_t ctx, volatile unsigned short *dest, volatile const unsigned short *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) __asm__("shmem_ctx_ushort_ibput");
void oxshmem_ctx_uint_ibput(shmem_ctx_t ctx, volatile unsigned int *dest, volatile const unsigned int *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) __asm__("shmem_ctx_uint_ibput");
void oxshmem_ctx_ulong_ibput(shmem_ctx_t ctx, volatile unsigned long *dest, volatile const unsigned long *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) __asm__("shmem_ctx_ulong_ibput");
void oxshmem_ctx_ulonglong_ibput(shmem_ctx_t ctx, volatile unsigned long long *dest, volatile const unsigned long long *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) __asm__("shmem_ctx_ulonglong_ibput");
void oxshmem_longdouble_get(volatile long double *dest, volatile const long double *source, size_t nelems, int pe) __asm__("shmem_longdouble_get");
void oxshmem_ctx_float_get(shmem_ctx_t ctx, volatile float *dest, volatile const float *source, size_t nelems, int pe) __asm__("shmem_ctx_float_get");
void oxshmem_ctx_double_get(shmem_ctx_t ctx, volatile double *dest, volatile const double *source, size_t nelems, int pe) __asm__("shmem_ctx_double_get");
void oxshmem_ctx_longdouble_get(shmem_ctx_t ctx, volatile long double *dest, volatile const long double *source, size_t nelems, int pe) __asm__("shmem_ctx_longdouble_get");
void oxshmem_ctx_char_get(shmem_ctx_t ctx, volatile char *dest, volatile const char *source, size_t nelems, int pe) __asm__("shmem_ctx_char_get");
void oxshmem_ctx_schar_get(shmem_ctx_t ctx, volatile signed char *dest, volatile const signed char *source, size_t nelems, int pe) __asm__("shmem_ctx_schar_get");
void oxshmem_ctx_short_get(shmem_ctx_t ctx, volatile short *dest, volatile const short *source, size_t nelems, int pe) __asm__("shmem_ctx_short_get");
void oxshmem_ctx_int_get(shmem_ctx_t ctx, volatile int *dest, volatile const int *source, size_t nelems, int pe) __asm__("shmem_ctx_int_get");
void oxshmem_ctx_long_get(shmem_ctx_t ctx, volatile long *dest, volatile const long *source, size_t nelems, int pe) __asm__("shmem_ctx_long_get");
void oxshmem_ctx_longlong_get(shmem_ctx_t ctx, volatile long long *dest, volatile const long long *source, size_t nelems, int pe) __asm__("shmem_ctx_longlong_get");
void oxshmem_ctx_uchar_get(shmem_ctx_t ctx, volatile unsigned char *dest, volatile const unsigned char *source, size_t nelems, int pe) __asm__("shmem_ctx_uchar_get");
void oxshmem_ctx_ushort_get(shmem_ctx_t ctx, volatile unsigned short *dest, volatile const unsigned short *source, size_t nelems, int pe) __asm__("shmem_ctx_ushort_get");
void oxshmem_ctx_uint_get(shmem_ctx_t ctx, volatile unsigned int *dest, volatile const unsigned int *source, size_t nelems, int pe) __asm__("shmem_ctx_uint_get");
void oxshmem_ctx_ulong_get(shmem_ctx_t ctx, volatile unsigned long *dest, volatile const unsigned long *source, size_t nelems, int pe) __asm__("shmem_ctx_ulong_get");
void oxshmem_ctx_ulonglong_get(shmem_ctx_t ctx, volatile unsigned long long *dest, volatile const unsigned long long *source, size_t nelems, int pe) __asm__("shmem_ctx_ulonglong_get");
long double oxshmem_longdouble_g(volatile const long double *source, int pe) __asm__("shmem_longdouble_g");
float oxshmem_ctx_float_g(shmem_ctx_t ctx, volatile const float *source, int pe) __asm__("shmem_ctx_float_g");
double oxshmem_ctx_double_g(shmem_ctx_t ctx, volatile const double *source, int pe) __asm__("shmem_ctx_double_g");
long double oxshmem_ctx_longdouble_g(shmem_ctx_t ctx, volatile const long double *source, int pe) __asm__("shmem_ctx_longdouble_g");
char oxshmem_ctx_char_g(shmem_ctx_t ctx, volatile const char *source, int pe) __asm__("shmem_ctx_char_g");
signed char oxshmem_ctx_schar_g(shmem_ctx_t ctx, volatile const signed char *source, int pe) __asm__("shmem_ctx_schar_g");
short oxshmem_ctx_short_g(shmem_ctx_t ctx, volatile const short *source, int pe) __asm__("shmem_ctx_short_g");
int oxshmem_ctx_int_g(shmem_ctx_t ctx, volatile const int *source, int pe) __asm__("shmem_ctx_int_g");
long oxshmem_ctx_long_g(shmem_ctx_t ctx, volatile const long *source, int pe) __asm__("shmem_ctx_long_g");
long long oxshmem_ctx_longlong_g(shmem_ctx_t ctx, volatile const long long *source, int pe) __asm__("shmem_ctx_longlong_g");
unsigned char oxshmem_ctx_uchar_g(shmem_ctx_t ctx, volatile const unsigned char *source, int pe) __asm__("shmem_ctx_uchar_g");
unsigned short oxshmem_ctx_ushort_g(shmem_ctx_t ctx, volatile const unsigned short *source, int pe) __asm__("shmem_ctx_ushort_g");
unsigned int oxshmem_ctx_uint_g(shmem_ctx_t ctx, volatile const unsigned int *source, int pe) __asm__("shmem_ctx_uint_g");
unsigned long oxshmem_ctx_ulong_g(shmem_ctx_t ctx, volatile const unsigned long *source, int pe) __asm__("shmem_ctx_ulong_g");
unsigned long long oxshmem_ctx_ulonglong_g(shmem_ctx_t ctx, volatile const unsigned long long *source, int pe) __asm__("shmem_ctx_ulonglong_g");
void oxshmem_float_iget(volatile float *dest, volatile const float *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) __asm__("shmem_float_iget");
void oxshmem_double_iget(volatile double *dest, volatile const double *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) __asm__("shmem_double_iget");
void oxshmem_longdouble_iget(volatile long double *dest, volatile const long double *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) __asm__("shmem_longdouble_iget");
void oxshmem_char_iget(volatile char *dest, volatile const char *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) __asm__("shmem_char_iget");
void oxshmem_schar_iget(volatile signed char *dest, volatile const signed char *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) __asm__("shmem_schar_iget");
void oxshmem_short_iget(volatile short *dest, volatile const short *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) __asm__("shmem_short_iget");
void oxshmem_int_iget(volatile int *dest, volatile const int *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) __asm__("shmem_int_iget");
void oxshmem_long_iget(volatile long *dest, volatile const long *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) __asm__("shmem_long_iget");
void oxshmem_longlong_iget(volatile long long *dest, volatile const long long *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) __asm__("shmem_longlong_iget");
void oxshmem_uchar_iget(volatile unsigned char *dest, volatile const unsigned char *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) __asm__("shmem_uchar_iget");
void oxshmem_ushort_iget(volatile unsigned short *dest, volatile const unsigned short *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) __asm__("shmem_ushort_iget");
void oxshmem_uint_iget(volatile unsigned int *dest, volatile const unsigned int *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) __asm__("shmem_uint_iget");
void oxshmem_ulong_iget(volatile unsigned long *dest, volatile const unsigned long *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) __asm__("shmem_ulong_iget");
void oxshmem_ulonglong_iget(volatile unsigned long long *dest, volatile const unsigned long long *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) __asm__("shmem_ulonglong_iget");
void oxshmem_ctx_float_iget(shmem_ctx_t ctx, volatile float *dest, volatile const float *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) __asm__("shmem_ctx_float_iget");
void oxshmem_ctx_double_iget(shmem_ctx_t ctx, volatile double *dest, volatile const double *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) __asm__("shmem_ctx_double_iget");
void oxshmem_ctx_longdouble_iget(shmem_ctx_t ctx, volatile long double *dest, volatile const long double *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) __asm__("shmem_ctx_longdouble_iget");
void oxshmem_ctx_char_iget(shmem_ctx_t ctx, volatile char *dest, volatile const char *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) __asm__("shmem_ctx_char_iget");
void oxshmem_ctx_schar_iget(shmem_ctx_t ctx, volatile signed char *dest, volatile const signed char *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) __asm__("shmem_ctx_schar_iget");
void oxshmem_ctx_short_iget(shmem_ctx_t ctx, volatile short *dest, volatile const short *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) __asm__("shmem_ctx_short_iget");
void oxshmem_ctx_int_iget(shmem_ctx_t ctx, volatile int *dest, volatile const int *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) __asm__("shmem_ctx_int_iget");
void oxshmem_ctx_long_iget(shmem_ctx_t ctx, volatile long *dest, volatile const long *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) __asm__("shmem_ctx_long_iget");
void oxshmem_ctx_longlong_iget(shmem_ctx_t ctx, volatile long long *dest, volatile const long long *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) __asm__("shmem_ctx_longlong_iget");
void oxshmem_ctx_uchar_iget(shmem_ctx_t ctx, volatile unsigned char *dest, volatile const unsigned char *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) __asm__("shmem_ctx_uchar_iget");
void oxshmem_ctx_ushort_iget(shmem_ctx_t ctx, volatile unsigned short *dest, volatile const unsigned short *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) __asm__("shmem_ctx_ushort_iget");
void oxshmem_ctx_uint_iget(shmem_ctx_t ctx, volatile unsigned int *dest, volatile const unsigned int *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) __asm__("shmem_ctx_uint_iget");
void oxshmem_ctx_ulong_iget(shmem_ctx_t ctx, volatile unsigned long *dest, volatile const unsigned long *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) __asm__("shmem_ctx_ulong_iget");
void oxshmem_ctx_ulonglong_iget(shmem_ctx_t ctx, volatile unsigned long long *dest, volatile const unsigned long long *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) __asm__("shmem_ctx_ulonglong_iget");
void oxshmem_float_ibget(volatile float *dest, volatile const float *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) __asm__("shmem_float_ibget");
void oxshmem_double_ibget(volatile double *dest, volatile const double *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) __asm__("shmem_double_ibget");
void oxshmem_longdouble_ibget(volatile long double *dest, volatile const long double *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) __asm__("shmem_longdouble_ibget");
void oxshmem_char_ibget(volatile char *dest, volatile const char *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) __asm__("shmem_char_ibget");
void oxshmem_schar_ibget(volatile signed char *dest, volatile const signed char *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) __asm__("shmem_schar_ibget");
void oxshmem_short_ibget(volatile short *dest, volatile const short *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) __asm__("shmem_short_ibget");
void oxshmem_int_ibget(volatile int *dest, volatile const int *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) __asm__("shmem_int_ibget");
void oxshmem_long_ibget(volatile long *dest, volatile const long *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) __asm__("shmem_long_ibget");
void oxshmem_longlong_ibget(volatile long long *dest, volatile const long long *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) __asm__("shmem_longlong_ibget");
void oxshmem_uchar_ibget(volatile unsigned char *dest, volatile const unsigned char *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) __asm__("shmem_uchar_ibget");
void oxshmem_ushort_ibget(volatile unsigned short *dest, volatile const unsigned short *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) __asm__("shmem_ushort_ibget");
void oxshmem_uint_ibget(volatile unsigned int *dest, volatile const unsigned int *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) __asm__("shmem_uint_ibget");
void oxshmem_ulong_ibget(volatile unsigned long *dest, volatile const unsigned long *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) __asm__("shmem_ulong_ibget");
void oxshmem_ulonglong_ibget(volatile unsigned long long *dest, volatile const unsigned long long *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) __asm__("shmem_ulonglong_ibget");
void oxshmem_ctx_float_ibget(shmem_ctx_t ctx, volatile float *dest, volatile const float *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) __asm__("shmem_ctx_float_ibget");
void oxshmem_ctx_double_ibget(shmem_ctx_t ctx, volatile double *dest, volatile const double *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) __asm__("shmem_ctx_double_ibget");
void oxshmem_ctx_longdouble_ibget(shmem_ctx_t ctx, volatile long double *dest, volatile const long double *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) __asm__("shmem_ctx_longdouble_ibget");
void oxshmem_ctx_char_ibget(shmem_ctx_t ctx, volatile char *dest, volatile const char *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) __asm__("shmem_ctx_char_ibget");
void oxshmem_ctx_schar_ibget(shmem_ctx_t ctx, volatile signed char *dest, volatile const signed char *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) __asm__("shmem_ctx_schar_ibget");
void oxshmem_ctx_short_ibget(shmem_ctx_t ctx, volatile short *dest, volatile const short *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) __asm__("shmem_ctx_short_ibget");
void oxshmem_ctx_int_ibget(shmem_ctx_t ctx, volatile int *dest, volatile const int *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) __asm__("shmem_ctx_int_ibget");
void oxshmem_ctx_long_ibget(shmem_ctx_t ctx, volatile long *dest, volatile const long *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) __asm__("shmem_ctx_long_ibget");
void oxshmem_ctx_longlong_ibget(shmem_ctx_t ctx, volatile long long *dest, volatile const long long *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) __asm__("shmem_ctx_longlong_ibget");
void oxshmem_ctx_uchar_ibget(shmem_ctx_t ctx, volatile unsigned char *dest, volatile const unsigned char *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) __asm__("shmem_ctx_uchar_ibget");
void oxshmem_ctx_ushort_ibget(shmem_ctx_t ctx, volatile unsigned short *dest, volatile const unsigned short *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) __asm__("shmem_ctx_ushort_ibget");
void oxshmem_ctx_uint_ibget(shmem_ctx_t ctx, volatile unsigned int *dest, volatile const unsigned int *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) __asm__("shmem_ctx_uint_ibget");
void oxshmem_ctx_ulong_ibget(shmem_ctx_t ctx, volatile unsigned long *dest, volatile const unsigned long *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) __asm__("shmem_ctx_ulong_ibget");
void oxshmem_ctx_ulonglong_ibget(shmem_ctx_t ctx, volatile unsigned long long *dest, volatile const unsigned long long *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe) __asm__("shmem_ctx_ulonglong_ibget");
void oxshmem_float_put_nbi(volatile float *dest, volatile const float *source, size_t nelems, int pe) __asm__("shmem_float_put_nbi");
void oxshmem_double_put_nbi(volatile double *dest, volatile const double *source, size_t nelems, int pe) __asm__("shmem_double_put_nbi");
void oxshmem_longdouble_put_nbi(volatile long double *dest, volatile const long double *source, size_t nelems, int pe) __asm__("shmem_longdouble_put_nbi");
void oxshmem_char_put_nbi(volatile char *dest, volatile const char *source, size_t nelems, int pe) __asm__("shmem_char_put_nbi");
void oxshmem_schar_put_nbi(volatile signed char *dest, volatile const signed char *source, size_t nelems, int pe) __asm__("shmem_schar_put_nbi");
void oxshmem_short_put_nbi(volatile short *dest, volatile const short *source, size_t nelems, int pe) __asm__("shmem_short_put_nbi");
void oxshmem_int_put_nbi(volatile int *dest, volatile const int *source, size_t nelems, int pe) __asm__("shmem_int_put_nbi");
void oxshmem_long_put_nbi(volatile long *dest, volatile const long *source, size_t nelems, int pe) __asm__("shmem_long_put_nbi");
void oxshmem_longlong_put_nbi(volatile long long *dest, volatile const long long *source, size_t nelems, int pe) __asm__("shmem_longlong_put_nbi");
void oxshmem_uchar_put_nbi(volatile unsigned char *dest, volatile const unsigned char *source, size_t nelems, int pe) __asm__("shmem_uchar_put_nbi");
void oxshmem_ushort_put_nbi(volatile unsigned short *dest, volatile const unsigned short *source, size_t nelems, int pe) __asm__("shmem_ushort_put_nbi");
void oxshmem_uint_put_nbi(volatile unsigned int *dest, volatile const unsigned int *source, size_t nelems, int pe) __asm__("shmem_uint_put_nbi");
void oxshmem_ulong_put_nbi(volatile unsigned long *dest, volatile const unsigned long *source, size_t nelems, int pe) __asm__("shmem_ulong_put_nbi");
void oxshmem_ulonglong_put_nbi(volatile unsigned long long *dest, volatile const unsigned long long *source, size_t nelems, int pe) __asm__("shmem_ulonglong_put_nbi");
void oxshmem_ctx_float_put_nbi(shmem_ctx_t ctx, volatile float *dest, volatile const float *source, size_t nelems, int pe) __asm__("shmem_ctx_float_put_nbi");
void oxshmem_ctx_double_put_nbi(shmem_ctx_t ctx, volatile double *dest, volatile const double *source, size_t nelems, int pe) __asm__("shmem_ctx_double_put_nbi");
void oxshmem_ctx_longdouble_put_nbi(shmem_ctx_t ctx, volatile long double *dest, volatile const long double *source, size_t nelems, int pe) __asm__("shmem_ctx_longdouble_put_nbi");
void oxshmem_ctx_char_put_nbi(shmem_ctx_t ctx, volatile char *dest, volatile const char *source, size_t nelems, int pe) __asm__("shmem_ctx_char_put_nbi");
void oxshmem_ctx_schar_put_nbi(shmem_ctx_t ctx, volatile signed char *dest, volatile const signed char *source, size_t nelems, int pe) __asm__("shmem_ctx_schar_put_nbi");
void oxshmem_ctx_short_put_nbi(shmem_ctx_t ctx, volatile short *dest, volatile const short *source, size_t nelems, int pe) __asm__("shmem_ctx_short_put_nbi");
void oxshmem_ctx_int_put_nbi(shmem_ctx_t ctx, volatile int *dest, volatile const int *source, size_t nelems, int pe) __asm__("shmem_ctx_int_put_nbi");
void oxshmem_ctx_long_put_nbi(shmem_ctx_t ctx, volatile long *dest, volatile const long *source, size_t nelems, int pe) __asm__("shmem_ctx_long_put_nbi");
void oxshmem_ctx_longlong_put_nbi(shmem_ctx_t ctx, volatile long long *dest, volatile const long long *source, size_t nelems, int pe) __asm__("shmem_ctx_longlong_put_nbi");
void oxshmem_ctx_uchar_put_nbi(shmem_ctx_t ctx, volatile unsigned char *dest, volatile const unsigned char *source, size_t nelems, int pe) __asm__("shmem_ctx_uchar_put_nbi");
void oxshmem_ctx_ushort_put_nbi(shmem_ctx_t ctx, volatile unsigned short *dest, volatile const unsigned short *source, size_t nelems, int pe) __asm__("shmem_ctx_ushort_put_nbi");
void oxshmem_ctx_uint_put_nbi(shmem_ctx_t ctx, volatile unsigned int *dest, volatile const unsigned int *source, size_t nelems, int pe) __asm__("shmem_ctx_uint_put_nbi");
void oxshmem_ctx_ulong_put_nbi(shmem_ctx_t ctx, volatile unsigned long *dest, volatile const unsigned long *source, size_t nelems, int pe) __asm__("shmem_ctx_ulong_put_nbi");
void oxshmem_ctx_ulonglong_put_nbi(shmem_ctx_t ctx, volatile unsigned long long *dest, volatile const unsigned long long *source, size_t nelems, int pe) __asm__("shmem_ctx_ulonglong_put_nbi");
void oxshmem_float_get_nbi(volatile float *dest, volatile const float *source, size_t nelems, int pe) __asm__("shmem_float_get_nbi");
void oxshmem_double_get_nbi(volatile double *dest, volatile const double *source, size_t nelems, int pe) __asm__("shmem_double_get_nbi");
void oxshmem_longdouble_get_nbi(volatile long double *dest, volatile const long double *source, size_t nelems, int pe) __asm__("shmem_longdouble_get_nbi");
void oxshmem_char_get_nbi(volatile char *dest, volatile const char *source, size_t nelems, int pe) __asm__("shmem_char_get_nbi");
void oxshmem_schar_get_nbi(volatile signed char *dest, volatile const signed char *source, size_t nelems, int pe) __asm__("shmem_schar_get_nbi");
void oxshmem_short_get_nbi(volatile short *dest, volatile const short *source, size_t nelems, int pe) __asm__("shmem_short_get_nbi");
void oxshmem_int_get_nbi(volatile int *dest, volatile const int *source, size_t nelems, int pe) __asm__("shmem_int_get_nbi");
void oxshmem_long_get_nbi(volatile long *dest, volatile const long *source, size_t nelems, int pe) __asm__("shmem_long_get_nbi");
void oxshmem_longlong_get_nbi(volatile long long *dest, volatile const long long *source, size_t nelems, int pe) __asm__("shmem_longlong_get_nbi");
void oxshmem_uchar_get_nbi(volatile unsigned char *dest, volatile const unsigned char *source, size_t nelems, int pe) __asm__("shmem_uchar_get_nbi");
void oxshmem_ushort_get_nbi(volatile unsigned short *dest, volatile const unsigned short *source, size_t nelems, int pe) __asm__("shmem_ushort_get_nbi");
void oxshmem_uint_get_nbi(volatile unsigned int *dest, volatile const unsigned int *source, size_t nelems, int pe) __asm__("shmem_uint_get_nbi");
void oxshmem_ulong_get_nbi(volatile unsigned long *dest, volatile const unsigned long *source, size_t nelems, int pe) __asm__("shmem_ulong_get_nbi");
void oxshmem_ulonglong_get_nbi(volatile unsigned long long *dest, volatile const unsigned long long *source, size_t nelems, int pe) __asm__("shmem_ulonglong_get_nbi");
void oxshmem_ctx_float_get_nbi(shmem_ctx_t ctx, volatile float *dest, volatile const float *source, size_t nelems, int pe) __asm__("shmem_ctx_float_get_nbi");
void oxshmem_ctx_double_get_nbi(shmem_ctx_t ctx, volatile double *dest, volatile const double *source, size_t nelems, int pe) __asm__("shmem_ctx_double_get_nbi");
void oxshmem_ctx_longdouble_get_nbi(shmem_ctx_t ctx, volatile long double *dest, volatile const long double *source, size_t nelems, int pe) __asm__("shmem_ctx_longdouble_get_nbi");
void oxshmem_ctx_char_get_nbi(shmem_ctx_t ctx, volatile char *dest, volatile const char *source, size_t nelems, int pe) __asm__("shmem_ctx_char_get_nbi");
void oxshmem_ctx_schar_get_nbi(shmem_ctx_t ctx, volatile signed char *dest, volatile const signed char *source, size_t nelems, int pe) __asm__("shmem_ctx_schar_get_nbi");
void oxshmem_ctx_short_get_nbi(shmem_ctx_t ctx, volatile short *dest, volatile const short *source, size_t nelems, int pe) __asm__("shmem_ctx_short_get_nbi");
void oxshmem_ctx_int_get_nbi(shmem_ctx_t ctx, volatile int *dest, volatile const int *source, size_t nelems, int pe) __asm__("shmem_ctx_int_get_nbi");
void oxshmem_ctx_long_get_nbi(shmem_ctx_t ctx, volatile long *dest, volatile const long *source, size_t nelems, int pe) __asm__("shmem_ctx_long_get_nbi");
void oxshmem_ctx_longlong_get_nbi(shmem_ctx_t ctx, volatile long long *dest, volatile const long long *source, size_t nelems, int pe) __asm__("shmem_ctx_longlong_get_nbi");
void oxshmem_ctx_uchar_get_nbi(shmem_ctx_t ctx, volatile unsigned char *dest, volatile const unsigned char *source, size_t nelems, int pe) __asm__("shmem_ctx_uchar_get_nbi");
void oxshmem_ctx_ushort_get_nbi(shmem_ctx_t ctx, volatile unsigned short *dest, volatile const unsigned short *source, size_t nelems, int pe) __asm__("shmem_ctx_ushort_get_nbi");
void oxshmem_ctx_uint_get_nbi(shmem_ctx_t ctx, volatile unsigned int *dest, volatile const unsigned int *source, size_t nelems, int pe) __asm__("shmem_ctx_uint_get_nbi");
void oxshmem_ctx_ulong_get_nbi(shmem_ctx_t ctx, volatile unsigned long *dest, volatile const unsigned long *source, size_t nelems, int pe) __asm__("shmem_ctx_ulong_get_nbi");
void oxshmem_ctx_ulonglong_get_nbi(shmem_ctx_t ctx, volatile unsigned long long *dest, volatile const unsigned long long *source, size_t nelems, int pe) __asm__("shmem_ctx_ulonglong_get_nbi");
float oxshmem_ctx_float_atomic_fetch(shmem_ctx_t ctx, volatile const float *source, int pe) __asm__("shmem_ctx_float_atomic_fetch");
double oxshmem_ctx_double_atomic_fetch(shmem_ctx_t ctx, volatile const double *source, int pe) __asm__("shmem_ctx_double_atomic_fetch");
int oxshmem_ctx_int_atomic_fetch(shmem_ctx_t ctx, volatile const int *source, int pe) __asm__("shmem_ctx_int_atomic_fetch");
long oxshmem_ctx_long_atomic_fetch(shmem_ctx_t ctx, volatile const long *source, int pe) __asm__("shmem_ctx_long_atomic_fetch");
long long oxshmem_ctx_longlong_atomic_fetch(shmem_ctx_t ctx, volatile const long long *source, int pe) __asm__("shmem_ctx_longlong_atomic_fetch");
unsigned int oxshmem_ctx_uint_atomic_fetch(shmem_ctx_t ctx, volatile const unsigned int *source, int pe) __asm__("shmem_ctx_uint_atomic_fetch");
unsigned long oxshmem_ctx_ulong_atomic_fetch(shmem_ctx_t ctx, volatile const unsigned long *source, int pe) __asm__("shmem_ctx_ulong_atomic_fetch");
unsigned long long oxshmem_ctx_ulonglong_atomic_fetch(shmem_ctx_t ctx, volatile const unsigned long long *source, int pe) __asm__("shmem_ctx_ulonglong_atomic_fetch");
void oxshmem_ctx_float_atomic_set(shmem_ctx_t ctx, volatile float *dest, float value, int pe) __asm__("shmem_ctx_float_atomic_set");
void oxshmem_ctx_double_atomic_set(shmem_ctx_t ctx, volatile double *dest, double value, int pe) __asm__("shmem_ctx_double_atomic_set");
void oxshmem_ctx_int_atomic_set(shmem_ctx_t ctx, volatile int *dest, int value, int pe) __asm__("shmem_ctx_int_atomic_set");
void oxshmem_ctx_long_atomic_set(shmem_ctx_t ctx, volatile long *dest, long value, int pe) __asm__("shmem_ctx_long_atomic_set");
void oxshmem_ctx_longlong_atomic_set(shmem_ctx_t ctx, volatile long long *dest, long long value, int pe) __asm__("shmem_ctx_longlong_atomic_set");
void oxshmem_ctx_uint_atomic_set(shmem_ctx_t ctx, volatile unsigned int *dest, unsigned int value, int pe) __asm__("shmem_ctx_uint_atomic_set");
void oxshmem_ctx_ulong_atomic_set(shmem_ctx_t ctx, volatile unsigned long *dest, unsigned long value, int pe) __asm__("shmem_ctx_ulong_atomic_set");
void oxshmem_ctx_ulonglong_atomic_set(shmem_ctx_t ctx, volatile unsigned long long *dest, unsigned long long value, int pe) __asm__("shmem_ctx_ulonglong_atomic_set");
int oxshmem_ctx_int_atomic_compare_swap(shmem_ctx_t ctx, volatile int *dest, int cond, int value, int pe) __asm__("shmem_ctx_int_atomic_compare_swap");
long oxshmem_ctx_long_atomic_compare_swap(shmem_ctx_t ctx, volatile long *dest, long cond, long value, int pe) __asm__("shmem_ctx_long_atomic_compare_swap");
long long oxshmem_ctx_longlong_atomic_compare_swap(shmem_ctx_t ctx, volatile long long *dest, long long cond, long long value, int pe) __asm__("shmem_ctx_longlong_atomic_compare_swap");
unsigned int oxshmem_ctx_uint_atomic_compare_swap(shmem_ctx_t ctx, volatile unsigned int *dest, unsigned int cond, unsigned int value, int pe) __asm__("shmem_ctx_uint_atomic_compare_swap");
unsigned long oxshmem_ctx_ulong_atomic_compare_swap(shmem_ctx_t ctx, volatile unsigned long *dest, unsigned long cond, unsigned long value, int pe) __asm__("shmem_ctx_ulong_atomic_compare_swap");
unsigned long long oxshmem_ctx_ulonglong_atomic_compare_swap(shmem_ctx_t ctx, volatile unsigned long long *dest, unsigned long long cond, unsigned long long value, int pe) __asm__("shmem_ctx_ulonglong_atomic_compare_swap");
float oxshmem_ctx_float_atomic_swap(shmem_ctx_t ctx, volatile float *dest, float value, int pe) __asm__("shmem_ctx_float_atomic_swap");
double oxshmem_ctx_double_atomic_swap(shmem_ctx_t ctx, volatile double *dest, double value, int pe) __asm__("shmem_ctx_double_atomic_swap");
int oxshmem_ctx_int_atomic_swap(shmem_ctx_t ctx, volatile int *dest, int value, int pe) __asm__("shmem_ctx_int_atomic_swap");
long oxshmem_ctx_long_atomic_swap(shmem_ctx_t ctx, volatile long *dest, long value, int pe) __asm__("shmem_ctx_long_atomic_swap");
long long oxshmem_ctx_longlong_atomic_swap(shmem_ctx_t ctx, volatile long long *dest, long long value, int pe) __asm__("shmem_ctx_longlong_atomic_swap");
unsigned int oxshmem_ctx_uint_atomic_swap(shmem_ctx_t ctx, volatile unsigned int *dest, unsigned int value, int pe) __asm__("shmem_ctx_uint_atomic_swap");
unsigned long oxshmem_ctx_ulong_atomic_swap(shmem_ctx_t ctx, volatile unsigned long *dest, unsigned long value, int pe) __asm__("shmem_ctx_ulong_atomic_swap");
unsigned long long oxshmem_ctx_ulonglong_atomic_swap(shmem_ctx_t ctx, volatile unsigned long long *dest, unsigned long long value, int pe) __asm__("shmem_ctx_ulonglong_atomic_swap");
int oxshmem_ctx_int_atomic_fetch_inc(shmem_ctx_t ctx, volatile int *dest, int pe) __asm__("shmem_ctx_int_atomic_fetch_inc");
long oxshmem_ctx_long_atomic_fetch_inc(shmem_ctx_t ctx, volatile long *dest, int pe) __asm__("shmem_ctx_long_atomic_fetch_inc");
long long oxshmem_ctx_longlong_atomic_fetch_inc(shmem_ctx_t ctx, volatile long long *dest, int pe) __asm__("shmem_ctx_longlong_atomic_fetch_inc");
unsigned int oxshmem_ctx_uint_atomic_fetch_inc(shmem_ctx_t ctx, volatile unsigned int *dest, int pe) __asm__("shmem_ctx_uint_atomic_fetch_inc");
unsigned long oxshmem_ctx_ulong_atomic_fetch_inc(shmem_ctx_t ctx, volatile unsigned long *dest, int pe) __asm__("shmem_ctx_ulong_atomic_fetch_inc");
unsigned long long oxshmem_ctx_ulonglong_atomic_fetch_inc(shmem_ctx_t ctx, volatile unsigned long long *dest, int pe) __asm__("shmem_ctx_ulonglong_atomic_fetch_inc");
void oxshmem_ctx_int_atomic_inc(shmem_ctx_t ctx, volatile int *dest, int pe) __asm__("shmem_ctx_int_atomic_inc");
void oxshmem_ctx_long_atomic_inc(shmem_ctx_t ctx, volatile long *dest, int pe) __asm__("shmem_ctx_long_atomic_inc");
void oxshmem_ctx_longlong_atomic_inc(shmem_ctx_t ctx, volatile long long *dest, int pe) __asm__("shmem_ctx_longlong_atomic_inc");
void oxshmem_ctx_uint_atomic_inc(shmem_ctx_t ctx, volatile unsigned int *dest, int pe) __asm__("shmem_ctx_uint_atomic_inc");
void oxshmem_ctx_ulong_atomic_inc(shmem_ctx_t ctx, volatile unsigned long *dest, int pe) __asm__("shmem_ctx_ulong_atomic_inc");
void oxshmem_ctx_ulonglong_atomic_inc(shmem_ctx_t ctx, volatile unsigned long long *dest, int pe) __asm__("shmem_ctx_ulonglong_atomic_inc");
int oxshmem_ctx_int_atomic_fetch_add(shmem_ctx_t ctx, volatile int *dest, int value, int pe) __asm__("shmem_ctx_int_atomic_fetch_add");
long oxshmem_ctx_long_atomic_fetch_add(shmem_ctx_t ctx, volatile long *dest, long value, int pe) __asm__("shmem_ctx_long_atomic_fetch_add");
long long oxshmem_ctx_longlong_atomic_fetch_add(shmem_ctx_t ctx, volatile long long *dest, long long value, int pe) __asm__("shmem_ctx_longlong_atomic_fetch_add");
unsigned int oxshmem_ctx_uint_atomic_fetch_add(shmem_ctx_t ctx, volatile unsigned int *dest, unsigned int value, int pe) __asm__("shmem_ctx_uint_atomic_fetch_add");
unsigned long oxshmem_ctx_ulong_atomic_fetch_add(shmem_ctx_t ctx, volatile unsigned long *dest, unsigned long value, int pe) __asm__("shmem_ctx_ulong_atomic_fetch_add");
unsigned long long oxshmem_ctx_ulonglong_atomic_fetch_add(shmem_ctx_t ctx, volatile unsigned long long *dest, unsigned long long value, int pe) __asm__("shmem_ctx_ulonglong_atomic_fetch_add");
void oxshmem_ctx_int_atomic_add(shmem_ctx_t ctx, volatile int *dest, int value, int pe) __asm__("shmem_ctx_int_atomic_add");
void oxshmem_ctx_long_atomic_add(shmem_ctx_t ctx, volatile long *dest, long value, int pe) __asm__("shmem_ctx_long_atomic_add");
void oxshmem_ctx_longlong_atomic_add(shmem_ctx_t ctx, volatile long long *dest, long long value, int pe) __asm__("shmem_ctx_longlong_atomic_add");
void oxshmem_ctx_uint_atomic_add(shmem_ctx_t ctx, volatile unsigned int *dest, unsigned int value, int pe) __asm__("shmem_ctx_uint_atomic_add");
void oxshmem_ctx_ulong_atomic_add(shmem_ctx_t ctx, volatile unsigned long *dest, unsigned long value, int pe) __asm__("shmem_ctx_ulong_atomic_add");
void oxshmem_ctx_ulonglong_atomic_add(shmem_ctx_t ctx, volatile unsigned long long *dest, unsigned long long value, int pe) __asm__("shmem_ctx_ulonglong_atomic_add");
unsigned int oxshmem_ctx_uint_atomic_fetch_and(shmem_ctx_t ctx, volatile unsigned int *dest, unsigned int value, int pe) __asm__("shmem_ctx_uint_atomic_fetch_and");
unsigned long oxshmem_ctx_ulong_atomic_fetch_and(shmem_ctx_t ctx, volatile unsigned long *dest, unsigned long value, int pe) __asm__("shmem_ctx_ulong_atomic_fetch_and");
unsigned long long oxshmem_ctx_ulonglong_atomic_fetch_and(shmem_ctx_t ctx, volatile unsigned long long *dest, unsigned long long value, int pe) __asm__("shmem_ctx_ulonglong_atomic_fetch_and");
int32_t oxshmem_ctx_int32_atomic_fetch_and(shmem_ctx_t ctx, volatile int32_t *dest, int32_t value, int pe) __asm__("shmem_ctx_int32_atomic_fetch_and");
int64_t oxshmem_ctx_int64_atomic_fetch_and(shmem_ctx_t ctx, volatile int64_t *dest, int64_t value, int pe) __asm__("shmem_ctx_int64_atomic_fetch_and");
void oxshmem_ctx_uint_atomic_and(shmem_ctx_t ctx, volatile unsigned int *dest, unsigned int value, int pe) __asm__("shmem_ctx_uint_atomic_and");
void oxshmem_ctx_ulong_atomic_and(shmem_ctx_t ctx, volatile unsigned long *dest, unsigned long value, int pe) __asm__("shmem_ctx_ulong_atomic_and");
void oxshmem_ctx_ulonglong_atomic_and(shmem_ctx_t ctx, volatile unsigned long long *dest, unsigned long long value, int pe) __asm__("shmem_ctx_ulonglong_atomic_and");
void oxshmem_ctx_int32_atomic_and(shmem_ctx_t ctx, volatile int32_t *dest, int32_t value, int pe) __asm__("shmem_ctx_int32_atomic_and");
void oxshmem_ctx_int64_atomic_and(shmem_ctx_t ctx, volatile int64_t *dest, int64_t value, int pe) __asm__("shmem_ctx_int64_atomic_and");
unsigned int oxshmem_ctx_uint_atomic_fetch_or(shmem_ctx_t ctx, volatile unsigned int *dest, unsigned int value, int pe) __asm__("shmem_ctx_uint_atomic_fetch_or");
unsigned long oxshmem_ctx_ulong_atomic_fetch_or(shmem_ctx_t ctx, volatile unsigned long *dest, unsigned long value, int pe) __asm__("shmem_ctx_ulong_atomic_fetch_or");
unsigned long long oxshmem_ctx_ulonglong_atomic_fetch_or(shmem_ctx_t ctx, volatile unsigned long long *dest, unsigned long long value, int pe) __asm__("shmem_ctx_ulonglong_atomic_fetch_or");
int32_t oxshmem_ctx_int32_atomic_fetch_or(shmem_ctx_t ctx, volatile int32_t *dest, int32_t value, int pe) __asm__("shmem_ctx_int32_atomic_fetch_or");
int64_t oxshmem_ctx_int64_atomic_fetch_or(shmem_ctx_t ctx, volatile int64_t *dest, int64_t value, int pe) __asm__("shmem_ctx_int64_atomic_fetch_or");
void oxshmem_ctx_uint_atomic_or(shmem_ctx_t ctx, volatile unsigned int *dest, unsigned int value, int pe) __asm__("shmem_ctx_uint_atomic_or");
void oxshmem_ctx_ulong_atomic_or(shmem_ctx_t ctx, volatile unsigned long *dest, unsigned long value, int pe) __asm__("shmem_ctx_ulong_atomic_or");
void oxshmem_ctx_ulonglong_atomic_or(shmem_ctx_t ctx, volatile unsigned long long *dest, unsigned long long value, int pe) __asm__("shmem_ctx_ulonglong_atomic_or");
void oxshmem_ctx_int32_atomic_or(shmem_ctx_t ctx, volatile int32_t *dest, int32_t value, int pe) __asm__("shmem_ctx_int32_atomic_or");
void oxshmem_ctx_int64_atomic_or(shmem_ctx_t ctx, volatile int64_t *dest, int64_t value, int pe) __asm__("shmem_ctx_int64_atomic_or");
unsigned int oxshmem_ctx_uint_atomic_fetch_xor(shmem_ctx_t ctx, volatile unsigned int *dest, unsigned int value, int pe) __asm__("shmem_ctx_uint_atomic_fetch_xor");
unsigned long oxshmem_ctx_ulong_atomic_fetch_xor(shmem_ctx_t ctx, volatile unsigned long *dest, unsigned long value, int pe) __asm__("shmem_ctx_ulong_atomic_fetch_xor");
unsigned long long oxshmem_ctx_ulonglong_atomic_fetch_xor(shmem_ctx_t ctx, volatile unsigned long long *dest, unsigned long long value, int pe) __asm__("shmem_ctx_ulonglong_atomic_fetch_xor");
int32_t oxshmem_ctx_int32_atomic_fetch_xor(shmem_ctx_t ctx, volatile int32_t *dest, int32_t value, int pe) __asm__("shmem_ctx_int32_atomic_fetch_xor");
int64_t oxshmem_ctx_int64_atomic_fetch_xor(shmem_ctx_t ctx, volatile int64_t *dest, int64_t value, int pe) __asm__("shmem_ctx_int64_atomic_fetch_xor");
void oxshmem_ctx_uint_atomic_xor(shmem_ctx_t ctx, volatile unsigned int *dest, unsigned int value, int pe) __asm__("shmem_ctx_uint_atomic_xor");
void oxshmem_ctx_ulong_atomic_xor(shmem_ctx_t ctx, volatile unsigned long *dest, unsigned long value, int pe) __asm__("shmem_ctx_ulong_atomic_xor");
void oxshmem_ctx_ulonglong_atomic_xor(shmem_ctx_t ctx, volatile unsigned long long *dest, unsigned long long value, int pe) __asm__("shmem_ctx_ulonglong_atomic_xor");
void oxshmem_ctx_int32_atomic_xor(shmem_ctx_t ctx, volatile int32_t *dest, int32_t value, int pe) __asm__("shmem_ctx_int32_atomic_xor");
void oxshmem_ctx_int64_atomic_xor(shmem_ctx_t ctx, volatile int64_t *dest, int64_t value, int pe) __asm__("shmem_ctx_int64_atomic_xor");
void oxshmem_float_atomic_fetch_nbi(float *fetch, volatile const float *source, int pe) __asm__("shmem_float_atomic_fetch_nbi");
void oxshmem_double_atomic_fetch_nbi(double *fetch, volatile const double *source, int pe) __asm__("shmem_double_atomic_fetch_nbi");
void oxshmem_int_atomic_fetch_nbi(int *fetch, volatile const int *source, int pe) __asm__("shmem_int_atomic_fetch_nbi");
void oxshmem_long_atomic_fetch_nbi(long *fetch, volatile const long *source, int pe) __asm__("shmem_long_atomic_fetch_nbi");
void oxshmem_longlong_atomic_fetch_nbi(long long *fetch, volatile const long long *source, int pe) __asm__("shmem_longlong_atomic_fetch_nbi");
void oxshmem_uint_atomic_fetch_nbi(unsigned int *fetch, volatile const unsigned int *source, int pe) __asm__("shmem_uint_atomic_fetch_nbi");
void oxshmem_ulong_atomic_fetch_nbi(unsigned long *fetch, volatile const unsigned long *source, int pe) __asm__("shmem_ulong_atomic_fetch_nbi");
void oxshmem_ulonglong_atomic_fetch_nbi(unsigned long long *fetch, volatile const unsigned long long *source, int pe) __asm__("shmem_ulonglong_atomic_fetch_nbi");
void oxshmem_ctx_float_atomic_fetch_nbi(shmem_ctx_t ctx, float *fetch, volatile const float *source, int pe) __asm__("shmem_ctx_float_atomic_fetch_nbi");
void oxshmem_ctx_double_atomic_fetch_nbi(shmem_ctx_t ctx, double *fetch, volatile const double *source, int pe) __asm__("shmem_ctx_double_atomic_fetch_nbi");
void oxshmem_ctx_int_atomic_fetch_nbi(shmem_ctx_t ctx, int *fetch, volatile const int *source, int pe) __asm__("shmem_ctx_int_atomic_fetch_nbi");
void oxshmem_ctx_long_atomic_fetch_nbi(shmem_ctx_t ctx, long *fetch, volatile const long *source, int pe) __asm__("shmem_ctx_long_atomic_fetch_nbi");
void oxshmem_ctx_longlong_atomic_fetch_nbi(shmem_ctx_t ctx, long long *fetch, volatile const long long *source, int pe) __asm__("shmem_ctx_longlong_atomic_fetch_nbi");
void oxshmem_ctx_uint_atomic_fetch_nbi(shmem_ctx_t ctx, unsigned int *fetch, volatile const unsigned int *source, int pe) __asm__("shmem_ctx_uint_atomic_fetch_nbi");
void oxshmem_ctx_ulong_atomic_fetch_nbi(shmem_ctx_t ctx, unsigned long *fetch, volatile const unsigned long *source, int pe) __asm__("shmem_ctx_ulong_atomic_fetch_nbi");
void oxshmem_ctx_ulonglong_atomic_fetch_nbi(shmem_ctx_t ctx, unsigned long long *fetch, volatile const unsigned long long *source, int pe) __asm__("shmem_ctx_ulonglong_atomic_fetch_nbi");
void oxshmem_int_atomic_compare_swap_nbi(int *fetch, volatile int *dest, int cond, int value, int pe) __asm__("shmem_int_atomic_compare_swap_nbi");
void oxshmem_long_atomic_compare_swap_nbi(long *fetch, volatile long *dest, long cond, long value, int pe) __asm__("shmem_long_atomic_compare_swap_nbi");
void oxshmem_longlong_atomic_compare_swap_nbi(long long *fetch, volatile long long *dest, long long cond, long long value, int pe) __asm__("shmem_longlong_atomic_compare_swap_nbi");
void oxshmem_uint_atomic_compare_swap_nbi(unsigned int *fetch, volatile unsigned int *dest, unsigned int cond, unsigned int value, int pe) __asm__("shmem_uint_atomic_compare_swap_nbi");
void oxshmem_ulong_atomic_compare_swap_nbi(unsigned long *fetch, volatile unsigned long *dest, unsigned long cond, unsigned long value, int pe) __asm__("shmem_ulong_atomic_compare_swap_nbi");
void oxshmem_ulonglong_atomic_compare_swap_nbi(unsigned long long *fetch, volatile unsigned long long *dest, unsigned long long cond, unsigned long long value, int pe) __asm__("shmem_ulonglong_atomic_compare_swap_nbi");
void oxshmem_ctx_int_atomic_compare_swap_nbi(shmem_ctx_t ctx, int *fetch, volatile int *dest, int cond, int value, int pe) __asm__("shmem_ctx_int_atomic_compare_swap_nbi");
void oxshmem_ctx_long_atomic_compare_swap_nbi(shmem_ctx_t ctx, long *fetch, volatile long *dest, long cond, long value, int pe) __asm__("shmem_ctx_long_atomic_compare_swap_nbi");
void oxshmem_ctx_longlong_atomic_compare_swap_nbi(shmem_ctx_t ctx, long long *fetch, volatile long long *dest, long long cond, long long value, int pe) __asm__("shmem_ctx_longlong_atomic_compare_swap_nbi");
void oxshmem_ctx_uint_atomic_compare_swap_nbi(shmem_ctx_t ctx, unsigned int *fetch, volatile unsigned int *dest, unsigned int cond, unsigned int value, int pe) __asm__("shmem_ctx_uint_atomic_compare_swap_nbi");
void oxshmem_ctx_ulong_atomic_compare_swap_nbi(shmem_ctx_t ctx, unsigned long *fetch, volatile unsigned long *dest, unsigned long cond, unsigned long value, int pe) __asm__("shmem_ctx_ulong_atomic_compare_swap_nbi");
void oxshmem_ctx_ulonglong_atomic_compare_swap_nbi(shmem_ctx_t ctx, unsigned long long *fetch, volatile unsigned long long *dest, unsigned long long cond, unsigned long long value, int pe) __asm__("shmem_ctx_ulonglong_atomic_compare_swap_nbi");
void oxshmem_float_atomic_swap_nbi(float *fetch, volatile float *dest, float value, int pe) __asm__("shmem_float_atomic_swap_nbi");
void oxshmem_double_atomic_swap_nbi(double *fetch, volatile double *dest, double value, int pe) __asm__("shmem_double_atomic_swap_nbi");
void oxshmem_int_atomic_swap_nbi(int *fetch, volatile int *dest, int value, int pe) __asm__("shmem_int_atomic_swap_nbi");
void oxshmem_long_atomic_swap_nbi(long *fetch, volatile long *dest, long value, int pe) __asm__("shmem_long_atomic_swap_nbi");
void oxshmem_longlong_atomic_swap_nbi(long long *fetch, volatile long long *dest, long long value, int pe) __asm__("shmem_longlong_atomic_swap_nbi");
void oxshmem_uint_atomic_swap_nbi(unsigned int *fetch, volatile unsigned int *dest, unsigned int value, int pe) __asm__("shmem_uint_atomic_swap_nbi");
void oxshmem_ulong_atomic_swap_nbi(unsigned long *fetch, volatile unsigned long *dest, unsigned long value, int pe) __asm__("shmem_ulong_atomic_swap_nbi");
void oxshmem_ulonglong_atomic_swap_nbi(unsigned long long *fetch, volatile unsigned long long *dest, unsigned long long value, int pe) __asm__("shmem_ulonglong_atomic_swap_nbi");
void oxshmem_ctx_float_atomic_swap_nbi(shmem_ctx_t ctx, float *fetch, volatile float *dest, float value, int pe) __asm__("shmem_ctx_float_atomic_swap_nbi");
void oxshmem_ctx_double_atomic_swap_nbi(shmem_ctx_t ctx, double *fetch, volatile double *dest, double value, int pe) __asm__("shmem_ctx_double_atomic_swap_nbi");
void oxshmem_ctx_int_atomic_swap_nbi(shmem_ctx_t ctx, int *fetch, volatile int *dest, int value, int pe) __asm__("shmem_ctx_int_atomic_swap_nbi");
void oxshmem_ctx_long_atomic_swap_nbi(shmem_ctx_t ctx, long *fetch, volatile long *dest, long value, int pe) __asm__("shmem_ctx_long_atomic_swap_nbi");
void oxshmem_ctx_longlong_atomic_swap_nbi(shmem_ctx_t ctx, long long *fetch, volatile long long *dest, long long value, int pe) __asm__("shmem_ctx_longlong_atomic_swap_nbi");
void oxshmem_ctx_uint_atomic_swap_nbi(shmem_ctx_t ctx, unsigned int *fetch, volatile unsigned int *dest, unsigned int value, int pe) __asm__("shmem_ctx_uint_atomic_swap_nbi");
void oxshmem_ctx_ulong_atomic_swap_nbi(shmem_ctx_t ctx, unsigned long *fetch, volatile unsigned long *dest, unsigned long value, int pe) __asm__("shmem_ctx_ulong_atomic_swap_nbi");
void oxshmem_ctx_ulonglong_atomic_swap_nbi(shmem_ctx_t ctx, unsigned long long *fetch, volatile unsigned long long *dest, unsigned long long value, int pe) __asm__("shmem_ctx_ulonglong_atomic_swap_nbi");
void oxshmem_int_atomic_fetch_inc_nbi(int *fetch, volatile int *dest, int pe) __asm__("shmem_int_atomic_fetch_inc_nbi");
void oxshmem_long_atomic_fetch_inc_nbi(long *fetch, volatile long *dest, int pe) __asm__("shmem_long_atomic_fetch_inc_nbi");
void oxshmem_longlong_atomic_fetch_inc_nbi(long long *fetch, volatile long long *dest, int pe) __asm__("shmem_longlong_atomic_fetch_inc_nbi");
void oxshmem_uint_atomic_fetch_inc_nbi(unsigned int *fetch, volatile unsigned int *dest, int pe) __asm__("shmem_uint_atomic_fetch_inc_nbi");
void oxshmem_ulong_atomic_fetch_inc_nbi(unsigned long *fetch, volatile unsigned long *dest, int pe) __asm__("shmem_ulong_atomic_fetch_inc_nbi");
void oxshmem_ulonglong_atomic_fetch_inc_nbi(unsigned long long *fetch, volatile unsigned long long *dest, int pe) __asm__("shmem_ulonglong_atomic_fetch_inc_nbi");
void oxshmem_ctx_int_atomic_fetch_inc_nbi(shmem_ctx_t ctx, int *fetch, volatile int *dest, int pe) __asm__("shmem_ctx_int_atomic_fetch_inc_nbi");
void oxshmem_ctx_long_atomic_fetch_inc_nbi(shmem_ctx_t ctx, long *fetch, volatile long *dest, int pe) __asm__("shmem_ctx_long_atomic_fetch_inc_nbi");
void oxshmem_ctx_longlong_atomic_fetch_inc_nbi(shmem_ctx_t ctx, long long *fetch, volatile long long *dest, int pe) __asm__("shmem_ctx_longlong_atomic_fetch_inc_nbi");
void oxshmem_ctx_uint_atomic_fetch_inc_nbi(shmem_ctx_t ctx, unsigned int *fetch, volatile unsigned int *dest, int pe) __asm__("shmem_ctx_uint_atomic_fetch_inc_nbi");
void oxshmem_ctx_ulong_atomic_fetch_inc_nbi(shmem_ctx_t ctx, unsigned long *fetch, volatile unsigned long *dest, int pe) __asm__("shmem_ctx_ulong_atomic_fetch_inc_nbi");
void oxshmem_ctx_ulonglong_atomic_fetch_inc_nbi(shmem_ctx_t ctx, unsigned long long *fetch, volatile unsigned long long *dest, int pe) __asm__("shmem_ctx_ulonglong_atomic_fetch_inc_nbi");
void oxshmem_int_atomic_fetch_add_nbi(int *fetch, volatile int *dest, int value, int pe) __asm__("shmem_int_atomic_fetch_add_nbi");
void oxshmem_long_atomic_fetch_add_nbi(long *fetch, volatile long *dest, long value, int pe) __asm__("shmem_long_atomic_fetch_add_nbi");
void oxshmem_longlong_atomic_fetch_add_nbi(long long *fetch, volatile long long *dest, long long value, int pe) __asm__("shmem_longlong_atomic_fetch_add_nbi");
void oxshmem_uint_atomic_fetch_add_nbi(unsigned int *fetch, volatile unsigned int *dest, unsigned int value, int pe) __asm__("shmem_uint_atomic_fetch_add_nbi");
void oxshmem_ulong_atomic_fetch_add_nbi(unsigned long *fetch, volatile unsigned long *dest, unsigned long value, int pe) __asm__("shmem_ulong_atomic_fetch_add_nbi");
void oxshmem_ulonglong_atomic_fetch_add_nbi(unsigned long long *fetch, volatile unsigned long long *dest, unsigned long long value, int pe) __asm__("shmem_ulonglong_atomic_fetch_add_nbi");
void oxshmem_ctx_int_atomic_fetch_add_nbi(shmem_ctx_t ctx, int *fetch, volatile int *dest, int value, int pe) __asm__("shmem_ctx_int_atomic_fetch_add_nbi");
void oxshmem_ctx_long_atomic_fetch_add_nbi(shmem_ctx_t ctx, long *fetch, volatile long *dest, long value, int pe) __asm__("shmem_ctx_long_atomic_fetch_add_nbi");
void oxshmem_ctx_longlong_atomic_fetch_add_nbi(shmem_ctx_t ctx, long long *fetch, volatile long long *dest, long long value, int pe) __asm__("shmem_ctx_longlong_atomic_fetch_add_nbi");
void oxshmem_ctx_uint_atomic_fetch_add_nbi(shmem_ctx_t ctx, unsigned int *fetch, volatile unsigned int *dest, unsigned int value, int pe) __asm__("shmem_ctx_uint_atomic_fetch_add_nbi");
void oxshmem_ctx_ulong_atomic_fetch_add_nbi(shmem_ctx_t ctx, unsigned long *fetch, volatile unsigned long *dest, unsigned long value, int pe) __asm__("shmem_ctx_ulong_atomic_fetch_add_nbi");
void oxshmem_ctx_ulonglong_atomic_fetch_add_nbi(shmem_ctx_t ctx, unsigned long long *fetch, volatile unsigned long long *dest, unsigned long long value, int pe) __asm__("shmem_ctx_ulonglong_atomic_fetch_add_nbi");
void oxshmem_uint_atomic_fetch_and_nbi(unsigned int *fetch, volatile unsigned int *dest, unsigned int value, int pe) __asm__("shmem_uint_atomic_fetch_and_nbi");
void oxshmem_ulong_atomic_fetch_and_nbi(unsigned long *fetch, volatile unsigned long *dest, unsigned long value, int pe) __asm__("shmem_ulong_atomic_fetch_and_nbi");
void oxshmem_ulonglong_atomic_fetch_and_nbi(unsigned long long *fetch, volatile unsigned long long *dest, unsigned long long value, int pe) __asm__("shmem_ulonglong_atomic_fetch_and_nbi");
void oxshmem_int32_atomic_fetch_and_nbi(int32_t *fetch, volatile int32_t *dest, int32_t value, int pe) __asm__("shmem_int32_atomic_fetch_and_nbi");
void oxshmem_int64_atomic_fetch_and_nbi(int64_t *fetch, volatile int64_t *dest, int64_t value, int pe) __asm__("shmem_int64_atomic_fetch_and_nbi");
void oxshmem_ctx_uint_atomic_fetch_and_nbi(shmem_ctx_t ctx, unsigned int *fetch, volatile unsigned int *dest, unsigned int value, int pe) __asm__("shmem_ctx_uint_atomic_fetch_and_nbi");
void oxshmem_ctx_ulong_atomic_fetch_and_nbi(shmem_ctx_t ctx, unsigned long *fetch, volatile unsigned long *dest, unsigned long value, int pe) __asm__("shmem_ctx_ulong_atomic_fetch_and_nbi");
void oxshmem_ctx_ulonglong_atomic_fetch_and_nbi(shmem_ctx_t ctx, unsigned long long *fetch, volatile unsigned long long *dest, unsigned long long value, int pe) __asm__("shmem_ctx_ulonglong_atomic_fetch_and_nbi");
void oxshmem_ctx_int32_atomic_fetch_and_nbi(shmem_ctx_t ctx, int32_t *fetch, volatile int32_t *dest, int32_t value, int pe) __asm__("shmem_ctx_int32_atomic_fetch_and_nbi");
void oxshmem_ctx_int64_atomic_fetch_and_nbi(shmem_ctx_t ctx, int64_t *fetch, volatile int64_t *dest, int64_t value, int pe) __asm__("shmem_ctx_int64_atomic_fetch_and_nbi");
void oxshmem_uint_atomic_fetch_or_nbi(unsigned int *fetch, volatile unsigned int *dest, unsigned int value, int pe) __asm__("shmem_uint_atomic_fetch_or_nbi");
void oxshmem_ulong_atomic_fetch_or_nbi(unsigned long *fetch, volatile unsigned long *dest, unsigned long value, int pe) __asm__("shmem_ulong_atomic_fetch_or_nbi");
void oxshmem_ulonglong_atomic_fetch_or_nbi(unsigned long long *fetch, volatile unsigned long long *dest, unsigned long long value, int pe) __asm__("shmem_ulonglong_atomic_fetch_or_nbi");
void oxshmem_int32_atomic_fetch_or_nbi(int32_t *fetch, volatile int32_t *dest, int32_t value, int pe) __asm__("shmem_int32_atomic_fetch_or_nbi");
void oxshmem_int64_atomic_fetch_or_nbi(int64_t *fetch, volatile int64_t *dest, int64_t value, int pe) __asm__("shmem_int64_atomic_fetch_or_nbi");
void oxshmem_ctx_uint_atomic_fetch_or_nbi(shmem_ctx_t ctx, unsigned int *fetch, volatile unsigned int *dest, unsigned int value, int pe) __asm__("shmem_ctx_uint_atomic_fetch_or_nbi");
void oxshmem_ctx_ulong_atomic_fetch_or_nbi(shmem_ctx_t ctx, unsigned long *fetch, volatile unsigned long *dest, unsigned long value, int pe) __asm__("shmem_ctx_ulong_atomic_fetch_or_nbi");
void oxshmem_ctx_ulonglong_atomic_fetch_or_nbi(shmem_ctx_t ctx, unsigned long long *fetch, volatile unsigned long long *dest, unsigned long long value, int pe) __asm__("shmem_ctx_ulonglong_atomic_fetch_or_nbi");
void oxshmem_ctx_int32_atomic_fetch_or_nbi(shmem_ctx_t ctx, int32_t *fetch, volatile int32_t *dest, int32_t value, int pe) __asm__("shmem_ctx_int32_atomic_fetch_or_nbi");
void oxshmem_ctx_int64_atomic_fetch_or_nbi(shmem_ctx_t ctx, int64_t *fetch, volatile int64_t *dest, int64_t value, int pe) __asm__("shmem_ctx_int64_atomic_fetch_or_nbi");
void oxshmem_uint_atomic_fetch_xor_nbi(unsigned int *fetch, volatile unsigned int *dest, unsigned int value, int pe) __asm__("shmem_uint_atomic_fetch_xor_nbi");
void oxshmem_ulong_atomic_fetch_xor_nbi(unsigned long *fetch, volatile unsigned long *dest, unsigned long value, int pe) __asm__("shmem_ulong_atomic_fetch_xor_nbi");
void oxshmem_ulonglong_atomic_fetch_xor_nbi(unsigned long long *fetch, volatile unsigned long long *dest, unsigned long long value, int pe) __asm__("shmem_ulonglong_atomic_fetch_xor_nbi");
void oxshmem_int32_atomic_fetch_xor_nbi(int32_t *fetch, volatile int32_t *dest, int32_t value, int pe) __asm__("shmem_int32_atomic_fetch_xor_nbi");
void oxshmem_int64_atomic_fetch_xor_nbi(int64_t *fetch, volatile int64_t *dest, int64_t value, int pe) __asm__("shmem_int64_atomic_fetch_xor_nbi");
void oxshmem_ctx_uint_atomic_fetch_xor_nbi(shmem_ctx_t ctx, unsigned int *fetch, volatile unsigned int *dest, unsigned int value, int pe) __asm__("shmem_ctx_uint_atomic_fetch_xor_nbi");
void oxshmem_ctx_ulong_atomic_fetch_xor_nbi(shmem_ctx_t ctx, unsigned long *fetch, volatile unsigned long *dest, unsigned long value, int pe) __asm__("shmem_ctx_ulong_atomic_fetch_xor_nbi");
void oxshmem_ctx_ulonglong_atomic_fetch_xor_nbi(shmem_ctx_t ctx, unsigned long long *fetch, volatile unsigned long long *dest, unsigned long long value, int pe) __asm__("shmem_ctx_ulonglong_atomic_fetch_xor_nbi");
void oxshmem_ctx_int32_atomic_fetch_xor_nbi(shmem_ctx_t ctx, int32_t *fetch, volatile int32_t *dest, int32_t value, int pe) __asm__("shmem_ctx_int32_atomic_fetch_xor_nbi");
void oxshmem_ctx_int64_atomic_fetch_xor_nbi(shmem_ctx_t ctx, int64_t *fetch, volatile int64_t *dest, int64_t value, int pe) __asm__("shmem_ctx_int64_atomic_fetch_xor_nbi");
void oxshmem_float_put_signal(volatile float *dest, volatile const float *source, size_t nelems, volatile uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) __asm__("shmem_float_put_signal");
void oxshmem_double_put_signal(volatile double *dest, volatile const double *source, size_t nelems, volatile uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) __asm__("shmem_double_put_signal");
void oxshmem_longdouble_put_signal(volatile long double *dest, volatile const long double *source, size_t nelems, volatile uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) __asm__("shmem_longdouble_put_signal");
void oxshmem_char_put_signal(volatile char *dest, volatile const char *source, size_t nelems, volatile uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) __asm__("shmem_char_put_signal");
void oxshmem_schar_put_signal(volatile signed char *dest, volatile const signed char *source, size_t nelems, volatile uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) __asm__("shmem_schar_put_signal");
void oxshmem_short_put_signal(volatile short *dest, volatile const short *source, size_t nelems, volatile uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) __asm__("shmem_short_put_signal");
void oxshmem_int_put_signal(volatile int *dest, volatile const int *source, size_t nelems, volatile uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) __asm__("shmem_int_put_signal");
void oxshmem_long_put_signal(volatile long *dest, volatile const long *source, size_t nelems, volatile uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) __asm__("shmem_long_put_signal");
void oxshmem_longlong_put_signal(volatile long long *dest, volatile const long long *source, size_t nelems, volatile uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) __asm__("shmem_longlong_put_signal");
void oxshmem_uchar_put_signal(volatile unsigned char *dest, volatile const unsigned char *source, size_t nelems, volatile uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) __asm__("shmem_uchar_put_signal");
void oxshmem_ushort_put_signal(volatile unsigned short *dest, volatile const unsigned short *source, size_t nelems, volatile uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) __asm__("shmem_ushort_put_signal");
void oxshmem_uint_put_signal(volatile unsigned int *dest, volatile const unsigned int *source, size_t nelems, volatile uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) __asm__("shmem_uint_put_signal");
void oxshmem_ulong_put_signal(volatile unsigned long *dest, volatile const unsigned long *source, size_t nelems, volatile uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) __asm__("shmem_ulong_put_signal");
void oxshmem_ulonglong_put_signal(volatile unsigned long long *dest, volatile const unsigned long long *source, size_t nelems, volatile uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) __asm__("shmem_ulonglong_put_signal");
void oxshmem_ctx_float_put_signal(shmem_ctx_t ctx, volatile float *dest, volatile const float *source, size_t nelems, volatile uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) __asm__("shmem_ctx_float_put_signal");
void oxshmem_ctx_double_put_signal(shmem_ctx_t ctx, volatile double *dest, volatile const double *source, size_t nelems, volatile uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) __asm__("shmem_ctx_double_put_signal");
void oxshmem_ctx_longdouble_put_signal(shmem_ctx_t ctx, volatile long double *dest, volatile const long double *source, size_t nelems, volatile uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) __asm__("shmem_ctx_longdouble_put_signal");
void oxshmem_ctx_char_put_signal(shmem_ctx_t ctx, volatile char *dest, volatile const char *source, size_t nelems, volatile uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) __asm__("shmem_ctx_char_put_signal");
void oxshmem_ctx_schar_put_signal(shmem_ctx_t ctx, volatile signed char *dest, volatile const signed char *source, size_t nelems, volatile uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) __asm__("shmem_ctx_schar_put_signal");
void oxshmem_ctx_short_put_signal(shmem_ctx_t ctx, volatile short *dest, volatile const short *source, size_t nelems, volatile uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) __asm__("shmem_ctx_short_put_signal");
void oxshmem_ctx_int_put_signal(shmem_ctx_t ctx, volatile int *dest, volatile const int *source, size_t nelems, volatile uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) __asm__("shmem_ctx_int_put_signal");
void oxshmem_ctx_long_put_signal(shmem_ctx_t ctx, volatile long *dest, volatile const long *source, size_t nelems, volatile uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) __asm__("shmem_ctx_long_put_signal");
void oxshmem_ctx_longlong_put_signal(shmem_ctx_t ctx, volatile long long *dest, volatile const long long *source, size_t nelems, volatile uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) __asm__("shmem_ctx_longlong_put_signal");
void oxshmem_ctx_uchar_put_signal(shmem_ctx_t ctx, volatile unsigned char *dest, volatile const unsigned char *source, size_t nelems, volatile uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) __asm__("shmem_ctx_uchar_put_signal");
void oxshmem_ctx_ushort_put_signal(shmem_ctx_t ctx, volatile unsigned short *dest, volatile const unsigned short *source, size_t nelems, volatile uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) __asm__("shmem_ctx_ushort_put_signal");
void oxshmem_ctx_uint_put_signal(shmem_ctx_t ctx, volatile unsigned int *dest, volatile const unsigned int *source, size_t nelems, volatile uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) __asm__("shmem_ctx_uint_put_signal");
void oxshmem_ctx_ulong_put_signal(shmem_ctx_t ctx, volatile unsigned long *dest, volatile const unsigned long *source, size_t nelems, volatile uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) __asm__("shmem_ctx_ulong_put_signal");
void oxshmem_ctx_ulonglong_put_signal(shmem_ctx_t ctx, volatile unsigned long long *dest, volatile const unsigned long long *source, size_t nelems, volatile uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) __asm__("shmem_ctx_ulonglong_put_signal");
void oxshmem_float_put_signal_nbi(volatile float *dest, volatile const float *source, size_t nelems, volatile uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) __asm__("shmem_float_put_signal_nbi");
void oxshmem_double_put_signal_nbi(volatile double *dest, volatile const double *source, size_t nelems, volatile uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) __asm__("shmem_double_put_signal_nbi");
void oxshmem_longdouble_put_signal_nbi(volatile long double *dest, volatile const long double *source, size_t nelems, volatile uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) __asm__("shmem_longdouble_put_signal_nbi");
void oxshmem_char_put_signal_nbi(volatile char *dest, volatile const char *source, size_t nelems, volatile uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) __asm__("shmem_char_put_signal_nbi");
void oxshmem_schar_put_signal_nbi(volatile signed char *dest, volatile const signed char *source, size_t nelems, volatile uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) __asm__("shmem_schar_put_signal_nbi");
void oxshmem_short_put_signal_nbi(volatile short *dest, volatile const short *source, size_t nelems, volatile uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) __asm__("shmem_short_put_signal_nbi");
void oxshmem_int_put_signal_nbi(volatile int *dest, volatile const int *source, size_t nelems, volatile uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) __asm__("shmem_int_put_signal_nbi");
void oxshmem_long_put_signal_nbi(volatile long *dest, volatile const long *source, size_t nelems, volatile uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) __asm__("shmem_long_put_signal_nbi");
void oxshmem_longlong_put_signal_nbi(volatile long long *dest, volatile const long long *source, size_t nelems, volatile uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) __asm__("shmem_longlong_put_signal_nbi");
void oxshmem_uchar_put_signal_nbi(volatile unsigned char *dest, volatile const unsigned char *source, size_t nelems, volatile uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) __asm__("shmem_uchar_put_signal_nbi");
void oxshmem_ushort_put_signal_nbi(volatile unsigned short *dest, volatile const unsigned short *source, size_t nelems, volatile uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) __asm__("shmem_ushort_put_signal_nbi");
void oxshmem_uint_put_signal_nbi(volatile unsigned int *dest, volatile const unsigned int *source, size_t nelems, volatile uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) __asm__("shmem_uint_put_signal_nbi");
void oxshmem_ulong_put_signal_nbi(volatile unsigned long *dest, volatile const unsigned long *source, size_t nelems, volatile uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) __asm__("shmem_ulong_put_signal_nbi");
void oxshmem_ulonglong_put_signal_nbi(volatile unsigned long long *dest, volatile const unsigned long long *source, size_t nelems, volatile uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) __asm__("shmem_ulonglong_put_signal_nbi");
void oxshmem_ctx_float_put_signal_nbi(shmem_ctx_t ctx, volatile float *dest, volatile const float *source, size_t nelems, volatile uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) __asm__("shmem_ctx_float_put_signal_nbi");
void oxshmem_ctx_double_put_signal_nbi(shmem_ctx_t ctx, volatile double *dest, volatile const double *source, size_t nelems, volatile uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) __asm__("shmem_ctx_double_put_signal_nbi");
void oxshmem_ctx_longdouble_put_signal_nbi(shmem_ctx_t ctx, volatile long double *dest, volatile const long double *source, size_t nelems, volatile uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) __asm__("shmem_ctx_longdouble_put_signal_nbi");
void oxshmem_ctx_char_put_signal_nbi(shmem_ctx_t ctx, volatile char *dest, volatile const char *source, size_t nelems, volatile uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) __asm__("shmem_ctx_char_put_signal_nbi");
void oxshmem_ctx_schar_put_signal_nbi(shmem_ctx_t ctx, volatile signed char *dest, volatile const signed char *source, size_t nelems, volatile uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) __asm__("shmem_ctx_schar_put_signal_nbi");
void oxshmem_ctx_short_put_signal_nbi(shmem_ctx_t ctx, volatile short *dest, volatile const short *source, size_t nelems, volatile uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) __asm__("shmem_ctx_short_put_signal_nbi");
void oxshmem_ctx_int_put_signal_nbi(shmem_ctx_t ctx, volatile int *dest, volatile const int *source, size_t nelems, volatile uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) __asm__("shmem_ctx_int_put_signal_nbi");
void oxshmem_ctx_long_put_signal_nbi(shmem_ctx_t ctx, volatile long *dest, volatile const long *source, size_t nelems, volatile uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) __asm__("shmem_ctx_long_put_signal_nbi");
void oxshmem_ctx_longlong_put_signal_nbi(shmem_ctx_t ctx, volatile long long *dest, volatile const long long *source, size_t nelems, volatile uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) __asm__("shmem_ctx_longlong_put_signal_nbi");
void oxshmem_ctx_uchar_put_signal_nbi(shmem_ctx_t ctx, volatile unsigned char *dest, volatile const unsigned char *source, size_t nelems, volatile uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) __asm__("shmem_ctx_uchar_put_signal_nbi");
void oxshmem_ctx_ushort_put_signal_nbi(shmem_ctx_t ctx, volatile unsigned short *dest, volatile const unsigned short *source, size_t nelems, volatile uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) __asm__("shmem_ctx_ushort_put_signal_nbi");
void oxshmem_ctx_uint_put_signal_nbi(shmem_ctx_t ctx, volatile unsigned int *dest, volatile const unsigned int *source, size_t nelems, volatile uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) __asm__("shmem_ctx_uint_put_signal_nbi");
void oxshmem_ctx_ulong_put_signal_nbi(shmem_ctx_t ctx, volatile unsigned long *dest, volatile const unsigned long *source, size_t nelems, volatile uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) __asm__("shmem_ctx_ulong_put_signal_nbi");
void oxshmem_ctx_ulonglong_put_signal_nbi(shmem_ctx_t ctx, volatile unsigned long long *dest, volatile const unsigned long long *source, size_t nelems, volatile uint64_t *sig_addr, uint64_t signal, int sig_op, int pe) __asm__("shmem_ctx_ulonglong_put_signal_nbi");
void oxshmem_signal_add(volatile uint64_t *sig_addr, uint64_t signal, int pe) __asm__("shmem_signal_add");
void oxshmem_ctx_signal_add(shmem_ctx_t ctx, volatile uint64_t *sig_addr, uint64_t signal, int pe) __asm__("shmem_ctx_signal_add");
void oxshmem_signal_set(volatile uint64_t *sig_addr, uint64_t signal, int pe) __asm__("shmem_signal_set");
void oxshmem_ctx_signal_set(shmem_ctx_t ctx, volatile uint64_t *sig_addr, uint64_t signal, int pe) __asm__("shmem_ctx_signal_set");
void oxshmem_int_wait_until(volatile int *ivar, int cmp, int cmp_value) __asm__("shmem_int_wait_until");
void oxshmem_long_wait_until(volatile long *ivar, int cmp, long cmp_value) __asm__("shmem_long_wait_until");
void oxshmem_longlong_wait_until(volatile long long *ivar, int cmp, long long cmp_value) __asm__("shmem_longlong_wait_until");
void oxshmem_uint_wait_until(volatile unsigned int *ivar, int cmp, unsigned int cmp_value) __asm__("shmem_uint_wait_until");
void oxshmem_ulong_wait_until(volatile unsigned long *ivar, int cmp, unsigned long cmp_value) __asm__("shmem_ulong_wait_until");
void oxshmem_ulonglong_wait_until(volatile unsigned long long *ivar, int cmp, unsigned long long cmp_value) __asm__("shmem_ulonglong_wait_until");
void oxshmem_short_wait_until(volatile short *ivar, int cmp, short cmp_value) __asm__("shmem_short_wait_until");
void oxshmem_ushort_wait_until(volatile unsigned short *ivar, int cmp, unsigned short cmp_value) __asm__("shmem_ushort_wait_until");
void oxshmem_int_wait_until_all(volatile int *ivars, size_t nelems, const int *status, int cmp, int cmp_value) __asm__("shmem_int_wait_until_all");
void oxshmem_long_wait_until_all(volatile long *ivars, size_t nelems, const int *status, int cmp, long cmp_value) __asm__("shmem_long_wait_until_all");
void oxshmem_longlong_wait_until_all(volatile long long *ivars, size_t nelems, const int *status, int cmp, long long cmp_value) __asm__("shmem_longlong_wait_until_all");
void oxshmem_uint_wait_until_all(volatile unsigned int *ivars, size_t nelems, const int *status, int cmp, unsigned int cmp_value) __asm__("shmem_uint_wait_until_all");
void oxshmem_ulong_wait_until_all(volatile unsigned long *ivars, size_t nelems, const int *status, int cmp, unsigned long cmp_value) __asm__("shmem_ulong_wait_until_all");
void oxshmem_ulonglong_wait_until_all(volatile unsigned long long *ivars, size_t nelems, const int *status, int cmp, unsigned long long cmp_value) __asm__("shmem_ulonglong_wait_until_all");
void oxshmem_short_wait_until_all(volatile short *ivars, size_t nelems, const int *status, int cmp, short cmp_value) __asm__("shmem_short_wait_until_all");
void oxshmem_ushort_wait_until_all(volatile unsigned short *ivars, size_t nelems, const int *status, int cmp, unsigned short cmp_value) __asm__("shmem_ushort_wait_until_all");
size_t oxshmem_int_wait_until_any(volatile int *ivars, size_t nelems, const int *status, int cmp, int cmp_value) __asm__("shmem_int_wait_until_any");
size_t oxshmem_long_wait_until_any(volatile long *ivars, size_t nelems, const int *status, int cmp, long cmp_value) __asm__("shmem_long_wait_until_any");
size_t oxshmem_longlong_wait_until_any(volatile long long *ivars, size_t nelems, const int *status, int cmp, long long cmp_value) __asm__("shmem_longlong_wait_until_any");
size_t oxshmem_uint_wait_until_any(volatile unsigned int *ivars, size_t nelems, const int *status, int cmp, unsigned int cmp_value) __asm__("shmem_uint_wait_until_any");
size_t oxshmem_ulong_wait_until_any(volatile unsigned long *ivars, size_t nelems, const int *status, int cmp, unsigned long cmp_value) __asm__("shmem_ulong_wait_until_any");
size_t oxshmem_ulonglong_wait_until_any(volatile unsigned long long *ivars, size_t nelems, const int *status, int cmp, unsigned long long cmp_value) __asm__("shmem_ulonglong_wait_until_any");
size_t oxshmem_short_wait_until_any(volatile short *ivars, size_t nelems, const int *status, int cmp, short cmp_value) __asm__("shmem_short_wait_until_any");
size_t oxshmem_ushort_wait_until_any(volatile unsigned short *ivars, size_t nelems, const int *status, int cmp, unsigned short cmp_value) __asm__("shmem_ushort_wait_until_any");
size_t oxshmem_int_wait_until_some(volatile int *ivars, size_t nelems, size_t *indices, const int *status, int cmp, int cmp_value) __asm__("shmem_int_wait_until_some");
size_t oxshmem_long_wait_until_some(volatile long *ivars, size_t nelems, size_t *indices, const int *status, int cmp, long cmp_value) __asm__("shmem_long_wait_until_some");
size_t oxshmem_longlong_wait_until_some(volatile long long *ivars, size_t nelems, size_t *indices, const int *status, int cmp, long long cmp_value) __asm__("shmem_longlong_wait_until_some");
size_t oxshmem_uint_wait_until_some(volatile unsigned int *ivars, size_t nelems, size_t *indices, const int *status, int cmp, unsigned int cmp_value) __asm__("shmem_uint_wait_until_some");
size_t oxshmem_ulong_wait_until_some(volatile unsigned long *ivars, size_t nelems, size_t *indices, const int *status, int cmp, unsigned long cmp_value) __asm__("shmem_ulong_wait_until_some");
size_t oxshmem_ulonglong_wait_until_some(volatile unsigned long long *ivars, size_t nelems, size_t *indices, const int *status, int cmp, unsigned long long cmp_value) __asm__("shmem_ulonglong_wait_until_some");
size_t oxshmem_short_wait_until_some(volatile short *ivars, size_t nelems, size_t *indices, const int *status, int cmp, short cmp_value) __asm__("shmem_short_wait_until_some");
size_t oxshmem_ushort_wait_until_some(volatile unsigned short *ivars, size_t nelems, size_t *indices, const int *status, int cmp, unsigned short cmp_value) __asm__("shmem_ushort_wait_until_some");
void oxshmem_int_wait_until_all_vector(volatile int *ivars, size_t nelems, const int *status, int cmp, const int *cmp_values) __asm__("shmem_int_wait_until_all_vector");
void oxshmem_long_wait_until_all_vector(volatile long *ivars, size_t nelems, const int *status, int cmp, const long *cmp_values) __asm__("shmem_long_wait_until_all_vector");
void oxshmem_longlong_wait_until_all_vector(volatile long long *ivars, size_t nelems, const int *status, int cmp, const long long *cmp_values) __asm__("shmem_longlong_wait_until_all_vector");
void oxshmem_uint_wait_until_all_vector(volatile unsigned int *ivars, size_t nelems, const int *status, int cmp, const unsigned int *cmp_values) __asm__("shmem_uint_wait_until_all_vector");
void oxshmem_ulong_wait_until_all_vector(volatile unsigned long *ivars, size_t nelems, const int *status, int cmp, const unsigned long *cmp_values) __asm__("shmem_ulong_wait_until_all_vector");
void oxshmem_ulonglong_wait_until_all_vector(volatile unsigned long long *ivars, size_t nelems, const int *status, int cmp, const unsigned long long *cmp_values) __asm__("shmem_ulonglong_wait_until_all_vector");
void oxshmem_short_wait_until_all_vector(volatile short *ivars, size_t nelems, const int *status, int cmp, const short *cmp_values) __asm__("shmem_short_wait_until_all_vector");
void oxshmem_ushort_wait_until_all_vector(volatile unsigned short *ivars, size_t nelems, const int *status, int cmp, const unsigned short *cmp_values) __asm__("shmem_ushort_wait_until_all_vector");
size_t oxshmem_int_wait_until_any_vector(volatile int *ivars, size_t nelems, const int *status, int cmp, const int *cmp_values) __asm__("shmem_int_wait_until_any_vector");
size_t oxshmem_long_wait_until_any_vector(volatile long *ivars, size_t nelems, const int *status, int cmp, const long *cmp_values) __asm__("shmem_long_wait_until_any_vector");
size_t oxshmem_longlong_wait_until_any_vector(volatile long long *ivars, size_t nelems, const int *status, int cmp, const long long *cmp_values) __asm__("shmem_longlong_wait_until_any_vector");
size_t oxshmem_uint_wait_until_any_vector(volatile unsigned int *ivars, size_t nelems, const int *status, int cmp, const unsigned int *cmp_values) __asm__("shmem_uint_wait_until_any_vector");
size_t oxshmem_ulong_wait_until_any_vector(volatile unsigned long *ivars, size_t nelems, const int *status, int cmp, const unsigned long *cmp_values) __asm__("shmem_ulong_wait_until_any_vector");
size_t oxshmem_ulonglong_wait_until_any_vector(volatile unsigned long long *ivars, size_t nelems, const int *status, int cmp, const unsigned long long *cmp_values) __asm__("shmem_ulonglong_wait_until_any_vector");
size_t oxshmem_short_wait_until_any_vector(volatile short *ivars, size_t nelems, const int *status, int cmp, const short *cmp_values) __asm__("shmem_short_wait_until_any_vector");
size_t oxshmem_ushort_wait_until_any_vector(volatile unsigned short *ivars, size_t nelems, const int *status, int cmp, const unsigned short *cmp_values) __asm__("shmem_ushort_wait_until_any_vector");
size_t oxshmem_int_wait_until_some_vector(volatile int *ivars, size_t nelems, size_t *indices, const int *status, int cmp, const int *cmp_values) __asm__("shmem_int_wait_until_some_vector");
size_t oxshmem_long_wait_until_some_vector(volatile long *ivars, size_t nelems, size_t *indices, const int *status, int cmp, const long *cmp_values) __asm__("shmem_long_wait_until_some_vector");
size_t oxshmem_longlong_wait_until_some_vector(volatile long long *ivars, size_t nelems, size_t *indices, const int *status, int cmp, const long long *cmp_values) __asm__("shmem_longlong_wait_until_some_vector");
size_t oxshmem_uint_wait_until_some_vector(volatile unsigned int *ivars, size_t nelems, size_t *indices, const int *status, int cmp, const unsigned int *cmp_values) __asm__("shmem_uint_wait_until_some_vector");
size_t oxshmem_ulong_wait_until_some_vector(volatile unsigned long *ivars, size_t nelems, size_t *indices, const int *status, int cmp, const unsigned long *cmp_values) __asm__("shmem_ulong_wait_until_some_vector");
size_t oxshmem_ulonglong_wait_until_some_vector(volatile unsigned long long *ivars, size_t nelems, size_t *indices, const int *status, int cmp, const unsigned long long *cmp_values) __asm__("shmem_ulonglong_wait_until_some_vector");
size_t oxshmem_short_wait_until_some_vector(volatile short *ivars, size_t nelems, size_t *indices, const int *status, int cmp, const short *cmp_values) __asm__("shmem_short_wait_until_some_vector");
size_t oxshmem_ushort_wait_until_some_vector(volatile unsigned short *ivars, size_t nelems, size_t *indices, const int *status, int cmp, const unsigned short *cmp_values) __asm__("shmem_ushort_wait_until_some_vector");
int oxshmem_int_test(volatile int *ivar, int cmp, int cmp_value) __asm__("shmem_int_test");
int oxshmem_long_test(volatile long *ivar, int cmp, long cmp_value) __asm__("shmem_long_test");
int oxshmem_longlong_test(volatile long long *ivar, int cmp, long long cmp_value) __asm__("shmem_longlong_test");
int oxshmem_uint_test(volatile unsigned int *ivar, int cmp, unsigned int cmp_value) __asm__("shmem_uint_test");
int oxshmem_ulong_test(volatile unsigned long *ivar, int cmp, unsigned long cmp_value) __asm__("shmem_ulong_test");
int oxshmem_ulonglong_test(volatile unsigned long long *ivar, int cmp, unsigned long long cmp_value) __asm__("shmem_ulonglong_test");
int oxshmem_short_test(volatile short *ivar, int cmp, short cmp_value) __asm__("shmem_short_test");
int oxshmem_ushort_test(volatile unsigned short *ivar, int cmp, unsigned short cmp_value) __asm__("shmem_ushort_test");
int oxshmem_int_test_all(volatile int *ivars, size_t nelems, const int *status, int cmp, int cmp_value) __asm__("shmem_int_test_all");
int oxshmem_long_test_all(volatile long *ivars, size_t nelems, const int *status, int cmp, long cmp_value) __asm__("shmem_long_test_all");
int oxshmem_longlong_test_all(volatile long long *ivars, size_t nelems, const int *status, int cmp, long long cmp_value) __asm__("shmem_longlong_test_all");
int oxshmem_uint_test_all(volatile unsigned int *ivars, size_t nelems, const int *status, int cmp, unsigned int cmp_value) __asm__("shmem_uint_test_all");
int oxshmem_ulong_test_all(volatile unsigned long *ivars, size_t nelems, const int *status, int cmp, unsigned long cmp_value) __asm__("shmem_ulong_test_all");
int oxshmem_ulonglong_test_all(volatile unsigned long long *ivars, size_t nelems, const int *status, int cmp, unsigned long long cmp_value) __asm__("shmem_ulonglong_test_all");
int oxshmem_short_test_all(volatile short *ivars, size_t nelems, const int *status, int cmp, short cmp_value) __asm__("shmem_short_test_all");
int oxshmem_ushort_test_all(volatile unsigned short *ivars, size_t nelems, const int *status, int cmp, unsigned short cmp_value) __asm__("shmem_ushort_test_all");
size_t oxshmem_int_test_any(volatile int *ivars, size_t nelems, const int *status, int cmp, int cmp_value) __asm__("shmem_int_test_any");
size_t oxshmem_long_test_any(volatile long *ivars, size_t nelems, const int *status, int cmp, long cmp_value) __asm__("shmem_long_test_any");
size_t oxshmem_longlong_test_any(volatile long long *ivars, size_t nelems, const int *status, int cmp, long long cmp_value) __asm__("shmem_longlong_test_any");
size_t oxshmem_uint_test_any(volatile unsigned int *ivars, size_t nelems, const int *status, int cmp, unsigned int cmp_value) __asm__("shmem_uint_test_any");
size_t oxshmem_ulong_test_any(volatile unsigned long *ivars, size_t nelems, const int *status, int cmp, unsigned long cmp_value) __asm__("shmem_ulong_test_any");
size_t oxshmem_ulonglong_test_any(volatile unsigned long long *ivars, size_t nelems, const int *status, int cmp, unsigned long long cmp_value) __asm__("shmem_ulonglong_test_any");
size_t oxshmem_short_test_any(volatile short *ivars, size_t nelems, const int *status, int cmp, short cmp_value) __asm__("shmem_short_test_any");
size_t oxshmem_ushort_test_any(volatile unsigned short *ivars, size_t nelems, const int *status, int cmp, unsigned short cmp_value) __asm__("shmem_ushort_test_any");
size_t oxshmem_int_test_some(volatile int *ivars, size_t nelems, size_t *indices, const int *status, int cmp, int cmp_value) __asm__("shmem_int_test_some");
size_t oxshmem_long_test_some(volatile long *ivars, size_t nelems, size_t *indices, const int *status, int cmp, long cmp_value) __asm__("shmem_long_test_some");
size_t oxshmem_longlong_test_some(volatile long long *ivars, size_t nelems, size_t *indices, const int *status, int cmp, long long cmp_value) __asm__("shmem_longlong_test_some");
size_t oxshmem_uint_test_some(volatile unsigned int *ivars, size_t nelems, size_t *indices, const int *status, int cmp, unsigned int cmp_value) __asm__("shmem_uint_test_some");
size_t oxshmem_ulong_test_some(volatile unsigned long *ivars, size_t nelems, size_t *indices, const int *status, int cmp, unsigned long cmp_value) __asm__("shmem_ulong_test_some");
size_t oxshmem_ulonglong_test_some(volatile unsigned long long *ivars, size_t nelems, size_t *indices, const int *status, int cmp, unsigned long long cmp_value) __asm__("shmem_ulonglong_test_some");
size_t oxshmem_short_test_some(volatile short *ivars, size_t nelems, size_t *indices, const int *status, int cmp, short cmp_value) __asm__("shmem_short_test_some");
size_t oxshmem_ushort_test_some(volatile unsigned short *ivars, size_t nelems, size_t *indices, const int *status, int cmp, unsigned short cmp_value) __asm__("shmem_ushort_test_some");
int oxshmem_int_test_all_vector(volatile int *ivars, size_t nelems, const int *status, int cmp, const int *cmp_values) __asm__("shmem_int_test_all_vector");
int oxshmem_long_test_all_vector(volatile long *ivars, size_t nelems, const int *status, int cmp, const long *cmp_values) __asm__("shmem_long_test_all_vector");
int oxshmem_longlong_test_all_vector(volatile long long *ivars, size_t nelems, const int *status, int cmp, const long long *cmp_values) __asm__("shmem_longlong_test_all_vector");
int oxshmem_uint_test_all_vector(volatile unsigned int *ivars, size_t nelems, const int *status, int cmp, const unsigned int *cmp_values) __asm__("shmem_uint_test_all_vector");
int oxshmem_ulong_test_all_vector(volatile unsigned long *ivars, size_t nelems, const int *status, int cmp, const unsigned long *cmp_values) __asm__("shmem_ulong_test_all_vector");
int oxshmem_ulonglong_test_all_vector(volatile unsigned long long *ivars, size_t nelems, const int *status, int cmp, const unsigned long long *cmp_values) __asm__("shmem_ulonglong_test_all_vector");
int oxshmem_short_test_all_vector(volatile short *ivars, size_t nelems, const int *status, int cmp, const short *cmp_values) __asm__("shmem_short_test_all_vector");
int oxshmem_ushort_test_all_vector(volatile unsigned short *ivars, size_t nelems, const int *status, int cmp, const unsigned short *cmp_values) __asm__("shmem_ushort_test_all_vector");
size_t oxshmem_int_test_any_vector(volatile int *ivars, size_t nelems, const int *status, int cmp, const int *cmp_values) __asm__("shmem_int_test_any_vector");
size_t oxshmem_long_test_any_vector(volatile long *ivars, size_t nelems, const int *status, int cmp, const long *cmp_values) __asm__("shmem_long_test_any_vector");
size_t oxshmem_longlong_test_any_vector(volatile long long *ivars, size_t nelems, const int *status, int cmp, const long long *cmp_values) __asm__("shmem_longlong_test_any_vector");
size_t oxshmem_uint_test_any_vector(volatile unsigned int *ivars, size_t nelems, const int *status, int cmp, const unsigned int *cmp_values) __asm__("shmem_uint_test_any_vector");
size_t oxshmem_ulong_test_any_vector(volatile unsigned long *ivars, size_t nelems, const int *status, int cmp, const unsigned long *cmp_values) __asm__("shmem_ulong_test_any_vector");
size_t oxshmem_ulonglong_test_any_vector(volatile unsigned long long *ivars, size_t nelems, const int *status, int cmp, const unsigned long long *cmp_values) __asm__("shmem_ulonglong_test_any_vector");
size_t oxshmem_short_test_any_vector(volatile short *ivars, size_t nelems, const int *status, int cmp, const short *cmp_values) __asm__("shmem_short_test_any_vector");
size_t oxshmem_ushort_test_any_vector(volatile unsigned short *ivars, size_t nelems, const int *status, int cmp, const unsigned short *cmp_values) __asm__("shmem_ushort_test_any_vector");
size_t oxshmem_int_test_some_vector(volatile int *ivars, size_t nelems, size_t *indices, const int *status, int cmp, const int *cmp_values) __asm__("shmem_int_test_some_vector");
size_t oxshmem_long_test_some_vector(volatile long *ivars, size_t nelems, size_t *indices, const int *status, int cmp, const long *cmp_values) __asm__("shmem_long_test_some_vector");
size_t oxshmem_longlong_test_some_vector(volatile long long *ivars, size_t nelems, size_t *indices, const int *status, int cmp, const long long *cmp_values) __asm__("shmem_longlong_test_some_vector");
size_t oxshmem_uint_test_some_vector(volatile unsigned int *ivars, size_t nelems, size_t *indices, const int *status, int cmp, const unsigned int *cmp_values) __asm__("shmem_uint_test_some_vector");
size_t oxshmem_ulong_test_some_vector(volatile unsigned long *ivars, size_t nelems, size_t *indices, const int *status, int cmp, const unsigned long *cmp_values) __asm__("shmem_ulong_test_some_vector");
size_t oxshmem_ulonglong_test_some_vector(volatile unsigned long long *ivars, size_t nelems, size_t *indices, const int *status, int cmp, const unsigned long long *cmp_values) __asm__("shmem_ulonglong_test_some_vector");
size_t oxshmem_short_test_some_vector(volatile short *ivars, size_t nelems, size_t *indices, const int *status, int cmp, const short *cmp_values) __asm__("shmem_short_test_some_vector");
size_t oxshmem_ushort_test_some_vector(volatile unsigned short *ivars, size_t nelems, size_t *indices, const int *status, int cmp, const unsigned short *cmp_values) __asm__("shmem_ushort_test_some_vector");
#ifndef OXSHMEM_INLINE
void oxshmem_float_put(volatile float *dest, volatile const float *source, size_t nelems, int pe) __asm__("shmem_float_put");
void oxshmem_double_put(volatile double *dest, volatile const double *source, size_t nelems, int pe) __asm__("shmem_double_put");
void oxshmem_char_put(volatile char *dest, volatile const char *source, size_t nelems, int pe) __asm__("shmem_char_put");
void oxshmem_schar_put(volatile signed char *dest, volatile const signed char *source, size_t nelems, int pe) __asm__("shmem_schar_put");
void oxshmem_short_put(volatile short *dest, volatile const short *source, size_t nelems, int pe) __asm__("shmem_short_put");
void oxshmem_int_put(volatile int *dest, volatile const int *source, size_t nelems, int pe) __asm__("shmem_int_put");
void oxshmem_long_put(volatile long *dest, volatile const long *source, size_t nelems, int pe) __asm__("shmem_long_put");
void oxshmem_longlong_put(volatile long long *dest, volatile const long long *source, size_t nelems, int pe) __asm__("shmem_longlong_put");
void oxshmem_uchar_put(volatile unsigned char *dest, volatile const unsigned char *source, size_t nelems, int pe) __asm__("shmem_uchar_put");
void oxshmem_ushort_put(volatile unsigned short *dest, volatile const unsigned short *source, size_t nelems, int pe) __asm__("shmem_ushort_put");
void oxshmem_uint_put(volatile unsigned int *dest, volatile const unsigned int *source, size_t nelems, int pe) __asm__("shmem_uint_put");
void oxshmem_ulong_put(volatile unsigned long *dest, volatile const unsigned long *source, size_t nelems, int pe) __asm__("shmem_ulong_put");
void oxshmem_ulonglong_put(volatile unsigned long long *dest, volatile const unsigned long long *source, size_t nelems, int pe) __asm__("shmem_ulonglong_put");
void oxshmem_float_p(volatile float *dest, float value, int pe) __asm__("shmem_float_p");
void oxshmem_double_p(volatile double *dest, double value, int pe) __asm__("shmem_double_p");
void oxshmem_char_p(volatile char *dest, char value, int pe) __asm__("shmem_char_p");
void oxshmem_schar_p(volatile signed char *dest, signed char value, int pe) __asm__("shmem_schar_p");
void oxshmem_short_p(volatile short *dest, short value, int pe) __asm__("shmem_short_p");
void oxshmem_int_p(volatile int *dest, int value, int pe) __asm__("shmem_int_p");
void oxshmem_long_p(volatile long *dest, long value, int pe) __asm__("shmem_long_p");
void oxshmem_longlong_p(volatile long long *dest, long long value, int pe) __asm__("shmem_longlong_p");
void oxshmem_uchar_p(volatile unsigned char *dest, unsigned char value, int pe) __asm__("shmem_uchar_p");
void oxshmem_ushort_p(volatile unsigned short *dest, unsigned short value, int pe) __asm__("shmem_ushort_p");
void oxshmem_uint_p(volatile unsigned int *dest, unsigned int value, int pe) __asm__("shmem_uint_p");
void oxshmem_ulong_p(volatile unsigned long *dest, unsigned long value, int pe) __asm__("shmem_ulong_p");
void oxshmem_ulonglong_p(volatile unsigned long long *dest, unsigned long long value, int pe) __asm__("shmem_ulonglong_p");
void oxshmem_float_get(volatile float *dest, volatile const float *source, size_t nelems, int pe) __asm__("shmem_float_get");
void oxshmem_double_get(volatile double *dest, volatile const double *source, size_t nelems, int pe) __asm__("shmem_double_get");
void oxshmem_char_get(volatile char *dest, volatile const char *source, size_t nelems, int pe) __asm__("shmem_char_get");
void oxshmem_schar_get(volatile signed char *dest, volatile const signed char *source, size_t nelems, int pe) __asm__("shmem_schar_get");
void oxshmem_short_get(volatile short *dest, volatile const short *source, size_t nelems, int pe) __asm__("shmem_short_get");
void oxshmem_int_get(volatile int *dest, volatile const int *source, size_t nelems, int pe) __asm__("shmem_int_get");
void oxshmem_long_get(volatile long *dest, volatile const long *source, size_t nelems, int pe) __asm__("shmem_long_get");
void oxshmem_longlong_get(volatile long long *dest, volatile const long long *source, size_t nelems, int pe) __asm__("shmem_longlong_get");
void oxshmem_uchar_get(volatile unsigned char *dest, volatile const unsigned char *source, size_t nelems, int pe) __asm__("shmem_uchar_get");
void oxshmem_ushort_get(volatile unsigned short *dest, volatile const unsigned short *source, size_t nelems, int pe) __asm__("shmem_ushort_get");
void oxshmem_uint_get(volatile unsigned int *dest, volatile const unsigned int *source, size_t nelems, int pe) __asm__("shmem_uint_get");
void oxshmem_ulong_get(volatile unsigned long *dest, volatile const unsigned long *source, size_t nelems, int pe) __asm__("shmem_ulong_get");
void oxshmem_ulonglong_get(volatile unsigned long long *dest, volatile const unsigned long long *source, size_t nelems, int pe) __asm__("shmem_ulonglong_get");
float oxshmem_float_g(volatile const float *source, int pe) __asm__("shmem_float_g");
double oxshmem_double_g(volatile const double *source, int pe) __asm__("shmem_double_g");
char oxshmem_char_g(volatile const char *source, int pe) __asm__("shmem_char_g");
signed char oxshmem_schar_g(volatile const signed char *source, int pe) __asm__("shmem_schar_g");
short oxshmem_short_g(volatile const short *source, int pe) __asm__("shmem_short_g");
int oxshmem_int_g(volatile const int *source, int pe) __asm__("shmem_int_g");
long oxshmem_long_g(volatile const long *source, int pe) __asm__("shmem_long_g");
long long oxshmem_longlong_g(volatile const long long *source, int pe) __asm__("shmem_longlong_g");
unsigned char oxshmem_uchar_g(volatile const unsigned char *source, int pe) __asm__("shmem_uchar_g");
unsigned short oxshmem_ushort_g(volatile const unsigned short *source, int pe) __asm__("shmem_ushort_g");
unsigned int oxshmem_uint_g(volatile const unsigned int *source, int pe) __asm__("shmem_uint_g");
unsigned long oxshmem_ulong_g(volatile const unsigned long *source, int pe) __asm__("shmem_ulong_g");
unsigned long long oxshmem_ulonglong_g(volatile const unsigned long long *source, int pe) __asm__("shmem_ulonglong_g");
float oxshmem_float_atomic_fetch(volatile const float *source, int pe) __asm__("shmem_float_atomic_fetch");
double oxshmem_double_atomic_fetch(volatile const double *source, int pe) __asm__("shmem_double_atomic_fetch");
int oxshmem_int_atomic_fetch(volatile const int *source, int pe) __asm__("shmem_int_atomic_fetch");
long oxshmem_long_atomic_fetch(volatile const long *source, int pe) __asm__("shmem_long_atomic_fetch");
long long oxshmem_longlong_atomic_fetch(volatile const long long *source, int pe) __asm__("shmem_longlong_atomic_fetch");
unsigned int oxshmem_uint_atomic_fetch(volatile const unsigned int *source, int pe) __asm__("shmem_uint_atomic_fetch");
unsigned long oxshmem_ulong_atomic_fetch(volatile const unsigned long *source, int pe) __asm__("shmem_ulong_atomic_fetch");
unsigned long long oxshmem_ulonglong_atomic_fetch(volatile const unsigned long long *source, int pe) __asm__("shmem_ulonglong_atomic_fetch");
void oxshmem_float_atomic_set(volatile float *dest, float value, int pe) __asm__("shmem_float_atomic_set");
void oxshmem_double_atomic_set(volatile double *dest, double value, int pe) __asm__("shmem_double_atomic_set");
void oxshmem_int_atomic_set(volatile int *dest, int value, int pe) __asm__("shmem_int_atomic_set");
void oxshmem_long_atomic_set(volatile long *dest, long value, int pe) __asm__("shmem_long_atomic_set");
void oxshmem_longlong_atomic_set(volatile long long *dest, long long value, int pe) __asm__("shmem_longlong_atomic_set");
void oxshmem_uint_atomic_set(volatile unsigned int *dest, unsigned int value, int pe) __asm__("shmem_uint_atomic_set");
void oxshmem_ulong_atomic_set(volatile unsigned long *dest, unsigned long value, int pe) __asm__("shmem_ulong_atomic_set");
void oxshmem_ulonglong_atomic_set(volatile unsigned long long *dest, unsigned long long value, int pe) __asm__("shmem_ulonglong_atomic_set");
int oxshmem_int_atomic_compare_swap(volatile int *dest, int cond, int value, int pe) __asm__("shmem_int_atomic_compare_swap");
long oxshmem_long_atomic_compare_swap(volatile long *dest, long cond, long value, int pe) __asm__("shmem_long_atomic_compare_swap");
long long oxshmem_longlong_atomic_compare_swap(volatile long long *dest, long long cond, long long value, int pe) __asm__("shmem_longlong_atomic_compare_swap");
unsigned int oxshmem_uint_atomic_compare_swap(volatile unsigned int *dest, unsigned int cond, unsigned int value, int pe) __asm__("shmem_uint_atomic_compare_swap");
unsigned long oxshmem_ulong_atomic_compare_swap(volatile unsigned long *dest, unsigned long cond, unsigned long value, int pe) __asm__("shmem_ulong_atomic_compare_swap");
unsigned long long oxshmem_ulonglong_atomic_compare_swap(volatile unsigned long long *dest, unsigned long long cond, unsigned long long value, int pe) __asm__("shmem_ulonglong_atomic_compare_swap");
float oxshmem_float_atomic_swap(volatile float *dest, float value, int pe) __asm__("shmem_float_atomic_swap");
double oxshmem_double_atomic_swap(volatile double *dest, double value, int pe) __asm__("shmem_double_atomic_swap");
int oxshmem_int_atomic_swap(volatile int *dest, int value, int pe) __asm__("shmem_int_atomic_swap");
long oxshmem_long_atomic_swap(volatile long *dest, long value, int pe) __asm__("shmem_long_atomic_swap");
long long oxshmem_longlong_atomic_swap(volatile long long *dest, long long value, int pe) __asm__("shmem_longlong_atomic_swap");
unsigned int oxshmem_uint_atomic_swap(volatile unsigned int *dest, unsigned int value, int pe) __asm__("shmem_uint_atomic_swap");
unsigned long oxshmem_ulong_atomic_swap(volatile unsigned long *dest, unsigned long value, int pe) __asm__("shmem_ulong_atomic_swap");
unsigned long long oxshmem_ulonglong_atomic_swap(volatile unsigned long long *dest, unsigned long long value, int pe) __asm__("shmem_ulonglong_atomic_swap");
int oxshmem_int_atomic_fetch_inc(volatile int *dest, int pe) __asm__("shmem_int_atomic_fetch_inc");
long oxshmem_long_atomic_fetch_inc(volatile long *dest, int pe) __asm__("shmem_long_atomic_fetch_inc");
long long oxshmem_longlong_atomic_fetch_inc(volatile long long *dest, int pe) __asm__("shmem_longlong_atomic_fetch_inc");
unsigned int oxshmem_uint_atomic_fetch_inc(volatile unsigned int *dest, int pe) __asm__("shmem_uint_atomic_fetch_inc");
unsigned long oxshmem_ulong_atomic_fetch_inc(volatile unsigned long *dest, int pe) __asm__("shmem_ulong_atomic_fetch_inc");
unsigned long long oxshmem_ulonglong_atomic_fetch_inc(volatile unsigned long long *dest, int pe) __asm__("shmem_ulonglong_atomic_fetch_inc");
void oxshmem_int_atomic_inc(volatile int *dest, int pe) __asm__("shmem_int_atomic_inc");
void oxshmem_long_atomic_inc(volatile long *dest, int pe) __asm__("shmem_long_atomic_inc");
void oxshmem_longlong_atomic_inc(volatile long long *dest, int pe) __asm__("shmem_longlong_atomic_inc");
void oxshmem_uint_atomic_inc(volatile unsigned int *dest, int pe) __asm__("shmem_uint_atomic_inc");
void oxshmem_ulong_atomic_inc(volatile unsigned long *dest, int pe) __asm__("shmem_ulong_atomic_inc");
void oxshmem_ulonglong_atomic_inc(volatile unsigned long long *dest, int pe) __asm__("shmem_ulonglong_atomic_inc");
int oxshmem_int_atomic_fetch_add(volatile int *dest, int value, int pe) __asm__("shmem_int_atomic_fetch_add");
long oxshmem_long_atomic_fetch_add(volatile long *dest, long value, int pe) __asm__("shmem_long_atomic_fetch_add");
long long oxshmem_longlong_atomic_fetch_add(volatile long long *dest, long long value, int pe) __asm__("shmem_longlong_atomic_fetch_add");
unsigned int oxshmem_uint_atomic_fetch_add(volatile unsigned int *dest, unsigned int value, int pe) __asm__("shmem_uint_atomic_fetch_add");
unsigned long oxshmem_ulong_atomic_fetch_add(volatile unsigned long *dest, unsigned long value, int pe) __asm__("shmem_ulong_atomic_fetch_add");
unsigned long long oxshmem_ulonglong_atomic_fetch_add(volatile unsigned long long *dest, unsigned long long value, int pe) __asm__("shmem_ulonglong_atomic_fetch_add");
void oxshmem_int_atomic_add(volatile int *dest, int value, int pe) __asm__("shmem_int_atomic_add");
void oxshmem_long_atomic_add(volatile long *dest, long value, int pe) __asm__("shmem_long_atomic_add");
void oxshmem_longlong_atomic_add(volatile long long *dest, long long value, int pe) __asm__("shmem_longlong_atomic_add");
void oxshmem_uint_atomic_add(volatile unsigned int *dest, unsigned int value, int pe) __asm__("shmem_uint_atomic_add");
void oxshmem_ulong_atomic_add(volatile unsigned long *dest, unsigned long value, int pe) __asm__("shmem_ulong_atomic_add");
void oxshmem_ulonglong_atomic_add(volatile unsigned long long *dest, unsigned long long value, int pe) __asm__("shmem_ulonglong_atomic_add");
unsigned int oxshmem_uint_atomic_fetch_and(volatile unsigned int *dest, unsigned int value, int pe) __asm__("shmem_uint_atomic_fetch_and");
unsigned long oxshmem_ulong_atomic_fetch_and(volatile unsigned long *dest, unsigned long value, int pe) __asm__("shmem_ulong_atomic_fetch_and");
unsigned long long oxshmem_ulonglong_atomic_fetch_and(volatile unsigned long long *dest, unsigned long long value, int pe) __asm__("shmem_ulonglong_atomic_fetch_and");
int32_t oxshmem_int32_atomic_fetch_and(volatile int32_t *dest, int32_t value, int pe) __asm__("shmem_int32_atomic_fetch_and");
int64_t oxshmem_int64_atomic_fetch_and(volatile int64_t *dest, int64_t value, int pe) __asm__("shmem_int64_atomic_fetch_and");
void oxshmem_uint_atomic_and(volatile unsigned int *dest, unsigned int value, int pe) __asm__("shmem_uint_atomic_and");
void oxshmem_ulong_atomic_and(volatile unsigned long *dest, unsigned long value, int pe) __asm__("shmem_ulong_atomic_and");
void oxshmem_ulonglong_atomic_and(volatile unsigned long long *dest, unsigned long long value, int pe) __asm__("shmem_ulonglong_atomic_and");
void oxshmem_int32_atomic_and(volatile int32_t *dest, int32_t value, int pe) __asm__("shmem_int32_atomic_and");
void oxshmem_int64_atomic_and(volatile int64_t *dest, int64_t value, int pe) __asm__("shmem_int64_atomic_and");
unsigned int oxshmem_uint_atomic_fetch_or(volatile unsigned int *dest, unsigned int value, int pe) __asm__("shmem_uint_atomic_fetch_or");
unsigned long oxshmem_ulong_atomic_fetch_or(volatile unsigned long *dest, unsigned long value, int pe) __asm__("shmem_ulong_atomic_fetch_or");
unsigned long long oxshmem_ulonglong_atomic_fetch_or(volatile unsigned long long *dest, unsigned long long value, int pe) __asm__("shmem_ulonglong_atomic_fetch_or");
int32_t oxshmem_int32_atomic_fetch_or(volatile int32_t *dest, int32_t value, int pe) __asm__("shmem_int32_atomic_fetch_or");
int64_t oxshmem_int64_atomic_fetch_or(volatile int64_t *dest, int64_t value, int pe) __asm__("shmem_int64_atomic_fetch_or");
void oxshmem_uint_atomic_or(volatile unsigned int *dest, unsigned int value, int pe) __asm__("shmem_uint_atomic_or");
void oxshmem_ulong_atomic_or(volatile unsigned long *dest, unsigned long value, int pe) __asm__("shmem_ulong_atomic_or");
void oxshmem_ulonglong_atomic_or(volatile unsigned long long *dest, unsigned long long value, int pe) __asm__("shmem_ulonglong_atomic_or");
void oxshmem_int32_atomic_or(volatile int32_t *dest, int32_t value, int pe) __asm__("shmem_int32_atomic_or");
void oxshmem_int64_atomic_or(volatile int64_t *dest, int64_t value, int pe) __asm__("shmem_int64_atomic_or");
unsigned int oxshmem_uint_atomic_fetch_xor(volatile unsigned int *dest, unsigned int value, int pe) __asm__("shmem_uint_atomic_fetch_xor");
unsigned long oxshmem_ulong_atomic_fetch_xor(volatile unsigned long *dest, unsigned long value, int pe) __asm__("shmem_ulong_atomic_fetch_xor");
unsigned long long oxshmem_ulonglong_atomic_fetch_xor(volatile unsigned long long *dest, unsigned long long value, int pe) __asm__("shmem_ulonglong_atomic_fetch_xor");
int32_t oxshmem_int32_atomic_fetch_xor(volatile int32_t *dest, int32_t value, int pe) __asm__("shmem_int32_atomic_fetch_xor");
int64_t oxshmem_int64_atomic_fetch_xor(volatile int64_t *dest, int64_t value, int pe) __asm__("shmem_int64_atomic_fetch_xor");
void oxshmem_uint_atomic_xor(volatile unsigned int *dest, unsigned int value, int pe) __asm__("shmem_uint_atomic_xor");
void oxshmem_ulong_atomic_xor(volatile unsigned long *dest, unsigned long value, int pe) __asm__("shmem_ulong_atomic_xor");
void oxshmem_ulonglong_atomic_xor(volatile unsigned long long *dest, unsigned long long value, int pe) __asm__("shmem_ulonglong_atomic_xor");
void oxshmem_int32_atomic_xor(volatile int32_t *dest, int32_t value, int pe) __asm__("shmem_int32_atomic_xor");
void oxshmem_int64_atomic_xor(volatile int64_t *dest, int64_t value, int pe) __asm__("shmem_int64_atomic_xor");
float oxshmem_float_fetch(volatile const float *source, int pe) __asm__("shmem_float_fetch");
double oxshmem_double_fetch(volatile const double *source, int pe) __asm__("shmem_double_fetch");
int oxshmem_int_fetch(volatile const int *source, int pe) __asm__("shmem_int_fetch");
long oxshmem_long_fetch(volatile const long *source, int pe) __asm__("shmem_long_fetch");
long long oxshmem_longlong_fetch(volatile const long long *source, int pe) __asm__("shmem_longlong_fetch");
void oxshmem_float_set(volatile float *dest, float value, int pe) __asm__("shmem_float_set");
void oxshmem_double_set(volatile double *dest, double value, int pe) __asm__("shmem_double_set");
void oxshmem_int_set(volatile int *dest, int value, int pe) __asm__("shmem_int_set");
void oxshmem_long_set(volatile long *dest, long value, int pe) __asm__("shmem_long_set");
void oxshmem_longlong_set(volatile long long *dest, long long value, int pe) __asm__("shmem_longlong_set");
int oxshmem_int_cswap(volatile int *dest, int cond, int value, int pe) __asm__("shmem_int_cswap");
long oxshmem_long_cswap(volatile long *dest, long cond, long value, int pe) __asm__("shmem_long_cswap");
long long oxshmem_longlong_cswap(volatile long long *dest, long long cond, long long value, int pe) __asm__("shmem_longlong_cswap");
float oxshmem_float_swap(volatile float *dest, float value, int pe) __asm__("shmem_float_swap");
double oxshmem_double_swap(volatile double *dest, double value, int pe) __asm__("shmem_double_swap");
int oxshmem_int_swap(volatile int *dest, int value, int pe) __asm__("shmem_int_swap");
long oxshmem_long_swap(volatile long *dest, long value, int pe) __asm__("shmem_long_swap");
long long oxshmem_longlong_swap(volatile long long *dest, long long value, int pe) __asm__("shmem_longlong_swap");
int oxshmem_int_finc(volatile int *dest, int pe) __asm__("shmem_int_finc");
long oxshmem_long_finc(volatile long *dest, int pe) __asm__("shmem_long_finc");
long long oxshmem_longlong_finc(volatile long long *dest, int pe) __asm__("shmem_longlong_finc");
void oxshmem_int_inc(volatile int *dest, int pe) __asm__("shmem_int_inc");
void oxshmem_long_inc(volatile long *dest, int pe) __asm__("shmem_long_inc");
void oxshmem_longlong_inc(volatile long long *dest, int pe) __asm__("shmem_longlong_inc");
int oxshmem_int_fadd(volatile int *dest, int value, int pe) __asm__("shmem_int_fadd");
long oxshmem_long_fadd(volatile long *dest, long value, int pe) __asm__("shmem_long_fadd");
long long oxshmem_longlong_fadd(volatile long long *dest, long long value, int pe) __asm__("shmem_longlong_fadd");
void oxshmem_int_add(volatile int *dest, int value, int pe) __asm__("shmem_int_add");
void oxshmem_long_add(volatile long *dest, long value, int pe) __asm__("shmem_long_add");
void oxshmem_longlong_add(volatile long long *dest, long long value, int pe) __asm__("shmem_longlong_add");
#endif

#define shmem_put(...) _Generic((OXSHMEM_FIRST(__VA_ARGS__, 0)), \
    shmem_ctx_t: _Generic((OXSHMEM_SECOND(__VA_ARGS__, 0, 0)), \
        float *: oxshmem_ctx_float_put, \
        volatile float *: oxshmem_ctx_float_put, \
        double *: oxshmem_ctx_double_put, \
        volatile double *: oxshmem_ctx_double_put, \
        long double *: oxshmem_ctx_longdouble_put, \
        volatile long double *: oxshmem_ctx_longdouble_put, \
        char *: oxshmem_ctx_char_put, \
        volatile char *: oxshmem_ctx_char_put, \
        signed char *: oxshmem_ctx_schar_put, \
        volatile signed char *: oxshmem_ctx_schar_put, \
        short *: oxshmem_ctx_short_put, \
        volatile short *: oxshmem_ctx_short_put, \
        int *: oxshmem_ctx_int_put, \
        volatile int *: oxshmem_ctx_int_put, \
        long *: oxshmem_ctx_long_put, \
        volatile long *: oxshmem_ctx_long_put, \
        long long *: oxshmem_ctx_longlong_put, \
        volatile long long *: oxshmem_ctx_longlong_put, \
        unsigned char *: oxshmem_ctx_uchar_put, \
        volatile unsigned char *: oxshmem_ctx_uchar_put, \
        unsigned short *: oxshmem_ctx_ushort_put, \
        volatile unsigned short *: oxshmem_ctx_ushort_put, \
        unsigned int *: oxshmem_ctx_uint_put, \
        volatile unsigned int *: oxshmem_ctx_uint_put, \
        unsigned long *: oxshmem_ctx_ulong_put, \
        volatile unsigned long *: oxshmem_ctx_ulong_put, \
        unsigned long long *: oxshmem_ctx_ulonglong_put, \
        volatile unsigned long long *: oxshmem_ctx_ulonglong_put, \
        default: oxshmem_no_such_call), \
    float *: oxshmem_float_put, \
    volatile float *: oxshmem_float_put, \
    double *: oxshmem_double_put, \
    volatile double *: oxshmem_double_put, \
    long double *: oxshmem_longdouble_put, \
    volatile long double *: oxshmem_longdouble_put, \
    char *: oxshmem_char_put, \
    volatile char *: oxshmem_char_put, \
    signed char *: oxshmem_schar_put, \
    volatile signed char *: oxshmem_schar_put, \
    short *: oxshmem_short_put, \
    volatile short *: oxshmem_short_put, \
    int *: oxshmem_int_put, \
    volatile int *: oxshmem_int_put, \
    long *: oxshmem_long_put, \
    volatile long *: oxshmem_long_put, \
    long long *: oxshmem_longlong_put, \
    volatile long long *: oxshmem_longlong_put, \
    unsigned char *: oxshmem_uchar_put, \
    volatile unsigned char *: oxshmem_uchar_put, \
    unsigned short *: oxshmem_ushort_put, \
    volatile unsigned short *: oxshmem_ushort_put, \
    unsigned int *: oxshmem_uint_put, \
    volatile unsigned int *: oxshmem_uint_put, \
    unsigned long *: oxshmem_ulong_put, \
    volatile unsigned long *: oxshmem_ulong_put, \
    unsigned long long *: oxshmem_ulonglong_put, \
    volatile unsigned long long *: oxshmem_ulonglong_put, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_p(...) _Generic((OXSHMEM_FIRST(__VA_ARGS__, 0)), \
    shmem_ctx_t: _Generic((OXSHMEM_SECOND(__VA_ARGS__, 0, 0)), \
        float *: oxshmem_ctx_float_p, \
        volatile float *: oxshmem_ctx_float_p, \
        double *: oxshmem_ctx_double_p, \
        volatile double *: oxshmem_ctx_double_p, \
        long double *: oxshmem_ctx_longdouble_p, \
        volatile long double *: oxshmem_ctx_longdouble_p, \
        char *: oxshmem_ctx_char_p, \
        volatile char *: oxshmem_ctx_char_p, \
        signed char *: oxshmem_ctx_schar_p, \
        volatile signed char *: oxshmem_ctx_schar_p, \
        short *: oxshmem_ctx_short_p, \
        volatile short *: oxshmem_ctx_short_p, \
        int *: oxshmem_ctx_int_p, \
        volatile int *: oxshmem_ctx_int_p, \
        long *: oxshmem_ctx_long_p, \
        volatile long *: oxshmem_ctx_long_p, \
        long long *: oxshmem_ctx_longlong_p, \
        volatile long long *: oxshmem_ctx_longlong_p, \
        unsigned char *: oxshmem_ctx_uchar_p, \
        volatile unsigned char *: oxshmem_ctx_uchar_p, \
        unsigned short *: oxshmem_ctx_ushort_p, \
        volatile unsigned short *: oxshmem_ctx_ushort_p, \
        unsigned int *: oxshmem_ctx_uint_p, \
        volatile unsigned int *: oxshmem_ctx_uint_p, \
        unsigned long *: oxshmem_ctx_ulong_p, \
        volatile unsigned long *: oxshmem_ctx_ulong_p, \
        unsigned long long *: oxshmem_ctx_ulonglong_p, \
        volatile unsigned long long *: oxshmem_ctx_ulonglong_p, \
        default: oxshmem_no_such_call), \
    float *: oxshmem_float_p, \
    volatile float *: oxshmem_float_p, \
    double *: oxshmem_double_p, \
    volatile double *: oxshmem_double_p, \
    long double *: oxshmem_longdouble_p, \
    volatile long double *: oxshmem_longdouble_p, \
    char *: oxshmem_char_p, \
    volatile char *: oxshmem_char_p, \
    signed char *: oxshmem_schar_p, \
    volatile signed char *: oxshmem_schar_p, \
    short *: oxshmem_short_p, \
    volatile short *: oxshmem_short_p, \
    int *: oxshmem_int_p, \
    volatile int *: oxshmem_int_p, \
    long *: oxshmem_long_p, \
    volatile long *: oxshmem_long_p, \
    long long *: oxshmem_longlong_p, \
    volatile long long *: oxshmem_longlong_p, \
    unsigned char *: oxshmem_uchar_p, \
    volatile unsigned char *: oxshmem_uchar_p, \
    unsigned short *: oxshmem_ushort_p, \
    volatile unsigned short *: oxshmem_ushort_p, \
    unsigned int *: oxshmem_uint_p, \
    volatile unsigned int *: oxshmem_uint_p, \
    unsigned long *: oxshmem_ulong_p, \
    volatile unsigned long *: oxshmem_ulong_p, \
    unsigned long long *: oxshmem_ulonglong_p, \
    volatile unsigned long long *: oxshmem_ulonglong_p, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_iput(...) _Generic((OXSHMEM_FIRST(__VA_ARGS__, 0)), \
    shmem_ctx_t: _Generic((OXSHMEM_SECOND(__VA_ARGS__, 0, 0)), \
        float *: oxshmem_ctx_float_iput, \
        volatile float *: oxshmem_ctx_float_iput, \
        double *: oxshmem_ctx_double_iput, \
        volatile double *: oxshmem_ctx_double_iput, \
        long double *: oxshmem_ctx_longdouble_iput, \
        volatile long double *: oxshmem_ctx_longdouble_iput, \
        char *: oxshmem_ctx_char_iput, \
        volatile char *: oxshmem_ctx_char_iput, \
        signed char *: oxshmem_ctx_schar_iput, \
        volatile signed char *: oxshmem_ctx_schar_iput, \
        short *: oxshmem_ctx_short_iput, \
        volatile short *: oxshmem_ctx_short_iput, \
        int *: oxshmem_ctx_int_iput, \
        volatile int *: oxshmem_ctx_int_iput, \
        long *: oxshmem_ctx_long_iput, \
        volatile long *: oxshmem_ctx_long_iput, \
        long long *: oxshmem_ctx_longlong_iput, \
        volatile long long *: oxshmem_ctx_longlong_iput, \
        unsigned char *: oxshmem_ctx_uchar_iput, \
        volatile unsigned char *: oxshmem_ctx_uchar_iput, \
        unsigned short *: oxshmem_ctx_ushort_iput, \
        volatile unsigned short *: oxshmem_ctx_ushort_iput, \
        unsigned int *: oxshmem_ctx_uint_iput, \
        volatile unsigned int *: oxshmem_ctx_uint_iput, \
        unsigned long *: oxshmem_ctx_ulong_iput, \
        volatile unsigned long *: oxshmem_ctx_ulong_iput, \
        unsigned long long *: oxshmem_ctx_ulonglong_iput, \
        volatile unsigned long long *: oxshmem_ctx_ulonglong_iput, \
        default: oxshmem_no_such_call), \
    float *: oxshmem_float_iput, \
    volatile float *: oxshmem_float_iput, \
    double *: oxshmem_double_iput, \
    volatile double *: oxshmem_double_iput, \
    long double *: oxshmem_longdouble_iput, \
    volatile long double *: oxshmem_longdouble_iput, \
    char *: oxshmem_char_iput, \
    volatile char *: oxshmem_char_iput, \
    signed char *: oxshmem_schar_iput, \
    volatile signed char *: oxshmem_schar_iput, \
    short *: oxshmem_short_iput, \
    volatile short *: oxshmem_short_iput, \
    int *: oxshmem_int_iput, \
    volatile int *: oxshmem_int_iput, \
    long *: oxshmem_long_iput, \
    volatile long *: oxshmem_long_iput, \
    long long *: oxshmem_longlong_iput, \
    volatile long long *: oxshmem_longlong_iput, \
    unsigned char *: oxshmem_uchar_iput, \
    volatile unsigned char *: oxshmem_uchar_iput, \
    unsigned short *: oxshmem_ushort_iput, \
    volatile unsigned short *: oxshmem_ushort_iput, \
    unsigned int *: oxshmem_uint_iput, \
    volatile unsigned int *: oxshmem_uint_iput, \
    unsigned long *: oxshmem_ulong_iput, \
    volatile unsigned long *: oxshmem_ulong_iput, \
    unsigned long long *: oxshmem_ulonglong_iput, \
    volatile unsigned long long *: oxshmem_ulonglong_iput, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_ibput(...) _Generic((OXSHMEM_FIRST(__VA_ARGS__, 0)), \
    shmem_ctx_t: _Generic((OXSHMEM_SECOND(__VA_ARGS__, 0, 0)), \
        float *: oxshmem_ctx_float_ibput, \
        volatile float *: oxshmem_ctx_float_ibput, \
        double *: oxshmem_ctx_double_ibput, \
        volatile double *: oxshmem_ctx_double_ibput, \
        long double *: oxshmem_ctx_longdouble_ibput, \
        volatile long double *: oxshmem_ctx_longdouble_ibput, \
        char *: oxshmem_ctx_char_ibput, \
        volatile char *: oxshmem_ctx_char_ibput, \
        signed char *: oxshmem_ctx_schar_ibput, \
        volatile signed char *: oxshmem_ctx_schar_ibput, \
        short *: oxshmem_ctx_short_ibput, \
        volatile short *: oxshmem_ctx_short_ibput, \
        int *: oxshmem_ctx_int_ibput, \
        volatile int *: oxshmem_ctx_int_ibput, \
        long *: oxshmem_ctx_long_ibput, \
        volatile long *: oxshmem_ctx_long_ibput, \
        long long *: oxshmem_ctx_longlong_ibput, \
        volatile long long *: oxshmem_ctx_longlong_ibput, \
        unsigned char *: oxshmem_ctx_uchar_ibput, \
        volatile unsigned char *: oxshmem_ctx_uchar_ibput, \
        unsigned short *: oxshmem_ctx_ushort_ibput, \
        volatile unsigned short *: oxshmem_ctx_ushort_ibput, \
        unsigned int *: oxshmem_ctx_uint_ibput, \
        volatile unsigned int *: oxshmem_ctx_uint_ibput, \
        unsigned long *: oxshmem_ctx_ulong_ibput, \
        volatile unsigned long *: oxshmem_ctx_ulong_ibput, \
        unsigned long long *: oxshmem_ctx_ulonglong_ibput, \
        volatile unsigned long long *: oxshmem_ctx_ulonglong_ibput, \
        default: oxshmem_no_such_call), \
    float *: oxshmem_float_ibput, \
    volatile float *: oxshmem_float_ibput, \
    double *: oxshmem_double_ibput, \
    volatile double *: oxshmem_double_ibput, \
    long double *: oxshmem_longdouble_ibput, \
    volatile long double *: oxshmem_longdouble_ibput, \
    char *: oxshmem_char_ibput, \
    volatile char *: oxshmem_char_ibput, \
    signed char *: oxshmem_schar_ibput, \
    volatile signed char *: oxshmem_schar_ibput, \
    short *: oxshmem_short_ibput, \
    volatile short *: oxshmem_short_ibput, \
    int *: oxshmem_int_ibput, \
    volatile int *: oxshmem_int_ibput, \
    long *: oxshmem_long_ibput, \
    volatile long *: oxshmem_long_ibput, \
    long long *: oxshmem_longlong_ibput, \
    volatile long long *: oxshmem_longlong_ibput, \
    unsigned char *: oxshmem_uchar_ibput, \
    volatile unsigned char *: oxshmem_uchar_ibput, \
    unsigned short *: oxshmem_ushort_ibput, \
    volatile unsigned short *: oxshmem_ushort_ibput, \
    unsigned int *: oxshmem_uint_ibput, \
    volatile unsigned int *: oxshmem_uint_ibput, \
    unsigned long *: oxshmem_ulong_ibput, \
    volatile unsigned long *: oxshmem_ulong_ibput, \
    unsigned long long *: oxshmem_ulonglong_ibput, \
    volatile unsigned long long *: oxshmem_ulonglong_ibput, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_get(...) _Generic((OXSHMEM_FIRST(__VA_ARGS__, 0)), \
    shmem_ctx_t: _Generic((OXSHMEM_SECOND(__VA_ARGS__, 0, 0)), \
        float *: oxshmem_ctx_float_get, \
        volatile float *: oxshmem_ctx_float_get, \
        double *: oxshmem_ctx_double_get, \
        volatile double *: oxshmem_ctx_double_get, \
        long double *: oxshmem_ctx_longdouble_get, \
        volatile long double *: oxshmem_ctx_longdouble_get, \
        char *: oxshmem_ctx_char_get, \
        volatile char *: oxshmem_ctx_char_get, \
        signed char *: oxshmem_ctx_schar_get, \
        volatile signed char *: oxshmem_ctx_schar_get, \
        short *: oxshmem_ctx_short_get, \
        volatile short *: oxshmem_ctx_short_get, \
        int *: oxshmem_ctx_int_get, \
        volatile int *: oxshmem_ctx_int_get, \
        long *: oxshmem_ctx_long_get, \
        volatile long *: oxshmem_ctx_long_get, \
        long long *: oxshmem_ctx_longlong_get, \
        volatile long long *: oxshmem_ctx_longlong_get, \
        unsigned char *: oxshmem_ctx_uchar_get, \
        volatile unsigned char *: oxshmem_ctx_uchar_get, \
        unsigned short *: oxshmem_ctx_ushort_get, \
        volatile unsigned short *: oxshmem_ctx_ushort_get, \
        unsigned int *: oxshmem_ctx_uint_get, \
        volatile unsigned int *: oxshmem_ctx_uint_get, \
        unsigned long *: oxshmem_ctx_ulong_get, \
        volatile unsigned long *: oxshmem_ctx_ulong_get, \
        unsigned long long *: oxshmem_ctx_ulonglong_get, \
        volatile unsigned long long *: oxshmem_ctx_ulonglong_get, \
        default: oxshmem_no_such_call), \
    float *: oxshmem_float_get, \
    volatile float *: oxshmem_float_get, \
    double *: oxshmem_double_get, \
    volatile double *: oxshmem_double_get, \
    long double *: oxshmem_longdouble_get, \
    volatile long double *: oxshmem_longdouble_get, \
    char *: oxshmem_char_get, \
    volatile char *: oxshmem_char_get, \
    signed char *: oxshmem_schar_get, \
    volatile signed char *: oxshmem_schar_get, \
    short *: oxshmem_short_get, \
    volatile short *: oxshmem_short_get, \
    int *: oxshmem_int_get, \
    volatile int *: oxshmem_int_get, \
    long *: oxshmem_long_get, \
    volatile long *: oxshmem_long_get, \
    long long *: oxshmem_longlong_get, \
    volatile long long *: oxshmem_longlong_get, \
    unsigned char *: oxshmem_uchar_get, \
    volatile unsigned char *: oxshmem_uchar_get, \
    unsigned short *: oxshmem_ushort_get, \
    volatile unsigned short *: oxshmem_ushort_get, \
    unsigned int *: oxshmem_uint_get, \
    volatile unsigned int *: oxshmem_uint_get, \
    unsigned long *: oxshmem_ulong_get, \
    volatile unsigned long *: oxshmem_ulong_get, \
    unsigned long long *: oxshmem_ulonglong_get, \
    volatile unsigned long long *: oxshmem_ulonglong_get, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_g(...) _Generic((OXSHMEM_FIRST(__VA_ARGS__, 0)), \
    shmem_ctx_t: _Generic((OXSHMEM_SECOND(__VA_ARGS__, 0, 0)), \
        float *: oxshmem_ctx_float_g, \
        const float *: oxshmem_ctx_float_g, \
        volatile float *: oxshmem_ctx_float_g, \
        const volatile float *: oxshmem_ctx_float_g, \
        double *: oxshmem_ctx_double_g, \
        const double *: oxshmem_ctx_double_g, \
        volatile double *: oxshmem_ctx_double_g, \
        const volatile double *: oxshmem_ctx_double_g, \
        long double *: oxshmem_ctx_longdouble_g, \
        const long double *: oxshmem_ctx_longdouble_g, \
        volatile long double *: oxshmem_ctx_longdouble_g, \
        const volatile long double *: oxshmem_ctx_longdouble_g, \
        char *: oxshmem_ctx_char_g, \
        const char *: oxshmem_ctx_char_g, \
        volatile char *: oxshmem_ctx_char_g, \
        const volatile char *: oxshmem_ctx_char_g, \
        signed char *: oxshmem_ctx_schar_g, \
        const signed char *: oxshmem_ctx_schar_g, \
        volatile signed char *: oxshmem_ctx_schar_g, \
        const volatile signed char *: oxshmem_ctx_schar_g, \
        short *: oxshmem_ctx_short_g, \
        const short *: oxshmem_ctx_short_g, \
        volatile short *: oxshmem_ctx_short_g, \
        const volatile short *: oxshmem_ctx_short_g, \
        int *: oxshmem_ctx_int_g, \
        const int *: oxshmem_ctx_int_g, \
        volatile int *: oxshmem_ctx_int_g, \
        const volatile int *: oxshmem_ctx_int_g, \
        long *: oxshmem_ctx_long_g, \
        const long *: oxshmem_ctx_long_g, \
        volatile long *: oxshmem_ctx_long_g, \
        const volatile long *: oxshmem_ctx_long_g, \
        long long *: oxshmem_ctx_longlong_g, \
        const long long *: oxshmem_ctx_longlong_g, \
        volatile long long *: oxshmem_ctx_longlong_g, \
        const volatile long long *: oxshmem_ctx_longlong_g, \
        unsigned char *: oxshmem_ctx_uchar_g, \
        const unsigned char *: oxshmem_ctx_uchar_g, \
        volatile unsigned char *: oxshmem_ctx_uchar_g, \
        const volatile unsigned char *: oxshmem_ctx_uchar_g, \
        unsigned short *: oxshmem_ctx_ushort_g, \
        const unsigned short *: oxshmem_ctx_ushort_g, \
        volatile unsigned short *: oxshmem_ctx_ushort_g, \
        const volatile unsigned short *: oxshmem_ctx_ushort_g, \
        unsigned int *: oxshmem_ctx_uint_g, \
        const unsigned int *: oxshmem_ctx_uint_g, \
        volatile unsigned int *: oxshmem_ctx_uint_g, \
        const volatile unsigned int *: oxshmem_ctx_uint_g, \
        unsigned long *: oxshmem_ctx_ulong_g, \
        const unsigned long *: oxshmem_ctx_ulong_g, \
        volatile unsigned long *: oxshmem_ctx_ulong_g, \
        const volatile unsigned long *: oxshmem_ctx_ulong_g, \
        unsigned long long *: oxshmem_ctx_ulonglong_g, \
        const unsigned long long *: oxshmem_ctx_ulonglong_g, \
        volatile unsigned long long *: oxshmem_ctx_ulonglong_g, \
        const volatile unsigned long long *: oxshmem_ctx_ulonglong_g, \
        default: oxshmem_no_such_call), \
    float *: oxshmem_float_g, \
    const float *: oxshmem_float_g, \
    volatile float *: oxshmem_float_g, \
    const volatile float *: oxshmem_float_g, \
    double *: oxshmem_double_g, \
    const double *: oxshmem_double_g, \
    volatile double *: oxshmem_double_g, \
    const volatile double *: oxshmem_double_g, \
    long double *: oxshmem_longdouble_g, \
    const long double *: oxshmem_longdouble_g, \
    volatile long double *: oxshmem_longdouble_g, \
    const volatile long double *: oxshmem_longdouble_g, \
    char *: oxshmem_char_g, \
    const char *: oxshmem_char_g, \
    volatile char *: oxshmem_char_g, \
    const volatile char *: oxshmem_char_g, \
    signed char *: oxshmem_schar_g, \
    const signed char *: oxshmem_schar_g, \
    volatile signed char *: oxshmem_schar_g, \
    const volatile signed char *: oxshmem_schar_g, \
    short *: oxshmem_short_g, \
    const short *: oxshmem_short_g, \
    volatile short *: oxshmem_short_g, \
    const volatile short *: oxshmem_short_g, \
    int *: oxshmem_int_g, \
    const int *: oxshmem_int_g, \
    volatile int *: oxshmem_int_g, \
    const volatile int *: oxshmem_int_g, \
    long *: oxshmem_long_g, \
    const long *: oxshmem_long_g, \
    volatile long *: oxshmem_long_g, \
    const volatile long *: oxshmem_long_g, \
    long long *: oxshmem_longlong_g, \
    const long long *: oxshmem_longlong_g, \
    volatile long long *: oxshmem_longlong_g, \
    const volatile long long *: oxshmem_longlong_g, \
    unsigned char *: oxshmem_uchar_g, \
    const unsigned char *: oxshmem_uchar_g, \
    volatile unsigned char *: oxshmem_uchar_g, \
    const volatile unsigned char *: oxshmem_uchar_g, \
    unsigned short *: oxshmem_ushort_g, \
    const unsigned short *: oxshmem_ushort_g, \
    volatile unsigned short *: oxshmem_ushort_g, \
    const volatile unsigned short *: oxshmem_ushort_g, \
    unsigned int *: oxshmem_uint_g, \
    const unsigned int *: oxshmem_uint_g, \
    volatile unsigned int *: oxshmem_uint_g, \
    const volatile unsigned int *: oxshmem_uint_g, \
    unsigned long *: oxshmem_ulong_g, \
    const unsigned long *: oxshmem_ulong_g, \
    volatile unsigned long *: oxshmem_ulong_g, \
    const volatile unsigned long *: oxshmem_ulong_g, \
    unsigned long long *: oxshmem_ulonglong_g, \
    const unsigned long long *: oxshmem_ulonglong_g, \
    volatile unsigned long long *: oxshmem_ulonglong_g, \
    const volatile unsigned long long *: oxshmem_ulonglong_g, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_iget(...) _Generic((OXSHMEM_FIRST(__VA_ARGS__, 0)), \
    shmem_ctx_t: _Generic((OXSHMEM_SECOND(__VA_ARGS__, 0, 0)), \
        float *: oxshmem_ctx_float_iget, \
        volatile float *: oxshmem_ctx_float_iget, \
        double *: oxshmem_ctx_double_iget, \
        volatile double *: oxshmem_ctx_double_iget, \
        long double *: oxshmem_ctx_longdouble_iget, \
        volatile long double *: oxshmem_ctx_longdouble_iget, \
        char *: oxshmem_ctx_char_iget, \
        volatile char *: oxshmem_ctx_char_iget, \
        signed char *: oxshmem_ctx_schar_iget, \
        volatile signed char *: oxshmem_ctx_schar_iget, \
        short *: oxshmem_ctx_short_iget, \
        volatile short *: oxshmem_ctx_short_iget, \
        int *: oxshmem_ctx_int_iget, \
        volatile int *: oxshmem_ctx_int_iget, \
        long *: oxshmem_ctx_long_iget, \
        volatile long *: oxshmem_ctx_long_iget, \
        long long *: oxshmem_ctx_longlong_iget, \
        volatile long long *: oxshmem_ctx_longlong_iget, \
        unsigned char *: oxshmem_ctx_uchar_iget, \
        volatile unsigned char *: oxshmem_ctx_uchar_iget, \
        unsigned short *: oxshmem_ctx_ushort_iget, \
        volatile unsigned short *: oxshmem_ctx_ushort_iget, \
        unsigned int *: oxshmem_ctx_uint_iget, \
        volatile unsigned int *: oxshmem_ctx_uint_iget, \
        unsigned long *: oxshmem_ctx_ulong_iget, \
        volatile unsigned long *: oxshmem_ctx_ulong_iget, \
        unsigned long long *: oxshmem_ctx_ulonglong_iget, \
        volatile unsigned long long *: oxshmem_ctx_ulonglong_iget, \
        default: oxshmem_no_such_call), \
    float *: oxshmem_float_iget, \
    volatile float *: oxshmem_float_iget, \
    double *: oxshmem_double_iget, \
    volatile double *: oxshmem_double_iget, \
    long double *: oxshmem_longdouble_iget, \
    volatile long double *: oxshmem_longdouble_iget, \
    char *: oxshmem_char_iget, \
    volatile char *: oxshmem_char_iget, \
    signed char *: oxshmem_schar_iget, \
    volatile signed char *: oxshmem_schar_iget, \
    short *: oxshmem_short_iget, \
    volatile short *: oxshmem_short_iget, \
    int *: oxshmem_int_iget, \
    volatile int *: oxshmem_int_iget, \
    long *: oxshmem_long_iget, \
    volatile long *: oxshmem_long_iget, \
    long long *: oxshmem_longlong_iget, \
    volatile long long *: oxshmem_longlong_iget, \
    unsigned char *: oxshmem_uchar_iget, \
    volatile unsigned char *: oxshmem_uchar_iget, \
    unsigned short *: oxshmem_ushort_iget, \
    volatile unsigned short *: oxshmem_ushort_iget, \
    unsigned int *: oxshmem_uint_iget, \
    volatile unsigned int *: oxshmem_uint_iget, \
    unsigned long *: oxshmem_ulong_iget, \
    volatile unsigned long *: oxshmem_ulong_iget, \
    unsigned long long *: oxshmem_ulonglong_iget, \
    volatile unsigned long long *: oxshmem_ulonglong_iget, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_ibget(...) _Generic((OXSHMEM_FIRST(__VA_ARGS__, 0)), \
    shmem_ctx_t: _Generic((OXSHMEM_SECOND(__VA_ARGS__, 0, 0)), \
        float *: oxshmem_ctx_float_ibget, \
        volatile float *: oxshmem_ctx_float_ibget, \
        double *: oxshmem_ctx_double_ibget, \
        volatile double *: oxshmem_ctx_double_ibget, \
        long double *: oxshmem_ctx_longdouble_ibget, \
        volatile long double *: oxshmem_ctx_longdouble_ibget, \
        char *: oxshmem_ctx_char_ibget, \
        volatile char *: oxshmem_ctx_char_ibget, \
        signed char *: oxshmem_ctx_schar_ibget, \
        volatile signed char *: oxshmem_ctx_schar_ibget, \
        short *: oxshmem_ctx_short_ibget, \
        volatile short *: oxshmem_ctx_short_ibget, \
        int *: oxshmem_ctx_int_ibget, \
        volatile int *: oxshmem_ctx_int_ibget, \
        long *: oxshmem_ctx_long_ibget, \
        volatile long *: oxshmem_ctx_long_ibget, \
        long long *: oxshmem_ctx_longlong_ibget, \
        volatile long long *: oxshmem_ctx_longlong_ibget, \
        unsigned char *: oxshmem_ctx_uchar_ibget, \
        volatile unsigned char *: oxshmem_ctx_uchar_ibget, \
        unsigned short *: oxshmem_ctx_ushort_ibget, \
        volatile unsigned short *: oxshmem_ctx_ushort_ibget, \
        unsigned int *: oxshmem_ctx_uint_ibget, \
        volatile unsigned int *: oxshmem_ctx_uint_ibget, \
        unsigned long *: oxshmem_ctx_ulong_ibget, \
        volatile unsigned long *: oxshmem_ctx_ulong_ibget, \
        unsigned long long *: oxshmem_ctx_ulonglong_ibget, \
        volatile unsigned long long *: oxshmem_ctx_ulonglong_ibget, \
        default: oxshmem_no_such_call), \
    float *: oxshmem_float_ibget, \
    volatile float *: oxshmem_float_ibget, \
    double *: oxshmem_double_ibget, \
    volatile double *: oxshmem_double_ibget, \
    long double *: oxshmem_longdouble_ibget, \
    volatile long double *: oxshmem_longdouble_ibget, \
    char *: oxshmem_char_ibget, \
    volatile char *: oxshmem_char_ibget, \
    signed char *: oxshmem_schar_ibget, \
    volatile signed char *: oxshmem_schar_ibget, \
    short *: oxshmem_short_ibget, \
    volatile short *: oxshmem_short_ibget, \
    int *: oxshmem_int_ibget, \
    volatile int *: oxshmem_int_ibget, \
    long *: oxshmem_long_ibget, \
    volatile long *: oxshmem_long_ibget, \
    long long *: oxshmem_longlong_ibget, \
    volatile long long *: oxshmem_longlong_ibget, \
    unsigned char *: oxshmem_uchar_ibget, \
    volatile unsigned char *: oxshmem_uchar_ibget, \
    unsigned short *: oxshmem_ushort_ibget, \
    volatile unsigned short *: oxshmem_ushort_ibget, \
    unsigned int *: oxshmem_uint_ibget, \
    volatile unsigned int *: oxshmem_uint_ibget, \
    unsigned long *: oxshmem_ulong_ibget, \
    volatile unsigned long *: oxshmem_ulong_ibget, \
    unsigned long long *: oxshmem_ulonglong_ibget, \
    volatile unsigned long long *: oxshmem_ulonglong_ibget, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_put_nbi(...) _Generic((OXSHMEM_FIRST(__VA_ARGS__, 0)), \
    shmem_ctx_t: _Generic((OXSHMEM_SECOND(__VA_ARGS__, 0, 0)), \
        float *: oxshmem_ctx_float_put_nbi, \
        volatile float *: oxshmem_ctx_float_put_nbi, \
        double *: oxshmem_ctx_double_put_nbi, \
        volatile double *: oxshmem_ctx_double_put_nbi, \
        long double *: oxshmem_ctx_longdouble_put_nbi, \
        volatile long double *: oxshmem_ctx_longdouble_put_nbi, \
        char *: oxshmem_ctx_char_put_nbi, \
        volatile char *: oxshmem_ctx_char_put_nbi, \
        signed char *: oxshmem_ctx_schar_put_nbi, \
        volatile signed char *: oxshmem_ctx_schar_put_nbi, \
        short *: oxshmem_ctx_short_put_nbi, \
        volatile short *: oxshmem_ctx_short_put_nbi, \
        int *: oxshmem_ctx_int_put_nbi, \
        volatile int *: oxshmem_ctx_int_put_nbi, \
        long *: oxshmem_ctx_long_put_nbi, \
        volatile long *: oxshmem_ctx_long_put_nbi, \
        long long *: oxshmem_ctx_longlong_put_nbi, \
        volatile long long *: oxshmem_ctx_longlong_put_nbi, \
        unsigned char *: oxshmem_ctx_uchar_put_nbi, \
        volatile unsigned char *: oxshmem_ctx_uchar_put_nbi, \
        unsigned short *: oxshmem_ctx_ushort_put_nbi, \
        volatile unsigned short *: oxshmem_ctx_ushort_put_nbi, \
        unsigned int *: oxshmem_ctx_uint_put_nbi, \
        volatile unsigned int *: oxshmem_ctx_uint_put_nbi, \
        unsigned long *: oxshmem_ctx_ulong_put_nbi, \
        volatile unsigned long *: oxshmem_ctx_ulong_put_nbi, \
        unsigned long long *: oxshmem_ctx_ulonglong_put_nbi, \
        volatile unsigned long long *: oxshmem_ctx_ulonglong_put_nbi, \
        default: oxshmem_no_such_call), \
    float *: oxshmem_float_put_nbi, \
    volatile float *: oxshmem_float_put_nbi, \
    double *: oxshmem_double_put_nbi, \
    volatile double *: oxshmem_double_put_nbi, \
    long double *: oxshmem_longdouble_put_nbi, \
    volatile long double *: oxshmem_longdouble_put_nbi, \
    char *: oxshmem_char_put_nbi, \
    volatile char *: oxshmem_char_put_nbi, \
    signed char *: oxshmem_schar_put_nbi, \
    volatile signed char *: oxshmem_schar_put_nbi, \
    short *: oxshmem_short_put_nbi, \
    volatile short *: oxshmem_short_put_nbi, \
    int *: oxshmem_int_put_nbi, \
    volatile int *: oxshmem_int_put_nbi, \
    long *: oxshmem_long_put_nbi, \
    volatile long *: oxshmem_long_put_nbi, \
    long long *: oxshmem_longlong_put_nbi, \
    volatile long long *: oxshmem_longlong_put_nbi, \
    unsigned char *: oxshmem_uchar_put_nbi, \
    volatile unsigned char *: oxshmem_uchar_put_nbi, \
    unsigned short *: oxshmem_ushort_put_nbi, \
    volatile unsigned short *: oxshmem_ushort_put_nbi, \
    unsigned int *: oxshmem_uint_put_nbi, \
    volatile unsigned int *: oxshmem_uint_put_nbi, \
    unsigned long *: oxshmem_ulong_put_nbi, \
    volatile unsigned long *: oxshmem_ulong_put_nbi, \
    unsigned long long *: oxshmem_ulonglong_put_nbi, \
    volatile unsigned long long *: oxshmem_ulonglong_put_nbi, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_get_nbi(...) _Generic((OXSHMEM_FIRST(__VA_ARGS__, 0)), \
    shmem_ctx_t: _Generic((OXSHMEM_SECOND(__VA_ARGS__, 0, 0)), \
        float *: oxshmem_ctx_float_get_nbi, \
        volatile float *: oxshmem_ctx_float_get_nbi, \
        double *: oxshmem_ctx_double_get_nbi, \
        volatile double *: oxshmem_ctx_double_get_nbi, \
        long double *: oxshmem_ctx_longdouble_get_nbi, \
        volatile long double *: oxshmem_ctx_longdouble_get_nbi, \
        char *: oxshmem_ctx_char_get_nbi, \
        volatile char *: oxshmem_ctx_char_get_nbi, \
        signed char *: oxshmem_ctx_schar_get_nbi, \
        volatile signed char *: oxshmem_ctx_schar_get_nbi, \
        short *: oxshmem_ctx_short_get_nbi, \
        volatile short *: oxshmem_ctx_short_get_nbi, \
        int *: oxshmem_ctx_int_get_nbi, \
        volatile int *: oxshmem_ctx_int_get_nbi, \
        long *: oxshmem_ctx_long_get_nbi, \
        volatile long *: oxshmem_ctx_long_get_nbi, \
        long long *: oxshmem_ctx_longlong_get_nbi, \
        volatile long long *: oxshmem_ctx_longlong_get_nbi, \
        unsigned char *: oxshmem_ctx_uchar_get_nbi, \
        volatile unsigned char *: oxshmem_ctx_uchar_get_nbi, \
        unsigned short *: oxshmem_ctx_ushort_get_nbi, \
        volatile unsigned short *: oxshmem_ctx_ushort_get_nbi, \
        unsigned int *: oxshmem_ctx_uint_get_nbi, \
        volatile unsigned int *: oxshmem_ctx_uint_get_nbi, \
        unsigned long *: oxshmem_ctx_ulong_get_nbi, \
        volatile unsigned long *: oxshmem_ctx_ulong_get_nbi, \
        unsigned long long *: oxshmem_ctx_ulonglong_get_nbi, \
        volatile unsigned long long *: oxshmem_ctx_ulonglong_get_nbi, \
        default: oxshmem_no_such_call), \
    float *: oxshmem_float_get_nbi, \
    volatile float *: oxshmem_float_get_nbi, \
    double *: oxshmem_double_get_nbi, \
    volatile double *: oxshmem_double_get_nbi, \
    long double *: oxshmem_longdouble_get_nbi, \
    volatile long double *: oxshmem_longdouble_get_nbi, \
    char *: oxshmem_char_get_nbi, \
    volatile char *: oxshmem_char_get_nbi, \
    signed char *: oxshmem_schar_get_nbi, \
    volatile signed char *: oxshmem_schar_get_nbi, \
    short *: oxshmem_short_get_nbi, \
    volatile short *: oxshmem_short_get_nbi, \
    int *: oxshmem_int_get_nbi, \
    volatile int *: oxshmem_int_get_nbi, \
    long *: oxshmem_long_get_nbi, \
    volatile long *: oxshmem_long_get_nbi, \
    long long *: oxshmem_longlong_get_nbi, \
    volatile long long *: oxshmem_longlong_get_nbi, \
    unsigned char *: oxshmem_uchar_get_nbi, \
    volatile unsigned char *: oxshmem_uchar_get_nbi, \
    unsigned short *: oxshmem_ushort_get_nbi, \
    volatile unsigned short *: oxshmem_ushort_get_nbi, \
    unsigned int *: oxshmem_uint_get_nbi, \
    volatile unsigned int *: oxshmem_uint_get_nbi, \
    unsigned long *: oxshmem_ulong_get_nbi, \
    volatile unsigned long *: oxshmem_ulong_get_nbi, \
    unsigned long long *: oxshmem_ulonglong_get_nbi, \
    volatile unsigned long long *: oxshmem_ulonglong_get_nbi, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_atomic_fetch(...) _Generic((OXSHMEM_FIRST(__VA_ARGS__, 0)), \
    shmem_ctx_t: _Generic((OXSHMEM_SECOND(__VA_ARGS__, 0, 0)), \
        float *: oxshmem_ctx_float_atomic_fetch, \
        const float *: oxshmem_ctx_float_atomic_fetch, \
        volatile float *: oxshmem_ctx_float_atomic_fetch, \
        const volatile float *: oxshmem_ctx_float_atomic_fetch, \
        double *: oxshmem_ctx_double_atomic_fetch, \
        const double *: oxshmem_ctx_double_atomic_fetch, \
        volatile double *: oxshmem_ctx_double_atomic_fetch, \
        const volatile double *: oxshmem_ctx_double_atomic_fetch, \
        int *: oxshmem_ctx_int_atomic_fetch, \
        const int *: oxshmem_ctx_int_atomic_fetch, \
        volatile int *: oxshmem_ctx_int_atomic_fetch, \
        const volatile int *: oxshmem_ctx_int_atomic_fetch, \
        long *: oxshmem_ctx_long_atomic_fetch, \
        const long *: oxshmem_ctx_long_atomic_fetch, \
        volatile long *: oxshmem_ctx_long_atomic_fetch, \
        const volatile long *: oxshmem_ctx_long_atomic_fetch, \
        long long *: oxshmem_ctx_longlong_atomic_fetch, \
        const long long *: oxshmem_ctx_longlong_atomic_fetch, \
        volatile long long *: oxshmem_ctx_longlong_atomic_fetch, \
        const volatile long long *: oxshmem_ctx_longlong_atomic_fetch, \
        unsigned int *: oxshmem_ctx_uint_atomic_fetch, \
        const unsigned int *: oxshmem_ctx_uint_atomic_fetch, \
        volatile unsigned int *: oxshmem_ctx_uint_atomic_fetch, \
        const volatile unsigned int *: oxshmem_ctx_uint_atomic_fetch, \
        unsigned long *: oxshmem_ctx_ulong_atomic_fetch, \
        const unsigned long *: oxshmem_ctx_ulong_atomic_fetch, \
        volatile unsigned long *: oxshmem_ctx_ulong_atomic_fetch, \
        const volatile unsigned long *: oxshmem_ctx_ulong_atomic_fetch, \
        unsigned long long *: oxshmem_ctx_ulonglong_atomic_fetch, \
        const unsigned long long *: oxshmem_ctx_ulonglong_atomic_fetch, \
        volatile unsigned long long *: oxshmem_ctx_ulonglong_atomic_fetch, \
        const volatile unsigned long long *: oxshmem_ctx_ulonglong_atomic_fetch, \
        default: oxshmem_no_such_call), \
    float *: oxshmem_float_atomic_fetch, \
    const float *: oxshmem_float_atomic_fetch, \
    volatile float *: oxshmem_float_atomic_fetch, \
    const volatile float *: oxshmem_float_atomic_fetch, \
    double *: oxshmem_double_atomic_fetch, \
    const double *: oxshmem_double_atomic_fetch, \
    volatile double *: oxshmem_double_atomic_fetch, \
    const volatile double *: oxshmem_double_atomic_fetch, \
    int *: oxshmem_int_atomic_fetch, \
    const int *: oxshmem_int_atomic_fetch, \
    volatile int *: oxshmem_int_atomic_fetch, \
    const volatile int *: oxshmem_int_atomic_fetch, \
    long *: oxshmem_long_atomic_fetch, \
    const long *: oxshmem_long_atomic_fetch, \
    volatile long *: oxshmem_long_atomic_fetch, \
    const volatile long *: oxshmem_long_atomic_fetch, \
    long long *: oxshmem_longlong_atomic_fetch, \
    const long long *: oxshmem_longlong_atomic_fetch, \
    volatile long long *: oxshmem_longlong_atomic_fetch, \
    const volatile long long *: oxshmem_longlong_atomic_fetch, \
    unsigned int *: oxshmem_uint_atomic_fetch, \
    const unsigned int *: oxshmem_uint_atomic_fetch, \
    volatile unsigned int *: oxshmem_uint_atomic_fetch, \
    const volatile unsigned int *: oxshmem_uint_atomic_fetch, \
    unsigned long *: oxshmem_ulong_atomic_fetch, \
    const unsigned long *: oxshmem_ulong_atomic_fetch, \
    volatile unsigned long *: oxshmem_ulong_atomic_fetch, \
    const volatile unsigned long *: oxshmem_ulong_atomic_fetch, \
    unsigned long long *: oxshmem_ulonglong_atomic_fetch, \
    const unsigned long long *: oxshmem_ulonglong_atomic_fetch, \
    volatile unsigned long long *: oxshmem_ulonglong_atomic_fetch, \
    const volatile unsigned long long *: oxshmem_ulonglong_atomic_fetch, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_atomic_set(...) _Generic((OXSHMEM_FIRST(__VA_ARGS__, 0)), \
    shmem_ctx_t: _Generic((OXSHMEM_SECOND(__VA_ARGS__, 0, 0)), \
        float *: oxshmem_ctx_float_atomic_set, \
        volatile float *: oxshmem_ctx_float_atomic_set, \
        double *: oxshmem_ctx_double_atomic_set, \
        volatile double *: oxshmem_ctx_double_atomic_set, \
        int *: oxshmem_ctx_int_atomic_set, \
        volatile int *: oxshmem_ctx_int_atomic_set, \
        long *: oxshmem_ctx_long_atomic_set, \
        volatile long *: oxshmem_ctx_long_atomic_set, \
        long long *: oxshmem_ctx_longlong_atomic_set, \
        volatile long long *: oxshmem_ctx_longlong_atomic_set, \
        unsigned int *: oxshmem_ctx_uint_atomic_set, \
        volatile unsigned int *: oxshmem_ctx_uint_atomic_set, \
        unsigned long *: oxshmem_ctx_ulong_atomic_set, \
        volatile unsigned long *: oxshmem_ctx_ulong_atomic_set, \
        unsigned long long *: oxshmem_ctx_ulonglong_atomic_set, \
        volatile unsigned long long *: oxshmem_ctx_ulonglong_atomic_set, \
        default: oxshmem_no_such_call), \
    float *: oxshmem_float_atomic_set, \
    volatile float *: oxshmem_float_atomic_set, \
    double *: oxshmem_double_atomic_set, \
    volatile double *: oxshmem_double_atomic_set, \
    int *: oxshmem_int_atomic_set, \
    volatile int *: oxshmem_int_atomic_set, \
    long *: oxshmem_long_atomic_set, \
    volatile long *: oxshmem_long_atomic_set, \
    long long *: oxshmem_longlong_atomic_set, \
    volatile long long *: oxshmem_longlong_atomic_set, \
    unsigned int *: oxshmem_uint_atomic_set, \
    volatile unsigned int *: oxshmem_uint_atomic_set, \
    unsigned long *: oxshmem_ulong_atomic_set, \
    volatile unsigned long *: oxshmem_ulong_atomic_set, \
    unsigned long long *: oxshmem_ulonglong_atomic_set, \
    volatile unsigned long long *: oxshmem_ulonglong_atomic_set, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_atomic_compare_swap(...) _Generic((OXSHMEM_FIRST(__VA_ARGS__, 0)), \
    shmem_ctx_t: _Generic((OXSHMEM_SECOND(__VA_ARGS__, 0, 0)), \
        int *: oxshmem_ctx_int_atomic_compare_swap, \
        volatile int *: oxshmem_ctx_int_atomic_compare_swap, \
        long *: oxshmem_ctx_long_atomic_compare_swap, \
        volatile long *: oxshmem_ctx_long_atomic_compare_swap, \
        long long *: oxshmem_ctx_longlong_atomic_compare_swap, \
        volatile long long *: oxshmem_ctx_longlong_atomic_compare_swap, \
        unsigned int *: oxshmem_ctx_uint_atomic_compare_swap, \
        volatile unsigned int *: oxshmem_ctx_uint_atomic_compare_swap, \
        unsigned long *: oxshmem_ctx_ulong_atomic_compare_swap, \
        volatile unsigned long *: oxshmem_ctx_ulong_atomic_compare_swap, \
        unsigned long long *: oxshmem_ctx_ulonglong_atomic_compare_swap, \
        volatile unsigned long long *: oxshmem_ctx_ulonglong_atomic_compare_swap, \
        default: oxshmem_no_such_call), \
    int *: oxshmem_int_atomic_compare_swap, \
    volatile int *: oxshmem_int_atomic_compare_swap, \
    long *: oxshmem_long_atomic_compare_swap, \
    volatile long *: oxshmem_long_atomic_compare_swap, \
    long long *: oxshmem_longlong_atomic_compare_swap, \
    volatile long long *: oxshmem_longlong_atomic_compare_swap, \
    unsigned int *: oxshmem_uint_atomic_compare_swap, \
    volatile unsigned int *: oxshmem_uint_atomic_compare_swap, \
    unsigned long *: oxshmem_ulong_atomic_compare_swap, \
    volatile unsigned long *: oxshmem_ulong_atomic_compare_swap, \
    unsigned long long *: oxshmem_ulonglong_atomic_compare_swap, \
    volatile unsigned long long *: oxshmem_ulonglong_atomic_compare_swap, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_atomic_swap(...) _Generic((OXSHMEM_FIRST(__VA_ARGS__, 0)), \
    shmem_ctx_t: _Generic((OXSHMEM_SECOND(__VA_ARGS__, 0, 0)), \
        float *: oxshmem_ctx_float_atomic_swap, \
        volatile float *: oxshmem_ctx_float_atomic_swap, \
        double *: oxshmem_ctx_double_atomic_swap, \
        volatile double *: oxshmem_ctx_double_atomic_swap, \
        int *: oxshmem_ctx_int_atomic_swap, \
        volatile int *: oxshmem_ctx_int_atomic_swap, \
        long *: oxshmem_ctx_long_atomic_swap, \
        volatile long *: oxshmem_ctx_long_atomic_swap, \
        long long *: oxshmem_ctx_longlong_atomic_swap, \
        volatile long long *: oxshmem_ctx_longlong_atomic_swap, \
        unsigned int *: oxshmem_ctx_uint_atomic_swap, \
        volatile unsigned int *: oxshmem_ctx_uint_atomic_swap, \
        unsigned long *: oxshmem_ctx_ulong_atomic_swap, \
        volatile unsigned long *: oxshmem_ctx_ulong_atomic_swap, \
        unsigned long long *: oxshmem_ctx_ulonglong_atomic_swap, \
        volatile unsigned long long *: oxshmem_ctx_ulonglong_atomic_swap, \
        default: oxshmem_no_such_call), \
    float *: oxshmem_float_atomic_swap, \
    volatile float *: oxshmem_float_atomic_swap, \
    double *: oxshmem_double_atomic_swap, \
    volatile double *: oxshmem_double_atomic_swap, \
    int *: oxshmem_int_atomic_swap, \
    volatile int *: oxshmem_int_atomic_swap, \
    long *: oxshmem_long_atomic_swap, \
    volatile long *: oxshmem_long_atomic_swap, \
    long long *: oxshmem_longlong_atomic_swap, \
    volatile long long *: oxshmem_longlong_atomic_swap, \
    unsigned int *: oxshmem_uint_atomic_swap, \
    volatile unsigned int *: oxshmem_uint_atomic_swap, \
    unsigned long *: oxshmem_ulong_atomic_swap, \
    volatile unsigned long *: oxshmem_ulong_atomic_swap, \
    unsigned long long *: oxshmem_ulonglong_atomic_swap, \
    volatile unsigned long long *: oxshmem_ulonglong_atomic_swap, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_atomic_fetch_inc(...) _Generic((OXSHMEM_FIRST(__VA_ARGS__, 0)), \
    shmem_ctx_t: _Generic((OXSHMEM_SECOND(__VA_ARGS__, 0, 0)), \
        int *: oxshmem_ctx_int_atomic_fetch_inc, \
        volatile int *: oxshmem_ctx_int_atomic_fetch_inc, \
        long *: oxshmem_ctx_long_atomic_fetch_inc, \
        volatile long *: oxshmem_ctx_long_atomic_fetch_inc, \
        long long *: oxshmem_ctx_longlong_atomic_fetch_inc, \
        volatile long long *: oxshmem_ctx_longlong_atomic_fetch_inc, \
        unsigned int *: oxshmem_ctx_uint_atomic_fetch_inc, \
        volatile unsigned int *: oxshmem_ctx_uint_atomic_fetch_inc, \
        unsigned long *: oxshmem_ctx_ulong_atomic_fetch_inc, \
        volatile unsigned long *: oxshmem_ctx_ulong_atomic_fetch_inc, \
        unsigned long long *: oxshmem_ctx_ulonglong_atomic_fetch_inc, \
        volatile unsigned long long *: oxshmem_ctx_ulonglong_atomic_fetch_inc, \
        default: oxshmem_no_such_call), \
    int *: oxshmem_int_atomic_fetch_inc, \
    volatile int *: oxshmem_int_atomic_fetch_inc, \
    long *: oxshmem_long_atomic_fetch_inc, \
    volatile long *: oxshmem_long_atomic_fetch_inc, \
    long long *: oxshmem_longlong_atomic_fetch_inc, \
    volatile long long *: oxshmem_longlong_atomic_fetch_inc, \
    unsigned int *: oxshmem_uint_atomic_fetch_inc, \
    volatile unsigned int *: oxshmem_uint_atomic_fetch_inc, \
    unsigned long *: oxshmem_ulong_atomic_fetch_inc, \
    volatile unsigned long *: oxshmem_ulong_atomic_fetch_inc, \
    unsigned long long *: oxshmem_ulonglong_atomic_fetch_inc, \
    volatile unsigned long long *: oxshmem_ulonglong_atomic_fetch_inc, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_atomic_inc(...) _Generic((OXSHMEM_FIRST(__VA_ARGS__, 0)), \
    shmem_ctx_t: _Generic((OXSHMEM_SECOND(__VA_ARGS__, 0, 0)), \
        int *: oxshmem_ctx_int_atomic_inc, \
        volatile int *: oxshmem_ctx_int_atomic_inc, \
        long *: oxshmem_ctx_long_atomic_inc, \
        volatile long *: oxshmem_ctx_long_atomic_inc, \
        long long *: oxshmem_ctx_longlong_atomic_inc, \
        volatile long long *: oxshmem_ctx_longlong_atomic_inc, \
        unsigned int *: oxshmem_ctx_uint_atomic_inc, \
        volatile unsigned int *: oxshmem_ctx_uint_atomic_inc, \
        unsigned long *: oxshmem_ctx_ulong_atomic_inc, \
        volatile unsigned long *: oxshmem_ctx_ulong_atomic_inc, \
        unsigned long long *: oxshmem_ctx_ulonglong_atomic_inc, \
        volatile unsigned long long *: oxshmem_ctx_ulonglong_atomic_inc, \
        default: oxshmem_no_such_call), \
    int *: oxshmem_int_atomic_inc, \
    volatile int *: oxshmem_int_atomic_inc, \
    long *: oxshmem_long_atomic_inc, \
    volatile long *: oxshmem_long_atomic_inc, \
    long long *: oxshmem_longlong_atomic_inc, \
    volatile long long *: oxshmem_longlong_atomic_inc, \
    unsigned int *: oxshmem_uint_atomic_inc, \
    volatile unsigned int *: oxshmem_uint_atomic_inc, \
    unsigned long *: oxshmem_ulong_atomic_inc, \
    volatile unsigned long *: oxshmem_ulong_atomic_inc, \
    unsigned long long *: oxshmem_ulonglong_atomic_inc, \
    volatile unsigned long long *: oxshmem_ulonglong_atomic_inc, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_atomic_fetch_add(...) _Generic((OXSHMEM_FIRST(__VA_ARGS__, 0)), \
    shmem_ctx_t: _Generic((OXSHMEM_SECOND(__VA_ARGS__, 0, 0)), \
        int *: oxshmem_ctx_int_atomic_fetch_add, \
        volatile int *: oxshmem_ctx_int_atomic_fetch_add, \
        long *: oxshmem_ctx_long_atomic_fetch_add, \
        volatile long *: oxshmem_ctx_long_atomic_fetch_add, \
        long long *: oxshmem_ctx_longlong_atomic_fetch_add, \
        volatile long long *: oxshmem_ctx_longlong_atomic_fetch_add, \
        unsigned int *: oxshmem_ctx_uint_atomic_fetch_add, \
        volatile unsigned int *: oxshmem_ctx_uint_atomic_fetch_add, \
        unsigned long *: oxshmem_ctx_ulong_atomic_fetch_add, \
        volatile unsigned long *: oxshmem_ctx_ulong_atomic_fetch_add, \
        unsigned long long *: oxshmem_ctx_ulonglong_atomic_fetch_add, \
        volatile unsigned long long *: oxshmem_ctx_ulonglong_atomic_fetch_add, \
        default: oxshmem_no_such_call), \
    int *: oxshmem_int_atomic_fetch_add, \
    volatile int *: oxshmem_int_atomic_fetch_add, \
    long *: oxshmem_long_atomic_fetch_add, \
    volatile long *: oxshmem_long_atomic_fetch_add, \
    long long *: oxshmem_longlong_atomic_fetch_add, \
    volatile long long *: oxshmem_longlong_atomic_fetch_add, \
    unsigned int *: oxshmem_uint_atomic_fetch_add, \
    volatile unsigned int *: oxshmem_uint_atomic_fetch_add, \
    unsigned long *: oxshmem_ulong_atomic_fetch_add, \
    volatile unsigned long *: oxshmem_ulong_atomic_fetch_add, \
    unsigned long long *: oxshmem_ulonglong_atomic_fetch_add, \
    volatile unsigned long long *: oxshmem_ulonglong_atomic_fetch_add, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_atomic_add(...) _Generic((OXSHMEM_FIRST(__VA_ARGS__, 0)), \
    shmem_ctx_t: _Generic((OXSHMEM_SECOND(__VA_ARGS__, 0, 0)), \
        int *: oxshmem_ctx_int_atomic_add, \
        volatile int *: oxshmem_ctx_int_atomic_add, \
        long *: oxshmem_ctx_long_atomic_add, \
        volatile long *: oxshmem_ctx_long_atomic_add, \
        long long *: oxshmem_ctx_longlong_atomic_add, \
        volatile long long *: oxshmem_ctx_longlong_atomic_add, \
        unsigned int *: oxshmem_ctx_uint_atomic_add, \
        volatile unsigned int *: oxshmem_ctx_uint_atomic_add, \
        unsigned long *: oxshmem_ctx_ulong_atomic_add, \
        volatile unsigned long *: oxshmem_ctx_ulong_atomic_add, \
        unsigned long long *: oxshmem_ctx_ulonglong_atomic_add, \
        volatile unsigned long long *: oxshmem_ctx_ulonglong_atomic_add, \
        default: oxshmem_no_such_call), \
    int *: oxshmem_int_atomic_add, \
    volatile int *: oxshmem_int_atomic_add, \
    long *: oxshmem_long_atomic_add, \
    volatile long *: oxshmem_long_atomic_add, \
    long long *: oxshmem_longlong_atomic_add, \
    volatile long long *: oxshmem_longlong_atomic_add, \
    unsigned int *: oxshmem_uint_atomic_add, \
    volatile unsigned int *: oxshmem_uint_atomic_add, \
    unsigned long *: oxshmem_ulong_atomic_add, \
    volatile unsigned long *: oxshmem_ulong_atomic_add, \
    unsigned long long *: oxshmem_ulonglong_atomic_add, \
    volatile unsigned long long *: oxshmem_ulonglong_atomic_add, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_atomic_fetch_and(...) _Generic((OXSHMEM_FIRST(__VA_ARGS__, 0)), \
    shmem_ctx_t: _Generic((OXSHMEM_SECOND(__VA_ARGS__, 0, 0)), \
        unsigned int *: oxshmem_ctx_uint_atomic_fetch_and, \
        volatile unsigned int *: oxshmem_ctx_uint_atomic_fetch_and, \
        unsigned long *: oxshmem_ctx_ulong_atomic_fetch_and, \
        volatile unsigned long *: oxshmem_ctx_ulong_atomic_fetch_and, \
        unsigned long long *: oxshmem_ctx_ulonglong_atomic_fetch_and, \
        volatile unsigned long long *: oxshmem_ctx_ulonglong_atomic_fetch_and, \
        int *: oxshmem_ctx_int32_atomic_fetch_and, \
        volatile int *: oxshmem_ctx_int32_atomic_fetch_and, \
        long *: oxshmem_ctx_int64_atomic_fetch_and, \
        volatile long *: oxshmem_ctx_int64_atomic_fetch_and, \
        default: oxshmem_no_such_call), \
    unsigned int *: oxshmem_uint_atomic_fetch_and, \
    volatile unsigned int *: oxshmem_uint_atomic_fetch_and, \
    unsigned long *: oxshmem_ulong_atomic_fetch_and, \
    volatile unsigned long *: oxshmem_ulong_atomic_fetch_and, \
    unsigned long long *: oxshmem_ulonglong_atomic_fetch_and, \
    volatile unsigned long long *: oxshmem_ulonglong_atomic_fetch_and, \
    int *: oxshmem_int32_atomic_fetch_and, \
    volatile int *: oxshmem_int32_atomic_fetch_and, \
    long *: oxshmem_int64_atomic_fetch_and, \
    volatile long *: oxshmem_int64_atomic_fetch_and, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_atomic_and(...) _Generic((OXSHMEM_FIRST(__VA_ARGS__, 0)), \
    shmem_ctx_t: _Generic((OXSHMEM_SECOND(__VA_ARGS__, 0, 0)), \
        unsigned int *: oxshmem_ctx_uint_atomic_and, \
        volatile unsigned int *: oxshmem_ctx_uint_atomic_and, \
        unsigned long *: oxshmem_ctx_ulong_atomic_and, \
        volatile unsigned long *: oxshmem_ctx_ulong_atomic_and, \
        unsigned long long *: oxshmem_ctx_ulonglong_atomic_and, \
        volatile unsigned long long *: oxshmem_ctx_ulonglong_atomic_and, \
        int *: oxshmem_ctx_int32_atomic_and, \
        volatile int *: oxshmem_ctx_int32_atomic_and, \
        long *: oxshmem_ctx_int64_atomic_and, \
        volatile long *: oxshmem_ctx_int64_atomic_and, \
        default: oxshmem_no_such_call), \
    unsigned int *: oxshmem_uint_atomic_and, \
    volatile unsigned int *: oxshmem_uint_atomic_and, \
    unsigned long *: oxshmem_ulong_atomic_and, \
    volatile unsigned long *: oxshmem_ulong_atomic_and, \
    unsigned long long *: oxshmem_ulonglong_atomic_and, \
    volatile unsigned long long *: oxshmem_ulonglong_atomic_and, \
    int *: oxshmem_int32_atomic_and, \
    volatile int *: oxshmem_int32_atomic_and, \
    long *: oxshmem_int64_atomic_and, \
    volatile long *: oxshmem_int64_atomic_and, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_atomic_fetch_or(...) _Generic((OXSHMEM_FIRST(__VA_ARGS__, 0)), \
    shmem_ctx_t: _Generic((OXSHMEM_SECOND(__VA_ARGS__, 0, 0)), \
        unsigned int *: oxshmem_ctx_uint_atomic_fetch_or, \
        volatile unsigned int *: oxshmem_ctx_uint_atomic_fetch_or, \
        unsigned long *: oxshmem_ctx_ulong_atomic_fetch_or, \
        volatile unsigned long *: oxshmem_ctx_ulong_atomic_fetch_or, \
        unsigned long long *: oxshmem_ctx_ulonglong_atomic_fetch_or, \
        volatile unsigned long long *: oxshmem_ctx_ulonglong_atomic_fetch_or, \
        int *: oxshmem_ctx_int32_atomic_fetch_or, \
        volatile int *: oxshmem_ctx_int32_atomic_fetch_or, \
        long *: oxshmem_ctx_int64_atomic_fetch_or, \
        volatile long *: oxshmem_ctx_int64_atomic_fetch_or, \
        default: oxshmem_no_such_call), \
    unsigned int *: oxshmem_uint_atomic_fetch_or, \
    volatile unsigned int *: oxshmem_uint_atomic_fetch_or, \
    unsigned long *: oxshmem_ulong_atomic_fetch_or, \
    volatile unsigned long *: oxshmem_ulong_atomic_fetch_or, \
    unsigned long long *: oxshmem_ulonglong_atomic_fetch_or, \
    volatile unsigned long long *: oxshmem_ulonglong_atomic_fetch_or, \
    int *: oxshmem_int32_atomic_fetch_or, \
    volatile int *: oxshmem_int32_atomic_fetch_or, \
    long *: oxshmem_int64_atomic_fetch_or, \
    volatile long *: oxshmem_int64_atomic_fetch_or, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_atomic_or(...) _Generic((OXSHMEM_FIRST(__VA_ARGS__, 0)), \
    shmem_ctx_t: _Generic((OXSHMEM_SECOND(__VA_ARGS__, 0, 0)), \
        unsigned int *: oxshmem_ctx_uint_atomic_or, \
        volatile unsigned int *: oxshmem_ctx_uint_atomic_or, \
        unsigned long *: oxshmem_ctx_ulong_atomic_or, \
        volatile unsigned long *: oxshmem_ctx_ulong_atomic_or, \
        unsigned long long *: oxshmem_ctx_ulonglong_atomic_or, \
        volatile unsigned long long *: oxshmem_ctx_ulonglong_atomic_or, \
        int *: oxshmem_ctx_int32_atomic_or, \
        volatile int *: oxshmem_ctx_int32_atomic_or, \
        long *: oxshmem_ctx_int64_atomic_or, \
        volatile long *: oxshmem_ctx_int64_atomic_or, \
        default: oxshmem_no_such_call), \
    unsigned int *: oxshmem_uint_atomic_or, \
    volatile unsigned int *: oxshmem_uint_atomic_or, \
    unsigned long *: oxshmem_ulong_atomic_or, \
    volatile unsigned long *: oxshmem_ulong_atomic_or, \
    unsigned long long *: oxshmem_ulonglong_atomic_or, \
    volatile unsigned long long *: oxshmem_ulonglong_atomic_or, \
    int *: oxshmem_int32_atomic_or, \
    volatile int *: oxshmem_int32_atomic_or, \
    long *: oxshmem_int64_atomic_or, \
    volatile long *: oxshmem_int64_atomic_or, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_atomic_fetch_xor(...) _Generic((OXSHMEM_FIRST(__VA_ARGS__, 0)), \
    shmem_ctx_t: _Generic((OXSHMEM_SECOND(__VA_ARGS__, 0, 0)), \
        unsigned int *: oxshmem_ctx_uint_atomic_fetch_xor, \
        volatile unsigned int *: oxshmem_ctx_uint_atomic_fetch_xor, \
        unsigned long *: oxshmem_ctx_ulong_atomic_fetch_xor, \
        volatile unsigned long *: oxshmem_ctx_ulong_atomic_fetch_xor, \
        unsigned long long *: oxshmem_ctx_ulonglong_atomic_fetch_xor, \
        volatile unsigned long long *: oxshmem_ctx_ulonglong_atomic_fetch_xor, \
        int *: oxshmem_ctx_int32_atomic_fetch_xor, \
        volatile int *: oxshmem_ctx_int32_atomic_fetch_xor, \
        long *: oxshmem_ctx_int64_atomic_fetch_xor, \
        volatile long *: oxshmem_ctx_int64_atomic_fetch_xor, \
        default: oxshmem_no_such_call), \
    unsigned int *: oxshmem_uint_atomic_fetch_xor, \
    volatile unsigned int *: oxshmem_uint_atomic_fetch_xor, \
    unsigned long *: oxshmem_ulong_atomic_fetch_xor, \
    volatile unsigned long *: oxshmem_ulong_atomic_fetch_xor, \
    unsigned long long *: oxshmem_ulonglong_atomic_fetch_xor, \
    volatile unsigned long long *: oxshmem_ulonglong_atomic_fetch_xor, \
    int *: oxshmem_int32_atomic_fetch_xor, \
    volatile int *: oxshmem_int32_atomic_fetch_xor, \
    long *: oxshmem_int64_atomic_fetch_xor, \
    volatile long *: oxshmem_int64_atomic_fetch_xor, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_atomic_xor(...) _Generic((OXSHMEM_FIRST(__VA_ARGS__, 0)), \
    shmem_ctx_t: _Generic((OXSHMEM_SECOND(__VA_ARGS__, 0, 0)), \
        unsigned int *: oxshmem_ctx_uint_atomic_xor, \
        volatile unsigned int *: oxshmem_ctx_uint_atomic_xor, \
        unsigned long *: oxshmem_ctx_ulong_atomic_xor, \
        volatile unsigned long *: oxshmem_ctx_ulong_atomic_xor, \
        unsigned long long *: oxshmem_ctx_ulonglong_atomic_xor, \
        volatile unsigned long long *: oxshmem_ctx_ulonglong_atomic_xor, \
        int *: oxshmem_ctx_int32_atomic_xor, \
        volatile int *: oxshmem_ctx_int32_atomic_xor, \
        long *: oxshmem_ctx_int64_atomic_xor, \
        volatile long *: oxshmem_ctx_int64_atomic_xor, \
        default: oxshmem_no_such_call), \
    unsigned int *: oxshmem_uint_atomic_xor, \
    volatile unsigned int *: oxshmem_uint_atomic_xor, \
    unsigned long *: oxshmem_ulong_atomic_xor, \
    volatile unsigned long *: oxshmem_ulong_atomic_xor, \
    unsigned long long *: oxshmem_ulonglong_atomic_xor, \
    volatile unsigned long long *: oxshmem_ulonglong_atomic_xor, \
    int *: oxshmem_int32_atomic_xor, \
    volatile int *: oxshmem_int32_atomic_xor, \
    long *: oxshmem_int64_atomic_xor, \
    volatile long *: oxshmem_int64_atomic_xor, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_atomic_fetch_nbi(...) _Generic((OXSHMEM_FIRST(__VA_ARGS__, 0)), \
    shmem_ctx_t: _Generic((OXSHMEM_SECOND(__VA_ARGS__, 0, 0)), \
        float *: oxshmem_ctx_float_atomic_fetch_nbi, \
        volatile float *: oxshmem_ctx_float_atomic_fetch_nbi, \
        double *: oxshmem_ctx_double_atomic_fetch_nbi, \
        volatile double *: oxshmem_ctx_double_atomic_fetch_nbi, \
        int *: oxshmem_ctx_int_atomic_fetch_nbi, \
        volatile int *: oxshmem_ctx_int_atomic_fetch_nbi, \
        long *: oxshmem_ctx_long_atomic_fetch_nbi, \
        volatile long *: oxshmem_ctx_long_atomic_fetch_nbi, \
        long long *: oxshmem_ctx_longlong_atomic_fetch_nbi, \
        volatile long long *: oxshmem_ctx_longlong_atomic_fetch_nbi, \
        unsigned int *: oxshmem_ctx_uint_atomic_fetch_nbi, \
        volatile unsigned int *: oxshmem_ctx_uint_atomic_fetch_nbi, \
        unsigned long *: oxshmem_ctx_ulong_atomic_fetch_nbi, \
        volatile unsigned long *: oxshmem_ctx_ulong_atomic_fetch_nbi, \
        unsigned long long *: oxshmem_ctx_ulonglong_atomic_fetch_nbi, \
        volatile unsigned long long *: oxshmem_ctx_ulonglong_atomic_fetch_nbi, \
        default: oxshmem_no_such_call), \
    float *: oxshmem_float_atomic_fetch_nbi, \
    volatile float *: oxshmem_float_atomic_fetch_nbi, \
    double *: oxshmem_double_atomic_fetch_nbi, \
    volatile double *: oxshmem_double_atomic_fetch_nbi, \
    int *: oxshmem_int_atomic_fetch_nbi, \
    volatile int *: oxshmem_int_atomic_fetch_nbi, \
    long *: oxshmem_long_atomic_fetch_nbi, \
    volatile long *: oxshmem_long_atomic_fetch_nbi, \
    long long *: oxshmem_longlong_atomic_fetch_nbi, \
    volatile long long *: oxshmem_longlong_atomic_fetch_nbi, \
    unsigned int *: oxshmem_uint_atomic_fetch_nbi, \
    volatile unsigned int *: oxshmem_uint_atomic_fetch_nbi, \
    unsigned long *: oxshmem_ulong_atomic_fetch_nbi, \
    volatile unsigned long *: oxshmem_ulong_atomic_fetch_nbi, \
    unsigned long long *: oxshmem_ulonglong_atomic_fetch_nbi, \
    volatile unsigned long long *: oxshmem_ulonglong_atomic_fetch_nbi, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_atomic_compare_swap_nbi(...) _Generic((OXSHMEM_FIRST(__VA_ARGS__, 0)), \
    shmem_ctx_t: _Generic((OXSHMEM_SECOND(__VA_ARGS__, 0, 0)), \
        int *: oxshmem_ctx_int_atomic_compare_swap_nbi, \
        volatile int *: oxshmem_ctx_int_atomic_compare_swap_nbi, \
        long *: oxshmem_ctx_long_atomic_compare_swap_nbi, \
        volatile long *: oxshmem_ctx_long_atomic_compare_swap_nbi, \
        long long *: oxshmem_ctx_longlong_atomic_compare_swap_nbi, \
        volatile long long *: oxshmem_ctx_longlong_atomic_compare_swap_nbi, \
        unsigned int *: oxshmem_ctx_uint_atomic_compare_swap_nbi, \
        volatile unsigned int *: oxshmem_ctx_uint_atomic_compare_swap_nbi, \
        unsigned long *: oxshmem_ctx_ulong_atomic_compare_swap_nbi, \
        volatile unsigned long *: oxshmem_ctx_ulong_atomic_compare_swap_nbi, \
        unsigned long long *: oxshmem_ctx_ulonglong_atomic_compare_swap_nbi, \
        volatile unsigned long long *: oxshmem_ctx_ulonglong_atomic_compare_swap_nbi, \
        default: oxshmem_no_such_call), \
    int *: oxshmem_int_atomic_compare_swap_nbi, \
    volatile int *: oxshmem_int_atomic_compare_swap_nbi, \
    long *: oxshmem_long_atomic_compare_swap_nbi, \
    volatile long *: oxshmem_long_atomic_compare_swap_nbi, \
    long long *: oxshmem_longlong_atomic_compare_swap_nbi, \
    volatile long long *: oxshmem_longlong_atomic_compare_swap_nbi, \
    unsigned int *: oxshmem_uint_atomic_compare_swap_nbi, \
    volatile unsigned int *: oxshmem_uint_atomic_compare_swap_nbi, \
    unsigned long *: oxshmem_ulong_atomic_compare_swap_nbi, \
    volatile unsigned long *: oxshmem_ulong_atomic_compare_swap_nbi, \
    unsigned long long *: oxshmem_ulonglong_atomic_compare_swap_nbi, \
    volatile unsigned long long *: oxshmem_ulonglong_atomic_compare_swap_nbi, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_atomic_swap_nbi(...) _Generic((OXSHMEM_FIRST(__VA_ARGS__, 0)), \
    shmem_ctx_t: _Generic((OXSHMEM_SECOND(__VA_ARGS__, 0, 0)), \
        float *: oxshmem_ctx_float_atomic_swap_nbi, \
        volatile float *: oxshmem_ctx_float_atomic_swap_nbi, \
        double *: oxshmem_ctx_double_atomic_swap_nbi, \
        volatile double *: oxshmem_ctx_double_atomic_swap_nbi, \
        int *: oxshmem_ctx_int_atomic_swap_nbi, \
        volatile int *: oxshmem_ctx_int_atomic_swap_nbi, \
        long *: oxshmem_ctx_long_atomic_swap_nbi, \
        volatile long *: oxshmem_ctx_long_atomic_swap_nbi, \
        long long *: oxshmem_ctx_longlong_atomic_swap_nbi, \
        volatile long long *: oxshmem_ctx_longlong_atomic_swap_nbi, \
        unsigned int *: oxshmem_ctx_uint_atomic_swap_nbi, \
        volatile unsigned int *: oxshmem_ctx_uint_atomic_swap_nbi, \
        unsigned long *: oxshmem_ctx_ulong_atomic_swap_nbi, \
        volatile unsigned long *: oxshmem_ctx_ulong_atomic_swap_nbi, \
        unsigned long long *: oxshmem_ctx_ulonglong_atomic_swap_nbi, \
        volatile unsigned long long *: oxshmem_ctx_ulonglong_atomic_swap_nbi, \
        default: oxshmem_no_such_call), \
    float *: oxshmem_float_atomic_swap_nbi, \
    volatile float *: oxshmem_float_atomic_swap_nbi, \
    double *: oxshmem_double_atomic_swap_nbi, \
    volatile double *: oxshmem_double_atomic_swap_nbi, \
    int *: oxshmem_int_atomic_swap_nbi, \
    volatile int *: oxshmem_int_atomic_swap_nbi, \
    long *: oxshmem_long_atomic_swap_nbi, \
    volatile long *: oxshmem_long_atomic_swap_nbi, \
    long long *: oxshmem_longlong_atomic_swap_nbi, \
    volatile long long *: oxshmem_longlong_atomic_swap_nbi, \
    unsigned int *: oxshmem_uint_atomic_swap_nbi, \
    volatile unsigned int *: oxshmem_uint_atomic_swap_nbi, \
    unsigned long *: oxshmem_ulong_atomic_swap_nbi, \
    volatile unsigned long *: oxshmem_ulong_atomic_swap_nbi, \
    unsigned long long *: oxshmem_ulonglong_atomic_swap_nbi, \
    volatile unsigned long long *: oxshmem_ulonglong_atomic_swap_nbi, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_atomic_fetch_inc_nbi(...) _Generic((OXSHMEM_FIRST(__VA_ARGS__, 0)), \
    shmem_ctx_t: _Generic((OXSHMEM_SECOND(__VA_ARGS__, 0, 0)), \
        int *: oxshmem_ctx_int_atomic_fetch_inc_nbi, \
        volatile int *: oxshmem_ctx_int_atomic_fetch_inc_nbi, \
        long *: oxshmem_ctx_long_atomic_fetch_inc_nbi, \
        volatile long *: oxshmem_ctx_long_atomic_fetch_inc_nbi, \
        long long *: oxshmem_ctx_longlong_atomic_fetch_inc_nbi, \
        volatile long long *: oxshmem_ctx_longlong_atomic_fetch_inc_nbi, \
        unsigned int *: oxshmem_ctx_uint_atomic_fetch_inc_nbi, \
        volatile unsigned int *: oxshmem_ctx_uint_atomic_fetch_inc_nbi, \
        unsigned long *: oxshmem_ctx_ulong_atomic_fetch_inc_nbi, \
        volatile unsigned long *: oxshmem_ctx_ulong_atomic_fetch_inc_nbi, \
        unsigned long long *: oxshmem_ctx_ulonglong_atomic_fetch_inc_nbi, \
        volatile unsigned long long *: oxshmem_ctx_ulonglong_atomic_fetch_inc_nbi, \
        default: oxshmem_no_such_call), \
    int *: oxshmem_int_atomic_fetch_inc_nbi, \
    volatile int *: oxshmem_int_atomic_fetch_inc_nbi, \
    long *: oxshmem_long_atomic_fetch_inc_nbi, \
    volatile long *: oxshmem_long_atomic_fetch_inc_nbi, \
    long long *: oxshmem_longlong_atomic_fetch_inc_nbi, \
    volatile long long *: oxshmem_longlong_atomic_fetch_inc_nbi, \
    unsigned int *: oxshmem_uint_atomic_fetch_inc_nbi, \
    volatile unsigned int *: oxshmem_uint_atomic_fetch_inc_nbi, \
    unsigned long *: oxshmem_ulong_atomic_fetch_inc_nbi, \
    volatile unsigned long *: oxshmem_ulong_atomic_fetch_inc_nbi, \
    unsigned long long *: oxshmem_ulonglong_atomic_fetch_inc_nbi, \
    volatile unsigned long long *: oxshmem_ulonglong_atomic_fetch_inc_nbi, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_atomic_fetch_add_nbi(...) _Generic((OXSHMEM_FIRST(__VA_ARGS__, 0)), \
    shmem_ctx_t: _Generic((OXSHMEM_SECOND(__VA_ARGS__, 0, 0)), \
        int *: oxshmem_ctx_int_atomic_fetch_add_nbi, \
        volatile int *: oxshmem_ctx_int_atomic_fetch_add_nbi, \
        long *: oxshmem_ctx_long_atomic_fetch_add_nbi, \
        volatile long *: oxshmem_ctx_long_atomic_fetch_add_nbi, \
        long long *: oxshmem_ctx_longlong_atomic_fetch_add_nbi, \
        volatile long long *: oxshmem_ctx_longlong_atomic_fetch_add_nbi, \
        unsigned int *: oxshmem_ctx_uint_atomic_fetch_add_nbi, \
        volatile unsigned int *: oxshmem_ctx_uint_atomic_fetch_add_nbi, \
        unsigned long *: oxshmem_ctx_ulong_atomic_fetch_add_nbi, \
        volatile unsigned long *: oxshmem_ctx_ulong_atomic_fetch_add_nbi, \
        unsigned long long *: oxshmem_ctx_ulonglong_atomic_fetch_add_nbi, \
        volatile unsigned long long *: oxshmem_ctx_ulonglong_atomic_fetch_add_nbi, \
        default: oxshmem_no_such_call), \
    int *: oxshmem_int_atomic_fetch_add_nbi, \
    volatile int *: oxshmem_int_atomic_fetch_add_nbi, \
    long *: oxshmem_long_atomic_fetch_add_nbi, \
    volatile long *: oxshmem_long_atomic_fetch_add_nbi, \
    long long *: oxshmem_longlong_atomic_fetch_add_nbi, \
    volatile long long *: oxshmem_longlong_atomic_fetch_add_nbi, \
    unsigned int *: oxshmem_uint_atomic_fetch_add_nbi, \
    volatile unsigned int *: oxshmem_uint_atomic_fetch_add_nbi, \
    unsigned long *: oxshmem_ulong_atomic_fetch_add_nbi, \
    volatile unsigned long *: oxshmem_ulong_atomic_fetch_add_nbi, \
    unsigned long long *: oxshmem_ulonglong_atomic_fetch_add_nbi, \
    volatile unsigned long long *: oxshmem_ulonglong_atomic_fetch_add_nbi, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_atomic_fetch_and_nbi(...) _Generic((OXSHMEM_FIRST(__VA_ARGS__, 0)), \
    shmem_ctx_t: _Generic((OXSHMEM_SECOND(__VA_ARGS__, 0, 0)), \
        unsigned int *: oxshmem_ctx_uint_atomic_fetch_and_nbi, \
        volatile unsigned int *: oxshmem_ctx_uint_atomic_fetch_and_nbi, \
        unsigned long *: oxshmem_ctx_ulong_atomic_fetch_and_nbi, \
        volatile unsigned long *: oxshmem_ctx_ulong_atomic_fetch_and_nbi, \
        unsigned long long *: oxshmem_ctx_ulonglong_atomic_fetch_and_nbi, \
        volatile unsigned long long *: oxshmem_ctx_ulonglong_atomic_fetch_and_nbi, \
        int *: oxshmem_ctx_int32_atomic_fetch_and_nbi, \
        volatile int *: oxshmem_ctx_int32_atomic_fetch_and_nbi, \
        long *: oxshmem_ctx_int64_atomic_fetch_and_nbi, \
        volatile long *: oxshmem_ctx_int64_atomic_fetch_and_nbi, \
        default: oxshmem_no_such_call), \
    unsigned int *: oxshmem_uint_atomic_fetch_and_nbi, \
    volatile unsigned int *: oxshmem_uint_atomic_fetch_and_nbi, \
    unsigned long *: oxshmem_ulong_atomic_fetch_and_nbi, \
    volatile unsigned long *: oxshmem_ulong_atomic_fetch_and_nbi, \
    unsigned long long *: oxshmem_ulonglong_atomic_fetch_and_nbi, \
    volatile unsigned long long *: oxshmem_ulonglong_atomic_fetch_and_nbi, \
    int *: oxshmem_int32_atomic_fetch_and_nbi, \
    volatile int *: oxshmem_int32_atomic_fetch_and_nbi, \
    long *: oxshmem_int64_atomic_fetch_and_nbi, \
    volatile long *: oxshmem_int64_atomic_fetch_and_nbi, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_atomic_fetch_or_nbi(...) _Generic((OXSHMEM_FIRST(__VA_ARGS__, 0)), \
    shmem_ctx_t: _Generic((OXSHMEM_SECOND(__VA_ARGS__, 0, 0)), \
        unsigned int *: oxshmem_ctx_uint_atomic_fetch_or_nbi, \
        volatile unsigned int *: oxshmem_ctx_uint_atomic_fetch_or_nbi, \
        unsigned long *: oxshmem_ctx_ulong_atomic_fetch_or_nbi, \
        volatile unsigned long *: oxshmem_ctx_ulong_atomic_fetch_or_nbi, \
        unsigned long long *: oxshmem_ctx_ulonglong_atomic_fetch_or_nbi, \
        volatile unsigned long long *: oxshmem_ctx_ulonglong_atomic_fetch_or_nbi, \
        int *: oxshmem_ctx_int32_atomic_fetch_or_nbi, \
        volatile int *: oxshmem_ctx_int32_atomic_fetch_or_nbi, \
        long *: oxshmem_ctx_int64_atomic_fetch_or_nbi, \
        volatile long *: oxshmem_ctx_int64_atomic_fetch_or_nbi, \
        default: oxshmem_no_such_call), \
    unsigned int *: oxshmem_uint_atomic_fetch_or_nbi, \
    volatile unsigned int *: oxshmem_uint_atomic_fetch_or_nbi, \
    unsigned long *: oxshmem_ulong_atomic_fetch_or_nbi, \
    volatile unsigned long *: oxshmem_ulong_atomic_fetch_or_nbi, \
    unsigned long long *: oxshmem_ulonglong_atomic_fetch_or_nbi, \
    volatile unsigned long long *: oxshmem_ulonglong_atomic_fetch_or_nbi, \
    int *: oxshmem_int32_atomic_fetch_or_nbi, \
    volatile int *: oxshmem_int32_atomic_fetch_or_nbi, \
    long *: oxshmem_int64_atomic_fetch_or_nbi, \
    volatile long *: oxshmem_int64_atomic_fetch_or_nbi, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_atomic_fetch_xor_nbi(...) _Generic((OXSHMEM_FIRST(__VA_ARGS__, 0)), \
    shmem_ctx_t: _Generic((OXSHMEM_SECOND(__VA_ARGS__, 0, 0)), \
        unsigned int *: oxshmem_ctx_uint_atomic_fetch_xor_nbi, \
        volatile unsigned int *: oxshmem_ctx_uint_atomic_fetch_xor_nbi, \
        unsigned long *: oxshmem_ctx_ulong_atomic_fetch_xor_nbi, \
        volatile unsigned long *: oxshmem_ctx_ulong_atomic_fetch_xor_nbi, \
        unsigned long long *: oxshmem_ctx_ulonglong_atomic_fetch_xor_nbi, \
        volatile unsigned long long *: oxshmem_ctx_ulonglong_atomic_fetch_xor_nbi, \
        int *: oxshmem_ctx_int32_atomic_fetch_xor_nbi, \
        volatile int *: oxshmem_ctx_int32_atomic_fetch_xor_nbi, \
        long *: oxshmem_ctx_int64_atomic_fetch_xor_nbi, \
        volatile long *: oxshmem_ctx_int64_atomic_fetch_xor_nbi, \
        default: oxshmem_no_such_call), \
    unsigned int *: oxshmem_uint_atomic_fetch_xor_nbi, \
    volatile unsigned int *: oxshmem_uint_atomic_fetch_xor_nbi, \
    unsigned long *: oxshmem_ulong_atomic_fetch_xor_nbi, \
    volatile unsigned long *: oxshmem_ulong_atomic_fetch_xor_nbi, \
    unsigned long long *: oxshmem_ulonglong_atomic_fetch_xor_nbi, \
    volatile unsigned long long *: oxshmem_ulonglong_atomic_fetch_xor_nbi, \
    int *: oxshmem_int32_atomic_fetch_xor_nbi, \
    volatile int *: oxshmem_int32_atomic_fetch_xor_nbi, \
    long *: oxshmem_int64_atomic_fetch_xor_nbi, \
    volatile long *: oxshmem_int64_atomic_fetch_xor_nbi, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_fetch(...) _Generic((OXSHMEM_FIRST(__VA_ARGS__, 0)), \
    float *: oxshmem_float_fetch, \
    const float *: oxshmem_float_fetch, \
    volatile float *: oxshmem_float_fetch, \
    const volatile float *: oxshmem_float_fetch, \
    double *: oxshmem_double_fetch, \
    const double *: oxshmem_double_fetch, \
    volatile double *: oxshmem_double_fetch, \
    const volatile double *: oxshmem_double_fetch, \
    int *: oxshmem_int_fetch, \
    const int *: oxshmem_int_fetch, \
    volatile int *: oxshmem_int_fetch, \
    const volatile int *: oxshmem_int_fetch, \
    long *: oxshmem_long_fetch, \
    const long *: oxshmem_long_fetch, \
    volatile long *: oxshmem_long_fetch, \
    const volatile long *: oxshmem_long_fetch, \
    long long *: oxshmem_longlong_fetch, \
    const long long *: oxshmem_longlong_fetch, \
    volatile long long *: oxshmem_longlong_fetch, \
    const volatile long long *: oxshmem_longlong_fetch, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_set(...) _Generic((OXSHMEM_FIRST(__VA_ARGS__, 0)), \
    float *: oxshmem_float_set, \
    volatile float *: oxshmem_float_set, \
    double *: oxshmem_double_set, \
    volatile double *: oxshmem_double_set, \
    int *: oxshmem_int_set, \
    volatile int *: oxshmem_int_set, \
    long *: oxshmem_long_set, \
    volatile long *: oxshmem_long_set, \
    long long *: oxshmem_longlong_set, \
    volatile long long *: oxshmem_longlong_set, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_cswap(...) _Generic((OXSHMEM_FIRST(__VA_ARGS__, 0)), \
    int *: oxshmem_int_cswap, \
    volatile int *: oxshmem_int_cswap, \
    long *: oxshmem_long_cswap, \
    volatile long *: oxshmem_long_cswap, \
    long long *: oxshmem_longlong_cswap, \
    volatile long long *: oxshmem_longlong_cswap, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_swap(...) _Generic((OXSHMEM_FIRST(__VA_ARGS__, 0)), \
    float *: oxshmem_float_swap, \
    volatile float *: oxshmem_float_swap, \
    double *: oxshmem_double_swap, \
    volatile double *: oxshmem_double_swap, \
    int *: oxshmem_int_swap, \
    volatile int *: oxshmem_int_swap, \
    long *: oxshmem_long_swap, \
    volatile long *: oxshmem_long_swap, \
    long long *: oxshmem_longlong_swap, \
    volatile long long *: oxshmem_longlong_swap, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_finc(...) _Generic((OXSHMEM_FIRST(__VA_ARGS__, 0)), \
    int *: oxshmem_int_finc, \
    volatile int *: oxshmem_int_finc, \
    long *: oxshmem_long_finc, \
    volatile long *: oxshmem_long_finc, \
    long long *: oxshmem_longlong_finc, \
    volatile long long *: oxshmem_longlong_finc, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_inc(...) _Generic((OXSHMEM_FIRST(__VA_ARGS__, 0)), \
    int *: oxshmem_int_inc, \
    volatile int *: oxshmem_int_inc, \
    long *: oxshmem_long_inc, \
    volatile long *: oxshmem_long_inc, \
    long long *: oxshmem_longlong_inc, \
    volatile long long *: oxshmem_longlong_inc, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_fadd(...) _Generic((OXSHMEM_FIRST(__VA_ARGS__, 0)), \
    int *: oxshmem_int_fadd, \
    volatile int *: oxshmem_int_fadd, \
    long *: oxshmem_long_fadd, \
    volatile long *: oxshmem_long_fadd, \
    long long *: oxshmem_longlong_fadd, \
    volatile long long *: oxshmem_longlong_fadd, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_add(...) _Generic((OXSHMEM_FIRST(__VA_ARGS__, 0)), \
    int *: oxshmem_int_add, \
    volatile int *: oxshmem_int_add, \
    long *: oxshmem_long_add, \
    volatile long *: oxshmem_long_add, \
    long long *: oxshmem_longlong_add, \
    volatile long long *: oxshmem_longlong_add, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_put_signal(...) _Generic((OXSHMEM_FIRST(__VA_ARGS__, 0)), \
    shmem_ctx_t: _Generic((OXSHMEM_SECOND(__VA_ARGS__, 0, 0)), \
        float *: oxshmem_ctx_float_put_signal, \
        volatile float *: oxshmem_ctx_float_put_signal, \
        double *: oxshmem_ctx_double_put_signal, \
        volatile double *: oxshmem_ctx_double_put_signal, \
        long double *: oxshmem_ctx_longdouble_put_signal, \
        volatile long double *: oxshmem_ctx_longdouble_put_signal, \
        char *: oxshmem_ctx_char_put_signal, \
        volatile char *: oxshmem_ctx_char_put_signal, \
        signed char *: oxshmem_ctx_schar_put_signal, \
        volatile signed char *: oxshmem_ctx_schar_put_signal, \
        short *: oxshmem_ctx_short_put_signal, \
        volatile short *: oxshmem_ctx_short_put_signal, \
        int *: oxshmem_ctx_int_put_signal, \
        volatile int *: oxshmem_ctx_int_put_signal, \
        long *: oxshmem_ctx_long_put_signal, \
        volatile long *: oxshmem_ctx_long_put_signal, \
        long long *: oxshmem_ctx_longlong_put_signal, \
        volatile long long *: oxshmem_ctx_longlong_put_signal, \
        unsigned char *: oxshmem_ctx_uchar_put_signal, \
        volatile unsigned char *: oxshmem_ctx_uchar_put_signal, \
        unsigned short *: oxshmem_ctx_ushort_put_signal, \
        volatile unsigned short *: oxshmem_ctx_ushort_put_signal, \
        unsigned int *: oxshmem_ctx_uint_put_signal, \
        volatile unsigned int *: oxshmem_ctx_uint_put_signal, \
        unsigned long *: oxshmem_ctx_ulong_put_signal, \
        volatile unsigned long *: oxshmem_ctx_ulong_put_signal, \
        unsigned long long *: oxshmem_ctx_ulonglong_put_signal, \
        volatile unsigned long long *: oxshmem_ctx_ulonglong_put_signal, \
        default: oxshmem_no_such_call), \
    float *: oxshmem_float_put_signal, \
    volatile float *: oxshmem_float_put_signal, \
    double *: oxshmem_double_put_signal, \
    volatile double *: oxshmem_double_put_signal, \
    long double *: oxshmem_longdouble_put_signal, \
    volatile long double *: oxshmem_longdouble_put_signal, \
    char *: oxshmem_char_put_signal, \
    volatile char *: oxshmem_char_put_signal, \
    signed char *: oxshmem_schar_put_signal, \
    volatile signed char *: oxshmem_schar_put_signal, \
    short *: oxshmem_short_put_signal, \
    volatile short *: oxshmem_short_put_signal, \
    int *: oxshmem_int_put_signal, \
    volatile int *: oxshmem_int_put_signal, \
    long *: oxshmem_long_put_signal, \
    volatile long *: oxshmem_long_put_signal, \
    long long *: oxshmem_longlong_put_signal, \
    volatile long long *: oxshmem_longlong_put_signal, \
    unsigned char *: oxshmem_uchar_put_signal, \
    volatile unsigned char *: oxshmem_uchar_put_signal, \
    unsigned short *: oxshmem_ushort_put_signal, \
    volatile unsigned short *: oxshmem_ushort_put_signal, \
    unsigned int *: oxshmem_uint_put_signal, \
    volatile unsigned int *: oxshmem_uint_put_signal, \
    unsigned long *: oxshmem_ulong_put_signal, \
    volatile unsigned long *: oxshmem_ulong_put_signal, \
    unsigned long long *: oxshmem_ulonglong_put_signal, \
    volatile unsigned long long *: oxshmem_ulonglong_put_signal, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_put_signal_nbi(...) _Generic((OXSHMEM_FIRST(__VA_ARGS__, 0)), \
    shmem_ctx_t: _Generic((OXSHMEM_SECOND(__VA_ARGS__, 0, 0)), \
        float *: oxshmem_ctx_float_put_signal_nbi, \
        volatile float *: oxshmem_ctx_float_put_signal_nbi, \
        double *: oxshmem_ctx_double_put_signal_nbi, \
        volatile double *: oxshmem_ctx_double_put_signal_nbi, \
        long double *: oxshmem_ctx_longdouble_put_signal_nbi, \
        volatile long double *: oxshmem_ctx_longdouble_put_signal_nbi, \
        char *: oxshmem_ctx_char_put_signal_nbi, \
        volatile char *: oxshmem_ctx_char_put_signal_nbi, \
        signed char *: oxshmem_ctx_schar_put_signal_nbi, \
        volatile signed char *: oxshmem_ctx_schar_put_signal_nbi, \
        short *: oxshmem_ctx_short_put_signal_nbi, \
        volatile short *: oxshmem_ctx_short_put_signal_nbi, \
        int *: oxshmem_ctx_int_put_signal_nbi, \
        volatile int *: oxshmem_ctx_int_put_signal_nbi, \
        long *: oxshmem_ctx_long_put_signal_nbi, \
        volatile long *: oxshmem_ctx_long_put_signal_nbi, \
        long long *: oxshmem_ctx_longlong_put_signal_nbi, \
        volatile long long *: oxshmem_ctx_longlong_put_signal_nbi, \
        unsigned char *: oxshmem_ctx_uchar_put_signal_nbi, \
        volatile unsigned char *: oxshmem_ctx_uchar_put_signal_nbi, \
        unsigned short *: oxshmem_ctx_ushort_put_signal_nbi, \
        volatile unsigned short *: oxshmem_ctx_ushort_put_signal_nbi, \
        unsigned int *: oxshmem_ctx_uint_put_signal_nbi, \
        volatile unsigned int *: oxshmem_ctx_uint_put_signal_nbi, \
        unsigned long *: oxshmem_ctx_ulong_put_signal_nbi, \
        volatile unsigned long *: oxshmem_ctx_ulong_put_signal_nbi, \
        unsigned long long *: oxshmem_ctx_ulonglong_put_signal_nbi, \
        volatile unsigned long long *: oxshmem_ctx_ulonglong_put_signal_nbi, \
        default: oxshmem_no_such_call), \
    float *: oxshmem_float_put_signal_nbi, \
    volatile float *: oxshmem_float_put_signal_nbi, \
    double *: oxshmem_double_put_signal_nbi, \
    volatile double *: oxshmem_double_put_signal_nbi, \
    long double *: oxshmem_longdouble_put_signal_nbi, \
    volatile long double *: oxshmem_longdouble_put_signal_nbi, \
    char *: oxshmem_char_put_signal_nbi, \
    volatile char *: oxshmem_char_put_signal_nbi, \
    signed char *: oxshmem_schar_put_signal_nbi, \
    volatile signed char *: oxshmem_schar_put_signal_nbi, \
    short *: oxshmem_short_put_signal_nbi, \
    volatile short *: oxshmem_short_put_signal_nbi, \
    int *: oxshmem_int_put_signal_nbi, \
    volatile int *: oxshmem_int_put_signal_nbi, \
    long *: oxshmem_long_put_signal_nbi, \
    volatile long *: oxshmem_long_put_signal_nbi, \
    long long *: oxshmem_longlong_put_signal_nbi, \
    volatile long long *: oxshmem_longlong_put_signal_nbi, \
    unsigned char *: oxshmem_uchar_put_signal_nbi, \
    volatile unsigned char *: oxshmem_uchar_put_signal_nbi, \
    unsigned short *: oxshmem_ushort_put_signal_nbi, \
    volatile unsigned short *: oxshmem_ushort_put_signal_nbi, \
    unsigned int *: oxshmem_uint_put_signal_nbi, \
    volatile unsigned int *: oxshmem_uint_put_signal_nbi, \
    unsigned long *: oxshmem_ulong_put_signal_nbi, \
    volatile unsigned long *: oxshmem_ulong_put_signal_nbi, \
    unsigned long long *: oxshmem_ulonglong_put_signal_nbi, \
    volatile unsigned long long *: oxshmem_ulonglong_put_signal_nbi, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_signal_add(...) _Generic((OXSHMEM_FIRST(__VA_ARGS__, 0)), shmem_ctx_t: oxshmem_ctx_signal_add, default: oxshmem_signal_add)(__VA_ARGS__)
#define shmem_signal_set(...) _Generic((OXSHMEM_FIRST(__VA_ARGS__, 0)), shmem_ctx_t: oxshmem_ctx_signal_set, default: oxshmem_signal_set)(__VA_ARGS__)
#define shmem_sync(...) _Generic((OXSHMEM_FIRST(__VA_ARGS__, 0)), shmem_team_t: shmem_team_sync, default: shmem_sync)(__VA_ARGS__)
#define shmem_alltoall(...) _Generic((OXSHMEM_SECOND(__VA_ARGS__, 0, 0)), \
    float *: shmem_float_alltoall, \
    double *: shmem_double_alltoall, \
    long double *: shmem_longdouble_alltoall, \
    char *: shmem_char_alltoall, \
    signed char *: shmem_schar_alltoall, \
    short *: shmem_short_alltoall, \
    int *: shmem_int_alltoall, \
    long *: shmem_long_alltoall, \
    long long *: shmem_longlong_alltoall, \
    unsigned char *: shmem_uchar_alltoall, \
    unsigned short *: shmem_ushort_alltoall, \
    unsigned int *: shmem_uint_alltoall, \
    unsigned long *: shmem_ulong_alltoall, \
    unsigned long long *: shmem_ulonglong_alltoall, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_alltoalls(...) _Generic((OXSHMEM_SECOND(__VA_ARGS__, 0, 0)), \
    float *: shmem_float_alltoalls, \
    double *: shmem_double_alltoalls, \
    long double *: shmem_longdouble_alltoalls, \
    char *: shmem_char_alltoalls, \
    signed char *: shmem_schar_alltoalls, \
    short *: shmem_short_alltoalls, \
    int *: shmem_int_alltoalls, \
    long *: shmem_long_alltoalls, \
    long long *: shmem_longlong_alltoalls, \
    unsigned char *: shmem_uchar_alltoalls, \
    unsigned short *: shmem_ushort_alltoalls, \
    unsigned int *: shmem_uint_alltoalls, \
    unsigned long *: shmem_ulong_alltoalls, \
    unsigned long long *: shmem_ulonglong_alltoalls, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_broadcast(...) _Generic((OXSHMEM_SECOND(__VA_ARGS__, 0, 0)), \
    float *: shmem_float_broadcast, \
    double *: shmem_double_broadcast, \
    long double *: shmem_longdouble_broadcast, \
    char *: shmem_char_broadcast, \
    signed char *: shmem_schar_broadcast, \
    short *: shmem_short_broadcast, \
    int *: shmem_int_broadcast, \
    long *: shmem_long_broadcast, \
    long long *: shmem_longlong_broadcast, \
    unsigned char *: shmem_uchar_broadcast, \
    unsigned short *: shmem_ushort_broadcast, \
    unsigned int *: shmem_uint_broadcast, \
    unsigned long *: shmem_ulong_broadcast, \
    unsigned long long *: shmem_ulonglong_broadcast, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_collect(...) _Generic((OXSHMEM_SECOND(__VA_ARGS__, 0, 0)), \
    float *: shmem_float_collect, \
    double *: shmem_double_collect, \
    long double *: shmem_longdouble_collect, \
    char *: shmem_char_collect, \
    signed char *: shmem_schar_collect, \
    short *: shmem_short_collect, \
    int *: shmem_int_collect, \
    long *: shmem_long_collect, \
    long long *: shmem_longlong_collect, \
    unsigned char *: shmem_uchar_collect, \
    unsigned short *: shmem_ushort_collect, \
    unsigned int *: shmem_uint_collect, \
    unsigned long *: shmem_ulong_collect, \
    unsigned long long *: shmem_ulonglong_collect, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_fcollect(...) _Generic((OXSHMEM_SECOND(__VA_ARGS__, 0, 0)), \
    float *: shmem_float_fcollect, \
    double *: shmem_double_fcollect, \
    long double *: shmem_longdouble_fcollect, \
    char *: shmem_char_fcollect, \
    signed char *: shmem_schar_fcollect, \
    short *: shmem_short_fcollect, \
    int *: shmem_int_fcollect, \
    long *: shmem_long_fcollect, \
    long long *: shmem_longlong_fcollect, \
    unsigned char *: shmem_uchar_fcollect, \
    unsigned short *: shmem_ushort_fcollect, \
    unsigned int *: shmem_uint_fcollect, \
    unsigned long *: shmem_ulong_fcollect, \
    unsigned long long *: shmem_ulonglong_fcollect, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_and_reduce(...) _Generic((OXSHMEM_SECOND(__VA_ARGS__, 0, 0)), \
    unsigned char *: shmem_uchar_and_reduce, \
    unsigned short *: shmem_ushort_and_reduce, \
    unsigned int *: shmem_uint_and_reduce, \
    unsigned long *: shmem_ulong_and_reduce, \
    unsigned long long *: shmem_ulonglong_and_reduce, \
    signed char *: shmem_int8_and_reduce, \
    short *: shmem_int16_and_reduce, \
    int *: shmem_int32_and_reduce, \
    long *: shmem_int64_and_reduce, \
    long long *: shmem_longlong_and_reduce, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_or_reduce(...) _Generic((OXSHMEM_SECOND(__VA_ARGS__, 0, 0)), \
    unsigned char *: shmem_uchar_or_reduce, \
    unsigned short *: shmem_ushort_or_reduce, \
    unsigned int *: shmem_uint_or_reduce, \
    unsigned long *: shmem_ulong_or_reduce, \
    unsigned long long *: shmem_ulonglong_or_reduce, \
    signed char *: shmem_int8_or_reduce, \
    short *: shmem_int16_or_reduce, \
    int *: shmem_int32_or_reduce, \
    long *: shmem_int64_or_reduce, \
    long long *: shmem_longlong_or_reduce, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_xor_reduce(...) _Generic((OXSHMEM_SECOND(__VA_ARGS__, 0, 0)), \
    unsigned char *: shmem_uchar_xor_reduce, \
    unsigned short *: shmem_ushort_xor_reduce, \
    unsigned int *: shmem_uint_xor_reduce, \
    unsigned long *: shmem_ulong_xor_reduce, \
    unsigned long long *: shmem_ulonglong_xor_reduce, \
    signed char *: shmem_int8_xor_reduce, \
    short *: shmem_int16_xor_reduce, \
    int *: shmem_int32_xor_reduce, \
    long *: shmem_int64_xor_reduce, \
    long long *: shmem_longlong_xor_reduce, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_max_reduce(...) _Generic((OXSHMEM_SECOND(__VA_ARGS__, 0, 0)), \
    float *: shmem_float_max_reduce, \
    double *: shmem_double_max_reduce, \
    long double *: shmem_longdouble_max_reduce, \
    char *: shmem_char_max_reduce, \
    signed char *: shmem_schar_max_reduce, \
    short *: shmem_short_max_reduce, \
    int *: shmem_int_max_reduce, \
    long *: shmem_long_max_reduce, \
    long long *: shmem_longlong_max_reduce, \
    unsigned char *: shmem_uchar_max_reduce, \
    unsigned short *: shmem_ushort_max_reduce, \
    unsigned int *: shmem_uint_max_reduce, \
    unsigned long *: shmem_ulong_max_reduce, \
    unsigned long long *: shmem_ulonglong_max_reduce, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_min_reduce(...) _Generic((OXSHMEM_SECOND(__VA_ARGS__, 0, 0)), \
    float *: shmem_float_min_reduce, \
    double *: shmem_double_min_reduce, \
    long double *: shmem_longdouble_min_reduce, \
    char *: shmem_char_min_reduce, \
    signed char *: shmem_schar_min_reduce, \
    short *: shmem_short_min_reduce, \
    int *: shmem_int_min_reduce, \
    long *: shmem_long_min_reduce, \
    long long *: shmem_longlong_min_reduce, \
    unsigned char *: shmem_uchar_min_reduce, \
    unsigned short *: shmem_ushort_min_reduce, \
    unsigned int *: shmem_uint_min_reduce, \
    unsigned long *: shmem_ulong_min_reduce, \
    unsigned long long *: shmem_ulonglong_min_reduce, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_sum_reduce(...) _Generic((OXSHMEM_SECOND(__VA_ARGS__, 0, 0)), \
    float *: shmem_float_sum_reduce, \
    double *: shmem_double_sum_reduce, \
    long double *: shmem_longdouble_sum_reduce, \
    char *: shmem_char_sum_reduce, \
    signed char *: shmem_schar_sum_reduce, \
    short *: shmem_short_sum_reduce, \
    int *: shmem_int_sum_reduce, \
    long *: shmem_long_sum_reduce, \
    long long *: shmem_longlong_sum_reduce, \
    unsigned char *: shmem_uchar_sum_reduce, \
    unsigned short *: shmem_ushort_sum_reduce, \
    unsigned int *: shmem_uint_sum_reduce, \
    unsigned long *: shmem_ulong_sum_reduce, \
    unsigned long long *: shmem_ulonglong_sum_reduce, \
    oxshmem_complexd *: shmem_complexd_sum_reduce, \
    oxshmem_complexf *: shmem_complexf_sum_reduce, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_prod_reduce(...) _Generic((OXSHMEM_SECOND(__VA_ARGS__, 0, 0)), \
    float *: shmem_float_prod_reduce, \
    double *: shmem_double_prod_reduce, \
    long double *: shmem_longdouble_prod_reduce, \
    char *: shmem_char_prod_reduce, \
    signed char *: shmem_schar_prod_reduce, \
    short *: shmem_short_prod_reduce, \
    int *: shmem_int_prod_reduce, \
    long *: shmem_long_prod_reduce, \
    long long *: shmem_longlong_prod_reduce, \
    unsigned char *: shmem_uchar_prod_reduce, \
    unsigned short *: shmem_ushort_prod_reduce, \
    unsigned int *: shmem_uint_prod_reduce, \
    unsigned long *: shmem_ulong_prod_reduce, \
    unsigned long long *: shmem_ulonglong_prod_reduce, \
    oxshmem_complexd *: shmem_complexd_prod_reduce, \
    oxshmem_complexf *: shmem_complexf_prod_reduce, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_sum_inscan(...) _Generic((OXSHMEM_SECOND(__VA_ARGS__, 0, 0)), \
    float *: shmem_float_sum_inscan, \
    double *: shmem_double_sum_inscan, \
    long double *: shmem_longdouble_sum_inscan, \
    char *: shmem_char_sum_inscan, \
    signed char *: shmem_schar_sum_inscan, \
    short *: shmem_short_sum_inscan, \
    int *: shmem_int_sum_inscan, \
    long *: shmem_long_sum_inscan, \
    long long *: shmem_longlong_sum_inscan, \
    unsigned char *: shmem_uchar_sum_inscan, \
    unsigned short *: shmem_ushort_sum_inscan, \
    unsigned int *: shmem_uint_sum_inscan, \
    unsigned long *: shmem_ulong_sum_inscan, \
    unsigned long long *: shmem_ulonglong_sum_inscan, \
    oxshmem_complexd *: shmem_complexd_sum_inscan, \
    oxshmem_complexf *: shmem_complexf_sum_inscan, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_sum_exscan(...) _Generic((OXSHMEM_SECOND(__VA_ARGS__, 0, 0)), \
    float *: shmem_float_sum_exscan, \
    double *: shmem_double_sum_exscan, \
    long double *: shmem_longdouble_sum_exscan, \
    char *: shmem_char_sum_exscan, \
    signed char *: shmem_schar_sum_exscan, \
    short *: shmem_short_sum_exscan, \
    int *: shmem_int_sum_exscan, \
    long *: shmem_long_sum_exscan, \
    long long *: shmem_longlong_sum_exscan, \
    unsigned char *: shmem_uchar_sum_exscan, \
    unsigned short *: shmem_ushort_sum_exscan, \
    unsigned int *: shmem_uint_sum_exscan, \
    unsigned long *: shmem_ulong_sum_exscan, \
    unsigned long long *: shmem_ulonglong_sum_exscan, \
    oxshmem_complexd *: shmem_complexd_sum_exscan, \
    oxshmem_complexf *: shmem_complexf_sum_exscan, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_wait_until(...) _Generic((OXSHMEM_FIRST(__VA_ARGS__, 0)), \
    int *: oxshmem_int_wait_until, \
    volatile int *: oxshmem_int_wait_until, \
    long *: oxshmem_long_wait_until, \
    volatile long *: oxshmem_long_wait_until, \
    long long *: oxshmem_longlong_wait_until, \
    volatile long long *: oxshmem_longlong_wait_until, \
    unsigned int *: oxshmem_uint_wait_until, \
    volatile unsigned int *: oxshmem_uint_wait_until, \
    unsigned long *: oxshmem_ulong_wait_until, \
    volatile unsigned long *: oxshmem_ulong_wait_until, \
    unsigned long long *: oxshmem_ulonglong_wait_until, \
    volatile unsigned long long *: oxshmem_ulonglong_wait_until, \
    short *: oxshmem_short_wait_until, \
    volatile short *: oxshmem_short_wait_until, \
    unsigned short *: oxshmem_ushort_wait_until, \
    volatile unsigned short *: oxshmem_ushort_wait_until, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_wait_until_all(...) _Generic((OXSHMEM_FIRST(__VA_ARGS__, 0)), \
    int *: oxshmem_int_wait_until_all, \
    volatile int *: oxshmem_int_wait_until_all, \
    long *: oxshmem_long_wait_until_all, \
    volatile long *: oxshmem_long_wait_until_all, \
    long long *: oxshmem_longlong_wait_until_all, \
    volatile long long *: oxshmem_longlong_wait_until_all, \
    unsigned int *: oxshmem_uint_wait_until_all, \
    volatile unsigned int *: oxshmem_uint_wait_until_all, \
    unsigned long *: oxshmem_ulong_wait_until_all, \
    volatile unsigned long *: oxshmem_ulong_wait_until_all, \
    unsigned long long *: oxshmem_ulonglong_wait_until_all, \
    volatile unsigned long long *: oxshmem_ulonglong_wait_until_all, \
    short *: oxshmem_short_wait_until_all, \
    volatile short *: oxshmem_short_wait_until_all, \
    unsigned short *: oxshmem_ushort_wait_until_all, \
    volatile unsigned short *: oxshmem_ushort_wait_until_all, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_wait_until_any(...) _Generic((OXSHMEM_FIRST(__VA_ARGS__, 0)), \
    int *: oxshmem_int_wait_until_any, \
    volatile int *: oxshmem_int_wait_until_any, \
    long *: oxshmem_long_wait_until_any, \
    volatile long *: oxshmem_long_wait_until_any, \
    long long *: oxshmem_longlong_wait_until_any, \
    volatile long long *: oxshmem_longlong_wait_until_any, \
    unsigned int *: oxshmem_uint_wait_until_any, \
    volatile unsigned int *: oxshmem_uint_wait_until_any, \
    unsigned long *: oxshmem_ulong_wait_until_any, \
    volatile unsigned long *: oxshmem_ulong_wait_until_any, \
    unsigned long long *: oxshmem_ulonglong_wait_until_any, \
    volatile unsigned long long *: oxshmem_ulonglong_wait_until_any, \
    short *: oxshmem_short_wait_until_any, \
    volatile short *: oxshmem_short_wait_until_any, \
    unsigned short *: oxshmem_ushort_wait_until_any, \
    volatile unsigned short *: oxshmem_ushort_wait_until_any, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_wait_until_some(...) _Generic((OXSHMEM_FIRST(__VA_ARGS__, 0)), \
    int *: oxshmem_int_wait_until_some, \
    volatile int *: oxshmem_int_wait_until_some, \
    long *: oxshmem_long_wait_until_some, \
    volatile long *: oxshmem_long_wait_until_some, \
    long long *: oxshmem_longlong_wait_until_some, \
    volatile long long *: oxshmem_longlong_wait_until_some, \
    unsigned int *: oxshmem_uint_wait_until_some, \
    volatile unsigned int *: oxshmem_uint_wait_until_some, \
    unsigned long *: oxshmem_ulong_wait_until_some, \
    volatile unsigned long *: oxshmem_ulong_wait_until_some, \
    unsigned long long *: oxshmem_ulonglong_wait_until_some, \
    volatile unsigned long long *: oxshmem_ulonglong_wait_until_some, \
    short *: oxshmem_short_wait_until_some, \
    volatile short *: oxshmem_short_wait_until_some, \
    unsigned short *: oxshmem_ushort_wait_until_some, \
    volatile unsigned short *: oxshmem_ushort_wait_until_some, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_wait_until_all_vector(...) _Generic((OXSHMEM_FIRST(__VA_ARGS__, 0)), \
    int *: oxshmem_int_wait_until_all_vector, \
    volatile int *: oxshmem_int_wait_until_all_vector, \
    long *: oxshmem_long_wait_until_all_vector, \
    volatile long *: oxshmem_long_wait_until_all_vector, \
    long long *: oxshmem_longlong_wait_until_all_vector, \
    volatile long long *: oxshmem_longlong_wait_until_all_vector, \
    unsigned int *: oxshmem_uint_wait_until_all_vector, \
    volatile unsigned int *: oxshmem_uint_wait_until_all_vector, \
    unsigned long *: oxshmem_ulong_wait_until_all_vector, \
    volatile unsigned long *: oxshmem_ulong_wait_until_all_vector, \
    unsigned long long *: oxshmem_ulonglong_wait_until_all_vector, \
    volatile unsigned long long *: oxshmem_ulonglong_wait_until_all_vector, \
    short *: oxshmem_short_wait_until_all_vector, \
    volatile short *: oxshmem_short_wait_until_all_vector, \
    unsigned short *: oxshmem_ushort_wait_until_all_vector, \
    volatile unsigned short *: oxshmem_ushort_wait_until_all_vector, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_wait_until_any_vector(...) _Generic((OXSHMEM_FIRST(__VA_ARGS__, 0)), \
    int *: oxshmem_int_wait_until_any_vector, \
    volatile int *: oxshmem_int_wait_until_any_vector, \
    long *: oxshmem_long_wait_until_any_vector, \
    volatile long *: oxshmem_long_wait_until_any_vector, \
    long long *: oxshmem_longlong_wait_until_any_vector, \
    volatile long long *: oxshmem_longlong_wait_until_any_vector, \
    unsigned int *: oxshmem_uint_wait_until_any_vector, \
    volatile unsigned int *: oxshmem_uint_wait_until_any_vector, \
    unsigned long *: oxshmem_ulong_wait_until_any_vector, \
    volatile unsigned long *: oxshmem_ulong_wait_until_any_vector, \
    unsigned long long *: oxshmem_ulonglong_wait_until_any_vector, \
    volatile unsigned long long *: oxshmem_ulonglong_wait_until_any_vector, \
    short *: oxshmem_short_wait_until_any_vector, \
    volatile short *: oxshmem_short_wait_until_any_vector, \
    unsigned short *: oxshmem_ushort_wait_until_any_vector, \
    volatile unsigned short *: oxshmem_ushort_wait_until_any_vector, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_wait_until_some_vector(...) _Generic((OXSHMEM_FIRST(__VA_ARGS__, 0)), \
    int *: oxshmem_int_wait_until_some_vector, \
    volatile int *: oxshmem_int_wait_until_some_vector, \
    long *: oxshmem_long_wait_until_some_vector, \
    volatile long *: oxshmem_long_wait_until_some_vector, \
    long long *: oxshmem_longlong_wait_until_some_vector, \
    volatile long long *: oxshmem_longlong_wait_until_some_vector, \
    unsigned int *: oxshmem_uint_wait_until_some_vector, \
    volatile unsigned int *: oxshmem_uint_wait_until_some_vector, \
    unsigned long *: oxshmem_ulong_wait_until_some_vector, \
    volatile unsigned long *: oxshmem_ulong_wait_until_some_vector, \
    unsigned long long *: oxshmem_ulonglong_wait_until_some_vector, \
    volatile unsigned long long *: oxshmem_ulonglong_wait_until_some_vector, \
    short *: oxshmem_short_wait_until_some_vector, \
    volatile short *: oxshmem_short_wait_until_some_vector, \
    unsigned short *: oxshmem_ushort_wait_until_some_vector, \
    volatile unsigned short *: oxshmem_ushort_wait_until_some_vector, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_test(...) _Generic((OXSHMEM_FIRST(__VA_ARGS__, 0)), \
    int *: oxshmem_int_test, \
    volatile int *: oxshmem_int_test, \
    long *: oxshmem_long_test, \
    volatile long *: oxshmem_long_test, \
    long long *: oxshmem_longlong_test, \
    volatile long long *: oxshmem_longlong_test, \
    unsigned int *: oxshmem_uint_test, \
    volatile unsigned int *: oxshmem_uint_test, \
    unsigned long *: oxshmem_ulong_test, \
    volatile unsigned long *: oxshmem_ulong_test, \
    unsigned long long *: oxshmem_ulonglong_test, \
    volatile unsigned long long *: oxshmem_ulonglong_test, \
    short *: oxshmem_short_test, \
    volatile short *: oxshmem_short_test, \
    unsigned short *: oxshmem_ushort_test, \
    volatile unsigned short *: oxshmem_ushort_test, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_test_all(...) _Generic((OXSHMEM_FIRST(__VA_ARGS__, 0)), \
    int *: oxshmem_int_test_all, \
    volatile int *: oxshmem_int_test_all, \
    long *: oxshmem_long_test_all, \
    volatile long *: oxshmem_long_test_all, \
    long long *: oxshmem_longlong_test_all, \
    volatile long long *: oxshmem_longlong_test_all, \
    unsigned int *: oxshmem_uint_test_all, \
    volatile unsigned int *: oxshmem_uint_test_all, \
    unsigned long *: oxshmem_ulong_test_all, \
    volatile unsigned long *: oxshmem_ulong_test_all, \
    unsigned long long *: oxshmem_ulonglong_test_all, \
    volatile unsigned long long *: oxshmem_ulonglong_test_all, \
    short *: oxshmem_short_test_all, \
    volatile short *: oxshmem_short_test_all, \
    unsigned short *: oxshmem_ushort_test_all, \
    volatile unsigned short *: oxshmem_ushort_test_all, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_test_any(...) _Generic((OXSHMEM_FIRST(__VA_ARGS__, 0)), \
    int *: oxshmem_int_test_any, \
    volatile int *: oxshmem_int_test_any, \
    long *: oxshmem_long_test_any, \
    volatile long *: oxshmem_long_test_any, \
    long long *: oxshmem_longlong_test_any, \
    volatile long long *: oxshmem_longlong_test_any, \
    unsigned int *: oxshmem_uint_test_any, \
    volatile unsigned int *: oxshmem_uint_test_any, \
    unsigned long *: oxshmem_ulong_test_any, \
    volatile unsigned long *: oxshmem_ulong_test_any, \
    unsigned long long *: oxshmem_ulonglong_test_any, \
    volatile unsigned long long *: oxshmem_ulonglong_test_any, \
    short *: oxshmem_short_test_any, \
    volatile short *: oxshmem_short_test_any, \
    unsigned short *: oxshmem_ushort_test_any, \
    volatile unsigned short *: oxshmem_ushort_test_any, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_test_some(...) _Generic((OXSHMEM_FIRST(__VA_ARGS__, 0)), \
    int *: oxshmem_int_test_some, \
    volatile int *: oxshmem_int_test_some, \
    long *: oxshmem_long_test_some, \
    volatile long *: oxshmem_long_test_some, \
    long long *: oxshmem_longlong_test_some, \
    volatile long long *: oxshmem_longlong_test_some, \
    unsigned int *: oxshmem_uint_test_some, \
    volatile unsigned int *: oxshmem_uint_test_some, \
    unsigned long *: oxshmem_ulong_test_some, \
    volatile unsigned long *: oxshmem_ulong_test_some, \
    unsigned long long *: oxshmem_ulonglong_test_some, \
    volatile unsigned long long *: oxshmem_ulonglong_test_some, \
    short *: oxshmem_short_test_some, \
    volatile short *: oxshmem_short_test_some, \
    unsigned short *: oxshmem_ushort_test_some, \
    volatile unsigned short *: oxshmem_ushort_test_some, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_test_all_vector(...) _Generic((OXSHMEM_FIRST(__VA_ARGS__, 0)), \
    int *: oxshmem_int_test_all_vector, \
    volatile int *: oxshmem_int_test_all_vector, \
    long *: oxshmem_long_test_all_vector, \
    volatile long *: oxshmem_long_test_all_vector, \
    long long *: oxshmem_longlong_test_all_vector, \
    volatile long long *: oxshmem_longlong_test_all_vector, \
    unsigned int *: oxshmem_uint_test_all_vector, \
    volatile unsigned int *: oxshmem_uint_test_all_vector, \
    unsigned long *: oxshmem_ulong_test_all_vector, \
    volatile unsigned long *: oxshmem_ulong_test_all_vector, \
    unsigned long long *: oxshmem_ulonglong_test_all_vector, \
    volatile unsigned long long *: oxshmem_ulonglong_test_all_vector, \
    short *: oxshmem_short_test_all_vector, \
    volatile short *: oxshmem_short_test_all_vector, \
    unsigned short *: oxshmem_ushort_test_all_vector, \
    volatile unsigned short *: oxshmem_ushort_test_all_vector, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_test_any_vector(...) _Generic((OXSHMEM_FIRST(__VA_ARGS__, 0)), \
    int *: oxshmem_int_test_any_vector, \
    volatile int *: oxshmem_int_test_any_vector, \
    long *: oxshmem_long_test_any_vector, \
    volatile long *: oxshmem_long_test_any_vector, \
    long long *: oxshmem_longlong_test_any_vector, \
    volatile long long *: oxshmem_longlong_test_any_vector, \
    unsigned int *: oxshmem_uint_test_any_vector, \
    volatile unsigned int *: oxshmem_uint_test_any_vector, \
    unsigned long *: oxshmem_ulong_test_any_vector, \
    volatile unsigned long *: oxshmem_ulong_test_any_vector, \
    unsigned long long *: oxshmem_ulonglong_test_any_vector, \
    volatile unsigned long long *: oxshmem_ulonglong_test_any_vector, \
    short *: oxshmem_short_test_any_vector, \
    volatile short *: oxshmem_short_test_any_vector, \
    unsigned short *: oxshmem_ushort_test_any_vector, \
    volatile unsigned short *: oxshmem_ushort_test_any_vector, \
    default: oxshmem_no_such_call)(__VA_ARGS__)
#define shmem_test_some_vector(...) _Generic((OXSHMEM_FIRST(__VA_ARGS__, 0)), \
    int *: oxshmem_int_test_some_vector, \
    volatile int *: oxshmem_int_test_some_vector, \
    long *: oxshmem_long_test_some_vector, \
    volatile long *: oxshmem_long_test_some_vector, \
    long long *: oxshmem_longlong_test_some_vector, \
    volatile long long *: oxshmem_longlong_test_some_vector, \
    unsigned int *: oxshmem_uint_test_some_vector, \
    volatile unsigned int *: oxshmem_uint_test_some_vector, \
    unsigned long *: oxshmem_ulong_test_some_vector, \
    volatile unsigned long *: oxshmem_ulong_test_some_vector, \
    unsigned long long *: oxshmem_ulonglong_test_some_vector, \
    volatile unsigned long long *: oxshmem_ulonglong_test_some_vector, \
    short *: oxshmem_short_test_some_vector, \
    volatile short *: oxshmem_short_test_some_vector, \
    unsigned short *: oxshmem_ushort_test_some_vector, \
    volatile unsigned short *: oxshmem_ushort_test_some_vector, \
    default: oxshmem_no_such_call)(__VA_ARGS__)

#endif
