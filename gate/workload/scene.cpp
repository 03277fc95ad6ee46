#include "workload/scene.h"

#include <fmt/format.h>

#include "candidate/compile.h"
#include "support/hash.h"
#include "support/text.h"
#include "workload/limits.h"

namespace kgate::build {

using namespace cap;

using yaml::Node;

const SceneBuffer* Scene::buffer(std::string_view name) const {
  for (const SceneBuffer& buffer : buffers)
    if (buffer.name == name) return &buffer;
  return nullptr;
}

std::vector<std::string> Scene::buffer_names() const {
  std::vector<std::string> names;
  for (const SceneBuffer& buffer : buffers) names.push_back(buffer.name);
  return names;
}

bool Scene::taken(const std::string& name) const { return let.contains(name) || buffer(name); }

std::optional<int64_t> evaluate(Scene& scene, const Node& node, const Expr& expr, size_t offset,
                                const Environment& names, int64_t low, int64_t high) {
  bool known = true;
  for (const std::string& name : expr.names()) {
    if (names.contains(name)) continue;
    known = false;
    std::vector<std::string> candidates = scene.buffer_names();
    for (const auto& [key, value] : names) candidates.push_back(key);
    const auto near = did_you_mean(name, candidates);
    const auto column = static_cast<size_t>(std::max(1, expr.column_of(name)));
    scene.problems.add(yaml::inside(node, offset + column - 1), node,
                       scene.buffer(name) ? fmt::format("buffer '{}' is no number", name)
                                          : fmt::format("unknown name '{}'", sanitize(name, 64)),
                       near && !scene.buffer(name) ? fmt::format("did you mean '{}'?", *near)
                                                   : "a pointer is written NAME or NAME + BYTES");
  }
  if (!known) return std::nullopt;
  const Result<int64_t> value = expr.evaluate(names);
  if (!value) {
    scene.problems.add(node, value.failure());
    return std::nullopt;
  }
  if (*value >= low && *value <= high) return *value;
  scene.problems.add(node, fmt::format("{} is out of range: {} to {}", *value, low, high));
  return std::nullopt;
}

std::optional<int64_t> evaluate(Scene& scene, const Node& node, const Environment& names, int64_t low, int64_t high) {
  if (node.kind != Node::Kind::scalar) {
    scene.problems.add(node, "expected an integer or an expression");
    return std::nullopt;
  }
  const Result<Expr> expr = Expr::parse(node.text);
  if (!expr) {
    scene.problems.add(node, expr.failure());
    return std::nullopt;
  }
  return evaluate(scene, node, *expr, 0, names, low, high);
}

void read_let(Scene& scene, const Node* node) {
  if (!node) return;
  if (node->kind != Node::Kind::map) return scene.problems.add(*node, "expected a map of names to integers");
  for (const auto& [key, value] : node->entries) {
    if (!is_variable_name(key.text)) {
      scene.problems.add(key, "is not a name", "use letters, digits and '_'");
      continue;
    }
    const auto number = evaluate(scene, value, scene.let, INT64_MIN, INT64_MAX);
    scene.let[key.text] = number.value_or(1);  // known, so that its uses are not problems too
  }
}

namespace {

// The code as the driver takes it: CUDA C++ is compiled, PTX and cubins stay as they are.
Result<Candidate> loadable(const std::filesystem::path& path) {
  auto code = read_candidate(path);
  if (!code || code->kind != CodeKind::cuda_source) return code;
  CompileResult compiled = compile_cuda(code->bytes, path.string(), {});
  if (compiled.outcome != CompileOutcome::ok)
    return Failure{
        fmt::format("cannot compile: {}", compiled.first_error.empty() ? compiled.compiler : compiled.first_error),
        path.string(), "run NVRTC's own report with `kgate inspect`, or name a PTX file"};
  return parse_candidate(std::move(compiled.image), path);
}

}  // namespace

void read_modules(Scene& scene, const Node* node) {
  if (!node) return;
  if (node->kind != Node::Kind::map) return scene.problems.add(*node, "expected a map of module names to files");
  const std::filesystem::path folder = scene.problems.file().parent_path();
  for (const auto& [key, value] : node->entries) {
    const auto file = yaml::as_string(value, scene.problems, "a PTX, cubin or CUDA file");
    if (!is_variable_name(key.text)) scene.problems.add(key, "is not a name", "use letters, digits and '_'");
    scene.modules.push_back({key.text, {}, kNone, true});
    if (!file) continue;
    auto code = loadable(folder / *file);
    if (code) {
      scene.modules.back() = {key.text, std::move(*code), kNone, false};
    } else {
      const Failure& failure = code.failure();
      const bool names_file = failure.where.find(*file) != std::string::npos;
      scene.problems.add(value,
                         fmt::format("{}: {}", names_file ? failure.where : *file + " " + failure.where, failure.what),
                         failure.hint);
    }
  }
}

}  // namespace kgate::build
