// Tokens to terms: the word n-grams and character n-grams of one document, handed out in small batches whose table
// slots are already on their way from memory.
#pragma once
#include <algorithm>
#include <cstring>

#include "text/terms.h"
#include "text/tokenise.h"
#include "text/words.h"

namespace lw {

// Lengths of the n-grams, low to high; high 0 means none.
struct Grams {
  uint32_t word_low = 1, word_high = 1;
  uint32_t char_low = 0, char_high = 0;
  bool plain() const { return word_low == 1 && word_high == 1 && char_high == 0; }
};

constexpr uint32_t MAX_WORDS = 8;  // of one n-gram
constexpr uint32_t MAX_CHARS = 16;
constexpr uint8_t CHAR_GRAM = '#';  // starts a character n-gram's term; no word starts with it

// One per worker.
class Analyser {
 public:
  // `words` may be null: stems that take the place of words, and words that are not sliced.
  Analyser(const Rules& rules, const Characters& characters, const Grams& grams, const Words* words = nullptr)
      : tokeniser_(rules, characters), grams_(grams), words_(words), line_(new uint8_t[LINE + 2 * MAX_TOKEN_BYTES]()) {}

  // use(probes, count) for all terms of the text, in order.
  template <typename Use>
  void run(const uint8_t* text, int64_t size, const Terms& terms, Use&& use) {
    line_size_ = starts_count_ = 0;
    tokeniser_.run(text, size, [&](const uint8_t* bytes, const Piece* pieces, uint32_t count) {
      for (uint32_t i = 0; i < count; ++i) {
        const uint8_t* token = bytes + pieces[i].start;
        uint32_t length = pieces[i].end - pieces[i].start;
        if (words_) words_->stem(token, length);
        if (grams_.plain()) {
          push(token, length, terms, use);
        } else {
          expand(token, length, terms, use);
        }
      }
      flush(use);  // the probes point into the tokeniser's buffer
    });
  }

 private:
  static constexpr uint32_t BATCH = 64;
  static constexpr uint32_t LINE = 1u << 14;
  static constexpr uint32_t CHAR_BYTES = 4 * MAX_CHARS + 20;

  template <typename Use>
  void push(const uint8_t* bytes, uint32_t size, const Terms& terms, Use& use) {
    const Probe& probe = probes_[count_++] = terms.probe(bytes, size);
    terms.prefetch(probe);
    if (count_ == BATCH) flush(use);
  }
  template <typename Use>
  void flush(Use& use) {
    if (count_) use(probes_, count_);
    count_ = 0;
  }

  template <typename Use>
  void expand(const uint8_t* token, uint32_t size, const Terms& terms, Use& use) {
    if (grams_.word_high) words(token, size, terms, use);
    if (grams_.char_high && !(words_ && words_->whole(token, size))) characters(token, size, terms, use);
  }

  // The line holds the last tokens with a space after each, so that an n-gram is a slice of it.
  template <typename Use>
  void words(const uint8_t* token, uint32_t size, const Terms& terms, Use& use) {
    if (line_size_ + size + 17 > LINE) {
      flush(use);
      shorten();
    }
    if (starts_count_ == MAX_WORDS) {
      std::copy(starts_ + 1, starts_ + MAX_WORDS, starts_);
      --starts_count_;
    }
    starts_[starts_count_++] = line_size_;
    std::memcpy(line_.get() + line_size_, token, size);
    const uint32_t end = line_size_ + size;
    line_[end] = ' ';
    line_size_ = end + 1;
    for (uint32_t n = grams_.word_low; n <= grams_.word_high && n <= starts_count_; ++n) {
      const uint32_t start = starts_[starts_count_ - n];
      push(line_.get() + start, end - start, terms, use);
    }
  }
  void shorten();

  // " token " in slices of n characters. Terms must be readable for 16 bytes, hence a copy of each.
  template <typename Use>
  void characters(const uint8_t* token, uint32_t size, const Terms& terms, Use& use) {
    const uint32_t count = pad(token, size);
    for (uint32_t n = grams_.char_low; n <= grams_.char_high && n <= count; ++n) {
      for (uint32_t i = 0; i + n <= count; ++i) {
        const uint32_t bytes = marks_[i + n] - marks_[i];
        uint8_t* gram = slices_[count_];
        gram[0] = CHAR_GRAM;
        std::memcpy(gram + 1, padded_ + marks_[i], bytes);
        push(gram, bytes + 1, terms, use);
      }
    }
  }
  uint32_t pad(const uint8_t* token, uint32_t size);

  Tokeniser tokeniser_;
  Grams grams_;
  const Words* words_;
  Probe probes_[BATCH];
  uint32_t count_ = 0;
  std::unique_ptr<uint8_t[]> line_;
  uint32_t line_size_ = 0, starts_count_ = 0;
  uint32_t starts_[MAX_WORDS] = {};
  uint8_t padded_[MAX_TOKEN_BYTES + 2] = {};
  uint32_t marks_[MAX_TOKEN_BYTES + 3] = {};  // where each character of padded_ starts, and its end
  uint8_t slices_[BATCH][CHAR_BYTES] = {};
};

// Make room: keep the tokens that later n-grams may still need.
inline void Analyser::shorten() {
  const uint32_t keep = std::min(starts_count_, grams_.word_high - 1);
  const uint32_t from = keep ? starts_[starts_count_ - keep] : line_size_;
  std::memmove(line_.get(), line_.get() + from, line_size_ - from);
  for (uint32_t i = 0; i < keep; ++i) starts_[i] = starts_[starts_count_ - keep + i] - from;
  starts_count_ = keep;
  line_size_ -= from;
}

// Returns the number of characters, both spaces included.
inline uint32_t Analyser::pad(const uint8_t* token, uint32_t size) {
  padded_[0] = padded_[size + 1] = ' ';
  std::memcpy(padded_ + 1, token, size);
  uint32_t count = 0;
  for (uint32_t i = 0; i < size + 2; ++i)
    if ((padded_[i] & 0xC0) != 0x80) marks_[count++] = i;
  marks_[count] = size + 2;
  return count;
}

}  // namespace lw
