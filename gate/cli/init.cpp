// kgate init: the contract to start from, for a kernel of a recorded workload. What is guessed says so (`# confirm`);
// the contract is read back before it is written, so that it is at least a contract.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>

#include "cli/init_guess.h"
#include "cli/verbs.h"
#include "contract/contract.h"
#include "contract/metric_names.h"
#include "judge/verdict.h"
#include "support/fd.h"
#include "support/log.h"
#include "support/text.h"
#include "trace/demangle.h"
#include "workload/build.h"

namespace kgate::cli {

namespace {

struct Options {
  std::string workload, kernel, out;
};

// The one kernel that is meant; several share an entry's name when several modules have it.
uint32_t choose_kernel(const Workload& w, const std::string& pattern) {
  std::map<std::string, uint32_t> matching;
  std::vector<std::string> names;
  for (const LaunchSpec& launch : w.launches) {
    const std::string& entry = w.kernels[launch.kernel].entry;
    names.push_back(entry);
    if (entry == pattern) return launch.kernel;
    if (glob_match(pattern, entry)) matching.emplace(entry, launch.kernel);
  }
  if (matching.size() == 1) return matching.begin()->second;
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::string list;
  for (const std::string& name : names)
    if (matching.empty() || matching.contains(name)) list += (list.empty() ? "" : ", ") + sanitize(name, 100);
  if (!matching.empty())
    throw Error(Exit::usage, fmt::format("'{}' means {} kernels: {}", sanitize(pattern, 100), matching.size(), list),
                "--kernel", "name one of them");
  const auto near = did_you_mean(pattern, names);
  throw Error(Exit::usage, fmt::format("the workload launches no kernel '{}'", sanitize(pattern, 100)), "--kernel",
              near ? "did you mean '" + sanitize(*near, 200) + "'?" : "it launches " + sanitize(list, 1000));
}

std::string yaml_word(const std::string& text) {
  const bool plain = !text.empty() && (std::isalpha(static_cast<unsigned char>(text[0])) || text[0] == '_') &&
                     std::all_of(text.begin(), text.end(),
                                 [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '.' || c == '/'; });
  if (plain) return text;
  std::string out = "\"";
  for (char c : text) out += c == '"' || c == '\\' ? std::string{'\\', c} : std::string(1, c);
  return out + '"';
}

std::string three(const Dim3& dim) { return fmt::format("[{}, {}, {}]", dim.x, dim.y, dim.z); }

// ---- parts of the file ---------------------------------------------------------------------------------------------

std::string head(const Workload& w, uint32_t kernel, const std::string& file) {
  const std::string& entry = w.kernels[kernel].entry;
  std::string text = "# " + sanitize(trace::demangle({entry})[0], 300) + "\n# as launched in " + sanitize(file, 300);
  if (w.origin.recorded()) text += ", recorded on " + sanitize(w.origin.device, 100);
  text += ":\n";
  std::map<std::string, size_t> classes;
  for (const LaunchSpec& launch : w.launches)
    if (launch.kernel == kernel)
      ++classes[fmt::format("grid {} block {} shared {}", three(launch.grid), three(launch.block), launch.shared)];
  constexpr size_t kShown = 8;
  size_t shown = 0;
  for (const auto& [launch, count] : classes)
    if (shown++ < kShown)
      text += fmt::format("#   {}, {} distinct parameter {}\n", launch, count, count == 1 ? "block" : "blocks");
  if (classes.size() > kShown) text += fmt::format("#   and {} more\n", classes.size() - kShown);
  return text + "# Whatever says `confirm` is a guess: check it, then take the word away.\nkgate: 1\nkernel: " +
         yaml_word(entry) + "\n";
}

std::string params_text(std::vector<GuessedParam> params) {
  if (params.empty()) return "# It takes no parameters that are known: outputs are compared bit for bit.\n";
  for (const GuessedParam& param : params)
    if (param.structure)
      return fmt::format(
          "# The parameter at byte {} is a structure of {} bytes, for which `params` has no word: outputs are compared "
          "bit for bit.\n",
          param.offset, param.size);
  const auto is_output = [](const GuessedParam& p) { return p.pointer && p.role != "in"; };
  if (std::none_of(params.begin(), params.end(), [](const GuessedParam& p) { return p.pointer; }))
    return "# No parameter was an address: outputs are compared bit for bit.\n";
  if (std::none_of(params.begin(), params.end(), is_output))
    for (GuessedParam& param : params) param.role = "inout", param.why += ", no output was recognised";
  std::string text = "params:\n";
  for (size_t i = 0; i < params.size(); ++i) {
    const GuessedParam& p = params[i];
    const std::string item = p.pointer ? fmt::format("{{name: p{}, tensor: {}, role: {}}}", i, p.dtype, p.role)
                                       : fmt::format("{{name: p{}, scalar: {}}}", i, p.dtype);
    text += fmt::format("  - {:<44}# confirm: byte {}, {}\n", item, p.offset, p.why);
  }
  return text;
}

std::string limit_value(const Limit& limit) {
  MetricUnit unit = MetricUnit::count;
  for (const MetricName& metric : kMetricNames)
    if (limit.metric == metric.id) unit = metric.unit;
  const auto absolute = [&](double value) {
    const auto whole = static_cast<long long>(value);
    switch (unit) {
      case MetricUnit::ns:
        return fmt::format("{}ns", whole);
      case MetricUnit::bytes:
        return fmt::format("{}B", whole);
      case MetricUnit::fraction:
        return fmt::format("{:g}%", value * 100);
      case MetricUnit::count:
        break;
    }
    return fmt::format("{}", whole);
  };
  std::vector<std::string> parts;
  if (limit.max_regression) parts.push_back(fmt::format("max_regression: {:g}%", *limit.max_regression * 100));
  if (limit.max_increase) parts.push_back("max_increase: " + absolute(*limit.max_increase));
  if (limit.max) parts.push_back("max: " + absolute(*limit.max));
  return fmt::format("{{{}}}", fmt::join(parts, ", "));
}

std::string limits_text(const Workload& w) {
  std::string text = "# Limits: without this key the gate's own, which on a GPU are\n# limits:\n";
  for (const EffectiveLimit& one : effective_limits({}, false, w.arrivals == Arrivals::external, true))
    text += fmt::format("#   {}: {}\n", one.limit.metric, limit_value(one.limit));
  return text;
}

// A binding to edit: names for everything that a launch had. Words of structures are named one by one.
std::string binding_text(const Workload& w, uint32_t kernel, const std::vector<GuessedParam>& params) {
  std::vector<std::string> let, args;
  for (size_t i = 0; i < params.size(); ++i) {
    const GuessedParam& p = params[i];
    const std::string name = fmt::format("p{}", i);
    if (!p.structure) {
      let.push_back(fmt::format("{}: {}@{}", name, p.pointer ? "ptr" : p.dtype, p.offset));
      args.push_back(name);
      continue;
    }
    std::map<uint32_t, bool> words;  // offset, whether it is an address
    for (const LaunchSpec& launch : w.launches)
      if (launch.kernel == kernel)
        for (const Relocation& r : launch.relocations)
          if (r.param_offset >= p.offset && r.param_offset + 8 <= p.offset + p.size) words[r.param_offset] = true;
    for (const auto& [offset, address] : words) {
      let.push_back(fmt::format("{}_{}: ptr@{}", name, offset - p.offset, offset));
      args.push_back(fmt::format("{}_{}", name, offset - p.offset));
    }
  }
  for (const char axis : {'x', 'y', 'z'}) let.push_back(fmt::format("grid_{0}: grid.{0}", axis));
  for (const char axis : {'x', 'y', 'z'}) let.push_back(fmt::format("block_{0}: block.{0}", axis));
  let.push_back("smem: shared");
  const std::string entry = yaml_word(w.kernels[kernel].entry);
  return fmt::format(
      "# A candidate with other parameters, another grid or block, several launches, a workspace:\n# replace:\n"
      "#   - launches: {{kernel: {0}}}\n#     let: {{{1}}}\n#     with:\n#       - {{entry: {0}, grid: [grid_x, "
      "grid_y, "
      "grid_z], block: [block_x, block_y, block_z], shared: smem, args: [{2}]}}\n",
      entry, fmt::join(let, ", "), fmt::join(args, ", "));
}

std::string contract_text(const Workload& w, uint32_t kernel, const Options& options) {
  std::filesystem::path file = options.workload;
  if (!options.out.empty() && file.is_relative())
    file = std::filesystem::absolute(file).lexically_normal().lexically_relative(
        std::filesystem::absolute(options.out).lexically_normal().parent_path());
  const auto params = guess_params(w, kernel);
  return head(w, kernel, options.workload) + params_text(params) + "workload: " + yaml_word(file.string()) + "\n" +
         limits_text(w) + binding_text(w, kernel, params);
}

Exit init(const Options& options) {
  std::error_code ignored;
  if (!options.out.empty() && std::filesystem::exists(options.out, ignored))
    throw Error(Exit::usage, "is there already", options.out, "remove it, or choose another place with --out");
  const Workload w = load_workload(options.workload);
  const uint32_t kernel = choose_kernel(w, options.kernel);
  const std::string text = contract_text(w, kernel, options);
  try {
    (void)parse_contract(text, options.out.empty() ? "contract.yaml" : options.out);
  } catch (const Error& error) {
    throw Error(Exit::internal, "the contract that was made is none: " + error.failure().what, options.workload);
  }
  if (options.out.empty()) {
    fmt::print("{}", text);
    return Exit::pass;
  }
  auto written = write_file_atomic(options.out, text);
  if (!written) throw Error(Exit::environment, written.failure());
  log::info("next: confirm what " + options.out + " guesses, then kgate check -c " + options.out + " CANDIDATE");
  return Exit::pass;
}

}  // namespace

void add_init(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("init", "a contract to start from, for a kernel of a recorded workload");
  verb->add_option("workload", options->workload, "the workload: .kgw or YAML")->required();
  verb->add_option("--kernel", options->kernel, "the kernel: its name, or a pattern that only it matches")->required();
  verb->add_option("-o,--out", options->out, "the contract to write; default: to stdout");
  verb->callback([=, &action] { action = [=] { return init(*options); }; });
}

}  // namespace kgate::cli
