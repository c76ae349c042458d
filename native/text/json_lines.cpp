#include "text/json_lines.h"

#include <algorithm>
#include <cstring>

#include "arrays/parallel.h"
#include "text/utf8.h"

namespace lw {
namespace {

bool same_names(const JsonShape& shape, const std::vector<JsonField>& fields) {
  return std::equal(shape.names.begin(), shape.names.end(), fields.begin(), fields.end(),
                    [](const std::string& name, const JsonField& field) { return field.name == name; });
}

template <typename T>
void copy(const std::vector<T>& from, T* to) {
  if (!from.empty()) std::memcpy(to, from.data(), from.size() * sizeof(T));
}
void copy(const std::string& from, uint8_t* to) {
  if (!from.empty()) std::memcpy(to, from.data(), from.size());
}

bool is_space_only(const uint8_t* at, const uint8_t* end) {
  while (at < end && (*at == ' ' || (*at >= 0x09 && *at <= 0x0D))) ++at;
  return at == end;
}

}  // namespace

// The rows of some of the lines, by one worker. Other workers read the same table of names, so new names wait in
// `fresh_names` until all are done.
class JsonReader {
 public:
  explicit JsonReader(const JsonLines& owner) : owner_(owner) {}

  void run(const uint8_t* data, int64_t begin, int64_t end) {
    const uint8_t *at = data + begin, *const stop = data + end;
    while (at < stop) {
      const void* feed = std::memchr(at, '\n', static_cast<size_t>(stop - at));
      const uint8_t* next = feed ? static_cast<const uint8_t*>(feed) + 1 : stop;
      ++lines;
      if (!is_space_only(at, next)) {
        const Sizes before = sizes();
        const Verdict verdict = row({at, next});
        if (verdict != ROW) {
          restore(before);
          odd.push_back({static_cast<int64_t>(text_ends.size()), lines, at - data, next - data, verdict == FRESH});
        }
      }
      at = next;
    }
  }

  struct Label {
    int32_t number;  // -1: a new name
    size_t begin, size;
    uint64_t hash;
  };

  int64_t lines = 0;
  std::string texts, ids, fresh_names;
  std::vector<int64_t> text_ends, cuts, id_ends;
  std::vector<int32_t> counts, shapes;
  std::vector<Label> labels;
  std::vector<OddLine> odd;

 private:
  enum Verdict { ROW, ODD, FRESH };
  struct Sizes {
    size_t texts, ids, fresh_names, cuts, labels;
  };
  Sizes sizes() const { return {texts.size(), ids.size(), fresh_names.size(), cuts.size(), labels.size()}; }
  void restore(const Sizes& before) {
    texts.resize(before.texts);
    ids.resize(before.ids);
    fresh_names.resize(before.fresh_names);
    cuts.resize(before.cuts);
    labels.resize(before.labels);
  }

  Verdict row(Bytes line) {
    if (line.end - line.at > JsonLines::MOST_BYTES) return ODD;
    if (!is_utf8(line.at, line.end) || !object_.read(line)) return ODD;
    const int32_t number = owner_.shape_of(object_.fields(), likely_);
    if (number < 0) return owner_.shapes_.size() < JsonLines::MOST_SHAPES ? FRESH : ODD;
    likely_ = number;
    const JsonShape& shape = owner_.shapes_[static_cast<size_t>(number)];
    int32_t count = -1;
    if (shape.refused || !take_texts(shape) || !take_labels(shape, count) || !take_id(shape)) return ODD;
    text_ends.push_back(static_cast<int64_t>(texts.size()));
    id_ends.push_back(static_cast<int64_t>(ids.size()));
    counts.push_back(count);
    shapes.push_back(number);
    return ROW;
  }

  const JsonValue& value(int32_t place) const { return object_.fields()[static_cast<size_t>(place)].value; }

  static bool append(const JsonValue& value, std::string& out) {
    if (value.escaped) return append_unescaped(value.written(), out);
    out += value.written();
    return true;
  }

  // The fields, a line feed before each that is not empty but the first.
  bool take_texts(const JsonShape& shape) {
    const size_t begin = texts.size();
    for (size_t field = 0; field < shape.texts.size(); ++field) {
      const JsonValue none{JsonKind::NOTHING};
      const JsonValue& part = shape.texts[field] < 0 ? none : value(shape.texts[field]);
      if (part.kind != JsonKind::STRING && part.kind != JsonKind::NOTHING) return false;
      const bool held = part.kind == JsonKind::STRING && part.begin != part.end;
      if (field) cuts.push_back(static_cast<int64_t>(texts.size()));
      if (held && texts.size() > begin) texts += '\n';
      if (held && !append(part, texts)) return false;
    }
    return true;
  }

