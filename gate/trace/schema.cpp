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
CREATE TABLE processes(process INTEGER NOT NULL, parent INTEGER, command TEXT NOT NULL, begin_ns INTEGER, end_ns INTEGER,
  cuda INTEGER NOT NULL, recorded INTEGER NOT NULL, probes INTEGER NOT NULL, round INTEGER);
CREATE TABLE requests(round INTEGER NOT NULL, arm INTEGER NOT NULL, sequence INTEGER NOT NULL, request INTEGER NOT NULL,
  thread INTEGER NOT NULL, phase TEXT NOT NULL, arrival_ns INTEGER, due_ns INTEGER NOT NULL, issue_ns INTEGER NOT NULL,
  end_ns INTEGER NOT NULL, lag_ns INTEGER NOT NULL, quarantined INTEGER NOT NULL,
  service_ns INTEGER AS (end_ns - issue_ns) VIRTUAL, response_ns INTEGER AS (end_ns - arrival_ns) VIRTUAL);
CREATE TABLE kernel_names(kernel INTEGER PRIMARY KEY, kernel_name TEXT NOT NULL, kernel_id TEXT NOT NULL,
  demangled TEXT NOT NULL);
CREATE TABLE launch_classes(launch_class INTEGER PRIMARY KEY, kernel_name TEXT NOT NULL, label TEXT NOT NULL,
  pooled INTEGER NOT NULL);
CREATE TABLE launch_shapes(shape INTEGER PRIMARY KEY, registers INTEGER NOT NULL, static_shared INTEGER NOT NULL,
  dynamic_shared INTEGER NOT NULL, local_bytes INTEGER NOT NULL,
  grid_x INTEGER NOT NULL, grid_y INTEGER NOT NULL, grid_z INTEGER NOT NULL,
  block_x INTEGER NOT NULL, block_y INTEGER NOT NULL, block_z INTEGER NOT NULL,
  cluster_x INTEGER NOT NULL, cluster_y INTEGER NOT NULL, cluster_z INTEGER NOT NULL);
CREATE TABLE kernels(round INTEGER, arm INTEGER, sequence INTEGER, request INTEGER, launch INTEGER, item INTEGER,
  launch_class INTEGER, phase TEXT NOT NULL, judged INTEGER NOT NULL, replaced INTEGER NOT NULL, kernel INTEGER NOT NULL,
  shape INTEGER, start_ns INTEGER, duration_ns INTEGER, launch_begin_ns INTEGER, launch_end_ns INTEGER, launch_source TEXT,
  previous_end_ns INTEGER, queue_ns INTEGER, process INTEGER, thread INTEGER, stream INTEGER, device_stream INTEGER,
  context INTEGER, correlation_id INTEGER, graph_id INTEGER, graph_node INTEGER,
  end_ns INTEGER AS (start_ns + duration_ns) VIRTUAL);
CREATE TABLE api_calls(round INTEGER, arm INTEGER, sequence INTEGER, process INTEGER, thread INTEGER NOT NULL,
  phase TEXT NOT NULL, name TEXT NOT NULL, start_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL,
  correlation_id INTEGER NOT NULL, return_value INTEGER NOT NULL, is_launch INTEGER NOT NULL, is_sync INTEGER NOT NULL,
  is_alloc INTEGER NOT NULL);
CREATE TABLE syncs(round INTEGER, arm INTEGER, sequence INTEGER, process INTEGER, thread INTEGER, phase TEXT NOT NULL,
  type INTEGER NOT NULL, start_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL, correlation_id INTEGER NOT NULL,
  device_stream INTEGER, context INTEGER NOT NULL);
CREATE TABLE copies(round INTEGER, arm INTEGER, process INTEGER, copy_kind INTEGER, bytes INTEGER NOT NULL,
  start_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL, correlation_id INTEGER NOT NULL, device_stream INTEGER NOT NULL,
  context INTEGER NOT NULL);
CREATE TABLE overheads(round INTEGER, arm INTEGER, process INTEGER, kind INTEGER NOT NULL, thread INTEGER NOT NULL,
  start_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL);
CREATE TABLE host_calls(round INTEGER, arm INTEGER, process INTEGER, thread INTEGER NOT NULL, name TEXT NOT NULL,
  use TEXT NOT NULL, begin_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL, blocked_ns INTEGER NOT NULL,
  preempted_ns INTEGER NOT NULL, run_queue_ns INTEGER NOT NULL,
  on_cpu_ns INTEGER AS (end_ns - begin_ns - blocked_ns - preempted_ns - run_queue_ns) VIRTUAL);
CREATE TABLE off_cpu(round INTEGER, arm INTEGER, process INTEGER, thread INTEGER NOT NULL, begin_ns INTEGER NOT NULL,
  end_ns INTEGER NOT NULL, state INTEGER NOT NULL, run_queue_ns INTEGER NOT NULL);
CREATE TABLE graphs(process INTEGER, graph_id INTEGER NOT NULL, time_ns INTEGER NOT NULL, kernels INTEGER NOT NULL,
  copies INTEGER NOT NULL, memsets INTEGER NOT NULL, others INTEGER NOT NULL, open INTEGER NOT NULL);
