// A file that passes has the tables of a workload and nothing else, so that the statements of the readers run on what
// they were written for. Bulk tables are left out of the check of the pages: they may be many gigabytes, and each of
// their rows is verified by a hash when it is read.
#include "workload/kgw_open.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "support/fd.h"
#include "support/text.h"
#include "workload/kgw.h"
#include "workload/kgw_schema.h"
#include "workload/limits.h"

namespace kgate::kgw {

namespace {

using Check = std::optional<Failure>;

uint32_t big_endian(const unsigned char* bytes) {
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | bytes[3];
}

Check check_version(int32_t version) {
  const std::string written = "format version " + std::to_string(version),
                    reads = "this kgate reads version " + std::to_string(kKgwVersion);
  if (version > kKgwVersion)
    return Failure{"written by a newer kgate (" + written + "); " + reads, "header",
                   "update kgate, or write the workload again with this one"};
  if (version == 1)
    return Failure{"has " + written + "; " + reads, "header", "write it again from the YAML that it was built from"};
  if (version != kKgwVersion) return Failure{"has " + written + "; " + reads, "header", {}};
  return {};
}

// Offsets in the database header: https://www.sqlite.org/fileformat.html, section 1.3.
Check check_header(const std::filesystem::path& path, uint64_t& file_bytes) {
  const auto bad = [](std::string what, std::string hint = {}) {
    return Failure{std::move(what), "header", std::move(hint)};
  };
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return bad(std::string("cannot open: ") + std::strerror(errno));
  struct stat st {};
  if (::fstat(fd.get(), &st) != 0 || !S_ISREG(st.st_mode)) return bad("is not a regular file");
  file_bytes = static_cast<uint64_t>(st.st_size);
  if (file_bytes > cap::kMaxFileBytes)
    return bad("is larger than " + format_bytes(static_cast<double>(cap::kMaxFileBytes)));
  unsigned char header[100];
  if (::pread(fd.get(), header, sizeof header, 0) != sizeof header) return bad("is too short for a workload file");
  if (std::memcmp(header, "SQLite format 3", 16) != 0) return bad("is not a workload file (.kgw)");
  if (big_endian(header + 68) != kKgwApplicationId)
    return bad("is an SQLite file, but not a workload", "a trace is read by `kgate query`");
  if (Check failed = check_version(static_cast<int32_t>(big_endian(header + 60)))) return failed;
  const uint32_t page = header[16] << 8 | header[17];
  const uint64_t bytes = uint64_t{page == 1 ? 65536 : page} * big_endian(header + 28);
  if (bytes != file_bytes) return bad("its length is not what its header says: it is cut off or damaged");
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

}  // namespace

Result<OpenedKgw> open_kgw(const std::filesystem::path& path) {
  uint64_t file_bytes = 0;
  if (Check failed = check_header(path, file_bytes)) return *failed;
  auto reader = SqliteReader::open(path);
  if (!reader) return reader.failure();
  if (Check failed = check_schema(*reader)) return *failed;
  return OpenedKgw{std::move(*reader), file_bytes};
}

std::optional<Failure> check_pages(const SqliteReader& reader) {
  for (const KgwTable& table : kKgwTables) {
    if (table.bulk) continue;
    SqliteCursor cursor(reader, "pages", std::string("PRAGMA quick_check(") + table.name + ")");
    std::string verdict;
    while (cursor.next() && verdict.empty()) verdict = cursor.text(0, 4096);
    if (cursor.failure()) return cursor.failure();
    if (verdict != "ok") return Failure{"the file is damaged: " + sanitize(verdict), "pages", {}};
  }
  return {};
}

Failure in_file(const Failure& failure, const std::filesystem::path& path) {
  const std::string inner = failure.where.empty() || failure.where == path.string() ? "" : failure.where + ": ";
  return Failure{inner + failure.what, path.string(), failure.hint};
}

}  // namespace kgate::kgw
