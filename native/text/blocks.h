// How tf-idf is spread over workers: documents in blocks of similar size, each one task, whose rows are joined at the
// end in the order of the documents.
#pragma once
#include "text/tfidf.h"

namespace lw {

// Consecutive documents worked on as one task, and what came out of them.
struct DocBlock {
  int64_t begin = 0, end = 0;  // documents
  int worker = 0;
  Buffer<Entry> entries;
};

inline std::vector<DocBlock> cut(const TextView& texts) {
  constexpr int64_t BYTES = 1 << 18, DOCS = 4096;
  std::vector<DocBlock> blocks;
  for (int64_t begin = 0, end; begin < texts.docs; begin = end) {
    for (end = begin + 1; end < texts.docs && end - begin < DOCS; ++end)
      if (texts.offsets[end] - texts.offsets[begin] >= BYTES) break;
    DocBlock block;
    block.begin = begin;
    block.end = end;
    blocks.push_back(std::move(block));
  }
  return blocks;
}

inline int64_t bytes_of(const TextView& texts, const DocBlock& block) {
  return texts.offsets[block.end] - texts.offsets[block.begin];
}

// Entries of the block at hand; the memory is kept from block to block.
class Scratch {
 public:
  Entry* room(int64_t more) {
    if (size + more > capacity_) {
      Buffer<Entry> larger(2 * (size + more));
      if (size) std::memcpy(static_cast<void*>(&larger[0]), &entries_[0], sizeof(Entry) * static_cast<size_t>(size));
      capacity_ = larger.size;
      entries_ = std::move(larger);
    }
    return entries_.data();
  }
  Buffer<Entry> take() {
    Buffer<Entry> out(size);
    if (size) std::memcpy(static_cast<void*>(&out[0]), &entries_[0], sizeof(Entry) * static_cast<size_t>(size));
    size = 0;
    return out;
  }
  int64_t size = 0;

 private:
  Buffer<Entry> entries_;
  int64_t capacity_ = 0;
};

// Blocks of rows to one matrix; ptr holds the row sizes at doc + 1.
inline Matrix assemble(std::vector<DocBlock>& blocks, Buffer<int64_t> ptr, int threads, Control& control) {
  ptr[0] = 0;
  for (int64_t i = 1; i < ptr.size; ++i) ptr[i] += ptr[i - 1];
  const int64_t total = ptr[ptr.size - 1];
  Matrix matrix{std::move(ptr), Buffer<int32_t>(total), Buffer<float>(total)};
  parallel_for(threads, static_cast<int64_t>(blocks.size()), control, [&](int64_t b, int) {
    DocBlock& block = blocks[static_cast<size_t>(b)];
    const int64_t begin = matrix.ptr[block.begin], size = matrix.ptr[block.end] - begin;
    int32_t* idx = matrix.idx.data() + begin;
    float* val = matrix.val.data() + begin;
    for (int64_t i = 0; i < size; ++i) {
      idx[i] = static_cast<int32_t>(block.entries[i].id);
      val[i] = block.entries[i].weight;
    }
    block.entries = Buffer<Entry>();
  });
  return matrix;
}

}  // namespace lw
