// What a check of texts needs to know of each document, in one pass over its words: how many there are, whether it is
// the same as another one, how much it has in common with another one, and whether its characters look damaged.
#pragma once
#include "text/tfidf.h"

namespace lw {

constexpr int64_t SLOTS = 64;              // of a document's sketch
constexpr uint32_t NO_VALUE = 0xFFFFFFFF;  // in all slots of a document of fewer words than a shingle has
constexpr uint32_t SHINGLE = 3;            // words

// Signs of damage or of remains, one bit each.
enum Sign : uint8_t {
  REPLACED = 1,  // U+FFFD: bytes that could not be read
  TWICE = 2,     // UTF-8 that was read as Latin-1 or Windows-1252 and encoded again: Ã¤, â€™
  MARKUP = 4,    // </p>, &amp;
  CONTROL = 8,   // control characters but tab, line feed, carriage return and form feed
};

struct Sketches {
  Buffer<int32_t> words;       // (docs) of one character and more
  Buffer<int32_t> characters;  // (docs)
  Buffer<uint8_t> signs;       // (docs)
  Buffer<uint64_t> digests;    // (docs) of the words in their order: case, punctuation and spaces do not count
  Buffer<uint32_t> slots;      // (docs · SLOTS) the share of equal slots is about the share of common shingles
};

// Nothing in it depends on the number of threads or on the process.
Sketches sketch(const TextView& texts, int threads, Control& control);

}  // namespace lw
