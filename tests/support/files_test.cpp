// Files, descriptors and hashes.

#include "support/fd.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/hash.h"

namespace kgate {
namespace {

TEST(Files, what_was_written_is_read_and_nothing_else_is_left) {
  TempDir folder;
  auto path = folder.path() / "file";
  ASSERT_TRUE(write_file_atomic(path, "first"));
  ASSERT_TRUE(write_file_atomic(path, std::string("two\0parts", 9)));
  auto content = read_file(path);
  ASSERT_TRUE(content);
  EXPECT_EQ(*content, std::string("two\0parts", 9));
  size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder.path())) ++files;
  EXPECT_EQ(files, 1u);
}

TEST(Files, a_folder_a_fifo_a_missing_and_a_too_large_file_are_refused_with_their_path) {
  TempDir folder;
  auto fifo = folder.path() / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  auto large = folder.path() / "large";
  ASSERT_TRUE(write_file_atomic(large, "12345"));
  for (const auto& path : {folder.path(), fifo, folder.path() / "missing"}) {
    auto content = read_file(path);
    ASSERT_FALSE(content) << path;
    EXPECT_EQ(content.failure().where, path.string());
  }
  EXPECT_FALSE(read_file(large, 4));
  EXPECT_TRUE(read_file(large, 5));
}

TEST(Files, writing_where_no_folder_is_fails_and_leaves_nothing) {
  EXPECT_FALSE(write_file_atomic("/absent/folder/file", "x"));
}

TEST(Files, a_temporary_folder_goes_with_its_owner) {
  std::filesystem::path path;
  {
    TempDir folder;
    path = folder.path();
    ASSERT_TRUE(write_file_atomic(path / "file", "x"));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(Memfd, is_shared_through_its_mapping) {
  auto fd = make_memfd("test", 4096);
  ASSERT_TRUE(fd);
  auto one = Mapping::of(*fd, 4096, true), two = Mapping::of(*fd, 4096, false);
  ASSERT_TRUE(one && two);
  one->data()[100] = std::byte{42};
  EXPECT_EQ(two->data()[100], std::byte{42});
}

TEST(Sha256, has_the_published_value) {  // FIPS 180-2, example of "abc"
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Sha256, parts_are_framed) {
  EXPECT_NE(Sha256().add("ab").add("c").hex(), Sha256().add("a").add("bc").hex());
  EXPECT_EQ(Sha256().add("ab").add("c").hex(), Sha256().add("ab").add("c").hex());
}

}  // namespace
}  // namespace kgate
