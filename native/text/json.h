// JSON of bytes from outside, as strictly as Python's decoder: one pass over an object, which notes where the values of
// its fields are. No recursion, and no opinion: what is not plain is left to the caller's other reader.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lw {

// A stretch of bytes that is read from its front.
struct Bytes {
  const uint8_t* at;
  const uint8_t* end;

  bool empty() const { return at == end; }
  bool take(uint8_t wanted) {
    if (at == end || *at != wanted) return false;
    ++at;
    return true;
  }
  void skip_space() {
    while (at < end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t')) ++at;
  }
};

enum class JsonKind : uint8_t { NOTHING, STRING, WHOLE, LIST, OTHER };

// A value, and where it is written: of a string what is between the quotes, of others all.
struct JsonValue {
  JsonKind kind = JsonKind::OTHER;
  bool escaped = false;  // a string with backslashes
  const uint8_t* begin = nullptr;
  const uint8_t* end = nullptr;

  std::string_view written() const { return {reinterpret_cast<const char*>(begin), static_cast<size_t>(end - begin)}; }
};

struct JsonField {
  std::string_view name;
  JsonValue value;
};

// The fields of one object after the other; the memory is kept.
class JsonObject {
 public:
  static constexpr size_t MOST_FIELDS = 1024, MOST_INNER = 64;  // of the object, of those inside it
  static constexpr int MOST_DEPTH = 64;

  // Read one object and nothing else. False: it is not plain (an escape in a name, a name that stands twice inside
  // another value, very many fields, deep nesting), or not JSON. Names may stand twice in the object itself.
  bool read(Bytes line);
  const std::vector<JsonField>& fields() const { return fields_; }

 private:
  bool skip_value(Bytes& in);
  bool open(Bytes& in);
  bool after_value(Bytes& in);
  bool inner_name(Bytes& in);

  std::vector<JsonField> fields_;
  struct Level {
    bool object;
    size_t names;  // of the levels around it
  };
  std::vector<Level> levels_;
  std::vector<std::string_view> names_;  // of all open objects
};

// The next string or whole number of a list that JsonObject has read; of anything else the kind is OTHER.
// Call it after the bracket or the comma.
JsonValue next_item(Bytes& list);

// Append the text of a string that has escapes; false for a lone surrogate.
bool append_unescaped(std::string_view written, std::string& out);

}  // namespace lw
