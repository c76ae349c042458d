#include "linear/kernels.h"

#include <cstdlib>
#include <cstring>

namespace lw {
namespace portable {
extern const Kernels table;
}
#ifdef LABELWOOD_HAS_AVX2
namespace avx2 {
extern const Kernels table;
}
#endif

const Kernels& kernels() {
  static const Kernels& chosen = [&]() -> const Kernels& {
#ifdef LABELWOOD_HAS_AVX2
    const char* wish = std::getenv("LABELWOOD_ISA");
    const bool portable_only = wish && std::strcmp(wish, "portable") == 0;
    if (!portable_only && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
        __builtin_cpu_supports("f16c"))
      return avx2::table;
#endif
    return portable::table;
  }();
  return chosen;
}

}  // namespace lw
