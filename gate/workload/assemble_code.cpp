#include "workload/assemble_code.h"

#include <algorithm>
#include <functional>

#include "candidate/candidate.h"
#include "candidate/elf_view.h"
#include "candidate/ptx.h"
#include "candidate/sniff.h"
#include "support/hash.h"
#include "support/text.h"
#include "workload/limits.h"

namespace kgate::assembly {

using namespace recording;

Code::Code(const RecordFile& file, Workload& workload, Notes& notes) : file_(file), workload_(workload), notes_(notes) {
  read_images();
  for (const Record& record : file.records())
    if (record.head.kind == Kind::function)
      functions_[RecordFile::as<FunctionRecord>(record).function].push_back(&record);
}

void Code::read_images() {
  for (const Record& record : file_.records()) {
    if (record.head.kind != Kind::module || record.head.result != 0) continue;
    const auto module = RecordFile::as<ModuleRecord>(record);
    for (const bool made : {false, true}) {
      const BlobRef& blob = made ? module.cubin : module.image;
      if (blob.bytes == 0) continue;
      if (!file_.whole(blob) || blob.bytes > cap::kMaxBlobBytes) {
        notes_.add("the image of a module is cut off or too large");
        continue;
      }
      Image image;
      image.blob = blob;
      image.module = module.module, image.library = module.library, image.load = module.load;
      image.time = record.head.begin;
      image.made_by_driver = made;
      images_.push_back(std::move(image));
    }
  }
  // What one record of a load knows, the other one learns.
  std::map<uint64_t, std::pair<uint64_t, uint64_t>> by_load;
  for (const Image& image : images_) {
    if (image.load == 0) continue;
    auto& [module, library] = by_load[image.load];
    if (image.module != 0) module = image.module;
    if (image.library != 0) library = image.library;
  }
  for (Image& image : images_) {
    if (image.load == 0) continue;
    const auto& [module, library] = by_load[image.load];
    if (image.module == 0) image.module = module;
    if (image.library == 0) image.library = library;
  }
}

std::string Code::bytes(const Image& image) const {
  std::string bytes = file_.blob(image.blob);
  if (image.form == Form::ptx) bytes.resize(bytes.find_last_not_of('\0') + 1);  // PTX is handed over as a C string
  return bytes;
}

void Code::look_at(Image& image) {
  if (std::exchange(image.looked_at, true)) return;
  std::string bytes = file_.blob(image.blob);
  std::string_view text(bytes);
  const auto kind = sniff(text.substr(0, text.find_last_not_of('\0') + 1));
  if (!kind) return;
  if (*kind == CodeKind::cubin) {
    image.form = Form::cubin;
    const auto elf = ElfView::open(bytes);
    if (!elf) return;
    constexpr std::string_view kText = ".text.";
    for (const ElfSection& section : elf->sections())
      if (section.name.starts_with(kText)) image.entries.emplace(section.name.substr(kText.size()));
  } else if (*kind == CodeKind::ptx) {
    image.form = Form::ptx;
    const auto module = ptx::parse(text.substr(0, text.find_last_not_of('\0') + 1));
    if (!module) return notes_.add("the PTX of a module cannot be read: " + sanitize(module.failure().what, 200));
    for (const ptx::Function& function : module->functions)
      if (function.is_entry) image.entries.insert(function.name);
  }
}

bool Code::has(Image& image, std::string_view entry) {
  look_at(image);
  return image.entries.contains(entry);
}

// The latest image before `time` that has the entry and `belongs`.
Code::Image* Code::newest(const std::string& entry, uint64_t time, bool made_by_driver,
                          const std::function<bool(const Image&)>& belongs) {
  for (auto image = images_.rbegin(); image != images_.rend(); ++image)
    if (image->time <= time && image->made_by_driver == made_by_driver && belongs(*image) && has(*image, entry))
      return &*image;
  return nullptr;
}

Code::Image& Code::find_image(const FunctionRecord& function, const std::string& entry, uint64_t time) {
  const auto of_module = [&](const Image& image) { return function.module != 0 && image.module == function.module; };
  const auto of_library = [&](const Image& image) {
    return function.library != 0 && image.library == function.library;
  };
  const auto any = [](const Image&) { return true; };
  for (const bool made : {true, false}) {
    if (Image* found = newest(entry, time, made, of_module)) return *found;
    if (Image* found = newest(entry, time, made, of_library)) return *found;
    if (Image* found = newest(entry, time, made, any)) {
      check_unique(*found, entry, time);
      return *found;
    }
  }
  // A container that this kgate cannot look into, such as a fatbin: the driver can.
  for (auto image = images_.rbegin(); image != images_.rend(); ++image) {
    look_at(*image);
    if (image->time <= time && image->form == Form::other && (of_module(*image) || of_library(*image))) return *image;
  }
  throw Error(Exit::environment, "the code of kernel " + sanitize(entry, 200) + " was not seen being loaded", {},
              "a recording must begin with the program");
}

void Code::check_unique(const Image& chosen, const std::string& entry, uint64_t time) {
  const std::string code = sha256(bytes(chosen));
  for (Image& image : images_)
    if (image.time <= time && image.made_by_driver == chosen.made_by_driver && has(image, entry) &&
        sha256(bytes(image)) != code)
      return notes_.add("several modules hold a kernel " + sanitize(entry, 200) +
                        ", and nothing tells which of them ran: the one loaded last is taken");
}

// The program's own PTX of the same code.
std::string Code::portable(const Image& image, const FunctionRecord& function, const std::string& entry) {
  if (image.form == Form::ptx) return {};
  for (auto other = images_.rbegin(); other != images_.rend(); ++other) {
    const bool same = (image.load != 0 && other->load == image.load) ||
                      (image.module != 0 && other->module == image.module) ||
                      (image.library != 0 && other->library == image.library) ||
                      (function.library != 0 && other->library == function.library);
    if (!other->made_by_driver && same && has(*other, entry) && other->form == Form::ptx) return bytes(*other);
  }
  return {};
}

uint32_t Code::module(Image& image, const FunctionRecord& function, const std::string& entry) {
  WorkloadModule module;
  module.image = bytes(image);
  module.sha256 = sha256(module.image);
  const auto [at, fresh] = modules_.try_emplace(module.sha256, static_cast<uint32_t>(workload_.modules.size()));
  if (!fresh) return at->second;
  module.portable = portable(image, function, entry);
  const char* suffix = image.form == Form::ptx ? ".ptx" : image.form == Form::cubin ? ".cubin" : ".fatbin";
  module.name = "module-" + std::to_string(at->second) + suffix;
  workload_.modules.push_back(std::move(module));
  return at->second;
}

// From the record; where the driver did not say, from the code.
WorkloadKernel Code::layout(const Record& record, Image& image, const std::string& entry) {
  WorkloadKernel kernel;
  const auto function = RecordFile::as<FunctionRecord>(record);
  const std::string_view tail = RecordFile::tail(record, sizeof function);
  for (uint32_t i = 0; i < function.param_count; ++i) {
    uint32_t pair[2];
    std::memcpy(pair, tail.data() + size_t{i} * 8, sizeof pair);
    kernel.params.emplace_back(pair[0], pair[1]);
  }
  if (kernel.params.empty() && image.form != Form::other)
    if (auto code = parse_candidate(bytes(image), "module"))
      if (auto found = code->entry(entry))
        for (const EntryParam& param : (*found)->params) kernel.params.emplace_back(param.offset, param.size);
  std::sort(kernel.params.begin(), kernel.params.end());
  uint64_t end = 0;
  for (const auto& [offset, size] : kernel.params) end = std::max(end, uint64_t{offset} + size);
  if (end > cap::kMaxParamBytes)
    throw Error(Exit::bad_input, "kernel " + sanitize(entry, 200) + " has more parameters than CUDA allows",
                file_.path());
  kernel.param_bytes = static_cast<uint32_t>(end);
  kernel.entry = entry;
  return kernel;
}

uint32_t Code::kernel(uint64_t function, uint64_t time) {
  const Record* record = nullptr;
  if (const auto at = functions_.find(function); at != functions_.end()) {
    record = at->second.front();  // the recorder describes the kernels of a graph after the call that made it
    for (const Record* one : at->second)
      if (one->head.begin <= time) record = one;
    time = std::max(time, record->head.begin);
  }
  if (record == nullptr)
    throw Error(Exit::environment, "a kernel is launched whose name was not recorded", {},
                "a recording must begin with the program");
  if (const auto known = kernels_.find(record); known != kernels_.end()) return known->second;
  const auto info = RecordFile::as<FunctionRecord>(*record);
  const std::string entry(RecordFile::name(*record));
  Image& image = find_image(info, entry, time);
  const uint32_t in = module(image, info, entry);
  const auto [at, fresh] = by_name_.try_emplace({in, entry}, static_cast<uint32_t>(workload_.kernels.size()));
  if (fresh) {
    WorkloadKernel kernel = layout(*record, image, entry);
    kernel.module = in;
    workload_.kernels.push_back(std::move(kernel));
  }
  return kernels_[record] = at->second;
}

}  // namespace kgate::assembly
