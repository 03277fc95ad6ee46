// The slice: where it begins and ends, and what memory held there.
#include <map>

#include "app.h"
#include "workload/block_hash.h"

namespace kgate::test {
namespace {

using namespace recording;

std::vector<SnapshotRecord> snapshots(const RecordedFile& file, bool at_end) {
  std::vector<SnapshotRecord> found;
  for (const OneRecord& record : file.of(Kind::snapshot))
    if (const auto snapshot = record.as<SnapshotRecord>(); (snapshot.at_end != 0) == at_end) found.push_back(snapshot);
  return found;
}

uint32_t word(const std::string& bytes, size_t at) {
  uint32_t value = 0;
  std::memcpy(&value, bytes.data() + at, 4);
  return value;
}

TEST_F(RecordApp, the_slice_holds_everything_when_nothing_is_asked) {
  ASSERT_EQ(run("requests 3"), 0) << error_;
  const RecordedFile file = recorded();
  EXPECT_EQ(file.of(Kind::launch).size(), 6u);
  EXPECT_EQ(file.of(Kind::memset).size(), 1u);
  EXPECT_LT(file.position(Kind::slice_begin), file.position(Kind::memset));
  ASSERT_EQ(snapshots(file, false).size(), 1u);
  EXPECT_EQ(file.of(Kind::slice_begin)[0].as<SliceRecord>().bytes, 8192u);
  // 32 words of 9 at the end, and what was sent last.
  const auto end = snapshots(file, true);
  ASSERT_EQ(end.size(), 1u);
  std::vector<std::byte> memory(8192);
  const uint32_t nine = 9, two = 2;
  for (size_t i = 0; i < 32; ++i) std::memcpy(memory.data() + i * 4, &nine, 4);
  std::memcpy(memory.data() + 256, &two, 4);
  const auto hashes = block_hashes(memory, 4096);
  EXPECT_EQ(file.blob(end[0].content), std::string(reinterpret_cast<const char*>(hashes.data()), 16));
}

TEST_F(RecordApp, requests_end_the_slice_and_the_rest_costs_nothing) {
  ASSERT_EQ(run("requests 50", R"({"requests":2})"), 0) << error_;
  const RecordedFile file = recorded();
  EXPECT_EQ(file.header.complete, 1u);
  EXPECT_EQ(file.of(Kind::launch).size(), 4u);
  EXPECT_EQ(file.of(Kind::stream_sync).size(), 2u);
  ASSERT_EQ(file.of(Kind::slice_end).size(), 1u);
  EXPECT_GT(file.position(Kind::slice_end), file.position(Kind::stream_sync));
  EXPECT_EQ(file.records.back().head.kind, Kind::snapshot);
}

TEST_F(RecordApp, a_later_slice_begins_with_what_memory_holds_then) {
  ASSERT_EQ(run("requests 3000", R"({"from_ns":1000000,"requests":5})"), 0) << error_;
  const RecordedFile file = recorded();
  ASSERT_EQ(file.of(Kind::slice_begin).size(), 1u);
  EXPECT_TRUE(file.of(Kind::memset).empty());
  const auto begin = snapshots(file, false);
  ASSERT_EQ(begin.size(), 1u);
  const std::string content = file.blob(begin[0].content);
  ASSERT_EQ(content.size(), 8192u);
  const uint32_t first = word(content, 0);
  EXPECT_GT(first, 0u);
  EXPECT_EQ(word(content, 124), first);
  EXPECT_EQ(word(content, 128), 0u);
  // What is sent is the number of the request, which the sum of launches tells.
  const auto copies = file.of(Kind::copy);
  ASSERT_FALSE(copies.empty());
  const uint32_t sent = word(file.blob(copies[0].as<CopyRecord>().payload), 0);
  EXPECT_GE(first + 2, sent * 3);  // it may begin between what is sent and the second launch
  EXPECT_LE(first, sent * 3 + 1);
  const auto end = snapshots(file, true);
  EXPECT_EQ(end.size(), 1u);
  EXPECT_EQ(file.of(Kind::function).size(), 1u);
}

// Two threads go on while the slice begins and ends: what memory held at the begin and the launches in between must
// give what it held at the end.
TEST_F(RecordApp, the_launches_of_the_slice_lead_from_its_begin_to_its_end) {
  for (const char* options : {R"({"from_ns":500000,"requests":20})", R"({"from_ns":1500000,"requests":7})"}) {
    std::filesystem::remove_all(recordings());
    std::filesystem::create_directory(recordings());
    ASSERT_EQ(run("threads 30000", options), 0) << error_;
    const RecordedFile file = recorded();
    ASSERT_EQ(file.of(Kind::slice_begin).size(), 1u);
    std::map<uint64_t, std::string> names;
    for (const OneRecord& record : file.of(Kind::function)) {
      const auto f = record.as<FunctionRecord>();
      names[f.function] = record.tail(sizeof f).substr(size_t{f.param_count} * 8, f.name_length);
    }
    std::map<uint64_t, std::string> memory;
    for (const SnapshotRecord& snapshot : snapshots(file, false))
      memory[snapshot.address] = file.blob(snapshot.content);
    size_t launches = 0;
    for (size_t i = file.position(Kind::slice_begin); i < file.position(Kind::slice_end); ++i) {
      const OneRecord& record = file.records[i];
      if (record.head.kind != Kind::launch) continue;
      const std::string params(record.tail(sizeof(LaunchRecord)));
      uint64_t data = 0;
      std::memcpy(&data, params.data(), 8);
      const auto known = memory.find(data);
      if (known == memory.end()) continue;  // a thread that came later, with memory of its own
      ++launches;
      std::string& content = known->second;
      for (size_t at = 0; at < 128; at += 4) {
        const uint32_t value =
            word(params, 8) + (names[record.as<LaunchRecord>().function] == "add" ? word(content, at) : 0);
        std::memcpy(content.data() + at, &value, 4);
      }
    }
    EXPECT_GT(launches, 0u);
    const auto end = snapshots(file, true);
    EXPECT_GE(end.size(), memory.size());
    for (const SnapshotRecord& snapshot : end) {
      if (!memory.contains(snapshot.address)) continue;
      const auto hashes = block_hashes(std::as_bytes(std::span(memory[snapshot.address])), 4096);
      EXPECT_EQ(file.blob(snapshot.content), std::string(reinterpret_cast<const char*>(hashes.data()), 8));
    }
  }
}

TEST_F(RecordApp, a_slice_ends_after_its_time) {
  ASSERT_EQ(run("requests 3", R"({"for_ns":1})"), 0) << error_;
  const RecordedFile file = recorded();
  ASSERT_EQ(file.of(Kind::slice_end).size(), 1u);
  EXPECT_EQ(file.of(Kind::memset).size(), 1u);  // the call with which it began
  EXPECT_LE(file.of(Kind::launch).size(), 1u);
  EXPECT_EQ(file.header.complete, 1u);
}

TEST_F(RecordApp, a_slice_that_is_never_reached_is_none) {
  ASSERT_EQ(run("requests 3", R"({"from_ns":3600000000000})"), 0) << error_;
  const RecordedFile file = recorded();
  EXPECT_TRUE(file.of(Kind::slice_begin).empty());
  EXPECT_EQ(file.of(Kind::launch).size(), 1u);  // the first, which tells that there was one
  EXPECT_EQ(file.header.complete, 1u);
}

TEST_F(RecordApp, more_memory_than_allowed_is_refused_with_its_size) {
  ASSERT_EQ(run("requests 3", R"({"max_bytes":8000})"), 0) << error_;
  const RecordedFile file = recorded();
  const auto refused = file.notes(true);
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_NE(refused[0].find("8.00 KiB"), std::string::npos) << refused[0];
  EXPECT_NE(refused[0].find("--max-size"), std::string::npos);
  EXPECT_TRUE(file.of(Kind::snapshot).empty());
}

TEST_F(RecordApp, ranges_are_recorded_whoever_makes_them) {
  const int status = run("ranges");
  if (status == kMissing) GTEST_SKIP() << "built without NVTX's headers";
  ASSERT_EQ(status, 0) << error_;
  const RecordedFile file = recorded();
  std::vector<std::string> names;
  for (const OneRecord& record : file.of(Kind::range_push))
    names.emplace_back(record.tail(sizeof(RangeRecord)).substr(0, record.as<RangeRecord>().length));
  // The first push comes before the slice, which begins with the first launch.
  EXPECT_EQ(names, (std::vector<std::string>{"inn\u00e9r", "step", "inn\u00e9r", "step", "inn\u00e9r"}));
  EXPECT_EQ(file.of(Kind::range_pop).size(), 5u);
  ASSERT_EQ(file.of(Kind::range_start).size(), 1u);
  ASSERT_EQ(file.of(Kind::range_end).size(), 1u);
  EXPECT_EQ(file.of(Kind::range_start)[0].as<RangeRecord>().id, file.of(Kind::range_end)[0].as<RangeRecord>().id);
  EXPECT_NE(file.of(Kind::range_start)[0].head.thread, file.of(Kind::range_end)[0].head.thread);
}

TEST_F(RecordApp, named_ranges_are_requests) {
  const int status = run("ranges", R"({"request_range":"step","requests":2})");
  if (status == kMissing) GTEST_SKIP() << "built without NVTX's headers";
  ASSERT_EQ(status, 0) << error_;
  const RecordedFile file = recorded();
  EXPECT_EQ(file.of(Kind::launch).size(), 4u);
  size_t steps = 0;
  for (const OneRecord& record : file.of(Kind::range_push))
    steps += record.tail(sizeof(RangeRecord)).substr(0, record.as<RangeRecord>().length) == "step";
  EXPECT_EQ(steps, 2u);  // the first although it began before the slice
}

}  // namespace
}  // namespace kgate::test
