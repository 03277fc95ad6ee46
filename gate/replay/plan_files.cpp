// A plan as files: plan.json beside one file a module image, because images are binary and may be megabytes. The worker
// reads them strictly; a folder that somebody edited is refused, never half understood.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "replay/plan.h"
#include "support/fd.h"
#include "support/hash.h"
#include "support/text.h"
#include "worker/json_fields.h"

namespace kgate {

using nlohmann::json;
using worker::BadField;
using worker::count_of;
using worker::JsonFields;

namespace {

constexpr int kPlanVersion = 3;
constexpr size_t kMaxText = 65536, kMaxItems = 1 << 20, kMaxImage = size_t{512} << 20, kMaxPlan = size_t{512} << 20;

constexpr std::pair<ReplayMode, const char*> kModes[] = {{ReplayMode::numeric, "numeric"},
                                                         {ReplayMode::timing, "timing"},
                                                         {ReplayMode::counters, "counters"},
                                                         {ReplayMode::live, "live"},
                                                         {ReplayMode::fidelity, "fidelity"}};
constexpr std::pair<Placement, const char*> kPlacements[] = {
    {Placement::anywhere, "anywhere"}, {Placement::recorded, "recorded"}, {Placement::shifted, "shifted"}};
constexpr std::pair<ArmItem::Kind, const char*> kItems[] = {{ArmItem::Kind::launch, "launch"},
                                                            {ArmItem::Kind::memset, "memset"},
                                                            {ArmItem::Kind::sync, "sync"},
                                                            {ArmItem::Kind::allocate, "allocate"}};

template <typename Value, size_t n>
const char* name_in(const std::pair<Value, const char*> (&table)[n], Value wanted) {
  for (auto [value, name] : table)
    if (value == wanted) return name;
  return "";
}

template <typename Value, size_t n>
Value value_in(const std::pair<Value, const char*> (&table)[n], const std::string& text, const char* what) {
  for (auto [value, name] : table)
    if (text == name) return value;
  throw BadField(std::string("unknown ") + what + " '" + sanitize(text, 40) + "'");
}

std::string to_hex(const std::vector<std::byte>& bytes) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (std::byte b : bytes) {
    text += digits[std::to_integer<int>(b) >> 4];
    text += digits[std::to_integer<int>(b) & 15];
  }
  return text;
}

std::vector<std::byte> from_hex(const std::string& text, const std::string& where) {
  auto digit = [&](char c) -> int {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    throw BadField(where + " is not lower-case hex");
  };
  if (text.size() % 2) throw BadField(where + " has an odd number of hex digits");
  std::vector<std::byte> bytes(text.size() / 2);
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::byte>(digit(text[2 * i]) << 4 | digit(text[2 * i + 1]));
  return bytes;
}

json write_dim(Dim3 d) { return {d.x, d.y, d.z}; }

Dim3 read_dim(JsonFields& fields, const char* name) {
  const json& value = fields.array(name, 3);
  if (value.size() != 3) throw BadField(std::string(name) + " does not have three extents");
  uint32_t extent[3];
  for (int i = 0; i < 3; ++i) extent[i] = static_cast<uint32_t>(count_of(value[i], UINT32_MAX, name));
  return {extent[0], extent[1], extent[2]};
}

json write_launch(const LaunchSpec& launch) {
  json relocations = json::array();
  for (const auto& r : launch.relocations)
    relocations.push_back({{"at", r.param_offset}, {"buffer", r.buffer}, {"delta", r.delta}});
  return {{"kernel", launch.kernel},
          {"grid", write_dim(launch.grid)},
          {"block", write_dim(launch.block)},
          {"cluster", write_dim(launch.cluster)},
          {"shared", launch.shared},
          {"cooperative", launch.cooperative},
          {"programmatic", launch.programmatic},
          {"params", to_hex(launch.params)},
          {"relocations", relocations}};
}

LaunchSpec read_launch(const json& value) {
  JsonFields fields(value, "launch");
  LaunchSpec launch;
  launch.kernel = fields.index("kernel");
  launch.grid = read_dim(fields, "grid");
  launch.block = read_dim(fields, "block");
  launch.cluster = read_dim(fields, "cluster");
  launch.shared = fields.index("shared");
  launch.cooperative = fields.flag("cooperative");
  launch.programmatic = fields.flag("programmatic");
  launch.params = from_hex(fields.text("params", kMaxText), "params");
  for (const json& item : fields.array("relocations", kMaxItems)) {
    JsonFields r(item, "relocation");
    launch.relocations.push_back({r.index("at"), r.index("buffer"), r.integer("delta", INT64_MIN, INT64_MAX)});
    r.finish();
  }
  fields.finish();
  return launch;
}

json write_item(const ArmItem& item) {
  json value = {{"kind", name_in(kItems, item.kind)}, {"legacy", item.legacy}};
  if (item.kind == ArmItem::Kind::launch) value["launch"] = write_launch(item.launch);
  if (item.kind == ArmItem::Kind::memset) {
    value["buffer"] = item.buffer;
    value["offset"] = item.offset;
    value["value"] = item.value;
  }
  if (item.kind == ArmItem::Kind::memset || item.kind == ArmItem::Kind::allocate) value["bytes"] = item.bytes;
  return value;
}

ArmItem read_item(const json& value) {
  JsonFields fields(value, "item");
  ArmItem item;
  item.kind = value_in(kItems, fields.text("kind", 16), "item");
  item.legacy = fields.flag("legacy");
  if (item.kind == ArmItem::Kind::launch) item.launch = read_launch(fields.object("launch"));
  if (item.kind == ArmItem::Kind::memset) {
    item.buffer = fields.index("buffer");
    item.offset = fields.count("offset");
    item.value = static_cast<uint8_t>(fields.count("value", 255));
  }
  if (item.kind == ArmItem::Kind::memset || item.kind == ArmItem::Kind::allocate) item.bytes = fields.count("bytes");
  fields.finish();
  return item;
}

// A workspace has no address, no recording and one of two contents.
json write_workspace(const Buffer& workspace) {
  return {{"name", workspace.name},
          {"bytes", workspace.bytes},
          {"zeros", std::holds_alternative<ContentZeros>(workspace.content)}};
}

Buffer read_workspace(const json& value) {
  JsonFields fields(value, "workspace");
  Buffer workspace;
  workspace.name = fields.text("name", 256);
  workspace.bytes = fields.count("bytes");
  if (!fields.flag("zeros")) workspace.content = ContentPoison{};
  fields.finish();
  return workspace;
}

json write_kernel(const WorkloadKernel& kernel) {
  json params = json::array();
  for (auto [offset, size] : kernel.params) params.push_back({offset, size});
  return {{"module", kernel.module}, {"entry", kernel.entry}, {"params", params}, {"param_bytes", kernel.param_bytes}};
}

WorkloadKernel read_kernel(const json& value) {
  JsonFields fields(value, "kernel");
  WorkloadKernel kernel;
  kernel.module = fields.index("module");
  kernel.entry = fields.text("entry", kMaxText);
  for (const json& pair : fields.array("params", 4096)) {
    if (!pair.is_array() || pair.size() != 2) throw BadField("a parameter is not a pair of offset and size");
    kernel.params.emplace_back(count_of(pair[0], UINT32_MAX, "params"), count_of(pair[1], UINT32_MAX, "params"));
  }
  kernel.param_bytes = static_cast<uint32_t>(fields.count("param_bytes", kMaxText / 2));
  fields.finish();
  return kernel;
}

std::string image_name(size_t arm, size_t module) {
  return "arm" + std::to_string(arm) + ".module" + std::to_string(module);
}

void write_or_throw(const std::filesystem::path& path, std::string_view content) {
  write_file_atomic(path, content).value_or_throw(Exit::internal);
}

json write_arm(const Arm& arm, size_t index, const std::filesystem::path& directory) {
  json modules = json::array(), kernels = json::array(), replace = json::array(), workspaces = json::array();
  for (size_t m = 0; m < arm.modules.size(); ++m) {
    write_or_throw(directory / image_name(index, m), arm.modules[m].image);
    modules.push_back({{"name", arm.modules[m].name}, {"sha256", sha256(arm.modules[m].image)}});
  }
  for (const auto& kernel : arm.kernels) kernels.push_back(write_kernel(kernel));
  for (const auto& workspace : arm.workspaces) workspaces.push_back(write_workspace(workspace));
  for (const auto& [launch, items] : arm.replace) {
    json with = json::array();
    for (const auto& item : items) with.push_back(write_item(item));
    replace.push_back({{"launch", launch}, {"with", with}});
  }
  return {{"label", arm.label},           {"modules", modules},       {"kernels", kernels},
          {"kernel_ids", arm.kernel_ids}, {"workspaces", workspaces}, {"replace", replace}};
}

Arm read_arm(const json& value, size_t index, const std::filesystem::path& directory) {
  JsonFields fields(value, "arm");
  Arm arm;
  arm.label = fields.text("label", 256);
  for (const json& item : fields.array("modules", 4096)) {
    JsonFields module(item, "module");
    WorkloadModule m{module.text("name", kMaxText), {}, module.text("sha256", 64)};
    module.finish();
    auto image = read_file(directory / image_name(index, arm.modules.size()), kMaxImage);
    if (!image) throw BadField(image.failure().where + ": " + image.failure().what);
    m.image = std::move(*image);
    if (sha256(m.image) != m.sha256) throw BadField(image_name(index, arm.modules.size()) + " does not match its hash");
    arm.modules.push_back(std::move(m));
  }
  for (const json& kernel : fields.array("kernels", kMaxItems)) arm.kernels.push_back(read_kernel(kernel));
  for (const json& id : fields.array("kernel_ids", kMaxItems)) {
    if (!id.is_string()) throw BadField("kernel_ids holds something that is not a text");
    arm.kernel_ids.push_back(id.get<std::string>());
  }
  for (const json& workspace : fields.array("workspaces", 4096)) arm.workspaces.push_back(read_workspace(workspace));
  for (const json& item : fields.array("replace", kMaxItems)) {
    JsonFields replace(item, "replace");
    auto [at, fresh] = arm.replace.try_emplace(replace.index("launch"));
    if (!fresh) throw BadField("launch " + std::to_string(at->first) + " is replaced twice");
    for (const json& step : replace.array("with", 4096)) at->second.push_back(read_item(step));
    replace.finish();
  }
  fields.finish();
  return arm;
}

std::vector<uint32_t> read_indices(JsonFields& fields, const char* name) {
  std::vector<uint32_t> indices;
  for (const json& item : fields.array(name, kMaxItems))
    indices.push_back(static_cast<uint32_t>(count_of(item, UINT32_MAX, name)));
  return indices;
}

ReplayPlan read_fields(const json& value, const std::filesystem::path& directory) {
  JsonFields fields(value, "plan");
  if (auto version = fields.count("kgate_plan"); version != kPlanVersion)
    throw BadField("plan version " + std::to_string(version) + ", this kgate reads " + std::to_string(kPlanVersion));
  ReplayPlan plan;
  plan.mode = value_in(kModes, fields.text("mode", 16), "mode");
  plan.workload = fields.text("workload", 4096);
  for (const json& arm : fields.array("arms", 64)) plan.arms.push_back(read_arm(arm, plan.arms.size(), directory));
  for (const json& item : fields.array("rounds", kMaxItems)) {
    JsonFields round(item, "round");
    plan.rounds.push_back({round.index("arm"), round.index("pair"), round.index("round")});
    round.finish();
  }
  plan.warmup_requests = fields.index("warmup_requests");
  plan.measured_requests = fields.index("measured_requests");
  plan.guard_bytes = fields.index("guard_bytes");
  plan.guard_value = static_cast<uint8_t>(fields.count("guard_value", 255));
  plan.readback = read_indices(fields, "readback");
  plan.trace = fields.flag("trace");
  plan.honour_arrivals = fields.flag("honour_arrivals");
  plan.judged = read_indices(fields, "judged");
  plan.counter_launches = read_indices(fields, "counter_launches");
  plan.counter_repeats = fields.index("counter_repeats");
  plan.placement = value_in(kPlacements, fields.text("placement", 16), "placement");
  plan.require_exact = fields.flag("require_exact");
  plan.speed = fields.number("speed");
  plan.live_blocks = fields.count("live_blocks");
  for (const json& item : fields.array("samples", kMaxItems)) {
    JsonFields sample(item, "sample");
    plan.samples.push_back({sample.index("call"), sample.index("node"), read_indices(sample, "buffers")});
    sample.finish();
  }
  fields.finish();
  return plan;
}

}  // namespace

