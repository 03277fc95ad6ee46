// Buffers of a YAML workload: size from a tensor or in bytes, first content, one copy a thread where wanted.
#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "contract/grammar.h"
#include "support/fd.h"
#include "support/float_formats.h"
#include "support/text.h"
#include "workload/element.h"
#include "workload/limits.h"
#include "workload/random.h"
#include "workload/scene.h"

namespace kgate::build {

using namespace cap;

using yaml::Fields;
using yaml::Node;

namespace {

template <typename T>
std::string little_endian(T value) {
  std::string bytes(sizeof(T), '\0');
  const auto bits = std::bit_cast<std::conditional_t<
      sizeof(T) == 8, uint64_t,
      std::conditional_t<sizeof(T) == 4, uint32_t, std::conditional_t<sizeof(T) == 2, uint16_t, uint8_t>>>>(value);
  for (size_t i = 0; i < sizeof(T); ++i) bytes[i] = static_cast<char>(uint64_t{bits} >> (8 * i));
  return bytes;
}

std::string encode_real(std::string_view dtype, double value) {
  if (dtype == "f64") return little_endian(value);
  if (dtype == "f16") return little_endian(double_to_f16(value));
  if (dtype == "bf16") return little_endian(double_to_bf16(value));
  if (dtype == "e4m3") return little_endian(float_to_e4m3(static_cast<float>(value)));
  if (dtype == "e5m2") return little_endian(float_to_e5m2(static_cast<float>(value)));
  return little_endian(static_cast<float>(value));
}

}  // namespace

std::optional<std::string> encode_number(Scene& scene, const Node& node, std::string_view dtype) {
  const Element& element = *element_named(dtype);
  if (element.kind == ElementKind::floating) {
    const auto value = yaml::as_number(node, scene.problems, fmt::format("a number ({})", dtype));
    if (!value) return std::nullopt;
    if (*value >= element.lowest && *value <= element.highest) return encode_real(dtype, *value);
    scene.problems.add(node, fmt::format("{} does not fit {}", *value, dtype));
    return std::nullopt;
  }
  const int64_t low = element.lowest < 0 ? INT64_MIN >> (64 - 8 * element.bytes) : 0;
  const int64_t high = element.kind == ElementKind::boolean ? 1
                       : element.bytes == 8                 ? INT64_MAX
                                                            : static_cast<int64_t>(element.highest);
  const auto value = evaluate(scene, node, scene.let, low, high);
  if (!value) return std::nullopt;
  return little_endian(*value).substr(0, element.bytes);
}

std::optional<std::string> decode_hex(Scene& scene, const Node& node) {
  const std::string& text = node.text;
  static constexpr std::string_view digits = "0123456789abcdef";
  if (node.kind != Node::Kind::scalar || text.size() % 2 != 0 || text.empty() ||
      text.find_first_not_of(digits) != std::string::npos) {
    scene.problems.add(node, "expected bytes in hexadecimal", "write two of 0-9a-f a byte, in quotes");
    return std::nullopt;
  }
  std::string bytes;
  for (size_t i = 0; i < text.size(); i += 2)
    bytes += static_cast<char>(digits.find(text[i]) * 16 + digits.find(text[i + 1]));
  return bytes;
}

namespace {

struct BufferSpec {
  std::string dtype;  // empty when the size is given in bytes
  uint64_t bytes = 0;
  uint32_t align = 256;
  bool per_thread = false, constant = false;
  Content content = ContentZeros{};
};

void read_tensor(Scene& scene, const Node& node, BufferSpec& spec) {
  const auto tensor = yaml::as_tensor(node, scene.problems);
  if (!tensor) return;
  spec.dtype = dtype_name(tensor->dtype);
  spec.bytes = dtype_bytes(tensor->dtype);
  for (const yaml::TensorDim& dim : tensor->dims) {
    const auto size = evaluate(scene, node, dim.expr, dim.offset, scene.let, 1, int64_t{1} << 40);
    if (!size) return;
    if (spec.bytes > kMaxBufferBytes / static_cast<uint64_t>(*size))
      return scene.problems.add(node, "a buffer of more than 1 TiB");
    spec.bytes *= static_cast<uint64_t>(*size);
  }
}

std::optional<Content> read_uniform(Scene& scene, const Node& node, const std::string& dtype) {
  if (node.kind != Node::Kind::sequence || node.items.size() != 2) {
    scene.problems.add(node, "expected a range", "write [low, high]");
    return std::nullopt;
  }
  const auto low = yaml::as_number(node.items[0], scene.problems, "a number");
  const auto high = yaml::as_number(node.items[1], scene.problems, "a number");
  if (!low || !high) return std::nullopt;
  const Element& element = *element_named(dtype);
  const bool whole = element.kind == ElementKind::floating || (*low == std::floor(*low) && *high == std::floor(*high));
  if (*low <= *high && *low >= element.lowest && *high <= element.highest && std::isfinite(*high - *low) && whole)
    return ContentRandom{dtype, *low, *high, 0};
  scene.problems.add(node, fmt::format("[{}, {}] is not a range of {}", *low, *high, dtype));
  return std::nullopt;
}

std::optional<Content> read_values(Scene& scene, const Node& node, const std::string& dtype) {
  if (node.kind != Node::Kind::sequence) {
    scene.problems.add(node, "expected a list of numbers");
    return std::nullopt;
  }
  std::string bytes;
  for (const Node& item : node.items) bytes += encode_number(scene, item, dtype).value_or("");
  return ContentBytes{bytes};
}

std::optional<Content> read_content_file(Scene& scene, const Node& node) {
  const auto name = yaml::as_string(node, scene.problems, "a file");
  if (!name) return std::nullopt;
  auto bytes = read_file(scene.problems.file().parent_path() / *name, kMaxBlobBytes);
  if (bytes) return ContentBytes{std::move(*bytes)};
  scene.problems.add(node, fmt::format("{}: {}", bytes.failure().where, bytes.failure().what));
  return std::nullopt;
}

std::optional<Content> read_init(Scene& scene, const Node& node, const std::string& dtype) {
  if (node.kind == Node::Kind::scalar && node.text == "zeros") return ContentZeros{};
  if (node.kind == Node::Kind::scalar && node.text == "poison") return ContentPoison{};
  if (node.kind != Node::Kind::map || node.entries.size() != 1) {
    scene.problems.add(node, "expected a first content",
                       "write zeros, poison, {uniform: [low, high]}, {values: [...]}, {hex: ...} or {file: ...}");
    return std::nullopt;
  }
  Fields fields(node, scene.problems, "first content");
  const Node *uniform = fields.find("uniform"), *values = fields.find("values"), *hex = fields.find("hex"),
             *file = fields.find("file");
  fields.close();
  if ((uniform || values) && dtype.empty()) {
    scene.problems.add(node, "needs a dtype", "give the buffer's size as a tensor");
    return std::nullopt;
  }
  if (uniform) return read_uniform(scene, *uniform, dtype);
  if (values) return read_values(scene, *values, dtype);
  if (file) return read_content_file(scene, *file);
  if (!hex) return std::nullopt;
  const auto bytes = decode_hex(scene, *hex);
  return bytes ? std::optional<Content>(ContentBytes{*bytes}) : std::nullopt;
}

BufferSpec read_spec(Scene& scene, const Node& node) {
  BufferSpec spec;
  Fields fields(node, scene.problems, "buffer");
  const Node *tensor = fields.find("tensor"), *bytes = fields.find("bytes"), *init = fields.find("init");
  if (tensor) read_tensor(scene, *tensor, spec);
  if (bytes) spec.bytes = static_cast<uint64_t>(yaml::as_bytes(*bytes, scene.problems, "a size").value_or(1));
  if (node.kind == Node::Kind::map && !tensor == !bytes)
    scene.problems.add(node, "a buffer has either 'tensor' or 'bytes'");
  else if (bytes && (spec.bytes < 1 || spec.bytes > kMaxBufferBytes))
    scene.problems.add(*bytes, "is not a size between 1 byte and 1 TiB");
  if (const Node* align = fields.find("align")) {
    spec.align = static_cast<uint32_t>(evaluate(scene, *align, scene.let, 1, kMaxAlign).value_or(1));
    if (!std::has_single_bit(spec.align)) scene.problems.add(*align, "is not a power of two");
  }
  spec.per_thread = fields.boolean("per_thread").value_or(false);
  spec.constant = fields.boolean("constant").value_or(false);
  if (init && (tensor ? !spec.dtype.empty() : bytes != nullptr)) {
    if (auto content = read_init(scene, *init, spec.dtype)) spec.content = std::move(*content);
    const auto* given = std::get_if<ContentBytes>(&spec.content);
    if (given && given->bytes.size() > spec.bytes)
      scene.problems.add(*init, fmt::format("{} bytes do not fit a buffer of {}", given->bytes.size(), spec.bytes));
  }
  fields.close();
  if (spec.bytes == 0) spec.bytes = kMaxBufferBytes;  // a noted problem: places in it are no further ones
  return spec;
}

}  // namespace

void read_buffers(Scene& scene, const Node* node) {
  if (!node) return;
  if (node->kind != Node::Kind::map) return scene.problems.add(*node, "expected a map of buffer names to buffers");
  for (const auto& [key, value] : node->entries) {
    if (!is_variable_name(key.text)) scene.problems.add(key, "is not a name", "use letters, digits and '_'");
    if (scene.let.contains(key.text))
      scene.problems.add(key, fmt::format("'{}' is a constant too", key.text), "rename one");
    const BufferSpec spec = read_spec(scene, value);
    Workload& workload = scene.workload;
    scene.buffers.push_back({key.text, static_cast<uint32_t>(workload.buffers.size()), spec.per_thread});
    for (uint32_t t = 0; t < (spec.per_thread ? workload.threads : 1); ++t) {
      Buffer buffer;
      buffer.name = spec.per_thread ? fmt::format("{}[{}]", key.text, t) : key.text;
      buffer.bytes = spec.bytes;
      buffer.align = spec.align;
      buffer.written = !spec.constant;
      buffer.content = spec.content;
      if (auto* random = std::get_if<ContentRandom>(&buffer.content))
        random->seed = derived_seed(scene.seed, buffer.name);
      workload.buffers.push_back(std::move(buffer));
    }
  }
}

}  // namespace kgate::build
