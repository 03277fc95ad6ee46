// One arm of a trace as figures: its kernels by name and launch class, and the metrics of the whole run.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "judge/compare.h"
#include "judge/metrics.h"

namespace kgate {

namespace {

double number(const std::optional<std::string>& text) {
  double value = 0;
  if (text) std::from_chars(text->data(), text->data() + text->size(), value);
  return value;
}

std::map<uint32_t, ClassKey> class_names(const TraceStore& trace) {
  std::map<uint32_t, ClassKey> names;
  trace
      .query("SELECT launch_class, kernel_name, label FROM launch_classes",
             [&](const auto&, const auto& values) {
               ClassKey key{values[1].value_or(""), values[2].value_or("")};
               if (key.label.starts_with(key.kernel + " ")) key.label.erase(0, key.kernel.size() + 1);
               names[static_cast<uint32_t>(number(values[0]))] = key;
             })
      .value_or_throw(Exit::bad_input);
  return names;
}

void add_counters(const TraceStore& trace, uint32_t arm, const std::map<uint32_t, ClassKey>& names, ArmTrace& out) {
  trace
      .query(fmt::format("SELECT launch_class, COUNT(*), AVG(thread_instructions), "
                         "AVG(global_load_sectors + global_store_sectors), AVG(bank_conflicts) FROM counters "
                         "WHERE phase = 'measured' AND arm = {} GROUP BY launch_class",
                         arm),
             [&](const auto&, const auto& values) {
               auto name = names.find(static_cast<uint32_t>(number(values[0])));
               if (name == names.end()) return;
               out.virtual_device = true;
               ClassFigures& figures = out.classes[name->second];
               figures.instructions = number(values[2]);
               figures.sectors = number(values[3]);
               figures.conflicts = number(values[4]);
             })
      .value_or_throw(Exit::bad_input);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  size_t n = values.size();
  return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

}  // namespace

bool compared_by_class(std::string_view metric) {
  return metric == "kernel_time.p50" || metric == "kernel_time.p99" || metric == "virtual.instructions" ||
         metric == "virtual.sectors" || metric == "virtual.bank_conflicts";
}

bool compared_by_run(std::string_view metric) {
  const MetricInfo* info = find_metric(metric);
  return info && info->source == MetricSource::timing && !metric.starts_with("kernel_time.") &&
         !metric.starts_with("response.") && info->cls != MetricClass::attribution;
}

std::map<ClassKey, ClassFigures> fold_classes(const std::vector<KernelRow>& kernels, uint32_t arm,
                                              const std::map<uint32_t, ClassKey>& names) {
  struct Samples {
    std::vector<double> durations;
    ClassFigures figures;
  };
  std::vector<const KernelRow*> order;
  for (const auto& row : kernels)
    if (row.arm == arm && row.phase == wire::Phase::measured && row.end != 0) order.push_back(&row);
  std::stable_sort(order.begin(), order.end(), [](auto* a, auto* b) {
    return std::tie(a->round, a->launch_begin) < std::tie(b->round, b->launch_begin);
  });
  std::map<ClassKey, Samples> classes;
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, std::pair<Samples*, size_t>> open;  // replacements add up
  for (const KernelRow* row : order) {
    ClassKey key{row->name, fmt::format("grid ({},{},{}) block ({},{},{})", row->grid[0], row->grid[1], row->grid[2],
                                        row->block[0], row->block[1], row->block[2])};
    if (auto name = names.find(row->launch_class); name != names.end()) key = name->second;
    Samples& samples = classes[key];
    double duration = double(row->end) - double(row->start);
    samples.figures.total_ns += duration;
    if (!row->kernel_id.empty()) samples.figures.kernel_ids.insert(row->kernel_id);
    samples.figures.registers.insert(row->registers);
    auto launch = std::make_tuple(row->round, row->sequence, row->launch);
    auto first = open.find(launch);
    if (row->item != 0 && first != open.end() && first->second.first == &samples) {
      samples.durations[first->second.second] += duration;
      continue;
    }
    samples.durations.push_back(duration);
    if (row->launch != 0xffffffff) open[launch] = {&samples, samples.durations.size() - 1};
  }
  std::map<ClassKey, ClassFigures> out;
  for (auto& [key, samples] : classes) {
    samples.figures.launches = samples.durations.size();
    samples.figures.p50_ns = quantile(samples.durations, 0.5);
    samples.figures.p99_ns = quantile(samples.durations, 0.99);
    out[key] = std::move(samples.figures);
  }
  return out;
}

ArmTrace read_arm(const TraceStore& trace, ArmChoice choice) {
  ArmTrace out;
  out.path = trace.path().string();
  out.info = trace.info();
  out.health = trace.health();
  std::set<uint32_t> arms;
  for (const auto& round : trace.rounds()) arms.insert(round.arm);
  if (arms.empty()) throw Error(Exit::bad_input, "a trace without rounds or processes: nothing was run", out.path);
  if (choice == ArmChoice::candidate && arms.size() == 1 && *arms.begin() == 0)
    throw Error(Exit::usage, "the trace has one arm only", out.path, "leave --arm candidate out");
  uint32_t arm = choice == ArmChoice::baseline ? 0 : *arms.rbegin();
  if (!arms.contains(arm)) throw Error(Exit::usage, "the trace has no baseline arm", out.path, "leave --arm out");

  auto names = class_names(trace);
  out.classes = fold_classes(trace.kernels(), arm, names);
  add_counters(trace, arm, names, out);
  for (const auto& [id, series] : measure(trace, false)) {
    if (!compared_by_run(id)) continue;
    std::vector<double> values;
    for (const auto& pair : series.pairs)
      if (const auto& value = arm == 0 ? pair.baseline : pair.candidate) values.push_back(*value);
    if (!values.empty()) out.metrics[id] = {median(values), series.samples_per_round};
  }
  return out;
}

}  // namespace kgate
