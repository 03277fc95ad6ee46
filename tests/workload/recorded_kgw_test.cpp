// Recordings in .kgw files: everything comes back, chunks are read apart and verified, and whoever has SQLite at hand
// gets no further than a clear refusal.
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <zstd.h>

#include <cstring>
#include <functional>
#include <random>

#include "recorded_sample.h"
#include "support/fd.h"
#include "workload/content.h"

namespace kgate {
namespace {

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

class RecordedKgw : public testing::Test {
 protected:
  std::filesystem::path file(const std::string& name = "recorded.kgw") const { return folder_.path() / name; }
  void write(const std::string& name = "recorded.kgw") { write_kgw(sample_.workload, file(name), sample_.source()); }
  Workload read(const std::string& name = "recorded.kgw") {
    return read_kgw(file(name)).value_or_throw(Exit::bad_input);
  }
  void edit(const std::string& sql) {
    write("edited.kgw");
    sqlite3* db = nullptr;
    EXPECT_EQ(sqlite3_open(file("edited.kgw").c_str(), &db), SQLITE_OK);
    char* message = nullptr;
    EXPECT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, &message), SQLITE_OK) << (message ? message : "");
    sqlite3_free(message);
    sqlite3_close(db);
  }
  std::string problem_after(const std::string& sql) {
    edit(sql);
    auto read = read_kgw(file("edited.kgw"));
    return read ? "accepted" : read.failure().what;
  }
  // The file is read, and then its weights.
  std::string content_problem_after(const std::string& sql) {
    edit(sql);
    auto read = read_kgw(file("edited.kgw"));
    if (!read) return "read: " + read.failure().what;
    std::vector<std::byte> out(read->buffers[0].bytes);
    try {
      materialise(read->buffers[0].content, out, read->source);
      return "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Exit::bad_input);
      EXPECT_HAS(error.failure().where, "edited.kgw");
      return error.failure().what;
    }
  }
  TempDir folder_{"kgate-test"};
  test::RecordedSample sample_ = test::recorded_sample();
};

TEST_F(RecordedKgw, what_is_written_is_read) {
  const Workload& w = sample_.workload;
  write();
  const Workload r = read();
  EXPECT_EQ(r.sha256, workload_hash(w));
  EXPECT_EQ(workload_hash(r), workload_hash(w));
  EXPECT_EQ(r.source, file());
  EXPECT_EQ(r.addresses, Addresses::unknown);
  EXPECT_EQ(r.origin.device, "NVIDIA H200");
  EXPECT_EQ(r.origin.driver_version, 13000);
  EXPECT_EQ(r.origin.notes, w.origin.notes);
  ASSERT_EQ(r.fidelity.size(), 1u);
  EXPECT_EQ(r.fidelity[0].device, w.fidelity[0].device);
  EXPECT_EQ(r.fidelity[0].shifted_equal, 97u);
  EXPECT_EQ(r.streams[0].priority, -2);
  EXPECT_EQ(r.streams[3].kind, StreamKind::per_thread);
  EXPECT_EQ(r.modules[0].portable, w.modules[0].portable);
  EXPECT_EQ(r.buffers[2].end_hashes, w.buffers[2].end_hashes);
  EXPECT_TRUE(r.launches[0].programmatic);
  EXPECT_TRUE(r.launches[1].cooperative);
  EXPECT_EQ(r.launches[0].params, w.launches[0].params);
  EXPECT_EQ(r.launches[0].relocations[0].delta, 4096);
  EXPECT_EQ(r.graphs[0].nodes[3].after, (std::vector<uint32_t>{1, 2}));
  EXPECT_EQ(r.graphs[0].nodes[3].pitch.dst, 256u);
  EXPECT_EQ(r.graphs[0].nodes[2].value, 0xffffu);
  EXPECT_EQ(r.calls[1].pitch.rows, 2u);
  EXPECT_TRUE(r.calls[1].pinned && r.calls[1].async);
  EXPECT_EQ(r.calls[5].unit, 4);
  EXPECT_EQ(r.calls[7].allocation, 0u);
  EXPECT_EQ(r.requests[2].calls, w.requests[2].calls);
}

