// Threads, progress and cancelling. Threads are started per call and joined before it returns: no pool to outlive a
// fork, nothing for ThreadSanitizer to miss. Starting one costs ~30 us, against calls that take milliseconds and up;
// short calls (one document) pass threads = 1 and run inline.
#pragma once
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace lw {

struct Cancelled : std::exception {
  const char* what() const noexcept override { return "cancelled"; }
};

// Shared between a running kernel and the thread that waits for it (see bind.h).
struct Control {
  std::atomic<int64_t> done{0};
  std::atomic<int64_t> total{0};
  std::atomic<bool> cancel{false};
  std::atomic<bool> alone{false};  // the work runs on the thread that should wait for it: nobody else will do anything
  void check() const {
    if (cancel.load(std::memory_order_relaxed)) throw Cancelled();
  }
};

// Run body(task, worker) for every task in [0, tasks), taken in order by `threads` workers. The first exception stops
// the rest and is thrown again here. Which worker runs a task must not change what it computes.
template <typename Body>
void parallel_for(int threads, int64_t tasks, Control& control, Body&& body) {
  if (tasks <= 0) return;
  std::atomic<int64_t> next{0};
  std::atomic<bool> failed{false};
  std::exception_ptr error;
  std::mutex mutex;
  auto work = [&](int worker) {
    try {
      for (int64_t t; !failed.load(std::memory_order_relaxed) && (t = next.fetch_add(1)) < tasks;) {
        control.check();
        body(t, worker);
      }
    } catch (...) {
      std::lock_guard<std::mutex> lock(mutex);
      if (!error) error = std::current_exception();
      failed = true;
    }
  };
  const int workers = static_cast<int>(threads < tasks ? threads : tasks);
  std::vector<std::thread> crew;
  try {
    for (int w = 1; w < workers; ++w) crew.emplace_back(work, w);
  } catch (...) {  // no more threads to be had: go on with those that started
  }
  work(0);
  for (auto& t : crew) t.join();
  if (error) std::rethrow_exception(error);
}

}  // namespace lw
