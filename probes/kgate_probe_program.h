// The embedded eBPF object, loaded and attached: the one place that speaks to libbpf's loader and to bpf(2)'s links.
//
// Three ways to attach, best first: uprobe_multi in session mode (kernel 6.13), uprobe_multi entry and return (6.6,
// both need only CAP_BPF and CAP_PERFMON), perf uprobes (need CAP_SYS_ADMIN on most kernels). libbpf 1.1 knows only the
// last, so the links of the first two are made by bpf(2) itself.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "probes/kgate_probe_wire.h"
#include "support/error.h"

struct bpf_object;
struct bpf_link;
struct bpf_program;

namespace kgate::probe {

struct Watch {
  uint32_t process = 0;
  bool unprivileged = false;  // stop watching when it becomes a set-user-id program
  std::string library;        // path of the file that `targets` are offsets of
  std::vector<Target> targets;
  bool scheduler = true;
};

class Program {
 public:
  // Loads, measures what a hit costs, attaches. Mode::automatic: the first way that works.
  static Result<std::unique_ptr<Program>> attach(const Watch& watch, Mode mode);
  Program(const Program&) = delete;
  ~Program();

  Mode mode() const { return mode_; }
  double ns_per_hit() const { return ns_per_hit_; }
  int map(const char* name) const;  // its descriptor
  void detach();                    // the maps stay

 private:
  explicit Program(Mode mode) : mode_(mode) {}
  std::optional<Failure> load();
  std::optional<Failure> configure(uint32_t process, bool unprivileged);
  std::optional<Failure> check_pid_filter();
  std::optional<Failure> measure();
  std::optional<Failure> attach_calls(uint32_t process, const std::string& library, const std::vector<Target>& targets);
  std::optional<Failure> attach_perf(uint32_t process, const std::string& library, const std::vector<Target>& targets);
  std::optional<Failure> attach_tracepoints(bool scheduler);
  bpf_program* program(const char* name) const;

  Mode mode_;
  double ns_per_hit_ = 0;
  bpf_object* object_ = nullptr;
  std::vector<bpf_link*> links_;
  std::vector<Fd> raw_links_;
};

// A failed bpf(2) or libbpf call in words, with what libbpf complained about last and what would mend it.
Failure bpf_failure(const std::string& what, int error);

}  // namespace kgate::probe