TEST_F(RecordedKgw, chunks_come_back_and_zeros_are_not_stored) {
  write();
  const Workload r = read();
  std::vector<std::byte> out(r.buffers[0].bytes, std::byte{0xee});
  materialise(r.buffers[0].content, out, r.source);
  EXPECT_EQ(std::memcmp(out.data(), sample_.weights.data(), out.size()), 0);
  std::vector<std::byte> sent(r.payloads[1].bytes);
  materialise(r.payloads[1].content, sent, r.source);
  EXPECT_EQ(sent.front(), std::byte{'u'});
  EXPECT_EQ(sent.back(), std::byte{'u'});
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(file().c_str(), &db), SQLITE_OK);
  sqlite3_stmt* count = nullptr;
  ASSERT_EQ(sqlite3_prepare_v2(db, "SELECT count(*) FROM chunks", -1, &count, nullptr), SQLITE_OK);
  ASSERT_EQ(sqlite3_step(count), SQLITE_ROW);
  EXPECT_EQ(sqlite3_column_int(count, 0), 4);
  sqlite3_finalize(count);
  sqlite3_close(db);
}

TEST_F(RecordedKgw, equal_chunks_are_asked_for_and_stored_once) {
  Workload& w = sample_.workload;
  w.buffers.push_back(w.buffers[0]);
  w.buffers.back().address = 0;
  std::map<Sha256Digest, int> asked;
  write_kgw(w, file(), [&](const Sha256Digest& digest) {
    ++asked[digest];
    return sample_.chunks.at(digest);
  });
  EXPECT_EQ(asked.size(), sample_.chunks.size());
  for (const auto& [digest, times] : asked) EXPECT_EQ(times, 1) << digest_hex(digest);
  EXPECT_FALSE(asked.contains(Sha256Digest{}));
}

TEST_F(RecordedKgw, a_workload_that_was_read_is_written_with_its_chunks) {
  write();
  const Workload first = read();
  write_kgw(first, file("copy.kgw"));
  std::filesystem::remove(file());
  const Workload copy = read("copy.kgw");
  EXPECT_EQ(copy.sha256, first.sha256);
  EXPECT_EQ(copy.source, file("copy.kgw"));
  std::vector<std::byte> out(copy.buffers[0].bytes);
  materialise(copy.buffers[0].content, out, copy.source);
  EXPECT_EQ(std::memcmp(out.data(), sample_.weights.data(), out.size()), 0);
  write_kgw(copy, file("copy.kgw"));  // over its own source
  EXPECT_EQ(read("copy.kgw").sha256, first.sha256);
}

TEST_F(RecordedKgw, the_same_recording_gives_the_same_file) {
  write("one.kgw");
  write("two.kgw");
  EXPECT_EQ(read_file(file("one.kgw")).value_or_throw(Exit::internal),
            read_file(file("two.kgw")).value_or_throw(Exit::internal));
}

