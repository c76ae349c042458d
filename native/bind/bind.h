// What the bind_*.cpp files share: arrays in and out, and a wait that lets Python see signals and progress.
// The bindings convert and release the GIL; they compute nothing.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <optional>
#include <system_error>

#include "arrays/buffer.h"
#include "arrays/csr.h"
#include "arrays/growing.h"
#include "arrays/parallel.h"

namespace nb = nanobind;

namespace lw {

template <typename T>
using In = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <typename T>
using In2 = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// A vector handed to numpy without a copy.
template <typename T>
nb::object to_numpy(std::vector<T>&& values, std::initializer_list<size_t> shape) {
  auto* owned = new std::vector<T>(std::move(values));
  nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, T>(owned->data(), shape.size(), shape.begin(), owner));
}
template <typename T>
nb::object to_numpy(std::vector<T>&& values) {
  const size_t n = values.size();
  return to_numpy(std::move(values), {n});
}

// The same of memory that was not cleared first (Buffer) or grew (Growing).
template <template <typename> typename Owner, typename T>
nb::object release_to_numpy(Owner<T>&& values, int64_t size) {
  T* data = values.release();
  nb::capsule owner(data, [](void* p) noexcept { Owner<T>::free(p); });
  return nb::cast(nb::ndarray<nb::numpy, T>(data, {static_cast<size_t>(size)}, owner));
}
template <typename T>
nb::object to_numpy(Buffer<T>&& values) {
  const int64_t size = values.size;
  return release_to_numpy(std::move(values), size);
}
template <typename T>
nb::object to_numpy(Growing<T>&& values) {
  const int64_t size = values.size();
  return release_to_numpy(std::move(values), size);
}

inline Csr csr_view(const In<int64_t>& ptr, const In<int32_t>& idx, const In<float>& val, int64_t cols) {
  if (ptr.shape(0) == 0) throw nb::value_error("row pointers are empty");
  return Csr{static_cast<int64_t>(ptr.shape(0)) - 1, cols, ptr.data(), idx.data(), val.data()};
}

// The five arrays that `Features.parts` hands over.
inline Features features_view(const In<int64_t>& ptr, const In<int32_t>& idx, const In<float>& val, int64_t cols,
                              const In2<float>& dense) {
  Features f;
  f.sparse = csr_view(ptr, idx, val, cols);
  f.dense = dense.data();
  f.dense_cols = static_cast<int64_t>(dense.shape(1));
  if (static_cast<int64_t>(dense.shape(0)) != f.sparse.rows) throw nb::value_error("blocks differ in rows");
  return f;
}

inline bool finalizing() {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing();
#else
  return _Py_IsFinalizing();
#endif
}

// Run `work` on its own thread while this one waits without the GIL, wakes every 50 ms to report progress and to look
// for signals, and cancels the work when one (Ctrl-C) turned into an exception. `progress` is None or f(done, total).
// `idle`, if given, is called with the GIL at each wake and once more at the end.
template <typename Work>
void run_polled(Control& control, nb::handle progress, Work&& work, const std::function<void()>& idle = nullptr) {
  std::mutex mutex;
  std::condition_variable finished;
  bool done = false;
  std::exception_ptr error;
  auto run = [&] {
    try {
      work();
    } catch (...) {
      error = std::current_exception();
    }
    std::lock_guard<std::mutex> lock(mutex);
    done = true;
    finished.notify_all();
  };
  {
    std::thread runner;
    try {
      runner = std::thread(run);
    } catch (const std::system_error&) {  // no thread to be had: work here, unseen by signals
      control.alone = true;
      nb::gil_scoped_release release;
      run();
    }
    bool interrupted = false;
    auto wait = [&](bool to_the_end) {
      nb::gil_scoped_release release;
      std::unique_lock<std::mutex> lock(mutex);
      if (to_the_end)
        finished.wait(lock, [&] { return done; });
      else
        finished.wait_for(lock, std::chrono::milliseconds(50), [&] { return done; });
      if (finalizing()) {  // a daemon thread at exit may not take the GIL again: Python would unwind it by force
        control.cancel = true;
        for (;;) finished.wait(lock);
      }
      return done;
    };
    try {
      while (!wait(false)) {
        if (PyErr_CheckSignals() != 0)
          interrupted = true;
        else if (!progress.is_none())
          progress(control.done.load(), control.total.load());
        if (interrupted) break;
        if (idle) idle();
      }
    } catch (...) {  // a callback raised: stop the work first
      control.cancel = true;
      wait(true);
      runner.join();
      throw;
    }
    if (interrupted) {
      control.cancel = true;
      PyObject *type, *value, *trace;
      PyErr_Fetch(&type, &value, &trace);
      wait(true);
      runner.join();
      PyErr_Restore(type, value, trace);
      throw nb::python_error();
    }
    if (runner.joinable()) runner.join();
  }
  if (error) std::rethrow_exception(error);
  if (idle) idle();
}

}  // namespace lw
