// What the recorder leaves is what the assembler takes: recordings of each sort become workloads.
#include "app.h"
#include "workload/assemble.h"

namespace kgate::test {
namespace {

class RecordedWorkload : public RecordApp {
 protected:
  Assembled assembled(const std::string& mode, const std::string& options = {}) {
    std::filesystem::remove_all(recordings());
    std::filesystem::create_directory(recordings());
    EXPECT_EQ(run(mode, options), 0) << error_;
    return assemble(files().at(0), {});
  }
  static size_t count(const Workload& workload, CallKind kind) {
    size_t calls = 0;
    for (const Call& call : workload.calls) calls += call.kind == kind;
    return calls;
  }
};

TEST_F(RecordedWorkload, calls_become_calls) {
  const Assembled a = assembled("calls");
  EXPECT_TRUE(a.complete);
  EXPECT_EQ(a.launches, 2u);
  EXPECT_EQ(a.workload.kernels.size(), 2u);
  EXPECT_EQ(count(a.workload, CallKind::upload), 1u);
  EXPECT_EQ(count(a.workload, CallKind::download), 1u);
  EXPECT_EQ(count(a.workload, CallKind::copy), 1u);
  EXPECT_EQ(count(a.workload, CallKind::memset), 1u);
  EXPECT_EQ(a.workload.buffers.size(), 2u);
}

TEST_F(RecordedWorkload, requests_and_threads_are_kept) {
  EXPECT_EQ(assembled("requests 5").workload.requests.size(), 5u);
  EXPECT_EQ(assembled("requests 9", R"({"requests":4})").workload.requests.size(), 4u);
  const Assembled a = assembled("threads 50");
  EXPECT_EQ(a.workload.threads, 2u);
  EXPECT_EQ(a.launches, 100u);
}

TEST_F(RecordedWorkload, graphs_and_mappings_and_pools_are_kept) {
  for (const char* mode : {"graph", "capture", "memory", "mapped"}) {
    std::filesystem::remove_all(recordings());
    std::filesystem::create_directory(recordings());
    const int status = run(mode);
    if (status == kMissing) GTEST_SKIP() << error_;
    ASSERT_EQ(status, 0) << mode << error_;
    const Assembled a = assemble(files().at(0), {});
    EXPECT_TRUE(a.complete) << mode;
    EXPECT_GT(a.launches, 0u) << mode;
  }
}

TEST_F(RecordedWorkload, a_slice_that_never_began_is_told_from_no_launch) {
  ASSERT_EQ(run("requests 3", R"({"from_ns":3600000000000})"), 0) << error_;
  const auto process = recorded_process(files().at(0));
  ASSERT_TRUE(process);
  EXPECT_EQ(process->launches, 1u);
  EXPECT_TRUE(process->used_cuda);
  EXPECT_THROW(assemble(files().at(0), {}), Error);
}

}  // namespace
}  // namespace kgate::test
