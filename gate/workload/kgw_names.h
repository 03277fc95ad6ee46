// Words that a .kgw uses for what is an enumeration in memory, and the rows of `fidelity`, which two writers make.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "workload/kgw_database.h"
#include "workload/workload.h"

namespace kgate::kgw {

const char* stream_kind_name(StreamKind kind);
const char* content_name(const Content& content);  // "zeros", "bytes", "random", "poison", "chunks"

std::optional<CallKind> call_kind_named(std::string_view name);
std::optional<GraphNode::Kind> node_kind_named(std::string_view name);
std::optional<StreamKind> stream_kind_named(std::string_view name);
std::optional<Addresses> addresses_named(std::string_view name);

void write_fidelity(Database& db, const std::vector<Fidelity>& fidelity);

}  // namespace kgate::kgw
