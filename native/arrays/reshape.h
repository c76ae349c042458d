// Two linear-time rearrangements of a matrix, for label matrices of many millions of entries.
#pragma once
#include "arrays/buffer.h"
#include "arrays/csr.h"
#include "arrays/parallel.h"

namespace lw {

struct OwnedCsr {
  Buffer<int64_t> ptr;
  Buffer<int32_t> idx;
  Buffer<float> val;
};

// (cols, rows), entries of a row in ascending order.
OwnedCsr transpose(const Csr& m);

// Columns summed by group: entry (r, c) goes to column group[c], or nowhere if that is -1. Columns come out sorted.
OwnedCsr sum_columns(const Csr& m, const int32_t* group, int threads, Control& control);

}  // namespace lw
