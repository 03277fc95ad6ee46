#include "worker/faults.h"

namespace kgate::worker {

namespace {

void add_virtual_fault(FaultEvent& event, gpu::Driver* driver) {
  if (driver == nullptr || !driver->is_virtual()) return;
  auto fault = driver->last_fault();
  if (!fault || fault->code != event.code) return;
  event.kind = fault->kind;
  event.line = fault->line;
  event.statement = fault->statement;
}

}  // namespace

FaultEvent current_fault(const Position& position, gpu::Driver* driver) {
  FaultEvent event;
  event.stage = position.stage;
  event.arm = position.arm;
  event.request = position.request;
  event.launch = position.launch;
  try {
    throw;
  } catch (const gpu::GpuError& error) {
    event.code = error.code;
    event.name = error.name;
    event.detail = error.detail.empty() ? error.call : error.call + ": " + error.detail;
    add_virtual_fault(event, driver);
  } catch (const WorkerError& error) {
    event.name = error.name;
    event.detail = error.detail;
  } catch (const Error& error) {
    event.name = exit_name(error.code());
    event.detail = error.what();
    if (!error.failure().hint.empty()) event.detail += " (" + error.failure().hint + ")";
  } catch (const std::bad_alloc&) {
    event.name = "out of host memory";
  } catch (const std::exception& error) {
    event.name = "internal";
    event.detail = error.what();
  }
  return event;
}

}  // namespace kgate::worker
