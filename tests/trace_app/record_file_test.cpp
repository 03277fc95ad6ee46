// The record file of a traced application: what is whole must be readable at any moment, and nothing may be written to
// a file that is not it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "support/fd.h"
#include "trace/records.h"
#include "trace/writer.h"

namespace kgate {
namespace {

class RecordFile : public ::testing::Test {
 protected:
  TempDir folder_{"record-file"};
  const std::string path_ = (folder_.path() / "1.kgr").string();

  std::unique_ptr<RecordWriter> open(uint64_t bytes = 1 << 20) {
    Fd file(::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    descriptor_ = file.get();
    auto writer = RecordWriter::open_file(std::move(file), path_, bytes);
    EXPECT_TRUE(writer);
    return std::move(*writer);
  }
  trace::Records read() {
    std::string bytes = *read_file(path_);
    return trace::read_records(std::as_bytes(std::span(bytes)));
  }
  static wire::ProcessRecord process(uint64_t begin, uint64_t end) {
    return {wire::head<wire::ProcessRecord>(wire::Kind::process, wire::kNoRound), begin, end, 1, 2};
  }
  int descriptor_ = -1;
};

TEST_F(RecordFile, is_whole_after_every_record) {
  auto writer = open();
  EXPECT_EQ(read().bad, 0u);
  for (uint64_t i = 1; i <= 3; ++i) {
    writer->append(process(i, 0));
    trace::Records r = read();
    EXPECT_EQ(r.bad, 0u) << r.first_bad;
    EXPECT_EQ(r.processes.size(), i);
  }
  writer->append_name(4, "a name");
  RecordWriter::Stage stage(4096);
  stage.append(process(9, 0));
  writer->merge(stage);
  trace::Records r = read();
  EXPECT_EQ(r.names.at(4), "a name");
  EXPECT_EQ(r.processes.size(), 4u);
}

TEST_F(RecordFile, a_record_is_rewritten_in_its_place) {
  auto writer = open();
  uint64_t at = writer->append(process(5, 0));
  writer->append(process(6, 0));
  writer->overwrite(at, process(5, 50));
  trace::Records r = read();
  ASSERT_EQ(r.processes.size(), 2u);
  EXPECT_EQ(r.processes[0].end, 50u);
  EXPECT_EQ(r.processes[1].end, 0u);
  writer->overwrite(RecordWriter::kNowhere, process(1, 1));  // one that did not fit
  EXPECT_EQ(read().processes.size(), 2u);
}

TEST_F(RecordFile, what_does_not_fit_is_counted) {
  auto writer = open(sizeof(wire::Header) + 100);
  EXPECT_NE(writer->append(process(1, 0)), RecordWriter::kNowhere);
  for (int i = 0; i < 9; ++i) writer->append(process(2, 0));
  RecordWriter::Stage stage(4096);
  for (int i = 0; i < 5; ++i) stage.append(process(3, 0));
  writer->merge(stage);
  trace::Records r = read();
  EXPECT_EQ(r.bad, 0u);
  EXPECT_EQ(r.processes.size() + r.lost, 15u);
  EXPECT_EQ(writer->error(), 0);
}

TEST_F(RecordFile, a_full_disk_is_an_error_and_not_a_signal) {
  pid_t child = fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);  // as the tracer's thread blocks it
    auto writer = open();
    rlimit limit{4096, 4096};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    for (int i = 0; i < 1000; ++i) writer->append(process(1, 0));
    trace::Records r = read();
    bool good = writer->error() == EFBIG && r.bad == 0 && r.lost > 800 && r.processes.size() + r.lost == 1000;
    _exit(good ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(RecordFile, a_descriptor_that_was_closed_is_opened_again) {
  auto writer = open();
  ::close(descriptor_);
  writer->append(process(1, 0));
  EXPECT_EQ(writer->error(), 0);
  EXPECT_EQ(read().processes.size(), 1u);
}

TEST_F(RecordFile, another_file_under_its_number_is_not_written_to_nor_closed) {
  auto writer = open();
  std::string other = (folder_.path() / "other").string();
  int file = ::open(other.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(::dup2(file, descriptor_), descriptor_);
  writer->append(process(1, 0));
  EXPECT_EQ(read_file(other)->size(), 0u);
  EXPECT_EQ(::fcntl(descriptor_, F_GETFD), 0);
  EXPECT_EQ(read().processes.size(), 1u);
  ::close(file);
  ::close(descriptor_);
}

TEST_F(RecordFile, a_file_that_was_taken_away_is_an_error) {
  auto writer = open();
  ::close(descriptor_);
  ::unlink(path_.c_str());
  EXPECT_EQ(writer->append(process(1, 0)), RecordWriter::kNowhere);
  EXPECT_EQ(writer->error(), EBADF);
}

}  // namespace
}  // namespace kgate
