// Text to tokens, by the rules of docs/reference/tokenising.md. ASCII goes 64 bytes at a time: one pass lowers the
// bytes and turns them into a bit mask of word characters, whose edges are the tokens. Other characters go one by one
// through a table. Invalid UTF-8 separates words; no byte outside the text is ever read.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

namespace lw {

constexpr int TOKENISER_VERSION = 1;
constexpr uint32_t MAX_TOKEN_BYTES = 256;  // longer ones (base64, hashes of garbage) are dropped

// What a character is and becomes, for one choice of (lowercase, strip accents).
class Characters {
 public:
  enum Kind : uint32_t { SEPARATOR = 0, WORD = 1, MARK = 2, UNSPACED = 3 };
  Characters(bool lowercase, bool strip);
  Characters(const Characters&) = delete;
  // kind in the top byte, the character it becomes below (0: dropped)
  uint32_t operator()(uint32_t code) const { return code < LIMIT ? pages_[code >> 8][code & 255] : 0; }
  static constexpr uint32_t LIMIT = 0x110000;

 private:
  void set(uint32_t code, uint32_t entry);
  std::vector<std::unique_ptr<uint32_t[]>> owned_;
  std::vector<const uint32_t*> pages_;  // by code >> 8; pages without word characters share one
};

struct Rules {
  bool lowercase = true;
  bool strip = false;
  uint32_t min_chars = 2;
};

// A token as a slice of the tokeniser's buffer, which is readable for 16 bytes past any token.
struct Piece {
  uint32_t start, end;
};

// One per worker. Tokens are handed out in batches, in order, as sink(bytes, pieces, count).
class Tokeniser {
 public:
  Tokeniser(const Rules& rules, const Characters& characters);

  template <typename Sink>
  void run(const uint8_t* text, int64_t size, Sink&& sink) {
    const uint8_t* const end = text + size;
    while (text < end) {
      text = fill(text, end);
      const uint32_t count = keep();
      if (count) sink(bytes_.get(), pieces_.get(), count);
      carry();
    }
    close();
    const uint32_t count = keep();
    if (count) sink(bytes_.get(), pieces_.get(), count);
    size_ = edges_count_ = 0;
    wide_ = false;
  }

 private:
  static constexpr uint32_t ROOM = 4096;        // bytes between two batches
  static constexpr uint32_t CARRY = 512;        // kept of a token that is too long anyway
  static constexpr uint32_t EXEMPT = 1u << 31;  // on a start: not subject to min_chars

  const uint8_t* fill(const uint8_t* text, const uint8_t* end);
  uint32_t ascii(const uint8_t* text, uint32_t size);
  const uint8_t* character(const uint8_t* text, const uint8_t* end);
  void put(uint32_t code);
  void unspaced(uint32_t code);
  void close();
  void close_unspaced();
  uint32_t keep();
  void carry();
  bool inside() const { return edges_count_ & 1; }
  void edge(uint32_t at) { edges_[edges_count_++] = at; }

  Rules rules_;
  const Characters& characters_;
  std::unique_ptr<uint8_t[]> bytes_;   // lowered text of this batch
  std::unique_ptr<uint32_t[]> edges_;  // start, end, start, end ...; an odd count means the last token is open
  std::unique_ptr<Piece[]> pieces_;    // the edges that passed the length rules
  uint32_t size_ = 0, edges_count_ = 0;
  uint32_t last_ = 0;                                       // where the last character of an open unspaced run starts
  bool in_unspaced_ = false, lone_ = false, wide_ = false;  // wide: the batch holds bytes above 127
};

}  // namespace lw
