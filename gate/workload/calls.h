// Expands the `request:` of a YAML workload into calls, for one thread and one choice of the varied names.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "workload/scene.h"

namespace kgate::build {

// Streams and events are numbered within the thread here; the builder places the threads' ranges behind each other when
// it knows how many each has.
class CallExpander {
 public:
  explicit CallExpander(Scene& scene) : scene_(scene) {}

  std::vector<Call> expand(const yaml::Node& request, uint32_t thread, const Environment& names);

  uint32_t streams() const { return streams_; }                              // a thread
  uint32_t events() const { return static_cast<uint32_t>(events_.size()); }  // a thread

 private:
  struct Place {
    uint32_t buffer = 0;
    uint64_t offset = 0;
  };

  void expand_list(const yaml::Node& list, const Environment& names);
  void expand_item(const yaml::Node& item, const Environment& names);
  void expand_repeat(const yaml::Node& node, const Environment& names);
  void expand_launch(const yaml::Node& node, const Environment& names);
  void expand_memory(CallKind kind, const yaml::Node& node, const Environment& names);
  void expand_event(CallKind kind, const yaml::Node& node, const Environment& names);
  void expand_sync(const yaml::Node& node, const Environment& names);
  void finish_call(Call call, yaml::Fields& fields, const Environment& names);

  // "name" or "name + bytes"; nullopt without a problem when the text does not begin with a buffer's name.
  bool names_buffer(const std::string& text) const;
  std::optional<Place> place(const yaml::Node& node, const Environment& names);

  struct Used {
    uint32_t kernel;
    const Entry* entry;
  };
  std::optional<Used> kernel(const yaml::Node& node);
  bool extent(const yaml::Node* node, const Environment& names, Dim3& out);
  void write_args(const yaml::Node& node, const Entry& entry, const Environment& names, LaunchSpec& launch);
  void write_arg(const yaml::Node& node, const EntryParam& param, const Environment& names, LaunchSpec& launch);
  uint32_t shared_launch(LaunchSpec launch);  // its index; equal launches are one

  Scene& scene_;
  uint32_t thread_ = 0;
  std::vector<Call> calls_;
  bool too_many_ = false;
  size_t rounds_ = 0;
  uint32_t streams_ = 1;
  std::map<std::string, uint32_t> events_;
  std::map<std::string, uint32_t> kernels_;   // "module.entry" → Workload::kernels
  std::map<std::string, uint32_t> launches_;  // bytes of a launch → Workload::launches
};

}  // namespace kgate::build
