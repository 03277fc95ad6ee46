// The .kgw file: one SQLite database (docs/formats.md). Contents are content-addressed and zstd-compressed. Files are
// untrusted: defensive settings, every length and reference checked, blobs verified by hash, sizes capped.
#pragma once

#include <filesystem>

#include "workload/workload.h"

namespace kgate {

constexpr uint32_t kKgwApplicationId = 0x6b677731;  // "kgw1"
constexpr int kKgwVersion = 1;                      // SQLite user_version; readers accept the same

// Written beside `path` and renamed: never half a file. Throws Error{environment} when the folder cannot be written.
void write_kgw(const Workload& workload, const std::filesystem::path& path);

// Throws nothing for bad content: the failure says what is wrong and where.
Result<Workload> read_kgw(const std::filesystem::path& path);

}  // namespace kgate
