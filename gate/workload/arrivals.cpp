#include "workload/arrivals.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "support/fd.h"
#include "support/text.h"
#include "workload/limits.h"
#include "workload/random.h"

namespace kgate::build {

using namespace cap;

using yaml::Fields;
using yaml::Node;

double exponential_of(double u) {
  // 1 - u = m 2^e with m in [sqrt(1/2), sqrt(2)); ln m = 2 atanh(s), s = (m - 1) / (m + 1), |s| < 0.1716.
  int e = 0;
  double m = std::frexp(1.0 - u, &e);
  if (m < 0.70710678118654752) m *= 2, --e;
  const double s = (m - 1) / (m + 1), square = s * s;
  double series = 0;
  for (int k = 21; k >= 1; k -= 2) series = series * square + 1.0 / k;
  return -(e * 0.69314718055994531 + 2 * s * series);
}

namespace {

constexpr double kSecond = 1e9;

uint64_t whole_ns(double ns) { return static_cast<uint64_t>(std::min(std::floor(ns + 0.5), 0x1p62)); }

}  // namespace

std::vector<uint64_t> constant_arrivals(size_t count, double rate) {
  std::vector<uint64_t> times(count);
  for (size_t i = 0; i < count; ++i) times[i] = whole_ns(static_cast<double>(i) * (kSecond / rate));
  return times;
}

std::vector<uint64_t> poisson_arrivals(size_t count, double rate, uint64_t seed) {
  return bursty_arrivals(count, rate, 1, rate, seed);
}

std::vector<uint64_t> bursty_arrivals(size_t count, double rate, size_t burst, double burst_rate, uint64_t seed) {
  const double step = kSecond / burst_rate;
  const double pause = kSecond * static_cast<double>(burst) / rate - static_cast<double>(burst - 1) * step;
  std::vector<uint64_t> times(count);
  double now = 0;
  for (size_t i = 0; i < count; ++i) {
    if (i > 0) now += i % burst == 0 ? pause * exponential_of(random_unit(seed, i)) : step;
    times[i] = whole_ns(now);
  }
  return times;
}

namespace {

// The CSV's rows in order of time, the first at 0.
void plan_csv(Scene& scene, const Node& node, Fields& fields, std::optional<int64_t> wanted, ArrivalPlan& plan) {
  const Node *file = fields.require("file"), *column = fields.require("column"), *unit_node = fields.find("time_unit");
  const double speed = fields.number("speed").value_or(1);
  const int64_t skip = fields.integer("skip").value_or(0);
  if (speed <= 0) scene.problems.add(node, "speed must be above 0");
  TimeUnit unit = TimeUnit::automatic;
  if (unit_node) {
    const std::vector<std::pair<std::string, TimeUnit>> units = {
        {"s", TimeUnit::s}, {"ms", TimeUnit::ms}, {"us", TimeUnit::us}, {"ns", TimeUnit::ns}};
    const auto found =
        std::find_if(units.begin(), units.end(), [&](const auto& u) { return u.first == unit_node->text; });
    if (found == units.end()) return scene.problems.add(*unit_node, "is not a unit of time", "known: s, ms, us, ns");
    unit = found->second;
  }
  const auto name = file ? yaml::as_string(*file, scene.problems, "a CSV file") : std::nullopt;
  if (!name || !column) return;
  const std::filesystem::path path = scene.problems.file().parent_path() / *name;
  const auto complain = [&](const Node& at, const Failure& failure) {
    scene.problems.add(at, fmt::format("{}: {}: {}", *name, failure.where, failure.what), failure.hint);
  };
  const auto text = read_file(path, size_t{256} << 20);
  if (!text) return scene.problems.add(*file, fmt::format("{}: {}", *name, text.failure().what));
  auto table = CsvTable::parse(*text);
  if (!table) return complain(*file, table.failure());
  const auto index = table->column(column->text);
  if (!index) return complain(*column, index.failure());
  std::vector<std::pair<int64_t, size_t>> stamped;
  for (size_t row = 0; row < table->rows(); ++row) {
    const auto time = parse_timestamp(table->at(row, *index), unit);
    if (!time) {
      return complain(*file,
                      {time.failure().what, fmt::format("line {}", CsvTable::line_of(row)), time.failure().hint});
    }
    stamped.emplace_back(*time, row);
  }
  std::sort(stamped.begin(), stamped.end());
  const auto rows = static_cast<int64_t>(stamped.size());
  const int64_t count = wanted.value_or(rows - skip);
  if (skip < 0 || count < 2 || skip + count > rows)
    return scene.problems.add(
        *file, fmt::format("{} has {} rows; {} from row {} are wanted, at least two", *name, rows, count, skip));
  for (int64_t i = skip; i < skip + count; ++i) {
    const auto [time, row] = stamped[static_cast<size_t>(i)];
    const auto since = static_cast<double>(static_cast<uint64_t>(time) -
                                           static_cast<uint64_t>(stamped[static_cast<size_t>(skip)].first));
    plan.times.push_back(whole_ns(since / speed));
    plan.rows.push_back(row);
  }
  plan.csv = std::move(*table);
  plan.period_ns = plan.times.back() + std::max<uint64_t>(1, plan.times.back() / static_cast<uint64_t>(count - 1));
}

// Processes with a rate.
void plan_process(Scene& scene, const Node& node, Fields& fields, const std::string& process, size_t count,
                  ArrivalPlan& plan) {
  if (!fields.require("rate")) return;
  const auto rate = fields.rate_per_second("rate");
  const uint64_t seed = derived_seed(scene.seed, "arrivals");
  if (process == "bursty") {
    const auto burst = fields.integer("burst", true);
    const Node* burst_rate_node = fields.require("burst_rate");
    const auto burst_rate = fields.rate_per_second("burst_rate");
    if (!rate || !burst || !burst_rate || !burst_rate_node) return;
    if (*burst < 1 || *burst > static_cast<int64_t>(kMaxCalls))
      return scene.problems.add(node, "burst is out of range");
    const auto size = static_cast<double>(*burst);
    if (size / *rate <= (size - 1) / *burst_rate)
      return scene.problems.add(*burst_rate_node, "leaves no pause between bursts", "raise it, or lower 'rate'");
    plan.times = bursty_arrivals(count, *rate, static_cast<size_t>(*burst), *burst_rate, seed);
  } else if (rate) {
    plan.times = process == "poisson" ? poisson_arrivals(count, *rate, seed) : constant_arrivals(count, *rate);
  }
  if (rate) plan.period_ns = plan.times.back() + std::max<uint64_t>(1, whole_ns(kSecond / *rate));
}

std::optional<int64_t> read_count(Scene& scene, const Node* requests) {
  if (!requests) return std::nullopt;
  const auto count = yaml::as_integer(*requests, scene.problems, "a number of requests");
  if (!count || (*count >= 1 && *count <= static_cast<int64_t>(kMaxCalls))) return count;
  scene.problems.add(*requests, fmt::format("is not between 1 and {}", kMaxCalls));
  return std::nullopt;
}

}  // namespace

std::optional<ArrivalPlan> read_arrivals(Scene& scene, const Node* arrivals, const Node* requests) {
  ArrivalPlan plan;
  const auto count = read_count(scene, requests);
  if (!arrivals) return std::nullopt;
  std::string process = arrivals->text;
  const bool short_form = arrivals->kind == Node::Kind::scalar && process == "closed";
  Node no_fields;
  no_fields.kind = Node::Kind::map;
  Fields fields(short_form ? no_fields : *arrivals, scene.problems, "arrivals");
  if (!short_form) {
    const auto named = fields.string("process", true);
    if (!named) return std::nullopt;
    process = *named;
  }
  const std::vector<std::string> known = {"constant", "poisson", "bursty", "csv", "closed"};
  if (std::find(known.begin(), known.end(), process) == known.end()) {
    const auto near = did_you_mean(process, known);
    scene.problems.add(
        *arrivals, fmt::format("unknown process '{}'", sanitize(process, 60)),
        near ? fmt::format("did you mean '{}'?", *near) : fmt::format("known: {}", fmt::join(known, ", ")));
    return std::nullopt;
  }
  if (process == "csv") {
    if (!requests || count) plan_csv(scene, *arrivals, fields, count, plan);
  } else if (!requests) {
    scene.problems.add(*arrivals, "the workload has no 'requests'", "say how many there are");
  } else if (count && process != "closed") {
    plan_process(scene, *arrivals, fields, process, static_cast<size_t>(*count), plan);
  } else if (count) {
    plan.times.assign(static_cast<size_t>(*count), 0);
  } else if (process != "closed") {
    for (const char* key : {"rate", "burst", "burst_rate"}) fields.find(key);
  }
  fields.close();
  plan.kind = process == "closed" ? Arrivals::closed : Arrivals::external;
  if (plan.times.empty()) return std::nullopt;
  if (plan.period_ns <= kMaxTime) return plan;
  scene.problems.add(*arrivals, "the last request arrives more than 50 days after the first");
  return std::nullopt;
}

}  // namespace kgate::build
