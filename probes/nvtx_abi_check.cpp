// Compares nvtx_abi.h with the toolkit's headers at compile time. Without a toolkit this file is empty.
#if KGATE_HAVE_CUDA_HEADERS && __has_include(<nvtx3/nvToolsExt.h>)

#include <nvtx3/nvToolsExt.h>

#include "probes/nvtx_abi.h"

namespace ours = kgate::nvtx;

#define SAME_CORE(name, value) static_assert(unsigned{ours::k##name} == unsigned{NVTX_CBID_CORE_##name});
KGATE_NVTX_CORE(SAME_CORE)
#define SAME_CORE2(name, value) static_assert(unsigned{ours::k##name} == unsigned{NVTX_CBID_CORE2_##name});
KGATE_NVTX_CORE2(SAME_CORE2)

static_assert(ours::kModuleCore == NVTX_CB_MODULE_CORE && ours::kModuleCore2 == NVTX_CB_MODULE_CORE2);
static_assert(ours::kTableCallbacks == NVTX_ETID_CALLBACKS);
static_assert(sizeof(ours::CallbacksTable) == sizeof(NvtxExportTableCallbacks));
static_assert(offsetof(ours::CallbacksTable, get_functions) ==
              offsetof(NvtxExportTableCallbacks, GetModuleFunctionTable));
static_assert(sizeof(ours::RangeId) == sizeof(nvtxRangeId_t) && sizeof(ours::String) == sizeof(nvtxStringHandle_t));
static_assert(int{ours::kAscii} == NVTX_MESSAGE_TYPE_ASCII && int{ours::kUnicode} == NVTX_MESSAGE_TYPE_UNICODE);
static_assert(int{ours::kRegistered} == NVTX_MESSAGE_TYPE_REGISTERED);

#define SAME_OFFSET(field, theirs) \
  static_assert(offsetof(ours::EventAttributes, field) == offsetof(nvtxEventAttributes_t, theirs));
static_assert(sizeof(ours::EventAttributes) == sizeof(nvtxEventAttributes_t));
SAME_OFFSET(version, version)
SAME_OFFSET(size, size)
SAME_OFFSET(category, category)
SAME_OFFSET(color_type, colorType)
SAME_OFFSET(color, color)
SAME_OFFSET(payload_type, payloadType)
SAME_OFFSET(payload, payload)
SAME_OFFSET(message_type, messageType)
SAME_OFFSET(message, message)

#endif