CREATE TABLE modules(process INTEGER, module INTEGER NOT NULL, time_ns INTEGER NOT NULL, bytes INTEGER NOT NULL,
  image INTEGER);
CREATE TABLE counters(round INTEGER NOT NULL, arm INTEGER NOT NULL, sequence INTEGER NOT NULL, launch INTEGER NOT NULL,
  item INTEGER NOT NULL, launch_class INTEGER NOT NULL, phase TEXT NOT NULL, judged INTEGER NOT NULL, kernel INTEGER NOT NULL,
  warp_instructions INTEGER, thread_instructions INTEGER, global_load_sectors INTEGER, global_store_sectors INTEGER,
  global_requests INTEGER, bank_conflicts INTEGER, divergent_branches INTEGER, barriers INTEGER, atomics INTEGER);
CREATE TABLE gpu_states(round INTEGER NOT NULL, sm_mhz INTEGER, memory_mhz INTEGER, celsius INTEGER,
  milliwatts INTEGER, clock_reasons TEXT NOT NULL, slowed INTEGER NOT NULL);
CREATE TABLE hardware_counters(arm INTEGER NOT NULL, launch INTEGER NOT NULL, item INTEGER NOT NULL,
  metric TEXT NOT NULL, value REAL NOT NULL, valid INTEGER NOT NULL, samples INTEGER NOT NULL, note TEXT NOT NULL);
CREATE TABLE resources(arm INTEGER NOT NULL, kernel_name TEXT NOT NULL, kernel_id TEXT NOT NULL, launches INTEGER NOT NULL,
  registers INTEGER, static_shared INTEGER, dynamic_shared INTEGER, local_bytes INTEGER);
CREATE TABLE probes(name TEXT PRIMARY KEY, use TEXT NOT NULL, cost TEXT NOT NULL, file_offset INTEGER NOT NULL,
  hits INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE health(name TEXT PRIMARY KEY, value REAL NOT NULL, "limit" REAL NOT NULL, note TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE verdicts(json TEXT NOT NULL);
)sql";

// Shape columns are subqueries, so that a statement that does not name them does not pay for them. With the names as
// the outer side and the index below, GROUP BY kernel_name reads the durations in order and sorts nothing; the arms are
// counted once a statement.
constexpr const char* kViews = R"sql(
CREATE VIEW all_launches AS SELECT
  n.kernel_name AS kernel_name, n.kernel_id AS kernel_id, n.demangled AS demangled, k.duration_ns AS duration_ns,
  k.launch_end_ns - k.launch_begin_ns AS launch_ns, k.queue_ns AS queue_ns,
  (SELECT registers FROM launch_shapes s WHERE s.shape = k.shape) AS registers,
  (SELECT static_shared FROM launch_shapes s WHERE s.shape = k.shape) AS static_shared,
  (SELECT dynamic_shared FROM launch_shapes s WHERE s.shape = k.shape) AS dynamic_shared,
  (SELECT local_bytes FROM launch_shapes s WHERE s.shape = k.shape) AS local_bytes,
  (SELECT grid_x FROM launch_shapes s WHERE s.shape = k.shape) AS grid_x,
  (SELECT grid_y FROM launch_shapes s WHERE s.shape = k.shape) AS grid_y,
  (SELECT grid_z FROM launch_shapes s WHERE s.shape = k.shape) AS grid_z,
  (SELECT block_x FROM launch_shapes s WHERE s.shape = k.shape) AS block_x,
  (SELECT block_y FROM launch_shapes s WHERE s.shape = k.shape) AS block_y,
  (SELECT block_z FROM launch_shapes s WHERE s.shape = k.shape) AS block_z,
  (SELECT cluster_x FROM launch_shapes s WHERE s.shape = k.shape) AS cluster_x,
  (SELECT cluster_y FROM launch_shapes s WHERE s.shape = k.shape) AS cluster_y,
  (SELECT cluster_z FROM launch_shapes s WHERE s.shape = k.shape) AS cluster_z,
  k.stream AS stream, k.round AS round, k.request AS request, k.launch_class AS launch_class,
  k.start_ns AS start_ns, k.start_ns + k.duration_ns AS end_ns, k.arm AS arm, k.phase AS phase, k.sequence AS sequence,
  k.launch AS launch, k.item AS item, k.judged AS judged, k.replaced AS replaced, k.process AS process,
  k.thread AS thread, k.launch_begin_ns AS launch_begin_ns, k.launch_end_ns AS launch_end_ns,
  k.device_stream AS device_stream, k.graph_id AS graph_id, k.graph_node AS graph_node
  FROM kernel_names n JOIN kernels k ON k.kernel = n.kernel;
CREATE VIEW kernel_launches AS SELECT * FROM all_launches
  WHERE phase = 'measured' AND arm >= (SELECT COUNT(DISTINCT arm) > 1 FROM rounds);
CREATE VIEW baseline_launches AS SELECT * FROM all_launches WHERE phase = 'measured' AND arm = 0;
)sql";

constexpr const char* kIndexes = R"sql(
CREATE INDEX kernel_names_by_name ON kernel_names(kernel_name, kernel);
CREATE INDEX kernels_by_name ON kernels(kernel, phase, arm, duration_ns);
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

void create_indexes(Database& database) { database.exec(kIndexes); }

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
