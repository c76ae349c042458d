#include "linear/kernels.h"

#define ISA_NAME "portable"
namespace lw::portable {
extern const Kernels table;
#include "linear/kernels_impl.h"
#include "linear/score_impl.h"
const Kernels table = {ISA_NAME, solve, axpy, score};
}  // namespace lw::portable
