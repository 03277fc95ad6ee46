// Reads a .kgw, which may come from anywhere. In this order: the file header, the schema to the letter, SQLite's own
// check of the pages, every table with every length checked before anything is allocated for it, the blobs' hashes,
// validate(), and at last the identity that the writer stored. A file that passes is the workload that was written.
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <new>

#include "support/fd.h"
#include "support/hash.h"
#include "support/text.h"
#include "workload/kgw.h"
#include "workload/kgw_schema.h"
#include "workload/limits.h"
#include "workload/sqlite_reader.h"

namespace kgate {

using namespace cap;

namespace {

using Check = std::optional<Failure>;

constexpr off_t kMaxFileBytes = off_t{16} << 30;
constexpr size_t kHexHash = 64;

uint32_t big_endian(const unsigned char* bytes) {
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | bytes[3];
}

// Offsets in the database header: https://www.sqlite.org/fileformat.html, section 1.3.
Check check_header(const std::filesystem::path& path) {
  const auto bad = [](std::string what, std::string hint = {}) {
    return Failure{std::move(what), "header", std::move(hint)};
  };
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return bad(std::string("cannot open: ") + std::strerror(errno));
  struct stat st {};
  if (::fstat(fd.get(), &st) != 0 || !S_ISREG(st.st_mode)) return bad("is not a regular file");
  if (st.st_size > kMaxFileBytes) return bad("is larger than 16 GiB");
  unsigned char header[100];
  if (::pread(fd.get(), header, sizeof header, 0) != sizeof header) return bad("is too short for a workload file");
  if (std::memcmp(header, "SQLite format 3", 16) != 0) return bad("is not a workload file (.kgw)");
  if (big_endian(header + 68) != kKgwApplicationId)
    return bad("is an SQLite file, but not a workload", "a trace is read by `kgate query`");
  const auto version = static_cast<int32_t>(big_endian(header + 60));
  if (version > kKgwVersion)
    return bad("written by a newer kgate (format version " + std::to_string(version) + "); this one reads version " +
                   std::to_string(kKgwVersion),
               "update kgate, or write the workload again with this one");
  if (version != kKgwVersion)
    return bad("has format version " + std::to_string(version) + "; this kgate reads version 1");
  const uint32_t page = header[16] << 8 | header[17];
  const uint64_t bytes = uint64_t{page == 1 ? 65536 : page} * big_endian(header + 28);
  if (bytes != static_cast<uint64_t>(st.st_size))
    return bad("its length is not what its header says: it is cut off or damaged");
  return {};
}

Check check_schema(const SqliteReader& reader) {
  SqliteCursor cursor(reader, "schema", "SELECT type, name, tbl_name, sql FROM sqlite_schema");
  size_t found = 0;
  while (cursor.next()) {
    const std::string type = cursor.text(0, 16), name = cursor.text(1, 256), table = cursor.text(2, 256),
                      sql = cursor.text(3, 4096);
    if (cursor.failure()) break;
    if (found >= kKgwTables.size() || type != "table" || name != kKgwTables[found].name || table != name ||
        sql != kKgwTables[found].sql)
      cursor.fail(sanitize(type, 20) + " \"" + sanitize(name, 60) + "\" is not what a workload file has here");
    else
      ++found;
  }
  if (cursor.failure()) return cursor.failure();
  if (found != kKgwTables.size())
    return Failure{"table " + std::string(kKgwTables[found].name) + " is missing", "schema", {}};
  return {};
}

Check check_pages(const SqliteReader& reader) {
  SqliteCursor cursor(reader, "quick_check", "PRAGMA quick_check(1)");
  std::string verdict;
  while (cursor.next()) verdict = cursor.text(0, 4096);
  if (cursor.failure()) return cursor.failure();
  if (verdict != "ok") return Failure{"the file is damaged: " + sanitize(verdict), "pages", {}};
  return {};
}

class KgwReader {
 public:
  explicit KgwReader(const SqliteReader& reader) : reader_(reader) {}

  Check read(Workload& w) {
    using Step = Check (KgwReader::*)(Workload&);
    for (Step step : {&KgwReader::meta, &KgwReader::modules, &KgwReader::kernels, &KgwReader::kernel_params,
                      &KgwReader::buffers, &KgwReader::launches, &KgwReader::relocations, &KgwReader::calls,
                      &KgwReader::after_edges, &KgwReader::requests})
      if (Check failed = (this->*step)(w)) return failed;
    return {};
  }

 private:
  Check meta(Workload& w);
  Check modules(Workload& w);
  Check kernels(Workload& w);
  Check kernel_params(Workload& w);
  Check buffers(Workload& w);
  Check launches(Workload& w);
  Check relocations(Workload& w);
  Check calls(Workload& w);
  Check after_edges(Workload& w);
  Check requests(Workload& w);

  Content content(SqliteCursor& row);
  std::string blob(SqliteCursor& user, int column);
  void unpack(SqliteCursor& cursor, const std::string& hash, std::string& raw);

