#include "workload/assemble_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "workload/limits.h"

namespace kgate::assembly {

using namespace recording;

namespace {

constexpr size_t kMaxRecordBytes = size_t{8} << 30;  // of STEM.kgrec; a launch takes about 200

constexpr uint64_t padded(uint64_t bytes) { return (bytes + 7) / 8 * 8; }

// Of the fixed part. 0: no such kind.
size_t struct_bytes(Kind kind) {
  switch (kind) {
    case Kind::device:
      return sizeof(DeviceRecord);
    case Kind::note:
      return sizeof(NoteRecord);
    case Kind::module:
      return sizeof(ModuleRecord);
    case Kind::function:
      return sizeof(FunctionRecord);
    case Kind::stream:
      return sizeof(StreamRecord);
    case Kind::stream_destroyed:
    case Kind::event_destroyed:
    case Kind::graph_destroyed:
      return sizeof(HandleRecord);
    case Kind::alloc:
      return sizeof(AllocRecord);
    case Kind::free:
      return sizeof(FreeRecord);
    case Kind::launch:
      return sizeof(LaunchRecord);
    case Kind::copy:
      return sizeof(CopyRecord);
    case Kind::memset:
      return sizeof(MemsetRecord);
    case Kind::event_record:
    case Kind::event_wait:
    case Kind::event_sync:
    case Kind::event_query:
      return sizeof(EventRecord);
    case Kind::stream_sync:
    case Kind::stream_query:
    case Kind::host_function:
      return sizeof(StreamCallRecord);
    case Kind::context_sync:
    case Kind::range_pop:
      return sizeof(Head);
    case Kind::graph:
      return sizeof(GraphRecord);
    case Kind::graph_launch:
      return sizeof(GraphLaunchRecord);
    case Kind::range_push:
    case Kind::range_start:
    case Kind::range_end:
      return sizeof(RangeRecord);
    case Kind::slice_begin:
    case Kind::slice_end:
      return sizeof(SliceRecord);
    case Kind::snapshot:
      return sizeof(SnapshotRecord);
  }
  return 0;
}

std::string graph_problem(const Record& record) {
  const auto graph = RecordFile::as<GraphRecord>(record);
  std::string_view rest = RecordFile::tail(record, sizeof(GraphRecord));
  if (graph.node_count > rest.size() / sizeof(Node)) return "a graph has more nodes than its record has room for";
  for (uint32_t i = 0; i < graph.node_count; ++i) {
    if (rest.size() < sizeof(Node)) return "a graph's nodes leave its record";
    Node node;
    std::memcpy(&node, rest.data(), sizeof node);
    rest.remove_prefix(sizeof node);
    const uint64_t after = padded(uint64_t{node.after_count} * 4), params = padded(node.param_bytes);
    if (after > rest.size() || params > rest.size() - after) return "a graph's node leaves its record";
    for (uint32_t k = 0; k < node.after_count; ++k) {
      uint32_t before = 0;
      std::memcpy(&before, rest.data() + size_t{k} * 4, sizeof before);
      if (before >= i) return "a node of a graph depends on one that is not before it";
    }
    rest.remove_prefix(after + params);
  }
  return {};
}

// What a record says of its own variable part; empty: it fits.
std::string variable_problem(const Record& record) {
  const uint64_t bytes = record.head.bytes;
  switch (record.head.kind) {
    case Kind::note:
      return RecordFile::as<NoteRecord>(record).length > bytes - sizeof(NoteRecord) ? "a note leaves its record" : "";
    case Kind::function: {
      const auto function = RecordFile::as<FunctionRecord>(record);
      const uint64_t needed = uint64_t{function.param_count} * 8 + function.name_length;
      return needed > bytes - sizeof(FunctionRecord) ? "a function's parameters or name leave its record" : "";
    }
    case Kind::launch:
      return RecordFile::as<LaunchRecord>(record).param_bytes > bytes - sizeof(LaunchRecord)
                 ? "a launch's parameters leave its record"
                 : "";
    case Kind::range_push:
    case Kind::range_start:
      return RecordFile::as<RangeRecord>(record).length > bytes - sizeof(RangeRecord)
                 ? "a range's name leaves its record"
                 : "";
    case Kind::graph:
      return graph_problem(record);
    default:
      return {};
  }
}

}  // namespace

Result<RecordFile> RecordFile::open(const std::filesystem::path& records) {
  RecordFile file;
  file.path_ = records;
  auto content = read_file(records, kMaxRecordBytes);
  if (!content) return content.failure();
  file.content_ = std::move(*content);
  std::filesystem::path blobs = records;
  blobs.replace_extension(".blobs");
  file.blobs_ = Fd(::open(blobs.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (file.blobs_ && ::fstat(file.blobs_.get(), &status) == 0 && S_ISREG(status.st_mode))
    file.blob_bytes_ = static_cast<uint64_t>(status.st_size);
  if (auto indexed = file.index(); !indexed) return indexed.failure();
  return file;
}

Result<std::monostate> RecordFile::index() {
  const auto bad = [&](std::string what) {
    return Failure{std::move(what), path_.string(), "record the program again"};
  };
  FileHeader header{};
  if (content_.size() < sizeof header) return bad("is too short to be a recording");
  std::memcpy(&header, content_.data(), sizeof header);
  if (header.magic != kMagic) return bad("is not a recording");
  if (header.version != kVersion)
    return bad("is a recording of version " + std::to_string(header.version) + "; this kgate reads version " +
               std::to_string(kVersion));
  process_ = header.pid;
  const uint64_t there = content_.size() - sizeof header, used = std::min<uint64_t>(header.used_bytes, there);
  const auto* base = reinterpret_cast<const std::byte*>(content_.data()) + sizeof header;
  uint64_t at = 0;
  while (used - at >= sizeof(Head)) {
    Record record{{}, base + at, static_cast<uint32_t>(records_.size())};
    std::memcpy(&record.head, record.data, sizeof record.head);
    const auto here = [&] { return " (record " + std::to_string(record.position) + ")"; };
    const size_t fixed = struct_bytes(record.head.kind);
    if (fixed == 0)
      return bad("holds a record of the unknown kind " + std::to_string(static_cast<unsigned>(record.head.kind)) +
                 here());
    if (record.head.bytes < fixed || record.head.bytes % 8 != 0)
      return bad("holds a record of " + std::to_string(record.head.bytes) + " bytes, which its kind cannot have" +
                 here());
    if (record.head.bytes > used - at) break;
    if (std::string problem = variable_problem(record); !problem.empty()) return bad(problem + here());
    records_.push_back(record);
    at += record.head.bytes;
  }
  complete_ = header.complete == 1 && at == header.used_bytes;
  return std::monostate{};
}

std::string_view RecordFile::name(const Record& record) {
  switch (record.head.kind) {
    case Kind::note:
      return tail(record, sizeof(NoteRecord)).substr(0, as<NoteRecord>(record).length);
    case Kind::function: {
      const auto function = as<FunctionRecord>(record);
      return tail(record, sizeof(FunctionRecord)).substr(size_t{function.param_count} * 8, function.name_length);
    }
    default:
      return tail(record, sizeof(RangeRecord)).substr(0, as<RangeRecord>(record).length);
  }
}

void RecordFile::read_blob(uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t n = ::pread(blobs_.get(), out.data(), out.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0)
      throw Error(Exit::environment,
                  std::string("cannot read recorded bytes: ") + (n < 0 ? std::strerror(errno) : "they are gone"),
                  std::filesystem::path(path_).replace_extension(".blobs"));
    offset += static_cast<uint64_t>(n);
    out = out.subspan(static_cast<size_t>(n));
  }
}

std::string RecordFile::blob(const BlobRef& blob) const {
  std::string bytes(blob.bytes, '\0');
  read_blob(blob.offset, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

}  // namespace kgate::assembly
