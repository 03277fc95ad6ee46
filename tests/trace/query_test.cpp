#include <gtest/gtest.h>

#include "stream.h"
#include "support/fd.h"
#include "trace/store.h"

namespace kgate {
namespace {

class Query : public ::testing::Test {
 protected:
  TempDir dir_;
  std::unique_ptr<TraceStore> store_ = [this] {
    auto store = TraceStore::create(dir_.path() / "run.kgt", {"T2", {}}, test::one_kernel());
    store->finish();
    return store;
  }();

  Failure failure(const std::string& sql) {
    auto result = store_->query(sql, [](auto&, auto&) {});
    return result ? Failure{"accepted", {}, {}} : result.failure();
  }
  std::string value(const std::string& sql) {
    std::string text = "no row";
    auto result = store_->query(sql, [&](auto&, auto& values) { text = values[0].value_or("NULL"); });
    return result ? text : "error: " + result.failure().what;
  }
};

std::string numbers(int n) {
  return "WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM t WHERE x<" + std::to_string(n) + ") ";
}

TEST_F(Query, percentiles_are_the_nearest_rank) {
  EXPECT_EQ(value(numbers(100) + "SELECT p50(x) FROM t"), "50");
  EXPECT_EQ(value(numbers(100) + "SELECT p99(x) FROM t"), "99");
  EXPECT_EQ(value(numbers(1000) + "SELECT p999(x) FROM t"), "999");
  EXPECT_EQ(value(numbers(10) + "SELECT p95(x) FROM t"), "10");
  EXPECT_EQ(value(numbers(10) + "SELECT p90(x) FROM t"), "9");
  EXPECT_EQ(value(numbers(10) + "SELECT percentile(x, 0) FROM t"), "1");
  EXPECT_EQ(value(numbers(10) + "SELECT percentile(x, 100) FROM t"), "10");
  EXPECT_EQ(value(numbers(3) + "SELECT percentile(-x, 50) FROM t"), "-2");
  EXPECT_EQ(value("SELECT p50(x) FROM (SELECT 1.5 AS x UNION ALL SELECT 7 UNION ALL SELECT 3)"), "3");
  EXPECT_EQ(value("SELECT p99(x) FROM (SELECT 4611686018427387905 AS x)"), "4611686018427387905");
}

TEST_F(Query, percentiles_ignore_null_and_of_nothing_are_null) {
  EXPECT_EQ(value("SELECT p50(x) FROM (SELECT NULL AS x UNION ALL SELECT 4)"), "4");
  EXPECT_EQ(value("SELECT p99(duration_ns) FROM kernel_launches"), "NULL");
  EXPECT_EQ(value("SELECT p50(NULL)"), "NULL");
}

TEST_F(Query, percentiles_work_over_windows) {
  std::string all;
  ASSERT_TRUE(store_->query(numbers(6) + "SELECT p50(x) OVER (ORDER BY x ROWS 2 PRECEDING) FROM t",
                            [&](auto&, auto& v) { all += *v[0] + " "; }));
  EXPECT_EQ(all, "1 1 2 3 4 5 ");
}

TEST_F(Query, percentile_refuses_what_is_no_number) {
  EXPECT_NE(failure("SELECT p50('text')").what.find("numbers"), std::string::npos);
  EXPECT_NE(failure("SELECT percentile(1, 101)").what.find("0 to 100"), std::string::npos);
  EXPECT_NE(failure("SELECT percentile(1, NULL)").what.find("0 to 100"), std::string::npos);
  EXPECT_NE(failure("SELECT percentile(x, x) FROM (SELECT 1 AS x UNION ALL SELECT 2)").what.find("same"),
            std::string::npos);
}

TEST_F(Query, whatever_writes_is_refused) {
  for (const char* sql :
       {"DELETE FROM kernels", "DROP TABLE kernels", "INSERT INTO verdicts VALUES('x')", "UPDATE run SET value = ''",
        "CREATE TABLE x(a)", "CREATE TEMP TABLE x(a)", "ATTACH '/tmp/x' AS y", "PRAGMA user_version = 9",
        "PRAGMA writable_schema = 1", "VACUUM", "VACUUM INTO '/tmp/kgate-vacuum'", "BEGIN", "DETACH main",
        "PRAGMA journal_mode = WAL", "SELECT load_extension('x')", "REINDEX", "ANALYZE", "SAVEPOINT a"}) {
    EXPECT_NE(failure(sql).what, "accepted") << sql;
  }
  EXPECT_EQ(value("SELECT value FROM run WHERE key = 'tier'"), "T2");
}

TEST_F(Query, harmless_pragmas_work) { EXPECT_EQ(value("PRAGMA table_info(run)"), "1"); }

TEST_F(Query, errors_say_where_and_what_was_probably_meant) {
  Failure table = failure("SELECT *\nFROM kernel_launchs");
  EXPECT_NE(table.what.find("no such table"), std::string::npos);
  EXPECT_NE(table.hint.find("kernel_launches"), std::string::npos);
  Failure column = failure("SELECT duration FROM kernel_launches");
  EXPECT_NE(column.hint.find("duration_ns"), std::string::npos) << column.hint;
  Failure syntax = failure("SELECT 1,\n  FROM run");
  EXPECT_EQ(syntax.where, "SQL:2:3") << syntax.what;
}

TEST_F(Query, exactly_one_statement) {
  EXPECT_EQ(value("SELECT 1;  -- and a comment\n"), "1");
  EXPECT_EQ(failure("SELECT 1; SELECT 2").what, "more than one statement");
  EXPECT_EQ(failure("SELECT 1; nonsense").what, "more than one statement");
  EXPECT_EQ(failure("").what, "no statement");
  EXPECT_EQ(failure("  -- nothing").what, "no statement");
  EXPECT_NE(failure(std::string("SELECT 1\0, 2", 12)).what, "accepted");
}

TEST_F(Query, runs_while_the_run_is_still_being_written_and_cannot_write_then_either) {
  auto store = TraceStore::create(dir_.path() / "open.kgt", {"T2", {}}, test::one_kernel());
  EXPECT_TRUE(store->query("SELECT COUNT(*) FROM kernels", [](auto&, auto&) {}));
  EXPECT_FALSE(store->query("DELETE FROM run", [](auto&, auto&) {}));
  EXPECT_FALSE(store->query("COMMIT", [](auto&, auto&) {}));
  test::Stream s;
  s.round(0, 0, 1, 2);
  store->add_block(s.bytes(), {}, {}, nullptr, nullptr);  // the guard is off again
  EXPECT_EQ(store->rounds().size(), 1u);
}

}  // namespace
}  // namespace kgate
