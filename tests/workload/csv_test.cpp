#include "workload/csv.h"

#include <gtest/gtest.h>

namespace kgate {
namespace {

TEST(Csv, quoted_fields_and_windows_lines_are_read) {
  auto table = CsvTable::parse(
      "\xef\xbb\xbf"
      "a,b\r\n\"x,\"\"y\"\"\",2\r\n3,\n");
  ASSERT_TRUE(table) << table.failure().what;
  EXPECT_EQ(table->rows(), 2u);
  EXPECT_EQ(table->at(0, 0), "x,\"y\"");
  EXPECT_EQ(table->at(1, 1), "");
  EXPECT_EQ(*table->column("b"), 1u);
}

TEST(Csv, problems_have_a_line) {
  const auto where = [](std::string_view text) {
    auto table = CsvTable::parse(text);
    return table ? "accepted" : table.failure().where + ": " + table.failure().what;
  };
  EXPECT_EQ(where("a,b\n1,2\n3\n"), "line 3: 1 fields; the header has 2");
  EXPECT_EQ(where("a,b\n\n1,2\n"), "line 2: a blank line");
  EXPECT_EQ(where("a\n\"x\n"), "line 2: a quoted field does not end");
  EXPECT_EQ(where(""), ": the file is empty");
  EXPECT_EQ(where(std::string(1000, ',')), "line 1: more than 256 columns");
}

TEST(Csv, an_unknown_column_gets_a_suggestion) {
  auto table = CsvTable::parse("TIMESTAMP,ContextTokens\n");
  ASSERT_TRUE(table);
  EXPECT_EQ(table->column("TIMESTAMPS").failure().hint, "did you mean 'TIMESTAMP'?");
}

TEST(Timestamp, dates_keep_their_fraction) {
  const auto at = [](std::string_view text) { return parse_timestamp(text, TimeUnit::automatic); };
  EXPECT_EQ(*at("1970-01-02 00:00:01.5"), 86'401'500'000'000);
  EXPECT_EQ(*at("2023-11-16 18:15:46.6805900"), 1'700'158'546'680'590'000);
  EXPECT_EQ(*at("2023-11-16T18:15:46Z"), 1'700'158'546'000'000'000);
  EXPECT_EQ(*at("2024-02-29 00:00:00+00:00") - *at("2024-02-28 00:00:00"), 86'400'000'000'000);
  for (const char* bad :
       {"", "12", "2023-02-29 00:00:00", "2023-11-16", "2023-11-16 18:15:46.", "2023-11-16 24:00:00",
        "2023-11-16 18:15:46+02:00", "2023-11-16 18:15:46 x", "1969-01-01 00:00:00", "-023-11-16 18:15:46"})
    EXPECT_FALSE(at(bad)) << bad;
}

TEST(Timestamp, numbers_have_a_unit) {
  EXPECT_EQ(*parse_timestamp("12.5", TimeUnit::ms), 12'500'000);
  EXPECT_EQ(*parse_timestamp(" 3 ", TimeUnit::s), 3'000'000'000);
  for (const char* bad : {"", "x", "1e300", "nan", "inf", "1 2", "0x1"})
    EXPECT_FALSE(parse_timestamp(bad, TimeUnit::ns)) << bad;
}

}  // namespace
}  // namespace kgate
