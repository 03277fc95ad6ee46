// Static figures of candidate and baseline, and whether they are the same machine code.

#include <fmt/format.h>

#include <algorithm>

#include "precheck/precheck.h"
#include "support/text.h"

namespace kgate {

namespace {

// sm_75 from "sm_75", "sm_90a", "sm_120f"; 0 if there is none.
int target_arch(const std::string& target) {
  int arch = 0;
  for (char c : target)
    if (c >= '0' && c <= '9') arch = arch * 10 + (c - '0');
  return arch;
}

using Figures = std::map<std::string, double, std::less<>>;

// One launch of an entry; threads 0: not known.
struct BlockShape {
  uint32_t threads = 0, shared = 0;
};

Figures figures_of(const Entry& entry, const std::optional<ResourceUsage>& usage, const BlockShape& block, int arch) {
  Figures figures;
  if (!usage) return figures;
  if (usage->registers) figures["registers"] = *usage->registers;
  if (usage->stack_bytes) figures["local_bytes"] = *usage->stack_bytes;
  if (usage->spill_store_bytes && usage->spill_load_bytes)
    figures["spill_bytes"] = double(*usage->spill_store_bytes) + double(*usage->spill_load_bytes);
  uint32_t shared = usage->static_shared.value_or(entry.static_shared);
  figures["shared_bytes"] = shared;
  if (usage->registers && block.threads)
    if (auto occupancy = theoretical_occupancy(arch, *usage->registers, shared + block.shared, block.threads))
      figures["occupancy"] = occupancy->fraction;
  return figures;
}

// What several entries have together. A figure that one of them lacks is not known of all.
Figures together(const std::vector<Figures>& all) {
  Figures sum;
  for (const auto& [name, first] : all.front()) {
    double value = first;
    bool known = true;
    for (size_t i = 1; i < all.size() && known; ++i) {
      auto other = all[i].find(name);
      known = other != all[i].end();
      if (!known) break;
      if (name == "spill_bytes")
        value += other->second;
      else
        value = name == "occupancy" ? std::min(value, other->second) : std::max(value, other->second);
    }
    if (known) sum[name] = value;
  }
  return sum;
}

BlockShape evaluate_block(const Expr block[3], const Expr& shared, const Environment& environment) {
  BlockShape shape;
  uint64_t threads = 1;
  for (int axis = 0; axis < 3; ++axis) {
    auto extent = block[axis].evaluate(environment);
    if (!extent || *extent < 1 || *extent > 1024) return {};
    threads *= static_cast<uint64_t>(*extent);
  }
  shape.threads = threads <= 1024 ? static_cast<uint32_t>(threads) : 0;
  if (auto bytes = shared.evaluate(environment); bytes && *bytes >= 0) shape.shared = static_cast<uint32_t>(*bytes);
  return shape;
}

const PreparedEntry* entry_called(const Prepared& prepared, const std::string& name) {
  for (const PreparedEntry& other : prepared.others)
    if (other.entry.name == name) return &other;
  return nullptr;
}

std::vector<const ReplacementLaunch*> launches_of(const Binding& binding) {
  std::vector<const ReplacementLaunch*> launches;
  for (const auto& rule : binding.replacements)
    if (rule.with)
      for (const auto& item : *rule.with)
        if (const auto* launch = std::get_if<ReplacementLaunch>(&item)) launches.push_back(launch);
  return launches;
}

Figures figures_of(const Prepared& prepared, const std::string& entry, const BlockShape& block, int arch) {
  const PreparedEntry* other = entry == prepared.entry.name ? nullptr : entry_called(prepared, entry);
  return other ? figures_of(other->entry, other->usage, block, arch)
               : figures_of(prepared.entry, prepared.usage, block, arch);
}

// The kernels that a rule replaces one by one, or the contract without rules: the candidate has them by their names.
std::vector<std::string> kept_names(const Binding& binding, const JudgedKernels* several) {
  std::vector<std::string> names;
  if (!several) return names;
  for (const std::string& name : several->names) {
    auto rule = std::find_if(binding.replacements.begin(), binding.replacements.end(),
                             [&](const Replacement& r) { return glob_match(r.kernel_glob, name); });
    if (rule == binding.replacements.end() ? binding.replacements.empty() : !rule->with) names.push_back(name);
  }
  return names;
}

// A block that depends on recorded values has no one figure: occupancy is then left out.
Figures candidate_figures(const Prepared& candidate, const Binding& binding, const BlockShape& own,
                          const JudgedKernels* several, int arch) {
  std::map<std::string, std::vector<Figures>> by_entry;
  auto launches = launches_of(binding);
  const bool one_name = std::all_of(launches.begin(), launches.end(), [&](const ReplacementLaunch* launch) {
    return launch->entry == launches.front()->entry;
  });
  for (const ReplacementLaunch* launch : launches) {
    BlockShape block = evaluate_block(launch->block, launch->shared, {});
    const std::string& entry = one_name ? candidate.entry.name : launch->entry;  // as the arms launch it
    by_entry[entry].push_back(figures_of(candidate, entry, block, arch));
  }
  for (const std::string& name : kept_names(binding, several))
    by_entry[name].push_back(figures_of(candidate, name, {}, arch));
  if (by_entry.empty()) return figures_of(candidate.entry, candidate.usage, own, arch);
  std::vector<Figures> all;
  for (auto& [name, figures] : by_entry) {
    Figures one = together(figures);
    if (auto spills = figures.front().find("spill_bytes"); spills != figures.front().end() && one.count("spill_bytes"))
      one["spill_bytes"] = spills->second;  // an entry spills once, however often it is launched
    all.push_back(std::move(one));
  }
  return together(all);
}

Figures baseline_figures(const Prepared* baseline, const JudgedKernels* several, const BlockShape& own, int arch) {
  std::vector<Figures> all;
  if (several && baseline)
    for (const std::string& name : several->names) all.push_back(figures_of(*baseline, name, {}, arch));
  else if (several)
    for (const Prepared& one : several->recorded) all.push_back(figures_of(one.entry, one.usage, {}, arch));
  else if (baseline)
    all.push_back(figures_of(baseline->entry, baseline->usage, own, arch));
  return all.empty() ? Figures{} : together(all);
}

// Empty: there is no such entry, or nothing is known of its code.
std::string id_of(const Prepared& prepared, const std::string& entry) {
  if (entry == prepared.entry.name) return prepared.kernel_id;
  const PreparedEntry* other = entry_called(prepared, entry);
  return other ? other->kernel_id : "";
}

// Everything that the candidate launches in place of the baseline is the baseline's code, launched the same way.
bool same_code(const Contract& contract, const Prepared& candidate, const Prepared& baseline,
               const JudgedKernels* several) {
  for (const auto& rule : contract.binding.replacements)
    if (rule.with) return false;
  if (several) {
    return candidate.machine_code == baseline.machine_code &&
           std::all_of(several->names.begin(), several->names.end(), [&](const std::string& name) {
             std::string ours = id_of(candidate, name);
             return !ours.empty() && ours == id_of(baseline, name);
           });
  }
  if (candidate.kernel_id.empty() || candidate.kernel_id != baseline.kernel_id) return false;
  return candidate.machine_code == baseline.machine_code;
}

}  // namespace

void check_resources(const Contract& contract, const Prepared& candidate, const Prepared* baseline,
                     PrecheckResult& result, const JudgedKernels* several) {
  BlockShape own;
  if (contract.has_shapes) {
    Environment shape = contract.shapes.empty() ? Environment{} : contract.shapes.front();
    own = evaluate_block(contract.launch.block, contract.launch.shared, shape);
  }
  int arch = 0;
  if (candidate.compiled && candidate.compiled->outcome == CompileOutcome::ok)
    if (auto cubin = parse_candidate(candidate.compiled->image, candidate.source.path))
      arch = target_arch(cubin->target);
  if (!arch) arch = target_arch(candidate.source.target);
  result.statics.candidate = candidate_figures(candidate, contract.binding, own, several, arch);
  if (candidate.source.kind == CodeKind::cubin)
    result.findings.push_back({"spills_unknown",
                               "resources",
                               "a cubin does not say how many bytes spill; local_bytes is its stack frame",
                               {},
                               Exit::pass});
  result.statics.baseline = baseline_figures(baseline, several, own, arch);
  result.identical_code = baseline && same_code(contract, candidate, *baseline, several);
  if (result.identical_code)
    result.findings.push_back(
        {"identical_code",
         "resources",
         fmt::format("the candidate is the baseline's {} ({})", candidate.machine_code ? "machine code" : "PTX",
                     candidate.kernel_id.substr(0, 12)),
         {},
         Exit::pass});
}

}  // namespace kgate
