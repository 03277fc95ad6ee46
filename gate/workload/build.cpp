// From a YAML file to a Workload. The outline is build_workload: read what the calls refer to, when requests arrive and
// what varies between them, expand the calls of each distinct request once, and lay the requests out in order of
// arrival.
#include "workload/build.h"

#include <fmt/format.h>

#include <fstream>
#include <map>
#include <numeric>

#include "support/fd.h"
#include "workload/arrivals.h"
#include "workload/calls.h"
#include "workload/kgw.h"
#include "workload/limits.h"
#include "workload/scene.h"

namespace kgate {

using namespace cap;

namespace {

using build::ArrivalPlan;
using build::CallExpander;
using build::Scene;
using build::Variation;
using yaml::Fields;
using yaml::Node;

constexpr int64_t kMaxYamlThreads = 64;
constexpr std::string_view kSqliteMagic = "SQLite format 3";

void read_head(Scene& scene, Fields& fields) {
  const auto version = fields.integer("kgate_workload", true);
  if (version && *version != 1)
    scene.problems.add(*fields.find("kgate_workload"),
                       fmt::format("format {} is unknown; this kgate reads format 1", *version),
                       "write 'kgate_workload: 1'");
  scene.workload.name = fields.string("name").value_or(scene.problems.file().stem().string());
  scene.seed = static_cast<uint64_t>(fields.integer("seed").value_or(0));
  const int64_t threads = fields.integer("threads").value_or(1);
  if (threads < 1 || threads > kMaxYamlThreads)
    scene.problems.add(*fields.find("threads"), fmt::format("is not between 1 and {}", kMaxYamlThreads));
  else
    scene.workload.threads = static_cast<uint32_t>(threads);
  scene.workload.blocking_sync = fields.boolean("blocking_sync").value_or(false);
}

bool waits(const Call& call) {
  return call.kind == CallKind::stream_sync || call.kind == CallKind::event_sync || call.kind == CallKind::context_sync;
}

// A request's end is what latency is measured to, so somebody has to wait for it.
void check_ends_with_wait(Scene& scene, const Node& request, const std::vector<Call>& calls) {
  if (calls.empty()) return scene.problems.add(request, "makes no calls");
  if (!waits(calls.back()))
    scene.problems.add(request, "the last call does not wait for the GPU",
                       "end with '- sync: {stream: 0}' or '- sync: context'");
}

// In place of arrivals that could not be read, so that the problems of the calls are found all the same.
ArrivalPlan one_arrival() {
  ArrivalPlan plan;
  plan.times = {0};
  return plan;
}

// Requests that agree in thread and varied names make the same calls.
void expand_requests(Scene& scene, const Node& request, const ArrivalPlan& plan,
                     const std::vector<Variation>& variations) {
  Workload& workload = scene.workload;
  CallExpander expander(scene);
  std::map<std::pair<uint32_t, std::vector<int64_t>>, std::vector<Call>> known;
  Environment names = scene.let;
  for (size_t r = 0; r < plan.times.size(); ++r) {
    const auto thread = static_cast<uint32_t>(r % workload.threads);
    std::vector<int64_t> choice;
    for (const Variation& variation : variations) choice.push_back(names[variation.name] = variation.values[r]);
    const auto [calls, added] = known.try_emplace({thread, std::move(choice)});
    if (added) {
      calls->second = expander.expand(request, thread, names);
      if (scene.problems.empty()) check_ends_with_wait(scene, request, calls->second);
      if (!scene.problems.empty()) return;
    }
    if (workload.calls.size() + calls->second.size() > kMaxCalls)
      return scene.problems.add(request, fmt::format("all requests together make more than {} calls", kMaxCalls),
                                "lower 'requests'");
    Request made{plan.times[r], thread, std::vector<uint32_t>(calls->second.size())};
    std::iota(made.calls.begin(), made.calls.end(), static_cast<uint32_t>(workload.calls.size()));
    workload.requests.push_back(std::move(made));
    workload.calls.insert(workload.calls.end(), calls->second.begin(), calls->second.end());
  }
  workload.streams.resize(workload.threads * expander.streams());
  workload.events = workload.threads * expander.events();
  for (Call& call : workload.calls) {
    call.stream += call.thread * expander.streams();
    if (call.event != kNone) call.event += call.thread * expander.events();
  }
}

}  // namespace

Workload build_workload(const std::filesystem::path& path) {
  const std::string text = read_file(path, yaml::kMaxFileBytes).value_or_throw(Exit::bad_input);
  yaml::Problems problems(path);
  const Node root = yaml::parse(text, problems);
  if (root.kind == Node::Kind::null) problems.finish();
  Scene scene(problems);
  Fields fields(root, problems, "workload");
  read_head(scene, fields);
  build::read_let(scene, fields.find("let"));
  build::read_modules(scene, fields.find("modules"));
  build::read_buffers(scene, fields.find("buffers"));
  const auto plan = build::read_arrivals(scene, fields.require("arrivals"), fields.find("requests"));
  const auto variations = build::read_variations(scene, fields.find("vary"), plan.value_or(one_arrival()));
  const Node* request = fields.require("request");
  fields.close();
  if (request) expand_requests(scene, *request, plan.value_or(one_arrival()), variations);
  problems.finish();

  Workload workload = std::move(scene.workload);
  workload.arrivals = plan->kind;
  workload.period_ns = plan->period_ns;
  if (auto valid = validate(workload); !valid)
    throw Error(Exit::bad_input, valid.failure().what, path.string() + ": " + valid.failure().where);
  workload.sha256 = workload_hash(workload);
  return workload;
}

Workload load_workload(const std::filesystem::path& path) {
  char head[kSqliteMagic.size()] = {};
  std::ifstream(path, std::ios::binary).read(head, sizeof head);
  if (std::string_view(head, sizeof head) == kSqliteMagic || path.extension() == ".kgw")
    return read_kgw(path).value_or_throw(Exit::bad_input);
  return build_workload(path);
}

}  // namespace kgate
