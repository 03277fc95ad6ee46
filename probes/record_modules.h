// Code: images as the application handed them over, the machine code that the driver made of them, and the functions
// that launches name. An image lies in STEM.blobs once, however often it is loaded.
//
// A runtime hands over every fat binary of its libraries, gigabytes of them, of which few are used. Those lie in the
// libraries' own data for as long as they are loaded, so that their bytes are taken when a kernel of them first runs.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "probes/record_driver.h"
#include "probes/record_thread.h"

namespace kgate::record {

// What a launch of it needs. Lives as long as the recorder.
struct Function {
  uint64_t handle = 0, module = 0, library = 0;
  bool is_kernel = false;                             // a CUkernel
  bool params_known = false;                          // else the driver does not say
  std::vector<std::pair<uint32_t, uint32_t>> params;  // offset, size
  uint32_t param_bytes = 0;
  std::string name;
};

// How many bytes an image has; `bytes` points at the image itself, which may not be where `code` points to.
struct ImageExtent {
  const void* bytes = nullptr;
  size_t size = 0;  // 0: a form that is not known
};
ImageExtent image_extent(const void* code);

class Modules {
 public:
  Modules(Output& output, Threads& threads, const DriverCalls& driver, std::atomic<uint64_t>& sequence)
      : output_(output), threads_(threads), driver_(driver), sequence_(sequence) {}

  // After a successful load. One of `module` and `library` is 0. False: the image has a form that is not known.
  bool loaded(Thread& thread, uint64_t module, uint64_t library, const void* code);
  bool loaded_file(Thread& thread, uint64_t module, uint64_t library, const char* path);
  void compiled(Thread& thread, const char* cubin, size_t size);  // MODULE_LOADED
  void unloading(uint64_t module, uint64_t library);
  void is_kernel(uint64_t handle);  // a CUkernel

  // Described once, written before the launch's own record. `symbol` helps where the driver does not tell names.
  const Function& function(Thread& thread, uint64_t handle, const char* symbol);

 private:
  struct Key {
    uint64_t a = 0, b = 0, size = 0;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const { return key.a ^ key.size; }
  };
  static Key key_of(const void* bytes, size_t size);
  recording::BlobRef keep(const void* bytes, size_t size);
  void put(Thread& thread, uint64_t module, uint64_t library, uint64_t load, recording::BlobRef image,
           recording::BlobRef cubin);
  void put(Thread& thread, const Function& function);
  Function describe(Thread& thread, uint64_t handle, const char* symbol);
  bool read_params(Function& function, bool as_kernel) const;
  void take_deferred(Thread& thread, uint64_t module, uint64_t library);

  Output& output_;
  Threads& threads_;
  const DriverCalls& driver_;
  std::atomic<uint64_t>& sequence_;
  std::atomic<uint64_t> generation_{1};  // of handles: what a thread remembers of an older one is void
  std::mutex mutex_;                     // of what follows; not held over a call to the driver
  std::deque<Function> functions_;
  std::unordered_map<uint64_t, const Function*> by_handle_;
  std::unordered_set<uint64_t> kernels_;
  std::unordered_map<Key, recording::BlobRef, KeyHash> images_;
  struct Deferred {
    ImageExtent image;
    uint64_t load = 0;
  };
  std::unordered_map<uint64_t, Deferred> deferred_;  // by module or library
};

}  // namespace kgate::record
