// Reads a .kgw, which may come from anywhere. In this order: the file header, the schema to the letter, SQLite's own
// check of the pages, every table with every length checked before anything is allocated for it, the blobs' hashes,
// validate(), whether each chunk is there, and at last the identity that the writer stored. A file that passes is the
// workload that was written; the bytes of its chunks are verified when they are read.
#include <algorithm>
#include <new>

#include "workload/kgw.h"
#include "workload/kgw_chunks.h"
#include "workload/kgw_tables.h"

namespace kgate {

namespace {

using Check = std::optional<Failure>;

bool has_chunks(const Workload& workload) {
  const auto chunks = [](const auto& item) { return std::holds_alternative<ContentChunks>(item.content); };
  return std::any_of(workload.buffers.begin(), workload.buffers.end(), chunks) ||
         std::any_of(workload.payloads.begin(), workload.payloads.end(), chunks);
}

Check read_checked(const std::filesystem::path& path, Workload& workload) {
  const auto file = kgw::open_kgw(path);
  if (!file) return file.failure();
  if (Check failed = kgw::check_pages(file->reader)) return failed;
  if (Check failed = kgw::read_tables(*file, workload)) return failed;
  if (auto valid = validate(workload); !valid) return valid.failure();
  if (has_chunks(workload)) {
    if (Check failed = check_chunks(file->reader, workload)) return failed;
    workload.source = path;
  }
  if (workload_hash(workload) != workload.sha256)
    return Failure{"the content does not have the hash that the file states", "meta",
                   "the file was changed after it was written"};
  return {};
}

}  // namespace

Result<Workload> read_kgw(const std::filesystem::path& path) {
  Workload workload;
  Check failed;
  try {
    failed = read_checked(path, workload);
  } catch (const std::bad_alloc&) {
    failed = Failure{"there is not enough memory for its content", {}, {}};
  }
  if (!failed) return workload;
  return kgw::in_file(*failed, path);
}

}  // namespace kgate
