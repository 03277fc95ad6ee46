#include "probes/record_modules.h"

#include <dlfcn.h>
#include <elf.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstring>

#include "support/fd.h"

namespace kgate::record {

using namespace gpu;
using namespace recording;

namespace {

constexpr uint32_t kFatbinMagic = 0xba55ed50, kFatbinWrapperMagic = 0x466243b1;
constexpr size_t kMaxImageBytes = size_t{4} << 30;
constexpr size_t kSmallImageBytes = 64 << 10;  // not worth a delay
constexpr size_t kMaxParams = 4096;

struct FatbinHeader {
  uint32_t magic;
  uint16_t version, header_bytes;
  uint64_t bytes;  // behind the header
};
struct FatbinWrapper {
  uint32_t magic, version;
  const void* fatbin;
};

// Sections lie anywhere; the header table usually comes first or last.
size_t elf_bytes(const void* image) {
  Elf64_Ehdr header;
  std::memcpy(&header, image, sizeof header);
  if (header.e_ident[EI_CLASS] != ELFCLASS64) return 0;
  const auto* base = static_cast<const std::byte*>(image);
  uint64_t end = sizeof header;
  end = std::max(end, header.e_shoff + uint64_t{header.e_shnum} * sizeof(Elf64_Shdr));
  end = std::max(end, header.e_phoff + uint64_t{header.e_phnum} * sizeof(Elf64_Phdr));
  if (header.e_shentsize != sizeof(Elf64_Shdr) && header.e_shnum != 0) return 0;
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    std::memcpy(&section, base + header.e_shoff + i * sizeof section, sizeof section);
    if (section.sh_type != SHT_NOBITS) end = std::max(end, section.sh_offset + section.sh_size);
  }
  return end <= kMaxImageBytes ? end : 0;
}

// Of a library's own data, which stays until the library goes.
bool is_static(const void* bytes) {
  Dl_info info{};
  return dladdr(bytes, &info) != 0 && info.dli_fname != nullptr;
}

}  // namespace

ImageExtent image_extent(const void* code) {
  if (code == nullptr) return {};
  uint32_t magic = 0;
  std::memcpy(&magic, code, sizeof magic);
  if (magic == kFatbinWrapperMagic) {
    FatbinWrapper wrapper;
    std::memcpy(&wrapper, code, sizeof wrapper);
    if (wrapper.fatbin == nullptr) return {};
    code = wrapper.fatbin;
    std::memcpy(&magic, code, sizeof magic);
  }
  if (magic == kFatbinMagic) {
    FatbinHeader header;
    std::memcpy(&header, code, sizeof header);
    if (header.bytes > kMaxImageBytes) return {};
    return {code, header.header_bytes + header.bytes};
  }
  if (std::memcmp(code, ELFMAG, SELFMAG) == 0) return {code, elf_bytes(code)};
  const auto first = *static_cast<const unsigned char*>(code);
  if (std::isprint(first) || std::isspace(first)) return {code, std::strlen(static_cast<const char*>(code))};
  return {};
}

// ---- images --------------------------------------------------------------------------------------------------------

// Two sums with different multipliers, word by word: the same image is loaded again and again.
Modules::Key Modules::key_of(const void* bytes, size_t size) {
  Key key{0xcbf29ce484222325, 0x9e3779b97f4a7c15, size};
  const auto* at = static_cast<const char*>(bytes);
  for (size_t i = 0; i < size; i += 8) {
    uint64_t word = 0;
    std::memcpy(&word, at + i, std::min<size_t>(8, size - i));
    key.a = (key.a ^ word) * 0x100000001b3;
    key.a ^= key.a >> 29;
    key.b = (key.b + word) * 0xd6e8feb86659fd93;
    key.b ^= key.b >> 32;
  }
  return key;
}

