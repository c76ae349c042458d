// The inner loops, compiled once per instruction set from kernels_impl.h and chosen when the library loads.
// Raw pointers only. LABELWOOD_ISA=portable in the environment forces the portable set.
#pragma once
#include <cstdint>

namespace lw {

struct Kernels {
  const char* name;
};

const Kernels& kernels();

}  // namespace lw
