// The binding's arithmetic lives in contract/bind; here addresses become relocations, so that both arms share the
// workload's buffers.

#include "replay/substitute.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "contract/bind.h"
#include "support/hash.h"
#include "support/text.h"

namespace kgate {

namespace {

std::vector<ParamSlot> slots(const std::vector<std::pair<uint32_t, uint32_t>>& params) {
  std::vector<ParamSlot> result;
  for (auto [offset, size] : params) result.push_back({offset, size});
  return result;
}

EntryAbi abi_of(const Entry& entry) {
  EntryAbi abi{entry.name, {}};
  for (const auto& param : entry.params) abi.params.push_back({param.offset, param.size});
  return abi;
}

std::set<std::string> entries_named(const Binding& binding) {
  std::set<std::string> names;
  for (const auto& rule : binding.replacements)
    if (rule.with)
      for (const auto& item : *rule.with)
        if (const auto* launch = std::get_if<ReplacementLaunch>(&item)) names.insert(launch->entry);
  return names;
}

// What the entry declares must hold for this launch: .reqntid is the only block that the driver accepts.
std::optional<Failure> check_block(const Entry& entry, const Dim3& block, const std::string& where) {
  if (entry.reqntid && !(*entry.reqntid == block))
    return Failure{
        fmt::format("'{}' requires a block of {}x{}x{} (.reqntid); it would be launched with {}x{}x{}", entry.name,
                    entry.reqntid->x, entry.reqntid->y, entry.reqntid->z, block.x, block.y, block.z),
        where, "give its block in the contract's `replace:`"};
  if (entry.maxntid && block.count() > entry.maxntid->count())
    return Failure{fmt::format("'{}' takes at most {} threads a block (.maxntid); it would be launched with {}",
                               entry.name, entry.maxntid->count(), block.count()),
                   where, "give a smaller block in the contract's `replace:`"};
  return std::nullopt;
}

}  // namespace

Result<uint32_t> KernelImage::index_of(const std::string& entry) const {
  std::vector<std::string> names;
  for (uint32_t i = 0; i < entries.size(); ++i) {
    if (entries[i].entry.name == entry) return i;
    names.push_back(entries[i].entry.name);
  }
  auto near = did_you_mean(entry, names);
  return Failure{fmt::format("the {} '{}' has no entry '{}'", label, name, sanitize(entry, 200)),
                 {},
                 near ? fmt::format("did you mean '{}'?", sanitize(*near, 200))
                      : fmt::format("it has: {}", sanitize(fmt::format("{}", fmt::join(names, ", ")), 400))};
}

// The items of one rule for the launches that it takes at once.
class Substitution::Items {
 public:
  Items(Substitution& owner, const Replacement& rule, std::span<const uint32_t> launches) : owner_(owner), rule_(rule) {
    for (uint32_t index : launches) {
      const LaunchSpec& spec = owner.workload_.launches[index];
      const WorkloadKernel& kernel = owner.workload_.kernels[spec.kernel];
      specs_.push_back(&spec);
      recorded_.push_back({kernel.entry, spec.grid, spec.block, spec.shared, spec.params});
      layouts_.push_back(slots(kernel.params));
    }
    in_graph_ = owner.in_graph_[launches.front()];
  }

  Result<std::vector<ArmItem>> make() {
    if (auto sources = check_sources(rule_, layouts_); !sources) return sources.failure();
    auto bound = bind_items(rule_, recorded_);
    if (!bound) return bound.failure();
    for (size_t i = 0; i < bound->size() && !failure_; ++i) {
      const BoundItem& item = (*bound)[i];
      if (const auto* workspace = std::get_if<BoundWorkspace>(&item)) add(*workspace);
      if (const auto* memset = std::get_if<BoundMemset>(&item)) add(*memset);
      if (const auto* sync = std::get_if<BoundSync>(&item)) add(*sync);
      if (const auto* launch = std::get_if<BoundLaunch>(&item))
        add(*launch, std::get<ReplacementLaunch>((*rule_.with)[i]));
    }
    if (failure_) return *failure_;
    // A host side allocates before it launches.
    allocations_.insert(allocations_.end(), std::make_move_iterator(items_.begin()),
                        std::make_move_iterator(items_.end()));
    return std::move(allocations_);
  }

 private:
  struct Workspace {
    uint32_t index = 0;
    uint64_t bytes = 0;  // of this launch
  };

  void fail(std::string what, std::string hint = {}) {
    failure_ = Failure{std::move(what), rule_.where, std::move(hint)};
  }

  // A graph holds device work on its own edges; the rest is refused before anything runs.
  bool refused_in_graph(bool wanted, const char* what) {
    if (!wanted || !in_graph_) return false;
    fail(fmt::format("a launch of '{}' is a node of a CUDA graph, which cannot hold {}", recorded_[0].kernel, what),
         "leave it out: in a graph the candidate's host side does nothing between its kernels");
    return true;
  }

