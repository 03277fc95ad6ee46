// A run is one transaction on PATH.partial without journal or syncs: if anything goes wrong the file is worth nothing
// and is removed, so that durability inside the run would buy nothing. finish() syncs and renames.
#include "trace/store.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "support/fd.h"
#include "trace/functions.h"
#include "trace/query.h"
#include "trace/schema.h"
#include "trace/store_state.h"

namespace kgate {

using trace::Database;
using trace::Statement;

namespace {

[[noreturn]] void cannot_write(const std::filesystem::path& path, const std::string& why) {
  throw Error(Exit::environment, "cannot write the trace: " + why, path.string(),
              "Choose another place with --trace-out.");
}

void put_fact(const Database& database, const std::string& key, const std::string& value) {
  Statement(database, "INSERT OR REPLACE INTO run VALUES(?,?)").run(key, value);
}

trace::Ingest& writing(std::optional<trace::Ingest>& ingest, const std::filesystem::path& path) {
  if (!ingest) throw Error(Exit::internal, "the trace is finished and cannot be added to", path.string());
  return *ingest;
}

Database open_finished(const std::filesystem::path& path) {
  Database database = Database::open(path, Database::Mode::read_only).value_or_throw(Exit::environment);
  trace::register_functions(database);
  return database;
}

}  // namespace

TraceStore::TraceStore(std::unique_ptr<State> state) : state_(std::move(state)) {}

TraceStore::~TraceStore() {
  if (!state_->ingest) return;
  state_->ingest.reset();
  state_->database.reset();
  ::unlink(state_->partial.c_str());
}

std::unique_ptr<TraceStore> TraceStore::create(const std::filesystem::path& path, const RunInfo& info,
                                               const ArmKernels& kernels) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) cannot_write(path, "is a directory");
  if (kernels.judged_launch.size() > trace::kNoIndex) throw Error(Exit::internal, "too many launches", path.string());
  auto state = std::make_unique<State>();
  state->path = path;
  state->partial = path.string() + ".partial";
  state->plan = kernels;
  if (::unlink(state->partial.c_str()) != 0 && errno != ENOENT) cannot_write(state->partial, std::strerror(errno));
  auto database = Database::open(state->partial, Database::Mode::create);
  if (!database) cannot_write(state->partial, database.failure().what);
  state->database = std::move(*database);
  trace::create_schema(*state->database);
  trace::register_functions(*state->database);
  state->database->exec("BEGIN");
  put_fact(*state->database, "tier", info.tier);
  for (const auto& [key, value] : info.facts) put_fact(*state->database, key, value);
  if (kernels.sum_requests) put_fact(*state->database, kKernelTimeOf, kKernelTimeOfRequests);
  state->ingest.emplace(*state->database, state->plan, info);
  return std::unique_ptr<TraceStore>(new TraceStore(std::move(state)));
}

Result<std::unique_ptr<TraceStore>> TraceStore::open(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error))
    return Failure{error ? error.message() : "no such trace file", path.string(), {}};
  auto database = Database::open(path, Database::Mode::read_only);
  if (!database) return database.failure();
  try {
    if (auto checked = trace::check_schema(*database, path.string()); !checked) return checked.failure();
    trace::register_functions(*database);
  } catch (const Error& damaged) {
    return damaged.failure();
  }
  auto state = std::make_unique<State>();
  state->path = path;
  state->database = std::move(*database);
  return std::unique_ptr<TraceStore>(new TraceStore(std::move(state)));
}

void TraceStore::add_block(std::span<const std::byte> records, const std::vector<HostEvent>& host_events,
                           const std::vector<ProbeSymbol>& symbols, const ProbeHealth* probes,
                           const CollectorHealth* collector) {
  writing(state_->ingest, path()).add_block(records, host_events, symbols, probes, collector);
}

void TraceStore::add_process(const ProcessTrace& process) { writing(state_->ingest, path()).add_process(process); }

void TraceStore::add_health(const HealthRow& row) { writing(state_->ingest, path()).health().add(row); }

void TraceStore::set_fact(const std::string& key, const std::string& value) {
  trace::Ingest& ingest = writing(state_->ingest, path());
  if (key == "tier") ingest.set_tier(value);
  put_fact(*state_->database, key, value);
}

void TraceStore::add_gpu_state(const GpuStateRow& row) {
  writing(state_->ingest, path());
  auto number = [](const std::optional<uint32_t>& value) {
    return value ? std::optional<uint64_t>(*value) : std::nullopt;
  };
  Statement(*state_->database, "INSERT INTO gpu_states VALUES(?,?,?,?,?,?,?)")
      .run(row.round, number(row.sm_mhz), number(row.memory_mhz), number(row.celsius), number(row.milliwatts),
           row.clock_reasons, row.slowed);
}

void TraceStore::add_hardware(const HardwareRow& row) {
  writing(state_->ingest, path());
  Statement(*state_->database, "INSERT INTO hardware_counters VALUES(?,?,?,?,?,?,?,?)")
      .run(row.arm, row.launch, row.item, row.metric, row.value, row.valid, row.samples, row.note);
}

void TraceStore::add_verdict(const std::string& json) {
  writing(state_->ingest, path());
  Statement(*state_->database, "INSERT INTO verdicts VALUES(?)").run(json);
}

void TraceStore::finish() {
  trace::Ingest& ingest = writing(state_->ingest, path());
  ingest.finish();
  {
    Statement row(*state_->database, "INSERT INTO health VALUES(?,?,?,?)");
    for (const HealthRow& one : ingest.health().rows()) row.run(one.name, one.value, one.limit, one.note);
  }
  for (const auto& [key, value] : ingest.facts()) put_fact(*state_->database, key, value);
  put_fact(*state_->database, "finished", "1");
  trace::create_indexes(*state_->database);
  state_->database->exec("COMMIT");
  state_->ingest.reset();
  state_->database.reset();
  Fd file(::open(state_->partial.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file || ::fsync(file.get()) != 0 || ::rename(state_->partial.c_str(), state_->path.c_str()) != 0) {
    std::string why = std::strerror(errno);
    ::unlink(state_->partial.c_str());
    cannot_write(state_->path, why);
  }
  state_->database = open_finished(state_->path);
}

Result<std::monostate> TraceStore::query(const std::string& sql, const RowCallback& row) const {
  return trace::run_query(*state_->database, sql, row);
}

const std::filesystem::path& TraceStore::path() const { return state_->path; }

}  // namespace kgate
