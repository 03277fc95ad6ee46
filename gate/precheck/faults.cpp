// The table from driver errors and virtual-GPU faults to finding ids. Names of CUDA errors are the driver API's.

#include "precheck/faults.h"

#include <fmt/format.h>

#include "support/text.h"

namespace kgate {

namespace {

struct VirtualKind {
  std::string_view kind;
  const char* id;
  Exit exit;
};
constexpr VirtualKind kVirtualKinds[] = {
    {"out_of_bounds", "out_of_bounds", Exit::broken},
    {"misaligned", "misaligned", Exit::broken},
    {"unsupported", "not_executed", Exit::environment},
    {"barrier_misuse", "barrier_misuse", Exit::broken},
    {"deadlock", "hang", Exit::broken},
    {"budget_exhausted", "hang", Exit::broken},
    {"trap", "trap", Exit::broken},
    {"bad_launch", "launch", Exit::broken},
    {"illegal_instruction", "crash", Exit::broken},
};

struct DriverCode {
  int code;
  const char* id;
  Exit exit;
};
constexpr DriverCode kDriverCodes[] = {
    {2, "out_of_memory", Exit::environment},   // CUDA_ERROR_OUT_OF_MEMORY
    {100, "no_device", Exit::environment},     // CUDA_ERROR_NO_DEVICE
    {200, "load", Exit::broken},               // CUDA_ERROR_INVALID_IMAGE
    {209, "load", Exit::broken},               // CUDA_ERROR_NO_BINARY_FOR_GPU
    {218, "load", Exit::broken},               // CUDA_ERROR_INVALID_PTX
    {222, "load", Exit::broken},               // CUDA_ERROR_UNSUPPORTED_PTX_VERSION
    {500, "load", Exit::broken},               // CUDA_ERROR_NOT_FOUND
    {700, "out_of_bounds", Exit::broken},      // CUDA_ERROR_ILLEGAL_ADDRESS
    {701, "launch", Exit::broken},             // CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES
    {702, "hang", Exit::broken},               // CUDA_ERROR_LAUNCH_TIMEOUT
    {710, "trap", Exit::broken},               // CUDA_ERROR_ASSERT
    {715, "crash", Exit::broken},              // CUDA_ERROR_ILLEGAL_INSTRUCTION
    {716, "misaligned", Exit::broken},         // CUDA_ERROR_MISALIGNED_ADDRESS
    {717, "out_of_bounds", Exit::broken},      // CUDA_ERROR_INVALID_ADDRESS_SPACE
    {718, "out_of_bounds", Exit::broken},      // CUDA_ERROR_INVALID_PC
    {719, "crash", Exit::broken},              // CUDA_ERROR_LAUNCH_FAILED
    {801, "not_executed", Exit::environment},  // CUDA_ERROR_NOT_SUPPORTED
    {1, "launch", Exit::broken},               // CUDA_ERROR_INVALID_VALUE
};

Finding of_fault(const worker::FaultEvent& fault) {
  Finding finding;
  finding.id = "crash";
  finding.exit = Exit::broken;
  // Only what a kernel does when it is loaded, launched or waited for can be its fault; a fault without a driver's code
  // is the worker's own (no memory, no counts).
  bool kernels_stage = fault.stage == "load" || fault.stage == "bind" || fault.stage == "launch" ||
                       fault.stage == "sync" || fault.stage == "readback";
  bool convicts = kernels_stage && fault.code != 0;
  if (!convicts) {
    finding.id = "worker";
    finding.exit = fault.name == "internal" ? Exit::internal : Exit::environment;
  }
  for (const auto& entry : kDriverCodes)
    if (entry.code == fault.code) {
      finding.id = entry.id;
      if (convicts) finding.exit = entry.exit;
    }
  for (const auto& entry : kVirtualKinds)
    if (entry.kind == fault.kind) {
      finding.id = entry.id;
      finding.exit = entry.exit;
    }
  finding.text = sanitize(fault.detail.empty() ? fault.name
                          : fault.name.empty() ? fault.detail
                                               : fault.name + ": " + fault.detail);
  if (fault.line && finding.text.find("PTX line") == std::string::npos)
    finding.text += fmt::format(" (PTX line {}: {})", fault.line, sanitize(fault.statement, 120));
  return finding;
}

}  // namespace

Finding finding_of(const WorkerOutcome& outcome, const std::string& stage, const std::string& where) {
  Finding finding;
  switch (outcome.end) {
    case WorkerEnd::completed:
      finding = {"completed", stage, "completed", where, Exit::pass};
      break;
    case WorkerEnd::fault:
      finding = outcome.fault ? of_fault(*outcome.fault)
                              : Finding{"crash", stage, "a fault without details", where, Exit::broken};
      break;
    case WorkerEnd::crashed:
      finding = {"crash", stage, "the process that ran it ended: " + sanitize(outcome.detail), where, Exit::broken};
      break;
    case WorkerEnd::hung:
      finding = {"hang", stage, sanitize(outcome.detail), where, Exit::broken};
      break;
    case WorkerEnd::garbage:
      finding = {"crash", stage, "garbage on the channel: " + sanitize(outcome.detail), where, Exit::broken};
      break;
    case WorkerEnd::failed_to_start:
      finding = {"worker", stage, "the worker did not start: " + sanitize(outcome.detail), where, Exit::environment};
      break;
  }
  finding.stage = stage;
  finding.where = where;
  return finding;
}

}  // namespace kgate
