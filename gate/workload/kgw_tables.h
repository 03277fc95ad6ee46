// The second half of reading a .kgw: its tables into a Workload. Every type, length and count is checked before
// anything is allocated for it; whether indices and ranges make sense is validate()'s.
#pragma once

#include "workload/kgw_open.h"
#include "workload/workload.h"

namespace kgate::kgw {

// Also sets workload.sha256, as the file states it. Throws std::bad_alloc.
std::optional<Failure> read_tables(const OpenedKgw& file, Workload& workload);

// Blobs and packed rows of launches. What they unpack to, counted once a use, has a limit: a small file must not fill
// the memory.
class Unpacker {
 public:
  explicit Unpacker(const OpenedKgw& file);

  // The blob that `column` of `user` names, and its SHA-256. Its failures become the user's and name the blob.
  std::string blob(SqliteCursor& user, int column);
  std::string blob(SqliteCursor& user, int column, std::string& hash);
  // One zstd frame of `raw_bytes` (first column) in the second; fails the cursor otherwise.
  void frame(SqliteCursor& cursor, int first_column, uint64_t max_bytes, std::string& raw);

 private:
  SqliteCursor blobs_;
  uint64_t limit_ = 0, used_ = 0;
};

// Called in this order by read_tables: launches need their kernels, calls the number of requests.
std::optional<Failure> read_launches(const OpenedKgw& file, Unpacker& unpacker, Workload& workload);
std::optional<Failure> read_graphs(const OpenedKgw& file, Workload& workload);
std::optional<Failure> read_calls(const OpenedKgw& file, Workload& workload);

// ---- rows ----------------------------------------------------------------------------------------------------------

// Rows whose first column counts from 0.
template <typename Read>
std::optional<Failure> each_row(const SqliteReader& reader, const char* table, size_t cap, Read read) {
  SqliteCursor row(reader, table, std::string("SELECT * FROM ") + table + " ORDER BY id");
  while (row.next()) {
    if (row.row() >= cap) row.fail("there are more rows than the " + std::to_string(cap) + " that are read");
    if (row.u63(0) != row.row()) row.fail("id is not the row's number");
    if (!row.failure()) read(row);
  }
  return row.failure();
}

// Rows (parent, position, ...) of `parents` things; position counts from 0 within each.
template <typename Read>
std::optional<Failure> each_child(const SqliteReader& reader, const char* table, const char* parent, size_t parents,
                                  size_t cap, Read read) {
  SqliteCursor row(reader, table, std::string("SELECT * FROM ") + table + " ORDER BY " + parent + ", position");
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

}  // namespace kgate::kgw
