// The tables of a .kgw file, for the writer, which creates them, and the reader, which accepts a file only if its
// schema is this text to the letter: no views, triggers, indexes, generated columns or checks of somebody else's can
// then run.
#pragma once

#include <array>
#include <cstdint>

namespace kgate {

struct KgwTable {
  const char* name;
  const char* sql;
  bool bulk = false;  // its pages are many; each row is verified by a hash when it is read
};

// `id` counts from 0 without holes; other tables refer to it. Absent references are NULL. u64 values are stored as the
// i64 of the same bits (only seeds can be negative). Order within a parent: `position`, counted from 0. Large values
// lie in tables that are searched by row id alone: SQLite reads the whole of a row to compare it with another key.
inline constexpr std::array kKgwTables = {
    KgwTable{"meta",
             "CREATE TABLE meta(id INTEGER PRIMARY KEY, name TEXT, arrivals TEXT, period_ns INTEGER, threads INTEGER, "
             "events INTEGER, blocking_sync INTEGER, addresses TEXT, sha256 TEXT)"},
    KgwTable{"origin",
             "CREATE TABLE origin(id INTEGER PRIMARY KEY, device TEXT, arch INTEGER, sm_count INTEGER, "
             "driver_version INTEGER, command TEXT, begun TEXT)"},
    KgwTable{"notes", "CREATE TABLE notes(id INTEGER PRIMARY KEY, note TEXT)"},
    KgwTable{"fidelity",
             "CREATE TABLE fidelity(id INTEGER PRIMARY KEY, device TEXT, blocks INTEGER, equal INTEGER, "
             "buffers INTEGER, exact INTEGER, shifted_equal INTEGER)"},
    KgwTable{"blobs", "CREATE TABLE blobs(id INTEGER PRIMARY KEY, sha256 TEXT, raw_bytes INTEGER, zstd BLOB)", true},
    KgwTable{"chunks", "CREATE TABLE chunks(id INTEGER PRIMARY KEY, zstd BLOB)", true},
    KgwTable{"chunk_names",
             "CREATE TABLE chunk_names(sha256 BLOB PRIMARY KEY, chunk INTEGER, raw_bytes INTEGER) WITHOUT ROWID"},
    KgwTable{"streams", "CREATE TABLE streams(id INTEGER PRIMARY KEY, kind TEXT, priority INTEGER)"},
    KgwTable{"modules", "CREATE TABLE modules(id INTEGER PRIMARY KEY, name TEXT, image INTEGER, portable INTEGER)"},
    KgwTable{"kernels",
             "CREATE TABLE kernels(id INTEGER PRIMARY KEY, module INTEGER, entry TEXT, param_bytes INTEGER)"},
    KgwTable{"kernel_params",
             "CREATE TABLE kernel_params(kernel INTEGER, position INTEGER, offset INTEGER, size INTEGER, "
             "PRIMARY KEY(kernel, position)) WITHOUT ROWID"},
    KgwTable{
        "buffers",
        "CREATE TABLE buffers(id INTEGER PRIMARY KEY, name TEXT, bytes INTEGER, align INTEGER, address INTEGER, "
        "written INTEGER, content TEXT, blob INTEGER, dtype TEXT, low REAL, high REAL, seed INTEGER, poison INTEGER, "
        "chunks BLOB, end_hashes BLOB)"},
    KgwTable{"payloads",
             "CREATE TABLE payloads(id INTEGER PRIMARY KEY, bytes INTEGER, content TEXT, blob INTEGER, chunks BLOB)"},
    KgwTable{
        "launches",
        "CREATE TABLE launches(id INTEGER PRIMARY KEY, kernel INTEGER, grid_x INTEGER, grid_y INTEGER, grid_z INTEGER, "
        "block_x INTEGER, block_y INTEGER, block_z INTEGER, cluster_x INTEGER, cluster_y INTEGER, cluster_z INTEGER, "
        "shared INTEGER, cooperative INTEGER, programmatic INTEGER, relocations INTEGER)"},
    KgwTable{"launch_data", "CREATE TABLE launch_data(id INTEGER PRIMARY KEY, raw_bytes INTEGER, zstd BLOB)"},
    KgwTable{"graphs", "CREATE TABLE graphs(id INTEGER PRIMARY KEY, nodes INTEGER)"},
    KgwTable{"graph_nodes",
             "CREATE TABLE graph_nodes(graph INTEGER, position INTEGER, kind TEXT, launch INTEGER, dst INTEGER, "
             "src INTEGER, dst_offset INTEGER, src_offset INTEGER, bytes INTEGER, row_count INTEGER, "
             "dst_pitch INTEGER, src_pitch INTEGER, value INTEGER, unit INTEGER, event INTEGER, "
             "PRIMARY KEY(graph, position)) WITHOUT ROWID"},
    KgwTable{"graph_edges",
             "CREATE TABLE graph_edges(graph INTEGER, node INTEGER, position INTEGER, after INTEGER, "
             "PRIMARY KEY(graph, node, position)) WITHOUT ROWID"},
    KgwTable{"requests", "CREATE TABLE requests(id INTEGER PRIMARY KEY, arrival_ns INTEGER, thread INTEGER)"},
    KgwTable{"calls",
             "CREATE TABLE calls(id INTEGER PRIMARY KEY, request INTEGER, kind TEXT, thread INTEGER, stream INTEGER, "
             "launch INTEGER, graph INTEGER, dst INTEGER, src INTEGER, dst_offset INTEGER, src_offset INTEGER, "
             "bytes INTEGER, row_count INTEGER, dst_pitch INTEGER, src_pitch INTEGER, value INTEGER, unit INTEGER, "
             "async INTEGER, pinned INTEGER, payload INTEGER, allocation INTEGER, event INTEGER, host_gap_ns INTEGER)"},
    KgwTable{"after_edges",
             "CREATE TABLE after_edges(call INTEGER, position INTEGER, after INTEGER, PRIMARY KEY(call, position)) "
             "WITHOUT ROWID"},
};

// launch_data: the launches in order, each as its parameter bytes and then, for each relocation, u32 parameter offset,
// u32 buffer, i64 delta, little-endian. A launch lies in one row whole; a row is closed once it holds this much.
constexpr uint64_t kLaunchDataRow = uint64_t{256} << 10;
constexpr uint64_t kMaxLaunchDataRow = uint64_t{1} << 20;
constexpr uint64_t kRelocationBytes = 16;

}  // namespace kgate
