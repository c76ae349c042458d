// Lines of JSON objects to rows of texts, labels and ids, many lines at once. Only plain lines become rows; all others
// are named, to be read by the caller in their place: one by one, with a message for what is wrong.
#pragma once
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "arrays/buffer.h"
#include "text/json.h"
#include "text/name_table.h"

namespace lw {

// Objects that have the same names in the same order, and which of these holds what; -1: none does.
struct JsonShape {
  std::vector<std::string> names;
  std::vector<int32_t> texts;  // of each field of the text
  int32_t labels = -1;
  int32_t id = -1;
  bool refused = false;  // such objects are no rows
};

struct OddLine {
  int64_t row;         // rows before it
  int64_t line;        // counted from 1
  int64_t begin, end;  // its bytes
  bool fresh;          // its shape is not known yet
};

// The rows of consecutive lines. Row r has the bytes text_ends[r] to text_ends[r + 1] of the texts, and so on.
struct JsonRows {
  int64_t rows = 0, lines = 0, end = 0;  // end: the first byte that was not read
  Buffer<uint8_t> texts;
  Buffer<int64_t> text_ends;   // (rows + 1)
  Buffer<int64_t> cuts;        // (rows · (fields - 1)), where the second and later fields begin
  Buffer<int32_t> counts;      // (rows) labels, each once; -1: the row has no field of them, or null
  Buffer<int32_t> duplicates;  // (rows) labels that stood there before
  Buffer<int32_t> labels;      // numbers in the table of names
  Buffer<int32_t> shapes;      // (rows)
  Buffer<uint8_t> ids;
  Buffer<int64_t> id_ends;  // (rows + 1)
  std::vector<OddLine> odd;
};

class JsonLines {
 public:
  static constexpr size_t MOST_SHAPES = 2048;
  static constexpr int64_t MOST_BYTES = 1 << 20;   // of a plain line
  static constexpr int32_t MOST_LABELS = 1 << 16;  // of a plain line

  // `fields` of the text; rows without labels are odd where they are needed.
  JsonLines(int64_t fields, bool need_labels, int64_t label_bytes, uint64_t seed);

  // Lines of this shape are understood from now on. False: there are too many shapes.
  bool learn(JsonShape shape);

  // The lines of data[begin, end), of which the last need not have an end.
  JsonRows read(const uint8_t* data, int64_t begin, int64_t end, int threads);

  int64_t fields() const { return fields_; }
  const NameTable& names() const { return names_; }

 private:
  friend class JsonReader;
  int32_t shape_of(const std::vector<JsonField>& fields, int32_t likely) const;  // -1: unknown

  int64_t fields_;
  bool need_labels_;
  int64_t label_bytes_;
  NameTable names_;
  std::vector<JsonShape> shapes_;
  std::unordered_map<uint64_t, int32_t> by_hash_;
};

}  // namespace lw
