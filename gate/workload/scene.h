// What the calls of a YAML workload refer to: constants, modules, buffers. Read first; calls are expanded against it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "candidate/candidate.h"
#include "contract/expr.h"
#include "contract/yaml_schema.h"
#include "workload/workload.h"

namespace kgate::build {

struct SceneModule {
  std::string name;
  Candidate code;          // entries; `bytes` is the image that the driver loads
  uint32_t index = kNone;  // in Workload::modules, once a kernel of it is used
  bool broken = false;     // could not be read, which is noted: its kernels are no further problems
};

struct SceneBuffer {
  std::string name;
  uint32_t first = 0;  // in Workload::buffers; per-thread copies follow each other
  bool per_thread = false;
};

struct Scene {
  explicit Scene(yaml::Problems& p) : problems(p) {}

  yaml::Problems& problems;
  uint64_t seed = 0;
  Environment let;
  std::vector<SceneModule> modules;
  std::vector<SceneBuffer> buffers;
  Workload workload;  // modules, kernels, buffers and launches grow as they are used

  const SceneBuffer* buffer(std::string_view name) const;
  std::vector<std::string> buffer_names() const;
  bool taken(const std::string& name) const;  // by a constant or a buffer
};

// Each notes its problems and goes on.
void read_let(Scene& scene, const yaml::Node* node);
void read_modules(Scene& scene, const yaml::Node* node);
void read_buffers(Scene& scene, const yaml::Node* node);

// An integer expression within [low, high]; a problem otherwise. Unknown names get a did-you-mean over names and
// buffers.
std::optional<int64_t> evaluate(Scene& scene, const yaml::Node& node, const Environment& names, int64_t low,
                                int64_t high);
std::optional<int64_t> evaluate(Scene& scene, const yaml::Node& node, const Expr& expr, size_t offset,
                                const Environment& names, int64_t low, int64_t high);

// A number as the bytes of an element of dtype `dtype`, little-endian.
std::optional<std::string> encode_number(Scene& scene, const yaml::Node& node, std::string_view dtype);

// "00ff..." as bytes.
std::optional<std::string> decode_hex(Scene& scene, const yaml::Node& node);

}  // namespace kgate::build