  void add(const BoundWorkspace& workspace) {
    if (refused_in_graph(workspace.each_launch, "`allocate: each_launch`")) return;
    Workspace& own = workspaces_[workspace.name];
    own.index = owner_.workspace(rule_, workspace.name, workspace.bytes, workspace.zeroed);
    own.bytes = workspace.bytes;
    if (!workspace.each_launch || workspace.bytes == 0) return;
    ArmItem item;
    item.kind = ArmItem::Kind::allocate;
    item.bytes = workspace.bytes;
    allocations_.push_back(item);
  }

  void add(const BoundSync& sync) {
    if (refused_in_graph(true, "a `sync`")) return;
    ArmItem item;
    item.kind = ArmItem::Kind::sync;
    item.legacy = sync.legacy;
    items_.push_back(item);
  }

  void add(const BoundMemset& memset) {
    if (refused_in_graph(memset.legacy, "`stream: legacy`")) return;
    ArmItem item;
    item.kind = ArmItem::Kind::memset;
    item.legacy = memset.legacy;
    item.value = memset.value;
    item.bytes = memset.bytes;
    uint64_t size = 0;
    if (memset.target.kind == BoundArg::Kind::workspace) {
      const Workspace& workspace = workspaces_.at(memset.target.workspace);
      item.buffer = static_cast<uint32_t>(owner_.workload_.buffers.size()) + workspace.index;
      size = workspace.bytes;
    } else {
      auto relocation = relocation_of(memset.target, "the memset's pointer");
      if (failure_) return;
      if (!relocation) return fail("a memset through a pointer that points into no buffer of the workload");
      size = owner_.workload_.buffers[relocation->buffer].bytes;
      item.buffer = relocation->buffer;
      item.offset = static_cast<uint64_t>(relocation->delta);  // negative: past every end
    }
    if (item.offset > size || item.bytes > size - item.offset)
      return fail(fmt::format("a memset of {} bytes at byte {} of a buffer of {} bytes", item.bytes,
                              static_cast<int64_t>(item.offset), size));
    if (item.bytes > 0) items_.push_back(item);
  }

  void add(const BoundLaunch& launch, const ReplacementLaunch& written) {
    if (refused_in_graph(launch.legacy, "`stream: legacy`")) return;
    auto index = owner_.named(rule_, launch.entry);
    if (!index) return adopt(index.failure());
    const Entry& entry = owner_.image_.entries[*index].entry;
    EntryAbi abi = abi_of(entry);
    if (auto fits = check_abi(rule_, written, abi, layouts_); !fits) return adopt(fits.failure());
    auto params = pack_params(launch, abi, recorded_);
    if (!params) return adopt(params.failure());
    ArmItem item;
    item.legacy = launch.legacy;
    LaunchSpec& spec = item.launch;
    spec.kernel = owner_.kernel(*index);
    spec.grid = launch.grid;
    spec.block = launch.block;
    spec.cluster = launch.cluster;
    spec.shared = launch.shared;
    spec.cooperative = launch.cooperative;
    spec.programmatic = launch.programmatic;
    spec.params = std::move(*params);
    spec.params.resize(std::max<size_t>(spec.params.size(), entry.param_bytes));
    for (size_t i = 0; i < launch.args.size(); ++i) relocate(launch.args[i], abi.params[i].offset, i, spec);
    if (auto wrong = check_block(entry, spec.block, rule_.where)) return adopt(*wrong);
    if (!failure_) items_.push_back(std::move(item));
  }

  void relocate(const BoundArg& arg, uint32_t offset, size_t index, LaunchSpec& spec) {
    if (failure_) return;
    if (arg.kind == BoundArg::Kind::workspace) {
      auto buffers = static_cast<uint32_t>(owner_.workload_.buffers.size());
      spec.relocations.push_back({offset, buffers + workspaces_.at(arg.workspace).index, 0});
    } else if (arg.kind == BoundArg::Kind::pointer_from_offset || arg.kind == BoundArg::Kind::scalar_bytes) {
      if (auto found = relocation_of(arg, fmt::format("argument {}", index + 1)))
        spec.relocations.push_back({offset, found->buffer, found->delta});
    }
  }

  // Addresses move between runs: a value that is one whole is relocated, a value that holds a part of one is a slip.
  const Relocation* relocation_of(const BoundArg& arg, const std::string& what) {
    const uint64_t begin = arg.source_offset, end = begin + arg.size;
    for (const Relocation& relocation : specs_[arg.source_launch]->relocations) {
      const uint64_t address = relocation.param_offset;
      if (address == begin && arg.size == 8) return &relocation;
      if (address < end && begin < address + 8) {
        fail(fmt::format("{} reads bytes {} to {}, a part of the address at byte {}", what, begin, end - 1, address),
             fmt::format("read it whole: ptr@{}", address));
        return nullptr;
      }
    }
    return nullptr;
  }

  void adopt(const Failure& failure) {
    failure_ = failure;
    if (failure_->where.empty()) failure_->where = rule_.where;
  }

