// The parts of validate(), each over one kind of thing. The first problem found is the answer.
#pragma once

#include <optional>
#include <string>

#include "workload/workload.h"

namespace kgate::validation {

using Check = std::optional<Failure>;

inline std::string str(uint64_t value) { return std::to_string(value); }

inline Failure at(const char* table, size_t index, std::string what) {
  return Failure{std::move(what), std::string(table) + " " + str(index), {}};
}

inline Check check_count(const char* table, size_t count, size_t cap) {
  if (count <= cap) return {};
  return Failure{str(count) + " " + table + "; at most " + str(cap) + " are read", table, {}};
}

// Texts go to the driver and into reports: no control characters, which also keeps NUL out of C strings.
bool good_text(const std::string& text, bool may_be_empty);

// Bytes that the contents come to, each kept under its cap.
struct ContentBytesUsed {
  uint64_t blobs = 0;   // held in memory
  uint64_t chunks = 0;  // read when they are needed
};
std::string content_problem(const Content& content, uint64_t bytes, ContentBytesUsed& used);
Check check_payloads(const Workload& workload, ContentBytesUsed& used);

Check check_origin(const Workload& workload);

Check check_graphs(const Workload& workload);
Check check_calls(const Workload& workload);
Check check_requests(const Workload& workload);

}  // namespace kgate::validation
