// tf-idf: texts to a weighted sparse matrix. Fitting tokenises once: every worker counts into a table of its own and
// keeps (term, tf) per document; then the tables are merged, the terms chosen and ranked, and the kept counts become
// the training matrix. Nothing in the result depends on threads, on hashing or on the order of tables.
#pragma once
#include <string>

#include "arrays/buffer.h"
#include "arrays/parallel.h"
#include "text/analyse.h"
#include "text/rows.h"

namespace lw {

// Documents of one or several fields. A field's words count `weights[field]` times, and no n-gram spans two fields.
struct TextView {
  const uint8_t* arena = nullptr;
  const int64_t* offsets = nullptr;  // (docs + 1)
  int64_t docs = 0;
  const int64_t* cuts = nullptr;     // (docs, fields - 1): where the second and later fields begin
  const int32_t* weights = nullptr;  // (fields)
  int64_t fields = 1;
  int64_t size(int64_t doc) const { return offsets[doc + 1] - offsets[doc]; }
  int64_t bytes() const { return offsets[docs] - offsets[0]; }

  // use(text, size, weight) for each field of the document that holds something, in order.
  template <typename Use>
  void each_field(int64_t doc, Use&& use) const {
    int64_t begin = offsets[doc];
    for (int64_t field = 0; field < fields; ++field) {
      const int64_t end = field + 1 < fields ? cuts[doc * (fields - 1) + field] : offsets[doc + 1];
      if (end > begin) use(arena + begin, end - begin, static_cast<uint32_t>(weights[field]));
      begin = end;
    }
  }
};

constexpr int32_t MAX_FIELD_WEIGHT = 100;

// Offsets and cuts within the arena, never falling; the first document at fault, or -1.
int64_t bad_document(const TextView& texts, int64_t arena_size);

struct TfidfOptions {
  Rules rules;
  Grams grams;
  int64_t min_df = 2;
  double max_df = 1.0;        // share of the documents
  int64_t max_features = -1;  // -1: all
  bool sublinear = true;
  int idf = 2;  // 0 none, 1 ln(n/df)+1, 2 ln((1+n)/(1+df))+1
  bool l2 = true;
};

struct Matrix {
  Buffer<int64_t> ptr;
  Buffer<int32_t> idx;
  Buffer<float> val;
};

struct TermList {
  Buffer<uint8_t> bytes;
  Buffer<int64_t> offsets;
  Buffer<float> idf;
};

struct Fitted {
  TermList terms;  // by document frequency, falling; ties by bytes
  Matrix matrix;
  int64_t distinct = 0;  // terms before any was left out
};

// `words` may be null, here and below.
Fitted fit_tfidf(const TextView& texts, const TfidfOptions& options, const Words* words, int threads, Control& control);

// The single words of the texts, by documents that hold them, falling; ties by bytes. `counts` are these documents.
struct CountedWords {
  TermList terms;
  std::vector<int64_t> counts;
};
CountedWords count_words(const TextView& texts, const TfidfOptions& options, const Words* words, int threads,
                         Control& control);

// The fitted state, ready to look terms up. Read-only: any number of threads may use one.
class Vectoriser {
 public:
  // Throws std::invalid_argument when a term stands twice.
  Vectoriser(const TfidfOptions& options, const uint8_t* bytes, const int64_t* offsets, const float* idf, int64_t size);
  Vectoriser(const Vectoriser&) = delete;
  Matrix transform(const TextView& texts, const Words* words, int threads, Control& control) const;

 private:
  TfidfOptions options_;
  Characters characters_;
  Terms terms_;
  TermWeight weight_;
  std::vector<float> idf_;
};

}  // namespace lw
