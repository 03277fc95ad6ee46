// How a test drives fake_cupti.cpp.
#pragma once

#include <cstddef>

#include "gpu/cupti_abi.h"

extern "C" {
const char* fake_cupti_log();                           // the calls so far, in order
void fake_cupti_emit(const void* record, size_t size);  // as if the device had done something
void fake_cupti_hold(const void* record, size_t size);  // given up only by a forced flush
void fake_cupti_set_dropped(size_t count);
int fake_cupti_call(uint32_t id, const void* data);  // a resource callback; 0: nobody has subscribed
}
