// The parts of the contract's reader. Each takes a node that the table's walk has looked at, notes what the table
// cannot say (names that nothing defines, values out of range), and returns what could be read.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "contract/contract.h"
#include "contract/table.h"

namespace kgate::reader {

// An expression of the contract over the shape's names, where it stands, and the values that make sense there.
struct Use {
  Expr expr;
  const yaml::Node* node;
  size_t offset = 0;  // of the expression in the node's text
  std::string label;  // "grid.x"
  int64_t low = 0, high = 0;
};

// A shape of the file, expanded.
struct Shapes {
  std::vector<Environment> all;
  std::vector<const yaml::Node*> from;  // of each: its entry in the file
  std::vector<bool> product;            // of each: the entry is a product of several
};

std::optional<std::string> text_of(const yaml::Node* node);  // of a scalar; nullopt for anything else
std::filesystem::path resolve(const std::filesystem::path& file, const std::string& path);

// "[x, y, z]" into `out`, and the uses if `uses` is given.
void read_three(const yaml::Node* node, const char* label, Expr out[3], std::vector<Use>* uses,
                yaml::Problems& problems);
Expr read_expression(const yaml::Node* node, yaml::Problems& problems);  // absent or wrong: 0

// `launched`: the contract has a `launch`. Without one a workload brings sizes and values, and none may be given here.
std::vector<Param> read_params(const yaml::Node& node, bool launched, std::vector<Use>& uses, yaml::Problems& problems);
Shapes read_shapes(const yaml::Node& node, yaml::Problems& problems);
void check_names(const std::vector<Use>& uses, const Shapes& shapes, yaml::Problems& problems);
void apply_constraints(const std::vector<Use>& constraints, Shapes& shapes, yaml::Problems& problems);
void check_values(const Contract& contract, const std::vector<Use>& uses, const Shapes& shapes,
                  yaml::Problems& problems);

std::vector<Limit> read_limits(const yaml::Node& node, yaml::Problems& problems);
std::map<Dtype, Tolerance> read_tolerances(const yaml::Node& node, yaml::Problems& problems);
Binding read_binding(const yaml::Node& node, yaml::Problems& problems);

}  // namespace kgate::reader