BlobRef Modules::keep(const void* bytes, size_t size) {
  if (size == 0) return {};
  const Key key = key_of(bytes, size);
  {
    std::lock_guard lock(mutex_);
    if (const auto at = images_.find(key); at != images_.end()) return at->second;
  }
  const BlobRef blob = output_.add_blob(bytes, size);
  std::lock_guard lock(mutex_);
  return images_.emplace(key, blob).first->second;
}

void Modules::put(Thread& thread, uint64_t module, uint64_t library, uint64_t load, BlobRef image, BlobRef cubin) {
  const uint64_t now = monotonic_ns();
  ModuleRecord record{
      {Kind::module, 0, sizeof record, thread.id, 0, sequence_++, now, now}, module, library, load, image, cubin};
  output_.append(&record, sizeof record);  // at once: launches of other threads may be next
}

bool Modules::loaded(Thread& thread, uint64_t module, uint64_t library, const void* code) {
  const ImageExtent image = image_extent(code);
  if (image.size == 0) return false;
  if (library != 0 && image.size > kSmallImageBytes && is_static(image.bytes)) {
    std::lock_guard lock(mutex_);
    deferred_[module | library] = {image, thread.load};
  } else {
    put(thread, module, library, thread.load, keep(image.bytes, image.size), {});
  }
  return true;
}

bool Modules::loaded_file(Thread& thread, uint64_t module, uint64_t library, const char* path) {
  auto content = read_file(path, kMaxImageBytes);
  if (!content || content->empty()) return false;
  put(thread, module, library, thread.load, keep(content->data(), content->size()), {});
  return true;
}

void Modules::compiled(Thread& thread, const char* cubin, size_t size) {
  if (cubin == nullptr || size == 0 || size > kMaxImageBytes) return;
  put(thread, 0, thread.load != 0 ? 0 : thread.module_library, thread.load, {}, keep(cubin, size));
}

void Modules::take_deferred(Thread& thread, uint64_t module, uint64_t library) {
  for (const uint64_t handle : {module, library}) {
    Deferred deferred;
    {
      std::lock_guard lock(mutex_);
      const auto at = handle != 0 ? deferred_.find(handle) : deferred_.end();
      if (at == deferred_.end()) continue;
      deferred = at->second;
      deferred_.erase(at);
    }
    put(thread, handle == module ? module : 0, handle == module ? 0 : library, deferred.load,
        keep(deferred.image.bytes, deferred.image.size), {});
  }
}

// Handles are given out again: launches so far must come before what the next owner of a handle is called.
void Modules::unloading(uint64_t module, uint64_t library) {
  threads_.flush_all();
  std::lock_guard lock(mutex_);
  deferred_.erase(module | library);
  std::erase_if(by_handle_, [&](const auto& entry) {
    const Function& f = *entry.second;
    const bool gone = (f.module == 0 && f.library == 0) || (module != 0 && f.module == module) ||
                      (library != 0 && f.library == library);
    if (gone) kernels_.erase(entry.first);
    return gone;
  });
  ++generation_;
}

// ---- functions -----------------------------------------------------------------------------------------------------

void Modules::is_kernel(uint64_t handle) {
  std::lock_guard lock(mutex_);
  kernels_.insert(handle);
}

// True: it has some. The driver ends the list with CUDA_ERROR_INVALID_VALUE; another error means that it does not tell.
bool Modules::read_params(Function& f, bool as_kernel) const {
  const auto function = reinterpret_cast<CUfunction>(f.handle);
  const auto kernel = reinterpret_cast<CUkernel>(f.handle);
  for (size_t i = 0; i < kMaxParams; ++i) {
    size_t offset = 0, size = 0;
    const CUresult result = as_kernel ? ask(driver_.cuKernelGetParamInfo, kernel, i, &offset, &size)
                                      : ask(driver_.cuFuncGetParamInfo, function, i, &offset, &size);
    if (result != CUDA_SUCCESS) {
      f.params_known |= i != 0 || result == CUDA_ERROR_INVALID_VALUE;
      break;
    }
    f.params.emplace_back(static_cast<uint32_t>(offset), static_cast<uint32_t>(size));
    f.param_bytes = std::max(f.param_bytes, static_cast<uint32_t>(offset + size));
  }
  return !f.params.empty();
}

