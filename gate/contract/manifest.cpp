#include "contract/manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "contract/reader.h"
#include "contract/table.h"
#include "support/fd.h"

namespace kgate {

namespace {

using reader::text_of;
using yaml::Field;
using yaml::Kind;
using yaml::Map;
using yaml::Node;
using yaml::Problems;
using yaml::Type;
using yaml::View;

// What a check can end with; usage, internal errors and interruptions are no verdicts.
constexpr Exit kVerdicts[] = {Exit::pass,        Exit::regression, Exit::inconclusive, Exit::no_baseline,
                              Exit::environment, Exit::broken,     Exit::bad_input};

constexpr Type kText{Kind::text};
constexpr Type kTexts{Kind::list, &kText, nullptr, {}, {}, 1, 64};
constexpr Field kOutcomeFields[] = {
    {"exit", {Kind::count}, true, "the exit code of the check"},
    {"finding",
     {Kind::either, &kText, &kTexts},
     false,
     "the ids of findings, one of which must be reported: one id, or a list"},
};
constexpr Map kOutcome{"expected outcome", kOutcomeFields};
constexpr Field kSkipFields[] = {{"skip", {Kind::text}, true, "why the entry is not run there"}};
constexpr Map kSkip{"expected outcome", kSkipFields};
constexpr const Map* kExpectationMaps[] = {&kOutcome, &kSkip};
constexpr Type kExpectation{Kind::map, nullptr, nullptr, kExpectationMaps};

constexpr Field kExpectFields[] = {
    {"virtual", kExpectation, false, "on the virtual device"},
    {"gpu", kExpectation, false, "on a GPU"},
};
constexpr Map kExpect{"expectation", kExpectFields};
constexpr const Map* kExpectMaps[] = {&kExpect};

constexpr Field kEntryFields[] = {
    {"name", {Kind::text}, true, "a name of its own"},
    {"candidate", {Kind::path}, true, "the kernel's file"},
    {"contract", {Kind::path}, true, "the contract that it is checked against"},
    {"entry", {Kind::symbol}, false, "the kernel in the candidate; default: the contract's"},
    {"expect", {Kind::map, nullptr, nullptr, kExpectMaps}, true, "the verdict, by device"},
};
constexpr Map kEntry{"manifest entry", kEntryFields};
constexpr const Map* kEntryMaps[] = {&kEntry};
constexpr Type kEntryType{Kind::map, nullptr, nullptr, kEntryMaps};

constexpr Field kManifestFields[] = {
    {"kgate_manifest", {Kind::version}, true, "the version of the format: 1"},
    {"entries", {Kind::list, &kEntryType, nullptr, {}, {}, 1, 10000}, true, "the candidates"},
};
constexpr Map kManifest{"manifest", kManifestFields};
constexpr const Map* kManifestMaps[] = {&kManifest};
constexpr Type kRoot{Kind::map, nullptr, nullptr, kManifestMaps};

std::optional<Expectation> read_expectation(const Node* node, Problems& problems) {
  const Map* map = node && node->kind == Node::Kind::map ? yaml::alternative(*node, kExpectation) : nullptr;
  if (!map) return std::nullopt;
  View fields(*node, *map);
  Expectation expectation;
  if (map == &kSkip) {
    expectation.skip = text_of(fields.find("skip"));
    return expectation;
  }
  const Node& exit = *fields.find("exit");
  if (auto code = yaml::as_integer(exit, problems, "an integer, 0 or more")) {
    expectation.exit = static_cast<Exit>(static_cast<int>(std::clamp<int64_t>(*code, 0, 255)));
    if (std::find(std::begin(kVerdicts), std::end(kVerdicts), expectation.exit) == std::end(kVerdicts))
      problems.add(exit, fmt::format("{} is not the exit code of a verdict", *code),
                   "the codes are 0, 1, 3, 4, 5, 6 and 65");
  }
  if (const Node* finding = fields.find("finding")) {
    if (auto text = text_of(finding)) expectation.findings.push_back(*text);
    for (const Node& item : finding->items)
      if (auto text = text_of(&item)) expectation.findings.push_back(*text);
  }
  return expectation;
}

ManifestEntry read_entry(const Node& node, const std::filesystem::path& path, Problems& problems) {
  View fields(node, kEntry);
  ManifestEntry entry;
  entry.where = problems.where(node.position);
  entry.name = text_of(fields.find("name")).value_or("");
  entry.candidate = reader::resolve(path, text_of(fields.find("candidate")).value_or(""));
  entry.contract = reader::resolve(path, text_of(fields.find("contract")).value_or(""));
  entry.entry = text_of(fields.find("entry"));
  const Node* expect = fields.find("expect");
  if (!expect || expect->kind != Node::Kind::map) return entry;
  View devices(*expect, kExpect);
  entry.virtual_device = read_expectation(devices.find("virtual"), problems);
  entry.gpu = read_expectation(devices.find("gpu"), problems);
  if (expect->entries.empty()) problems.add(*expect, "expects nothing", "give virtual, gpu or both");
  return entry;
}

}  // namespace

Manifest parse_manifest(const std::string& text, const std::filesystem::path& path) {
  Problems problems(path);
  Node root = yaml::parse(text, problems);
  if (root.kind == Node::Kind::null) problems.finish();
  yaml::check(root, kRoot, problems);
  Manifest manifest;
  manifest.path = path;
  std::map<std::string, int> lines;
  if (const Node* entries = root.find("entries"))
    for (const Node& node : entries->items) {
      if (node.kind != Node::Kind::map) continue;
      manifest.entries.push_back(read_entry(node, path, problems));
      const std::string& name = manifest.entries.back().name;
      auto [first, fresh] = lines.emplace(name, node.position.line);
      if (!fresh && !name.empty())
        problems.add(*node.find("name"), "a second entry of this name",
                     fmt::format("the first stands on line {}", first->second));
    }
  problems.finish();
  return manifest;
}

Manifest read_manifest(const std::filesystem::path& path) {
  Result<std::string> text = read_file(path, yaml::kMaxFileBytes);
  return parse_manifest(std::move(text).value_or_throw(Exit::bad_input), path);
}

std::string manifest_json_schema() { return yaml::json_schema(kRoot, "kgate corpus manifest"); }

}  // namespace kgate
