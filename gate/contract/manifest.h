// The corpus manifest: candidates with the verdict that each must get. `kgate check --manifest` runs them and prints a
// score.
//
//   kgate_manifest: 1
//   entries:
//     - name: softmax_off_by_one
//       candidate: bad/softmax_off_by_one.ptx
//       contract: ../../configs/softmax.yaml
//       expect:
//         virtual: {exit: 6, finding: out-of-bounds}
//         gpu: {skip: "the fault is not certain there"}
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "support/error.h"

namespace kgate {

// What one device must say: either a reason to skip, or an exit code and finding ids, one of which must be reported.
struct Expectation {
  std::optional<std::string> skip;
  Exit exit = Exit::pass;
  std::vector<std::string> findings;
};

struct ManifestEntry {
  std::string name;  // unique
  std::filesystem::path candidate, contract;
  std::optional<std::string> entry;                // kernel in the candidate; default: the contract's
  std::optional<Expectation> virtual_device, gpu;  // nullopt: the manifest says nothing, the entry is not run there
  std::string where;                               // file:line:column
};

struct Manifest {
  std::filesystem::path path;
  std::vector<ManifestEntry> entries;
};

// Throws Error{bad_input} that lists all problems. Paths inside are resolved against the file's folder.
Manifest read_manifest(const std::filesystem::path& path);
Manifest parse_manifest(const std::string& yaml, const std::filesystem::path& path);
std::string manifest_json_schema();

}  // namespace kgate
