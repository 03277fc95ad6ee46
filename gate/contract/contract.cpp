// The outline of reading a contract: parse, check the form against the table, take the values, check what they mean
// together. Nothing stops at the first problem: whoever wrote the file sees all of them at once.
#include "contract/contract.h"

#include <fmt/format.h>

#include "contract/contract_table.h"
#include "contract/launch_limits.h"
#include "contract/reader.h"
#include "support/fd.h"
#include "support/hash.h"

namespace kgate {

namespace {

using reader::text_of;
using yaml::Node;
using yaml::Problems;
using yaml::View;
namespace table = contract_table;

bool only_limits(const Node& root) {
  for (const auto& [key, value] : root.entries)
    if (key.text != "kgate" && key.text != "limits") return false;
  return root.find("limits") != nullptr;
}

void read_reference(const Node& node, Contract& contract, Problems& problems) {
  const yaml::Map* map = yaml::alternative(node, table::kReference);
  if (map == &table::kReferenceBaseline) contract.reference_is_baseline = true;
  if (map != &table::kReferenceCuda) return;
  View fields(node, *map);
  auto path = text_of(fields.find("cuda")), entry = text_of(fields.find("entry"));
  if (!path || !entry) return;
  contract.reference = ReferenceKernel{reader::resolve(contract.path, *path), *entry};
  auto suffix = contract.reference->path.extension();
  if (suffix != ".cu" && suffix != ".ptx") problems.add(*fields.find("cuda"), "a reference is a .cu or .ptx file");
}

void read_baseline(const Node& node, Contract& contract) {
  const bool map = node.kind == Node::Kind::map;
  View fields(node, table::kBaseline);
  auto path = text_of(map ? fields.find("path") : &node);
  if (path) contract.baseline = reader::resolve(contract.path, *path);
  if (map) contract.baseline_entry = text_of(fields.find("entry")).value_or(contract.baseline_entry);
}

// A launch needs parameters and says what the shapes are for; without it only a workload can say what a launch is.
void read_job(const View& root, Contract& contract, Problems& problems) {
  const Node *params = root.find("params"), *launch = root.find("launch"), *shapes = root.find("shapes");
  std::vector<reader::Use> uses, constraints;
  contract.has_shapes = params && launch;
  if (params) contract.params = reader::read_params(*params, launch || shapes, uses, problems);
  if (launch) {
    View fields(*launch, table::kLaunch);
    reader::read_three(fields.find("grid"), "grid", contract.launch.grid, &uses, problems);
    reader::read_three(fields.find("block"), "block", contract.launch.block, &uses, problems);
    contract.launch.shared = reader::read_expression(fields.find("shared"), problems);
    if (const Node* shared = fields.find("shared"))
      uses.push_back({contract.launch.shared, shared, 0, "shared", 0, kMaxSharedBytes});
  }
  if (launch && !params) problems.add(root.node(), "the contract has 'launch' but no 'params'", "they belong together");
  for (const char* key : {"shapes", "constraints", "reference"}) {
    const Node* node = root.find(key);
    if (launch || !node) continue;
    problems.add(*node, fmt::format("the contract has '{}' but no 'launch'", key),
                 "give 'params' and 'launch'; without them numbers are compared on the workload's own launches");
    break;
  }
  if (const Node* list = root.find("constraints"))
    for (const Node& item : list->items)
      if (auto expr = yaml::as_expression(item, problems)) {
        contract.constraints.push_back(*expr);
        constraints.push_back({*expr, &item, 0, "the constraint", 0, 0});
      }
  reader::Shapes expanded;
  if (shapes) {
    expanded = reader::read_shapes(*shapes, problems);
  } else if (contract.has_shapes) {
    expanded = {{Environment{}}, {params}, {false}};  // everything is written as numbers: one shape without names
  }
  if (launch) reader::check_names(uses, expanded, problems);
  if (launch) reader::check_names(constraints, expanded, problems);
  if (problems.empty()) reader::apply_constraints(constraints, expanded, problems);
  if (problems.empty()) reader::check_values(contract, uses, expanded, problems);
  contract.shapes = std::move(expanded.all);
}

void read_fields(const View& root, Contract& contract, Problems& problems) {
  contract.kernel = text_of(root.find("kernel")).value_or("");
  contract.baseline_entry = contract.kernel;
  read_job(root, contract, problems);
  if (const Node* reference = root.find("reference")) read_reference(*reference, contract, problems);
  if (const Node* tolerance = root.find("tolerance"))
    contract.tolerance = reader::read_tolerances(*tolerance, problems);
  if (auto workload = text_of(root.find("workload"))) contract.workload = reader::resolve(contract.path, *workload);
  if (const Node* baseline = root.find("baseline")) read_baseline(*baseline, contract);
  if (const Node* replace = root.find("replace")) contract.binding = reader::read_binding(*replace, problems);
}

}  // namespace

Contract parse_contract(const std::string& text, const std::filesystem::path& path, bool allow_policy) {
  Problems problems(path);
  Node root = yaml::parse(text, problems);
  if (root.kind == Node::Kind::null) problems.finish();

  Contract contract;
  contract.path = path;
  contract.sha256 = sha256(text);
  const bool policy = only_limits(root);
  contract.limits_only = policy && allow_policy;
  yaml::check(root, contract.limits_only ? table::kPolicyRoot : table::kRoot, problems);
  View fields(root, table::kContract);
  if (!contract.limits_only && root.kind == Node::Kind::map) read_fields(fields, contract, problems);
  if (const Node* limits = fields.find("limits")) {
    contract.has_limits = true;
    contract.limits = reader::read_limits(*limits, problems);
  }
  problems.finish(policy && !allow_policy ? "a file with only limits is a policy: give it beside a contract, not as one"
                                          : "");
  return contract;
}

Contract read_contract(const std::filesystem::path& path, bool allow_policy) {
  Result<std::string> text = read_file(path, yaml::kMaxFileBytes);
  return parse_contract(std::move(text).value_or_throw(Exit::bad_input), path, allow_policy);
}

Contract contract_for_kernel(const std::string& kernel) {
  if (kernel.empty()) throw Error(Exit::usage, "no kernel is named", "--kernel", "give a name or a pattern");
  Contract contract;
  contract.path = "--kernel " + kernel;
  contract.sha256 = sha256(contract.path.string());
  if (kernel.find_first_of("*?") == std::string::npos) {
    contract.kernel = contract.baseline_entry = kernel;
  } else {
    Replacement rule;
    rule.kernel_glob = kernel;
    rule.where = contract.path.string();
    contract.binding.replacements.push_back(std::move(rule));
  }
  return contract;
}

std::string contract_json_schema() { return yaml::json_schema(table::kRoot, "kgate contract"); }

}  // namespace kgate
