// A device of type `mps` over host memory: its clock, allocator, guard and generator.
//
// Nothing here models Metal. It is there to test what reprobundle says about devices.
#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/extension.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <thread>

namespace standin {

using at::Device;
using at::DeviceIndex;
using at::DeviceType;
using c10::Stream;
using Clock = std::chrono::steady_clock;

inline Device device() { return Device(DeviceType::MPS, 0); }

// The device finishes each operator a fixed time after the one before it. Results are
// there at once; only who waits for the device sleeps. So the true time of a region is
// known exactly, and an unsynchronised clock is provably wrong.
class DeviceClock {
 public:
  void set_ns_per_op(int64_t ns) { ns_per_op_ = ns; }

  void enqueue() {
    if (ns_per_op_ == 0) return;
    std::lock_guard<std::mutex> guard(mutex_);
    busy_until_ = std::max(busy_until_, Clock::now());
    busy_until_ += std::chrono::nanoseconds(ns_per_op_);
  }

  void wait() { std::this_thread::sleep_until(busy_until()); }

  Clock::time_point busy_until() {
    std::lock_guard<std::mutex> guard(mutex_);
    return busy_until_;
  }

  // When the work that is queued now will be done, in milliseconds of the host clock.
  double done_ms() {
    auto done = std::max(busy_until(), Clock::now());
    return std::chrono::duration<double, std::milli>(done.time_since_epoch()).count();
  }

 private:
  std::mutex mutex_;
  Clock::time_point busy_until_ = Clock::now();
  int64_t ns_per_op_ = 0;
};

// Like all state here it is never destroyed: threads of the process use it to the end.
inline DeviceClock& device_clock() {
  static auto& clock = *new DeviceClock();
  return clock;
}

// Memory counters in bytes, with the meaning of ATen/mps/MPSAllocator.h.
struct MemoryCounters {
  std::mutex mutex;
  size_t current = 0;
  size_t peak = 0;
  size_t driver = 0;
  size_t cached = 0;
  size_t recommended = size_t{12} << 30;
  double fraction = 1.7;
};

inline MemoryCounters& memory() {
  static auto& counters = *new MemoryCounters();
  return counters;
}

inline double mebibytes(double bytes) { return bytes / (1 << 20); }

class Allocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t size) override {
    if (size == 0) return c10::DataPtr(nullptr, nullptr, &nothing, device());
    size_t rounded = (size + 255) / 256 * 256;
    take(rounded);
    void* pointer = nullptr;
    TORCH_CHECK(posix_memalign(&pointer, 64, rounded) == 0, "host memory is exhausted");
    return c10::DataPtr(pointer, new Block{pointer, rounded}, &release, device());
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void* to, const void* from, size_t size) const override {
    std::memcpy(to, from, size);
  }

 private:
  struct Block {
    void* pointer;
    size_t size;
  };

  static void nothing(void*) {}

  static void take(size_t size) {
    auto& counters = memory();
    std::lock_guard<std::mutex> guard(counters.mutex);
    double limit = counters.fraction * double(counters.recommended);
    // The text of MPSAllocator.mm, which reprobundle recognises.
    TORCH_CHECK(
        counters.fraction == 0 || double(counters.current + size) <= limit,
        "MPS backend out of memory (MPS allocated: ", mebibytes(counters.current),
        " MiB, other allocations: 0 bytes, max allowed: ", mebibytes(limit),
        " MiB). Tried to allocate ", mebibytes(size),
        " MiB on private pool. Use PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 to disable "
        "upper limit for memory allocations (may cause system failure).");
    counters.current += size;
    counters.peak = std::max(counters.peak, counters.current);
    size_t reused = std::min(counters.cached, size);
    counters.cached -= reused;
    counters.driver += size - reused;
  }

  static void release(void* context) {
    auto* block = static_cast<Block*>(context);
    auto& counters = memory();
    {
      std::lock_guard<std::mutex> guard(counters.mutex);
      counters.current -= block->size;
      counters.cached += block->size;
    }
    std::free(block->pointer);
    delete block;
  }
};

inline Allocator& allocator() {
  static auto& instance = *new Allocator();
  return instance;
}

struct Guard final : public c10::impl::DeviceGuardImplInterface {
  DeviceType type() const override { return DeviceType::MPS; }
  Device exchangeDevice(Device) const override { return device(); }
  Device getDevice() const override { return device(); }
  void setDevice(Device) const override {}
  void uncheckedSetDevice(Device) const noexcept override {}
  Stream getStream(Device) const noexcept override { return stream(); }
  Stream getNewStream(Device, int = 0) const override { return stream(); }
  Stream getDefaultStream(Device) const override { return stream(); }
  Stream exchangeStream(Stream) const noexcept override { return stream(); }
  DeviceIndex deviceCount() const noexcept override { return 1; }
  bool queryStream(const Stream&) const override {
    return Clock::now() >= device_clock().busy_until();
  }
  void synchronizeStream(const Stream&) const override { device_clock().wait(); }
  void synchronizeDevice(const DeviceIndex) const override { device_clock().wait(); }
  void record(void** event, const Stream&, const DeviceIndex,
              const c10::EventFlag) const override {
    if (*event == nullptr) *event = new double(0);
    *static_cast<double*>(*event) = device_clock().done_ms();
  }
  void block(void*, const Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  void synchronizeEvent(void*) const override { device_clock().wait(); }
  void destroyEvent(void* event, const DeviceIndex) const noexcept override {
    delete static_cast<double*>(event);
  }

 private:
  static Stream stream() { return Stream(Stream::DEFAULT, device()); }
};

// The CPU's engine under an mps device: one seed gives the numbers of the CPU.
struct Generator final : public c10::GeneratorImpl {
  at::Generator cpu = at::detail::createCPUGenerator();

  // Qualified: the base class has a device() of its own, which is not set yet here.
  Generator()
      : c10::GeneratorImpl(standin::device(),
                           c10::DispatchKeySet(c10::DispatchKey::MPS)) {}
  void set_current_seed(uint64_t seed) override { cpu.set_current_seed(seed); }
  void set_offset(uint64_t) override {}
  uint64_t get_offset() const override { return 0; }
  uint64_t current_seed() const override { return cpu.current_seed(); }
  uint64_t seed() override { return cpu.seed(); }
  void set_state(const c10::TensorImpl& state) override {
    cpu.unsafeGetGeneratorImpl()->set_state(state);
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    return cpu.unsafeGetGeneratorImpl()->get_state();
  }
  Generator* clone_impl() const override {
    auto* copy = new Generator();
    copy->cpu = cpu.clone();
    return copy;
  }
};

inline at::Generator& default_generator() {
  static auto& generator = *new at::Generator(at::make_generator<Generator>());
  return generator;
}

// The CPU generator inside one of ours.
inline at::Generator cpu_generator(const at::Generator& generator) {
  return static_cast<Generator*>(generator.unsafeGetGeneratorImpl())->cpu;
}

}  // namespace standin