  // Rows whose first column counts from 0.
  template <typename Read>
  Check each(const char* table, size_t cap, Read read) {
    SqliteCursor row(reader_, table, std::string("SELECT * FROM ") + table + " ORDER BY id");
    while (row.next()) {
      if (row.row() >= cap) row.fail("there are more rows than the " + std::to_string(cap) + " that are read");
      if (row.u63(0) != row.row()) row.fail("id is not the row's number");
      if (!row.failure()) read(row);
    }
    return row.failure();
  }

  // Rows (parent, position, ...) of `parents` things; position counts from 0 within each.
  template <typename Read>
  Check each_child(const char* table, const char* parent, size_t parents, size_t cap, Read read) {
    SqliteCursor row(reader_, table, std::string("SELECT * FROM ") + table + " ORDER BY " + parent + ", position");
    uint32_t last = kNone, expected = 0;
    while (row.next()) {
      if (row.row() >= cap) row.fail("there are more rows than the " + std::to_string(cap) + " that are read");
      const uint32_t owner = row.u32(0), position = row.u32(1);
      if (owner >= parents) row.fail(std::string(parent) + " " + std::to_string(owner) + " does not exist");
      expected = owner == last ? expected + 1 : 0;
      last = owner;
      if (position != expected) row.fail("position is not the next one");
      if (!row.failure()) read(row, owner);
    }
    return row.failure();
  }

