// Tables hold integers and short texts as they were measured; whatever can be derived is a column of a view. A time
// that was not collected is NULL, never 0, so that no aggregate counts it.
#include "trace/schema.h"

#include <sqlite3.h>

namespace kgate::trace {

namespace {

constexpr const char* kTables = R"sql(
CREATE TABLE run(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE rounds(round INTEGER PRIMARY KEY, arm INTEGER NOT NULL, pair INTEGER NOT NULL, block INTEGER NOT NULL,
  begin_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL);
CREATE TABLE requests(round INTEGER NOT NULL, arm INTEGER NOT NULL, sequence INTEGER NOT NULL, request INTEGER NOT NULL,
  thread INTEGER NOT NULL, phase TEXT NOT NULL, arrival_ns INTEGER, due_ns INTEGER NOT NULL, issue_ns INTEGER NOT NULL,
  end_ns INTEGER NOT NULL, lag_ns INTEGER NOT NULL, quarantined INTEGER NOT NULL,
  service_ns INTEGER AS (end_ns - issue_ns) VIRTUAL, response_ns INTEGER AS (end_ns - arrival_ns) VIRTUAL);
CREATE TABLE kernel_names(kernel INTEGER PRIMARY KEY, kernel_name TEXT NOT NULL, kernel_id TEXT NOT NULL);
CREATE TABLE launch_classes(launch_class INTEGER PRIMARY KEY, kernel_name TEXT NOT NULL, label TEXT NOT NULL,
  pooled INTEGER NOT NULL);
CREATE TABLE kernels(round INTEGER, arm INTEGER, sequence INTEGER, request INTEGER, launch INTEGER, item INTEGER,
  launch_class INTEGER, phase TEXT NOT NULL, judged INTEGER NOT NULL, replaced INTEGER NOT NULL, kernel INTEGER NOT NULL,
  start_ns INTEGER, end_ns INTEGER, launch_begin_ns INTEGER, launch_end_ns INTEGER, launch_source TEXT,
  previous_end_ns INTEGER, thread INTEGER, stream INTEGER, device_stream INTEGER, context INTEGER, correlation_id INTEGER,
  registers INTEGER, static_shared INTEGER, dynamic_shared INTEGER, local_bytes INTEGER,
  grid_x INTEGER, grid_y INTEGER, grid_z INTEGER, block_x INTEGER, block_y INTEGER, block_z INTEGER);
CREATE TABLE api_calls(round INTEGER, arm INTEGER, sequence INTEGER, thread INTEGER NOT NULL, phase TEXT NOT NULL,
  name TEXT NOT NULL, start_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL, correlation_id INTEGER NOT NULL,
  return_value INTEGER NOT NULL, is_launch INTEGER NOT NULL, is_sync INTEGER NOT NULL, is_alloc INTEGER NOT NULL);
CREATE TABLE syncs(round INTEGER, arm INTEGER, type INTEGER NOT NULL, start_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL,
  correlation_id INTEGER NOT NULL, device_stream INTEGER, context INTEGER NOT NULL);
CREATE TABLE copies(round INTEGER, arm INTEGER, copy_kind INTEGER, bytes INTEGER NOT NULL, start_ns INTEGER NOT NULL,
  end_ns INTEGER NOT NULL, correlation_id INTEGER NOT NULL, device_stream INTEGER NOT NULL);
CREATE TABLE overheads(round INTEGER, arm INTEGER, kind INTEGER NOT NULL, thread INTEGER NOT NULL,
  start_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL);
CREATE TABLE host_calls(round INTEGER, arm INTEGER, thread INTEGER NOT NULL, name TEXT NOT NULL, use TEXT NOT NULL,
  begin_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL);
CREATE TABLE off_cpu(round INTEGER, arm INTEGER, thread INTEGER NOT NULL, begin_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL,
  state INTEGER NOT NULL, run_queue_ns INTEGER NOT NULL);
CREATE TABLE counters(round INTEGER NOT NULL, arm INTEGER NOT NULL, sequence INTEGER NOT NULL, launch INTEGER NOT NULL,
  item INTEGER NOT NULL, launch_class INTEGER NOT NULL, phase TEXT NOT NULL, judged INTEGER NOT NULL, kernel INTEGER NOT NULL,
  warp_instructions INTEGER, thread_instructions INTEGER, global_load_sectors INTEGER, global_store_sectors INTEGER,
  global_requests INTEGER, bank_conflicts INTEGER, divergent_branches INTEGER, barriers INTEGER, atomics INTEGER);
CREATE TABLE resources(arm INTEGER NOT NULL, kernel_name TEXT NOT NULL, kernel_id TEXT NOT NULL, launches INTEGER NOT NULL,
  registers INTEGER, static_shared INTEGER, dynamic_shared INTEGER, local_bytes INTEGER);
CREATE TABLE probes(name TEXT PRIMARY KEY, use TEXT NOT NULL, cost TEXT NOT NULL, file_offset INTEGER NOT NULL,
  hits INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE health(name TEXT PRIMARY KEY, value REAL NOT NULL, "limit" REAL NOT NULL, note TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE verdicts(json TEXT NOT NULL);
)sql";

constexpr const char* kViews = R"sql(
CREATE VIEW all_launches AS SELECT
  n.kernel_name AS kernel_name, n.kernel_id AS kernel_id, k.end_ns - k.start_ns AS duration_ns,
  k.launch_end_ns - k.launch_begin_ns AS launch_ns,
  MAX(0, k.start_ns - MAX(k.launch_end_ns, IFNULL(k.previous_end_ns, 0))) AS queue_ns,
  k.registers AS registers, k.static_shared AS static_shared, k.dynamic_shared AS dynamic_shared, k.local_bytes AS local_bytes,
  k.grid_x AS grid_x, k.grid_y AS grid_y, k.grid_z AS grid_z, k.block_x AS block_x, k.block_y AS block_y, k.block_z AS block_z,
  k.stream AS stream, k.round AS round, k.request AS request, k.launch_class AS launch_class,
  k.start_ns AS start_ns, k.end_ns AS end_ns, k.arm AS arm, k.phase AS phase, k.sequence AS sequence, k.launch AS launch,
  k.item AS item, k.judged AS judged, k.replaced AS replaced, k.thread AS thread,
  k.launch_begin_ns AS launch_begin_ns, k.launch_end_ns AS launch_end_ns
  FROM kernels k JOIN kernel_names n ON n.kernel = k.kernel;
CREATE VIEW kernel_launches AS SELECT * FROM all_launches
  WHERE phase = 'measured' AND (arm <> 0 OR (SELECT COUNT(DISTINCT arm) FROM rounds) = 1);
CREATE VIEW baseline_launches AS SELECT * FROM all_launches WHERE phase = 'measured' AND arm = 0;
)sql";

}  // namespace

void create_schema(Database& database) {
  database.exec(
      "PRAGMA page_size = 8192; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE;"
      "PRAGMA cache_size = -65536;");
  database.exec("PRAGMA application_id = " + std::to_string(kApplicationId));
  database.exec("PRAGMA user_version = " + std::to_string(kSchemaVersion));
  database.exec(kTables);
  database.exec(kViews);
}

Result<std::monostate> check_schema(const Database& database, const std::string& path) {
  sqlite3_stmt* raw = nullptr;
  if (sqlite3_prepare_v2(database.get(), "PRAGMA application_id", -1, &raw, nullptr) != SQLITE_OK ||
      sqlite3_step(raw) != SQLITE_ROW) {
    sqlite3_finalize(raw);
    return Failure{std::string("not a kgate trace: ") + sqlite3_errmsg(database.get()), path, {}};
  }
  int64_t id = sqlite3_column_int64(raw, 0);
  sqlite3_finalize(raw);
  if (id != kApplicationId)
    return Failure{"an SQLite file, but not a kgate trace", path, "Give the trace that kgate wrote (--trace-out)."};
  int64_t version = database.number("PRAGMA user_version");
  if (version != kSchemaVersion)
    return Failure{"trace format " + std::to_string(version) + ", this kgate reads " + std::to_string(kSchemaVersion),
                   path, "Record the trace again with this kgate, or read it with the one that wrote it."};
  if (database.number("SELECT COUNT(*) FROM run WHERE key = 'finished' AND value = '1'") != 1)
    return Failure{"the run that wrote this trace did not end", path,
                   "Run it again; an unfinished trace is not evidence."};
  return std::monostate{};
}

}  // namespace kgate::trace
