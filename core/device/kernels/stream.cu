// The kernels of calls on streams, by the calls of the device library. stream.ptx is made of this by ci/ptx.
//
// The host launches one block of each. Copies between mapped memories are the copy engines'.

// The names in the PTX must not depend on the folder.
#define OXSHMEM_OUTLINE __device__ __noinline__
// A name of its own: the software driver has these kernels and the program's in one library.
#define oxshmem_state oxshmem_stream_state

#include "oxshmem.cuh"

#include "half.cuh"

using namespace oxshmem;

#ifdef SOFTCUDA
#pragma softcuda uses_barriers oxshmem_stream_strided oxshmem_stream_barrier oxshmem_stream_fold
#endif

// Values of `Copy` in core/oxshmem/src/stream/library_kernels.rs.
enum Copy : u32 { COPY_PUT, COPY_PUT_NBI, COPY_GET, COPY_GET_NBI };

// A copy by the host, to or from a PE that is not mapped. Nonblocking ones come behind nothing.
extern "C" __global__ void oxshmem_stream_copy(u32 copy, char* dest, const char* source, u64 bytes, int pe) {
    switch (copy) {
    case COPY_PUT:
        fence();
        return putmem(thread(), dest, source, bytes, pe);
    case COPY_PUT_NBI:
        return putmem_nbi(thread(), dest, source, bytes, pe);
    case COPY_GET:
        quiet();
        return getmem(thread(), dest, source, bytes, pe);
    case COPY_GET_NBI:
        return getmem_nbi(thread(), dest, source, bytes, pe);
    }
}

extern "C" __global__ void oxshmem_stream_put_signal(char* dest, const char* source, u64 bytes, u64* signal_word, u64 value,
                                                     u32 operation, int pe, u32 is_nonblocking) {
    const SignalOperation change = (SignalOperation)operation;
    if (is_nonblocking) return put_signal_nbi(dest, source, bytes, signal_word, value, change, pe);
    fence();
    put_signal(dest, source, bytes, signal_word, value, change, pe);
}

extern "C" __global__ void oxshmem_stream_signal(u64* signal_word, u64 value, u32 operation, int pe) {
    fence();
    signal(signal_word, value, (SignalOperation)operation, pe);
}

// One value of `width` bytes.
extern "C" __global__ void oxshmem_stream_p(void* dest, u64 value, u32 width, int pe) {
    fence();
    switch (width) {
    case 1: return p((u8*)dest, (u8)value, pe);
    case 2: return p((u16*)dest, (u16)value, pe);
    case 4: return p((u32*)dest, (u32)value, pe);
    case 8: return p((u64*)dest, value, pe);
    }
}
extern "C" __global__ void oxshmem_stream_g(u64* result, const void* source, u32 width, int pe) {
    quiet();
    switch (width) {
    case 1: return words::store_relaxed(result, (u64)g((const u8*)source, pe));
    case 2: return words::store_relaxed(result, (u64)g((const u16*)source, pe));
    case 4: return words::store_relaxed(result, (u64)g((const u32*)source, pe));
    case 8: return words::store_relaxed(result, g((const u64*)source, pe));
    }
}

// Elements of `width` bytes, at strides in bytes.
extern "C" __global__ void oxshmem_stream_strided(u32 is_get, char* dest, const char* source, u64 dest_stride,
                                                  u64 source_stride, u64 n, u32 width, int pe) {
    if (threadIdx.x == 0) is_get ? quiet() : fence();
    __syncthreads();
    for (u64 i = threadIdx.x; i < n; i += blockDim.x) {
        char* to = dest + i * dest_stride;
        const char* from = source + i * source_stride;
        if (is_get)
            getmem_nbi(thread(), to, from, width, pe);
        else
            putmem_nbi(thread(), to, from, width, pe);
    }
    __syncthreads();
    if (threadIdx.x == 0) is_get ? quiet() : flush();
}

template <class T>
OXSHMEM_DEVICE void wait_all(void* words, u64 n, const int* status, u32 compare, u64 value, const void* values) {
    if (values)
        wait_until_all_vector((T*)words, n, status, (Compare)compare, (const T*)values);
    else
        wait_until_all((T*)words, n, status, (Compare)compare, (T)value);
}
// Each word is compared with its own value, or all with one where `values` is null.
extern "C" __global__ void oxshmem_stream_wait_all(void* words, u64 n, const int* status, u32 compare, u64 value,
                                                   const void* values, u32 width, u32 is_signed) {
    if (width == 2 && is_signed) return wait_all<short>(words, n, status, compare, value, values);
    if (width == 2) return wait_all<u16>(words, n, status, compare, value, values);
    if (width == 4 && is_signed) return wait_all<int>(words, n, status, compare, value, values);
    if (width == 4) return wait_all<u32>(words, n, status, compare, value, values);
    if (is_signed) return wait_all<i64>(words, n, status, compare, value, values);
    wait_all<u64>(words, n, status, compare, value, values);
}

extern "C" __global__ void oxshmem_stream_quiet() { quiet(); }

// The meeting of a team's streams: all that each has done before is complete.
extern "C" __global__ void oxshmem_stream_barrier(team_t team) { barrier(block(), team); }

// The types of elements, and the operations, in the order of core/oxshmem/src/stream/library_kernels.rs.
enum Type : u32 { TYPE_I8, TYPE_I16, TYPE_I32, TYPE_I64, TYPE_U8, TYPE_U16, TYPE_U32, TYPE_U64, TYPE_F16, TYPE_BF16, TYPE_F32, TYPE_F64 };
enum Fold : u32 { FOLD_SUM, FOLD_PROD, FOLD_MIN, FOLD_MAX, FOLD_AND, FOLD_OR, FOLD_XOR };

