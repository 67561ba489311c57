// What torch.mps asks its backend for: ATen/detail/MPSHooksInterface.h.
#pragma once

#include <ATen/detail/MPSHooksInterface.h>

#include <map>

#include "device.h"

namespace standin {

inline int64_t& synchronizations() {
  static int64_t count = 0;
  return count;
}

}  // namespace standin

namespace at {

struct MPSHooks : public MPSHooksInterface {
  MPSHooks() = default;
  explicit MPSHooks(MPSHooksArgs) {}
  void init() const override {}
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasMPS() const override { return true; }
  bool isOnMacOSorNewer(unsigned, unsigned) const override { return true; }
  bool hasPrimaryContext(DeviceIndex) const override { return true; }
  DeviceIndex deviceCount() const override { return 1; }
  DeviceIndex getCurrentDevice() const override { return 0; }
  void setCurrentDevice(DeviceIndex) const override {}
  DeviceIndex exchangeDevice(DeviceIndex) const override { return 0; }
  DeviceIndex maybeExchangeDevice(DeviceIndex) const override { return 0; }
  const Generator& getDefaultGenerator(DeviceIndex = -1) const override {
    return standin::default_generator();
  }
  Generator getNewGenerator(DeviceIndex = -1) const override {
    return at::make_generator<standin::Generator>();
  }
  Allocator* getMPSDeviceAllocator() const override { return &standin::allocator(); }
  Allocator* getPinnedMemoryAllocator() const override { return c10::GetCPUAllocator(); }
  bool isPinnedPtr(const void*) const override { return false; }
  void deviceSynchronize() const override {
    standin::synchronizations()++;
    standin::device_clock().wait();
  }
  void commitStream() const override {}
  void emptyCache() const override {
    auto& counters = standin::memory();
    std::lock_guard<std::mutex> guard(counters.mutex);
    counters.driver -= counters.cached;
    counters.cached = 0;
  }
  size_t getCurrentAllocatedMemory() const override { return standin::memory().current; }
  size_t getDriverAllocatedMemory() const override { return standin::memory().driver; }
  size_t getRecommendedMaxMemory() const override {
    return standin::memory().recommended;
  }
  size_t getMaxBufferLength() const override { return standin::memory().recommended; }
  void setMemoryFraction(double ratio) const override {
    standin::memory().fraction = ratio;
  }
  void profilerStartTrace(const std::string&, bool) const override {}
  void profilerStopTrace() const override {}
  uint32_t acquireEvent(bool) const override {
    events()[++last_event()] = 0;
    return last_event();
  }
  void releaseEvent(uint32_t event) const override { events().erase(event); }
  void recordEvent(uint32_t event) const override {
    events()[event] = standin::device_clock().done_ms();
  }
  void waitForEvent(uint32_t) const override {}
  void synchronizeEvent(uint32_t) const override { standin::device_clock().wait(); }
  bool queryEvent(uint32_t) const override {
    return standin::Clock::now() >= standin::device_clock().busy_until();
  }
  double elapsedTimeOfEvents(uint32_t start, uint32_t end) const override {
    standin::device_clock().wait();
    return events()[end] - events()[start];
  }

 private:
  static std::map<uint32_t, double>& events() {
    static auto& all = *new std::map<uint32_t, double>();
    return all;
  }
  static uint32_t& last_event() {
    static uint32_t number = 0;
    return number;
  }
};

REGISTER_MPS_HOOKS(MPSHooks);

}  // namespace at