  Substitution& owner_;
  const Replacement& rule_;
  std::vector<const LaunchSpec*> specs_;
  std::vector<RecordedLaunch> recorded_;
  std::vector<std::vector<ParamSlot>> layouts_;
  bool in_graph_ = false;
  std::map<std::string, Workspace> workspaces_;
  std::vector<ArmItem> allocations_, items_;
  std::optional<Failure> failure_;
};

Substitution::Substitution(const Binding& binding, const KernelImage& image, const Workload& workload, bool several)
    : binding_(binding), image_(image), workload_(workload), several_(several) {
  size_t names = entries_named(binding).size();
  one_name_ = names == 1;
  names_entries_ = names > 0;
  in_graph_.resize(workload.launches.size());
  for (const auto& graph : workload.graphs)
    for (const auto& node : graph.nodes)
      if (node.kind == GraphNode::Kind::kernel) in_graph_[node.launch] = true;
}

Result<std::vector<ArmItem>> Substitution::items(const Replacement* rule, std::span<const uint32_t> launches) {
  if (rule && rule->with) return Items(*this, *rule, launches).make();
  uint32_t index = 0;
  if (several_ || names_entries_) {
    const std::string& name = workload_.kernels[workload_.launches[launches.front()].kernel].entry;
    auto found = image_.index_of(name);
    if (!found) {
      Failure failure = found.failure();
      if (rule) failure.where = rule->where;
      failure.hint += "; `with:` names another";
      return failure;
    }
    index = *found;
  }
  auto made = same_abi(launches.front(), index);
  if (made || !rule || !made.failure().where.empty()) return made;
  Failure failure = made.failure();
  failure.where = rule->where;
  return failure;
}

Result<std::vector<ArmItem>> Substitution::same_abi(uint32_t launch, uint32_t index) {
  const LaunchSpec& recorded = workload_.launches[launch];
  const Entry& entry = image_.entries[index].entry;
  if (auto same = check_same_abi(workload_.kernels[recorded.kernel], entry, image_.label); !same) return same.failure();
  if (auto wrong = check_block(entry, recorded.block, {})) return *wrong;
  ArmItem item{recorded};
  item.launch.kernel = kernel(index);
  item.launch.params.resize(entry.param_bytes);  // padding after the last parameter may differ
  return std::vector<ArmItem>{std::move(item)};
}

Arm Substitution::arm() const {
  Arm arm;
  arm.label = image_.label;
  if (!kernels_.empty()) arm.modules.push_back({image_.name, image_.image, sha256(image_.image)});
  for (uint32_t index : kernels_) {
    const auto& [entry, id] = image_.entries[index];
    WorkloadKernel kernel;
    kernel.entry = entry.name;
    for (const auto& param : entry.params) kernel.params.emplace_back(param.offset, param.size);
    kernel.param_bytes = entry.param_bytes;
    arm.kernels.push_back(std::move(kernel));
    arm.kernel_ids.push_back(id);
  }
  arm.workspaces = workspaces_;
  return arm;
}

Result<uint32_t> Substitution::named(const Replacement& rule, const std::string& entry) const {
  if (one_name_) return uint32_t{0};
  auto found = image_.index_of(entry);
  if (found) return found;
  Failure failure = found.failure();
  failure.where = rule.where;
  return failure;
}

uint32_t Substitution::kernel(uint32_t index) {
  auto found = std::find(kernels_.begin(), kernels_.end(), index);
  if (found == kernels_.end()) found = kernels_.insert(kernels_.end(), index);
  return static_cast<uint32_t>(found - kernels_.begin());
}

uint32_t Substitution::workspace(const Replacement& rule, const std::string& name, uint64_t bytes, bool zeroed) {
  auto [found, fresh] = workspace_index_.try_emplace({&rule, name}, static_cast<uint32_t>(workspaces_.size()));
  if (fresh) {
    Buffer buffer;
    buffer.name = name;
    buffer.bytes = 1;  // a driver refuses empty allocations
    if (zeroed)
      buffer.content = ContentZeros{};
    else
      buffer.content = ContentPoison{};
    workspaces_.push_back(std::move(buffer));
  }
  Buffer& buffer = workspaces_[found->second];
  buffer.bytes = std::max(buffer.bytes, bytes);
  return found->second;
}

Result<std::monostate> check_same_abi(const WorkloadKernel& recorded, const Entry& entry, const std::string& label) {
  auto same = check_same_abi(abi_of(entry), slots(recorded.params));
  if (same) return same;
  Failure failure = same.failure();
  failure.what = fmt::format("the {} does not have the parameters that it is launched with: {}", label, failure.what);
  if (label != "candidate")
    failure.hint = fmt::format("name a {} that takes the parameters that the contract lists", label);
  return failure;
}

std::string candidate_entry_name(const Contract& contract) {
  for (const auto& rule : contract.binding.replacements)
    if (rule.with)
      for (const auto& item : *rule.with)
        if (const auto* launch = std::get_if<ReplacementLaunch>(&item)) return launch->entry;
  return contract.kernel;
}

}  // namespace kgate
