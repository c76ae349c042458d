#include "kernels.h"

#define ISA_NAME "portable"
namespace lw::portable {
extern const Kernels table;
#include "kernels_impl.h"
}  // namespace lw::portable
