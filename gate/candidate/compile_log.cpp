#include "candidate/compile_log.h"

#include <fmt/format.h>

#include <array>
#include <charconv>

#include "candidate/compile.h"
#include "support/text.h"

namespace kgate {

namespace {

// The unsigned number that ends where `word` begins in `line`: number_before("Used 24 registers", " registers") is 24.
std::optional<uint32_t> number_before(std::string_view line, std::string_view word) {
  for (size_t at = line.find(word); at != std::string_view::npos; at = line.find(word, at + 1)) {
    size_t begin = at;
    while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9') --begin;
    uint32_t value = 0;
    auto [end, error] = std::from_chars(line.data() + begin, line.data() + at, value);
    if (begin < at && error == std::errc{}) return value;
  }
  return std::nullopt;
}

std::string_view quoted(std::string_view line) {
  size_t begin = line.find('\'');
  size_t end = begin == std::string_view::npos ? begin : line.find('\'', begin + 1);
  return end == std::string_view::npos ? std::string_view{} : line.substr(begin + 1, end - begin - 1);
}

// "ptxas k.ptx, line 7; error   : text" -> "line 7: text"; "ptxas fatal   : text" -> "text"; "k.cu(3): error: text" ->
// "line 3: text".
std::string normalised(std::string_view line, size_t marker, std::string_view word) {
  std::string_view before = line.substr(0, marker);
  std::string_view text = line.substr(marker + word.size());
  text.remove_prefix(text.find(':') + 1);
  size_t at = before.rfind("line ");
  std::string_view number;
  if (at != std::string_view::npos) {
    number = before.substr(at + 5);
  } else if (size_t open = before.rfind('('); open != std::string_view::npos) {
    number = before.substr(open + 1);
  }
  number = number.substr(0, number.find_first_not_of("0123456789"));
  return number.empty() ? sanitize(trim(text)) : fmt::format("line {}: {}", number, sanitize(trim(text)));
}

// Where `word` stands as the severity of a message: followed by blanks and a colon.
std::optional<size_t> severity_at(std::string_view line, std::string_view word) {
  for (size_t at = line.find(word); at != std::string_view::npos; at = line.find(word, at + 1)) {
    std::string_view rest = line.substr(at + word.size());
    size_t colon = rest.find_first_not_of(' ');
    if (colon != std::string_view::npos && rest[colon] == ':') return at;
  }
  return std::nullopt;
}

}  // namespace

std::string first_error(std::string_view log) {
  constexpr std::array<std::string_view, 2> words{"error", "fatal"};
  std::string first_text;
  for (std::string_view line : split_lines(log)) {
    for (std::string_view word : words)
      if (auto at = severity_at(line, word)) return normalised(line, *at, word);
    if (first_text.empty() && !trim(line).empty()) first_text = sanitize(trim(line));
  }
  return first_text;
}

bool speaks_of_memory(std::string_view log) {
  constexpr std::array<std::string_view, 5> phrases{"bad_alloc", "emory allocation", "ut of memory", "annot allocate memory",
                                                    "emory exhausted"};
  for (auto phrase : phrases)
    if (log.find(phrase) != std::string_view::npos) return true;
  return false;
}

// ptxas prints the resources of an entry after "Compiling entry function 'k'", but the stack frames of device functions
// follow in the same block, each after "Function properties for f".
std::optional<ResourceUsage> resource_usage(const std::string& log, const std::string& entry) {
  std::optional<ResourceUsage> usage;
  bool in_entry = false, in_properties = false;
  for (std::string_view line : split_lines(log)) {
    if (line.find("Compiling entry function '") != std::string_view::npos) {
      in_entry = quoted(line) == entry;
      in_properties = false;
      if (in_entry && !usage) usage.emplace();
      continue;
    }
    constexpr std::string_view properties = "Function properties for ";
    if (size_t at = line.find(properties); at != std::string_view::npos) {
      in_properties = in_entry && trim(line.substr(at + properties.size())) == entry;
      continue;
    }
    if (!in_entry) continue;
    if (in_properties && line.find(" bytes stack frame") != std::string_view::npos) {
      usage->stack_bytes = number_before(line, " bytes stack frame");
      usage->spill_store_bytes = number_before(line, " bytes spill stores");
      usage->spill_load_bytes = number_before(line, " bytes spill loads");
    } else if (line.find("Used ") != std::string_view::npos && number_before(line, " registers")) {
      usage->registers = number_before(line, " registers");
      usage->barriers = number_before(line, " barriers");  // not printed by older versions
      usage->static_shared = number_before(line, " bytes smem").value_or(0);
      in_entry = false;
    }
  }
  return usage;
}

}  // namespace kgate
