// Floating-point numbers of 16 bits, and their conversions. words.cuh or oxshmem.cuh comes before it.
#pragma once

namespace oxshmem {

struct f16 {
    u16 bits;
};
struct bf16 {
    u16 bits;
};

#if OXSHMEM_PTX
OXSHMEM_DEVICE float to_float(f16 value) {
    float wide;
    asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(value.bits));
    return wide;
}
OXSHMEM_DEVICE f16 to_f16(float wide) {
    f16 value;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(value.bits) : "f"(wide));
    return value;
}
#else
OXSHMEM_DEVICE float to_float(f16 value) {
    _Float16 narrow;
    memcpy(&narrow, &value, sizeof narrow);
    return (float)narrow;
}
OXSHMEM_DEVICE f16 to_f16(float wide) {
    const _Float16 narrow = (_Float16)wide;
    f16 value;
    memcpy(&value, &narrow, sizeof value);
    return value;
}
#endif

OXSHMEM_DEVICE float to_float(bf16 value) {
    const u32 bits = (u32)value.bits << 16;
    float wide;
    memcpy(&wide, &bits, sizeof wide);
    return wide;
}
// To the nearest, ties to even. A NaN is not rounded: it could overflow to a number.
OXSHMEM_DEVICE bf16 to_bf16(float wide) {
    u32 bits;
    memcpy(&bits, &wide, sizeof bits);
    if (wide == wide) bits += 0x7fff + (bits >> 16 & 1);
    return bf16{(u16)(bits >> 16)};
}

}  // namespace oxshmem
