#include "probes/record_options.h"

#include <nlohmann/json.hpp>

namespace kgate::record {

Result<Options> parse_options(const std::string& text) {
  Options options;
  if (text.empty()) return options;
  const auto bad = [](const std::string& what) { return Failure{what, kRecordOptions, {}}; };
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return bad("is not a JSON object");
  for (const auto& [key, value] : json.items()) {
    uint64_t* number = key == "from_ns"     ? &options.from_ns
                       : key == "for_ns"    ? &options.for_ns
                       : key == "requests"  ? &options.requests
                       : key == "max_bytes" ? &options.max_bytes
                                            : nullptr;
    std::string* word = key == "request_range" ? &options.request_range : key == "kernel" ? &options.kernel : nullptr;
    if (number != nullptr && value.is_number_unsigned())
      *number = value.get<uint64_t>();
    else if (word != nullptr && value.is_string())
      *word = value.get<std::string>();
    else
      return bad(number || word ? "has a value of the wrong type at '" + key + "'"
                                : "has an unknown key '" + key + "'");
  }
  return options;
}

}  // namespace kgate::record
