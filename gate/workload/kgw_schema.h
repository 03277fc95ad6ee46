// The tables of a .kgw file, for the writer, which creates them, and the reader, which accepts a file only if its
// schema is this text to the letter: no views, triggers, indexes, generated columns or checks of somebody else's can
// then run.
#pragma once

#include <array>

namespace kgate {

struct KgwTable {
  const char* name;
  const char* sql;
};

// `id` counts from 0 without holes; other tables refer to it. Absent references are NULL. u64 values are stored as the
// i64 of the same bits (only buffers.seed can be negative). Order within a parent: `position`, counted from 0.
constexpr std::array kKgwTables = {
    KgwTable{"meta",
             "CREATE TABLE meta(id INTEGER PRIMARY KEY, name TEXT, arrivals TEXT, period_ns INTEGER, threads INTEGER, "
             "streams INTEGER, events INTEGER, blocking_sync INTEGER, sha256 TEXT)"},
    KgwTable{"blobs", "CREATE TABLE blobs(sha256 TEXT PRIMARY KEY, raw_bytes INTEGER, zstd BLOB) WITHOUT ROWID"},
    KgwTable{"modules", "CREATE TABLE modules(id INTEGER PRIMARY KEY, name TEXT, image TEXT)"},
    KgwTable{"kernels",
             "CREATE TABLE kernels(id INTEGER PRIMARY KEY, module INTEGER, entry TEXT, param_bytes INTEGER)"},
    KgwTable{"kernel_params",
             "CREATE TABLE kernel_params(kernel INTEGER, position INTEGER, offset INTEGER, size INTEGER, "
             "PRIMARY KEY(kernel, position)) WITHOUT ROWID"},
    KgwTable{
        "buffers",
        "CREATE TABLE buffers(id INTEGER PRIMARY KEY, name TEXT, bytes INTEGER, align INTEGER, address INTEGER, "
        "written INTEGER, content TEXT, blob TEXT, dtype TEXT, low REAL, high REAL, seed INTEGER, poison INTEGER)"},
    KgwTable{
        "launches",
        "CREATE TABLE launches(id INTEGER PRIMARY KEY, kernel INTEGER, grid_x INTEGER, grid_y INTEGER, grid_z INTEGER, "
        "block_x INTEGER, block_y INTEGER, block_z INTEGER, cluster_x INTEGER, cluster_y INTEGER, cluster_z INTEGER, "
        "shared INTEGER, params BLOB)"},
    KgwTable{"relocations",
             "CREATE TABLE relocations(launch INTEGER, position INTEGER, param_offset INTEGER, buffer INTEGER, delta "
             "INTEGER, "
             "PRIMARY KEY(launch, position)) WITHOUT ROWID"},
    KgwTable{"calls",
             "CREATE TABLE calls(id INTEGER PRIMARY KEY, kind TEXT, thread INTEGER, stream INTEGER, launch INTEGER, "
             "dst INTEGER, src INTEGER, dst_offset INTEGER, src_offset INTEGER, bytes INTEGER, value INTEGER, event "
             "INTEGER, "
             "host_gap_ns INTEGER)"},
    KgwTable{"after_edges",
             "CREATE TABLE after_edges(call INTEGER, position INTEGER, after INTEGER, PRIMARY KEY(call, position)) "
             "WITHOUT ROWID"},
    KgwTable{"requests",
             "CREATE TABLE requests(id INTEGER PRIMARY KEY, arrival_ns INTEGER, thread INTEGER, first_call INTEGER, "
             "call_count INTEGER)"},
};

}  // namespace kgate