  bool take_labels(const JsonShape& shape, int32_t& count) {
    if (shape.labels < 0) return !owner_.need_labels_;
    const JsonValue& given = value(shape.labels);
    if (given.kind == JsonKind::NOTHING) return !owner_.need_labels_;
    count = 1;
    if (given.kind != JsonKind::LIST) return take_label(given);
    Bytes list{given.begin + 1, given.end};
    list.skip_space();
    for (count = 0; !list.take(']'); ++count) {
      if (count == JsonLines::MOST_LABELS || !take_label(next_item(list))) return false;
      list.take(',');
    }
    return true;
  }

  bool take_label(const JsonValue& label) {
    if (label.kind != JsonKind::STRING && label.kind != JsonKind::WHOLE) return false;
    name_.clear();
    if (!append(label, name_) || name_.size() > static_cast<size_t>(owner_.label_bytes_)) return false;
    const auto* bytes = reinterpret_cast<const uint8_t*>(name_.data());
    if (is_blank(bytes, bytes + name_.size())) return false;
    const uint64_t hash = owner_.names_.hash(name_);
    const int32_t number = owner_.names_.find(name_, hash);
    labels.push_back({number, fresh_names.size(), name_.size(), hash});
    if (number < 0) fresh_names += name_;
    return true;
  }

  bool take_id(const JsonShape& shape) {
    if (shape.id < 0) return true;
    const JsonValue& given = value(shape.id);
    return (given.kind == JsonKind::STRING || given.kind == JsonKind::WHOLE) && append(given, ids);
  }

  const JsonLines& owner_;
  JsonObject object_;
  std::string name_;
  int32_t likely_ = 0;
};

JsonLines::JsonLines(int64_t fields, bool need_labels, int64_t label_bytes, uint64_t seed)
    : fields_(fields), need_labels_(need_labels), label_bytes_(label_bytes), names_(seed) {}

bool JsonLines::learn(JsonShape shape) {
  if (shapes_.size() == MOST_SHAPES) return false;
  uint64_t hash = 0;
  for (const std::string& name : shape.names) hash = hash * 31 + names_.hash(name);
  by_hash_.emplace(hash, static_cast<int32_t>(shapes_.size()));
  shapes_.push_back(std::move(shape));
  return true;
}

int32_t JsonLines::shape_of(const std::vector<JsonField>& fields, int32_t likely) const {
  if (static_cast<size_t>(likely) < shapes_.size() && same_names(shapes_[static_cast<size_t>(likely)], fields))
    return likely;
  uint64_t hash = 0;
  for (const JsonField& field : fields) hash = hash * 31 + names_.hash(field.name);
  const auto found = by_hash_.find(hash);
  if (found == by_hash_.end() || !same_names(shapes_[static_cast<size_t>(found->second)], fields)) return -1;
  return found->second;
}

namespace {

// Places that cut [begin, end) into stretches of whole lines.
std::vector<int64_t> stretches(const uint8_t* data, int64_t begin, int64_t end, int threads) {
  constexpr int64_t LEAST = 1 << 16;
  const int64_t size = std::max(LEAST, (end - begin) / (4 * std::max(threads, 1)) + 1);
  std::vector<int64_t> cuts{begin};
  while (end - cuts.back() > size) {
    const int64_t from = cuts.back() + size;
    const void* feed = std::memchr(data + from, '\n', static_cast<size_t>(end - from));
    if (!feed) break;
    cuts.push_back(static_cast<const uint8_t*>(feed) - data + 1);
  }
  if (cuts.back() < end) cuts.push_back(end);
  return cuts;
}

// Labels that stand in a row for the first time, each with its number; how many others there are.
class Numbering {
 public:
  Numbering(NameTable& names, int32_t* out) : names_(names), out_(out) {}

  int32_t row(const JsonReader& part, const JsonReader::Label* labels, int32_t count) {
    ++row_;
    const int32_t* const begin = out_;
    for (int32_t i = 0; i < count; ++i) {
      const JsonReader::Label& label = labels[i];
      int32_t number = label.number;
      if (number < 0)
        number = names_.add(std::string_view(part.fresh_names).substr(label.begin, label.size), label.hash);
      if (static_cast<size_t>(number) >= last_.size()) last_.resize(static_cast<size_t>(names_.size()) + 1024, 0);
      int64_t& last = last_[static_cast<size_t>(number)];
      if (last != row_) *out_++ = number;
      last = row_;
    }
    return static_cast<int32_t>(out_ - begin);
  }

