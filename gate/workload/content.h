// Bytes of a buffer's first content. Deterministic across machines: element i of a tensor is a function of (seed, i).
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "workload/workload.h"

namespace kgate {

// Fills `out` (the whole buffer). Not of ContentChunks: those need their file.
void materialise(const Content& content, std::span<std::byte> out);

// As well of ContentChunks, which are read from `source`, a .kgw, and verified. Throws Error{bad_input} when it lacks
// one or has it damaged.
void materialise(const Content& content, std::span<std::byte> out, const std::filesystem::path& source);

}  // namespace kgate
