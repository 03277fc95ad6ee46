// Read-only SQL from people and scripts on a trace connection.
#pragma once

#include "trace/database.h"
#include "trace/store.h"

namespace kgate::trace {

// One statement. Refused: whatever writes, attaches, begins a transaction or sets a pragma. Failure: SQLite's message,
// its place in the text and, for a name that does not exist, the one that was probably meant.
Result<std::monostate> run_query(const Database& database, const std::string& sql, const TraceStore::RowCallback& row);

}  // namespace kgate::trace
