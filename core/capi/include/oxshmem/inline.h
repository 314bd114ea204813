/* The calls that -DOXSHMEM_INLINE compiles into programs. Included by shmem.h. */
/* Generated from oxshmem's table (core/capi/table); do not edit. */
#ifndef OXSHMEM_INLINE_H
#define OXSHMEM_INLINE_H

#pragma GCC system_header

#include <oxshmem/direct.h>

#ifdef __cplusplus
extern "C" {
#endif

void pshmem_float_put(float *dest, const float *source, size_t nelems, int pe);
OXSHMEM_INLINED void shmem_float_put(float *dest, const float *source, size_t nelems, int pe) { if (!oxshmem_put(dest, source, nelems, sizeof *dest, pe)) pshmem_float_put(dest, source, nelems, pe); }
void pshmem_double_put(double *dest, const double *source, size_t nelems, int pe);
OXSHMEM_INLINED void shmem_double_put(double *dest, const double *source, size_t nelems, int pe) { if (!oxshmem_put(dest, source, nelems, sizeof *dest, pe)) pshmem_double_put(dest, source, nelems, pe); }
void pshmem_char_put(char *dest, const char *source, size_t nelems, int pe);
OXSHMEM_INLINED void shmem_char_put(char *dest, const char *source, size_t nelems, int pe) { if (!oxshmem_put(dest, source, nelems, sizeof *dest, pe)) pshmem_char_put(dest, source, nelems, pe); }
void pshmem_schar_put(signed char *dest, const signed char *source, size_t nelems, int pe);
OXSHMEM_INLINED void shmem_schar_put(signed char *dest, const signed char *source, size_t nelems, int pe) { if (!oxshmem_put(dest, source, nelems, sizeof *dest, pe)) pshmem_schar_put(dest, source, nelems, pe); }
void pshmem_short_put(short *dest, const short *source, size_t nelems, int pe);
OXSHMEM_INLINED void shmem_short_put(short *dest, const short *source, size_t nelems, int pe) { if (!oxshmem_put(dest, source, nelems, sizeof *dest, pe)) pshmem_short_put(dest, source, nelems, pe); }
void pshmem_int_put(int *dest, const int *source, size_t nelems, int pe);
OXSHMEM_INLINED void shmem_int_put(int *dest, const int *source, size_t nelems, int pe) { if (!oxshmem_put(dest, source, nelems, sizeof *dest, pe)) pshmem_int_put(dest, source, nelems, pe); }
void pshmem_long_put(long *dest, const long *source, size_t nelems, int pe);
OXSHMEM_INLINED void shmem_long_put(long *dest, const long *source, size_t nelems, int pe) { if (!oxshmem_put(dest, source, nelems, sizeof *dest, pe)) pshmem_long_put(dest, source, nelems, pe); }
void pshmem_longlong_put(long long *dest, const long long *source, size_t nelems, int pe);
OXSHMEM_INLINED void shmem_longlong_put(long long *dest, const long long *source, size_t nelems, int pe) { if (!oxshmem_put(dest, source, nelems, sizeof *dest, pe)) pshmem_longlong_put(dest, source, nelems, pe); }
void pshmem_uchar_put(unsigned char *dest, const unsigned char *source, size_t nelems, int pe);
OXSHMEM_INLINED void shmem_uchar_put(unsigned char *dest, const unsigned char *source, size_t nelems, int pe) { if (!oxshmem_put(dest, source, nelems, sizeof *dest, pe)) pshmem_uchar_put(dest, source, nelems, pe); }
void pshmem_ushort_put(unsigned short *dest, const unsigned short *source, size_t nelems, int pe);
OXSHMEM_INLINED void shmem_ushort_put(unsigned short *dest, const unsigned short *source, size_t nelems, int pe) { if (!oxshmem_put(dest, source, nelems, sizeof *dest, pe)) pshmem_ushort_put(dest, source, nelems, pe); }
void pshmem_uint_put(unsigned int *dest, const unsigned int *source, size_t nelems, int pe);
OXSHMEM_INLINED void shmem_uint_put(unsigned int *dest, const unsigned int *source, size_t nelems, int pe) { if (!oxshmem_put(dest, source, nelems, sizeof *dest, pe)) pshmem_uint_put(dest, source, nelems, pe); }
void pshmem_ulong_put(unsigned long *dest, const unsigned long *source, size_t nelems, int pe);
OXSHMEM_INLINED void shmem_ulong_put(unsigned long *dest, const unsigned long *source, size_t nelems, int pe) { if (!oxshmem_put(dest, source, nelems, sizeof *dest, pe)) pshmem_ulong_put(dest, source, nelems, pe); }
void pshmem_ulonglong_put(unsigned long long *dest, const unsigned long long *source, size_t nelems, int pe);
OXSHMEM_INLINED void shmem_ulonglong_put(unsigned long long *dest, const unsigned long long *source, size_t nelems, int pe) { if (!oxshmem_put(dest, source, nelems, sizeof *dest, pe)) pshmem_ulonglong_put(dest, source, nelems, pe); }
void pshmem_int8_put(int8_t *dest, const int8_t *source, size_t nelems, int pe);
OXSHMEM_INLINED void shmem_int8_put(int8_t *dest, const int8_t *source, size_t nelems, int pe) { if (!oxshmem_put(dest, source, nelems, sizeof *dest, pe)) pshmem_int8_put(dest, source, nelems, pe); }
void pshmem_int16_put(int16_t *dest, const int16_t *source, size_t nelems, int pe);
OXSHMEM_INLINED void shmem_int16_put(int16_t *dest, const int16_t *source, size_t nelems, int pe) { if (!oxshmem_put(dest, source, nelems, sizeof *dest, pe)) pshmem_int16_put(dest, source, nelems, pe); }
void pshmem_int32_put(int32_t *dest, const int32_t *source, size_t nelems, int pe);
OXSHMEM_INLINED void shmem_int32_put(int32_t *dest, const int32_t *source, size_t nelems, int pe) { if (!oxshmem_put(dest, source, nelems, sizeof *dest, pe)) pshmem_int32_put(dest, source, nelems, pe); }
void pshmem_int64_put(int64_t *dest, const int64_t *source, size_t nelems, int pe);
OXSHMEM_INLINED void shmem_int64_put(int64_t *dest, const int64_t *source, size_t nelems, int pe) { if (!oxshmem_put(dest, source, nelems, sizeof *dest, pe)) pshmem_int64_put(dest, source, nelems, pe); }
void pshmem_uint8_put(uint8_t *dest, const uint8_t *source, size_t nelems, int pe);
OXSHMEM_INLINED void shmem_uint8_put(uint8_t *dest, const uint8_t *source, size_t nelems, int pe) { if (!oxshmem_put(dest, source, nelems, sizeof *dest, pe)) pshmem_uint8_put(dest, source, nelems, pe); }
void pshmem_uint16_put(uint16_t *dest, const uint16_t *source, size_t nelems, int pe);
OXSHMEM_INLINED void shmem_uint16_put(uint16_t *dest, const uint16_t *source, size_t nelems, int pe) { if (!oxshmem_put(dest, source, nelems, sizeof *dest, pe)) pshmem_uint16_put(dest, source, nelems, pe); }
void pshmem_uint32_put(uint32_t *dest, const uint32_t *source, size_t nelems, int pe);
OXSHMEM_INLINED void shmem_uint32_put(uint32_t *dest, const uint32_t *source, size_t nelems, int pe) { if (!oxshmem_put(dest, source, nelems, sizeof *dest, pe)) pshmem_uint32_put(dest, source, nelems, pe); }
void pshmem_uint64_put(uint64_t *dest, const uint64_t *source, size_t nelems, int pe);
OXSHMEM_INLINED void shmem_uint64_put(uint64_t *dest, const uint64_t *source, size_t nelems, int pe) { if (!oxshmem_put(dest, source, nelems, sizeof *dest, pe)) pshmem_uint64_put(dest, source, nelems, pe); }
void pshmem_size_put(size_t *dest, const size_t *source, size_t nelems, int pe);
OXSHMEM_INLINED void shmem_size_put(size_t *dest, const size_t *source, size_t nelems, int pe) { if (!oxshmem_put(dest, source, nelems, sizeof *dest, pe)) pshmem_size_put(dest, source, nelems, pe); }
void pshmem_ptrdiff_put(ptrdiff_t *dest, const ptrdiff_t *source, size_t nelems, int pe);
OXSHMEM_INLINED void shmem_ptrdiff_put(ptrdiff_t *dest, const ptrdiff_t *source, size_t nelems, int pe) { if (!oxshmem_put(dest, source, nelems, sizeof *dest, pe)) pshmem_ptrdiff_put(dest, source, nelems, pe); }
void pshmem_put8(void *dest, const void *source, size_t nelems, int pe);
OXSHMEM_INLINED void shmem_put8(void *dest, const void *source, size_t nelems, int pe) { if (!oxshmem_put(dest, source, nelems, 1, pe)) pshmem_put8(dest, source, nelems, pe); }
void pshmem_put16(void *dest, const void *source, size_t nelems, int pe);
OXSHMEM_INLINED void shmem_put16(void *dest, const void *source, size_t nelems, int pe) { if (!oxshmem_put(dest, source, nelems, 2, pe)) pshmem_put16(dest, source, nelems, pe); }
void pshmem_put32(void *dest, const void *source, size_t nelems, int pe);
OXSHMEM_INLINED void shmem_put32(void *dest, const void *source, size_t nelems, int pe) { if (!oxshmem_put(dest, source, nelems, 4, pe)) pshmem_put32(dest, source, nelems, pe); }
void pshmem_put64(void *dest, const void *source, size_t nelems, int pe);
OXSHMEM_INLINED void shmem_put64(void *dest, const void *source, size_t nelems, int pe) { if (!oxshmem_put(dest, source, nelems, 8, pe)) pshmem_put64(dest, source, nelems, pe); }
void pshmem_putmem(void *dest, const void *source, size_t nelems, int pe);
OXSHMEM_INLINED void shmem_putmem(void *dest, const void *source, size_t nelems, int pe) { if (!oxshmem_put(dest, source, nelems, 1, pe)) pshmem_putmem(dest, source, nelems, pe); }
void pshmem_float_p(float *dest, float value, int pe);
OXSHMEM_INLINED void shmem_float_p(float *dest, float value, int pe) { if (!oxshmem_p(dest, &value, sizeof value, pe)) pshmem_float_p(dest, value, pe); }
void pshmem_double_p(double *dest, double value, int pe);
OXSHMEM_INLINED void shmem_double_p(double *dest, double value, int pe) { if (!oxshmem_p(dest, &value, sizeof value, pe)) pshmem_double_p(dest, value, pe); }
void pshmem_char_p(char *dest, char value, int pe);
OXSHMEM_INLINED void shmem_char_p(char *dest, char value, int pe) { if (!oxshmem_p(dest, &value, sizeof value, pe)) pshmem_char_p(dest, value, pe); }
void pshmem_schar_p(signed char *dest, signed char value, int pe);
OXSHMEM_INLINED void shmem_schar_p(signed char *dest, signed char value, int pe) { if (!oxshmem_p(dest, &value, sizeof value, pe)) pshmem_schar_p(dest, value, pe); }
void pshmem_short_p(short *dest, short value, int pe);
OXSHMEM_INLINED void shmem_short_p(short *dest, short value, int pe) { if (!oxshmem_p(dest, &value, sizeof value, pe)) pshmem_short_p(dest, value, pe); }
void pshmem_int_p(int *dest, int value, int pe);
OXSHMEM_INLINED void shmem_int_p(int *dest, int value, int pe) { if (!oxshmem_p(dest, &value, sizeof value, pe)) pshmem_int_p(dest, value, pe); }
void pshmem_long_p(long *dest, long value, int pe);
OXSHMEM_INLINED void shmem_long_p(long *dest, long value, int pe) { if (!oxshmem_p(dest, &value, sizeof value, pe)) pshmem_long_p(dest, value, pe); }
void pshmem_longlong_p(long long *dest, long long value, int pe);
OXSHMEM_INLINED void shmem_longlong_p(long long *dest, long long value, int pe) { if (!oxshmem_p(dest, &value, sizeof value, pe)) pshmem_longlong_p(dest, value, pe); }
void pshmem_uchar_p(unsigned char *dest, unsigned char value, int pe);
OXSHMEM_INLINED void shmem_uchar_p(unsigned char *dest, unsigned char value, int pe) { if (!oxshmem_p(dest, &value, sizeof value, pe)) pshmem_uchar_p(dest, value, pe); }
void pshmem_ushort_p(unsigned short *dest, unsigned short value, int pe);
OXSHMEM_INLINED void shmem_ushort_p(unsigned short *dest, unsigned short value, int pe) { if (!oxshmem_p(dest, &value, sizeof value, pe)) pshmem_ushort_p(dest, value, pe); }
void pshmem_uint_p(unsigned int *dest, unsigned int value, int pe);
OXSHMEM_INLINED void shmem_uint_p(unsigned int *dest, unsigned int value, int pe) { if (!oxshmem_p(dest, &value, sizeof value, pe)) pshmem_uint_p(dest, value, pe); }
void pshmem_ulong_p(unsigned long *dest, unsigned long value, int pe);
OXSHMEM_INLINED void shmem_ulong_p(unsigned long *dest, unsigned long value, int pe) { if (!oxshmem_p(dest, &value, sizeof value, pe)) pshmem_ulong_p(dest, value, pe); }
void pshmem_ulonglong_p(unsigned long long *dest, unsigned long long value, int pe);
OXSHMEM_INLINED void shmem_ulonglong_p(unsigned long long *dest, unsigned long long value, int pe) { if (!oxshmem_p(dest, &value, sizeof value, pe)) pshmem_ulonglong_p(dest, value, pe); }
void pshmem_int8_p(int8_t *dest, int8_t value, int pe);
OXSHMEM_INLINED void shmem_int8_p(int8_t *dest, int8_t value, int pe) { if (!oxshmem_p(dest, &value, sizeof value, pe)) pshmem_int8_p(dest, value, pe); }
void pshmem_int16_p(int16_t *dest, int16_t value, int pe);
OXSHMEM_INLINED void shmem_int16_p(int16_t *dest, int16_t value, int pe) { if (!oxshmem_p(dest, &value, sizeof value, pe)) pshmem_int16_p(dest, value, pe); }
void pshmem_int32_p(int32_t *dest, int32_t value, int pe);
OXSHMEM_INLINED void shmem_int32_p(int32_t *dest, int32_t value, int pe) { if (!oxshmem_p(dest, &value, sizeof value, pe)) pshmem_int32_p(dest, value, pe); }
void pshmem_int64_p(int64_t *dest, int64_t value, int pe);
OXSHMEM_INLINED void shmem_int64_p(int64_t *dest, int64_t value, int pe) { if (!oxshmem_p(dest, &value, sizeof value, pe)) pshmem_int64_p(dest, value, pe); }
void pshmem_uint8_p(uint8_t *dest, uint8_t value, int pe);
OXSHMEM_INLINED void shmem_uint8_p(uint8_t *dest, uint8_t value, int pe) { if (!oxshmem_p(dest, &value, sizeof value, pe)) pshmem_uint8_p(dest, value, pe); }
void pshmem_uint16_p(uint16_t *dest, uint16_t value, int pe);
OXSHMEM_INLINED void shmem_uint16_p(uint16_t *dest, uint16_t value, int pe) { if (!oxshmem_p(dest, &value, sizeof value, pe)) pshmem_uint16_p(dest, value, pe); }
void pshmem_uint32_p(uint32_t *dest, uint32_t value, int pe);
OXSHMEM_INLINED void shmem_uint32_p(uint32_t *dest, uint32_t value, int pe) { if (!oxshmem_p(dest, &value, sizeof value, pe)) pshmem_uint32_p(dest, value, pe); }
void pshmem_uint64_p(uint64_t *dest, uint64_t value, int pe);
OXSHMEM_INLINED void shmem_uint64_p(uint64_t *dest, uint64_t value, int pe) { if (!oxshmem_p(dest, &value, sizeof value, pe)) pshmem_uint64_p(dest, value, pe); }
void pshmem_size_p(size_t *dest, size_t value, int pe);
OXSHMEM_INLINED void shmem_size_p(size_t *dest, size_t value, int pe) { if (!oxshmem_p(dest, &value, sizeof value, pe)) pshmem_size_p(dest, value, pe); }
void pshmem_ptrdiff_p(ptrdiff_t *dest, ptrdiff_t value, int pe);
OXSHMEM_INLINED void shmem_ptrdiff_p(ptrdiff_t *dest, ptrdiff_t value, int pe) { if (!oxshmem_p(dest, &value, sizeof value, pe)) pshmem_ptrdiff_p(dest, value, pe); }
void pshmem_float_get(float *dest, const float *source, size_t nelems, int pe);
OXSHMEM_INLINED void shmem_float_get(float *dest, const float *source, size_t nelems, int pe) { if (!oxshmem_get(dest, source, nelems, sizeof *dest, pe)) pshmem_float_get(dest, source, nelems, pe); }
void pshmem_double_get(double *dest, const double *source, size_t nelems, int pe);
OXSHMEM_INLINED void shmem_double_get(double *dest, const double *source, size_t nelems, int pe) { if (!oxshmem_get(dest, source, nelems, sizeof *dest, pe)) pshmem_double_get(dest, source, nelems, pe); }
void pshmem_char_get(char *dest, const char *source, size_t nelems, int pe);
OXSHMEM_INLINED void shmem_char_get(char *dest, const char *source, size_t nelems, int pe) { if (!oxshmem_get(dest, source, nelems, sizeof *dest, pe)) pshmem_char_get(dest, source, nelems, pe); }
void pshmem_schar_get(signed char *dest, const signed char *source, size_t nelems, int pe);
OXSHMEM_INLINED void shmem_schar_get(signed char *dest, const signed char *source, size_t nelems, int pe) { if (!oxshmem_get(dest, source, nelems, sizeof *dest, pe)) pshmem_schar_get(dest, source, nelems, pe); }
void pshmem_short_get(short *dest, const short *source, size_t nelems, int pe);
OXSHMEM_INLINED void shmem_short_get(short *dest, const short *source, size_t nelems, int pe) { if (!oxshmem_get(dest, source, nelems, sizeof *dest, pe)) pshmem_short_get(dest, source, nelems, pe); }
void pshmem_int_get(int *dest, const int *source, size_t nelems, int pe);
OXSHMEM_INLINED void shmem_int_get(int *dest, const int *source, size_t nelems, int pe) { if (!oxshmem_get(dest, source, nelems, sizeof *dest, pe)) pshmem_int_get(dest, source, nelems, pe); }
void pshmem_long_get(long *dest, const long *source, size_t nelems, int pe);
OXSHMEM_INLINED void shmem_long_get(long *dest, const long *source, size_t nelems, int pe) { if (!oxshmem_get(dest, source, nelems, sizeof *dest, pe)) pshmem_long_get(dest, source, nelems, pe); }
void pshmem_longlong_get(long long *dest, const long long *source, size_t nelems, int pe);
OXSHMEM_INLINED void shmem_longlong_get(long long *dest, const long long *source, size_t nelems, int pe) { if (!oxshmem_get(dest, source, nelems, sizeof *dest, pe)) pshmem_longlong_get(dest, source, nelems, pe); }
void pshmem_uchar_get(unsigned char *dest, const unsigned char *source, size_t nelems, int pe);
OXSHMEM_INLINED void shmem_uchar_get(unsigned char *dest, const unsigned char *source, size_t nelems, int pe) { if (!oxshmem_get(dest, source, nelems, sizeof *dest, pe)) pshmem_uchar_get(dest, source, nelems, pe); }
void pshmem_ushort_get(unsigned short *dest, const unsigned short *source, size_t nelems, int pe);
OXSHMEM_INLINED void shmem_ushort_get(unsigned short *dest, const unsigned short *source, size_t nelems, int pe) { if (!oxshmem_get(dest, source, nelems, sizeof *dest, pe)) pshmem_ushort_get(dest, source, nelems, pe); }
void pshmem_uint_get(unsigned int *dest, const unsigned int *source, size_t nelems, int pe);
OXSHMEM_INLINED void shmem_uint_get(unsigned int *dest, const unsigned int *source, size_t nelems, int pe) { if (!oxshmem_get(dest, source, nelems, sizeof *dest, pe)) pshmem_uint_get(dest, source, nelems, pe); }
void pshmem_ulong_get(unsigned long *dest, const unsigned long *source, size_t nelems, int pe);
OXSHMEM_INLINED void shmem_ulong_get(unsigned long *dest, const unsigned long *source, size_t nelems, int pe) { if (!oxshmem_get(dest, source, nelems, sizeof *dest, pe)) pshmem_ulong_get(dest, source, nelems, pe); }
void pshmem_ulonglong_get(unsigned long long *dest, const unsigned long long *source, size_t nelems, int pe);
OXSHMEM_INLINED void shmem_ulonglong_get(unsigned long long *dest, const unsigned long long *source, size_t nelems, int pe) { if (!oxshmem_get(dest, source, nelems, sizeof *dest, pe)) pshmem_ulonglong_get(dest, source, nelems, pe); }
void pshmem_int8_get(int8_t *dest, const int8_t *source, size_t nelems, int pe);
OXSHMEM_INLINED void shmem_int8_get(int8_t *dest, const int8_t *source, size_t nelems, int pe) { if (!oxshmem_get(dest, source, nelems, sizeof *dest, pe)) pshmem_int8_get(dest, source, nelems, pe); }
void pshmem_int16_get(int16_t *dest, const int16_t *source, size_t nelems, int pe);
OXSHMEM_INLINED void shmem_int16_get(int16_t *dest, const int16_t *source, size_t nelems, int pe) { if (!oxshmem_get(dest, source, nelems, sizeof *dest, pe)) pshmem_int16_get(dest, source, nelems, pe); }
void pshmem_int32_get(int32_t *dest, const int32_t *source, size_t nelems, int pe);
OXSHMEM_INLINED void shmem_int32_get(int32_t *dest, const int32_t *source, size_t nelems, int pe) { if (!oxshmem_get(dest, source, nelems, sizeof *dest, pe)) pshmem_int32_get(dest, source, nelems, pe); }
void pshmem_int64_get(int64_t *dest, const int64_t *source, size_t nelems, int pe);
OXSHMEM_INLINED void shmem_int64_get(int64_t *dest, const int64_t *source, size_t nelems, int pe) { if (!oxshmem_get(dest, source, nelems, sizeof *dest, pe)) pshmem_int64_get(dest, source, nelems, pe); }
void pshmem_uint8_get(uint8_t *dest, const uint8_t *source, size_t nelems, int pe);
OXSHMEM_INLINED void shmem_uint8_get(uint8_t *dest, const uint8_t *source, size_t nelems, int pe) { if (!oxshmem_get(dest, source, nelems, sizeof *dest, pe)) pshmem_uint8_get(dest, source, nelems, pe); }
void pshmem_uint16_get(uint16_t *dest, const uint16_t *source, size_t nelems, int pe);
OXSHMEM_INLINED void shmem_uint16_get(uint16_t *dest, const uint16_t *source, size_t nelems, int pe) { if (!oxshmem_get(dest, source, nelems, sizeof *dest, pe)) pshmem_uint16_get(dest, source, nelems, pe); }
void pshmem_uint32_get(uint32_t *dest, const uint32_t *source, size_t nelems, int pe);
OXSHMEM_INLINED void shmem_uint32_get(uint32_t *dest, const uint32_t *source, size_t nelems, int pe) { if (!oxshmem_get(dest, source, nelems, sizeof *dest, pe)) pshmem_uint32_get(dest, source, nelems, pe); }
void pshmem_uint64_get(uint64_t *dest, const uint64_t *source, size_t nelems, int pe);
OXSHMEM_INLINED void shmem_uint64_get(uint64_t *dest, const uint64_t *source, size_t nelems, int pe) { if (!oxshmem_get(dest, source, nelems, sizeof *dest, pe)) pshmem_uint64_get(dest, source, nelems, pe); }
void pshmem_size_get(size_t *dest, const size_t *source, size_t nelems, int pe);
OXSHMEM_INLINED void shmem_size_get(size_t *dest, const size_t *source, size_t nelems, int pe) { if (!oxshmem_get(dest, source, nelems, sizeof *dest, pe)) pshmem_size_get(dest, source, nelems, pe); }
void pshmem_ptrdiff_get(ptrdiff_t *dest, const ptrdiff_t *source, size_t nelems, int pe);
OXSHMEM_INLINED void shmem_ptrdiff_get(ptrdiff_t *dest, const ptrdiff_t *source, size_t nelems, int pe) { if (!oxshmem_get(dest, source, nelems, sizeof *dest, pe)) pshmem_ptrdiff_get(dest, source, nelems, pe); }
void pshmem_get8(void *dest, const void *source, size_t nelems, int pe);
OXSHMEM_INLINED void shmem_get8(void *dest, const void *source, size_t nelems, int pe) { if (!oxshmem_get(dest, source, nelems, 1, pe)) pshmem_get8(dest, source, nelems, pe); }
void pshmem_get16(void *dest, const void *source, size_t nelems, int pe);
OXSHMEM_INLINED void shmem_get16(void *dest, const void *source, size_t nelems, int pe) { if (!oxshmem_get(dest, source, nelems, 2, pe)) pshmem_get16(dest, source, nelems, pe); }
void pshmem_get32(void *dest, const void *source, size_t nelems, int pe);
OXSHMEM_INLINED void shmem_get32(void *dest, const void *source, size_t nelems, int pe) { if (!oxshmem_get(dest, source, nelems, 4, pe)) pshmem_get32(dest, source, nelems, pe); }
void pshmem_get64(void *dest, const void *source, size_t nelems, int pe);
OXSHMEM_INLINED void shmem_get64(void *dest, const void *source, size_t nelems, int pe) { if (!oxshmem_get(dest, source, nelems, 8, pe)) pshmem_get64(dest, source, nelems, pe); }
void pshmem_getmem(void *dest, const void *source, size_t nelems, int pe);
OXSHMEM_INLINED void shmem_getmem(void *dest, const void *source, size_t nelems, int pe) { if (!oxshmem_get(dest, source, nelems, 1, pe)) pshmem_getmem(dest, source, nelems, pe); }
float pshmem_float_g(const float *source, int pe);
OXSHMEM_INLINED float shmem_float_g(const float *source, int pe) { float value; if (!oxshmem_g(&value, source, sizeof value, pe)) value = pshmem_float_g(source, pe); return value; }
double pshmem_double_g(const double *source, int pe);
OXSHMEM_INLINED double shmem_double_g(const double *source, int pe) { double value; if (!oxshmem_g(&value, source, sizeof value, pe)) value = pshmem_double_g(source, pe); return value; }
char pshmem_char_g(const char *source, int pe);
OXSHMEM_INLINED char shmem_char_g(const char *source, int pe) { char value; if (!oxshmem_g(&value, source, sizeof value, pe)) value = pshmem_char_g(source, pe); return value; }
signed char pshmem_schar_g(const signed char *source, int pe);
OXSHMEM_INLINED signed char shmem_schar_g(const signed char *source, int pe) { signed char value; if (!oxshmem_g(&value, source, sizeof value, pe)) value = pshmem_schar_g(source, pe); return value; }
short pshmem_short_g(const short *source, int pe);
OXSHMEM_INLINED short shmem_short_g(const short *source, int pe) { short value; if (!oxshmem_g(&value, source, sizeof value, pe)) value = pshmem_short_g(source, pe); return value; }
int pshmem_int_g(const int *source, int pe);
OXSHMEM_INLINED int shmem_int_g(const int *source, int pe) { int value; if (!oxshmem_g(&value, source, sizeof value, pe)) value = pshmem_int_g(source, pe); return value; }
long pshmem_long_g(const long *source, int pe);
OXSHMEM_INLINED long shmem_long_g(const long *source, int pe) { long value; if (!oxshmem_g(&value, source, sizeof value, pe)) value = pshmem_long_g(source, pe); return value; }
long long pshmem_longlong_g(const long long *source, int pe);
OXSHMEM_INLINED long long shmem_longlong_g(const long long *source, int pe) { long long value; if (!oxshmem_g(&value, source, sizeof value, pe)) value = pshmem_longlong_g(source, pe); return value; }
unsigned char pshmem_uchar_g(const unsigned char *source, int pe);
OXSHMEM_INLINED unsigned char shmem_uchar_g(const unsigned char *source, int pe) { unsigned char value; if (!oxshmem_g(&value, source, sizeof value, pe)) value = pshmem_uchar_g(source, pe); return value; }
unsigned short pshmem_ushort_g(const unsigned short *source, int pe);
OXSHMEM_INLINED unsigned short shmem_ushort_g(const unsigned short *source, int pe) { unsigned short value; if (!oxshmem_g(&value, source, sizeof value, pe)) value = pshmem_ushort_g(source, pe); return value; }
unsigned int pshmem_uint_g(const unsigned int *source, int pe);
OXSHMEM_INLINED unsigned int shmem_uint_g(const unsigned int *source, int pe) { unsigned int value; if (!oxshmem_g(&value, source, sizeof value, pe)) value = pshmem_uint_g(source, pe); return value; }
unsigned long pshmem_ulong_g(const unsigned long *source, int pe);
OXSHMEM_INLINED unsigned long shmem_ulong_g(const unsigned long *source, int pe) { unsigned long value; if (!oxshmem_g(&value, source, sizeof value, pe)) value = pshmem_ulong_g(source, pe); return value; }
unsigned long long pshmem_ulonglong_g(const unsigned long long *source, int pe);
OXSHMEM_INLINED unsigned long long shmem_ulonglong_g(const unsigned long long *source, int pe) { unsigned long long value; if (!oxshmem_g(&value, source, sizeof value, pe)) value = pshmem_ulonglong_g(source, pe); return value; }
int8_t pshmem_int8_g(const int8_t *source, int pe);
OXSHMEM_INLINED int8_t shmem_int8_g(const int8_t *source, int pe) { int8_t value; if (!oxshmem_g(&value, source, sizeof value, pe)) value = pshmem_int8_g(source, pe); return value; }
int16_t pshmem_int16_g(const int16_t *source, int pe);
OXSHMEM_INLINED int16_t shmem_int16_g(const int16_t *source, int pe) { int16_t value; if (!oxshmem_g(&value, source, sizeof value, pe)) value = pshmem_int16_g(source, pe); return value; }
int32_t pshmem_int32_g(const int32_t *source, int pe);
OXSHMEM_INLINED int32_t shmem_int32_g(const int32_t *source, int pe) { int32_t value; if (!oxshmem_g(&value, source, sizeof value, pe)) value = pshmem_int32_g(source, pe); return value; }
int64_t pshmem_int64_g(const int64_t *source, int pe);
OXSHMEM_INLINED int64_t shmem_int64_g(const int64_t *source, int pe) { int64_t value; if (!oxshmem_g(&value, source, sizeof value, pe)) value = pshmem_int64_g(source, pe); return value; }
uint8_t pshmem_uint8_g(const uint8_t *source, int pe);
OXSHMEM_INLINED uint8_t shmem_uint8_g(const uint8_t *source, int pe) { uint8_t value; if (!oxshmem_g(&value, source, sizeof value, pe)) value = pshmem_uint8_g(source, pe); return value; }
uint16_t pshmem_uint16_g(const uint16_t *source, int pe);
OXSHMEM_INLINED uint16_t shmem_uint16_g(const uint16_t *source, int pe) { uint16_t value; if (!oxshmem_g(&value, source, sizeof value, pe)) value = pshmem_uint16_g(source, pe); return value; }
uint32_t pshmem_uint32_g(const uint32_t *source, int pe);
OXSHMEM_INLINED uint32_t shmem_uint32_g(const uint32_t *source, int pe) { uint32_t value; if (!oxshmem_g(&value, source, sizeof value, pe)) value = pshmem_uint32_g(source, pe); return value; }
uint64_t pshmem_uint64_g(const uint64_t *source, int pe);
OXSHMEM_INLINED uint64_t shmem_uint64_g(const uint64_t *source, int pe) { uint64_t value; if (!oxshmem_g(&value, source, sizeof value, pe)) value = pshmem_uint64_g(source, pe); return value; }
size_t pshmem_size_g(const size_t *source, int pe);
OXSHMEM_INLINED size_t shmem_size_g(const size_t *source, int pe) { size_t value; if (!oxshmem_g(&value, source, sizeof value, pe)) value = pshmem_size_g(source, pe); return value; }
ptrdiff_t pshmem_ptrdiff_g(const ptrdiff_t *source, int pe);
OXSHMEM_INLINED ptrdiff_t shmem_ptrdiff_g(const ptrdiff_t *source, int pe) { ptrdiff_t value; if (!oxshmem_g(&value, source, sizeof value, pe)) value = pshmem_ptrdiff_g(source, pe); return value; }
float pshmem_float_atomic_fetch(const float *source, int pe);
OXSHMEM_INLINED float shmem_float_atomic_fetch(const float *source, int pe) { float old, none = 0; if (!oxshmem_atomic(OXSHMEM_FETCH, source, &none, &none, &old, sizeof old, pe)) old = pshmem_float_atomic_fetch(source, pe); return old; }
double pshmem_double_atomic_fetch(const double *source, int pe);
OXSHMEM_INLINED double shmem_double_atomic_fetch(const double *source, int pe) { double old, none = 0; if (!oxshmem_atomic(OXSHMEM_FETCH, source, &none, &none, &old, sizeof old, pe)) old = pshmem_double_atomic_fetch(source, pe); return old; }
int pshmem_int_atomic_fetch(const int *source, int pe);
OXSHMEM_INLINED int shmem_int_atomic_fetch(const int *source, int pe) { int old, none = 0; if (!oxshmem_atomic(OXSHMEM_FETCH, source, &none, &none, &old, sizeof old, pe)) old = pshmem_int_atomic_fetch(source, pe); return old; }
long pshmem_long_atomic_fetch(const long *source, int pe);
OXSHMEM_INLINED long shmem_long_atomic_fetch(const long *source, int pe) { long old, none = 0; if (!oxshmem_atomic(OXSHMEM_FETCH, source, &none, &none, &old, sizeof old, pe)) old = pshmem_long_atomic_fetch(source, pe); return old; }
long long pshmem_longlong_atomic_fetch(const long long *source, int pe);
OXSHMEM_INLINED long long shmem_longlong_atomic_fetch(const long long *source, int pe) { long long old, none = 0; if (!oxshmem_atomic(OXSHMEM_FETCH, source, &none, &none, &old, sizeof old, pe)) old = pshmem_longlong_atomic_fetch(source, pe); return old; }
unsigned int pshmem_uint_atomic_fetch(const unsigned int *source, int pe);
OXSHMEM_INLINED unsigned int shmem_uint_atomic_fetch(const unsigned int *source, int pe) { unsigned int old, none = 0; if (!oxshmem_atomic(OXSHMEM_FETCH, source, &none, &none, &old, sizeof old, pe)) old = pshmem_uint_atomic_fetch(source, pe); return old; }
unsigned long pshmem_ulong_atomic_fetch(const unsigned long *source, int pe);
OXSHMEM_INLINED unsigned long shmem_ulong_atomic_fetch(const unsigned long *source, int pe) { unsigned long old, none = 0; if (!oxshmem_atomic(OXSHMEM_FETCH, source, &none, &none, &old, sizeof old, pe)) old = pshmem_ulong_atomic_fetch(source, pe); return old; }
unsigned long long pshmem_ulonglong_atomic_fetch(const unsigned long long *source, int pe);
OXSHMEM_INLINED unsigned long long shmem_ulonglong_atomic_fetch(const unsigned long long *source, int pe) { unsigned long long old, none = 0; if (!oxshmem_atomic(OXSHMEM_FETCH, source, &none, &none, &old, sizeof old, pe)) old = pshmem_ulonglong_atomic_fetch(source, pe); return old; }
int32_t pshmem_int32_atomic_fetch(const int32_t *source, int pe);
OXSHMEM_INLINED int32_t shmem_int32_atomic_fetch(const int32_t *source, int pe) { int32_t old, none = 0; if (!oxshmem_atomic(OXSHMEM_FETCH, source, &none, &none, &old, sizeof old, pe)) old = pshmem_int32_atomic_fetch(source, pe); return old; }
int64_t pshmem_int64_atomic_fetch(const int64_t *source, int pe);
OXSHMEM_INLINED int64_t shmem_int64_atomic_fetch(const int64_t *source, int pe) { int64_t old, none = 0; if (!oxshmem_atomic(OXSHMEM_FETCH, source, &none, &none, &old, sizeof old, pe)) old = pshmem_int64_atomic_fetch(source, pe); return old; }
uint32_t pshmem_uint32_atomic_fetch(const uint32_t *source, int pe);
OXSHMEM_INLINED uint32_t shmem_uint32_atomic_fetch(const uint32_t *source, int pe) { uint32_t old, none = 0; if (!oxshmem_atomic(OXSHMEM_FETCH, source, &none, &none, &old, sizeof old, pe)) old = pshmem_uint32_atomic_fetch(source, pe); return old; }
uint64_t pshmem_uint64_atomic_fetch(const uint64_t *source, int pe);
OXSHMEM_INLINED uint64_t shmem_uint64_atomic_fetch(const uint64_t *source, int pe) { uint64_t old, none = 0; if (!oxshmem_atomic(OXSHMEM_FETCH, source, &none, &none, &old, sizeof old, pe)) old = pshmem_uint64_atomic_fetch(source, pe); return old; }
size_t pshmem_size_atomic_fetch(const size_t *source, int pe);
OXSHMEM_INLINED size_t shmem_size_atomic_fetch(const size_t *source, int pe) { size_t old, none = 0; if (!oxshmem_atomic(OXSHMEM_FETCH, source, &none, &none, &old, sizeof old, pe)) old = pshmem_size_atomic_fetch(source, pe); return old; }
ptrdiff_t pshmem_ptrdiff_atomic_fetch(const ptrdiff_t *source, int pe);
OXSHMEM_INLINED ptrdiff_t shmem_ptrdiff_atomic_fetch(const ptrdiff_t *source, int pe) { ptrdiff_t old, none = 0; if (!oxshmem_atomic(OXSHMEM_FETCH, source, &none, &none, &old, sizeof old, pe)) old = pshmem_ptrdiff_atomic_fetch(source, pe); return old; }
void pshmem_float_atomic_set(float *dest, float value, int pe);
OXSHMEM_INLINED void shmem_float_atomic_set(float *dest, float value, int pe) { float old; if (!oxshmem_atomic(OXSHMEM_SET, dest, &value, &value, &old, sizeof old, pe)) pshmem_float_atomic_set(dest, value, pe); }
void pshmem_double_atomic_set(double *dest, double value, int pe);
OXSHMEM_INLINED void shmem_double_atomic_set(double *dest, double value, int pe) { double old; if (!oxshmem_atomic(OXSHMEM_SET, dest, &value, &value, &old, sizeof old, pe)) pshmem_double_atomic_set(dest, value, pe); }
void pshmem_int_atomic_set(int *dest, int value, int pe);
OXSHMEM_INLINED void shmem_int_atomic_set(int *dest, int value, int pe) { int old; if (!oxshmem_atomic(OXSHMEM_SET, dest, &value, &value, &old, sizeof old, pe)) pshmem_int_atomic_set(dest, value, pe); }
void pshmem_long_atomic_set(long *dest, long value, int pe);
OXSHMEM_INLINED void shmem_long_atomic_set(long *dest, long value, int pe) { long old; if (!oxshmem_atomic(OXSHMEM_SET, dest, &value, &value, &old, sizeof old, pe)) pshmem_long_atomic_set(dest, value, pe); }
void pshmem_longlong_atomic_set(long long *dest, long long value, int pe);
OXSHMEM_INLINED void shmem_longlong_atomic_set(long long *dest, long long value, int pe) { long long old; if (!oxshmem_atomic(OXSHMEM_SET, dest, &value, &value, &old, sizeof old, pe)) pshmem_longlong_atomic_set(dest, value, pe); }
void pshmem_uint_atomic_set(unsigned int *dest, unsigned int value, int pe);
OXSHMEM_INLINED void shmem_uint_atomic_set(unsigned int *dest, unsigned int value, int pe) { unsigned int old; if (!oxshmem_atomic(OXSHMEM_SET, dest, &value, &value, &old, sizeof old, pe)) pshmem_uint_atomic_set(dest, value, pe); }
void pshmem_ulong_atomic_set(unsigned long *dest, unsigned long value, int pe);
OXSHMEM_INLINED void shmem_ulong_atomic_set(unsigned long *dest, unsigned long value, int pe) { unsigned long old; if (!oxshmem_atomic(OXSHMEM_SET, dest, &value, &value, &old, sizeof old, pe)) pshmem_ulong_atomic_set(dest, value, pe); }
void pshmem_ulonglong_atomic_set(unsigned long long *dest, unsigned long long value, int pe);
OXSHMEM_INLINED void shmem_ulonglong_atomic_set(unsigned long long *dest, unsigned long long value, int pe) { unsigned long long old; if (!oxshmem_atomic(OXSHMEM_SET, dest, &value, &value, &old, sizeof old, pe)) pshmem_ulonglong_atomic_set(dest, value, pe); }
void pshmem_int32_atomic_set(int32_t *dest, int32_t value, int pe);
OXSHMEM_INLINED void shmem_int32_atomic_set(int32_t *dest, int32_t value, int pe) { int32_t old; if (!oxshmem_atomic(OXSHMEM_SET, dest, &value, &value, &old, sizeof old, pe)) pshmem_int32_atomic_set(dest, value, pe); }
void pshmem_int64_atomic_set(int64_t *dest, int64_t value, int pe);
OXSHMEM_INLINED void shmem_int64_atomic_set(int64_t *dest, int64_t value, int pe) { int64_t old; if (!oxshmem_atomic(OXSHMEM_SET, dest, &value, &value, &old, sizeof old, pe)) pshmem_int64_atomic_set(dest, value, pe); }
void pshmem_uint32_atomic_set(uint32_t *dest, uint32_t value, int pe);
OXSHMEM_INLINED void shmem_uint32_atomic_set(uint32_t *dest, uint32_t value, int pe) { uint32_t old; if (!oxshmem_atomic(OXSHMEM_SET, dest, &value, &value, &old, sizeof old, pe)) pshmem_uint32_atomic_set(dest, value, pe); }
void pshmem_uint64_atomic_set(uint64_t *dest, uint64_t value, int pe);
OXSHMEM_INLINED void shmem_uint64_atomic_set(uint64_t *dest, uint64_t value, int pe) { uint64_t old; if (!oxshmem_atomic(OXSHMEM_SET, dest, &value, &value, &old, sizeof old, pe)) pshmem_uint64_atomic_set(dest, value, pe); }
void pshmem_size_atomic_set(size_t *dest, size_t value, int pe);
OXSHMEM_INLINED void shmem_size_atomic_set(size_t *dest, size_t value, int pe) { size_t old; if (!oxshmem_atomic(OXSHMEM_SET, dest, &value, &value, &old, sizeof old, pe)) pshmem_size_atomic_set(dest, value, pe); }
void pshmem_ptrdiff_atomic_set(ptrdiff_t *dest, ptrdiff_t value, int pe);
OXSHMEM_INLINED void shmem_ptrdiff_atomic_set(ptrdiff_t *dest, ptrdiff_t value, int pe) { ptrdiff_t old; if (!oxshmem_atomic(OXSHMEM_SET, dest, &value, &value, &old, sizeof old, pe)) pshmem_ptrdiff_atomic_set(dest, value, pe); }
int pshmem_int_atomic_compare_swap(int *dest, int cond, int value, int pe);
OXSHMEM_INLINED int shmem_int_atomic_compare_swap(int *dest, int cond, int value, int pe) { int old; if (!oxshmem_atomic(OXSHMEM_COMPARE_SWAP, dest, &value, &cond, &old, sizeof old, pe)) old = pshmem_int_atomic_compare_swap(dest, cond, value, pe); return old; }
long pshmem_long_atomic_compare_swap(long *dest, long cond, long value, int pe);
OXSHMEM_INLINED long shmem_long_atomic_compare_swap(long *dest, long cond, long value, int pe) { long old; if (!oxshmem_atomic(OXSHMEM_COMPARE_SWAP, dest, &value, &cond, &old, sizeof old, pe)) old = pshmem_long_atomic_compare_swap(dest, cond, value, pe); return old; }
long long pshmem_longlong_atomic_compare_swap(long long *dest, long long cond, long long value, int pe);
OXSHMEM_INLINED long long shmem_longlong_atomic_compare_swap(long long *dest, long long cond, long long value, int pe) { long long old; if (!oxshmem_atomic(OXSHMEM_COMPARE_SWAP, dest, &value, &cond, &old, sizeof old, pe)) old = pshmem_longlong_atomic_compare_swap(dest, cond, value, pe); return old; }
unsigned int pshmem_uint_atomic_compare_swap(unsigned int *dest, unsigned int cond, unsigned int value, int pe);
OXSHMEM_INLINED unsigned int shmem_uint_atomic_compare_swap(unsigned int *dest, unsigned int cond, unsigned int value, int pe) { unsigned int old; if (!oxshmem_atomic(OXSHMEM_COMPARE_SWAP, dest, &value, &cond, &old, sizeof old, pe)) old = pshmem_uint_atomic_compare_swap(dest, cond, value, pe); return old; }
unsigned long pshmem_ulong_atomic_compare_swap(unsigned long *dest, unsigned long cond, unsigned long value, int pe);
OXSHMEM_INLINED unsigned long shmem_ulong_atomic_compare_swap(unsigned long *dest, unsigned long cond, unsigned long value, int pe) { unsigned long old; if (!oxshmem_atomic(OXSHMEM_COMPARE_SWAP, dest, &value, &cond, &old, sizeof old, pe)) old = pshmem_ulong_atomic_compare_swap(dest, cond, value, pe); return old; }
unsigned long long pshmem_ulonglong_atomic_compare_swap(unsigned long long *dest, unsigned long long cond, unsigned long long value, int pe);
OXSHMEM_INLINED unsigned long long shmem_ulonglong_atomic_compare_swap(unsigned long long *dest, unsigned long long cond, unsigned long long value, int pe) { unsigned long long old; if (!oxshmem_atomic(OXSHMEM_COMPARE_SWAP, dest, &value, &cond, &old, sizeof old, pe)) old = pshmem_ulonglong_atomic_compare_swap(dest, cond, value, pe); return old; }
int32_t pshmem_int32_atomic_compare_swap(int32_t *dest, int32_t cond, int32_t value, int pe);
OXSHMEM_INLINED int32_t shmem_int32_atomic_compare_swap(int32_t *dest, int32_t cond, int32_t value, int pe) { int32_t old; if (!oxshmem_atomic(OXSHMEM_COMPARE_SWAP, dest, &value, &cond, &old, sizeof old, pe)) old = pshmem_int32_atomic_compare_swap(dest, cond, value, pe); return old; }
int64_t pshmem_int64_atomic_compare_swap(int64_t *dest, int64_t cond, int64_t value, int pe);
OXSHMEM_INLINED int64_t shmem_int64_atomic_compare_swap(int64_t *dest, int64_t cond, int64_t value, int pe) { int64_t old; if (!oxshmem_atomic(OXSHMEM_COMPARE_SWAP, dest, &value, &cond, &old, sizeof old, pe)) old = pshmem_int64_atomic_compare_swap(dest, cond, value, pe); return old; }
uint32_t pshmem_uint32_atomic_compare_swap(uint32_t *dest, uint32_t cond, uint32_t value, int pe);
OXSHMEM_INLINED uint32_t shmem_uint32_atomic_compare_swap(uint32_t *dest, uint32_t cond, uint32_t value, int pe) { uint32_t old; if (!oxshmem_atomic(OXSHMEM_COMPARE_SWAP, dest, &value, &cond, &old, sizeof old, pe)) old = pshmem_uint32_atomic_compare_swap(dest, cond, value, pe); return old; }
uint64_t pshmem_uint64_atomic_compare_swap(uint64_t *dest, uint64_t cond, uint64_t value, int pe);
OXSHMEM_INLINED uint64_t shmem_uint64_atomic_compare_swap(uint64_t *dest, uint64_t cond, uint64_t value, int pe) { uint64_t old; if (!oxshmem_atomic(OXSHMEM_COMPARE_SWAP, dest, &value, &cond, &old, sizeof old, pe)) old = pshmem_uint64_atomic_compare_swap(dest, cond, value, pe); return old; }
size_t pshmem_size_atomic_compare_swap(size_t *dest, size_t cond, size_t value, int pe);
OXSHMEM_INLINED size_t shmem_size_atomic_compare_swap(size_t *dest, size_t cond, size_t value, int pe) { size_t old; if (!oxshmem_atomic(OXSHMEM_COMPARE_SWAP, dest, &value, &cond, &old, sizeof old, pe)) old = pshmem_size_atomic_compare_swap(dest, cond, value, pe); return old; }
ptrdiff_t pshmem_ptrdiff_atomic_compare_swap(ptrdiff_t *dest, ptrdiff_t cond, ptrdiff_t value, int pe);
OXSHMEM_INLINED ptrdiff_t shmem_ptrdiff_atomic_compare_swap(ptrdiff_t *dest, ptrdiff_t cond, ptrdiff_t value, int pe) { ptrdiff_t old; if (!oxshmem_atomic(OXSHMEM_COMPARE_SWAP, dest, &value, &cond, &old, sizeof old, pe)) old = pshmem_ptrdiff_atomic_compare_swap(dest, cond, value, pe); return old; }
float pshmem_float_atomic_swap(float *dest, float value, int pe);
OXSHMEM_INLINED float shmem_float_atomic_swap(float *dest, float value, int pe) { float old; if (!oxshmem_atomic(OXSHMEM_SWAP, dest, &value, &value, &old, sizeof old, pe)) old = pshmem_float_atomic_swap(dest, value, pe); return old; }
double pshmem_double_atomic_swap(double *dest, double value, int pe);
OXSHMEM_INLINED double shmem_double_atomic_swap(double *dest, double value, int pe) { double old; if (!oxshmem_atomic(OXSHMEM_SWAP, dest, &value, &value, &old, sizeof old, pe)) old = pshmem_double_atomic_swap(dest, value, pe); return old; }
int pshmem_int_atomic_swap(int *dest, int value, int pe);
OXSHMEM_INLINED int shmem_int_atomic_swap(int *dest, int value, int pe) { int old; if (!oxshmem_atomic(OXSHMEM_SWAP, dest, &value, &value, &old, sizeof old, pe)) old = pshmem_int_atomic_swap(dest, value, pe); return old; }
long pshmem_long_atomic_swap(long *dest, long value, int pe);
OXSHMEM_INLINED long shmem_long_atomic_swap(long *dest, long value, int pe) { long old; if (!oxshmem_atomic(OXSHMEM_SWAP, dest, &value, &value, &old, sizeof old, pe)) old = pshmem_long_atomic_swap(dest, value, pe); return old; }
long long pshmem_longlong_atomic_swap(long long *dest, long long value, int pe);
OXSHMEM_INLINED long long shmem_longlong_atomic_swap(long long *dest, long long value, int pe) { long long old; if (!oxshmem_atomic(OXSHMEM_SWAP, dest, &value, &value, &old, sizeof old, pe)) old = pshmem_longlong_atomic_swap(dest, value, pe); return old; }
unsigned int pshmem_uint_atomic_swap(unsigned int *dest, unsigned int value, int pe);
OXSHMEM_INLINED unsigned int shmem_uint_atomic_swap(unsigned int *dest, unsigned int value, int pe) { unsigned int old; if (!oxshmem_atomic(OXSHMEM_SWAP, dest, &value, &value, &old, sizeof old, pe)) old = pshmem_uint_atomic_swap(dest, value, pe); return old; }
unsigned long pshmem_ulong_atomic_swap(unsigned long *dest, unsigned long value, int pe);
OXSHMEM_INLINED unsigned long shmem_ulong_atomic_swap(unsigned long *dest, unsigned long value, int pe) { unsigned long old; if (!oxshmem_atomic(OXSHMEM_SWAP, dest, &value, &value, &old, sizeof old, pe)) old = pshmem_ulong_atomic_swap(dest, value, pe); return old; }
unsigned long long pshmem_ulonglong_atomic_swap(unsigned long long *dest, unsigned long long value, int pe);
OXSHMEM_INLINED unsigned long long shmem_ulonglong_atomic_swap(unsigned long long *dest, unsigned long long value, int pe) { unsigned long long old; if (!oxshmem_atomic(OXSHMEM_SWAP, dest, &value, &value, &old, sizeof old, pe)) old = pshmem_ulonglong_atomic_swap(dest, value, pe); return old; }
int32_t pshmem_int32_atomic_swap(int32_t *dest, int32_t value, int pe);
OXSHMEM_INLINED int32_t shmem_int32_atomic_swap(int32_t *dest, int32_t value, int pe) { int32_t old; if (!oxshmem_atomic(OXSHMEM_SWAP, dest, &value, &value, &old, sizeof old, pe)) old = pshmem_int32_atomic_swap(dest, value, pe); return old; }
int64_t pshmem_int64_atomic_swap(int64_t *dest, int64_t value, int pe);
OXSHMEM_INLINED int64_t shmem_int64_atomic_swap(int64_t *dest, int64_t value, int pe) { int64_t old; if (!oxshmem_atomic(OXSHMEM_SWAP, dest, &value, &value, &old, sizeof old, pe)) old = pshmem_int64_atomic_swap(dest, value, pe); return old; }
uint32_t pshmem_uint32_atomic_swap(uint32_t *dest, uint32_t value, int pe);
OXSHMEM_INLINED uint32_t shmem_uint32_atomic_swap(uint32_t *dest, uint32_t value, int pe) { uint32_t old; if (!oxshmem_atomic(OXSHMEM_SWAP, dest, &value, &value, &old, sizeof old, pe)) old = pshmem_uint32_atomic_swap(dest, value, pe); return old; }
uint64_t pshmem_uint64_atomic_swap(uint64_t *dest, uint64_t value, int pe);
OXSHMEM_INLINED uint64_t shmem_uint64_atomic_swap(uint64_t *dest, uint64_t value, int pe) { uint64_t old; if (!oxshmem_atomic(OXSHMEM_SWAP, dest, &value, &value, &old, sizeof old, pe)) old = pshmem_uint64_atomic_swap(dest, value, pe); return old; }
size_t pshmem_size_atomic_swap(size_t *dest, size_t value, int pe);
OXSHMEM_INLINED size_t shmem_size_atomic_swap(size_t *dest, size_t value, int pe) { size_t old; if (!oxshmem_atomic(OXSHMEM_SWAP, dest, &value, &value, &old, sizeof old, pe)) old = pshmem_size_atomic_swap(dest, value, pe); return old; }
ptrdiff_t pshmem_ptrdiff_atomic_swap(ptrdiff_t *dest, ptrdiff_t value, int pe);
OXSHMEM_INLINED ptrdiff_t shmem_ptrdiff_atomic_swap(ptrdiff_t *dest, ptrdiff_t value, int pe) { ptrdiff_t old; if (!oxshmem_atomic(OXSHMEM_SWAP, dest, &value, &value, &old, sizeof old, pe)) old = pshmem_ptrdiff_atomic_swap(dest, value, pe); return old; }
int pshmem_int_atomic_fetch_inc(int *dest, int pe);
OXSHMEM_INLINED int shmem_int_atomic_fetch_inc(int *dest, int pe) { int old, one = 1; if (!oxshmem_atomic(OXSHMEM_ADD, dest, &one, &one, &old, sizeof old, pe)) old = pshmem_int_atomic_fetch_inc(dest, pe); return old; }
long pshmem_long_atomic_fetch_inc(long *dest, int pe);
OXSHMEM_INLINED long shmem_long_atomic_fetch_inc(long *dest, int pe) { long old, one = 1; if (!oxshmem_atomic(OXSHMEM_ADD, dest, &one, &one, &old, sizeof old, pe)) old = pshmem_long_atomic_fetch_inc(dest, pe); return old; }
long long pshmem_longlong_atomic_fetch_inc(long long *dest, int pe);
OXSHMEM_INLINED long long shmem_longlong_atomic_fetch_inc(long long *dest, int pe) { long long old, one = 1; if (!oxshmem_atomic(OXSHMEM_ADD, dest, &one, &one, &old, sizeof old, pe)) old = pshmem_longlong_atomic_fetch_inc(dest, pe); return old; }
unsigned int pshmem_uint_atomic_fetch_inc(unsigned int *dest, int pe);
OXSHMEM_INLINED unsigned int shmem_uint_atomic_fetch_inc(unsigned int *dest, int pe) { unsigned int old, one = 1; if (!oxshmem_atomic(OXSHMEM_ADD, dest, &one, &one, &old, sizeof old, pe)) old = pshmem_uint_atomic_fetch_inc(dest, pe); return old; }
unsigned long pshmem_ulong_atomic_fetch_inc(unsigned long *dest, int pe);
OXSHMEM_INLINED unsigned long shmem_ulong_atomic_fetch_inc(unsigned long *dest, int pe) { unsigned long old, one = 1; if (!oxshmem_atomic(OXSHMEM_ADD, dest, &one, &one, &old, sizeof old, pe)) old = pshmem_ulong_atomic_fetch_inc(dest, pe); return old; }
unsigned long long pshmem_ulonglong_atomic_fetch_inc(unsigned long long *dest, int pe);
OXSHMEM_INLINED unsigned long long shmem_ulonglong_atomic_fetch_inc(unsigned long long *dest, int pe) { unsigned long long old, one = 1; if (!oxshmem_atomic(OXSHMEM_ADD, dest, &one, &one, &old, sizeof old, pe)) old = pshmem_ulonglong_atomic_fetch_inc(dest, pe); return old; }
int32_t pshmem_int32_atomic_fetch_inc(int32_t *dest, int pe);
OXSHMEM_INLINED int32_t shmem_int32_atomic_fetch_inc(int32_t *dest, int pe) { int32_t old, one = 1; if (!oxshmem_atomic(OXSHMEM_ADD, dest, &one, &one, &old, sizeof old, pe)) old = pshmem_int32_atomic_fetch_inc(dest, pe); return old; }
int64_t pshmem_int64_atomic_fetch_inc(int64_t *dest, int pe);
OXSHMEM_INLINED int64_t shmem_int64_atomic_fetch_inc(int64_t *dest, int pe) { int64_t old, one = 1; if (!oxshmem_atomic(OXSHMEM_ADD, dest, &one, &one, &old, sizeof old, pe)) old = pshmem_int64_atomic_fetch_inc(dest, pe); return old; }
uint32_t pshmem_uint32_atomic_fetch_inc(uint32_t *dest, int pe);
OXSHMEM_INLINED uint32_t shmem_uint32_atomic_fetch_inc(uint32_t *dest, int pe) { uint32_t old, one = 1; if (!oxshmem_atomic(OXSHMEM_ADD, dest, &one, &one, &old, sizeof old, pe)) old = pshmem_uint32_atomic_fetch_inc(dest, pe); return old; }
uint64_t pshmem_uint64_atomic_fetch_inc(uint64_t *dest, int pe);
OXSHMEM_INLINED uint64_t shmem_uint64_atomic_fetch_inc(uint64_t *dest, int pe) { uint64_t old, one = 1; if (!oxshmem_atomic(OXSHMEM_ADD, dest, &one, &one, &old, sizeof old, pe)) old = pshmem_uint64_atomic_fetch_inc(dest, pe); return old; }
size_t pshmem_size_atomic_fetch_inc(size_t *dest, int pe);
OXSHMEM_INLINED size_t shmem_size_atomic_fetch_inc(size_t *dest, int pe) { size_t old, one = 1; if (!oxshmem_atomic(OXSHMEM_ADD, dest, &one, &one, &old, sizeof old, pe)) old = pshmem_size_atomic_fetch_inc(dest, pe); return old; }
ptrdiff_t pshmem_ptrdiff_atomic_fetch_inc(ptrdiff_t *dest, int pe);
OXSHMEM_INLINED ptrdiff_t shmem_ptrdiff_atomic_fetch_inc(ptrdiff_t *dest, int pe) { ptrdiff_t old, one = 1; if (!oxshmem_atomic(OXSHMEM_ADD, dest, &one, &one, &old, sizeof old, pe)) old = pshmem_ptrdiff_atomic_fetch_inc(dest, pe); return old; }
void pshmem_int_atomic_inc(int *dest, int pe);
OXSHMEM_INLINED void shmem_int_atomic_inc(int *dest, int pe) { int old, one = 1; if (!oxshmem_atomic(OXSHMEM_ADD, dest, &one, &one, &old, sizeof old, pe)) pshmem_int_atomic_inc(dest, pe); }
void pshmem_long_atomic_inc(long *dest, int pe);
OXSHMEM_INLINED void shmem_long_atomic_inc(long *dest, int pe) { long old, one = 1; if (!oxshmem_atomic(OXSHMEM_ADD, dest, &one, &one, &old, sizeof old, pe)) pshmem_long_atomic_inc(dest, pe); }
void pshmem_longlong_atomic_inc(long long *dest, int pe);
OXSHMEM_INLINED void shmem_longlong_atomic_inc(long long *dest, int pe) { long long old, one = 1; if (!oxshmem_atomic(OXSHMEM_ADD, dest, &one, &one, &old, sizeof old, pe)) pshmem_longlong_atomic_inc(dest, pe); }
void pshmem_uint_atomic_inc(unsigned int *dest, int pe);
OXSHMEM_INLINED void shmem_uint_atomic_inc(unsigned int *dest, int pe) { unsigned int old, one = 1; if (!oxshmem_atomic(OXSHMEM_ADD, dest, &one, &one, &old, sizeof old, pe)) pshmem_uint_atomic_inc(dest, pe); }
void pshmem_ulong_atomic_inc(unsigned long *dest, int pe);
OXSHMEM_INLINED void shmem_ulong_atomic_inc(unsigned long *dest, int pe) { unsigned long old, one = 1; if (!oxshmem_atomic(OXSHMEM_ADD, dest, &one, &one, &old, sizeof old, pe)) pshmem_ulong_atomic_inc(dest, pe); }
void pshmem_ulonglong_atomic_inc(unsigned long long *dest, int pe);
OXSHMEM_INLINED void shmem_ulonglong_atomic_inc(unsigned long long *dest, int pe) { unsigned long long old, one = 1; if (!oxshmem_atomic(OXSHMEM_ADD, dest, &one, &one, &old, sizeof old, pe)) pshmem_ulonglong_atomic_inc(dest, pe); }
void pshmem_int32_atomic_inc(int32_t *dest, int pe);
OXSHMEM_INLINED void shmem_int32_atomic_inc(int32_t *dest, int pe) { int32_t old, one = 1; if (!oxshmem_atomic(OXSHMEM_ADD, dest, &one, &one, &old, sizeof old, pe)) pshmem_int32_atomic_inc(dest, pe); }
void pshmem_int64_atomic_inc(int64_t *dest, int pe);
OXSHMEM_INLINED void shmem_int64_atomic_inc(int64_t *dest, int pe) { int64_t old, one = 1; if (!oxshmem_atomic(OXSHMEM_ADD, dest, &one, &one, &old, sizeof old, pe)) pshmem_int64_atomic_inc(dest, pe); }
void pshmem_uint32_atomic_inc(uint32_t *dest, int pe);
OXSHMEM_INLINED void shmem_uint32_atomic_inc(uint32_t *dest, int pe) { uint32_t old, one = 1; if (!oxshmem_atomic(OXSHMEM_ADD, dest, &one, &one, &old, sizeof old, pe)) pshmem_uint32_atomic_inc(dest, pe); }
void pshmem_uint64_atomic_inc(uint64_t *dest, int pe);
OXSHMEM_INLINED void shmem_uint64_atomic_inc(uint64_t *dest, int pe) { uint64_t old, one = 1; if (!oxshmem_atomic(OXSHMEM_ADD, dest, &one, &one, &old, sizeof old, pe)) pshmem_uint64_atomic_inc(dest, pe); }
void pshmem_size_atomic_inc(size_t *dest, int pe);
OXSHMEM_INLINED void shmem_size_atomic_inc(size_t *dest, int pe) { size_t old, one = 1; if (!oxshmem_atomic(OXSHMEM_ADD, dest, &one, &one, &old, sizeof old, pe)) pshmem_size_atomic_inc(dest, pe); }
void pshmem_ptrdiff_atomic_inc(ptrdiff_t *dest, int pe);
OXSHMEM_INLINED void shmem_ptrdiff_atomic_inc(ptrdiff_t *dest, int pe) { ptrdiff_t old, one = 1; if (!oxshmem_atomic(OXSHMEM_ADD, dest, &one, &one, &old, sizeof old, pe)) pshmem_ptrdiff_atomic_inc(dest, pe); }
int pshmem_int_atomic_fetch_add(int *dest, int value, int pe);
OXSHMEM_INLINED int shmem_int_atomic_fetch_add(int *dest, int value, int pe) { int old; if (!oxshmem_atomic(OXSHMEM_ADD, dest, &value, &value, &old, sizeof old, pe)) old = pshmem_int_atomic_fetch_add(dest, value, pe); return old; }
long pshmem_long_atomic_fetch_add(long *dest, long value, int pe);
OXSHMEM_INLINED long shmem_long_atomic_fetch_add(long *dest, long value, int pe) { long old; if (!oxshmem_atomic(OXSHMEM_ADD, dest, &value, &value, &old, sizeof old, pe)) old = pshmem_long_atomic_fetch_add(dest, value, pe); return old; }
long long pshmem_longlong_atomic_fetch_add(long long *dest, long long value, int pe);
OXSHMEM_INLINED long long shmem_longlong_atomic_fetch_add(long long *dest, long long value, int pe) { long long old; if (!oxshmem_atomic(OXSHMEM_ADD, dest, &value, &value, &old, sizeof old, pe)) old = pshmem_longlong_atomic_fetch_add(dest, value, pe); return old; }
unsigned int pshmem_uint_atomic_fetch_add(unsigned int *dest, unsigned int value, int pe);
OXSHMEM_INLINED unsigned int shmem_uint_atomic_fetch_add(unsigned int *dest, unsigned int value, int pe) { unsigned int old; if (!oxshmem_atomic(OXSHMEM_ADD, dest, &value, &value, &old, sizeof old, pe)) old = pshmem_uint_atomic_fetch_add(dest, value, pe); return old; }
unsigned long pshmem_ulong_atomic_fetch_add(unsigned long *dest, unsigned long value, int pe);
OXSHMEM_INLINED unsigned long shmem_ulong_atomic_fetch_add(unsigned long *dest, unsigned long value, int pe) { unsigned long old; if (!oxshmem_atomic(OXSHMEM_ADD, dest, &value, &value, &old, sizeof old, pe)) old = pshmem_ulong_atomic_fetch_add(dest, value, pe); return old; }
unsigned long long pshmem_ulonglong_atomic_fetch_add(unsigned long long *dest, unsigned long long value, int pe);
OXSHMEM_INLINED unsigned long long shmem_ulonglong_atomic_fetch_add(unsigned long long *dest, unsigned long long value, int pe) { unsigned long long old; if (!oxshmem_atomic(OXSHMEM_ADD, dest, &value, &value, &old, sizeof old, pe)) old = pshmem_ulonglong_atomic_fetch_add(dest, value, pe); return old; }
int32_t pshmem_int32_atomic_fetch_add(int32_t *dest, int32_t value, int pe);
OXSHMEM_INLINED int32_t shmem_int32_atomic_fetch_add(int32_t *dest, int32_t value, int pe) { int32_t old; if (!oxshmem_atomic(OXSHMEM_ADD, dest, &value, &value, &old, sizeof old, pe)) old = pshmem_int32_atomic_fetch_add(dest, value, pe); return old; }
int64_t pshmem_int64_atomic_fetch_add(int64_t *dest, int64_t value, int pe);
OXSHMEM_INLINED int64_t shmem_int64_atomic_fetch_add(int64_t *dest, int64_t value, int pe) { int64_t old; if (!oxshmem_atomic(OXSHMEM_ADD, dest, &value, &value, &old, sizeof old, pe)) old = pshmem_int64_atomic_fetch_add(dest, value, pe); return old; }
uint32_t pshmem_uint32_atomic_fetch_add(uint32_t *dest, uint32_t value, int pe);
OXSHMEM_INLINED uint32_t shmem_uint32_atomic_fetch_add(uint32_t *dest, uint32_t value, int pe) { uint32_t old; if (!oxshmem_atomic(OXSHMEM_ADD, dest, &value, &value, &old, sizeof old, pe)) old = pshmem_uint32_atomic_fetch_add(dest, value, pe); return old; }
uint64_t pshmem_uint64_atomic_fetch_add(uint64_t *dest, uint64_t value, int pe);
OXSHMEM_INLINED uint64_t shmem_uint64_atomic_fetch_add(uint64_t *dest, uint64_t value, int pe) { uint64_t old; if (!oxshmem_atomic(OXSHMEM_ADD, dest, &value, &value, &old, sizeof old, pe)) old = pshmem_uint64_atomic_fetch_add(dest, value, pe); return old; }
size_t pshmem_size_atomic_fetch_add(size_t *dest, size_t value, int pe);
OXSHMEM_INLINED size_t shmem_size_atomic_fetch_add(size_t *dest, size_t value, int pe) { size_t old; if (!oxshmem_atomic(OXSHMEM_ADD, dest, &value, &value, &old, sizeof old, pe)) old = pshmem_size_atomic_fetch_add(dest, value, pe); return old; }
ptrdiff_t pshmem_ptrdiff_atomic_fetch_add(ptrdiff_t *dest, ptrdiff_t value, int pe);
OXSHMEM_INLINED ptrdiff_t shmem_ptrdiff_atomic_fetch_add(ptrdiff_t *dest, ptrdiff_t value, int pe) { ptrdiff_t old; if (!oxshmem_atomic(OXSHMEM_ADD, dest, &value, &value, &old, sizeof old, pe)) old = pshmem_ptrdiff_atomic_fetch_add(dest, value, pe); return old; }
void pshmem_int_atomic_add(int *dest, int value, int pe);
OXSHMEM_INLINED void shmem_int_atomic_add(int *dest, int value, int pe) { int old; if (!oxshmem_atomic(OXSHMEM_ADD, dest, &value, &value, &old, sizeof old, pe)) pshmem_int_atomic_add(dest, value, pe); }
void pshmem_long_atomic_add(long *dest, long value, int pe);
OXSHMEM_INLINED void shmem_long_atomic_add(long *dest, long value, int pe) { long old; if (!oxshmem_atomic(OXSHMEM_ADD, dest, &value, &value, &old, sizeof old, pe)) pshmem_long_atomic_add(dest, value, pe); }
void pshmem_longlong_atomic_add(long long *dest, long long value, int pe);
OXSHMEM_INLINED void shmem_longlong_atomic_add(long long *dest, long long value, int pe) { long long old; if (!oxshmem_atomic(OXSHMEM_ADD, dest, &value, &value, &old, sizeof old, pe)) pshmem_longlong_atomic_add(dest, value, pe); }
void pshmem_uint_atomic_add(unsigned int *dest, unsigned int value, int pe);
OXSHMEM_INLINED void shmem_uint_atomic_add(unsigned int *dest, unsigned int value, int pe) { unsigned int old; if (!oxshmem_atomic(OXSHMEM_ADD, dest, &value, &value, &old, sizeof old, pe)) pshmem_uint_atomic_add(dest, value, pe); }
void pshmem_ulong_atomic_add(unsigned long *dest, unsigned long value, int pe);
OXSHMEM_INLINED void shmem_ulong_atomic_add(unsigned long *dest, unsigned long value, int pe) { unsigned long old; if (!oxshmem_atomic(OXSHMEM_ADD, dest, &value, &value, &old, sizeof old, pe)) pshmem_ulong_atomic_add(dest, value, pe); }
void pshmem_ulonglong_atomic_add(unsigned long long *dest, unsigned long long value, int pe);
OXSHMEM_INLINED void shmem_ulonglong_atomic_add(unsigned long long *dest, unsigned long long value, int pe) { unsigned long long old; if (!oxshmem_atomic(OXSHMEM_ADD, dest, &value, &value, &old, sizeof old, pe)) pshmem_ulonglong_atomic_add(dest, value, pe); }
void pshmem_int32_atomic_add(int32_t *dest, int32_t value, int pe);
OXSHMEM_INLINED void shmem_int32_atomic_add(int32_t *dest, int32_t value, int pe) { int32_t old; if (!oxshmem_atomic(OXSHMEM_ADD, dest, &value, &value, &old, sizeof old, pe)) pshmem_int32_atomic_add(dest, value, pe); }
void pshmem_int64_atomic_add(int64_t *dest, int64_t value, int pe);
OXSHMEM_INLINED void shmem_int64_atomic_add(int64_t *dest, int64_t value, int pe) { int64_t old; if (!oxshmem_atomic(OXSHMEM_ADD, dest, &value, &value, &old, sizeof old, pe)) pshmem_int64_atomic_add(dest, value, pe); }
void pshmem_uint32_atomic_add(uint32_t *dest, uint32_t value, int pe);
OXSHMEM_INLINED void shmem_uint32_atomic_add(uint32_t *dest, uint32_t value, int pe) { uint32_t old; if (!oxshmem_atomic(OXSHMEM_ADD, dest, &value, &value, &old, sizeof old, pe)) pshmem_uint32_atomic_add(dest, value, pe); }
void pshmem_uint64_atomic_add(uint64_t *dest, uint64_t value, int pe);
OXSHMEM_INLINED void shmem_uint64_atomic_add(uint64_t *dest, uint64_t value, int pe) { uint64_t old; if (!oxshmem_atomic(OXSHMEM_ADD, dest, &value, &value, &old, sizeof old, pe)) pshmem_uint64_atomic_add(dest, value, pe); }
void pshmem_size_atomic_add(size_t *dest, size_t value, int pe);
OXSHMEM_INLINED void shmem_size_atomic_add(size_t *dest, size_t value, int pe) { size_t old; if (!oxshmem_atomic(OXSHMEM_ADD, dest, &value, &value, &old, sizeof old, pe)) pshmem_size_atomic_add(dest, value, pe); }
void pshmem_ptrdiff_atomic_add(ptrdiff_t *dest, ptrdiff_t value, int pe);
OXSHMEM_INLINED void shmem_ptrdiff_atomic_add(ptrdiff_t *dest, ptrdiff_t value, int pe) { ptrdiff_t old; if (!oxshmem_atomic(OXSHMEM_ADD, dest, &value, &value, &old, sizeof old, pe)) pshmem_ptrdiff_atomic_add(dest, value, pe); }
unsigned int pshmem_uint_atomic_fetch_and(unsigned int *dest, unsigned int value, int pe);
OXSHMEM_INLINED unsigned int shmem_uint_atomic_fetch_and(unsigned int *dest, unsigned int value, int pe) { unsigned int old; if (!oxshmem_atomic(OXSHMEM_AND, dest, &value, &value, &old, sizeof old, pe)) old = pshmem_uint_atomic_fetch_and(dest, value, pe); return old; }
unsigned long pshmem_ulong_atomic_fetch_and(unsigned long *dest, unsigned long value, int pe);
OXSHMEM_INLINED unsigned long shmem_ulong_atomic_fetch_and(unsigned long *dest, unsigned long value, int pe) { unsigned long old; if (!oxshmem_atomic(OXSHMEM_AND, dest, &value, &value, &old, sizeof old, pe)) old = pshmem_ulong_atomic_fetch_and(dest, value, pe); return old; }
unsigned long long pshmem_ulonglong_atomic_fetch_and(unsigned long long *dest, unsigned long long value, int pe);
OXSHMEM_INLINED unsigned long long shmem_ulonglong_atomic_fetch_and(unsigned long long *dest, unsigned long long value, int pe) { unsigned long long old; if (!oxshmem_atomic(OXSHMEM_AND, dest, &value, &value, &old, sizeof old, pe)) old = pshmem_ulonglong_atomic_fetch_and(dest, value, pe); return old; }
int32_t pshmem_int32_atomic_fetch_and(int32_t *dest, int32_t value, int pe);
OXSHMEM_INLINED int32_t shmem_int32_atomic_fetch_and(int32_t *dest, int32_t value, int pe) { int32_t old; if (!oxshmem_atomic(OXSHMEM_AND, dest, &value, &value, &old, sizeof old, pe)) old = pshmem_int32_atomic_fetch_and(dest, value, pe); return old; }
int64_t pshmem_int64_atomic_fetch_and(int64_t *dest, int64_t value, int pe);
OXSHMEM_INLINED int64_t shmem_int64_atomic_fetch_and(int64_t *dest, int64_t value, int pe) { int64_t old; if (!oxshmem_atomic(OXSHMEM_AND, dest, &value, &value, &old, sizeof old, pe)) old = pshmem_int64_atomic_fetch_and(dest, value, pe); return old; }
uint32_t pshmem_uint32_atomic_fetch_and(uint32_t *dest, uint32_t value, int pe);
OXSHMEM_INLINED uint32_t shmem_uint32_atomic_fetch_and(uint32_t *dest, uint32_t value, int pe) { uint32_t old; if (!oxshmem_atomic(OXSHMEM_AND, dest, &value, &value, &old, sizeof old, pe)) old = pshmem_uint32_atomic_fetch_and(dest, value, pe); return old; }
uint64_t pshmem_uint64_atomic_fetch_and(uint64_t *dest, uint64_t value, int pe);
OXSHMEM_INLINED uint64_t shmem_uint64_atomic_fetch_and(uint64_t *dest, uint64_t value, int pe) { uint64_t old; if (!oxshmem_atomic(OXSHMEM_AND, dest, &value, &value, &old, sizeof old, pe)) old = pshmem_uint64_atomic_fetch_and(dest, value, pe); return old; }
void pshmem_uint_atomic_and(unsigned int *dest, unsigned int value, int pe);
OXSHMEM_INLINED void shmem_uint_atomic_and(unsigned int *dest, unsigned int value, int pe) { unsigned int old; if (!oxshmem_atomic(OXSHMEM_AND, dest, &value, &value, &old, sizeof old, pe)) pshmem_uint_atomic_and(dest, value, pe); }
void pshmem_ulong_atomic_and(unsigned long *dest, unsigned long value, int pe);
OXSHMEM_INLINED void shmem_ulong_atomic_and(unsigned long *dest, unsigned long value, int pe) { unsigned long old; if (!oxshmem_atomic(OXSHMEM_AND, dest, &value, &value, &old, sizeof old, pe)) pshmem_ulong_atomic_and(dest, value, pe); }
void pshmem_ulonglong_atomic_and(unsigned long long *dest, unsigned long long value, int pe);
OXSHMEM_INLINED void shmem_ulonglong_atomic_and(unsigned long long *dest, unsigned long long value, int pe) { unsigned long long old; if (!oxshmem_atomic(OXSHMEM_AND, dest, &value, &value, &old, sizeof old, pe)) pshmem_ulonglong_atomic_and(dest, value, pe); }
void pshmem_int32_atomic_and(int32_t *dest, int32_t value, int pe);
OXSHMEM_INLINED void shmem_int32_atomic_and(int32_t *dest, int32_t value, int pe) { int32_t old; if (!oxshmem_atomic(OXSHMEM_AND, dest, &value, &value, &old, sizeof old, pe)) pshmem_int32_atomic_and(dest, value, pe); }
void pshmem_int64_atomic_and(int64_t *dest, int64_t value, int pe);
OXSHMEM_INLINED void shmem_int64_atomic_and(int64_t *dest, int64_t value, int pe) { int64_t old; if (!oxshmem_atomic(OXSHMEM_AND, dest, &value, &value, &old, sizeof old, pe)) pshmem_int64_atomic_and(dest, value, pe); }
void pshmem_uint32_atomic_and(uint32_t *dest, uint32_t value, int pe);
OXSHMEM_INLINED void shmem_uint32_atomic_and(uint32_t *dest, uint32_t value, int pe) { uint32_t old; if (!oxshmem_atomic(OXSHMEM_AND, dest, &value, &value, &old, sizeof old, pe)) pshmem_uint32_atomic_and(dest, value, pe); }
void pshmem_uint64_atomic_and(uint64_t *dest, uint64_t value, int pe);
OXSHMEM_INLINED void shmem_uint64_atomic_and(uint64_t *dest, uint64_t value, int pe) { uint64_t old; if (!oxshmem_atomic(OXSHMEM_AND, dest, &value, &value, &old, sizeof old, pe)) pshmem_uint64_atomic_and(dest, value, pe); }
unsigned int pshmem_uint_atomic_fetch_or(unsigned int *dest, unsigned int value, int pe);
OXSHMEM_INLINED unsigned int shmem_uint_atomic_fetch_or(unsigned int *dest, unsigned int value, int pe) { unsigned int old; if (!oxshmem_atomic(OXSHMEM_OR, dest, &value, &value, &old, sizeof old, pe)) old = pshmem_uint_atomic_fetch_or(dest, value, pe); return old; }
unsigned long pshmem_ulong_atomic_fetch_or(unsigned long *dest, unsigned long value, int pe);
OXSHMEM_INLINED unsigned long shmem_ulong_atomic_fetch_or(unsigned long *dest, unsigned long value, int pe) { unsigned long old; if (!oxshmem_atomic(OXSHMEM_OR, dest, &value, &value, &old, sizeof old, pe)) old = pshmem_ulong_atomic_fetch_or(dest, value, pe); return old; }
unsigned long long pshmem_ulonglong_atomic_fetch_or(unsigned long long *dest, unsigned long long value, int pe);
OXSHMEM_INLINED unsigned long long shmem_ulonglong_atomic_fetch_or(unsigned long long *dest, unsigned long long value, int pe) { unsigned long long old; if (!oxshmem_atomic(OXSHMEM_OR, dest, &value, &value, &old, sizeof old, pe)) old = pshmem_ulonglong_atomic_fetch_or(dest, value, pe); return old; }
int32_t pshmem_int32_atomic_fetch_or(int32_t *dest, int32_t value, int pe);
OXSHMEM_INLINED int32_t shmem_int32_atomic_fetch_or(int32_t *dest, int32_t value, int pe) { int32_t old; if (!oxshmem_atomic(OXSHMEM_OR, dest, &value, &value, &old, sizeof old, pe)) old = pshmem_int32_atomic_fetch_or(dest, value, pe); return old; }
int64_t pshmem_int64_atomic_fetch_or(int64_t *dest, int64_t value, int pe);
OXSHMEM_INLINED int64_t shmem_int64_atomic_fetch_or(int64_t *dest, int64_t value, int pe) { int64_t old; if (!oxshmem_atomic(OXSHMEM_OR, dest, &value, &value, &old, sizeof old, pe)) old = pshmem_int64_atomic_fetch_or(dest, value, pe); return old; }
uint32_t pshmem_uint32_atomic_fetch_or(uint32_t *dest, uint32_t value, int pe);
OXSHMEM_INLINED uint32_t shmem_uint32_atomic_fetch_or(uint32_t *dest, uint32_t value, int pe) { uint32_t old; if (!oxshmem_atomic(OXSHMEM_OR, dest, &value, &value, &old, sizeof old, pe)) old = pshmem_uint32_atomic_fetch_or(dest, value, pe); return old; }
uint64_t pshmem_uint64_atomic_fetch_or(uint64_t *dest, uint64_t value, int pe);
OXSHMEM_INLINED uint64_t shmem_uint64_atomic_fetch_or(uint64_t *dest, uint64_t value, int pe) { uint64_t old; if (!oxshmem_atomic(OXSHMEM_OR, dest, &value, &value, &old, sizeof old, pe)) old = pshmem_uint64_atomic_fetch_or(dest, value, pe); return old; }
void pshmem_uint_atomic_or(unsigned int *dest, unsigned int value, int pe);
OXSHMEM_INLINED void shmem_uint_atomic_or(unsigned int *dest, unsigned int value, int pe) { unsigned int old; if (!oxshmem_atomic(OXSHMEM_OR, dest, &value, &value, &old, sizeof old, pe)) pshmem_uint_atomic_or(dest, value, pe); }
void pshmem_ulong_atomic_or(unsigned long *dest, unsigned long value, int pe);
OXSHMEM_INLINED void shmem_ulong_atomic_or(unsigned long *dest, unsigned long value, int pe) { unsigned long old; if (!oxshmem_atomic(OXSHMEM_OR, dest, &value, &value, &old, sizeof old, pe)) pshmem_ulong_atomic_or(dest, value, pe); }
void pshmem_ulonglong_atomic_or(unsigned long long *dest, unsigned long long value, int pe);
OXSHMEM_INLINED void shmem_ulonglong_atomic_or(unsigned long long *dest, unsigned long long value, int pe) { unsigned long long old; if (!oxshmem_atomic(OXSHMEM_OR, dest, &value, &value, &old, sizeof old, pe)) pshmem_ulonglong_atomic_or(dest, value, pe); }
void pshmem_int32_atomic_or(int32_t *dest, int32_t value, int pe);
OXSHMEM_INLINED void shmem_int32_atomic_or(int32_t *dest, int32_t value, int pe) { int32_t old; if (!oxshmem_atomic(OXSHMEM_OR, dest, &value, &value, &old, sizeof old, pe)) pshmem_int32_atomic_or(dest, value, pe); }
void pshmem_int64_atomic_or(int64_t *dest, int64_t value, int pe);
OXSHMEM_INLINED void shmem_int64_atomic_or(int64_t *dest, int64_t value, int pe) { int64_t old; if (!oxshmem_atomic(OXSHMEM_OR, dest, &value, &value, &old, sizeof old, pe)) pshmem_int64_atomic_or(dest, value, pe); }
void pshmem_uint32_atomic_or(uint32_t *dest, uint32_t value, int pe);
OXSHMEM_INLINED void shmem_uint32_atomic_or(uint32_t *dest, uint32_t value, int pe) { uint32_t old; if (!oxshmem_atomic(OXSHMEM_OR, dest, &value, &value, &old, sizeof old, pe)) pshmem_uint32_atomic_or(dest, value, pe); }
void pshmem_uint64_atomic_or(uint64_t *dest, uint64_t value, int pe);
OXSHMEM_INLINED void shmem_uint64_atomic_or(uint64_t *dest, uint64_t value, int pe) { uint64_t old; if (!oxshmem_atomic(OXSHMEM_OR, dest, &value, &value, &old, sizeof old, pe)) pshmem_uint64_atomic_or(dest, value, pe); }
unsigned int pshmem_uint_atomic_fetch_xor(unsigned int *dest, unsigned int value, int pe);
OXSHMEM_INLINED unsigned int shmem_uint_atomic_fetch_xor(unsigned int *dest, unsigned int value, int pe) { unsigned int old; if (!oxshmem_atomic(OXSHMEM_XOR, dest, &value, &value, &old, sizeof old, pe)) old = pshmem_uint_atomic_fetch_xor(dest, value, pe); return old; }
unsigned long pshmem_ulong_atomic_fetch_xor(unsigned long *dest, unsigned long value, int pe);
OXSHMEM_INLINED unsigned long shmem_ulong_atomic_fetch_xor(unsigned long *dest, unsigned long value, int pe) { unsigned long old; if (!oxshmem_atomic(OXSHMEM_XOR, dest, &value, &value, &old, sizeof old, pe)) old = pshmem_ulong_atomic_fetch_xor(dest, value, pe); return old; }
unsigned long long pshmem_ulonglong_atomic_fetch_xor(unsigned long long *dest, unsigned long long value, int pe);
OXSHMEM_INLINED unsigned long long shmem_ulonglong_atomic_fetch_xor(unsigned long long *dest, unsigned long long value, int pe) { unsigned long long old; if (!oxshmem_atomic(OXSHMEM_XOR, dest, &value, &value, &old, sizeof old, pe)) old = pshmem_ulonglong_atomic_fetch_xor(dest, value, pe); return old; }
int32_t pshmem_int32_atomic_fetch_xor(int32_t *dest, int32_t value, int pe);
OXSHMEM_INLINED int32_t shmem_int32_atomic_fetch_xor(int32_t *dest, int32_t value, int pe) { int32_t old; if (!oxshmem_atomic(OXSHMEM_XOR, dest, &value, &value, &old, sizeof old, pe)) old = pshmem_int32_atomic_fetch_xor(dest, value, pe); return old; }
int64_t pshmem_int64_atomic_fetch_xor(int64_t *dest, int64_t value, int pe);
OXSHMEM_INLINED int64_t shmem_int64_atomic_fetch_xor(int64_t *dest, int64_t value, int pe) { int64_t old; if (!oxshmem_atomic(OXSHMEM_XOR, dest, &value, &value, &old, sizeof old, pe)) old = pshmem_int64_atomic_fetch_xor(dest, value, pe); return old; }
uint32_t pshmem_uint32_atomic_fetch_xor(uint32_t *dest, uint32_t value, int pe);
OXSHMEM_INLINED uint32_t shmem_uint32_atomic_fetch_xor(uint32_t *dest, uint32_t value, int pe) { uint32_t old; if (!oxshmem_atomic(OXSHMEM_XOR, dest, &value, &value, &old, sizeof old, pe)) old = pshmem_uint32_atomic_fetch_xor(dest, value, pe); return old; }
uint64_t pshmem_uint64_atomic_fetch_xor(uint64_t *dest, uint64_t value, int pe);
OXSHMEM_INLINED uint64_t shmem_uint64_atomic_fetch_xor(uint64_t *dest, uint64_t value, int pe) { uint64_t old; if (!oxshmem_atomic(OXSHMEM_XOR, dest, &value, &value, &old, sizeof old, pe)) old = pshmem_uint64_atomic_fetch_xor(dest, value, pe); return old; }
void pshmem_uint_atomic_xor(unsigned int *dest, unsigned int value, int pe);
OXSHMEM_INLINED void shmem_uint_atomic_xor(unsigned int *dest, unsigned int value, int pe) { unsigned int old; if (!oxshmem_atomic(OXSHMEM_XOR, dest, &value, &value, &old, sizeof old, pe)) pshmem_uint_atomic_xor(dest, value, pe); }
void pshmem_ulong_atomic_xor(unsigned long *dest, unsigned long value, int pe);
OXSHMEM_INLINED void shmem_ulong_atomic_xor(unsigned long *dest, unsigned long value, int pe) { unsigned long old; if (!oxshmem_atomic(OXSHMEM_XOR, dest, &value, &value, &old, sizeof old, pe)) pshmem_ulong_atomic_xor(dest, value, pe); }
void pshmem_ulonglong_atomic_xor(unsigned long long *dest, unsigned long long value, int pe);
OXSHMEM_INLINED void shmem_ulonglong_atomic_xor(unsigned long long *dest, unsigned long long value, int pe) { unsigned long long old; if (!oxshmem_atomic(OXSHMEM_XOR, dest, &value, &value, &old, sizeof old, pe)) pshmem_ulonglong_atomic_xor(dest, value, pe); }
void pshmem_int32_atomic_xor(int32_t *dest, int32_t value, int pe);
OXSHMEM_INLINED void shmem_int32_atomic_xor(int32_t *dest, int32_t value, int pe) { int32_t old; if (!oxshmem_atomic(OXSHMEM_XOR, dest, &value, &value, &old, sizeof old, pe)) pshmem_int32_atomic_xor(dest, value, pe); }
void pshmem_int64_atomic_xor(int64_t *dest, int64_t value, int pe);
OXSHMEM_INLINED void shmem_int64_atomic_xor(int64_t *dest, int64_t value, int pe) { int64_t old; if (!oxshmem_atomic(OXSHMEM_XOR, dest, &value, &value, &old, sizeof old, pe)) pshmem_int64_atomic_xor(dest, value, pe); }
void pshmem_uint32_atomic_xor(uint32_t *dest, uint32_t value, int pe);
OXSHMEM_INLINED void shmem_uint32_atomic_xor(uint32_t *dest, uint32_t value, int pe) { uint32_t old; if (!oxshmem_atomic(OXSHMEM_XOR, dest, &value, &value, &old, sizeof old, pe)) pshmem_uint32_atomic_xor(dest, value, pe); }
void pshmem_uint64_atomic_xor(uint64_t *dest, uint64_t value, int pe);
OXSHMEM_INLINED void shmem_uint64_atomic_xor(uint64_t *dest, uint64_t value, int pe) { uint64_t old; if (!oxshmem_atomic(OXSHMEM_XOR, dest, &value, &value, &old, sizeof old, pe)) pshmem_uint64_atomic_xor(dest, value, pe); }
float pshmem_float_fetch(const float *source, int pe);
OXSHMEM_INLINED float shmem_float_fetch(const float *source, int pe) { float old, none = 0; if (!oxshmem_atomic(OXSHMEM_FETCH, source, &none, &none, &old, sizeof old, pe)) old = pshmem_float_fetch(source, pe); return old; }
double pshmem_double_fetch(const double *source, int pe);
OXSHMEM_INLINED double shmem_double_fetch(const double *source, int pe) { double old, none = 0; if (!oxshmem_atomic(OXSHMEM_FETCH, source, &none, &none, &old, sizeof old, pe)) old = pshmem_double_fetch(source, pe); return old; }
int pshmem_int_fetch(const int *source, int pe);
OXSHMEM_INLINED int shmem_int_fetch(const int *source, int pe) { int old, none = 0; if (!oxshmem_atomic(OXSHMEM_FETCH, source, &none, &none, &old, sizeof old, pe)) old = pshmem_int_fetch(source, pe); return old; }
long pshmem_long_fetch(const long *source, int pe);
OXSHMEM_INLINED long shmem_long_fetch(const long *source, int pe) { long old, none = 0; if (!oxshmem_atomic(OXSHMEM_FETCH, source, &none, &none, &old, sizeof old, pe)) old = pshmem_long_fetch(source, pe); return old; }
long long pshmem_longlong_fetch(const long long *source, int pe);
OXSHMEM_INLINED long long shmem_longlong_fetch(const long long *source, int pe) { long long old, none = 0; if (!oxshmem_atomic(OXSHMEM_FETCH, source, &none, &none, &old, sizeof old, pe)) old = pshmem_longlong_fetch(source, pe); return old; }
void pshmem_float_set(float *dest, float value, int pe);
OXSHMEM_INLINED void shmem_float_set(float *dest, float value, int pe) { float old; if (!oxshmem_atomic(OXSHMEM_SET, dest, &value, &value, &old, sizeof old, pe)) pshmem_float_set(dest, value, pe); }
void pshmem_double_set(double *dest, double value, int pe);
OXSHMEM_INLINED void shmem_double_set(double *dest, double value, int pe) { double old; if (!oxshmem_atomic(OXSHMEM_SET, dest, &value, &value, &old, sizeof old, pe)) pshmem_double_set(dest, value, pe); }
void pshmem_int_set(int *dest, int value, int pe);
OXSHMEM_INLINED void shmem_int_set(int *dest, int value, int pe) { int old; if (!oxshmem_atomic(OXSHMEM_SET, dest, &value, &value, &old, sizeof old, pe)) pshmem_int_set(dest, value, pe); }
void pshmem_long_set(long *dest, long value, int pe);
OXSHMEM_INLINED void shmem_long_set(long *dest, long value, int pe) { long old; if (!oxshmem_atomic(OXSHMEM_SET, dest, &value, &value, &old, sizeof old, pe)) pshmem_long_set(dest, value, pe); }
void pshmem_longlong_set(long long *dest, long long value, int pe);
OXSHMEM_INLINED void shmem_longlong_set(long long *dest, long long value, int pe) { long long old; if (!oxshmem_atomic(OXSHMEM_SET, dest, &value, &value, &old, sizeof old, pe)) pshmem_longlong_set(dest, value, pe); }
int pshmem_int_cswap(int *dest, int cond, int value, int pe);
OXSHMEM_INLINED int shmem_int_cswap(int *dest, int cond, int value, int pe) { int old; if (!oxshmem_atomic(OXSHMEM_COMPARE_SWAP, dest, &value, &cond, &old, sizeof old, pe)) old = pshmem_int_cswap(dest, cond, value, pe); return old; }
long pshmem_long_cswap(long *dest, long cond, long value, int pe);
OXSHMEM_INLINED long shmem_long_cswap(long *dest, long cond, long value, int pe) { long old; if (!oxshmem_atomic(OXSHMEM_COMPARE_SWAP, dest, &value, &cond, &old, sizeof old, pe)) old = pshmem_long_cswap(dest, cond, value, pe); return old; }
long long pshmem_longlong_cswap(long long *dest, long long cond, long long value, int pe);
OXSHMEM_INLINED long long shmem_longlong_cswap(long long *dest, long long cond, long long value, int pe) { long long old; if (!oxshmem_atomic(OXSHMEM_COMPARE_SWAP, dest, &value, &cond, &old, sizeof old, pe)) old = pshmem_longlong_cswap(dest, cond, value, pe); return old; }
float pshmem_float_swap(float *dest, float value, int pe);
OXSHMEM_INLINED float shmem_float_swap(float *dest, float value, int pe) { float old; if (!oxshmem_atomic(OXSHMEM_SWAP, dest, &value, &value, &old, sizeof old, pe)) old = pshmem_float_swap(dest, value, pe); return old; }
double pshmem_double_swap(double *dest, double value, int pe);
OXSHMEM_INLINED double shmem_double_swap(double *dest, double value, int pe) { double old; if (!oxshmem_atomic(OXSHMEM_SWAP, dest, &value, &value, &old, sizeof old, pe)) old = pshmem_double_swap(dest, value, pe); return old; }
int pshmem_int_swap(int *dest, int value, int pe);
OXSHMEM_INLINED int shmem_int_swap(int *dest, int value, int pe) { int old; if (!oxshmem_atomic(OXSHMEM_SWAP, dest, &value, &value, &old, sizeof old, pe)) old = pshmem_int_swap(dest, value, pe); return old; }
long pshmem_long_swap(long *dest, long value, int pe);
OXSHMEM_INLINED long shmem_long_swap(long *dest, long value, int pe) { long old; if (!oxshmem_atomic(OXSHMEM_SWAP, dest, &value, &value, &old, sizeof old, pe)) old = pshmem_long_swap(dest, value, pe); return old; }
long long pshmem_longlong_swap(long long *dest, long long value, int pe);
OXSHMEM_INLINED long long shmem_longlong_swap(long long *dest, long long value, int pe) { long long old; if (!oxshmem_atomic(OXSHMEM_SWAP, dest, &value, &value, &old, sizeof old, pe)) old = pshmem_longlong_swap(dest, value, pe); return old; }
int pshmem_int_finc(int *dest, int pe);
OXSHMEM_INLINED int shmem_int_finc(int *dest, int pe) { int old, one = 1; if (!oxshmem_atomic(OXSHMEM_ADD, dest, &one, &one, &old, sizeof old, pe)) old = pshmem_int_finc(dest, pe); return old; }
long pshmem_long_finc(long *dest, int pe);
OXSHMEM_INLINED long shmem_long_finc(long *dest, int pe) { long old, one = 1; if (!oxshmem_atomic(OXSHMEM_ADD, dest, &one, &one, &old, sizeof old, pe)) old = pshmem_long_finc(dest, pe); return old; }
long long pshmem_longlong_finc(long long *dest, int pe);
OXSHMEM_INLINED long long shmem_longlong_finc(long long *dest, int pe) { long long old, one = 1; if (!oxshmem_atomic(OXSHMEM_ADD, dest, &one, &one, &old, sizeof old, pe)) old = pshmem_longlong_finc(dest, pe); return old; }
void pshmem_int_inc(int *dest, int pe);
OXSHMEM_INLINED void shmem_int_inc(int *dest, int pe) { int old, one = 1; if (!oxshmem_atomic(OXSHMEM_ADD, dest, &one, &one, &old, sizeof old, pe)) pshmem_int_inc(dest, pe); }
void pshmem_long_inc(long *dest, int pe);
OXSHMEM_INLINED void shmem_long_inc(long *dest, int pe) { long old, one = 1; if (!oxshmem_atomic(OXSHMEM_ADD, dest, &one, &one, &old, sizeof old, pe)) pshmem_long_inc(dest, pe); }
void pshmem_longlong_inc(long long *dest, int pe);
OXSHMEM_INLINED void shmem_longlong_inc(long long *dest, int pe) { long long old, one = 1; if (!oxshmem_atomic(OXSHMEM_ADD, dest, &one, &one, &old, sizeof old, pe)) pshmem_longlong_inc(dest, pe); }
int pshmem_int_fadd(int *dest, int value, int pe);
OXSHMEM_INLINED int shmem_int_fadd(int *dest, int value, int pe) { int old; if (!oxshmem_atomic(OXSHMEM_ADD, dest, &value, &value, &old, sizeof old, pe)) old = pshmem_int_fadd(dest, value, pe); return old; }
long pshmem_long_fadd(long *dest, long value, int pe);
OXSHMEM_INLINED long shmem_long_fadd(long *dest, long value, int pe) { long old; if (!oxshmem_atomic(OXSHMEM_ADD, dest, &value, &value, &old, sizeof old, pe)) old = pshmem_long_fadd(dest, value, pe); return old; }
long long pshmem_longlong_fadd(long long *dest, long long value, int pe);
OXSHMEM_INLINED long long shmem_longlong_fadd(long long *dest, long long value, int pe) { long long old; if (!oxshmem_atomic(OXSHMEM_ADD, dest, &value, &value, &old, sizeof old, pe)) old = pshmem_longlong_fadd(dest, value, pe); return old; }
void pshmem_int_add(int *dest, int value, int pe);
OXSHMEM_INLINED void shmem_int_add(int *dest, int value, int pe) { int old; if (!oxshmem_atomic(OXSHMEM_ADD, dest, &value, &value, &old, sizeof old, pe)) pshmem_int_add(dest, value, pe); }
void pshmem_long_add(long *dest, long value, int pe);
OXSHMEM_INLINED void shmem_long_add(long *dest, long value, int pe) { long old; if (!oxshmem_atomic(OXSHMEM_ADD, dest, &value, &value, &old, sizeof old, pe)) pshmem_long_add(dest, value, pe); }
void pshmem_longlong_add(long long *dest, long long value, int pe);
OXSHMEM_INLINED void shmem_longlong_add(long long *dest, long long value, int pe) { long long old; if (!oxshmem_atomic(OXSHMEM_ADD, dest, &value, &value, &old, sizeof old, pe)) pshmem_longlong_add(dest, value, pe); }
void pshmem_fence(void);
OXSHMEM_INLINED void shmem_fence(void) { if (!oxshmem_order(0)) pshmem_fence(); }
void pshmem_quiet(void);
OXSHMEM_INLINED void shmem_quiet(void) { if (!oxshmem_order(1)) pshmem_quiet(); }

#ifdef __cplusplus
}
#endif

