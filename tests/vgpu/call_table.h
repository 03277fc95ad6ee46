// Every driver call of the virtual GPU whose parameters CUPTI shows: how to make it, and what its callback must show.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gpu/cupti_callback_abi.h"
#include "samples.h"

namespace kgate {

using namespace gpu;

// What calls work on. One a row: a call may change all of it.
struct CallBench {
  explicit CallBench(Driver& driver)
      : driver(driver), add(driver, 64), stream(driver.create_stream()), event(driver.create_event()) {
    driver.record_event(event, stream);
  }
  template <typename... Args>
  CUresult call(const char* name, Args... args) {
    auto function = reinterpret_cast<CUresult (*)(Args...)>(driver.symbol(name));
    if (function == nullptr) return CUDA_ERROR_NOT_FOUND;
    return function(args...);
  }

  Driver& driver;
  VectorAdd add;
  CUstream stream;
  CUevent event;
  CUdeviceptr a = add.params.a, b = add.params.b, made = 0;
  char host[256] = {};
  void* page = nullptr;
  void* handle = nullptr;  // whatever the call makes
  void* prepared = nullptr;
  uint64_t number = 0;
  size_t size = 0;
};

struct CallRow {
  std::string_view name;
  uint32_t cbid;
  CUresult (*call)(CallBench&);
  bool (*params)(CallBench&, const CUpti_CallbackData&);  // null: the call has none
  void (*prepare)(CallBench&) = nullptr;
  void (*restore)(CallBench&) = nullptr;
  CUresult expected = CUDA_SUCCESS;
};

const std::vector<CallRow>& call_table();

}  // namespace kgate
