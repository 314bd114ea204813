/* The types over which the conformance programs expand. */
/* Generated from oxshmem's table (core/capi/table); do not edit. */
#ifndef OXSHMEM_TESTS_TYPES_H
#define OXSHMEM_TESTS_TYPES_H

#define RMA_TYPES(X) \
    X(float, float) \
    X(double, double) \
    X(longdouble, long double) \
    X(char, char) \
    X(schar, signed char) \
    X(short, short) \
    X(int, int) \
    X(long, long) \
    X(longlong, long long) \
    X(uchar, unsigned char) \
    X(ushort, unsigned short) \
    X(uint, unsigned int) \
    X(ulong, unsigned long) \
    X(ulonglong, unsigned long long) \
    X(int8, int8_t) \
    X(int16, int16_t) \
    X(int32, int32_t) \
    X(int64, int64_t) \
    X(uint8, uint8_t) \
    X(uint16, uint16_t) \
    X(uint32, uint32_t) \
    X(uint64, uint64_t) \
    X(size, size_t) \
    X(ptrdiff, ptrdiff_t)

#define DISTINCT_RMA_TYPES(X) \
    X(float, float) \
    X(double, double) \
    X(longdouble, long double) \
    X(char, char) \
    X(schar, signed char) \
    X(short, short) \
    X(int, int) \
    X(long, long) \
    X(longlong, long long) \
    X(uchar, unsigned char) \
    X(ushort, unsigned short) \
    X(uint, unsigned int) \
    X(ulong, unsigned long) \
    X(ulonglong, unsigned long long)

#define STANDARD_TYPES(X) \
    X(int, int) \
    X(long, long) \
    X(longlong, long long) \
    X(uint, unsigned int) \
    X(ulong, unsigned long) \
    X(ulonglong, unsigned long long) \
    X(int32, int32_t) \
    X(int64, int64_t) \
    X(uint32, uint32_t) \
    X(uint64, uint64_t) \
    X(size, size_t) \
    X(ptrdiff, ptrdiff_t)

#define DISTINCT_STANDARD_TYPES(X) \
    X(int, int) \
    X(long, long) \
    X(longlong, long long) \
    X(uint, unsigned int) \
    X(ulong, unsigned long) \
    X(ulonglong, unsigned long long)

#define EXTENDED_TYPES(X) \
    X(float, float) \
    X(double, double) \
    X(int, int) \
    X(long, long) \
    X(longlong, long long) \
    X(uint, unsigned int) \
    X(ulong, unsigned long) \
    X(ulonglong, unsigned long long) \
    X(int32, int32_t) \
    X(int64, int64_t) \
    X(uint32, uint32_t) \
    X(uint64, uint64_t) \
    X(size, size_t) \
    X(ptrdiff, ptrdiff_t)

#define DISTINCT_EXTENDED_TYPES(X) \
    X(float, float) \
    X(double, double) \
    X(int, int) \
    X(long, long) \
    X(longlong, long long) \
    X(uint, unsigned int) \
    X(ulong, unsigned long) \
    X(ulonglong, unsigned long long)

#define BITWISE_TYPES(X) \
    X(uint, unsigned int) \
    X(ulong, unsigned long) \
    X(ulonglong, unsigned long long) \
    X(int32, int32_t) \
    X(int64, int64_t) \
    X(uint32, uint32_t) \
    X(uint64, uint64_t)

#define DISTINCT_BITWISE_TYPES(X) \
    X(uint, unsigned int) \
    X(ulong, unsigned long) \
    X(ulonglong, unsigned long long) \
    X(int32, int32_t) \
    X(int64, int64_t)

#define OLD_EXTENDED_TYPES(X) \
    X(float, float) \
    X(double, double) \
    X(int, int) \
    X(long, long) \
    X(longlong, long long)

#define DISTINCT_OLD_EXTENDED_TYPES(X) \
    X(float, float) \
    X(double, double) \
    X(int, int) \
    X(long, long) \
    X(longlong, long long)

#define OLD_STANDARD_TYPES(X) \
    X(int, int) \
    X(long, long) \
    X(longlong, long long)

#define DISTINCT_OLD_STANDARD_TYPES(X) \
    X(int, int) \
    X(long, long) \
    X(longlong, long long)

#define OLD_WAITS_TYPES(X) \
    X(short, short) \
    X(ushort, unsigned short)

