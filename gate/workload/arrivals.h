// When the requests of a YAML workload arrive, and the sizes that vary from one to the next. All of it is a function of
// the file, its seed and the CSV beside it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "workload/csv.h"
#include "workload/scene.h"

namespace kgate::build {

struct ArrivalPlan {
  Arrivals kind = Arrivals::closed;
  std::vector<uint64_t> times;  // ns since the first, ascending; one a request
  uint64_t period_ns = 0;       // the last + the mean gap
  std::optional<CsvTable> csv;  // of process csv
  std::vector<size_t> rows;     // of the CSV, one a request, in order of arrival
};

// `requests` may be absent only for process csv: then each row is one.
std::optional<ArrivalPlan> read_arrivals(Scene& scene, const yaml::Node* arrivals, const yaml::Node* requests);

// The processes, for their own sake. Rates are per second, above 0.
std::vector<uint64_t> constant_arrivals(size_t count, double rate);
std::vector<uint64_t> poisson_arrivals(size_t count, double rate, uint64_t seed);
// Groups of `burst` at `burst_rate`, with exponential pauses so that the mean rate is `rate`; burst / rate > (burst -
// 1) / burst_rate.
std::vector<uint64_t> bursty_arrivals(size_t count, double rate, size_t burst, double burst_rate, uint64_t seed);

// -ln(1 - u) for u in [0, 1), from basic operations only: libm's last bit differs between machines, and with it
// workload hashes.
double exponential_of(double u);

struct Variation {
  std::string name;
  std::vector<int64_t> values;  // one a request
};
std::vector<Variation> read_variations(Scene& scene, const yaml::Node* vary, const ArrivalPlan& plan);

}  // namespace kgate::build
