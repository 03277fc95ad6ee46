// Messages as JSON lines. One function a message writes it and one reads it, side by side, so that the two cannot drift
// apart. Texts that come from the worker are cut and cleaned here: nothing behind this file has to remember that they
// are hostile.
#include "worker/protocol.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "support/text.h"
#include "worker/json_fields.h"

namespace kgate::worker {

using nlohmann::json;
using Type = Message::Type;

namespace {

constexpr std::pair<Type, const char*> kTypes[] = {
    {Type::hello, "hello"},       {Type::ready, "ready"},   {Type::start, "start"},   {Type::device, "device"},
    {Type::loaded, "loaded"},     {Type::placed, "placed"}, {Type::canary, "canary"}, {Type::go, "go"},
    {Type::progress, "progress"}, {Type::fault, "fault"},   {Type::done, "done"}};

constexpr size_t kMaxPath = 4096, kMaxText = 4000;
constexpr size_t kMaxNumbers = 64;

std::string clean(JsonFields& fields, const char* name) { return sanitize(fields.text(name, kMaxMessage), kMaxText); }

json write_hello(const Hello& h) {
  return {{"version", kProtocolVersion},
          {"library", h.library},
          {"ordinal", h.ordinal},
          {"plan", h.plan},
          {"record_bytes", h.record_bytes},
          {"readback_bytes", h.readback_bytes},
          {"cupti", h.cupti},
          {"collect",
           {{"kernels", h.collect.kernels},
            {"driver", h.collect.driver},
            {"sync", h.collect.sync},
            {"memory", h.collect.memory},
            {"overhead", h.collect.overhead}}}};
}

Collect read_collect(const json& value) {
  JsonFields fields(value, "collect");
  Collect collect{fields.flag("kernels"), fields.flag("driver"), fields.flag("sync"), fields.flag("memory"),
                  fields.flag("overhead")};
  fields.finish();
  return collect;
}

void require_version(JsonFields& fields) {
  auto version = fields.count("version");
  if (version != kProtocolVersion)
    throw BadField("protocol version " + std::to_string(version) + ", this kgate speaks " +
                   std::to_string(kProtocolVersion));
}

Hello read_hello(JsonFields& fields) {
  require_version(fields);
  return {.library = fields.text("library", kMaxPath),
          .ordinal = static_cast<int>(fields.integer("ordinal", 0, 4096)),
          .plan = fields.text("plan", kMaxPath),
          .record_bytes = fields.count("record_bytes"),
          .readback_bytes = fields.count("readback_bytes"),
          .cupti = fields.text("cupti", kMaxPath),
          .collect = read_collect(fields.object("collect"))};
}

json write_device(const gpu::DeviceProperties& d) {
  return {{"virtual", d.kind == gpu::DeviceKind::virtual_gpu},
          {"ordinal", d.ordinal},
          {"name", d.name},
          {"uuid", d.uuid},
          {"cc_major", d.cc_major},
          {"cc_minor", d.cc_minor},
          {"sm_count", d.sm_count},
          {"driver_version", d.driver_version},
          {"total_memory", d.total_memory},
          {"free_memory", d.free_memory},
          {"max_shared_per_block_optin", d.max_shared_per_block_optin},
          {"max_threads_per_block", d.max_threads_per_block},
          {"library", d.library}};
}

gpu::DeviceProperties read_device(JsonFields& fields) {
  auto small = [&](const char* name) { return static_cast<int>(fields.integer(name, 0, INT32_MAX)); };
  gpu::DeviceProperties d;
  d.kind = fields.flag("virtual") ? gpu::DeviceKind::virtual_gpu : gpu::DeviceKind::real;
  d.ordinal = small("ordinal");
  d.name = clean(fields, "name");
  d.uuid = clean(fields, "uuid");
  d.cc_major = small("cc_major");
  d.cc_minor = small("cc_minor");
  d.sm_count = small("sm_count");
  d.driver_version = small("driver_version");
  d.total_memory = fields.count("total_memory");
  d.free_memory = fields.count("free_memory");
  d.max_shared_per_block_optin = small("max_shared_per_block_optin");
  d.max_threads_per_block = small("max_threads_per_block");
  d.library = clean(fields, "library");
  return d;
}

json write_fault(const FaultEvent& f) {
  return {{"stage", f.stage},
          {"arm", f.arm},
          {"request", f.request},
          {"launch", f.launch},
          {"code", f.code},
          {"name", sanitize(f.name, kMaxText)},
          {"detail", sanitize(f.detail, kMaxText)},
          {"kind", f.kind},
          {"line", f.line},
          {"statement", sanitize(f.statement, kMaxText)}};
}

FaultEvent read_fault(JsonFields& fields) {
  FaultEvent f;
  f.stage = clean(fields, "stage");
  f.arm = fields.index("arm");
  f.request = fields.index("request");
  f.launch = fields.index("launch");
  f.code = static_cast<int>(fields.integer("code", INT32_MIN, INT32_MAX));
  f.name = clean(fields, "name");
  f.detail = clean(fields, "detail");
  f.kind = clean(fields, "kind");
  f.line = fields.index("line");
  f.statement = clean(fields, "statement");
  return f;
}

json write_health(const CollectorHealth& h) {
  return {{"library", h.library},
          {"cupti_version", h.cupti_version},
          {"dropped", h.dropped},
          {"forced", h.forced},
          {"invalid_times", h.invalid_times},
          {"unknown_records", h.unknown_records},
          {"buffers_exhausted", h.buffers_exhausted},
          {"clock_offset_begin", h.clock_offset_begin},
          {"clock_offset_end", h.clock_offset_end},
          {"clock_half_width", h.clock_half_width}};
}

CollectorHealth read_health(const json& value) {
  JsonFields fields(value, "done.health");
  CollectorHealth h;
  h.library = clean(fields, "library");
  h.cupti_version = fields.index("cupti_version");
  h.dropped = fields.count("dropped");
  h.forced = fields.count("forced");
  h.invalid_times = fields.count("invalid_times");
  h.unknown_records = fields.count("unknown_records");
  h.buffers_exhausted = fields.count("buffers_exhausted");
  h.clock_offset_begin = fields.integer("clock_offset_begin", INT64_MIN, INT64_MAX);
  h.clock_offset_end = fields.integer("clock_offset_end", INT64_MIN, INT64_MAX);
  h.clock_half_width = fields.count("clock_half_width");
  fields.finish();
  return h;
}

std::map<std::string, double> read_numbers(JsonFields& fields, std::initializer_list<const char*> required) {
  const json& object = fields.object("numbers");
  if (object.size() > kMaxNumbers) throw BadField("more than " + std::to_string(kMaxNumbers) + " numbers");
  std::map<std::string, double> numbers;
  for (const auto& [name, value] : object.items()) {
    if (!value.is_number()) throw BadField("number '" + sanitize(name, 60) + "' is none");
    double number = value.get<double>();
    if (!(number >= 0) || !std::isfinite(number))
      throw BadField("number '" + sanitize(name, 60) + "' is negative or not finite");
    numbers[sanitize(name, 256)] = number;
  }
  for (const char* name : required)
    if (!numbers.contains(name)) throw BadField(std::string("number '") + name + "' is missing");
  return numbers;
}

json body(const Message& m) {
  switch (m.type) {
    case Type::hello:
      return write_hello(m.hello);
    case Type::ready:
      return {{"version", kProtocolVersion}, {"pid", m.pid}};
    case Type::device:
      return write_device(m.device);
    case Type::loaded:
    case Type::placed:
    case Type::canary:
    case Type::progress:
      return {{"numbers", m.numbers}};
    case Type::fault:
      return write_fault(m.fault);
    case Type::done:
      return {{"collected", m.collected}, {"health", write_health(m.health)}};
    case Type::start:
    case Type::go:
      break;
  }
  return json::object();
}

Message read_body(Type type, JsonFields& fields) {
  Message m;
  m.type = type;
  switch (type) {
    case Type::hello:
      m.hello = read_hello(fields);
      break;
    case Type::ready:
      require_version(fields);
      m.pid = static_cast<int>(fields.integer("pid", 1, INT32_MAX));
      break;
    case Type::device:
      m.device = read_device(fields);
      break;
    case Type::loaded:
      m.numbers = read_numbers(fields, {});
      break;
    case Type::placed:
      m.numbers = read_numbers(fields, {"wanted", "exact"});
      break;
    case Type::canary:
      m.numbers = read_numbers(fields, {"launches", "syncs", "begin", "end"});
      break;
    case Type::progress:
      m.numbers = read_numbers(fields, {"round"});
      break;
    case Type::fault:
      m.fault = read_fault(fields);
      break;
    case Type::done:
      m.collected = fields.flag("collected");
      m.health = read_health(fields.object("health"));
      break;
    case Type::start:
    case Type::go:
      break;
  }
  return m;
}

}  // namespace

const char* message_type_name(Type type) {
  for (auto [known, name] : kTypes)
    if (known == type) return name;
  return "?";
}

std::string encode(const Message& message) {
  json value = body(message);
  value["type"] = message_type_name(message.type);
  return value.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

Result<Message> decode(const std::string& line) {
  try {
    json value = json::parse(line);
    JsonFields fields(value, "message");
    std::string type = fields.text("type", 64);
    for (auto [known, name] : kTypes) {
      if (type != name) continue;
      Message message = read_body(known, fields);
      fields.finish();
      return message;
    }
    return Failure{"unknown message type '" + sanitize(type, 60) + "'", {}, {}};
  } catch (const BadField& bad) {
    return Failure{bad.what(), {}, {}};
  } catch (const json::exception&) {
    return Failure{"not JSON: '" + sanitize(line, 120) + "'", {}, {}};
  }
}

}  // namespace kgate::worker
