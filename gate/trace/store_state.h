// What store.cpp and rows.cpp share.
#pragma once

#include <optional>

#include "trace/database.h"
#include "trace/ingest.h"
#include "trace/store.h"

namespace kgate {

struct TraceStore::State {
  std::filesystem::path path, partial;
  std::optional<trace::Database> database;
  ArmKernels plan;
  std::optional<trace::Ingest> ingest;  // while the run is being written
};

}  // namespace kgate
