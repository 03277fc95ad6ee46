// Every entry point of the CUDA driver library that gives the device work, waits for it, or changes what memory and
// code it has; one table for the probes, doctor and the tests. All roads meet here: a statically linked runtime has no
// symbols to probe, but it calls these.
//
// Old names (cuMemAlloc) and per-thread-stream twins (_ptds, _ptsz) are functions of their own in the driver. Names are
// those of CUDA 13.0's libcuda; what a driver does not export is not probed. tests/probes compares the table with the
// toolkit's stub in both directions.
#pragma once

#include <span>
#include <string_view>

#include "trace/probes.h"

namespace kgate::trace {

struct EntryPoint {
  const char* name;
  ProbeSymbol::Use use;
};

std::span<const EntryPoint> entry_points();  // no name twice

const EntryPoint* find_entry_point(std::string_view name);  // null: not in the table

}  // namespace kgate::trace
