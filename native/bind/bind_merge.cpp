// Merging the rankings of several models.
#include <nanobind/stl/tuple.h>

#include <algorithm>

#include "bind/bind.h"
#include "linear/merge.h"

namespace lw {

void bind_merge(nb::module_& m) {
  m.def(
      "merge",
      [](std::vector<In2<int32_t>> ids, std::vector<In2<float>> scores, std::vector<float> weights,
         std::vector<bool> margins, int average, int64_t length, int64_t keep, int threads, nb::object progress) {
        if (ids.empty() || scores.size() != ids.size() || weights.size() != ids.size() || margins.size() != ids.size())
          throw nb::value_error("each member needs ids, scores, a weight and a kind of scores");
        const size_t n = ids[0].shape(0);
        std::vector<Ranking> members;
        int64_t work = 0;
        for (size_t i = 0; i < ids.size(); ++i) {
          if (ids[i].shape(0) != n || scores[i].shape(0) != n || ids[i].shape(1) != scores[i].shape(1))
            throw nb::value_error("members differ in rows, or ids and scores in shape");
          const int64_t width = static_cast<int64_t>(ids[i].shape(1));
          members.push_back({ids[i].data(), scores[i].data(), width, weights[i], margins[i]});
          if (width > length) throw nb::value_error("a member's list is longer than the longest");
          work += static_cast<int64_t>(n) * width;
        }
        Control control;
        Found found;
        const auto merged = [&](int workers) {
          found =
              merge(members, static_cast<int64_t>(n), static_cast<Average>(average), length, keep, workers, control);
        };
        if (work <= 1 << 14) {  // a few documents: inline, no thread is woken
          nb::gil_scoped_release release;
          merged(1);
        } else {
          run_polled(control, progress, [&] { merged(threads); });
        }
        return nb::make_tuple(to_numpy(std::move(found.ids), {n, static_cast<size_t>(keep)}),
                              to_numpy(std::move(found.scores), {n, static_cast<size_t>(keep)}));
      },
      nb::arg("ids"), nb::arg("scores"), nb::arg("weights"), nb::arg("margins"), nb::arg("average"), nb::arg("length"),
      nb::arg("keep"), nb::arg("threads"), nb::arg("progress").none(),
      "One ranking from those of several models: (ids (n, keep), scores (n, keep)).");
}

}  // namespace lw
