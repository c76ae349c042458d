// Included by kernels_<isa>.cpp inside namespace lw::<isa>. GCC/Clang vector extensions: the same source becomes AVX2
// or SSE2 by compiler flags.

const Kernels table = {ISA_NAME};
