// Which code a launch ran: from the handle that it names to a kernel of the workload, with the image that holds it.
//
// A handle names a CUmodule or a CUlibrary where the recorder knows one; with lazy loading the driver makes the cubin
// later and says nothing of the library, so that what is left is the entry's name.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "workload/assemble_file.h"
#include "workload/assemble_timeline.h"
#include "workload/workload.h"

namespace kgate::assembly {

class Code {
 public:
  // Modules and kernels are added to `workload` as they are used.
  Code(const RecordFile& file, Workload& workload, Notes& notes);

  // Of a call, or of a graph's instantiation, that returned at `time`. Functions and modules are on file before the
  // calls of the thread that used them first, which the recorder collects: the order that counts is that of time.
  // Throws Error{environment} when its code is not there.
  uint32_t kernel(uint64_t function, uint64_t time);

 private:
  enum class Form { ptx, cubin, other };
  struct Image {
    recording::BlobRef blob;
    uint64_t module = 0, library = 0, load = 0;
    uint64_t time = 0;  // when it was loaded
    bool made_by_driver = false;
    bool looked_at = false;
    Form form = Form::other;
    std::set<std::string, std::less<>> entries;
  };
  void read_images();
  void look_at(Image& image);
  bool has(Image& image, std::string_view entry);
  std::string bytes(const Image& image) const;
  Image& find_image(const recording::FunctionRecord& function, const std::string& entry, uint64_t time);
  Image* newest(const std::string& entry, uint64_t time, bool made_by_driver,
                const std::function<bool(const Image&)>& belongs);
  void check_unique(const Image& chosen, const std::string& entry, uint64_t time);
  std::string portable(const Image& image, const recording::FunctionRecord& function, const std::string& entry);
  uint32_t module(Image& image, const recording::FunctionRecord& function, const std::string& entry);
  WorkloadKernel layout(const Record& record, Image& image, const std::string& entry);

  const RecordFile& file_;
  Workload& workload_;
  Notes& notes_;
  std::vector<Image> images_;                                 // in file order
  std::map<uint64_t, std::vector<const Record*>> functions_;  // by handle, in file order
  std::map<const Record*, uint32_t> kernels_;
  std::map<std::pair<uint32_t, std::string>, uint32_t> by_name_;  // module, entry
  std::map<std::string, uint32_t> modules_;                       // by SHA-256
};

}  // namespace kgate::assembly
