#include "sample.h"

#include <cstdlib>

#include "gpu/driver.h"
#include "support/hash.h"
#include "trace/wire.h"
#include "workload/kgw.h"

namespace kgate::sample {

namespace {

// The entries share everything but their body, which sees: %rd1..3 = addresses of element i of out, a, b; %r5 = i; %r4
// = n.
std::string entry(const std::string& name, const std::string& body) {
  return ".visible .entry " + name + R"((.param .u64 out, .param .u64 a, .param .u64 b, .param .u32 n)
{
	.reg .pred %p<3>;
	.reg .b32 %r<12>;
	.reg .b64 %rd<12>;
	ld.param.u64 %rd1, [out];
	ld.param.u64 %rd2, [a];
	ld.param.u64 %rd3, [b];
	ld.param.u32 %r4, [n];
	mov.u32 %r1, %ctaid.x;
	mov.u32 %r2, %ntid.x;
	mov.u32 %r3, %tid.x;
	mad.lo.u32 %r5, %r1, %r2, %r3;
	setp.ge.u32 %p1, %r5, %r4;
	@%p1 bra DONE;
	mul.wide.u32 %rd4, %r5, 4;
	add.u64 %rd1, %rd1, %rd4;
	add.u64 %rd2, %rd2, %rd4;
	add.u64 %rd3, %rd3, %rd4;
)" + body +
         R"(
DONE:
	ret;
}
)";
}

const std::string kLoad = "\tld.global.u32 %r6, [%rd2];\n\tld.global.u32 %r7, [%rd3];\n";

}  // namespace

const std::string& ptx() {
  static const std::string text =
      ".version 7.0\n.target sm_75\n.address_size 64\n" +
      entry("add", kLoad + "\tadd.u32 %r8, %r6, %r7;\n\tst.global.u32 [%rd1], %r8;\n") +
      entry("sub", kLoad + "\tsub.u32 %r8, %r6, %r7;\n\tst.global.u32 [%rd1], %r8;\n") +
      entry("step", "\tld.global.u32 %r6, [%rd1];\n\tadd.u32 %r6, %r6, 1;\n\tst.global.u32 [%rd1], %r6;\n") +
      entry("past", "\tst.global.u32 [%rd1], %r5;\n\tst.global.u32 [%rd1+4], %r5;\n") +
      entry("far", "\tadd.u64 %rd1, %rd1, 1099511627776;\n\tst.global.u32 [%rd1], %r5;\n") +
      entry("spin", "LOOP:\n\tadd.u32 %r6, %r6, 1;\n\tbra LOOP;\n");
  return text;
}

std::string bytes_of(const std::vector<uint32_t>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * 4);
}

Builder::Builder() {
  w.name = "sample";
  w.modules = {{"sample.ptx", ptx(), sha256(ptx())}};
  std::vector<uint32_t> ascending(kCount), thousand(kCount, 1000);
  for (uint32_t i = 0; i < kCount; ++i) ascending[i] = i;
  auto buffer = [&](const char* name, bool written, Content content) {
    Buffer b;
    b.name = name;
    b.bytes = kCount * 4;
    b.written = written;
    b.content = std::move(content);
    w.buffers.push_back(std::move(b));
  };
  buffer("out", true, ContentPoison{0xff});
  buffer("a", true, ContentBytes{bytes_of(ascending)});
  buffer("b", false, ContentBytes{bytes_of(thousand)});
}

uint32_t Builder::kernel(const std::string& entry) {
  for (uint32_t k = 0; k < w.kernels.size(); ++k)
    if (w.kernels[k].entry == entry) return k;
  w.kernels.push_back({0, entry, {{0, 8}, {8, 8}, {16, 8}, {24, 4}}, 28});
  return static_cast<uint32_t>(w.kernels.size() - 1);
}

LaunchSpec Builder::spec(uint32_t kernel, uint32_t out) const {
  LaunchSpec launch;
  launch.kernel = kernel;
  launch.grid = {4, 1, 1};
  launch.block = {32, 1, 1};
  launch.params.resize(28);
  std::memcpy(launch.params.data() + 24, &kCount, 4);
  launch.relocations = {{0, out, 0}, {8, 1, 0}, {16, 2, 0}};
  return launch;
}

uint32_t Builder::launch(const std::string& entry, uint32_t out) {
  w.launches.push_back(spec(kernel(entry), out));
  return static_cast<uint32_t>(w.launches.size() - 1);
}

void Builder::request(uint32_t thread, uint64_t arrival_ns) {
  w.threads = std::max(w.threads, thread + 1);
  w.requests.push_back({arrival_ns, thread, {}});
}

Call& Builder::call(CallKind kind) {
  Call call;
  call.kind = kind;
  call.thread = w.requests.back().thread;
  w.calls.push_back(call);
  w.requests.back().calls.push_back(static_cast<uint32_t>(w.calls.size() - 1));
  return w.calls.back();
}

void Builder::launch_and_sync(uint32_t launch) {
  call(CallKind::launch).launch = launch;
  call(CallKind::stream_sync);
}

Arm arm(const std::string& label, const Builder& builder, const std::string& entry) {
  Arm arm;
  arm.label = label;
  if (entry.empty()) return arm;
  arm.modules = {{"other.ptx", ptx(), sha256(ptx())}};
  arm.kernels = {{0, entry, {{0, 8}, {8, 8}, {16, 8}, {24, 4}}, 28}};
  arm.kernel_ids = {"id of " + entry};
  arm.replace[0] = {builder.spec(0)};
  return arm;
}

Replay::Replay(Workload given) : workload(std::move(given)) {
  plan.mode = ReplayMode::numeric;
  plan.workload = folder.path() / "sample.kgw";
  plan.honour_arrivals = false;
  plan.rounds = {{0, 0, 0}};
  plan.trace = false;
  options.device.kind = gpu::DeviceKind::virtual_gpu;
  options.device.library = std::string(KGATE_BINARY_DIR) + "/lib/libkgate_vgpu.so";
  options.attach_probes = false;
  options.collect_cupti = false;
}

WorkerOutcome Replay::operator()() {
  write_kgw(workload, plan.workload);
  return run_worker(plan, workload, options);
}

std::vector<uint32_t> values(const Replay& run, const WorkerOutcome& outcome, size_t region) {
  auto r = readback_layout(run.plan, run.workload)[region];
  std::vector<uint32_t> values(r.bytes / 4);
  std::memcpy(values.data(), outcome.readback.data() + r.offset + r.guard, r.bytes);
  return values;
}

std::string guards(const Replay& run, const WorkerOutcome& outcome, size_t region) {
  auto r = readback_layout(run.plan, run.workload)[region];
  const char* at = reinterpret_cast<const char*>(outcome.readback.data()) + r.offset;
  return std::string(at, r.guard) + std::string(at + r.guard + r.bytes, r.guard);
}

uint64_t lost_records(const WorkerOutcome& outcome) {
  return reinterpret_cast<const wire::Header*>(outcome.records.data())->lost_records.load();
}

}  // namespace kgate::sample