#define DISTINCT_OLD_WAITS_TYPES(X) \
    X(short, short) \
    X(ushort, unsigned short)

#define OLD_WAIT_TYPES(X) \
    X(short, short) \
    X(int, int) \
    X(long, long) \
    X(longlong, long long)

#define DISTINCT_OLD_WAIT_TYPES(X) \
    X(short, short) \
    X(int, int) \
    X(long, long) \
    X(longlong, long long)

#define REDUCE_BITS_TYPES(X) \
    X(uchar, unsigned char) \
    X(ushort, unsigned short) \
    X(uint, unsigned int) \
    X(ulong, unsigned long) \
    X(ulonglong, unsigned long long) \
    X(int8, int8_t) \
    X(int16, int16_t) \
    X(int32, int32_t) \
    X(int64, int64_t) \
    X(uint8, uint8_t) \
    X(uint16, uint16_t) \
    X(uint32, uint32_t) \
    X(uint64, uint64_t) \
    X(size, size_t)

#define DISTINCT_REDUCE_BITS_TYPES(X) \
    X(uchar, unsigned char) \
    X(ushort, unsigned short) \
    X(uint, unsigned int) \
    X(ulong, unsigned long) \
    X(ulonglong, unsigned long long) \
    X(int8, int8_t) \
    X(int16, int16_t) \
    X(int32, int32_t) \
    X(int64, int64_t)

#define REDUCE_SUM_TYPES(X) \
    X(float, float) \
    X(double, double) \
    X(longdouble, long double) \
    X(char, char) \
    X(schar, signed char) \
    X(short, short) \
    X(int, int) \
    X(long, long) \
    X(longlong, long long) \
    X(uchar, unsigned char) \
    X(ushort, unsigned short) \
    X(uint, unsigned int) \
    X(ulong, unsigned long) \
    X(ulonglong, unsigned long long) \
    X(int8, int8_t) \
    X(int16, int16_t) \
    X(int32, int32_t) \
    X(int64, int64_t) \
    X(uint8, uint8_t) \
    X(uint16, uint16_t) \
    X(uint32, uint32_t) \
    X(uint64, uint64_t) \
    X(size, size_t) \
    X(ptrdiff, ptrdiff_t) \
    X(complexd, oxshmem_complexd) \
    X(complexf, oxshmem_complexf)

#define DISTINCT_REDUCE_SUM_TYPES(X) \
    X(float, float) \
    X(double, double) \
    X(longdouble, long double) \
    X(char, char) \
    X(schar, signed char) \
    X(short, short) \
    X(int, int) \
    X(long, long) \
    X(longlong, long long) \
    X(uchar, unsigned char) \
    X(ushort, unsigned short) \
    X(uint, unsigned int) \
    X(ulong, unsigned long) \
    X(ulonglong, unsigned long long) \
    X(complexd, oxshmem_complexd) \
    X(complexf, oxshmem_complexf)

#define OLD_REDUCE_BITS_TYPES(X) \
    X(short, short) \
    X(int, int) \
    X(long, long) \
    X(longlong, long long)

#define DISTINCT_OLD_REDUCE_BITS_TYPES(X) \
    X(short, short) \
    X(int, int) \
    X(long, long) \
    X(longlong, long long)

#define OLD_REDUCE_ORDER_TYPES(X) \
    X(float, float) \
    X(double, double) \
    X(longdouble, long double) \
    X(short, short) \
    X(int, int) \
    X(long, long) \
    X(longlong, long long)

#define DISTINCT_OLD_REDUCE_ORDER_TYPES(X) \
    X(float, float) \
    X(double, double) \
    X(longdouble, long double) \
    X(short, short) \
    X(int, int) \
    X(long, long) \
    X(longlong, long long)

#define OLD_REDUCE_SUM_TYPES(X) \
    X(float, float) \
    X(double, double) \
    X(longdouble, long double) \
    X(short, short) \
    X(int, int) \
    X(long, long) \
    X(longlong, long long) \
    X(complexd, oxshmem_complexd) \
    X(complexf, oxshmem_complexf)

#define DISTINCT_OLD_REDUCE_SUM_TYPES(X) \
    X(float, float) \
    X(double, double) \
    X(longdouble, long double) \
    X(short, short) \
    X(int, int) \
    X(long, long) \
    X(longlong, long long) \
    X(complexd, oxshmem_complexd) \
    X(complexf, oxshmem_complexf)


#endif
