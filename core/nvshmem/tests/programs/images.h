// Names that the two sources of `images` and its plug-in share.
#pragma once

// The kernel of the other source.
void launch_other(int* word, int right);
#ifdef __CUDACC_RDC__
// A function of the other source's device code, which links only with -rdc=true.
__device__ void tell(int* word, int value, int pe);
#endif
