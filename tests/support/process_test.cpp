// Children: what they are given, what they are denied, and that they do not outlive their owner.

#include "support/process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include "support/text.h"

namespace kgate {
namespace {

using std::chrono::milliseconds;

Captured shell(const std::string& script, milliseconds timeout = milliseconds(20'000), Limits limits = {}) {
  Command command;
  command.argv = {"/bin/sh", "-c", script};
  command.limits = limits;
  return run_captured(command, timeout).value_or_throw(Exit::internal);
}

TEST(Process, output_and_exit_code_are_captured) {
  Captured run = shell("echo out; echo err >&2; exit 3");
  EXPECT_EQ(run.output, "out\nerr\n");
  EXPECT_EQ(run.status.code, 3);
  EXPECT_EQ(describe(run.status), "exit 3");
}

TEST(Process, a_signal_is_named) { EXPECT_EQ(describe(shell("kill -SEGV $$").status), "SIGSEGV"); }

TEST(Process, a_child_that_takes_too_long_is_killed_with_all_that_it_started) {
  Captured run = shell("sleep 300 & echo $!; sleep 300", milliseconds(300));
  EXPECT_TRUE(run.status.timed_out);
  pid_t grandchild = static_cast<pid_t>(std::stol(run.output));
  for (int i = 0; i < 100 && ::kill(grandchild, 0) == 0; ++i) ::usleep(20'000);
  // Gone, or a zombie that init has not reaped yet.
  std::string state = shell("cat /proc/" + std::to_string(grandchild) + "/stat 2>/dev/null || true").output;
  EXPECT_TRUE(state.empty() || state.find(") Z") != std::string::npos) << state;
}

TEST(Process, capabilities_are_dropped_and_cannot_come_back) {
  Captured run = shell("grep -E 'CapEff|CapBnd|NoNewPrivs' /proc/self/status");
  EXPECT_NE(run.output.find("CapEff:\t0000000000000000"), std::string::npos) << run.output;
  EXPECT_NE(run.output.find("NoNewPrivs:\t1"), std::string::npos) << run.output;
  if (::getuid() == 0) {
    EXPECT_NE(run.output.find("CapBnd:\t0000000000000000"), std::string::npos) << run.output;
  }
}

TEST(Process, only_the_named_descriptors_are_inherited) {
  auto secret = make_memfd("secret", 10);
  ASSERT_TRUE(secret);
  Command command;
  command.argv = {"/bin/sh", "-c", "ls /proc/self/fd | tr '\\n' ' '; test -e /proc/self/fd/7 && echo seven"};
  command.descriptors = {{secret->get(), 7}};
  Captured run = run_captured(command, milliseconds(20'000)).value_or_throw(Exit::internal);
  EXPECT_NE(run.output.find("seven"), std::string::npos) << run.output;
  EXPECT_EQ(run.output.find("8 "), std::string::npos) << run.output;
}

TEST(Process, memory_past_the_limit_is_refused) {
  Limits limits;
  limits.address_space_bytes = uint64_t{64} << 20;
  EXPECT_FALSE(shell("head -c 200000000 /dev/zero | tail -c 200000000 >/dev/null", milliseconds(20'000), limits).status.ok());
}

TEST(Process, a_program_that_is_not_there_is_a_failure) {
  Command command;
  command.argv = {"kgate-no-such-program"};
  EXPECT_FALSE(run_captured(command, milliseconds(1000)));
  command.argv = {"/etc/passwd"};
  EXPECT_FALSE(run_captured(command, milliseconds(1000)));
}

TEST(Process, the_environment_is_added_to) {
  Command command;
  command.argv = {"/bin/sh", "-c", "echo $KGATE_TEST_VALUE $PATH"};
  command.environment = {{"KGATE_TEST_VALUE", "given"}};
  Captured run = run_captured(command, milliseconds(20'000)).value_or_throw(Exit::internal);
  EXPECT_EQ(run.output.rfind("given /", 0), 0u) << run.output;
}

}  // namespace
}  // namespace kgate
