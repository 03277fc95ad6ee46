// `replace:`: names for what was recorded, and the launches that use them.
#include <fmt/format.h>

#include <algorithm>

#include "contract/contract_table.h"
#include "contract/grammar.h"
#include "contract/quantity.h"
#include "contract/reader.h"
#include "support/text.h"

namespace kgate::reader {

namespace table = contract_table;
using yaml::Node;
using yaml::Problems;
using yaml::View;

namespace {

class ReplacementReader {
 public:
  ReplacementReader(const Node& node, Problems& problems) : node_(node), problems_(problems) {}

  Replacement read() {
    View fields(node_, table::kReplacement);
    replacement_.where = problems_.where(node_.position);
    if (const Node* launches = fields.find("launches"); launches && launches->kind == Node::Kind::map)
      read_launches(View(*launches, table::kLaunches));
    if (const Node* let = fields.find("let"))
      for (const auto& [key, value] : let->entries) read_let(key.text, value);
    const Node* with = fields.find("with");
    if (with && with->kind == Node::Kind::sequence) {
      replacement_.with.emplace();
      for (const Node& item : with->items) read_item(item);
    } else if (!with && !replacement_.then.empty()) {
      problems_.add(node_, "several launches become one, and nothing says which", "add `with:`");
    }
    return std::move(replacement_);
  }

 private:
  void read_launches(const View& launches) {
    replacement_.kernel_glob = text_of(launches.find("kernel")).value_or("");
    const Node* then = launches.find("then");
    if (!then) return;
    if (auto one = text_of(then)) replacement_.then.push_back(*one);
    for (const Node& item : then->items) replacement_.then.push_back(text_of(&item).value_or(""));
  }

  void read_let(const std::string& name, const Node& node) {
    auto value = yaml::as_recorded_value(node, problems_);
    if (value && value->launch > replacement_.then.size()) {
      problems_.add(
          node,
          fmt::format("`then` names {} launches, and this is of number {}", replacement_.then.size(), value->launch),
          "name the kernel that follows in `launches: {kernel: ..., then: ...}`");
      value.reset();
    }
    if (value)
      replacement_.let[name] = *value;
    else
      unread_.push_back(name);
  }

  void read_item(const Node& item) {
    const yaml::Map* map = item.kind == Node::Kind::map ? yaml::alternative(item, table::kWithItem) : nullptr;
    if (!map) return;
    View fields(item, *map);
    if (map == &table::kWithLaunch) replacement_.with->push_back(read_launch(fields));
    if (map == &table::kWithMemset) replacement_.with->push_back(read_memset(fields));
    if (map == &table::kWithWorkspace) replacement_.with->push_back(read_workspace(fields));
    if (map == &table::kWithSync) replacement_.with->push_back(ReplacementSync{is_legacy(fields)});
  }

  static bool is_legacy(const View& fields) { return text_of(fields.find("stream")) == "legacy"; }

  ReplacementLaunch read_launch(const View& fields) {
    ReplacementLaunch launch;
    launch.entry = text_of(fields.find("entry")).value_or("");
    std::vector<Use> uses;
    read_three(fields.find("grid"), "grid", launch.grid, &uses, problems_);
    read_three(fields.find("block"), "block", launch.block, &uses, problems_);
    if (const Node* cluster = fields.find("cluster")) {
      launch.cluster.emplace();
      read_three(cluster, "cluster", launch.cluster->data(), &uses, problems_);
    }
    for (const Use& use : uses) check_numbers(use.expr, *use.node);
    launch.shared = number(fields.find("shared"));
    launch.cooperative = fields.find("cooperative") != nullptr;
    launch.programmatic = fields.find("programmatic") != nullptr;
    launch.legacy = is_legacy(fields);
    if (const Node* args = fields.find("args"))
      for (const Node& arg : args->items) launch.args.push_back(read_arg(arg));
    return launch;
  }

  BindingArg read_arg(const Node& node) {
    BindingArg arg;
    if (yaml::is_null_word(node)) return arg;
    auto expr = yaml::as_expression(node, problems_);
    if (!expr) return arg;
    std::string name(trim(expr->text()));
    auto let = replacement_.let.find(name);
    bool passed_through = let != replacement_.let.end() && (let->second.kind == RecordedValue::Kind::pointer ||
                                                            let->second.kind == RecordedValue::Kind::scalar);
    if (passed_through || is_workspace(name)) {
      arg.kind = BindingArg::Kind::let;
      arg.name = name;
      return arg;
    }
    check_numbers(*expr, node);
    arg.kind = BindingArg::Kind::expression;
    arg.expr = *expr;
    return arg;
  }

