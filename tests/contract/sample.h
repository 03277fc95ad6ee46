// A contract with everything in it, and what its readers say.
#pragma once

#include <stdexcept>
#include <string>

#include "contract/contract.h"

namespace kgate {

inline const std::string kSample = R"(kgate: 1
kernel: softmax_rows
params:
  - {name: out,  tensor: "f16[rows, cols]", role: out}
  - {name: x,    tensor: "f16[rows, cols]", role: in}
  - {name: cols, scalar: i32}
launch: {grid: ["rows", 1, 1], block: [128, 1, 1], shared: 0}
shapes:
  - {rows: 512, cols: 1000}
  - {rows: [1, 7], cols: [1, 31, 4096]}        # product
reference: {cuda: ../workloads/references/softmax.cu, entry: softmax_ref}
tolerance: {f16: {rtol: 2e-3, atol: 1e-5}}
workload: ../workloads/decode.kgw
baseline: ../workloads/kernels/softmax.ptx
replace: []
limits:
  service.p99:     {max_regression: 5%}
  kernel_time.p99: {max_regression: 5%}
  sync_stall:      {max_increase: 2us, max_regression: 5%}
  spill_bytes:     {max: 0}
)";

// The sample with the first `from` replaced by `to`.
inline std::string with(std::string from, std::string to, std::string text = kSample) {
  size_t at = text.find(from);
  if (at == std::string::npos) throw std::logic_error("the sample has no " + from);
  return text.replace(at, from.size(), to);
}

// All problems, one a line; "" if there is none.
inline std::string problems(const std::string& yaml, bool allow_policy = false) {
  try {
    parse_contract(yaml, "c.yaml", allow_policy);
    return "";
  } catch (const Error& error) {
    return error.failure().what;
  }
}

}  // namespace kgate
