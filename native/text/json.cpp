#include "text/json.h"

#include <cstring>

#include "text/utf8.h"

namespace lw {
namespace {

constexpr int64_t MOST_DIGITS = 600;  // of a whole number: Python reads no less, and may refuse more
constexpr int64_t WHOLE_DIGITS = 18;

bool is_digit(uint8_t c) { return c >= '0' && c <= '9'; }

int hex(uint8_t c) {
  if (is_digit(c)) return c - '0';
  const uint8_t low = c | 0x20;
  return low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
}

// Four hexadecimal digits, or -1.
int32_t code_unit(const uint8_t* at, const uint8_t* end) {
  if (end - at < 4) return -1;
  int32_t code = 0;
  for (int i = 0; i < 4; ++i) {
    const int digit = hex(at[i]);
    if (digit < 0) return -1;
    code = code << 4 | digit;
  }
  return code;
}

// Bytes below 0x20, quotes and backslashes among eight: their high bits. Bits above the first may be wrong.
uint64_t special(uint64_t word) {
  constexpr uint64_t ONES = 0x0101010101010101ull, HIGH = 0x8080808080808080ull;
  const uint64_t quote = word ^ (ONES * '"'), slash = word ^ (ONES * '\\');
  return (((word - ONES * 0x20) & ~word) | ((quote - ONES) & ~quote) | ((slash - ONES) & ~slash)) & HIGH;
}

// To the next quote, backslash or control character, or the end.
void skip_plain(Bytes& in) {
  for (; in.end - in.at >= 8; in.at += 8) {
    uint64_t word;
    std::memcpy(&word, in.at, 8);
    if (special(word)) break;
  }
  while (in.at < in.end && *in.at >= 0x20 && *in.at != '"' && *in.at != '\\') ++in.at;
}

bool skip_escape(Bytes& in) {
  if (in.end - in.at < 2) return false;
  const uint8_t c = in.at[1];
  if (c == 'u') {
    if (code_unit(in.at + 2, in.end) < 0) return false;
    in.at += 6;
    return true;
  }
  in.at += 2;
  return c == '"' || c == '\\' || c == '/' || c == 'b' || c == 'f' || c == 'n' || c == 'r' || c == 't';
}

// A string after its opening quote.
bool read_string(Bytes& in, JsonValue& value) {
  value = {JsonKind::STRING, false, in.at, in.at};
  for (;;) {
    skip_plain(in);
    if (in.empty()) return false;
    if (*in.at == '"') {
      value.end = in.at++;
      return true;
    }
    if (*in.at != '\\' || !skip_escape(in)) return false;
    value.escaped = true;
  }
}

int64_t skip_digits(Bytes& in) {
  const uint8_t* begin = in.at;
  while (in.at < in.end && is_digit(*in.at)) ++in.at;
  return in.at - begin;
}

bool read_number(Bytes& in, JsonValue& value) {
  value = {JsonKind::OTHER, false, in.at, in.at};
  const bool negative = in.take('-');
  const uint8_t* first = in.at;
  const int64_t digits = skip_digits(in);
  if (digits == 0 || (*first == '0' && digits > 1)) return false;
  bool whole = true;
  if (in.take('.')) {
    whole = false;
    if (skip_digits(in) == 0) return false;
  }
  if (in.take('e') || in.take('E')) {
    whole = false;
    if (!in.take('+')) in.take('-');
    if (skip_digits(in) == 0) return false;
  }
  if (whole && digits > MOST_DIGITS) return false;
  const bool zero = negative && *first == '0';  // -0 is written 0 by Python
  if (whole && digits <= WHOLE_DIGITS && !zero) value.kind = JsonKind::WHOLE;
  value.end = in.at;
  return true;
}

bool read_word(Bytes& in, std::string_view word) {
  if (static_cast<size_t>(in.end - in.at) < word.size() || std::memcmp(in.at, word.data(), word.size()) != 0)
    return false;
  in.at += word.size();
  return true;
}

// A string, number, true, false or null.
bool read_scalar(Bytes& in, JsonValue& value) {
  if (in.empty()) return false;
  value = {JsonKind::OTHER, false, in.at, in.at};
  switch (*in.at) {
    case '"':
      ++in.at;
      return read_string(in, value);
    case 'n':
      value.kind = JsonKind::NOTHING;
      return read_word(in, "null");
    case 't':
      return read_word(in, "true");
    case 'f':
      return read_word(in, "false");
    default:
      return read_number(in, value);
  }
}

// A name, its colon, and the space around them.
bool read_name(Bytes& in, std::string_view& name) {
  JsonValue value;
  in.skip_space();
  if (!in.take('"') || !read_string(in, value) || value.escaped) return false;
  name = value.written();
  in.skip_space();
  return in.take(':');
}

}  // namespace

bool JsonObject::read(Bytes line) {
  fields_.clear();
  line.skip_space();
  if (!line.take('{')) return false;
  line.skip_space();
  for (bool more = !line.take('}'); more;) {
    JsonField field;
    if (fields_.size() == MOST_FIELDS || !read_name(line, field.name)) return false;
    line.skip_space();
    if (line.empty()) return false;
    const uint8_t first = *line.at;
    if (first == '[' || first == '{') {
      field.value.begin = line.at;
      if (!skip_value(line)) return false;
      field.value.end = line.at;
      field.value.kind = first == '[' ? JsonKind::LIST : JsonKind::OTHER;
    } else if (!read_scalar(line, field.value)) {
      return false;
    }
    fields_.push_back(field);
    line.skip_space();
    more = line.take(',');
    if (!more && !line.take('}')) return false;
  }
  line.skip_space();
  return line.empty();
}

// A list or an object, all of it.
bool JsonObject::skip_value(Bytes& in) {
  levels_.clear();
  names_.clear();
  do {
    in.skip_space();
    if (in.empty()) return false;
    if (*in.at == '[' || *in.at == '{') {
      if (!open(in)) return false;
    } else {
      JsonValue value;
      if (!read_scalar(in, value) || !after_value(in)) return false;
    }
  } while (!levels_.empty());
  return true;
}

// To where the first value inside is expected; an empty list or object is a value that has ended.
bool JsonObject::open(Bytes& in) {
  const bool object = *in.at++ == '{';
  if (levels_.size() == MOST_DEPTH) return false;
  in.skip_space();
  if (in.take(object ? '}' : ']')) return after_value(in);
  levels_.push_back({object, names_.size()});
  return !object || inner_name(in);
}

// To where the next value is expected, or past the end of the outermost level.
bool JsonObject::after_value(Bytes& in) {
  while (!levels_.empty()) {
    in.skip_space();
    if (in.take(',')) return !levels_.back().object || inner_name(in);
    if (!in.take(levels_.back().object ? '}' : ']')) return false;
    names_.resize(levels_.back().names);
    levels_.pop_back();
  }
  return true;
}

bool JsonObject::inner_name(Bytes& in) {
  std::string_view name;
  if (!read_name(in, name)) return false;
  const size_t first = levels_.back().names;
  if (names_.size() - first == MOST_INNER) return false;
  for (size_t i = first; i < names_.size(); ++i)
    if (names_[i] == name) return false;
  names_.push_back(name);
  return true;
}

JsonValue next_item(Bytes& list) {
  JsonValue value;
  list.skip_space();
  if (list.empty() || *list.at == '[' || *list.at == '{' || !read_scalar(list, value)) return {};
  if (value.kind == JsonKind::NOTHING) value.kind = JsonKind::OTHER;
  list.skip_space();
  return value;
}

bool append_unescaped(std::string_view written, std::string& out) {
  const auto* at = reinterpret_cast<const uint8_t*>(written.data());
  const uint8_t* const end = at + written.size();
  while (at < end) {
    const auto* slash = static_cast<const uint8_t*>(std::memchr(at, '\\', static_cast<size_t>(end - at)));
    if (!slash) slash = end;
    out.append(reinterpret_cast<const char*>(at), static_cast<size_t>(slash - at));
    at = slash;
    if (at == end) break;
    if (end - at < 2) return false;
    if (at[1] != 'u') {
      static constexpr char FROM[] = "\"\\/bfnrt", TO[] = "\"\\/\b\f\n\r\t";
      const void* known = std::memchr(FROM, at[1], sizeof(FROM) - 1);
      if (!known) return false;
      out += TO[static_cast<const char*>(known) - FROM];
      at += 2;
      continue;
    }
    const int32_t unit = code_unit(at + 2, end);
    if (unit < 0 || (unit >= 0xDC00 && unit < 0xE000)) return false;
    at += 6;
    auto code = static_cast<uint32_t>(unit);
    if (unit >= 0xD800 && unit < 0xDC00) {
      const int32_t low = end - at >= 6 && at[0] == '\\' && at[1] == 'u' ? code_unit(at + 2, end) : -1;
      if (low < 0xDC00 || low >= 0xE000) return false;
      code = 0x10000 + ((code - 0xD800) << 10) + (static_cast<uint32_t>(low) - 0xDC00);
      at += 6;
    }
    append_utf8(code, out);
  }
  return true;
}

}  // namespace lw