template <class To, class From>
OXSHMEM_DEVICE To bits(From value) {
    static_assert(sizeof(To) == sizeof(From), "of one size");
    To same;
    memcpy(&same, &value, sizeof same);
    return same;
}

// The operand of a fold, as wide as its type is folded in: integers in 64 bits, f16 and bf16 in f32.
OXSHMEM_OUTLINE u64 widen(u32 type, u64 value) {
    switch (type) {
    case TYPE_I8: return (u64)(i64)(signed char)value;
    case TYPE_I16: return (u64)(i64)(short)value;
    case TYPE_I32: return (u64)(i64)(int)value;
    case TYPE_F16: return bits<u32>(to_float(f16{(u16)value}));
    case TYPE_BF16: return bits<u32>(to_float(bf16{(u16)value}));
    default: return value;
    }
}
OXSHMEM_OUTLINE u64 narrow(u32 type, u64 wide) {
    switch (type) {
    case TYPE_F16: return to_f16(bits<float>((u32)wide)).bits;
    case TYPE_BF16: return to_bf16(bits<float>((u32)wide)).bits;
    default: return wide;
    }
}

// Where the first operand is a NaN, it stays; a later NaN is passed over.
template <class T>
OXSHMEM_DEVICE T fold_numbers(u32 operation, T a, T b) {
    switch (operation) {
    case FOLD_MIN: return Min::of(a, b);
    case FOLD_MAX: return Max::of(a, b);
    case FOLD_SUM: return Sum::of(a, b);
    default: return Product::of(a, b);
    }
}
OXSHMEM_OUTLINE u64 fold_wide(u32 type, u32 operation, u64 a, u64 b) {
    switch (operation) {
    case FOLD_AND: return a & b;
    case FOLD_OR: return a | b;
    case FOLD_XOR: return a ^ b;
    }
    if (type == TYPE_F64) return bits<u64>(fold_numbers(operation, bits<double>(a), bits<double>(b)));
    if (type >= TYPE_F16) return bits<u32>(fold_numbers(operation, bits<float>((u32)a), bits<float>((u32)b)));
    // Sums and products wrap, and have the same bits, signed or not.
    const bool is_same = operation == FOLD_SUM || operation == FOLD_PROD;
    if (type >= TYPE_U8 || is_same) return fold_numbers(operation, a, b);
    return (u64)fold_numbers(operation, (i64)a, (i64)b);
}

// Memory for what comes of members that are not mapped, one call at a time.
struct Staging {
    u32* lock;
    char* rows;
    u64 bytes;
};
struct IsTaken {
    u32* lock;
    OXSHMEM_MEMBER bool operator()() const { return words::compare_swap(lock, 0u, 1u) == 0; }
};

// The members' elements from `source` on, folded in the order of members into `out`, which may be one of them.
template <class T>
OXSHMEM_DEVICE void fold_members(u32 type, u32 operation, team_t team, T* out, const T* source, u64 elements, Staging staging) {
    const Team* members = teams::find(team);
    const u64 row = staging.bytes / members->n / 16 * 16, most = row / sizeof(T);
    // The holder waits for hosts alone.
    bool has_lock = false;
    if (threadIdx.x == 0) {
        IsTaken is_taken{staging.lock};
        has_lock = spin::until(is_taken);
        words::fence_all();
    }
    __syncthreads();
    for (u64 done = 0; done < elements; done += most) {
        const u64 now = elements - done < most ? elements - done : most;
        for (u32 i = threadIdx.x; i < members->n; i += blockDim.x) {
            const int pe = teams::pe_of(members, i);
            if (!rma::is_mapped(rma::distance_to(pe)))
                getmem_nbi(thread(), staging.rows + i * row, (const char*)(source + done), now * sizeof(T), pe);
        }
        __syncthreads();
        if (threadIdx.x == 0) quiet();
        __syncthreads();
        for (u64 e = threadIdx.x; e < now; e += blockDim.x) {
            u64 folded = 0;
            for (u32 i = 0; i < members->n; ++i) {
                const i64 distance = rma::distance_to(teams::pe_of(members, i));
                const bool is_mapped = rma::is_mapped(distance);
                const T* from = is_mapped ? rma::at(source + done, distance) : (const T*)(staging.rows + i * row);
                const u64 next = widen(type, from[e]);
                folded = i == 0 ? next : fold_wide(type, operation, folded, next);
            }
            out[done + e] = (T)narrow(type, folded);
        }
        __syncthreads();
    }
    // A wait that was ended has not got it.
    if (has_lock) words::store_release(staging.lock, 0u);
}

extern "C" __global__ void oxshmem_stream_fold(u32 type, u32 operation, team_t team, void* out, const void* source, u64 elements,
                                               u32* lock, char* rows, u64 bytes) {
    const Staging staging = {lock, rows, bytes};
    switch (type) {
    case TYPE_I8: case TYPE_U8:
        return fold_members(type, operation, team, (u8*)out, (const u8*)source, elements, staging);
    case TYPE_I16: case TYPE_U16: case TYPE_F16: case TYPE_BF16:
        return fold_members(type, operation, team, (u16*)out, (const u16*)source, elements, staging);
    case TYPE_I32: case TYPE_U32: case TYPE_F32:
        return fold_members(type, operation, team, (u32*)out, (const u32*)source, elements, staging);
    default:
        return fold_members(type, operation, team, (u64*)out, (const u64*)source, elements, staging);
    }
}
