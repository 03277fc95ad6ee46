#include "trace/cupti_library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "support/text.h"
#include "trace/collector.h"

namespace kgate {

namespace trace {

namespace {

constexpr const char* kHint =
    "Set KGATE_CUPTI to libcupti.so.13 of a CUDA 13 toolkit (doctor shows which one is found).";

// 13.0 update 1 says 130001; before CUDA 13 the numbers ran 27, 28 (12.9) and below.
std::string version_text(uint32_t version) {
  if (version < 10'000) return "CUPTI of CUDA 12 or older (version " + std::to_string(version) + ")";
  return "CUPTI " + std::to_string(version / 10'000) + "." + std::to_string(version / 100 % 100);
}

}  // namespace

std::string CuptiLibrary::describe(gpu::CUptiResult result) const {
  const char* text = nullptr;
  if (cuptiGetResultString == nullptr || cuptiGetResultString(result, &text) != gpu::CUPTI_SUCCESS || text == nullptr)
    text = "error";
  return sanitize(text, 100) + " (" + std::to_string(result) + ")";
}

Result<CuptiLibrary> load_cupti(const std::string& path) {
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* reason = dlerror();
    return Failure{"cannot load CUPTI: " + sanitize(reason ? reason : "unknown reason"), path, kHint};
  }
  CuptiLibrary library;
  library.path = path;
  std::string missing;
#define KGATE_RESOLVE(name, parameters) \
  library.name = reinterpret_cast<gpu::CUptiResult(*) parameters>(dlsym(handle, #name));
#define KGATE_REQUIRE(name, parameters) \
  KGATE_RESOLVE(name, parameters)       \
  if (library.name == nullptr) missing = #name;
  KGATE_CUPTI_CALLS(KGATE_REQUIRE)
  KGATE_CUPTI_OPTIONAL_CALLS(KGATE_RESOLVE)
#undef KGATE_REQUIRE
#undef KGATE_RESOLVE
  if (!missing.empty()) return Failure{"not a CUPTI that kgate can use: it lacks " + missing, path, kHint};
  gpu::CUptiResult result = library.cuptiGetVersion(&library.version);
  if (result != gpu::CUPTI_SUCCESS)
    return Failure{"CUPTI does not tell its version: " + library.describe(result), path, kHint};
  if (library.version / 10'000 != gpu::kCuptiVersion / 10'000)
    return Failure{version_text(library.version) + " writes records that this kgate cannot read: it needs CUPTI 13",
                   path, kHint};
  return library;
}

}  // namespace trace

std::string find_cupti() {
  namespace fs = std::filesystem;
  constexpr const char* kName = "libcupti.so.13";
  if (const char* chosen = std::getenv("KGATE_CUPTI"))
    return chosen;  // a wrong one is reported by start(), not passed over
  std::vector<fs::path> toolkits;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* home = std::getenv(variable)) toolkits.emplace_back(home);
  for (const char* toolkit : {"/usr/local/cuda", "/usr/local/cuda-13", "/opt/cuda"}) toolkits.emplace_back(toolkit);
  std::error_code ignored;
  for (const fs::path& toolkit : toolkits)
    for (const char* folder : {"lib64", "extras/CUPTI/lib64", "targets/x86_64-linux/lib", "lib"})
      if (fs::path file = toolkit / folder / kName; fs::exists(file, ignored)) return file.string();
  if (void* handle = dlopen(kName, RTLD_LAZY | RTLD_LOCAL)) {
    dlclose(handle);
    return kName;
  }
  return {};
}

}  // namespace kgate