TEST_F(RecordedKgw, chunks_without_a_source_or_with_another_content_are_not_written) {
  EXPECT_THROW(write_kgw(sample_.workload, file()), Error);
  EXPECT_THROW(write_kgw(sample_.workload, file(), [](const Sha256Digest&) { return std::string(kChunkBytes, 'x'); }),
               Error);
  EXPECT_FALSE(std::filesystem::exists(file()));
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(RecordedKgw, chunks_are_refused_where_their_file_does_not_match) {
  EXPECT_HAS(problem_after("DELETE FROM chunks"), "buffers 0: chunk ");
  EXPECT_HAS(problem_after("DELETE FROM chunks"), "is not in the file");
  EXPECT_HAS(problem_after("DELETE FROM chunk_names"), "is not in the file");
  EXPECT_HAS(problem_after("UPDATE chunk_names SET chunk=chunk+4"), "is not in the file");
  EXPECT_HAS(problem_after("UPDATE chunk_names SET raw_bytes=raw_bytes-1"), "are needed");
  EXPECT_HAS(problem_after("UPDATE chunk_names SET raw_bytes='many'"), "column raw_bytes is not an integer");
  EXPECT_HAS(problem_after("UPDATE buffers SET chunks=x'00' WHERE id=0"), "not as many as its size asks for");
  EXPECT_HAS(problem_after("UPDATE buffers SET chunks=zeroblob(96) WHERE id=0"), "hash that the file states");
  EXPECT_HAS(problem_after("UPDATE buffers SET bytes=bytes+1048576 WHERE id=0"), "not as many as its size asks for");
  EXPECT_HAS(problem_after("UPDATE buffers SET bytes=1<<62 WHERE id=0"), "out of range");
  EXPECT_HAS(problem_after("UPDATE buffers SET end_hashes=x'01' WHERE id=1"), "end hashes are not as many");
  EXPECT_HAS(problem_after("UPDATE buffers SET end_hashes=NULL WHERE id=1"), "hash that the file states");
}

TEST_F(RecordedKgw, a_damaged_chunk_is_found_when_it_is_read) {
  EXPECT_EQ(content_problem_after("SELECT 1"), "accepted");
  EXPECT_HAS(content_problem_after("UPDATE chunks SET zstd=x'28b52ffd'"), "zstd frame");
  EXPECT_HAS(content_problem_after("UPDATE chunks SET zstd='text'"), "not one of a chunk");
  EXPECT_HAS(content_problem_after("UPDATE chunks SET zstd=(SELECT zstd FROM blobs WHERE id=0)"), "zstd frame");
  // Another chunk of the same size under this one's name.
  EXPECT_HAS(content_problem_after("UPDATE chunk_names SET chunk=2 WHERE chunk=0"), "hash that names it");
  EXPECT_HAS(content_problem_after("UPDATE chunk_names SET chunk=1 WHERE chunk=0"), "zstd frame");
}

TEST_F(RecordedKgw, a_chunk_that_unpacks_to_gigabytes_is_refused_by_its_frame) {
  std::string bomb(ZSTD_compressBound(64 << 20), '\0');
  const std::string zeros(64 << 20, '\0');
  bomb.resize(ZSTD_compress(bomb.data(), bomb.size(), zeros.data(), zeros.size(), 1));
  std::string hex;
  for (unsigned char c : bomb) {
    char two[3];
    std::snprintf(two, sizeof two, "%02x", c);
    hex += two;
  }
  EXPECT_HAS(content_problem_after("UPDATE chunks SET zstd=x'" + hex + "' WHERE id=0"),
             "raw_bytes is not what the zstd frame says");
  EXPECT_HAS(problem_after("UPDATE launch_data SET zstd=x'" + hex + "', raw_bytes=67108864"), "out of range");
  EXPECT_HAS(problem_after("UPDATE blobs SET zstd=x'" + hex + "'"), "raw_bytes is not what the zstd frame says");
}

TEST_F(RecordedKgw, wrong_values_are_refused_where_they_are) {
  const std::pair<const char*, const char*> cases[] = {
      {"UPDATE meta SET addresses='anywhere'", "meta row 0: addresses is unknown"},
      {"UPDATE origin SET arch=-1", "origin row 0: column arch: -1 is out of range"},
      {"UPDATE origin SET device=''", "origin row 0: device is empty"},
      {"UPDATE origin SET command=char(10)||'x'", "origin: the command holds control characters"},
      {"DELETE FROM origin", "hash that the file states"},
      {"UPDATE notes SET note=char(27)", "notes 0: is empty, holds control characters"},
      {"UPDATE notes SET note=x'07'", "notes row 0: column note is not a text"},
      {"UPDATE fidelity SET equal=101", "fidelity 0: more blocks are equal"},
      {"UPDATE fidelity SET exact=4", "fidelity 0: more buffers"},
      {"UPDATE streams SET kind='default' WHERE id=1", "streams row 1: kind is unknown"},
      {"UPDATE streams SET kind='legacy', priority=0", "streams 1: is a second legacy stream"},
      {"UPDATE streams SET priority=1<<40", "out of range"},
      {"DELETE FROM streams", "workload: 0 streams"},
      {"UPDATE modules SET portable=9", "modules row 0: blob 9: does not exist"},
      {"UPDATE payloads SET bytes=65 WHERE id=0", "payloads 0: holds 64 bytes, not 65"},
      {"UPDATE payloads SET content='poison' WHERE id=2", "payloads row 2: unknown content"},
      {"UPDATE payloads SET chunks=x'00' WHERE id=0", "payloads row 0: column chunks is not NULL"},
      {"UPDATE launches SET kernel=2 WHERE id=1", "launches row 1: kernel 2 does not exist"},
      {"UPDATE launches SET relocations=1 WHERE id=0", "launch_data row 0: there are more bytes"},
      {"UPDATE launches SET relocations=3 WHERE id=0", "a launch does not end where its row ends"},
      {"UPDATE launches SET relocations=1<<30 WHERE id=0", "column relocations: 1073741824 is out of range"},
      {"UPDATE launches SET cooperative=2 WHERE id=0", "out of range"},
      {"DELETE FROM launch_data", "there are fewer bytes than the launches need"},
      {"INSERT INTO launch_data SELECT 1, raw_bytes, zstd FROM launch_data", "there are more bytes"},
      {"UPDATE kernels SET param_bytes=1<<31 WHERE id=0", "too many parameter bytes"},
      {"UPDATE graphs SET nodes=9", "graphs 0: has 8 nodes, not 9"},
      {"DELETE FROM graphs", "graph_nodes row 0: graph 0 does not exist"},
      {"INSERT INTO graphs VALUES(1, 0)", "graphs 1: has no nodes"},
      {"DELETE FROM graph_nodes WHERE position=2", "graph_nodes row 2: position is not the next one"},
      {"UPDATE graph_nodes SET kind='conditional' WHERE position=0", "kind is unknown"},
      {"UPDATE graph_nodes SET launch=2 WHERE position=1", "graphs 0: node 1 launch 2 does not exist"},
      {"UPDATE graph_nodes SET unit=3 WHERE position=2", "node 2 its unit of 3 bytes"},
      {"UPDATE graph_nodes SET row_count=1<<60 WHERE position=3", "node 3 has 1152921504606846976 rows"},
      {"UPDATE graph_edges SET after=5 WHERE node=5", "node 5 depends on node 5, which is not before it"},
      {"UPDATE graph_edges SET after=7 WHERE node=2", "node 2 depends on node 7, which is not before it"},
      {"UPDATE graph_edges SET node=8 WHERE node=2", "node 8 of graph 0 does not exist"},
      {"UPDATE graph_edges SET position=1 WHERE node=2", "position is not the next one"},
      {"UPDATE calls SET request=4 WHERE id=0", "calls row 0: request 4 does not exist"},
      {"UPDATE calls SET request=1 WHERE id=0", "requests 1: call 0 is on another thread"},
      {"UPDATE calls SET graph=1 WHERE id=3", "calls 3: graph 1 does not exist"},
      {"UPDATE calls SET payload=3 WHERE id=1", "calls 1: payload 3 does not exist"},
      {"UPDATE calls SET payload=1 WHERE id=1", "calls 1: payload 1 has another size"},
      {"UPDATE calls SET row_count=0 WHERE id=1", "calls 1: has 0 rows"},
      {"UPDATE calls SET dst_pitch=1<<62 WHERE id=1", "calls 1: leaves its destination buffer"},
      {"UPDATE calls SET dst_pitch=31 WHERE id=1", "calls 1: the rows of its destination overlap"},
      {"UPDATE calls SET src_pitch=64 WHERE id=1", "calls 1: the rows of its host side are not packed"},
      {"UPDATE calls SET value=1<<32 WHERE id=5", "calls row 5: column value: 4294967296 is out of range"},
      {"UPDATE calls SET unit=2 WHERE id=5", "calls 5: its value does not fit its unit"},
      {"UPDATE calls SET async=1 WHERE id=2", "calls 2: is marked async"},
      {"UPDATE calls SET pinned=1 WHERE id=5", "calls 5: is marked pinned"},
      {"UPDATE calls SET allocation=1 WHERE id=7", "calls 7: frees allocation 1, which is not there"},
      {"UPDATE calls SET allocation=4294967294 WHERE id=7", "calls 7: allocation 4294967294 does not exist"},
      {"UPDATE calls SET kind='alloc', bytes=1 WHERE id=7", "calls 7: allocation 0 is there already"},
      {"UPDATE calls SET stream=3 WHERE id=2", "uses the default stream of another thread"},
      {"UPDATE calls SET bytes=0 WHERE id=0", "calls 0: its size of 0 bytes does not fit its kind"},
      {"UPDATE after_edges SET after=2", "calls 2: waits for call 2, which is not before it"},
      {"DELETE FROM requests", "calls row 0: request 0 does not exist"},
      {"INSERT INTO requests VALUES(4, 0, 0)", "requests 4: has no calls"},
  };
  for (const auto& [sql, part] : cases) {
    const std::string problem = problem_after(sql);
    EXPECT_NE(problem.find(part), std::string::npos) << sql << "\n  " << problem;
  }
}

TEST_F(RecordedKgw, a_cut_off_file_is_refused) {
  write();
  const uint64_t size = std::filesystem::file_size(file());
  for (uint64_t length = size - 1; length > 4096; length -= std::min<uint64_t>(length, size / 97 + 1)) {
    std::filesystem::resize_file(file(), length);
    ASSERT_FALSE(read_kgw(file())) << length;
    ASSERT_FALSE(ChunkReader::open(file())) << length;
  }
}

// Wherever a byte changes, the workload is refused, or it is the same but for what is no part of its identity, and its
// contents are right or refused.
TEST_F(RecordedKgw, changed_bytes_are_refused_or_harmless) {
  write();
  const std::string whole = read_file(file()).value_or_throw(Exit::internal),
                    identity = workload_hash(sample_.workload);
  std::mt19937 random(11);
  size_t refused = 0;
  constexpr int kRounds = 600;
  for (int round = 0; round < kRounds; ++round) {
    std::string bytes = whole;
    // The tables lie in front; the chunks, at the end, are most of the file.
    const size_t at = random() % (round % 8 ? std::min<size_t>(whole.size(), 150'000) : whole.size());
    for (size_t k = 0; k < 1 + random() % 4 && at + k < bytes.size(); ++k) bytes[at + k] = static_cast<char>(random());
    {
      std::FILE* out = std::fopen(file("changed.kgw").c_str(), "wb");
      ASSERT_EQ(std::fwrite(bytes.data(), 1, bytes.size(), out), bytes.size());
      std::fclose(out);
    }
    auto read = read_kgw(file("changed.kgw"));
    if (!read) {
      ++refused;
      continue;
    }
    ASSERT_EQ(workload_hash(*read), identity) << at;
    if (round % 8) continue;
    std::vector<std::byte> out(read->buffers[0].bytes);
    try {
      materialise(read->buffers[0].content, out, read->source);
      ASSERT_EQ(std::memcmp(out.data(), sample_.weights.data(), out.size()), 0) << at;
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, kRounds / 20u);
}

TEST_F(RecordedKgw, fidelity_is_stored_in_the_file_and_its_identity_stays) {
  write();
  const std::string identity = read().sha256;
  ASSERT_TRUE(add_fidelity(file(), {"virtual, driver 12.0", 10, 10, 3, 3, 10}, Addresses::relocatable));
  Workload r = read();
  EXPECT_EQ(r.sha256, identity);
  EXPECT_EQ(r.addresses, Addresses::relocatable);
  ASSERT_EQ(r.fidelity.size(), 2u);
  EXPECT_EQ(r.fidelity[1].device, "virtual, driver 12.0");
  ASSERT_TRUE(add_fidelity(file(), {"NVIDIA H200, driver 13.0", 100, 100, 3, 3, 1}, Addresses::pinned));
  r = read();
  EXPECT_EQ(r.addresses, Addresses::pinned);
  ASSERT_EQ(r.fidelity.size(), 2u);  // of the same device: in place of the other
  EXPECT_EQ(r.fidelity[1].equal, 100u);
  std::vector<std::byte> out(r.buffers[0].bytes);
  materialise(r.buffers[0].content, out, r.source);
  EXPECT_EQ(std::memcmp(out.data(), sample_.weights.data(), out.size()), 0);
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) files += entry.is_regular_file();
  EXPECT_EQ(files, 1u);
}

TEST_F(RecordedKgw, fidelity_of_no_workload_is_refused_and_nothing_is_touched) {
  const std::string text =
      "not a workload, but longer than a header of one hundred bytes would be, so that it is looked "
      "at, and refused for what it says";
  write_file_atomic(file("notes.txt"), text).value_or_throw(Exit::internal);
  auto stored = add_fidelity(file("notes.txt"), {"x", 1, 1, 1, 1, 1}, Addresses::pinned);
  ASSERT_FALSE(stored);
  EXPECT_HAS(stored.failure().what, "is not a workload file");
  EXPECT_EQ(read_file(file("notes.txt")).value_or_throw(Exit::internal), text);
  EXPECT_FALSE(add_fidelity(file("missing.kgw"), {"x", 1, 1, 1, 1, 1}, Addresses::pinned));
  write();
  EXPECT_THROW((void)add_fidelity(file(), {"x", 1, 2, 1, 1, 1}, Addresses::pinned), Error);
  EXPECT_EQ(read().fidelity.size(), 1u);
}

TEST_F(RecordedKgw, a_reader_of_chunks_says_what_it_lacks) {
  write();
  auto reader = ChunkReader::open(file());
  ASSERT_TRUE(reader);
  std::vector<std::byte> out(kChunkBytes);
  auto missing = reader->read(sha256_digest("nobody's"), out);
  ASSERT_FALSE(missing);
  EXPECT_HAS(missing.failure().what, "is not in the file");
  const Sha256Digest first = std::get<ContentChunks>(sample_.workload.buffers[0].content).chunks[0];
  auto shorter = reader->read(first, std::span(out).first(100));
  ASSERT_FALSE(shorter);
  EXPECT_HAS(shorter.failure().what, "1048576 bytes; 100 are needed");
  EXPECT_TRUE(reader->read(first, out));
  EXPECT_TRUE(reader->read(Sha256Digest{}, std::span(out).first(7)));
  EXPECT_EQ(out[6], std::byte{0});
}

// As many chunks as several threads share.
TEST_F(RecordedKgw, a_large_content_is_read_whole_and_one_damaged_chunk_is_found) {
  std::string large(100 * kChunkBytes + 5, '\0');
  for (size_t at = 0; at < large.size(); at += 4096)
    std::memcpy(&large[at], &at, std::min<size_t>(8, large.size() - at));
  Workload& w = sample_.workload;
  w.buffers[0].bytes = large.size(), w.buffers[0].address = 0;
  w.buffers[0].content = sample_.cut(large);
  write();
  const Workload r = read();
  std::vector<std::byte> out(large.size(), std::byte{0xee});
  materialise(r.buffers[0].content, out, r.source);
  EXPECT_EQ(std::memcmp(out.data(), large.data(), out.size()), 0);
  EXPECT_HAS(content_problem_after("UPDATE chunk_names SET chunk=70 WHERE chunk=71"), "hash that names it");
}

TEST_F(RecordedKgw, content_in_chunks_needs_its_file) {
  std::vector<std::byte> out(sample_.workload.buffers[0].bytes);
  EXPECT_THROW(materialise(sample_.workload.buffers[0].content, out), Error);
  EXPECT_THROW(materialise(sample_.workload.buffers[0].content, out, file("missing.kgw")), Error);
}

}  // namespace
}  // namespace kgate
