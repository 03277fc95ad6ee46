#include "workload/kgw.h"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <fstream>
#include <random>

#include "sample.h"
#include "support/fd.h"
#include "workload/limits.h"

namespace kgate {
namespace {

class Kgw : public testing::Test {
 protected:
  std::filesystem::path file(const std::string& name = "sample.kgw") const { return folder_.path() / name; }

  std::string written_bytes() {
    write_kgw(test::sample_workload(), file());
    return read_file(file()).value_or_throw(Exit::internal);
  }
  void put(const std::filesystem::path& path, const std::string& bytes) {  // without the sync of write_file_atomic
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  }
  void patch(const std::filesystem::path& path, size_t at, const std::string& bytes) {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(static_cast<std::streamoff>(at));
    file << bytes;
  }
  std::string problem(const std::filesystem::path& path) {
    auto read = read_kgw(path);
    return read ? "accepted" : read.failure().what;
  }
  std::string problem_of(const std::string& bytes) {
    put(file("changed.kgw"), bytes);
    return problem(file("changed.kgw"));
  }
  // The file after statements of somebody who has SQLite at hand.
  std::string problem_after(const std::string& sql) {
    write_kgw(test::sample_workload(), file("edited.kgw"));
    sqlite3* db = nullptr;
    EXPECT_EQ(sqlite3_open(file("edited.kgw").c_str(), &db), SQLITE_OK);
    char* message = nullptr;
    EXPECT_EQ(sqlite3_exec(db, ("PRAGMA writable_schema=ON;" + sql).c_str(), nullptr, nullptr, &message), SQLITE_OK)
        << (message ? message : "");
    sqlite3_free(message);
    sqlite3_close(db);
    return problem(file("edited.kgw"));
  }