  ReplacementMemset read_memset(const View& fields) {
    ReplacementMemset memset;
    const Node* target = fields.find("memset");
    memset.target = text_of(target).value_or("");
    auto let = replacement_.let.find(memset.target);
    if (let != replacement_.let.end() && let->second.kind != RecordedValue::Kind::pointer)
      problems_.add(*target, fmt::format("'{}' is no pointer", memset.target));
    else if (let == replacement_.let.end() && !is_workspace(memset.target) && is_variable_name(memset.target))
      unknown(*target, 0, memset.target);
    memset.value = number(fields.find("value"));
    memset.bytes = number(fields.find("bytes"));
    memset.legacy = is_legacy(fields);
    return memset;
  }

  ReplacementWorkspace read_workspace(const View& fields) {
    ReplacementWorkspace workspace;
    const Node* name = fields.find("workspace");
    workspace.name = text_of(name).value_or("");
    if (replacement_.let.contains(workspace.name) || is_workspace(workspace.name))
      problems_.add(*name, fmt::format("the name '{}' is taken", workspace.name), "choose another");
    workspaces_.push_back(workspace.name);
    workspace.bytes = number(fields.find("bytes"));
    workspace.zeroed = text_of(fields.find("init")) == "zeros";
    workspace.each_launch = text_of(fields.find("allocate")) == "each_launch";
    if (workspace.zeroed && workspace.each_launch)
      problems_.add(*name, fmt::format("'{}' is zeroed once, and allocated anew at each launch", workspace.name),
                    "zero it at each launch with a memset item");
    return workspace;
  }

  Expr number(const Node* node) {
    Expr expr = read_expression(node, problems_);
    if (node) check_numbers(expr, *node);
    return expr;
  }

  // Expressions compute with recorded integers; addresses and floating values can only be passed on whole.
  void check_numbers(const Expr& expr, const Node& node) {
    for (const std::string& name : expr.names()) {
      size_t offset = static_cast<size_t>(std::max(expr.column_of(name), 1)) - 1;
      yaml::Position at = yaml::inside(node, offset);
      auto let = replacement_.let.find(name);
      if (let == replacement_.let.end()) {
        if (is_workspace(name))
          problems_.add(at, node, fmt::format("'{}' is an address", name),
                        "an argument that is an address is its name alone");
        else
          unknown(node, offset, name);
      } else if (let->second.kind == RecordedValue::Kind::pointer) {
        problems_.add(at, node, fmt::format("'{}' is an address", name),
                      "an argument that is an address is its name alone");
      } else if (let->second.kind == RecordedValue::Kind::scalar && is_floating(let->second.dtype)) {
        problems_.add(at, node,
                      fmt::format("'{}' is {}; expressions are integer", name, dtype_name(let->second.dtype)));
      }
    }
  }

  void unknown(const Node& node, size_t offset, const std::string& name) {
    if (std::find(unread_.begin(), unread_.end(), name) != unread_.end()) return;  // its own line has the problem
    std::vector<std::string> known = workspaces_;
    for (const auto& [key, value] : replacement_.let) known.push_back(key);
    auto near = did_you_mean(name, known);
    problems_.add(
        yaml::inside(node, offset), node, fmt::format("unknown name '{}'", name),
        near ? fmt::format("did you mean '{}'?", *near) : "name it in 'let', or give a workspace of that name before");
  }

  bool is_workspace(const std::string& name) const {
    return std::find(workspaces_.begin(), workspaces_.end(), name) != workspaces_.end();
  }

  const Node& node_;
  Problems& problems_;
  Replacement replacement_;
  std::vector<std::string> workspaces_;  // declared so far: an item uses what stands before it
  std::vector<std::string> unread_;      // names of `let` whose value is wrong
};

}  // namespace

Binding read_binding(const Node& node, Problems& problems) {
  Binding binding;
  std::map<std::string, int> lines;
  for (const Node& item : node.items) {
    if (item.kind != Node::Kind::map) continue;
    binding.replacements.push_back(ReplacementReader(item, problems).read());
    const Replacement& read = binding.replacements.back();
    std::string glob = read.kernel_glob;
    for (const std::string& next : read.then) glob += " then " + next;
    auto [first, fresh] = lines.emplace(glob, item.position.line);
    if (!fresh && !read.kernel_glob.empty())
      problems.add(item, fmt::format("a second replacement of \"{}\"", sanitize(glob, 60)),
                   fmt::format("the first stands on line {}", first->second));
  }
  return binding;
}

}  // namespace kgate::reader
