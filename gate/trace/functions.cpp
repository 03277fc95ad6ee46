// Each aggregate keeps its values in a heap object whose pointer lies in SQLite's zeroed context. A window that slides
// removes values by search; a frame that does not move answers from the last result.
#include "trace/functions.h"

#include <sqlite3.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>
#include <vector>

namespace kgate::trace {

namespace {

// Integers stay integers as long as all values are: ns since boot do not fit a double for ever.
struct Value {
  bool is_real;
  int64_t integer;
  double real;
  double as_real() const { return is_real ? real : static_cast<double>(integer); }
  bool operator<(const Value& other) const {
    return !is_real && !other.is_real ? integer < other.integer : as_real() < other.as_real();
  }
  bool operator==(const Value& other) const { return !(*this < other) && !(other < *this); }
};

struct Values {
  std::vector<Value> values;
  double percent = -1;
  bool fresh = false;
  Value result{};
};

Values* values_of(sqlite3_context* context, bool create) {
  auto** slot = static_cast<Values**>(sqlite3_aggregate_context(context, create ? sizeof(Values*) : 0));
  if (slot == nullptr) return nullptr;
  if (*slot == nullptr && create) *slot = new (std::nothrow) Values;
  return *slot;
}

// The percent bound to the function (p99), or its second argument. Negative: an error has been reported.
double percent_of(sqlite3_context* context, int count, sqlite3_value** arguments) {
  if (const auto* fixed = static_cast<const double*>(sqlite3_user_data(context))) return *fixed;
  int type = count == 2 ? sqlite3_value_numeric_type(arguments[1]) : SQLITE_NULL;
  double percent = type == SQLITE_INTEGER || type == SQLITE_FLOAT ? sqlite3_value_double(arguments[1]) : -1;
  if (percent >= 0 && percent <= 100) return percent;
  sqlite3_result_error(context, "percentile(x, q): q must be a number from 0 to 100", -1);
  return -1;
}

bool read_value(sqlite3_context* context, sqlite3_value* argument, Value* value) {
  switch (sqlite3_value_type(argument)) {
    case SQLITE_INTEGER:
      *value = {false, sqlite3_value_int64(argument), 0};
      return true;
    case SQLITE_FLOAT:
      *value = {true, 0, sqlite3_value_double(argument)};
      return true;
    case SQLITE_NULL:
      return false;
    default:
      sqlite3_result_error(context, "percentiles are of numbers, not of text or blobs", -1);
      return false;
  }
}

void add_value(sqlite3_context* context, int count, sqlite3_value** arguments) {
  double percent = percent_of(context, count, arguments);
  Value value;
  if (percent < 0 || !read_value(context, arguments[0], &value)) return;
  Values* values = values_of(context, true);
  if (values == nullptr) return sqlite3_result_error_nomem(context);
  if (values->percent >= 0 && values->percent != percent)
    return sqlite3_result_error(context, "percentile(x, q): q must be the same in every row of a group", -1);
  values->percent = percent;
  values->fresh = false;
  try {
    values->values.push_back(value);
  } catch (const std::bad_alloc&) {
    sqlite3_result_error_nomem(context);
  }
}

void remove_value(sqlite3_context* context, int, sqlite3_value** arguments) {
  Values* values = values_of(context, false);
  Value value;
  if (values == nullptr || !read_value(context, arguments[0], &value)) return;
  auto at = std::find(values->values.begin(), values->values.end(), value);
  if (at == values->values.end()) return;
  *at = values->values.back();
  values->values.pop_back();
  values->fresh = false;
}

void current_value(sqlite3_context* context) {
  Values* values = values_of(context, false);
  if (values == nullptr || values->values.empty()) return sqlite3_result_null(context);
  if (!values->fresh) {
    double rank = std::ceil(values->percent / 100 * static_cast<double>(values->values.size()) - 1e-9);
    auto index = static_cast<ptrdiff_t>(std::max(rank, 1.0)) - 1;
    std::nth_element(values->values.begin(), values->values.begin() + index, values->values.end());
    values->result = values->values[static_cast<size_t>(index)];
    values->fresh = true;
  }
  if (values->result.is_real)
    sqlite3_result_double(context, values->result.real);
  else
    sqlite3_result_int64(context, values->result.integer);
}

void final_value(sqlite3_context* context) {
  current_value(context);
  auto** slot = static_cast<Values**>(sqlite3_aggregate_context(context, 0));
  if (slot != nullptr) {
    delete *slot;
    *slot = nullptr;
  }
}

}  // namespace

void register_functions(const Database& database) {
  struct Fixed {
    const char* name;
    double percent;
  };
  static constexpr Fixed kFixed[] = {{"p50", 50}, {"p90", 90}, {"p95", 95}, {"p99", 99}, {"p999", 99.9}};
  constexpr int kFlags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS;
  for (const Fixed& fixed : kFixed)
    if (sqlite3_create_window_function(database.get(), fixed.name, 1, kFlags, const_cast<double*>(&fixed.percent),
                                       add_value, final_value, current_value, remove_value, nullptr) != SQLITE_OK)
      database.fail();
  if (sqlite3_create_window_function(database.get(), "percentile", 2, kFlags, nullptr, add_value, final_value,
                                     current_value, remove_value, nullptr) != SQLITE_OK)
    database.fail();
}

}  // namespace kgate::trace
