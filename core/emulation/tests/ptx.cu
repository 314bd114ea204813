// Code that no CPU can run.
__global__ void store(unsigned* at) {
    asm volatile("st.relaxed.sys.u32 [%0], %1;" ::"l"(at), "r"(1u) : "memory");
}
int main() { store<<<1, 1>>>(nullptr); }
