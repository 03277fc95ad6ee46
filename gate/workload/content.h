// Bytes of a buffer's first content. Deterministic across machines: element i of a tensor is a function of (seed, i).
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "workload/workload.h"

namespace kgate {

// Fills `out` (the whole buffer).
void materialise(const Content& content, std::span<std::byte> out);
void materialise(const Content& content, std::span<std::byte> out, const std::filesystem::path& source);

}  // namespace kgate
