// A value that could not be computed (NaN) counts as infinite, so that it is never "ok".
#include "trace/health.h"

#include <cmath>
#include <limits>

namespace kgate::trace {

namespace {
double known(double value) { return std::isnan(value) ? std::numeric_limits<double>::infinity() : value; }
}  // namespace

HealthRow& HealthTable::entry(const HealthRow& row) {
  auto [at, added] = rows_.try_emplace(row.name, HealthRow{row.name, 0, row.limit, {}});
  if (!row.note.empty()) at->second.note = row.note;
  return at->second;
}

void HealthTable::add(const HealthRow& row) { entry(row).value += known(row.value); }

void HealthTable::raise(const HealthRow& row) {
  double& value = entry(row).value;
  value = std::fmax(value, known(row.value));
}

void HealthTable::set(const HealthRow& row) { entry(row).value = known(row.value); }

std::vector<HealthRow> HealthTable::rows() const {
  std::vector<HealthRow> all;
  for (const auto& [name, row] : rows_) all.push_back(row);
  return all;
}

}  // namespace kgate::trace
