// Shell scripts in the worker's place: whatever the process on the other side does is a value, in bounded time.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <fstream>

#include "sample.h"
#include "support/process.h"

namespace kgate {
namespace {

using namespace sample;

const std::string kReady = "echo '{\"type\":\"ready\",\"version\":2,\"pid\":'$$'}' >&3\n";
const std::string kDevice =
    "echo "
    "'{\"type\":\"device\",\"virtual\":true,\"ordinal\":0,\"name\":\"x\",\"uuid\":\"\",\"cc_major\":9,\"cc_minor\":0,"
    "\"sm_count\":1,"
    "\"driver_version\":1,\"total_memory\":1,\"free_memory\":1,\"max_shared_per_block_optin\":1,\"max_threads_per_"
    "block\":1,"
    "\"library\":\"x\"}' >&3\n";
const std::string kLoaded =
    "echo '{\"type\":\"loaded\",\"numbers\":{}}' >&3\n"
    "echo '{\"type\":\"placed\",\"numbers\":{\"wanted\":0,\"exact\":0}}' >&3\n";
const std::string kCanary =
    "echo '{\"type\":\"canary\",\"numbers\":{\"launches\":1,\"syncs\":1,\"begin\":1,\"end\":2}}' >&3\n";
const std::string kPrepared = kReady + kDevice + kLoaded + kCanary;
std::string progress(int round) {
  return "echo '{\"type\":\"progress\",\"numbers\":{\"round\":" + std::to_string(round) + "}}' >&3\n";
}
std::string done(bool collected) {
  return std::string("echo '{\"type\":\"done\",\"collected\":") + (collected ? "true" : "false") +
         ",\"health\":{\"library\":\"\",\"cupti_version\":0,\"dropped\":0,\"forced\":0,\"invalid_times\":0,\"unknown_"
         "records\":0,"
         "\"buffers_exhausted\":0,\"clock_offset_begin\":0,\"clock_offset_end\":0,\"clock_half_width\":0}}' >&3\n";
}

class HostileWorker : public testing::Test {
 protected:
  void TearDown() override { ::unsetenv("KGATE_WORKER"); }

  WorkerOutcome with(const std::string& body, const std::string& interpreter = "/bin/sh") {
    Builder b;
    uint32_t launch = b.launch("add");
    b.request();
    b.launch_and_sync(launch);
    Replay run(b.w);
    run.plan.mode = ReplayMode::timing;
    run.plan.arms = {arm("baseline", b)};
    run.plan.rounds = {{0, 0, 0}, {0, 1, 1}};
    run.options.start_timeout = start_timeout;
    run.options.round_timeout = std::chrono::milliseconds(300);
    auto script = run.folder.path() / "worker";
    std::ofstream(script) << "#!" << interpreter << "\n" << body;
    std::filesystem::permissions(script, std::filesystem::perms::owner_all);
    ::setenv("KGATE_WORKER", script.c_str(), 1);
    return run();
  }