void write_plan(const ReplayPlan& plan, const std::filesystem::path& directory) {
  json arms = json::array(), rounds = json::array();
  for (size_t i = 0; i < plan.arms.size(); ++i) arms.push_back(write_arm(plan.arms[i], i, directory));
  json samples = json::array();
  for (const auto& s : plan.samples) samples.push_back({{"call", s.call}, {"node", s.node}, {"buffers", s.buffers}});
  for (const auto& r : plan.rounds) rounds.push_back({{"arm", r.arm}, {"pair", r.pair}, {"round", r.round}});
  json value = {{"kgate_plan", kPlanVersion},
                {"mode", name_in(kModes, plan.mode)},
                {"workload", std::filesystem::absolute(plan.workload).string()},
                {"arms", arms},
                {"rounds", rounds},
                {"warmup_requests", plan.warmup_requests},
                {"measured_requests", plan.measured_requests},
                {"guard_bytes", plan.guard_bytes},
                {"guard_value", plan.guard_value},
                {"readback", plan.readback},
                {"trace", plan.trace},
                {"honour_arrivals", plan.honour_arrivals},
                {"judged", plan.judged},
                {"counter_launches", plan.counter_launches},
                {"counter_repeats", plan.counter_repeats},
                {"placement", name_in(kPlacements, plan.placement)},
                {"require_exact", plan.require_exact},
                {"speed", plan.speed},
                {"live_blocks", plan.live_blocks},
                {"samples", samples}};
  write_or_throw(directory / "plan.json", value.dump(-1, ' ', false, json::error_handler_t::replace));
}

Result<ReplayPlan> read_plan(const std::filesystem::path& directory) {
  auto path = directory / "plan.json";
  auto text = read_file(path, kMaxPlan);
  if (!text) return text.failure();
  try {
    return read_fields(json::parse(*text), directory);
  } catch (const BadField& bad) {
    return Failure{bad.what(), path.string(), {}};
  } catch (const json::exception& error) {
    return Failure{"not JSON: " + sanitize(error.what(), 200), path.string(), {}};
  }
}

}  // namespace kgate
