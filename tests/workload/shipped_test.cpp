// The workloads that kgate ships build, round-trip and hold what their comments promise.
#include <gtest/gtest.h>

#include <set>

#include "support/fd.h"
#include "workload/build.h"
#include "workload/kgw.h"

namespace kgate {
namespace {

std::filesystem::path shipped(const std::string& name) {
  return std::filesystem::path(KGATE_SOURCE_DIR) / "workloads" / name;
}

class Shipped : public testing::TestWithParam<const char*> {};

TEST_P(Shipped, builds_and_round_trips) {
  const Workload built = build_workload(shipped(GetParam()));
  TempDir folder("kgate-test");
  write_kgw(built, folder.path() / "w.kgw");
  auto read = read_kgw(folder.path() / "w.kgw");
  ASSERT_TRUE(read) << read.failure().what;
  EXPECT_EQ(read->sha256, built.sha256);
  EXPECT_EQ(describe_workload(*read), describe_workload(built));
  EXPECT_EQ(workload_json(*read), workload_json(built));
}

INSTANTIATE_TEST_SUITE_P(Workloads, Shipped,
                         testing::Values("decode.yaml", "decode_large.yaml", "demo.yaml", "tiny.yaml", "chat.yaml"),
                         [](const auto& info) { return std::string(info.param, std::string(info.param).find('.')); });

TEST(Decode, judged_kernels_run_in_several_shapes_on_two_streams) {
  const Workload w = build_workload(shipped("decode.yaml"));
  EXPECT_EQ(w.requests.size(), 1200u);
  EXPECT_EQ(w.threads, 2u);
  EXPECT_EQ(w.streams.size(), 2u);
  EXPECT_EQ(w.arrivals, Arrivals::external);
  std::set<std::vector<std::byte>> softmax, rmsnorm;
  for (const LaunchSpec& launch : w.launches) {
    if (w.kernels[launch.kernel].entry == "softmax_rows") softmax.insert(launch.params);
    if (w.kernels[launch.kernel].entry == "rmsnorm_rows") rmsnorm.insert(launch.params);
  }
  EXPECT_EQ(softmax.size(), 4u);
  EXPECT_EQ(rmsnorm.size(), 1u);
}

}  // namespace
}  // namespace kgate
