// Building the numeric workloads. Inputs are a function of (seed, parameter, element), so that every subject sees the
// same bytes without any of them being sent the others' results.

#include "precheck/cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "precheck/numbers.h"
#include "replay/arms.h"
#include "support/hash.h"
#include "support/text.h"
#include "workload/content.h"

namespace kgate {

namespace {

constexpr uint64_t kEmptyTensorBytes = 16;  // a driver refuses empty allocations

std::string shape_label(const Environment& shape) {
  std::string label;
  for (const auto& [name, value] : shape) label += fmt::format("{}{}={}", label.empty() ? "" : " ", name, value);
  return label.empty() ? "the only shape" : label;
}

bool has_floating_input(const Contract& contract) {
  for (const auto& param : contract.params)
    if (const auto* tensor = std::get_if<TensorParam>(&param.kind))
      if (is_floating(tensor->dtype) && (tensor->role == Role::in || tensor->role == Role::inout)) return true;
  return false;
}

ContentRandom random_content(const TensorParam& tensor, uint64_t seed) {
  ContentRandom content;
  content.dtype = dtype_name(tensor.dtype);
  content.seed = seed;
  double low = -1, high = 1;
  if (!is_floating(tensor.dtype)) {
    bool is_signed = tensor.dtype == Dtype::i8 || tensor.dtype == Dtype::i16 || tensor.dtype == Dtype::i32 ||
                     tensor.dtype == Dtype::i64;
    low = is_signed ? -8 : 0;
    high = tensor.dtype == Dtype::boolean ? 1 : 8;
  }
  content.low = tensor.low.value_or(low);
  content.high = tensor.high.value_or(high);
  return content;
}

// A scalar parameter's bytes in a shape.
std::string scalar_bytes(const Param& param, const ScalarParam& scalar, const Environment& shape) {
  std::string bytes(dtype_bytes(scalar.dtype), '\0');
  if (scalar.real) {
    store_element(scalar.dtype, bytes.data(), 0, *scalar.real);
    return bytes;
  }
  Expr expression = scalar.value ? *scalar.value : Expr::parse(param.name).value_or_throw(Exit::bad_input);
  int64_t value = expression.evaluate(shape).value_or_throw(Exit::bad_input);
  if (is_floating(scalar.dtype))
    store_element(scalar.dtype, bytes.data(), 0, static_cast<double>(value));
  else
    std::memcpy(bytes.data(), &value, bytes.size());  // little endian: the low bytes
  return bytes;
}

Dim3 evaluate_extent(const Expr extent[3], const Environment& shape, const std::string& what) {
  uint32_t values[3];
  for (int axis = 0; axis < 3; ++axis) {
    int64_t value = extent[axis].evaluate(shape).value_or_throw(Exit::bad_input);
    if (value < 1 || value > std::numeric_limits<int32_t>::max())
      throw Error(Exit::bad_input,
                  fmt::format("the contract's {} is {} in axis {} for {}", what, value, axis, shape_label(shape)));
    values[axis] = static_cast<uint32_t>(value);
  }
  return {values[0], values[1], values[2]};
}

// A launch of the workload on buffers of the case's own.
LaunchSpec recorded_launch(const Contract& contract, const LaunchSpec& recorded, uint32_t first_buffer) {
  LaunchSpec launch = recorded;
  launch.relocations.clear();
  auto layout = param_layout(contract);
  uint32_t buffer = first_buffer;
  for (size_t i = 0; i < contract.params.size(); ++i) {
    if (!std::holds_alternative<TensorParam>(contract.params[i].kind)) continue;
    for (const auto& relocation : recorded.relocations)
      if (relocation.param_offset == layout[i].offset) launch.relocations.push_back({layout[i].offset, buffer, 0});
    ++buffer;
  }
  return launch;
}

// The launch that the contract describes, in the ABI of its parameter list.
LaunchSpec contract_launch(const Contract& contract, const Case& test_case, uint32_t first_buffer) {
  if (test_case.recorded) return recorded_launch(contract, *test_case.recorded, first_buffer);
  LaunchSpec launch;
  launch.grid = evaluate_extent(contract.launch.grid, test_case.shape, "grid");
  launch.block = evaluate_extent(contract.launch.block, test_case.shape, "block");
  launch.shared =
      static_cast<uint32_t>(contract.launch.shared.evaluate(test_case.shape).value_or_throw(Exit::bad_input));
  auto layout = param_layout(contract);
  launch.params.resize(param_block_bytes(contract));
  uint32_t buffer = first_buffer;
  for (size_t i = 0; i < contract.params.size(); ++i) {
    const Param& param = contract.params[i];
    if (std::holds_alternative<TensorParam>(param.kind)) {
      launch.relocations.push_back({layout[i].offset, buffer++, 0});
    } else {
      std::string bytes = scalar_bytes(param, std::get<ScalarParam>(param.kind), test_case.shape);
      std::memcpy(launch.params.data() + layout[i].offset, bytes.data(), bytes.size());
    }
  }
  return launch;
}

WorkloadKernel contract_kernel(const Contract& contract) {
  WorkloadKernel kernel;
  kernel.entry = contract.kernel;
  for (const auto& slot : param_layout(contract)) kernel.params.emplace_back(slot.offset, slot.size);
  kernel.param_bytes = param_block_bytes(contract);
  return kernel;
}

// kgate's own launch of a reference: it must be right for any block. The grid stays the contract's, since a kernel that
// learns its rows from the grid has no other way.
void relaunch_as_reference(LaunchSpec& launch) {
  launch.block = {64, 1, 1};
  launch.shared = 0;
}

Buffer make_buffer(const Contract& contract, const Case& test_case, size_t param, const TensorSlot& slot,
                   Subject subject) {
  const auto& tensor = std::get<TensorParam>(contract.params[param].kind);
  Buffer buffer;
  buffer.name = contract.params[param].name;
  bool output = tensor.role == Role::out || tensor.role == Role::inout;
  bool widened = subject == Subject::reference && output && is_floating(tensor.dtype);
  buffer.bytes = widened ? slot.elements * sizeof(double) : slot.bytes;
  buffer.bytes = std::max<uint64_t>(buffer.bytes, kEmptyTensorBytes);
  buffer.written = tensor.role != Role::in;
  if (tensor.role == Role::out) {
    buffer.content = ContentPoison{poison_of(tensor.dtype)};
  } else if (tensor.role == Role::workspace) {
    if (tensor.zeroed)
      buffer.content = ContentZeros{};
    else
      buffer.content = ContentPoison{poison_of(tensor.dtype)};
  } else {
    std::string bytes = input_bytes(contract, test_case, param, slot);
    if (widened) {
      std::string wide(slot.elements * sizeof(double), '\0');
      for (uint64_t i = 0; i < slot.elements; ++i)
        store_element(Dtype::f64, wide.data(), i, load_element(tensor.dtype, bytes.data(), i));
      bytes = std::move(wide);
    }
    buffer.content = ContentBytes{std::move(bytes)};
  }
  return buffer;
}

}  // namespace

std::vector<Case> make_cases(const Contract& contract, uint64_t seed) {
  if (!contract.has_shapes) return {};
  std::vector<Environment> shapes = contract.shapes;
  if (shapes.empty()) shapes.emplace_back();
  std::vector<Case> cases;
  auto add = [&](const Environment& shape, std::string label, bool special) {
    Case test_case;
    test_case.shape = shape;
    test_case.label = std::move(label);
    test_case.special = special;
    test_case.seed = seed + cases.size();
    cases.push_back(std::move(test_case));
  };
  for (const auto& shape : shapes) add(shape, shape_label(shape), false);
  if (has_floating_input(contract)) add(shapes.back(), shape_label(shapes.back()) + " with NaN inputs", true);
  return cases;
}

uint8_t poison_of(Dtype dtype) { return is_floating(dtype) ? 0xff : 0xa5; }

namespace {

// Parameters without their addresses, grid, block, shared: what makes two launches the same to a kernel.
std::string launch_key(const LaunchSpec& launch) {
  std::string params(reinterpret_cast<const char*>(launch.params.data()), launch.params.size());
  for (const auto& relocation : launch.relocations) params.replace(relocation.param_offset, 8, 8, '\0');
  return fmt::format("{}x{}x{} {}x{}x{} {} ", launch.grid.x, launch.grid.y, launch.grid.z, launch.block.x,
                     launch.block.y, launch.block.z, launch.shared) +
         params;
}

Case launch_case(const Contract& contract, const Workload& workload, const LaunchSpec& launch) {
  Case test_case;
  test_case.recorded = launch;
  auto layout = param_layout(contract);
  std::string scalars;
  for (size_t i = 0; i < contract.params.size(); ++i) {
    if (const auto* scalar = std::get_if<ScalarParam>(&contract.params[i].kind)) {
      const char* data = reinterpret_cast<const char*>(launch.params.data()) + layout[i].offset;
      scalars += fmt::format(" {}={:g}", contract.params[i].name, load_element(scalar->dtype, data, 0));
      continue;
    }
    uint64_t bytes = 0;
    for (const auto& relocation : launch.relocations)
      if (relocation.param_offset == layout[i].offset && relocation.delta >= 0 &&
          static_cast<uint64_t>(relocation.delta) <= workload.buffers[relocation.buffer].bytes)
        bytes = workload.buffers[relocation.buffer].bytes - static_cast<uint64_t>(relocation.delta);
    test_case.tensor_bytes.push_back(bytes);
  }
  test_case.label =
      fmt::format("the workload's launch with grid {}x{}x{}{}", launch.grid.x, launch.grid.y, launch.grid.z, scalars);
  return test_case;
}

}  // namespace

Result<LaunchCases> make_launch_cases(const Contract& contract, const Workload& workload,
                                      const std::vector<uint32_t>& judged, uint64_t seed) {
  std::map<std::string, uint32_t> distinct;
  const bool several = judged_kernels(workload, judged).size() > 1;
  for (uint32_t index : judged) {
    const std::string& entry = workload.kernels[workload.launches[index].kernel].entry;
    if (several && entry != contract.kernel && entry != contract.baseline_entry) continue;
    distinct.emplace(launch_key(workload.launches[index]), index);
  }
  LaunchCases result;
  result.distinct = distinct.size();
  size_t position = 0, wanted = std::min(distinct.size(), kMaxLaunchCases);
  for (const auto& [key, index] : distinct) {
    const LaunchSpec& launch = workload.launches[index];
    const WorkloadKernel& kernel = workload.kernels[launch.kernel];
    WorkloadKernel described = contract_kernel(contract);
    if (kernel.params != described.params)
      return Failure{fmt::format("the contract's `params:` are not those of the workload's kernel '{}'", kernel.entry),
                     contract.path.string(), "kgate inspect shows the kernel's parameters"};
    if (position++ * wanted / distinct.size() < result.cases.size()) continue;  // spread evenly
    Case test_case = launch_case(contract, workload, launch);
    test_case.seed = seed + 1000 + result.cases.size();
    result.cases.push_back(std::move(test_case));
  }
  return result;
}

std::vector<TensorSlot> tensor_slots(const Contract& contract, const Case& test_case) {
  std::vector<TensorSlot> slots;
  for (size_t i = 0; i < contract.params.size(); ++i) {
    const auto* tensor = std::get_if<TensorParam>(&contract.params[i].kind);
    if (!tensor) continue;
    if (test_case.recorded) {
      uint64_t count = test_case.tensor_bytes[slots.size()] / dtype_bytes(tensor->dtype);
      slots.push_back({i, count, count * dtype_bytes(tensor->dtype)});
      continue;
    }
    auto elements = tensor_elements(*tensor, test_case.shape);
    if (!elements)
      throw Error(Exit::bad_input, fmt::format("{}: {}", contract.params[i].name, elements.failure().what),
                  contract.path.string());
    slots.push_back({i, *elements, *elements * dtype_bytes(tensor->dtype)});
  }
  return slots;
}

std::string input_bytes(const Contract& contract, const Case& test_case, size_t param, const TensorSlot& slot) {
  const auto& tensor = std::get<TensorParam>(contract.params[param].kind);
  std::string bytes(slot.bytes, '\0');
  materialise(random_content(tensor, test_case.seed * 1000003 + param), std::as_writable_bytes(std::span(bytes)));
  // One NaN early and one late: whole rows around them must become NaN exactly where the reference says so.
  if (test_case.special && is_floating(tensor.dtype) && slot.elements > 0)
    for (uint64_t index : {slot.elements / 3, slot.elements - 1})
      store_element(tensor.dtype, bytes.data(), index, std::numeric_limits<double>::quiet_NaN());
  return bytes;
}

namespace {

// The rule for the contract's own kernel; null: the same ABI.
Result<const Replacement*> own_rule(const Contract& contract) {
  const Replacement* none = nullptr;
  if (contract.binding.replacements.empty()) return none;
  for (const Replacement& rule : contract.binding.replacements) {
    if (!glob_match(rule.kernel_glob, contract.kernel) && !glob_match(rule.kernel_glob, contract.baseline_entry))
      continue;
    if (!rule.then.empty())
      return Failure{
          fmt::format("the rule takes '{}' together with what follows it, and the contract's shapes launch it "
                      "alone",
                      contract.kernel),
          rule.where, "leave out `launch:` and `shapes:`; numbers are then compared on the workload"};
    return &rule;
  }
  return Failure{fmt::format("no rule of `replace:` takes the contract's own kernel '{}'", contract.kernel),
                 contract.binding.replacements.front().where,
                 "write one, or leave out `launch:` and `shapes:`; numbers are then compared on the workload"};
}

}  // namespace

Result<Arm> candidate_arm(const Contract& contract, const Prepared& candidate, const Workload& workload) {
  auto rule = own_rule(contract);
  if (!rule) return rule.failure();
  KernelImage image = kernel_image(candidate);
  Substitution substitution(contract.binding, image, workload, false);
  std::map<uint32_t, std::vector<ArmItem>> replace;
  for (uint32_t launch = 0; launch < workload.launches.size(); ++launch) {
    auto items = substitution.items(*rule, {&launch, 1});
    if (!items) return items.failure();
    replace[launch] = std::move(*items);
  }
  Arm arm = substitution.arm();
  arm.replace = std::move(replace);
  return arm;
}

Result<std::monostate> check_candidate_launch(const Contract& contract, const Prepared& candidate,
                                              const Case& test_case) {
  try {
    Workload workload;
    workload.kernels.push_back(contract_kernel(contract));
    for (const auto& slot : tensor_slots(contract, test_case)) {
      Buffer buffer;
      buffer.bytes = std::max<uint64_t>(slot.bytes, kEmptyTensorBytes);
      workload.buffers.push_back(std::move(buffer));
    }
    workload.launches.push_back(contract_launch(contract, test_case, 0));
    if (auto arm = candidate_arm(contract, candidate, workload); !arm) return arm.failure();
  } catch (const Error& error) {
    if (error.code() != Exit::bad_input) throw;
    return error.failure();
  }
  return std::monostate{};
}

uint64_t case_bytes(const Contract& contract, const Case& test_case) {
  constexpr uint64_t kGuards = 2 * 4096;
  uint64_t bytes = 0;
  for (const auto& slot : tensor_slots(contract, test_case)) bytes += slot.elements * sizeof(double) + kGuards;
  return bytes;
}

void check_memory(const Contract& contract, const std::vector<Case>& cases, uint64_t free_bytes,
                  const std::string& device) {
  for (const auto& test_case : cases)
    if (uint64_t bytes = case_bytes(contract, test_case); bytes > free_bytes)
      throw Error(Exit::environment,
                  fmt::format("the shape {} needs {}, and {} has {} free", test_case.label, format_bytes(double(bytes)),
                              device, format_bytes(double(free_bytes))),
                  contract.path.string(), "use a smaller shape");
}

Workload numeric_workload(const Contract& contract, const Prepared& prepared, Subject subject,
                          const std::vector<Case>& cases, size_t first, size_t last) {
  Workload workload;
  workload.name = "numeric " + prepared.label;
  workload.modules.push_back({prepared.source.path.filename().string(), prepared.image, sha256(prepared.image)});
  const WorkloadKernel recorded = contract_kernel(contract);
  workload.kernels.push_back(recorded);
  if (subject != Subject::candidate) {
    WorkloadKernel& own = workload.kernels.front();
    own.entry = prepared.entry.name;
    if (auto same = check_same_abi(recorded, prepared.entry, prepared.label); !same)
      throw Error(Exit::bad_input, same.failure().what, prepared.source.path.string(), same.failure().hint);
    own.param_bytes = prepared.entry.param_bytes;
  }

  for (size_t index = first; index < last; ++index) {
    uint32_t first_buffer = static_cast<uint32_t>(workload.buffers.size());
    for (const auto& slot : tensor_slots(contract, cases[index]))
      workload.buffers.push_back(make_buffer(contract, cases[index], slot.param, slot, subject));
    LaunchSpec launch = contract_launch(contract, cases[index], first_buffer);
    if (subject == Subject::reference) relaunch_as_reference(launch);
    launch.kernel = 0;
    launch.params.resize(workload.kernels.front().param_bytes);  // padding after the last parameter may differ
    Call call;
    call.launch = static_cast<uint32_t>(workload.launches.size());
    workload.launches.push_back(std::move(launch));
    Request request;
    request.calls = {static_cast<uint32_t>(workload.calls.size())};
    workload.calls.push_back(call);
    workload.requests.push_back(request);
  }
  workload.sha256 = workload_hash(workload);
  return workload;
}

}  // namespace kgate
