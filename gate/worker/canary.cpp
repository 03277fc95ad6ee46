#include "worker/canary.h"

#include <span>
#include <string_view>

#include "worker/clock.h"

namespace kgate::worker {

namespace {
constexpr std::string_view kPtx = R"(.version 6.3
.target sm_75
.address_size 64

.visible .entry kgate_canary()
{
	ret;
}
)";
}  // namespace

Canary run_canary(gpu::Driver& driver) {
  gpu::CUmodule module = driver.load_module(std::as_bytes(std::span(kPtx)));
  gpu::CUstream stream = driver.create_stream();
  gpu::Launch launch;
  launch.function = driver.function(module, "kgate_canary");
  launch.grid = launch.block = {1, 1, 1};
  launch.stream = stream;
  driver.synchronize_context();
  Canary canary;
  canary.begin = now_ns();
  driver.launch(launch, {});
  driver.synchronize(stream);
  canary.end = now_ns();
  return canary;
}

}  // namespace kgate::worker
