#include "kernels.h"

#define ISA_NAME "avx2"
namespace lw::avx2 {
extern const Kernels table;
#include "kernels_impl.h"
}  // namespace lw::avx2
