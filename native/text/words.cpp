#include "text/words.h"

namespace lw {
namespace {

// use(word, size) for each word, readable for 16 bytes.
template <typename Use>
void each(const WordList& words, Use&& use) {
  const auto bytes = words.size ? static_cast<size_t>(words.offsets[words.size]) : 0;
  std::vector<uint8_t> padded(words.bytes, words.bytes + bytes);
  padded.resize(bytes + 16);
  for (int64_t i = 0; i < words.size; ++i)
    use(padded.data() + words.offsets[i], static_cast<uint32_t>(words.offsets[i + 1] - words.offsets[i]));
}

}  // namespace

void Words::add_stems(const WordList& words, const WordList& stems) {
  int64_t at = 0;
  each(words, [&](const uint8_t* word, uint32_t size) {
    const uint32_t before = stemmed_.size();
    const uint32_t id = stemmed_.at(stemmed_.probe(word, size)).id;
    if (id == before) {
      arena_.resize(starts_.back());
      arena_.insert(arena_.end(), stems.bytes + stems.offsets[at], stems.bytes + stems.offsets[at + 1]);
      starts_.push_back(arena_.size());
      arena_.resize(arena_.size() + 16);
    }
    ++at;
  });
}

std::vector<uint8_t> Words::known(const WordList& words) const {
  std::vector<uint8_t> found;
  each(words, [&](const uint8_t* word, uint32_t size) {
    found.push_back(stemmed_.find(stemmed_.probe(word, size)) != nullptr);
  });
  return found;
}

void Words::keep_whole(const WordList& words) {
  each(words, [&](const uint8_t* word, uint32_t size) { whole_.at(whole_.probe(word, size)); });
}

}  // namespace lw