  std::chrono::milliseconds start_timeout{30'000};
};

TEST_F(HostileWorker, a_well_behaved_script_passes_for_a_worker) {
  auto outcome = with(kPrepared + progress(0) + progress(1) + done(false));
  EXPECT_EQ(outcome.end, WorkerEnd::completed) << outcome.detail;
}

TEST_F(HostileWorker, silence_at_the_start_is_a_failure_to_start) {
  auto outcome = with("exit 0\n");
  EXPECT_EQ(outcome.end, WorkerEnd::failed_to_start);
  EXPECT_NE(outcome.detail.find("exit 0"), std::string::npos) << outcome.detail;
}

TEST_F(HostileWorker, its_last_words_are_in_the_detail_and_clean) {
  auto outcome = with("printf 'starting\\n\\033[31mno such library\\n' >&2\nexit 9\n");
  EXPECT_EQ(outcome.end, WorkerEnd::failed_to_start);
  EXPECT_NE(outcome.detail.find("exit 9"), std::string::npos) << outcome.detail;
  EXPECT_NE(outcome.detail.find("no such library"), std::string::npos) << outcome.detail;
  EXPECT_EQ(outcome.detail.find('\033'), std::string::npos);
}

TEST_F(HostileWorker, a_flood_on_stderr_is_cut) {
  auto outcome = with("head -c 10000000 /dev/zero | tr '\\0' x >&2\nexit 9\n");
  EXPECT_EQ(outcome.end, WorkerEnd::failed_to_start);
  EXPECT_LT(outcome.detail.size(), 1000u);
}

TEST_F(HostileWorker, a_program_that_does_not_exist_is_named) {
  ::setenv("KGATE_WORKER", "/nonexistent/kgate-worker", 1);
  Builder b;
  b.launch("add");
  b.request();
  b.launch_and_sync(0);
  Replay run(b.w);
  run.plan.arms = {arm("baseline", b)};
  auto outcome = run();
  EXPECT_EQ(outcome.end, WorkerEnd::failed_to_start);
  EXPECT_NE(outcome.detail.find("/nonexistent/kgate-worker"), std::string::npos) << outcome.detail;
}

TEST_F(HostileWorker, exit_without_a_word_after_it_was_ready_is_a_crash) {
  EXPECT_EQ(with(kReady + "exit 0\n").end, WorkerEnd::crashed);
  EXPECT_EQ(with(kPrepared + progress(0) + "exit 0\n").end, WorkerEnd::crashed);
  EXPECT_EQ(with(kPrepared + progress(0) + progress(1) + "exit 0\n").end, WorkerEnd::crashed);
}

TEST_F(HostileWorker, a_signal_is_a_crash_with_its_name) {
  auto outcome = with(kPrepared + progress(0) + "kill -SEGV $$\n");
  EXPECT_EQ(outcome.end, WorkerEnd::crashed);
  EXPECT_NE(outcome.detail.find("SIGSEGV"), std::string::npos) << outcome.detail;
  EXPECT_NE(outcome.detail.find("after round 0"), std::string::npos) << outcome.detail;
}

TEST_F(HostileWorker, a_hang_ends_with_the_time_limit_and_takes_its_children_along) {
  auto outcome = with(kPrepared + progress(0) + "sleep 1000 & sleep 1000\n");
  EXPECT_EQ(outcome.end, WorkerEnd::hung);
  EXPECT_NE(outcome.detail.find("after round 0"), std::string::npos) << outcome.detail;
}

TEST_F(HostileWorker, a_hang_before_it_is_ready_ends_as_well) {
  start_timeout = std::chrono::milliseconds(200);
  EXPECT_EQ(with("sleep 1000\n").end, WorkerEnd::hung);
}

TEST_F(HostileWorker, dripping_bytes_do_not_buy_time) {
  auto outcome = with(kPrepared + "while :; do printf ' ' >&3; sleep 0.02; done\n");
  EXPECT_EQ(outcome.end, WorkerEnd::hung);
}

TEST_F(HostileWorker, garbage_is_garbage_and_shown_clean) {
  auto outcome = with("printf '\\033]0;hello\\n' >&3\nsleep 1000\n");
  EXPECT_EQ(outcome.end, WorkerEnd::garbage);
  EXPECT_NE(outcome.detail.find("]0;hello"), std::string::npos) << outcome.detail;
  EXPECT_EQ(outcome.detail.find('\033'), std::string::npos);
}

TEST_F(HostileWorker, a_line_of_ten_megabytes_is_garbage) {
  auto outcome = with("head -c 10000000 /dev/zero | tr '\\0' a >&3\nsleep 1000\n");
  EXPECT_EQ(outcome.end, WorkerEnd::garbage);
  EXPECT_LT(outcome.detail.size(), 1000u);
}

TEST_F(HostileWorker, another_protocol_version_is_refused) {
  auto outcome = with("echo '{\"type\":\"ready\",\"version\":99,\"pid\":'$$'}' >&3\nsleep 1000\n");
  EXPECT_EQ(outcome.end, WorkerEnd::garbage);
  EXPECT_NE(outcome.detail.find("version 99"), std::string::npos) << outcome.detail;
}

TEST_F(HostileWorker, another_process_id_is_refused) {
  auto outcome = with("echo '{\"type\":\"ready\",\"version\":2,\"pid\":1}' >&3\nsleep 1000\n");
  EXPECT_EQ(outcome.end, WorkerEnd::garbage);
}

TEST_F(HostileWorker, messages_out_of_order_are_garbage) {
  EXPECT_EQ(with(kReady + kCanary + "sleep 1000\n").end, WorkerEnd::garbage);
  EXPECT_EQ(with(kPrepared + progress(1) + "sleep 1000\n").end, WorkerEnd::garbage);
  EXPECT_EQ(with(kPrepared + progress(0) + progress(0) + "sleep 1000\n").end, WorkerEnd::garbage);
  EXPECT_EQ(with(kPrepared + done(false) + "sleep 1000\n").end, WorkerEnd::garbage);
  EXPECT_EQ(with(kPrepared + progress(0) + progress(1) + progress(2) + "sleep 1000\n").end, WorkerEnd::garbage);
}

TEST_F(HostileWorker, claiming_a_collection_that_nobody_asked_for_is_garbage) {
  EXPECT_EQ(with(kPrepared + progress(0) + progress(1) + done(true)).end, WorkerEnd::garbage);
}

TEST_F(HostileWorker, a_fault_counts_even_when_nothing_follows_it) {
  auto outcome =
      with(kPrepared +
           "echo '{\"type\":\"fault\",\"stage\":\"sync\",\"arm\":0,\"request\":3,\"launch\":1,\"code\":700,"
           "\"name\":\"CUDA_ERROR_ILLEGAL_ADDRESS\",\"detail\":\"\",\"kind\":\"\",\"line\":0,\"statement\":\"\"}' >&3\n"
           "kill -KILL $$\n");
  EXPECT_EQ(outcome.end, WorkerEnd::fault);
  ASSERT_TRUE(outcome.fault);
  EXPECT_EQ(outcome.fault->request, 3u);
  EXPECT_EQ(outcome.fault->code, 700);
}

// In a process of its own, because an interrupt is never taken back.
TEST_F(HostileWorker, an_interrupt_ends_the_wait_at_once) {
  auto interrupted_run = [&] {
    install_interrupt_handler();
    auto outcome = with(kReady + "kill -INT $PPID\nsleep 1000\n");
    std::_Exit(outcome.end == WorkerEnd::hung && outcome.detail == "interrupted" ? 0 : 1);
  };
  EXPECT_EXIT(interrupted_run(), testing::ExitedWithCode(0), "");
}

TEST_F(HostileWorker, shared_memory_cannot_be_truncated) {
  auto outcome = with("truncate -s 0 /proc/self/fd/4 2>/dev/null && exit 55\n" + kPrepared + progress(0) + progress(1) +
                      done(false));
  EXPECT_EQ(outcome.end, WorkerEnd::completed) << outcome.detail;
  volatile char last = static_cast<char>(outcome.records.data()[outcome.records.size() - 1]);
  EXPECT_EQ(last, 0);
}

}  // namespace
}  // namespace kgate
