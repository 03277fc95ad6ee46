// kgate-compile: the process in which nvJitLink and NVRTC run, because both can crash, hang or eat memory on generated
// input and are libraries, not programs. It is started with limits by compile.cpp and is usable by hand:
//
//   kgate-compile nvjitlink IN.ptx OUT.cubin OPTION...        options of nvJitLinkCreate, e.g. -arch=sm_90
//   kgate-compile nvrtc IN.cu OUT.ptx NAME OPTION...          NAME is shown in messages
//   kgate-compile probe nvjitlink|nvrtc                       prints "path (version)"
//
// The log goes to stdout, after a line "compiler: ...". Exit: 0 done, 1 rejected, 3 the library cannot be loaded, 64 usage,
// 70 anything else.
#include <dlfcn.h>
#include <link.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "candidate/compiler_abi.h"
#include "candidate/toolkit.h"
#include "support/fd.h"

namespace kgate {
namespace {

constexpr int kRejected = 1, kLibraryMissing = 3, kUsage = 64, kInternal = 70;

class Library {
 public:
  // The first of `candidates` that loads; what dlopen said about the last one otherwise.
  static Result<Library> load(const std::string& stem, const char* variable) {
    std::string problem;
    for (const auto& path : library_candidates(stem, variable)) {
      if (void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return Library(handle);
      problem = ::dlerror();
    }
    return Failure{"cannot load lib" + stem + ": " + problem, {}, {}};
  }

  // `name`, else the same under the versions that the headers of CUDA 12 and 13 map it to.
  template <typename F>
  F* find(const std::string& name) const {
    if (void* symbol = ::dlsym(handle_, name.c_str())) return reinterpret_cast<F*>(symbol);
    for (const char* major : {"13", "12"})
      for (int minor = 9; minor >= 0; --minor) {
        std::string versioned = "__" + name + "_" + major + "_" + std::to_string(minor);
        if (void* symbol = ::dlsym(handle_, versioned.c_str())) return reinterpret_cast<F*>(symbol);
      }
    missing_ = name;
    return nullptr;
  }

  const std::string& missing() const { return missing_; }

  std::filesystem::path path() const {
    link_map* map = nullptr;
    if (::dlinfo(handle_, RTLD_DI_LINKMAP, &map) != 0 || !map) return {};
    std::error_code error;
    auto real = std::filesystem::canonical(map->l_name, error);
    return error ? std::filesystem::path(map->l_name) : real;
  }

 private:
  explicit Library(void* handle) : handle_(handle) {}
  void* handle_;
  mutable std::string missing_;
};

int lacks(const Library& library) {
  std::printf("error: %s has no %s\n", library.path().c_str(), library.missing().c_str());
  return kLibraryMissing;
}

void print_log(const std::string& log) {
  size_t end = log.find('\0');
  std::fwrite(log.data(), 1, end == std::string::npos ? log.size() : end, stdout);
}

int write_image(const std::string& path, const std::string& image) {
  auto written = write_file_atomic(path, image);
  if (written) return 0;
  std::printf("error: %s: %s\n", written.failure().where.c_str(), written.failure().what.c_str());
  return kInternal;
}

// Reads with a pair of "size, then bytes" functions, as both libraries have them.
template <typename SizeFunction, typename ReadFunction, typename Handle>
std::string fetch(SizeFunction* size_of, ReadFunction* read, Handle handle) {
  size_t size = 0;
  if (size_of(handle, &size) != 0 || size == 0) return {};
  std::string bytes(size, '\0');
  return read(handle, bytes.data()) == 0 ? bytes : std::string();
}

std::vector<const char*> pointers(const std::vector<std::string>& texts) {
  std::vector<const char*> result;
  for (const auto& text : texts) result.push_back(text.c_str());
  return result;
}

int run_nvjitlink(const std::string& in, const std::string& out, const std::vector<std::string>& options) {
  auto library = Library::load("nvJitLink", "KGATE_NVJITLINK");
  if (!library) return std::printf("error: %s\n", library.failure().what.c_str()), kLibraryMissing;
  auto* create = library->find<nvjitlink::Create>("nvJitLinkCreate");
  auto* add = library->find<nvjitlink::AddData>("nvJitLinkAddData");
  auto* complete = library->find<nvjitlink::Complete>("nvJitLinkComplete");
  auto* destroy = library->find<nvjitlink::Destroy>("nvJitLinkDestroy");
  auto* image_size = library->find<nvjitlink::GetSize>("nvJitLinkGetLinkedCubinSize");
  auto* image_read = library->find<nvjitlink::GetBytes>("nvJitLinkGetLinkedCubin");
  auto* error_size = library->find<nvjitlink::GetSize>("nvJitLinkGetErrorLogSize");
  auto* error_read = library->find<nvjitlink::GetBytes>("nvJitLinkGetErrorLog");
  auto* info_size = library->find<nvjitlink::GetSize>("nvJitLinkGetInfoLogSize");
  auto* info_read = library->find<nvjitlink::GetBytes>("nvJitLinkGetInfoLog");
  if (!create || !add || !complete || !destroy || !image_size || !image_read || !error_size || !error_read || !info_size ||
      !info_read)
    return lacks(*library);
  unsigned major = 0, minor = 0;
  if (auto* version = library->find<nvjitlink::Version>("nvJitLinkVersion")) version(&major, &minor);
  std::printf("compiler: nvJitLink %u.%u\n", major, minor);
  std::fflush(stdout);

  auto ptx = read_file(in);
  if (!ptx) return std::printf("error: %s\n", ptx.failure().what.c_str()), kInternal;
  auto texts = pointers(options);
  nvjitlink::Handle handle = nullptr;
  if (int code = create(&handle, static_cast<uint32_t>(texts.size()), texts.data()); code != 0) {
    std::printf("error: nvJitLinkCreate failed with %d (%s)\n", code, nvjitlink::result_name(code));
    return kRejected;
  }
  // A failed add is final: complete() would still succeed, with an empty image. The size counts the closing zero.
  int code = add(handle, nvjitlink::kInputPtx, ptx->c_str(), ptx->size() + 1, "candidate.ptx");
  if (code == 0) code = complete(handle);
  print_log(fetch(error_size, error_read, handle));
  print_log(fetch(info_size, info_read, handle));
  std::string image = code == 0 ? fetch(image_size, image_read, handle) : std::string();
  destroy(&handle);
  if (code == 0) return write_image(out, image);
  std::printf("error: nvJitLink failed with %d (%s)\n", code, nvjitlink::result_name(code));
  return kRejected;
}

// The toolkit that the library came from, seen from lib64/ or from targets/x86_64-linux/lib/.
void add_toolkit_headers(const Library& library, std::vector<std::string>& options) {
  auto root = library.path().parent_path().parent_path();
  for (int up = 0; up < 3 && !root.empty(); ++up, root = root.parent_path()) {
    auto include = root / "include";
    if (!std::filesystem::exists(include / "cuda_fp16.h")) continue;
    options.push_back("--include-path=" + include.string());
    if (std::filesystem::exists(include / "cccl")) options.push_back("--include-path=" + (include / "cccl").string());
    return;
  }
}

int run_nvrtc(const std::string& in, const std::string& out, const std::string& name, std::vector<std::string> options) {
  auto library = Library::load("nvrtc", "KGATE_NVRTC");
  if (!library) return std::printf("error: %s\n", library.failure().what.c_str()), kLibraryMissing;
  auto* create = library->find<nvrtc::Create>("nvrtcCreateProgram");
  auto* compile = library->find<nvrtc::Compile>("nvrtcCompileProgram");
  auto* log_size = library->find<nvrtc::GetSize>("nvrtcGetProgramLogSize");
  auto* log_read = library->find<nvrtc::GetBytes>("nvrtcGetProgramLog");
  auto* ptx_size = library->find<nvrtc::GetSize>("nvrtcGetPTXSize");
  auto* ptx_read = library->find<nvrtc::GetBytes>("nvrtcGetPTX");
  auto* destroy = library->find<nvrtc::Destroy>("nvrtcDestroyProgram");
  auto* version = library->find<nvrtc::Version>("nvrtcVersion");
  if (!create || !compile || !destroy || !log_size || !log_read || !ptx_size || !ptx_read || !version)
    return lacks(*library);
  int major = 0, minor = 0;
  version(&major, &minor);
  std::printf("compiler: NVRTC %d.%d\n", major, minor);
  std::fflush(stdout);

  add_toolkit_headers(*library, options);
  auto source = read_file(in);
  if (!source) return std::printf("error: %s\n", source.failure().what.c_str()), kInternal;
  nvrtc::Program program = nullptr;
  if (int code = create(&program, source->c_str(), name.c_str(), 0, nullptr, nullptr); code != 0) {
    std::printf("error: nvrtcCreateProgram failed with %d\n", code);
    return kInternal;
  }
  auto texts = pointers(options);
  int code = compile(program, static_cast<int>(texts.size()), texts.data());
  print_log(fetch(log_size, log_read, program));
  std::string ptx = code == 0 ? fetch(ptx_size, ptx_read, program) : std::string();
  destroy(&program);
  if (code != 0) {
    std::printf("error: nvrtcCompileProgram failed with %d\n", code);
    return kRejected;
  }
  while (ptx.ends_with('\0')) ptx.pop_back();
  return write_image(out, ptx);
}

int probe(const std::string& what) {
  bool nvrtc = what == "nvrtc";
  auto library = nvrtc ? Library::load("nvrtc", "KGATE_NVRTC") : Library::load("nvJitLink", "KGATE_NVJITLINK");
  if (!library) return std::fprintf(stderr, "error: %s\n", library.failure().what.c_str()), kLibraryMissing;
  unsigned major = 0, minor = 0;
  if (nvrtc) {
    auto* version = library->find<nvrtc::Version>("nvrtcVersion");
    if (!version) return lacks(*library);
    version(reinterpret_cast<int*>(&major), reinterpret_cast<int*>(&minor));
  } else {
    auto* version = library->find<nvjitlink::Version>("nvJitLinkVersion");
    if (!version) return lacks(*library);
    version(&major, &minor);
  }
  std::printf("%s (%u.%u)\n", library->path().c_str(), major, minor);
  return 0;
}

int run(const std::vector<std::string>& args) {
  if (args.size() == 2 && args[0] == "probe" && (args[1] == "nvjitlink" || args[1] == "nvrtc")) return probe(args[1]);
  if (args.size() >= 3 && args[0] == "nvjitlink") return run_nvjitlink(args[1], args[2], {args.begin() + 3, args.end()});
  if (args.size() >= 4 && args[0] == "nvrtc") return run_nvrtc(args[1], args[2], args[3], {args.begin() + 4, args.end()});
  std::fputs("usage: kgate-compile nvjitlink IN.ptx OUT.cubin OPTION...\n"
             "       kgate-compile nvrtc IN.cu OUT.ptx NAME OPTION...\n"
             "       kgate-compile probe nvjitlink|nvrtc\n",
             stderr);
  return kUsage;
}

}  // namespace
}  // namespace kgate

int main(int argc, char** argv) {
  // A crash must be seen as the signal that it is, also where a runtime (a sanitizer's) has put a handler of its own.
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) std::signal(signal, SIG_DFL);
  int code = kgate::run({argv + 1, argv + argc});
  return std::fflush(stdout) == 0 ? code : kgate::kInternal;
}
