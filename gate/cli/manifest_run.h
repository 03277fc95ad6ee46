// A corpus with known answers: runs every entry through the gate and counts the right verdicts.
#pragma once

#include <filesystem>
#include <string>

#include "support/error.h"

namespace kgate::cli {

struct ManifestRequest {
  std::filesystem::path manifest;
  std::string device = "auto";
  std::string only;           // glob of names; empty: all
  std::filesystem::path out;  // one folder an entry below it
  bool json = false;
};

// Exit::pass when every entry that this device can see got its verdict, else Exit::regression. Nothing run is never a
// pass.
Exit run_manifest(const ManifestRequest& request);

}  // namespace kgate::cli
