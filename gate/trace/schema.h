// The schema of a trace file. docs/formats.md lists its columns for people.
#pragma once

#include "support/error.h"
#include "trace/database.h"

namespace kgate::trace {

inline constexpr int kApplicationId = 0x6b677472;  // "kgtr"
inline constexpr int kSchemaVersion = 2;           // readers accept this one

void create_schema(Database& database);
void create_indexes(
    Database& database);  // when all rows are there: keeping them up to date costs more than sorting once
// Failure: not a trace, another version, or a run that never ended.
Result<std::monostate> check_schema(const Database& database, const std::string& path);

}  // namespace kgate::trace
