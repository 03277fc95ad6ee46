// From the start of the application to each of its ends: it behaves as it would without the recorder, and what is on
// file is whole.
#include <csignal>

#include "app.h"

namespace kgate::test {
namespace {

using namespace recording;

TEST_F(RecordApp, an_application_without_cuda_leaves_nothing) {
  EXPECT_EQ(run("leave nothing"), 3);
  EXPECT_TRUE(files().empty());
}

TEST_F(RecordApp, an_application_that_launches_nothing_has_no_slice) {
  EXPECT_EQ(run("leave idle"), 3);
  const RecordedFile file = recorded();
  EXPECT_EQ(file.header.complete, 1u);
  EXPECT_TRUE(file.of(Kind::slice_begin).empty());
}

TEST_F(RecordApp, exit_from_another_thread_ends_the_slice) {
  EXPECT_EQ(run("leave thread"), 5);
  const RecordedFile file = recorded();
  EXPECT_EQ(file.header.complete, 1u);
  EXPECT_EQ(file.of(Kind::slice_end).size(), 1u);
  EXPECT_EQ(file.of(Kind::launch).size(), 2u);
}

TEST_F(RecordApp, the_slice_ends_before_its_context_does) {
  EXPECT_EQ(run("leave context"), 3);
  const RecordedFile file = recorded();
  ASSERT_EQ(file.of(Kind::slice_end).size(), 1u);
  EXPECT_EQ(file.of(Kind::slice_end)[0].as<SliceRecord>().allocations, 1u);
  EXPECT_EQ(file.of(Kind::snapshot).size(), 2u);
}

TEST_F(RecordApp, a_process_that_leaves_at_once_leaves_whole_records) {
  EXPECT_EQ(run("leave _exit"), 4);
  const RecordedFile file = recorded();
  EXPECT_EQ(file.header.complete, 0u);
  EXPECT_TRUE(file.whole);
  EXPECT_EQ(file.of(Kind::launch).size(), 2u);
  EXPECT_TRUE(file.of(Kind::slice_end).empty());
}

TEST_F(RecordApp, a_process_that_throws_dies_as_it_would_alone) {
  EXPECT_EQ(run("leave throw"), 128 + SIGABRT);
  const RecordedFile file = recorded();
  EXPECT_EQ(file.header.complete, 0u);
  EXPECT_EQ(file.of(Kind::slice_begin).size(), 1u);
}

TEST_F(RecordApp, a_forked_child_writes_nothing) {
  EXPECT_EQ(run("leave fork"), 3);
  const RecordedFile file = recorded();
  EXPECT_EQ(file.header.complete, 1u);
  EXPECT_TRUE(file.whole);
  EXPECT_EQ(file.of(Kind::launch).size(), 3u);
  EXPECT_EQ(file.of(Kind::slice_end).size(), 1u);
}

TEST_F(RecordApp, descriptors_that_the_application_closes_are_opened_again) {
  EXPECT_EQ(run("leave close"), 3);
  const RecordedFile file = recorded();
  EXPECT_EQ(file.header.complete, 1u);
  EXPECT_EQ(file.of(Kind::launch).size(), 2u);
}

TEST_F(RecordApp, a_limit_of_file_sizes_does_not_kill_the_application) {
  EXPECT_EQ(run("requests 2000", {}, {}, "ulimit -f 64;"), 0) << error_;
  EXPECT_NE(why().find("could not be written"), std::string::npos) << why();
  EXPECT_EQ(recorded().header.complete, 0u);
}

TEST_F(RecordApp, a_folder_that_is_not_there_does_not_stop_the_application) {
  std::filesystem::remove(recordings());
  EXPECT_EQ(run("requests 3"), 0) << error_;
}

TEST_F(RecordApp, options_that_make_no_sense_are_named) {
  EXPECT_EQ(run("requests 3", R"({"requets":2})"), 0) << error_;
  EXPECT_TRUE(files().empty());
  EXPECT_NE(why().find("requets"), std::string::npos) << why();
  EXPECT_EQ(run("requests 3", R"({"requests":-2})"), 0);
  EXPECT_EQ(run("requests 3", "[]"), 0);
  EXPECT_EQ(run("requests 3", R"({"requests")"), 0);
  EXPECT_TRUE(files().empty());
}

TEST_F(RecordApp, another_tool_in_the_way_is_named) {
  EXPECT_EQ(run("requests 3", {}, "KGATE_VGPU_INJECT=other_subscriber"), 0) << error_;
  EXPECT_TRUE(files().empty());
  EXPECT_NE(why().find("another tool"), std::string::npos) << why();
}

TEST_F(RecordApp, a_recorded_launch_is_cheap) {
  ASSERT_EQ(run("speed 3000"), 0) << error_;
  RecordProperty("ns_per_launch_recorded", out_);
  const double with = std::stod(out_);
  ASSERT_EQ(run("speed 3000", {}, "KGATE_RECORD_DIR="), 0) << error_;
  std::printf("a launch on the virtual GPU: %.0f ns recorded, %.0f ns not\n", with, std::stod(out_));
  const RecordedFile file = recorded();
  EXPECT_EQ(file.of(Kind::launch).size(), 3001u);
}

}  // namespace
}  // namespace kgate::test
