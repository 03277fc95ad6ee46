#include "cli/fidelity.h"

#include "replay/fidelity_run.h"
#include "support/log.h"
#include "workload/kgw.h"

namespace kgate {

void keep_fidelity(Workload& workload, const std::filesystem::path& kgw, const gpu::DeviceChoice& device) {
  SessionOptions session;
  session.device = device;
  FidelityAnswer answer = measure_fidelity(workload, kgw, session).value_or_throw(Exit::environment);
  log::info("first replay of " + kgw.filename().string() + ": " + answer.text);
  workload.addresses = answer.addresses;
  workload.fidelity.push_back(answer.fidelity);
  if (auto stored = add_fidelity(kgw, answer.fidelity, answer.addresses); !stored)
    log::warning("the answer is not kept: " + stored.failure().what + ": " + stored.failure().where);
}

}  // namespace kgate
