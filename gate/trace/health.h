// The findings about a trace itself, one row a name, gathered over the blocks of a run.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "trace/store.h"

namespace kgate::trace {

class HealthTable {
 public:
  void add(const HealthRow& row);    // values add up
  void raise(const HealthRow& row);  // the largest value stays
  void set(const HealthRow& row);    // the last value stays: for what is computed over the whole run
  std::vector<HealthRow> rows() const;

 private:
  // In all three the first limit stays and the last note that says something.
  HealthRow& entry(const HealthRow& row);
  std::map<std::string, HealthRow> rows_;
};

}  // namespace kgate::trace
