// The first half of reading a .kgw: is this file one at all? Header, schema to the letter, pages.
#pragma once

#include <filesystem>

#include "workload/sqlite_reader.h"

namespace kgate::kgw {

struct OpenedKgw {
  SqliteReader reader;
  uint64_t file_bytes = 0;
};

// Header and schema. Failures say where inside the file.
Result<OpenedKgw> open_kgw(const std::filesystem::path& path);

// SQLite's own check of every table but the bulky ones.
std::optional<Failure> check_pages(const SqliteReader& reader);

// For people: "PATH" as where, what lies inside the file in front of the reason.
Failure in_file(const Failure& failure, const std::filesystem::path& path);

}  // namespace kgate::kgw
