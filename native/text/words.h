// What is known of single words before they become terms: the stem that takes a word's place, and which words stay
// whole where others are cut into slices of characters.
#pragma once
#include <cstdint>
#include <vector>

#include "text/terms.h"

namespace lw {

// Words as one arena: word i is bytes[offsets[i] .. offsets[i + 1]).
struct WordList {
  const uint8_t* bytes = nullptr;
  const int64_t* offsets = nullptr;
  int64_t size = 0;
};

class Words {
 public:
  Words() : stemmed_(hash_seed()), whole_(hash_seed()) {}

  // From now on `stems` take the places of `words`, one for each. A word that has one already keeps it.
  void add_stems(const WordList& words, const WordList& stems);
  // These words are not sliced.
  void keep_whole(const WordList& words);

  // For each word whether it has a stem: 1 or 0.
  std::vector<uint8_t> known(const WordList& words) const;

  // The word becomes its stem, where it has one. Words and stems are readable for 16 bytes.
  void stem(const uint8_t*& word, uint32_t& size) const {
    if (stemmed_.size() == 0) return;
    const Slot* slot = stemmed_.find(stemmed_.probe(word, size));
    if (slot == nullptr) return;
    word = arena_.data() + starts_[slot->id];
    size = static_cast<uint32_t>(starts_[slot->id + 1] - starts_[slot->id]);
  }
  bool whole(const uint8_t* word, uint32_t size) const {
    return whole_.size() > 0 && whole_.find(whole_.probe(word, size)) != nullptr;
  }

 private:
  Terms stemmed_, whole_;
  std::vector<uint8_t> arena_ = std::vector<uint8_t>(16);  // of the stems, and 16 bytes to read past the last
  std::vector<size_t> starts_ = {0};                       // by the word's id
};

}  // namespace lw