  TempDir folder_{"kgate-test"};
};

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST_F(Kgw, what_is_written_is_read) {
  Workload original = test::sample_workload();
  write_kgw(original, file());
  auto read = read_kgw(file());
  ASSERT_TRUE(read) << read.failure().what;
  EXPECT_EQ(read->sha256, workload_hash(original));
  EXPECT_EQ(workload_hash(*read), workload_hash(original));
  EXPECT_EQ(read->name, "sample");
  EXPECT_EQ(read->modules[0].image, original.modules[0].image);
  EXPECT_EQ(read->modules[0].sha256, original.modules[0].sha256);
  EXPECT_EQ(std::get<ContentRandom>(read->buffers[1].content).seed, 0xfedcba9876543210u);
  EXPECT_EQ(std::get<ContentBytes>(read->buffers[2].content).bytes, std::string("\0\1\2\3 recorded", 13));
  EXPECT_EQ(read->launches[0].params, original.launches[0].params);
  EXPECT_EQ(read->calls[4].after, (std::vector<uint32_t>{0, 2}));
  EXPECT_EQ(read->requests[1].arrival_ns, 2500u);
}

TEST_F(Kgw, a_kernel_without_parameters_survives) {
  Workload w = test::sample_workload();
  w.kernels[0].params.clear();
  w.kernels[0].param_bytes = 0;
  w.launches[0].params.clear();
  w.launches[0].relocations.clear();
  write_kgw(w, file());
  auto read = read_kgw(file());
  ASSERT_TRUE(read) << read.failure().what;
  EXPECT_TRUE(read->launches[0].params.empty());
}

TEST_F(Kgw, the_same_workload_gives_the_same_file) {
  const std::string first = written_bytes();
  EXPECT_EQ(first, written_bytes());
}

TEST_F(Kgw, equal_contents_are_stored_once) {
  Workload w = test::sample_workload();
  std::string noise(1 << 16, '\0');
  std::mt19937 random(1);
  for (char& c : noise) c = static_cast<char>(random());
  w.buffers[3].content = ContentBytes{noise};
  write_kgw(w, file("one.kgw"));
  w.buffers.push_back(w.buffers[3]);
  write_kgw(w, file("two.kgw"));
  EXPECT_LT(std::filesystem::file_size(file("two.kgw")), std::filesystem::file_size(file("one.kgw")) + (1 << 13));
}

TEST_F(Kgw, nothing_is_left_beside_the_file) {
  written_bytes();
  ASSERT_TRUE(read_kgw(file()));
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
    EXPECT_EQ(entry.path(), file());
    ++files;
  }
  EXPECT_EQ(files, 1u);
}

TEST_F(Kgw, an_unwritable_folder_is_an_environment_error) {
  try {
    write_kgw(test::sample_workload(), file("no/such/folder.kgw"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::environment);
  }
}

TEST_F(Kgw, an_invalid_workload_is_never_written) {
  Workload w = test::sample_workload();
  w.calls[1].launch = 9;
  EXPECT_THROW(write_kgw(w, file()), Error);
  EXPECT_FALSE(std::filesystem::exists(file()));
}

TEST_F(Kgw, a_file_name_with_odd_characters_is_only_a_name) {
  const auto odd = file("50% ?mode=rwc&x#y.kgw");
  write_kgw(test::sample_workload(), odd);
  EXPECT_EQ(problem(odd), "accepted");
}

TEST_F(Kgw, files_that_are_no_workload_are_named_so) {
  EXPECT_HAS(problem(file("missing.kgw")), "cannot open");
  EXPECT_HAS(problem(folder_.path()), "not a regular file");
  ASSERT_EQ(::mkfifo(file("pipe").c_str(), 0600), 0);
  EXPECT_HAS(problem(file("pipe")), "not a regular file");
  EXPECT_HAS(problem_of(""), "too short");
  EXPECT_HAS(problem_of(std::string(5000, 'x')), "not a workload file");
}

TEST_F(Kgw, truncated_files_are_refused_at_every_length) {
  const std::string whole = written_bytes();
  EXPECT_NE(problem_of(whole + "x"), "accepted");
  for (size_t length = whole.size(); length-- > 0; length -= length < 700 ? 0 : 508) {
    std::filesystem::resize_file(file(), length);
    ASSERT_NE(problem(file()), "accepted") << length;
  }
}

// Bytes that SQLite leaves unused may change without harm: then the workload must be the same.
TEST_F(Kgw, flipped_bits_are_refused_or_harmless) {
  const std::string whole = written_bytes();
  const std::string identity = workload_hash(test::sample_workload());
  size_t refused = 0, tried = 0;
  for (size_t at = 0; at < whole.size(); at += at < 4096 ? 7 : 23) {
    patch(file(), at, std::string(1, static_cast<char>(whole[at] ^ (1 << (at % 8)))));
    auto read = read_kgw(file());
    patch(file(), at, whole.substr(at, 1));
    ++tried;
    if (!read) ++refused;
    ASSERT_EQ(read ? workload_hash(*read) : identity, identity) << at;
  }
  EXPECT_GT(refused, tried / 20);
}

TEST_F(Kgw, garbage_behind_a_good_header_is_refused) {
  const std::string whole = written_bytes(), identity = workload_hash(test::sample_workload());
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    const size_t from = 100 + random() % (whole.size() - 100);
    std::string noise(std::min<size_t>(whole.size() - from, 1 + random() % 3000), '\0');
    for (char& c : noise) c = static_cast<char>(random());
    patch(file(), from, noise);
    auto read = read_kgw(file());
    patch(file(), from, whole.substr(from, noise.size()));
    ASSERT_EQ(read ? workload_hash(*read) : identity, identity);
  }
  EXPECT_EQ(problem(file()), "accepted");
}

TEST_F(Kgw, versions_and_other_applications_are_told_apart) {
  EXPECT_HAS(problem_after("PRAGMA user_version=3"),
             "written by a newer kgate (format version 3); this kgate reads version 2");
  EXPECT_HAS(problem_after("PRAGMA user_version=1"), "format version 1");
  EXPECT_HAS(problem_after("PRAGMA user_version=0"), "format version 0");
  EXPECT_HAS(problem_after("PRAGMA application_id=7"), "not a workload");
}

TEST_F(Kgw, foreign_schema_objects_are_refused) {
  EXPECT_HAS(problem_after("CREATE TABLE extra(x)"), "extra");
  EXPECT_HAS(problem_after("CREATE VIEW v AS SELECT 1"), "view \"v\"");
  EXPECT_HAS(problem_after("CREATE TRIGGER t AFTER INSERT ON calls BEGIN DELETE FROM calls; END"), "trigger \"t\"");
  EXPECT_HAS(problem_after("CREATE INDEX i ON calls(kind)"), "index \"i\"");
  EXPECT_HAS(problem_after("DROP TABLE requests"), "is not what a workload file has here");
  EXPECT_HAS(problem_after("DROP TABLE calls; CREATE VIEW calls AS SELECT * FROM requests"),
             "is not what a workload file has here");
  EXPECT_NE(problem_after("ALTER TABLE calls ADD COLUMN more INTEGER"), "accepted");
}

TEST_F(Kgw, a_failure_names_the_table_and_the_row) {
  EXPECT_HAS(problem_after("UPDATE calls SET thread='zero' WHERE id=3"),
             "calls row 3: column thread is not an integer");
  EXPECT_HAS(problem_after("UPDATE calls SET bytes=-1 WHERE id=5"), "calls row 5: column bytes: -1 is out of range");
  EXPECT_HAS(problem_after("UPDATE calls SET kind='launch_all' WHERE id=1"), "calls row 1: kind is unknown");
  EXPECT_HAS(problem_after("UPDATE buffers SET low=9e999 WHERE id=1"), "buffers row 1: column low is not finite");
  EXPECT_HAS(problem_after("UPDATE buffers SET content='ones' WHERE id=3"), "buffers row 3: unknown content \"ones\"");
  EXPECT_HAS(problem_after("UPDATE buffers SET seed=1 WHERE id=3"), "buffers row 3: column seed is not NULL");
  EXPECT_HAS(problem_after("DELETE FROM calls WHERE id=2"), "calls row 2: id is not the row's number");
  EXPECT_HAS(problem_after("UPDATE kernel_params SET position=position+9"),
             "kernel_params row 0: position is not the next one");
  EXPECT_HAS(problem_after("UPDATE kernel_params SET kernel=1"), "kernel_params row 0: kernel 1 does not exist");
  EXPECT_HAS(problem_after("DELETE FROM meta"), "meta: the row is missing");
  EXPECT_HAS(
      problem_after(
          "INSERT INTO meta SELECT 1,name,arrivals,period_ns,threads,events,blocking_sync,addresses,sha256 FROM meta"),
      "more rows");
  EXPECT_NE(problem_after("UPDATE launch_data SET zstd=x'00'"), "accepted");
  EXPECT_NE(problem_after("UPDATE launch_data SET zstd=zeroblob(4000000)"), "accepted");
  EXPECT_NE(problem_after("UPDATE launch_data SET raw_bytes=raw_bytes-16"), "accepted");
  EXPECT_NE(problem_after("UPDATE launches SET relocations=1000000"), "accepted");
  EXPECT_NE(problem_after("DELETE FROM launch_data"), "accepted");
  EXPECT_HAS(problem_after("UPDATE after_edges SET after=9"), "calls 4: waits for call 9");
  EXPECT_HAS(problem_after("UPDATE modules SET name=replace(hex(zeroblob(3000)),'0','a')"),
             "modules row 0: column name is too long");
}

TEST_F(Kgw, blobs_are_verified) {
  EXPECT_HAS(problem_after("UPDATE blobs SET raw_bytes=raw_bytes+1"), "raw_bytes is not what the zstd frame says");
  EXPECT_HAS(problem_after("UPDATE blobs SET raw_bytes=1<<40"), "out of range");
  EXPECT_HAS(problem_after("UPDATE blobs SET zstd=x'28b52ffd'"), "zstd frame");
  EXPECT_HAS(problem_after("UPDATE blobs SET zstd=x''"), "zstd frame");
  EXPECT_HAS(problem_after("UPDATE blobs SET sha256='; DROP TABLE calls; --'"), "hash that names it");
  EXPECT_HAS(problem_after("DELETE FROM blobs"), "modules row 0: blob 0: does not exist");
  EXPECT_HAS(problem_after("UPDATE modules SET image='first'"), "modules row 0: column image is not an integer");
  EXPECT_HAS(problem_after("UPDATE modules SET image=NULL"), "modules row 0: column image is not an integer");
  EXPECT_HAS(problem_after("UPDATE buffers SET blob=(SELECT image FROM modules) WHERE id=2"), "longer than the buffer");
  // The right size and a sound frame, but another content.
  EXPECT_HAS(problem_after("UPDATE blobs SET sha256='" + std::string(64, 'b') + "' WHERE id=1"),
             "does not have the hash that names it");
}

TEST_F(Kgw, a_changed_field_does_not_match_the_stored_identity) {
  EXPECT_HAS(problem_after("UPDATE calls SET host_gap_ns=0 WHERE id=1"), "does not have the hash that the file states");
  EXPECT_HAS(problem_after("UPDATE meta SET name='other'"), "does not have the hash that the file states");
}

TEST_F(Kgw, a_journal_beside_the_file_is_ignored) {
  written_bytes();
  put(file("sample.kgw-journal"), std::string(4096, 'j'));
  put(file("sample.kgw-wal"), std::string(4096, 'w'));
  EXPECT_EQ(problem(file()), "accepted");
}

}  // namespace
}  // namespace kgate
