// Candidates of several items, compared on the contract's shapes by a worker on the virtual GPU.
#include <gtest/gtest.h>

#include "precheck/cases.h"
#include "precheck/precheck.h"
#include "support/fd.h"

namespace kgate {
namespace {

// `add` (out, a, b, n): out = a + b; `copy` (to, from, n).
std::string entry(const std::string& head, const std::string& body) {
  return ".visible .entry " + head + R"(
{
	.reg .pred %p<2>;
	.reg .b32 %r<10>;
	.reg .b64 %rd<8>;
	mov.u32 %r1, %ctaid.x;
	mov.u32 %r2, %ntid.x;
	mov.u32 %r3, %tid.x;
	mad.lo.u32 %r4, %r1, %r2, %r3;
	ld.param.u32 %r5, [n];
	setp.ge.u32 %p1, %r4, %r5;
	@%p1 bra DONE;
	mul.wide.u32 %rd1, %r4, 4;
)" + body +
         "DONE:\n\tret;\n}\n";
}

const std::string kPtx = ".version 7.0\n.target sm_75\n.address_size 64\n" +
                         entry("add(.param .u64 out, .param .u64 a, .param .u64 b, .param .u32 n)",
                               "\tld.param.u64 %rd2, [a];\n\tld.param.u64 %rd3, [b];\n\tld.param.u64 %rd4, [out];\n"
                               "\tadd.u64 %rd2, %rd2, %rd1;\n\tadd.u64 %rd3, %rd3, %rd1;\n\tadd.u64 %rd4, %rd4, %rd1;\n"
                               "\tld.global.u32 %r6, [%rd2];\n\tld.global.u32 %r7, [%rd3];\n\tadd.u32 %r8, %r6, %r7;\n"
                               "\tst.global.u32 [%rd4], %r8;\n") +
                         entry("copy(.param .u64 to, .param .u64 from, .param .u32 n)",
                               "\tld.param.u64 %rd2, [from];\n\tld.param.u64 %rd4, [to];\n"
                               "\tadd.u64 %rd2, %rd2, %rd1;\n\tadd.u64 %rd4, %rd4, %rd1;\n"
                               "\tld.global.u32 %r6, [%rd2];\n\tst.global.u32 [%rd4], %r6;\n");

PrecheckResult checked(const std::string& with) {
  TempDir folder("kgate-equivalence");
  write_file_atomic(folder.path() / "k.ptx", kPtx).value_or_throw(Exit::environment);
  const std::string text = R"yaml(kgate: 1
kernel: add
params:
  - {name: out, tensor: "i32[n]", role: out}
  - {name: a, tensor: "i32[n]", role: in}
  - {name: b, tensor: "i32[n]", role: in}
  - {name: n, scalar: i32}
launch: {grid: ["cdiv(n, 32)", 1, 1], block: [32, 1, 1]}
shapes: [{n: [33, 1, 100]}]
reference: {baseline: true}
replace:
  - launches: {kernel: add}
    let: {out: ptr@0, a: ptr@8, b: ptr@16, n: i32@24, g: grid.x}
    with:)yaml" + with;
  Contract contract = parse_contract(text, folder.path() / "c.yaml");
  PrecheckResult result;
  Prepared candidate = prepare(folder.path() / "k.ptx", "copy", "candidate", 0, true, result.findings);
  Prepared baseline = prepare(folder.path() / "k.ptx", "add", "baseline", 0, true, result.findings);
  PrecheckOptions options;
  options.session.device.kind = gpu::DeviceKind::virtual_gpu;
  options.session.device.library = std::string(KGATE_BINARY_DIR) + "/lib/libkgate_vgpu.so";
  gpu::DeviceProperties device;
  device.kind = gpu::DeviceKind::virtual_gpu;
  device.free_memory = uint64_t{1} << 30;
  check_equivalence(contract, candidate, &baseline, nullptr, device, options, result);
  return result;
}

std::string found(const PrecheckResult& result) {
  std::string ids;
  for (const auto& finding : result.findings) ids += finding.id + " " + finding.where + ": " + finding.text + "\n";
  return ids;
}

const std::string kCopies = R"(
      - {workspace: w, bytes: "n * 4"}
      - {entry: copy, grid: [g, 1, 1], block: [32, 1, 1], args: [w, a, n]}
)";
const std::string kAdds = "      - {entry: add, grid: [g, 1, 1], block: [32, 1, 1], args: [out, w, b, n]}\n";

TEST(EquivalenceRun, a_candidate_of_two_kernels_and_a_workspace_agrees) {
  PrecheckResult result = checked(kCopies + "      - {sync: true}\n" + kAdds);
  EXPECT_EQ(found(result), "");
  ASSERT_TRUE(result.equivalence);
  EXPECT_EQ(result.equivalence->shapes, 3u);
}

TEST(EquivalenceRun, an_item_that_spoils_the_workspace_is_found) {
  PrecheckResult result = checked(kCopies + "      - {memset: w, bytes: 4, value: 64}\n" + kAdds);
  EXPECT_EQ(found(result).find("wrong_numbers"), 0u) << found(result);
}

TEST(EquivalenceRun, a_workspace_that_is_too_small_is_found) {
  std::string small = kCopies;
  PrecheckResult result = checked(small.replace(small.find("n * 4"), 5, "g * 4") + kAdds);
  EXPECT_EQ(found(result).find("out_of_bounds"), 0u) << found(result);
}

TEST(EquivalenceRun, a_deleted_kernel_leaves_its_output_stale) {
  PrecheckResult result = checked(" []\n");
  EXPECT_EQ(found(result).find("stale_output"), 0u) << found(result);
}

}  // namespace
}  // namespace kgate
