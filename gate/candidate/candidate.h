// A kernel to judge, as a file and as what was read from it without running anything.
//
// Enters: a path (.ptx, .cubin, .cu). Leaves: Candidate. It must not know about contracts, workloads or devices.
// Untrusted input: every length and offset is checked; what cannot be read is a Failure that says where.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "support/dim3.h"
#include "support/error.h"

namespace kgate {

enum class CodeKind { ptx, cubin, cuda_source };
const char* code_kind_name(CodeKind kind);  // "ptx", "cubin", "cuda"

struct EntryParam {
  std::string name;          // empty where the format has none (cubin)
  uint32_t offset = 0;       // bytes into the packed parameter block
  uint32_t size = 0;
  uint32_t align = 0;        // 0: unknown
};

struct Entry {
  std::string name;          // as the driver looks it up (mangled)
  std::vector<EntryParam> params;
  uint32_t param_bytes = 0;
  std::optional<Dim3> reqntid;          // .reqntid: the only block that may be launched
  std::optional<Dim3> maxntid;
  uint32_t static_shared = 0;           // bytes, without the 1 KiB that sm_90+ reserves
  std::optional<uint32_t> registers;    // cubin only
  std::optional<uint32_t> stack_bytes;  // cubin only: frame incl. spills
  std::optional<uint32_t> barriers;     // cubin only
  std::string kernel_id;     // SHA-256 over code, constants, relocations and callees; the same for the same machine code
  int line = 0;              // PTX line of the entry, 0 elsewhere
};

struct Candidate {
  std::filesystem::path path;
  CodeKind kind = CodeKind::ptx;
  std::string bytes;         // the file
  std::string sha256;        // of the file
  std::string version;       // PTX ".version", or the toolkit that made the cubin ("13.0"), if known
  std::string target;        // "sm_90a"
  std::vector<Entry> entries;  // empty for cuda_source until compiled

  // The entry called `name`; the only entry if `name` is empty. The failure lists the entries and a did-you-mean.
  Result<const Entry*> entry(const std::string& name) const;
};

// Decides by content (ELF magic, ".version"), not by suffix; .cu by suffix. HSACO, fatbin, archives and text that is neither
// are refused by name.
Result<Candidate> read_candidate(const std::filesystem::path& path);
Result<Candidate> parse_candidate(std::string bytes, const std::filesystem::path& shown_path, bool cuda_source = false);

}  // namespace kgate
