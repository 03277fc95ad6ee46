// Launches: the kernel is looked up in its module, arguments are checked against the parameters that the code declares
// and packed as the driver takes them, and equal launches are shared.
#include <fmt/format.h>

#include <cstring>

#include "contract/quantity.h"
#include "contract/table.h"
#include "support/text.h"
#include "workload/calls.h"
#include "workload/element.h"
#include "workload/limits.h"

namespace kgate::build {

using namespace cap;

using yaml::Fields;
using yaml::Node;

std::optional<CallExpander::Used> CallExpander::kernel(const Node& node) {
  const auto name = yaml::as_string(node, scene_.problems, "a kernel, MODULE.ENTRY");
  if (!name) return std::nullopt;
  const size_t dot = name->find('.');
  std::vector<std::string> modules, all;
  SceneModule* module = nullptr;
  for (SceneModule& m : scene_.modules) {
    modules.push_back(m.name);
    for (const Entry& entry : m.code.entries) all.push_back(m.name + "." + entry.name);
    if (m.name == name->substr(0, dot)) module = &m;
  }
  const Entry* entry = nullptr;
  if (module && dot != std::string::npos)
    for (const Entry& e : module->code.entries)
      if (e.name == name->substr(dot + 1)) entry = &e;
  if (module && module->broken) return std::nullopt;
  if (!entry) {
    const auto near = did_you_mean(*name, all);
    const std::string hint = near ? fmt::format("did you mean '{}'?", *near)
                             : all.empty()
                                 ? "declare its module under 'modules'"
                                 : fmt::format("known: {}", sanitize(fmt::format("{}", fmt::join(all, ", "))));
    scene_.problems.add(node, fmt::format("unknown kernel '{}'", sanitize(*name, 120)), hint);
    return std::nullopt;
  }
  const auto [known, added] = kernels_.try_emplace(*name, static_cast<uint32_t>(scene_.workload.kernels.size()));
  if (added) {
    if (module->index == kNone) {
      module->index = static_cast<uint32_t>(scene_.workload.modules.size());
      scene_.workload.modules.push_back(
          {module->code.path.filename().string(), module->code.bytes, module->code.sha256});
    }
    WorkloadKernel kernel{module->index, entry->name, {}, entry->param_bytes};
    for (const EntryParam& param : entry->params) kernel.params.emplace_back(param.offset, param.size);
    scene_.workload.kernels.push_back(std::move(kernel));
  }
  return Used{known->second, entry};
}

bool CallExpander::extent(const Node* node, const Environment& names, Dim3& out) {
  if (!node) return false;
  if (node->kind != Node::Kind::sequence || node->items.size() != 3) {
    scene_.problems.add(*node, "expected three extents", "write [x, y, z]");
    return false;
  }
  uint32_t* const parts[] = {&out.x, &out.y, &out.z};
  bool fine = true;
  for (size_t i = 0; i < 3; ++i) {
    const auto value = evaluate(scene_, node->items[i], names, 1, INT32_MAX);
    fine = fine && value;
    *parts[i] = static_cast<uint32_t>(value.value_or(1));
  }
  return fine;
}

void CallExpander::expand_launch(const Node& node, const Environment& names) {
  Fields fields(node, scene_.problems, "launch");
  const Node *kernel_node = fields.require("kernel"), *grid = fields.require("grid"), *block = fields.require("block"),
             *cluster = fields.find("cluster"), *shared = fields.find("shared"), *args = fields.require("args");
  LaunchSpec launch;
  if (extent(grid, names, launch.grid) && (launch.grid.y > 65535 || launch.grid.z > 65535))
    scene_.problems.add(*grid, "y and z of a grid are at most 65535");
  if (extent(block, names, launch.block) &&
      (launch.block.x > 1024 || launch.block.count() > 1024 || launch.block.z > 64))
    scene_.problems.add(*block, "a block has at most 1024 threads, 64 along z");
  if (cluster && extent(cluster, names, launch.cluster)) {
    const Dim3 &g = launch.grid, &c = launch.cluster;
    if (c.x > kMaxClusterBlocks || c.y > kMaxClusterBlocks || c.z > kMaxClusterBlocks || c.count() > kMaxClusterBlocks)
      scene_.problems.add(*cluster, fmt::format("a cluster has at most {} blocks", kMaxClusterBlocks));
    else if (g.x % c.x != 0 || g.y % c.y != 0 || g.z % c.z != 0)
      scene_.problems.add(*grid, "is not a multiple of the cluster");
  }
  if (shared) launch.shared = static_cast<uint32_t>(evaluate(scene_, *shared, names, 0, kMaxSharedBytes).value_or(0));
  const auto used = kernel_node ? kernel(*kernel_node) : std::nullopt;
  if (used) {
    launch.kernel = used->kernel;
    if (used->entry->reqntid && block && *used->entry->reqntid != launch.block) {
      const Dim3& r = *used->entry->reqntid;
      scene_.problems.add(*block, fmt::format("the kernel requires a block of [{}, {}, {}]", r.x, r.y, r.z));
    }
    if (used->entry->maxntid && block && used->entry->maxntid->count() < launch.block.count())
      scene_.problems.add(*block, fmt::format("the kernel takes at most {} threads", used->entry->maxntid->count()));
    if (args) write_args(*args, *used->entry, names, launch);
  }
  Call call;
  call.launch = shared_launch(std::move(launch));
  finish_call(std::move(call), fields, names);
}

void CallExpander::write_args(const Node& node, const Entry& entry, const Environment& names, LaunchSpec& launch) {
  launch.params.assign(entry.param_bytes, std::byte{0});
  if (node.kind != Node::Kind::sequence) return scene_.problems.add(node, "expected a list of arguments");
  if (node.items.size() != entry.params.size()) {
    std::string sizes;
    for (const EntryParam& param : entry.params) sizes += fmt::format("{}{}", sizes.empty() ? "" : ", ", param.size);
    return scene_.problems.add(
        node, fmt::format("{} arguments; {} takes {} (of {} bytes)", node.items.size(), sanitize(entry.name, 80),
                          entry.params.size(), sizes.empty() ? "0" : sizes));
  }
  for (size_t i = 0; i < node.items.size(); ++i) write_arg(node.items[i], entry.params[i], names, launch);
}

namespace {

// {f32: 1e-5}, {hex: "..."}: bytes of a stated type.
std::optional<std::string> typed_bytes(Scene& scene, const Node& node) {
  if (node.entries.size() == 1) {
    const auto& [key, value] = node.entries[0];
    if (key.text == "hex") return decode_hex(scene, value);
    if (element_named(key.text)) return encode_number(scene, value, key.text);
  }
  scene.problems.add(node, "expected one typed value", "write {f32: 1e-5} (any dtype) or {hex: \"...\"}");
  return std::nullopt;
}

}  // namespace

void CallExpander::write_arg(const Node& node, const EntryParam& param, const Environment& names, LaunchSpec& launch) {
  std::byte* const at = launch.params.data() + param.offset;
  const auto wrong_size = [&](size_t bytes, std::string_view what) {
    scene_.problems.add(node, fmt::format("{} has {} bytes; the parameter{} has {}", what, bytes,
                                          param.name.empty() ? "" : " " + sanitize(param.name, 60), param.size));
  };
  if (yaml::is_null_word(node)) {
    if (param.size != 8) wrong_size(8, "a null pointer");
    return;
  }
  std::optional<std::string> bytes;
  if (node.kind == Node::Kind::map) {
    bytes = typed_bytes(scene_, node);
  } else if (node.kind != Node::Kind::scalar) {
    return scene_.problems.add(node, "expected an argument",
                               "write a buffer, an integer expression, null or {f32: 1e-5}");
  } else if (names_buffer(node.text)) {
    if (param.size != 8) return wrong_size(8, "a pointer");
    if (const auto found = place(node, names))
      launch.relocations.push_back({param.offset, found->buffer, static_cast<int64_t>(found->offset)});
    return;
  } else if (node.text.ends_with('f') && parse_number(node.text.substr(0, node.text.size() - 1))) {
    Node number = node;
    number.text.pop_back();
    bytes = encode_number(scene_, number, "f32");
  } else if (parse_number(node.text) && !parse_integer(node.text)) {
    return scene_.problems.add(node, "a real number needs its type",
                               "write {f32: " + node.text + "} or " + node.text + "f");
  } else {
    if (param.size != 1 && param.size != 2 && param.size != 4 && param.size != 8) return wrong_size(8, "an integer");
    const int bits = static_cast<int>(param.size) * 8;
    const int64_t low = INT64_MIN >> (64 - bits), high = bits == 64 ? INT64_MAX : (int64_t{1} << bits) - 1;
    if (const auto value = evaluate(scene_, node, names, low, high)) std::memcpy(at, &*value, param.size);
    return;
  }
  if (!bytes) return;
  if (bytes->size() != param.size) return wrong_size(bytes->size(), "the value");
  std::memcpy(at, bytes->data(), bytes->size());
}

uint32_t CallExpander::shared_launch(LaunchSpec launch) {
  std::string key(reinterpret_cast<const char*>(launch.params.data()), launch.params.size());
  const auto add = [&](uint64_t value) { key.append(reinterpret_cast<const char*>(&value), sizeof value); };
  for (const Dim3& dim : {launch.grid, launch.block, launch.cluster}) add(dim.x), add(dim.y), add(dim.z);
  add(launch.kernel), add(launch.shared);
  for (const Relocation& r : launch.relocations)
    add(r.param_offset), add(r.buffer), add(static_cast<uint64_t>(r.delta));
  add(launch.params.size());
  const auto [known, added] =
      launches_.try_emplace(std::move(key), static_cast<uint32_t>(scene_.workload.launches.size()));
  if (added) scene_.workload.launches.push_back(std::move(launch));
  return known->second;
}

}  // namespace kgate::build