// A CUfunction, or a CUkernel, which launches take as well: the driver knows one from the other and refuses the wrong
// question.
Function Modules::describe(Thread& thread, uint64_t handle, const char* symbol) {
  Function f;
  f.handle = handle;
  {
    std::lock_guard lock(mutex_);
    f.is_kernel = kernels_.contains(handle);
  }
  const auto function = reinterpret_cast<CUfunction>(handle);
  const auto kernel = reinterpret_cast<CUkernel>(handle);
  const char* name = nullptr;
  if (!f.is_kernel && ask(driver_.cuFuncGetName, &name, function) != CUDA_SUCCESS)
    f.is_kernel = ask(driver_.cuKernelGetName, &name, kernel) == CUDA_SUCCESS;
  else if (f.is_kernel && ask(driver_.cuKernelGetName, &name, kernel) != CUDA_SUCCESS)
    name = nullptr;
  if (name == nullptr) name = symbol;
  if (name != nullptr) f.name = name;
  CUmodule module = nullptr;
  CUlibrary library = nullptr;
  if (f.is_kernel && ask(driver_.cuKernelGetLibrary, &library, kernel) == CUDA_SUCCESS)
    thread.module_library = f.library = reinterpret_cast<uint64_t>(library);
  if (!f.is_kernel && ask(driver_.cuFuncGetModule, &module, function) == CUDA_SUCCESS)
    f.module = reinterpret_cast<uint64_t>(module);
  // Which of the two questions is right may not show in the name.
  if (!read_params(f, f.is_kernel) && read_params(f, !f.is_kernel)) f.is_kernel = !f.is_kernel;
  if (f.param_bytes > kMaxParamBytes) f.params_known = false, f.params.clear(), f.param_bytes = 0;
  return f;
}

void Modules::put(Thread& thread, const Function& f) {
  const uint64_t now = monotonic_ns();
  FunctionRecord record{};
  const size_t size = (sizeof record + f.params.size() * 8 + f.name.size() + 7) / 8 * 8;
  record.head = {Kind::function, 0, static_cast<uint32_t>(size), thread.id, 0, sequence_++, now, now};
  record.function = f.handle, record.module = f.module, record.library = f.library, record.is_kernel = f.is_kernel;
  record.param_count = static_cast<uint32_t>(f.params.size());
  record.name_length = static_cast<uint32_t>(f.name.size());
  std::vector<char> bytes(size);
  std::memcpy(bytes.data(), &record, sizeof record);
  for (size_t i = 0; i < f.params.size(); ++i) {
    const uint32_t pair[2] = {f.params[i].first, f.params[i].second};
    std::memcpy(bytes.data() + sizeof record + i * 8, pair, sizeof pair);
  }
  std::memcpy(bytes.data() + sizeof record + f.params.size() * 8, f.name.data(), f.name.size());
  output_.append(bytes.data(), size);
}

const Function& Modules::function(Thread& thread, uint64_t handle, const char* symbol) {
  const uint64_t generation = generation_;
  if (thread.functions_of != generation) {
    thread.functions.clear();
    thread.functions_of = generation;
  }
  if (const auto at = thread.functions.find(handle); at != thread.functions.end()) return *at->second;
  const Function* known = nullptr;
  {
    std::lock_guard lock(mutex_);
    if (const auto at = by_handle_.find(handle); at != by_handle_.end()) known = at->second;
  }
  if (known == nullptr) {
    Function described = describe(thread, handle, symbol);
    take_deferred(thread, described.module, described.library);
    put(thread, described);
    std::lock_guard lock(mutex_);
    const auto [at, fresh] = by_handle_.try_emplace(handle, nullptr);
    if (fresh) at->second = &functions_.emplace_back(std::move(described));
    known = at->second;
  }
  thread.functions.emplace(handle, known);
  return *known;
}

}  // namespace kgate::record