/* For generics.h: the same of objects that may be volatile. */
#ifndef __cplusplus
OXSHMEM_INLINED void oxshmem_float_put(volatile float *dest, volatile const float *source, size_t nelems, int pe) { shmem_float_put((float *)(uintptr_t)dest, (const float *)(uintptr_t)source, nelems, pe); }
OXSHMEM_INLINED void oxshmem_double_put(volatile double *dest, volatile const double *source, size_t nelems, int pe) { shmem_double_put((double *)(uintptr_t)dest, (const double *)(uintptr_t)source, nelems, pe); }
OXSHMEM_INLINED void oxshmem_char_put(volatile char *dest, volatile const char *source, size_t nelems, int pe) { shmem_char_put((char *)(uintptr_t)dest, (const char *)(uintptr_t)source, nelems, pe); }
OXSHMEM_INLINED void oxshmem_schar_put(volatile signed char *dest, volatile const signed char *source, size_t nelems, int pe) { shmem_schar_put((signed char *)(uintptr_t)dest, (const signed char *)(uintptr_t)source, nelems, pe); }
OXSHMEM_INLINED void oxshmem_short_put(volatile short *dest, volatile const short *source, size_t nelems, int pe) { shmem_short_put((short *)(uintptr_t)dest, (const short *)(uintptr_t)source, nelems, pe); }
OXSHMEM_INLINED void oxshmem_int_put(volatile int *dest, volatile const int *source, size_t nelems, int pe) { shmem_int_put((int *)(uintptr_t)dest, (const int *)(uintptr_t)source, nelems, pe); }
OXSHMEM_INLINED void oxshmem_long_put(volatile long *dest, volatile const long *source, size_t nelems, int pe) { shmem_long_put((long *)(uintptr_t)dest, (const long *)(uintptr_t)source, nelems, pe); }
OXSHMEM_INLINED void oxshmem_longlong_put(volatile long long *dest, volatile const long long *source, size_t nelems, int pe) { shmem_longlong_put((long long *)(uintptr_t)dest, (const long long *)(uintptr_t)source, nelems, pe); }
OXSHMEM_INLINED void oxshmem_uchar_put(volatile unsigned char *dest, volatile const unsigned char *source, size_t nelems, int pe) { shmem_uchar_put((unsigned char *)(uintptr_t)dest, (const unsigned char *)(uintptr_t)source, nelems, pe); }
OXSHMEM_INLINED void oxshmem_ushort_put(volatile unsigned short *dest, volatile const unsigned short *source, size_t nelems, int pe) { shmem_ushort_put((unsigned short *)(uintptr_t)dest, (const unsigned short *)(uintptr_t)source, nelems, pe); }
OXSHMEM_INLINED void oxshmem_uint_put(volatile unsigned int *dest, volatile const unsigned int *source, size_t nelems, int pe) { shmem_uint_put((unsigned int *)(uintptr_t)dest, (const unsigned int *)(uintptr_t)source, nelems, pe); }
OXSHMEM_INLINED void oxshmem_ulong_put(volatile unsigned long *dest, volatile const unsigned long *source, size_t nelems, int pe) { shmem_ulong_put((unsigned long *)(uintptr_t)dest, (const unsigned long *)(uintptr_t)source, nelems, pe); }
OXSHMEM_INLINED void oxshmem_ulonglong_put(volatile unsigned long long *dest, volatile const unsigned long long *source, size_t nelems, int pe) { shmem_ulonglong_put((unsigned long long *)(uintptr_t)dest, (const unsigned long long *)(uintptr_t)source, nelems, pe); }
OXSHMEM_INLINED void oxshmem_float_p(volatile float *dest, float value, int pe) { shmem_float_p((float *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED void oxshmem_double_p(volatile double *dest, double value, int pe) { shmem_double_p((double *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED void oxshmem_char_p(volatile char *dest, char value, int pe) { shmem_char_p((char *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED void oxshmem_schar_p(volatile signed char *dest, signed char value, int pe) { shmem_schar_p((signed char *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED void oxshmem_short_p(volatile short *dest, short value, int pe) { shmem_short_p((short *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED void oxshmem_int_p(volatile int *dest, int value, int pe) { shmem_int_p((int *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED void oxshmem_long_p(volatile long *dest, long value, int pe) { shmem_long_p((long *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED void oxshmem_longlong_p(volatile long long *dest, long long value, int pe) { shmem_longlong_p((long long *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED void oxshmem_uchar_p(volatile unsigned char *dest, unsigned char value, int pe) { shmem_uchar_p((unsigned char *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED void oxshmem_ushort_p(volatile unsigned short *dest, unsigned short value, int pe) { shmem_ushort_p((unsigned short *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED void oxshmem_uint_p(volatile unsigned int *dest, unsigned int value, int pe) { shmem_uint_p((unsigned int *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED void oxshmem_ulong_p(volatile unsigned long *dest, unsigned long value, int pe) { shmem_ulong_p((unsigned long *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED void oxshmem_ulonglong_p(volatile unsigned long long *dest, unsigned long long value, int pe) { shmem_ulonglong_p((unsigned long long *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED void oxshmem_float_get(volatile float *dest, volatile const float *source, size_t nelems, int pe) { shmem_float_get((float *)(uintptr_t)dest, (const float *)(uintptr_t)source, nelems, pe); }
OXSHMEM_INLINED void oxshmem_double_get(volatile double *dest, volatile const double *source, size_t nelems, int pe) { shmem_double_get((double *)(uintptr_t)dest, (const double *)(uintptr_t)source, nelems, pe); }
OXSHMEM_INLINED void oxshmem_char_get(volatile char *dest, volatile const char *source, size_t nelems, int pe) { shmem_char_get((char *)(uintptr_t)dest, (const char *)(uintptr_t)source, nelems, pe); }
OXSHMEM_INLINED void oxshmem_schar_get(volatile signed char *dest, volatile const signed char *source, size_t nelems, int pe) { shmem_schar_get((signed char *)(uintptr_t)dest, (const signed char *)(uintptr_t)source, nelems, pe); }
OXSHMEM_INLINED void oxshmem_short_get(volatile short *dest, volatile const short *source, size_t nelems, int pe) { shmem_short_get((short *)(uintptr_t)dest, (const short *)(uintptr_t)source, nelems, pe); }
OXSHMEM_INLINED void oxshmem_int_get(volatile int *dest, volatile const int *source, size_t nelems, int pe) { shmem_int_get((int *)(uintptr_t)dest, (const int *)(uintptr_t)source, nelems, pe); }
OXSHMEM_INLINED void oxshmem_long_get(volatile long *dest, volatile const long *source, size_t nelems, int pe) { shmem_long_get((long *)(uintptr_t)dest, (const long *)(uintptr_t)source, nelems, pe); }
OXSHMEM_INLINED void oxshmem_longlong_get(volatile long long *dest, volatile const long long *source, size_t nelems, int pe) { shmem_longlong_get((long long *)(uintptr_t)dest, (const long long *)(uintptr_t)source, nelems, pe); }
OXSHMEM_INLINED void oxshmem_uchar_get(volatile unsigned char *dest, volatile const unsigned char *source, size_t nelems, int pe) { shmem_uchar_get((unsigned char *)(uintptr_t)dest, (const unsigned char *)(uintptr_t)source, nelems, pe); }
OXSHMEM_INLINED void oxshmem_ushort_get(volatile unsigned short *dest, volatile const unsigned short *source, size_t nelems, int pe) { shmem_ushort_get((unsigned short *)(uintptr_t)dest, (const unsigned short *)(uintptr_t)source, nelems, pe); }
OXSHMEM_INLINED void oxshmem_uint_get(volatile unsigned int *dest, volatile const unsigned int *source, size_t nelems, int pe) { shmem_uint_get((unsigned int *)(uintptr_t)dest, (const unsigned int *)(uintptr_t)source, nelems, pe); }
OXSHMEM_INLINED void oxshmem_ulong_get(volatile unsigned long *dest, volatile const unsigned long *source, size_t nelems, int pe) { shmem_ulong_get((unsigned long *)(uintptr_t)dest, (const unsigned long *)(uintptr_t)source, nelems, pe); }
OXSHMEM_INLINED void oxshmem_ulonglong_get(volatile unsigned long long *dest, volatile const unsigned long long *source, size_t nelems, int pe) { shmem_ulonglong_get((unsigned long long *)(uintptr_t)dest, (const unsigned long long *)(uintptr_t)source, nelems, pe); }
OXSHMEM_INLINED float oxshmem_float_g(volatile const float *source, int pe) { return shmem_float_g((const float *)(uintptr_t)source, pe); }
OXSHMEM_INLINED double oxshmem_double_g(volatile const double *source, int pe) { return shmem_double_g((const double *)(uintptr_t)source, pe); }
OXSHMEM_INLINED char oxshmem_char_g(volatile const char *source, int pe) { return shmem_char_g((const char *)(uintptr_t)source, pe); }
OXSHMEM_INLINED signed char oxshmem_schar_g(volatile const signed char *source, int pe) { return shmem_schar_g((const signed char *)(uintptr_t)source, pe); }
OXSHMEM_INLINED short oxshmem_short_g(volatile const short *source, int pe) { return shmem_short_g((const short *)(uintptr_t)source, pe); }
OXSHMEM_INLINED int oxshmem_int_g(volatile const int *source, int pe) { return shmem_int_g((const int *)(uintptr_t)source, pe); }
OXSHMEM_INLINED long oxshmem_long_g(volatile const long *source, int pe) { return shmem_long_g((const long *)(uintptr_t)source, pe); }
OXSHMEM_INLINED long long oxshmem_longlong_g(volatile const long long *source, int pe) { return shmem_longlong_g((const long long *)(uintptr_t)source, pe); }
OXSHMEM_INLINED unsigned char oxshmem_uchar_g(volatile const unsigned char *source, int pe) { return shmem_uchar_g((const unsigned char *)(uintptr_t)source, pe); }
OXSHMEM_INLINED unsigned short oxshmem_ushort_g(volatile const unsigned short *source, int pe) { return shmem_ushort_g((const unsigned short *)(uintptr_t)source, pe); }
OXSHMEM_INLINED unsigned int oxshmem_uint_g(volatile const unsigned int *source, int pe) { return shmem_uint_g((const unsigned int *)(uintptr_t)source, pe); }
OXSHMEM_INLINED unsigned long oxshmem_ulong_g(volatile const unsigned long *source, int pe) { return shmem_ulong_g((const unsigned long *)(uintptr_t)source, pe); }
OXSHMEM_INLINED unsigned long long oxshmem_ulonglong_g(volatile const unsigned long long *source, int pe) { return shmem_ulonglong_g((const unsigned long long *)(uintptr_t)source, pe); }
OXSHMEM_INLINED float oxshmem_float_atomic_fetch(volatile const float *source, int pe) { return shmem_float_atomic_fetch((const float *)(uintptr_t)source, pe); }
OXSHMEM_INLINED double oxshmem_double_atomic_fetch(volatile const double *source, int pe) { return shmem_double_atomic_fetch((const double *)(uintptr_t)source, pe); }
OXSHMEM_INLINED int oxshmem_int_atomic_fetch(volatile const int *source, int pe) { return shmem_int_atomic_fetch((const int *)(uintptr_t)source, pe); }
OXSHMEM_INLINED long oxshmem_long_atomic_fetch(volatile const long *source, int pe) { return shmem_long_atomic_fetch((const long *)(uintptr_t)source, pe); }
OXSHMEM_INLINED long long oxshmem_longlong_atomic_fetch(volatile const long long *source, int pe) { return shmem_longlong_atomic_fetch((const long long *)(uintptr_t)source, pe); }
OXSHMEM_INLINED unsigned int oxshmem_uint_atomic_fetch(volatile const unsigned int *source, int pe) { return shmem_uint_atomic_fetch((const unsigned int *)(uintptr_t)source, pe); }
OXSHMEM_INLINED unsigned long oxshmem_ulong_atomic_fetch(volatile const unsigned long *source, int pe) { return shmem_ulong_atomic_fetch((const unsigned long *)(uintptr_t)source, pe); }
OXSHMEM_INLINED unsigned long long oxshmem_ulonglong_atomic_fetch(volatile const unsigned long long *source, int pe) { return shmem_ulonglong_atomic_fetch((const unsigned long long *)(uintptr_t)source, pe); }
OXSHMEM_INLINED void oxshmem_float_atomic_set(volatile float *dest, float value, int pe) { shmem_float_atomic_set((float *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED void oxshmem_double_atomic_set(volatile double *dest, double value, int pe) { shmem_double_atomic_set((double *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED void oxshmem_int_atomic_set(volatile int *dest, int value, int pe) { shmem_int_atomic_set((int *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED void oxshmem_long_atomic_set(volatile long *dest, long value, int pe) { shmem_long_atomic_set((long *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED void oxshmem_longlong_atomic_set(volatile long long *dest, long long value, int pe) { shmem_longlong_atomic_set((long long *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED void oxshmem_uint_atomic_set(volatile unsigned int *dest, unsigned int value, int pe) { shmem_uint_atomic_set((unsigned int *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED void oxshmem_ulong_atomic_set(volatile unsigned long *dest, unsigned long value, int pe) { shmem_ulong_atomic_set((unsigned long *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED void oxshmem_ulonglong_atomic_set(volatile unsigned long long *dest, unsigned long long value, int pe) { shmem_ulonglong_atomic_set((unsigned long long *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED int oxshmem_int_atomic_compare_swap(volatile int *dest, int cond, int value, int pe) { return shmem_int_atomic_compare_swap((int *)(uintptr_t)dest, cond, value, pe); }
OXSHMEM_INLINED long oxshmem_long_atomic_compare_swap(volatile long *dest, long cond, long value, int pe) { return shmem_long_atomic_compare_swap((long *)(uintptr_t)dest, cond, value, pe); }
OXSHMEM_INLINED long long oxshmem_longlong_atomic_compare_swap(volatile long long *dest, long long cond, long long value, int pe) { return shmem_longlong_atomic_compare_swap((long long *)(uintptr_t)dest, cond, value, pe); }
OXSHMEM_INLINED unsigned int oxshmem_uint_atomic_compare_swap(volatile unsigned int *dest, unsigned int cond, unsigned int value, int pe) { return shmem_uint_atomic_compare_swap((unsigned int *)(uintptr_t)dest, cond, value, pe); }
OXSHMEM_INLINED unsigned long oxshmem_ulong_atomic_compare_swap(volatile unsigned long *dest, unsigned long cond, unsigned long value, int pe) { return shmem_ulong_atomic_compare_swap((unsigned long *)(uintptr_t)dest, cond, value, pe); }
OXSHMEM_INLINED unsigned long long oxshmem_ulonglong_atomic_compare_swap(volatile unsigned long long *dest, unsigned long long cond, unsigned long long value, int pe) { return shmem_ulonglong_atomic_compare_swap((unsigned long long *)(uintptr_t)dest, cond, value, pe); }
OXSHMEM_INLINED float oxshmem_float_atomic_swap(volatile float *dest, float value, int pe) { return shmem_float_atomic_swap((float *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED double oxshmem_double_atomic_swap(volatile double *dest, double value, int pe) { return shmem_double_atomic_swap((double *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED int oxshmem_int_atomic_swap(volatile int *dest, int value, int pe) { return shmem_int_atomic_swap((int *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED long oxshmem_long_atomic_swap(volatile long *dest, long value, int pe) { return shmem_long_atomic_swap((long *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED long long oxshmem_longlong_atomic_swap(volatile long long *dest, long long value, int pe) { return shmem_longlong_atomic_swap((long long *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED unsigned int oxshmem_uint_atomic_swap(volatile unsigned int *dest, unsigned int value, int pe) { return shmem_uint_atomic_swap((unsigned int *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED unsigned long oxshmem_ulong_atomic_swap(volatile unsigned long *dest, unsigned long value, int pe) { return shmem_ulong_atomic_swap((unsigned long *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED unsigned long long oxshmem_ulonglong_atomic_swap(volatile unsigned long long *dest, unsigned long long value, int pe) { return shmem_ulonglong_atomic_swap((unsigned long long *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED int oxshmem_int_atomic_fetch_inc(volatile int *dest, int pe) { return shmem_int_atomic_fetch_inc((int *)(uintptr_t)dest, pe); }
OXSHMEM_INLINED long oxshmem_long_atomic_fetch_inc(volatile long *dest, int pe) { return shmem_long_atomic_fetch_inc((long *)(uintptr_t)dest, pe); }
OXSHMEM_INLINED long long oxshmem_longlong_atomic_fetch_inc(volatile long long *dest, int pe) { return shmem_longlong_atomic_fetch_inc((long long *)(uintptr_t)dest, pe); }
OXSHMEM_INLINED unsigned int oxshmem_uint_atomic_fetch_inc(volatile unsigned int *dest, int pe) { return shmem_uint_atomic_fetch_inc((unsigned int *)(uintptr_t)dest, pe); }
OXSHMEM_INLINED unsigned long oxshmem_ulong_atomic_fetch_inc(volatile unsigned long *dest, int pe) { return shmem_ulong_atomic_fetch_inc((unsigned long *)(uintptr_t)dest, pe); }
OXSHMEM_INLINED unsigned long long oxshmem_ulonglong_atomic_fetch_inc(volatile unsigned long long *dest, int pe) { return shmem_ulonglong_atomic_fetch_inc((unsigned long long *)(uintptr_t)dest, pe); }
OXSHMEM_INLINED void oxshmem_int_atomic_inc(volatile int *dest, int pe) { shmem_int_atomic_inc((int *)(uintptr_t)dest, pe); }
OXSHMEM_INLINED void oxshmem_long_atomic_inc(volatile long *dest, int pe) { shmem_long_atomic_inc((long *)(uintptr_t)dest, pe); }
OXSHMEM_INLINED void oxshmem_longlong_atomic_inc(volatile long long *dest, int pe) { shmem_longlong_atomic_inc((long long *)(uintptr_t)dest, pe); }
OXSHMEM_INLINED void oxshmem_uint_atomic_inc(volatile unsigned int *dest, int pe) { shmem_uint_atomic_inc((unsigned int *)(uintptr_t)dest, pe); }
OXSHMEM_INLINED void oxshmem_ulong_atomic_inc(volatile unsigned long *dest, int pe) { shmem_ulong_atomic_inc((unsigned long *)(uintptr_t)dest, pe); }
OXSHMEM_INLINED void oxshmem_ulonglong_atomic_inc(volatile unsigned long long *dest, int pe) { shmem_ulonglong_atomic_inc((unsigned long long *)(uintptr_t)dest, pe); }
OXSHMEM_INLINED int oxshmem_int_atomic_fetch_add(volatile int *dest, int value, int pe) { return shmem_int_atomic_fetch_add((int *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED long oxshmem_long_atomic_fetch_add(volatile long *dest, long value, int pe) { return shmem_long_atomic_fetch_add((long *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED long long oxshmem_longlong_atomic_fetch_add(volatile long long *dest, long long value, int pe) { return shmem_longlong_atomic_fetch_add((long long *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED unsigned int oxshmem_uint_atomic_fetch_add(volatile unsigned int *dest, unsigned int value, int pe) { return shmem_uint_atomic_fetch_add((unsigned int *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED unsigned long oxshmem_ulong_atomic_fetch_add(volatile unsigned long *dest, unsigned long value, int pe) { return shmem_ulong_atomic_fetch_add((unsigned long *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED unsigned long long oxshmem_ulonglong_atomic_fetch_add(volatile unsigned long long *dest, unsigned long long value, int pe) { return shmem_ulonglong_atomic_fetch_add((unsigned long long *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED void oxshmem_int_atomic_add(volatile int *dest, int value, int pe) { shmem_int_atomic_add((int *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED void oxshmem_long_atomic_add(volatile long *dest, long value, int pe) { shmem_long_atomic_add((long *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED void oxshmem_longlong_atomic_add(volatile long long *dest, long long value, int pe) { shmem_longlong_atomic_add((long long *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED void oxshmem_uint_atomic_add(volatile unsigned int *dest, unsigned int value, int pe) { shmem_uint_atomic_add((unsigned int *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED void oxshmem_ulong_atomic_add(volatile unsigned long *dest, unsigned long value, int pe) { shmem_ulong_atomic_add((unsigned long *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED void oxshmem_ulonglong_atomic_add(volatile unsigned long long *dest, unsigned long long value, int pe) { shmem_ulonglong_atomic_add((unsigned long long *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED unsigned int oxshmem_uint_atomic_fetch_and(volatile unsigned int *dest, unsigned int value, int pe) { return shmem_uint_atomic_fetch_and((unsigned int *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED unsigned long oxshmem_ulong_atomic_fetch_and(volatile unsigned long *dest, unsigned long value, int pe) { return shmem_ulong_atomic_fetch_and((unsigned long *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED unsigned long long oxshmem_ulonglong_atomic_fetch_and(volatile unsigned long long *dest, unsigned long long value, int pe) { return shmem_ulonglong_atomic_fetch_and((unsigned long long *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED int32_t oxshmem_int32_atomic_fetch_and(volatile int32_t *dest, int32_t value, int pe) { return shmem_int32_atomic_fetch_and((int32_t *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED int64_t oxshmem_int64_atomic_fetch_and(volatile int64_t *dest, int64_t value, int pe) { return shmem_int64_atomic_fetch_and((int64_t *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED void oxshmem_uint_atomic_and(volatile unsigned int *dest, unsigned int value, int pe) { shmem_uint_atomic_and((unsigned int *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED void oxshmem_ulong_atomic_and(volatile unsigned long *dest, unsigned long value, int pe) { shmem_ulong_atomic_and((unsigned long *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED void oxshmem_ulonglong_atomic_and(volatile unsigned long long *dest, unsigned long long value, int pe) { shmem_ulonglong_atomic_and((unsigned long long *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED void oxshmem_int32_atomic_and(volatile int32_t *dest, int32_t value, int pe) { shmem_int32_atomic_and((int32_t *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED void oxshmem_int64_atomic_and(volatile int64_t *dest, int64_t value, int pe) { shmem_int64_atomic_and((int64_t *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED unsigned int oxshmem_uint_atomic_fetch_or(volatile unsigned int *dest, unsigned int value, int pe) { return shmem_uint_atomic_fetch_or((unsigned int *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED unsigned long oxshmem_ulong_atomic_fetch_or(volatile unsigned long *dest, unsigned long value, int pe) { return shmem_ulong_atomic_fetch_or((unsigned long *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED unsigned long long oxshmem_ulonglong_atomic_fetch_or(volatile unsigned long long *dest, unsigned long long value, int pe) { return shmem_ulonglong_atomic_fetch_or((unsigned long long *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED int32_t oxshmem_int32_atomic_fetch_or(volatile int32_t *dest, int32_t value, int pe) { return shmem_int32_atomic_fetch_or((int32_t *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED int64_t oxshmem_int64_atomic_fetch_or(volatile int64_t *dest, int64_t value, int pe) { return shmem_int64_atomic_fetch_or((int64_t *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED void oxshmem_uint_atomic_or(volatile unsigned int *dest, unsigned int value, int pe) { shmem_uint_atomic_or((unsigned int *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED void oxshmem_ulong_atomic_or(volatile unsigned long *dest, unsigned long value, int pe) { shmem_ulong_atomic_or((unsigned long *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED void oxshmem_ulonglong_atomic_or(volatile unsigned long long *dest, unsigned long long value, int pe) { shmem_ulonglong_atomic_or((unsigned long long *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED void oxshmem_int32_atomic_or(volatile int32_t *dest, int32_t value, int pe) { shmem_int32_atomic_or((int32_t *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED void oxshmem_int64_atomic_or(volatile int64_t *dest, int64_t value, int pe) { shmem_int64_atomic_or((int64_t *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED unsigned int oxshmem_uint_atomic_fetch_xor(volatile unsigned int *dest, unsigned int value, int pe) { return shmem_uint_atomic_fetch_xor((unsigned int *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED unsigned long oxshmem_ulong_atomic_fetch_xor(volatile unsigned long *dest, unsigned long value, int pe) { return shmem_ulong_atomic_fetch_xor((unsigned long *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED unsigned long long oxshmem_ulonglong_atomic_fetch_xor(volatile unsigned long long *dest, unsigned long long value, int pe) { return shmem_ulonglong_atomic_fetch_xor((unsigned long long *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED int32_t oxshmem_int32_atomic_fetch_xor(volatile int32_t *dest, int32_t value, int pe) { return shmem_int32_atomic_fetch_xor((int32_t *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED int64_t oxshmem_int64_atomic_fetch_xor(volatile int64_t *dest, int64_t value, int pe) { return shmem_int64_atomic_fetch_xor((int64_t *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED void oxshmem_uint_atomic_xor(volatile unsigned int *dest, unsigned int value, int pe) { shmem_uint_atomic_xor((unsigned int *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED void oxshmem_ulong_atomic_xor(volatile unsigned long *dest, unsigned long value, int pe) { shmem_ulong_atomic_xor((unsigned long *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED void oxshmem_ulonglong_atomic_xor(volatile unsigned long long *dest, unsigned long long value, int pe) { shmem_ulonglong_atomic_xor((unsigned long long *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED void oxshmem_int32_atomic_xor(volatile int32_t *dest, int32_t value, int pe) { shmem_int32_atomic_xor((int32_t *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED void oxshmem_int64_atomic_xor(volatile int64_t *dest, int64_t value, int pe) { shmem_int64_atomic_xor((int64_t *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED float oxshmem_float_fetch(volatile const float *source, int pe) { return shmem_float_fetch((const float *)(uintptr_t)source, pe); }
OXSHMEM_INLINED double oxshmem_double_fetch(volatile const double *source, int pe) { return shmem_double_fetch((const double *)(uintptr_t)source, pe); }
OXSHMEM_INLINED int oxshmem_int_fetch(volatile const int *source, int pe) { return shmem_int_fetch((const int *)(uintptr_t)source, pe); }
OXSHMEM_INLINED long oxshmem_long_fetch(volatile const long *source, int pe) { return shmem_long_fetch((const long *)(uintptr_t)source, pe); }
OXSHMEM_INLINED long long oxshmem_longlong_fetch(volatile const long long *source, int pe) { return shmem_longlong_fetch((const long long *)(uintptr_t)source, pe); }
OXSHMEM_INLINED void oxshmem_float_set(volatile float *dest, float value, int pe) { shmem_float_set((float *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED void oxshmem_double_set(volatile double *dest, double value, int pe) { shmem_double_set((double *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED void oxshmem_int_set(volatile int *dest, int value, int pe) { shmem_int_set((int *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED void oxshmem_long_set(volatile long *dest, long value, int pe) { shmem_long_set((long *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED void oxshmem_longlong_set(volatile long long *dest, long long value, int pe) { shmem_longlong_set((long long *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED int oxshmem_int_cswap(volatile int *dest, int cond, int value, int pe) { return shmem_int_cswap((int *)(uintptr_t)dest, cond, value, pe); }
OXSHMEM_INLINED long oxshmem_long_cswap(volatile long *dest, long cond, long value, int pe) { return shmem_long_cswap((long *)(uintptr_t)dest, cond, value, pe); }
OXSHMEM_INLINED long long oxshmem_longlong_cswap(volatile long long *dest, long long cond, long long value, int pe) { return shmem_longlong_cswap((long long *)(uintptr_t)dest, cond, value, pe); }
OXSHMEM_INLINED float oxshmem_float_swap(volatile float *dest, float value, int pe) { return shmem_float_swap((float *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED double oxshmem_double_swap(volatile double *dest, double value, int pe) { return shmem_double_swap((double *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED int oxshmem_int_swap(volatile int *dest, int value, int pe) { return shmem_int_swap((int *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED long oxshmem_long_swap(volatile long *dest, long value, int pe) { return shmem_long_swap((long *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED long long oxshmem_longlong_swap(volatile long long *dest, long long value, int pe) { return shmem_longlong_swap((long long *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED int oxshmem_int_finc(volatile int *dest, int pe) { return shmem_int_finc((int *)(uintptr_t)dest, pe); }
OXSHMEM_INLINED long oxshmem_long_finc(volatile long *dest, int pe) { return shmem_long_finc((long *)(uintptr_t)dest, pe); }
OXSHMEM_INLINED long long oxshmem_longlong_finc(volatile long long *dest, int pe) { return shmem_longlong_finc((long long *)(uintptr_t)dest, pe); }
OXSHMEM_INLINED void oxshmem_int_inc(volatile int *dest, int pe) { shmem_int_inc((int *)(uintptr_t)dest, pe); }
OXSHMEM_INLINED void oxshmem_long_inc(volatile long *dest, int pe) { shmem_long_inc((long *)(uintptr_t)dest, pe); }
OXSHMEM_INLINED void oxshmem_longlong_inc(volatile long long *dest, int pe) { shmem_longlong_inc((long long *)(uintptr_t)dest, pe); }
OXSHMEM_INLINED int oxshmem_int_fadd(volatile int *dest, int value, int pe) { return shmem_int_fadd((int *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED long oxshmem_long_fadd(volatile long *dest, long value, int pe) { return shmem_long_fadd((long *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED long long oxshmem_longlong_fadd(volatile long long *dest, long long value, int pe) { return shmem_longlong_fadd((long long *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED void oxshmem_int_add(volatile int *dest, int value, int pe) { shmem_int_add((int *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED void oxshmem_long_add(volatile long *dest, long value, int pe) { shmem_long_add((long *)(uintptr_t)dest, value, pe); }
OXSHMEM_INLINED void oxshmem_longlong_add(volatile long long *dest, long long value, int pe) { shmem_longlong_add((long long *)(uintptr_t)dest, value, pe); }
#endif

#endif
