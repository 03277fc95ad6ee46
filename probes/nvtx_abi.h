// The part of NVTX 3's interface to tools that the recorder speaks, declared here so that the build needs no toolkit;
// nvtx_abi_check.cpp compares it with the toolkit's headers where those are installed.
//
// An application's copy of NVTX loads the library that NVTX_INJECTION64_PATH names and calls its
// InitializeInjectionNvtx2 with a function that gives tables. A table is an array of pointers to function pointers,
// which the tool overwrites.
#pragma once

#include <cstddef>
#include <cstdint>

// clang-format off
#define KGATE_NVTX_CORE(X) \
  X(RangeStartEx, 4) X(RangeStartA, 5) X(RangeStartW, 6) X(RangeEnd, 7) X(RangePushEx, 8) X(RangePushA, 9) \
  X(RangePushW, 10) X(RangePop, 11)
#define KGATE_NVTX_CORE2(X) \
  X(DomainRangeStartEx, 2) X(DomainRangeEnd, 3) X(DomainRangePushEx, 4) X(DomainRangePop, 5) \
  X(DomainRegisterStringA, 10) X(DomainRegisterStringW, 11) X(DomainCreateA, 12) X(DomainCreateW, 13)
// clang-format on

namespace kgate::nvtx {

#define KGATE_ID(name, value) k##name = value,
enum CoreId : unsigned { KGATE_NVTX_CORE(KGATE_ID) };
enum Core2Id : unsigned { KGATE_NVTX_CORE2(KGATE_ID) };
#undef KGATE_ID

constexpr int kModuleCore = 1, kModuleCore2 = 5;  // NVTX_CB_MODULE_*
constexpr uint32_t kTableCallbacks = 1;           // NVTX_ETID_CALLBACKS

using AnyFunction = void (*)();

struct CallbacksTable {
  size_t struct_size;
  int (*get_functions)(int module, AnyFunction*** table, unsigned* size);
};

using GetExportTable = const void* (*)(uint32_t id);
using RangeId = uint64_t;
using Domain = void*;
using String = void*;

enum MessageType : int32_t { kUnknown = 0, kAscii = 1, kUnicode = 2, kRegistered = 3 };

struct EventAttributes {
  uint16_t version, size;
  uint32_t category;
  int32_t color_type;
  uint32_t color;
  int32_t payload_type, reserved0;
  uint64_t payload;
  int32_t message_type;
  union {
    const char* ascii;
    const wchar_t* unicode;
    String registered;
  } message;
};

}  // namespace kgate::nvtx