 private:
  NameTable& names_;
  int32_t* out_;
  int64_t row_ = 0;
  std::vector<int64_t> last_;  // the row in which a label was seen last
};

struct Totals {
  int64_t rows = 0, texts = 0, cuts = 0, labels = 0, ids = 0;
};

JsonRows with_room(const Totals& total) {
  JsonRows all;
  all.rows = total.rows;
  all.texts = Buffer<uint8_t>(total.texts);
  all.ids = Buffer<uint8_t>(total.ids);
  all.cuts = Buffer<int64_t>(total.cuts);
  all.labels = Buffer<int32_t>(total.labels);
  for (auto* ends : {&all.text_ends, &all.id_ends}) {
    *ends = Buffer<int64_t>(total.rows + 1);
    (*ends)[0] = 0;
  }
  for (auto* column : {&all.counts, &all.duplicates, &all.shapes}) *column = Buffer<int32_t>(total.rows);
  return all;
}

// All but the labels of one part, behind those before it.
void place(const JsonReader& part, const Totals& before, JsonRows& all) {
  copy(part.texts, all.texts.data() + before.texts);
  copy(part.ids, all.ids.data() + before.ids);
  copy(part.shapes, all.shapes.data() + before.rows);
  for (size_t i = 0; i < part.cuts.size(); ++i)
    all.cuts[before.cuts + static_cast<int64_t>(i)] = before.texts + part.cuts[i];
  for (size_t i = 0; i < part.text_ends.size(); ++i) {
    const int64_t row = before.rows + static_cast<int64_t>(i) + 1;
    all.text_ends[row] = before.texts + part.text_ends[i];
    all.id_ends[row] = before.ids + part.id_ends[i];
  }
  for (OddLine line : part.odd) {
    line.row += before.rows;
    line.line += all.lines;
    all.odd.push_back(line);
  }
  all.lines += part.lines;
}

Totals sizes_of(const JsonReader& part) {
  return {static_cast<int64_t>(part.text_ends.size()), static_cast<int64_t>(part.texts.size()),
          static_cast<int64_t>(part.cuts.size()), static_cast<int64_t>(part.labels.size()),
          static_cast<int64_t>(part.ids.size())};
}

void add(Totals& total, const Totals& more) {
  total.rows += more.rows;
  total.texts += more.texts;
  total.cuts += more.cuts;
  total.labels += more.labels;
  total.ids += more.ids;
}

JsonRows joined(const std::vector<JsonReader>& parts, NameTable& names) {
  Totals total, before;
  for (const JsonReader& part : parts) add(total, sizes_of(part));
  JsonRows all = with_room(total);
  Numbering numbering(names, all.labels.data());
  int64_t labels = 0;
  for (const JsonReader& part : parts) {
    const JsonReader::Label* label = part.labels.data();
    for (size_t i = 0; i < part.counts.size(); ++i) {
      const int64_t row = before.rows + static_cast<int64_t>(i);
      const int32_t count = std::max(part.counts[i], 0), kept = numbering.row(part, label, count);
      all.counts[row] = part.counts[i] < 0 ? -1 : kept;
      all.duplicates[row] = count - kept;
      label += count;
      labels += kept;
    }
    place(part, before, all);
    add(before, sizes_of(part));
  }
  all.labels.size = labels;
  return all;
}

}  // namespace

JsonRows JsonLines::read(const uint8_t* data, int64_t begin, int64_t end, int threads) {
  constexpr int64_t WORTH = 1 << 18;  // bytes that are worth a thread
  threads = static_cast<int>(std::clamp<int64_t>((end - begin) / WORTH, 1, std::max(threads, 1)));
  const std::vector<int64_t> cuts = stretches(data, begin, end, threads);
  std::vector<JsonReader> parts(cuts.size() - 1, JsonReader(*this));
  Control control;
  parallel_for(threads, static_cast<int64_t>(parts.size()), control, [&](int64_t i, int) {
    const auto part = static_cast<size_t>(i);
    parts[part].run(data, cuts[part], cuts[part + 1]);
  });
  JsonRows rows = joined(parts, names_);
  rows.end = end;
  return rows;
}

}  // namespace lw