  const SqliteReader& reader_;
  uint64_t blob_bytes_ = 0;  // of all uses together: a small file must not fill the memory
};

Check KgwReader::meta(Workload& w) {
  Check failed = each("meta", 1, [&](SqliteCursor& row) {
    w.name = row.text(1, kMaxName);
    const std::string arrivals = row.text(2, 16);
    if (arrivals != "external" && arrivals != "closed") row.fail("arrivals is neither external nor closed");
    w.arrivals = arrivals == "external" ? Arrivals::external : Arrivals::closed;
    w.period_ns = row.u63(3);
    w.threads = row.u32(4);
    w.streams.resize(std::min<size_t>(row.u32(5), kMaxStreams + 1));
    w.events = row.u32(6);
    w.blocking_sync = row.flag(7);
    w.sha256 = row.text(8, kHexHash);
  });
  if (!failed && w.sha256.empty()) return Failure{"the row is missing", "meta", {}};
  return failed;
}

Check KgwReader::modules(Workload& w) {
  return each("modules", kMaxModules, [&](SqliteCursor& row) {
    WorkloadModule module;
    module.name = row.text(1, kMaxName);
    module.sha256 = row.text(2, kHexHash);
    module.image = blob(row, 2);
    w.modules.push_back(std::move(module));
  });
}

Check KgwReader::kernels(Workload& w) {
  return each("kernels", kMaxKernels, [&](SqliteCursor& row) {
    WorkloadKernel kernel;
    kernel.module = row.u32(1);
    kernel.entry = row.text(2, kMaxName);
    kernel.param_bytes = row.u32(3);
    w.kernels.push_back(std::move(kernel));
  });
}

Check KgwReader::kernel_params(Workload& w) {
  return each_child(
      "kernel_params", "kernel", w.kernels.size(), kMaxAllKernelParams,
      [&](SqliteCursor& row, uint32_t kernel) { w.kernels[kernel].params.emplace_back(row.u32(2), row.u32(3)); });
}

Content KgwReader::content(SqliteCursor& row) {
  const std::string kind = row.text(6, 16);
  const auto unused = [&](std::initializer_list<int> columns) {
    for (int column : columns) row.null(column);
  };
  if (kind == "bytes") {
    unused({8, 9, 10, 11, 12});
    return ContentBytes{blob(row, 7)};
  }
  if (kind == "random") {
    unused({7, 12});
    const auto seed = static_cast<uint64_t>(row.integer(11, INT64_MIN, INT64_MAX));
    return ContentRandom{row.text(8, 16), row.real(9), row.real(10), seed};
  }
  if (kind == "poison") {
    unused({7, 8, 9, 10, 11});
    return ContentPoison{static_cast<uint8_t>(row.integer(12, 0, 255))};
  }
  unused({7, 8, 9, 10, 11, 12});
  if (kind != "zeros") row.fail("unknown content \"" + sanitize(kind, 20) + "\"");
  return ContentZeros{};
}

Check KgwReader::buffers(Workload& w) {
  return each("buffers", kMaxBuffers, [&](SqliteCursor& row) {
    Buffer buffer;
    buffer.name = row.text(1, kMaxName);
    buffer.bytes = row.u63(2);
    buffer.align = row.u32(3);
    buffer.address = row.u63(4);
    buffer.written = row.flag(5);
    buffer.content = content(row);
    w.buffers.push_back(std::move(buffer));
  });
}

Check KgwReader::launches(Workload& w) {
  size_t param_bytes = 0;
  return each("launches", kMaxLaunches, [&](SqliteCursor& row) {
    LaunchSpec launch;
    launch.kernel = row.u32(1);
    launch.grid = {row.u32(2), row.u32(3), row.u32(4)};
    launch.block = {row.u32(5), row.u32(6), row.u32(7)};
    launch.cluster = {row.u32(8), row.u32(9), row.u32(10)};
    launch.shared = row.u32(11);
    const std::string_view params = row.blob(12, kMaxParamBytes);
    param_bytes += params.size();
    if (param_bytes > kMaxAllParamBytes) return row.fail("the parameter blocks are too large together");
    const auto* begin = reinterpret_cast<const std::byte*>(params.data());
    launch.params.assign(begin, begin + params.size());
    w.launches.push_back(std::move(launch));
  });
}

Check KgwReader::relocations(Workload& w) {
  return each_child(
      "relocations", "launch", w.launches.size(), kMaxAllRelocations, [&](SqliteCursor& row, uint32_t launch) {
        w.launches[launch].relocations.push_back({row.u32(2), row.u32(3), row.integer(4, INT64_MIN, INT64_MAX)});
      });
}

Check KgwReader::calls(Workload& w) {
  std::map<std::string, CallKind> kinds;
  for (int k = 0; k <= static_cast<int>(CallKind::context_sync); ++k)
    kinds[call_kind_name(static_cast<CallKind>(k))] = static_cast<CallKind>(k);
  return each("calls", kMaxCalls, [&](SqliteCursor& row) {
    Call call;
    const auto kind = kinds.find(row.text(1, 32));
    if (kind == kinds.end()) return row.fail("kind is unknown");
    call.kind = kind->second;
    call.thread = row.u32(2);
    call.stream = row.u32(3);
    call.launch = row.reference(4);
    call.dst = row.reference(5);
    call.src = row.reference(6);
    call.dst_offset = row.u63(7);
    call.src_offset = row.u63(8);
    call.bytes = row.u63(9);
    call.value = static_cast<uint8_t>(row.integer(10, 0, 255));
    call.event = row.reference(11);
    call.host_gap_ns = row.u63(12);
    w.calls.push_back(std::move(call));
  });
}

Check KgwReader::after_edges(Workload& w) {
  return each_child("after_edges", "call", w.calls.size(), kMaxAllAfter,
                    [&](SqliteCursor& row, uint32_t call) { w.calls[call].after.push_back(row.u32(2)); });
}

Check KgwReader::requests(Workload& w) {
  return each("requests", kMaxCalls, [&](SqliteCursor& row) {
    Request request{row.u63(1), row.u32(2), {}};
    const uint32_t first = row.u32(3), count = row.u32(4);
    if (first > w.calls.size() || count > w.calls.size() - first) return row.fail("its calls do not exist");
    for (uint32_t c = first; c < first + count; ++c) request.calls.push_back(c);
    w.requests.push_back(std::move(request));
  });
}

// The blob that `column` of `user` names. Its failures are about the blob, so they name it.
std::string KgwReader::blob(SqliteCursor& user, int column) {
  std::string raw;
  const std::string hash = user.text(column, kHexHash);
  if (user.failure()) return raw;
  if (hash.size() != kHexHash || hash.find_first_not_of("0123456789abcdef") != std::string::npos) {
    user.fail("its blob is not named by a SHA-256");
    return raw;
  }
  SqliteCursor cursor(reader_, "blobs", "SELECT raw_bytes, zstd FROM blobs WHERE sha256='" + hash + "'");
  if (cursor.next()) {
    unpack(cursor, hash, raw);
  } else if (!cursor.failure()) {
    cursor.fail("there is no blob " + hash);
  }
  if (cursor.failure()) user.fail("blob " + hash.substr(0, 12) + ": " + cursor.failure()->what);
  return raw;
}

void KgwReader::unpack(SqliteCursor& cursor, const std::string& hash, std::string& raw) {
  const auto size = static_cast<uint64_t>(cursor.integer(0, 0, kMaxBlobBytes));
  const std::string_view packed = cursor.blob(1, ZSTD_compressBound(kMaxBlobBytes));
  if (cursor.failure()) return;
  if (ZSTD_getFrameContentSize(packed.data(), packed.size()) != size)
    return cursor.fail("raw_bytes is not what the zstd frame says");
  blob_bytes_ += size;
  if (blob_bytes_ > kMaxAllBlobBytes) return cursor.fail("the contents are too large together");
  raw.resize(size);
  const size_t done = ZSTD_decompress(raw.data(), raw.size(), packed.data(), packed.size());
  if (ZSTD_isError(done) || done != size) return cursor.fail("does not decompress to its size");
  if (sha256(raw) != hash) cursor.fail("its content does not have the hash that names it");
}

Check read_checked(const std::filesystem::path& path, Workload& workload) {
  if (Check failed = check_header(path)) return failed;
  auto reader = SqliteReader::open(path);
  if (!reader) return reader.failure();
  if (Check failed = check_schema(*reader)) return failed;
  if (Check failed = check_pages(*reader)) return failed;
  if (Check failed = KgwReader(*reader).read(workload)) return failed;
  if (auto valid = validate(workload); !valid) return valid.failure();
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
  const std::string inner = failed->where.empty() || failed->where == path.string() ? "" : failed->where + ": ";
  return Failure{inner + failed->what, path.string(), failed->hint};
}

}  // namespace kgate
