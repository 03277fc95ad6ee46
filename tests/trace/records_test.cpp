#include "trace/records.h"

#include <gtest/gtest.h>

#include <random>

#include "stream.h"
#include "trace/join.h"
#include "trace/writer.h"

namespace kgate::trace {
namespace {

using test::Stream;

TEST(Records, what_the_writer_writes_is_read_back) {
  Fd memfd = std::move(*make_memfd("records", 1 << 16));
  auto writer = RecordWriter::open(memfd, 1 << 16);
  ASSERT_TRUE(writer) << writer.failure().what;
  RecordWriter::Stage stage(1024);
  stage.append(wire::RoundRecord{wire::head<wire::RoundRecord>(wire::Kind::round, 3), 10, 20, 1, 2});
  (*writer)->append_name(9, "softmax<float, 4>");
  (*writer)->merge(stage);
  EXPECT_EQ(stage.used(), 0u);
  auto mapping = Mapping::of(memfd, 1 << 16, false);
  Records r = read_records(mapping->bytes());
  EXPECT_EQ(r.bad, 0u) << r.first_bad;
  ASSERT_EQ(r.rounds.size(), 1u);
  EXPECT_EQ(r.rounds[0].pair, 2u);
  EXPECT_EQ(r.names.at(9), "softmax<float, 4>");
}

TEST(Records, writer_counts_what_does_not_fit_and_keeps_whole_records) {
  size_t bytes = sizeof(wire::Header) + 100;
  Fd memfd = std::move(*make_memfd("records", bytes));
  auto writer = RecordWriter::open(memfd, bytes);
  ASSERT_TRUE(writer);
  wire::RoundRecord record{wire::head<wire::RoundRecord>(wire::Kind::round, 0), 1, 2, 0, 0};
  RecordWriter::Stage stage(5 * sizeof record);
  for (uint32_t i = 0; i < 7; ++i) record.head.round = i, stage.append(record);  // two do not fit the stage
  (*writer)->merge(stage);                                                       // three fit the memfd
  EXPECT_EQ((*writer)->lost(), 4u);
  (*writer)->append_name(1, "name");
  EXPECT_EQ((*writer)->lost(), 5u);
  auto mapping = Mapping::of(memfd, bytes, false);
  Records r = read_records(mapping->bytes());
  EXPECT_EQ(r.rounds.size(), 3u);
  EXPECT_EQ(r.lost, 5u);
  EXPECT_EQ(r.bad, 0u);
}

TEST(Records, writer_refuses_a_descriptor_that_is_too_small) {
  Fd memfd = std::move(*make_memfd("records", 4096));
  EXPECT_FALSE(RecordWriter::open(memfd, 8192));
  EXPECT_FALSE(RecordWriter::open(memfd, 8));
  EXPECT_FALSE(RecordWriter::open(Fd(), 4096));
}

TEST(Records, name_longer_than_the_limit_is_cut) {
  Fd memfd = std::move(*make_memfd("records", 1 << 16));
  auto writer = RecordWriter::open(memfd, 1 << 16);
  (*writer)->append_name(1, std::string(10'000, 'x'));
  auto mapping = Mapping::of(memfd, 1 << 16, false);
  Records r = read_records(mapping->bytes());
  EXPECT_EQ(r.names.at(1).size(), wire::kMaxNameBytes);
}

TEST(Records, foreign_headers_are_findings) {
  EXPECT_EQ(read_records({}).bad, 1u);
  Stream magic, version, used;
  magic.set_header(1, wire::kVersion);
  version.round(0, 0, 1, 2).set_header(wire::kMagic, 99);
  used.set_used(1 << 20);
  EXPECT_EQ(read_records(magic.bytes()).bad, 1u);
  Records other = read_records(version.bytes());
  EXPECT_EQ(other.first_bad, "record version 99");
  EXPECT_TRUE(other.rounds.empty());
  EXPECT_EQ(read_records(used.bytes()).bad, 1u);
}

TEST(Records, impossible_lengths_end_the_stream) {
  for (uint16_t length : {0, 4, 7, 12, 65528}) {
    Stream s;
    s.round(1, 0, 1, 2);
    wire::RecordHead head{wire::Kind::round, length, 2};
    s.raw(&head, sizeof head).round(3, 0, 3, 4);
    Records r = read_records(s.bytes());
    EXPECT_EQ(r.bad, 1u) << length;
    EXPECT_EQ(r.rounds.size(), 1u) << length;
  }
}

TEST(Records, unknown_kinds_and_wrong_sizes_are_skipped_and_counted) {
  Stream s;
  wire::RecordHead unknown{static_cast<wire::Kind>(77), 8, 0}, small{wire::Kind::launch, 8, 0};
  s.raw(&unknown, 8).raw(&small, 8).round(1, 0, 1, 2);
  Records r = read_records(s.bytes());
  EXPECT_EQ(r.bad, 2u);
  EXPECT_EQ(r.rounds.size(), 1u);
}

TEST(Records, times_that_run_backwards_are_refused_or_counted) {
  Stream s;
  s.round(1, 0, 20, 10).request(1, 0, 20, 10).launch(1, 0, 20, 10);             // the worker's own: garbage
  s.kernel(20, 10, 1).kernel(0, 0, 2).api(20, 10, 3).kernel(1, UINT64_MAX, 4);  // CUPTI's: invalid times
  Records r = read_records(s.bytes());
  EXPECT_EQ(r.bad, 3u);
  EXPECT_EQ(r.invalid_times, 4u);
  EXPECT_EQ(r.kernels.size(), 3u);
  EXPECT_EQ(r.kernels[0].end, 0u);
  EXPECT_TRUE(r.apis.empty());
}

TEST(Records, phase_beyond_the_enum_is_refused) {
  Stream s;
  s.request(1, 0, 1, 2, 7, static_cast<wire::Phase>(9)).launch(1, 0, 1, 2, 7, 0, static_cast<wire::Phase>(3));
  Records r = read_records(s.bytes());
  EXPECT_EQ(r.bad, 2u);
}

TEST(Records, names_are_made_printable_and_lie_about_their_length_in_vain) {
  Stream s;
  s.name(1, "a\x01\nb");
  wire::NameRecord lie{{wire::Kind::name, sizeof lie, wire::kNoRound}, 2, 4000};
  s.raw(&lie, sizeof lie).name(1, "again");
  Records r = read_records(s.bytes());
  EXPECT_EQ(r.names.at(1).find('\n'), std::string::npos);
  EXPECT_EQ(r.names.size(), 1u);
  EXPECT_EQ(r.bad, 2u);
}

TEST(Records, random_bytes_never_do_more_than_count) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    Stream s;
    size_t size = random() % 700;
    std::vector<uint8_t> noise(size);
    for (auto& b : noise) b = static_cast<uint8_t>(random());
    if (size >= 8 && round % 2) {  // a plausible first head, so that the payload is looked at
      wire::RecordHead head{static_cast<wire::Kind>(1 + random() % 10), static_cast<uint16_t>(size / 8 * 8),
                            static_cast<uint32_t>(random() % 3)};
      std::memcpy(noise.data(), &head, sizeof head);
    }
    s.raw(noise.data(), noise.size());
    Records r = read_records(s.bytes());
    join_records(r, {}, {});
    Timeline timeline(r);
    for (const auto& round_record : r.rounds) EXPECT_LE(round_record.begin, round_record.end);
  }
}

}  // namespace
}  // namespace kgate::trace
