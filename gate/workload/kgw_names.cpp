#include "workload/kgw_names.h"

namespace kgate::kgw {

namespace {

template <typename Kind, typename Name>
std::optional<Kind> named(std::string_view text, Kind last, Name name) {
  for (unsigned k = 0; k <= static_cast<unsigned>(last); ++k)
    if (text == name(static_cast<Kind>(k))) return static_cast<Kind>(k);
  return {};
}

}  // namespace

const char* stream_kind_name(StreamKind kind) {
  switch (kind) {
    case StreamKind::non_blocking:
      return "non_blocking";
    case StreamKind::blocking:
      return "blocking";
    case StreamKind::legacy:
      return "legacy";
    case StreamKind::per_thread:
      return "per_thread";
  }
  return "unknown";
}

const char* content_name(const Content& content) {
  static constexpr const char* names[] = {"zeros", "bytes", "random", "poison", "chunks"};
  static_assert(std::size(names) == std::variant_size_v<Content>);
  return names[content.index()];
}

std::optional<CallKind> call_kind_named(std::string_view name) { return named(name, kLastCallKind, call_kind_name); }

std::optional<GraphNode::Kind> node_kind_named(std::string_view name) {
  return named(name, GraphNode::Kind::empty, graph_node_kind_name);
}

std::optional<StreamKind> stream_kind_named(std::string_view name) {
  return named(name, StreamKind::per_thread, stream_kind_name);
}

std::optional<Addresses> addresses_named(std::string_view name) {
  return named(name, Addresses::pinned, addresses_name);
}

void write_fidelity(Database& db, const std::vector<Fidelity>& fidelity) {
  Rows rows(db, "fidelity", 7);
  for (size_t i = 0; i < fidelity.size(); ++i) {
    const Fidelity& f = fidelity[i];
    rows.number(i).text(f.device).number(f.blocks).number(f.equal).number(f.buffers).number(f.exact);
    rows.number(f.shifted_equal).end_row();
  }
}

}  // namespace kgate::kgw
