// Calls other than launches, and repetition.
#include "workload/calls.h"

#include <fmt/format.h>

#include "support/text.h"
#include "workload/limits.h"

namespace kgate::build {

using namespace cap;

using yaml::Fields;
using yaml::Node;

namespace {
constexpr size_t kMaxRequestCalls = 1 << 16;
constexpr int64_t kMaxStreamsOfThread = 64;
}  // namespace

std::vector<Call> CallExpander::expand(const Node& request, uint32_t thread, const Environment& names) {
  thread_ = thread;
  calls_.clear();
  too_many_ = false;
  rounds_ = 0;
  expand_list(request, names);
  if (too_many_)
    scene_.problems.add(request, fmt::format("a request of more than {} calls or rounds of repeat", kMaxRequestCalls));
  return std::move(calls_);
}

void CallExpander::expand_list(const Node& list, const Environment& names) {
  if (list.kind != Node::Kind::sequence || list.items.empty())
    return scene_.problems.add(list, "expected a list of calls", "write one '- call: {...}' a line");
  for (const Node& item : list.items) {
    if (too_many_) return;
    expand_item(item, names);
  }
}

void CallExpander::expand_item(const Node& item, const Environment& names) {
  if (item.kind != Node::Kind::map || item.entries.size() != 1)
    return scene_.problems.add(item, "expected one call", "write '- launch: {...}'");
  const Node &key = item.entries[0].first, &value = item.entries[0].second;
  if (key.text == "launch") return expand_launch(value, names);
  if (key.text == "sync") return expand_sync(value, names);
  if (key.text == "repeat") return expand_repeat(value, names);
  for (CallKind kind : {CallKind::copy, CallKind::upload, CallKind::download, CallKind::memset})
    if (key.text == call_kind_name(kind)) return expand_memory(kind, value, names);
  for (CallKind kind : {CallKind::event_record, CallKind::event_wait, CallKind::event_sync})
    if (key.text == call_kind_name(kind)) return expand_event(kind, value, names);
  const std::vector<std::string> known = {"launch",       "copy",       "upload",     "download", "memset",
                                          "event_record", "event_wait", "event_sync", "sync",     "repeat"};
  const auto near = did_you_mean(key.text, known);
  scene_.problems.add(
      key, fmt::format("unknown call '{}'", sanitize(key.text, 60)),
      near ? fmt::format("did you mean '{}'?", *near) : fmt::format("known: {}", fmt::join(known, ", ")));
}

void CallExpander::expand_repeat(const Node& node, const Environment& names) {
  Fields fields(node, scene_.problems, "repeat");
  const Node *times = fields.require("times"), *calls = fields.require("calls"), *index = fields.find("index");
  fields.close();
  if (!times || !calls) return;
  const auto count = evaluate(scene_, *times, names, 0, kMaxRequestCalls);
  Environment inner = names;
  if (index && (!is_variable_name(index->text) || scene_.taken(index->text) || names.contains(index->text)))
    return scene_.problems.add(*index, "is not a new name", "choose one that no constant, buffer or other index has");
  for (int64_t i = 0; i < count.value_or(0) && !too_many_; ++i) {
    too_many_ = ++rounds_ > kMaxRequestCalls;  // nested rounds that make no calls would go on for ever
    if (index) inner[index->text] = i;
    expand_list(*calls, inner);
  }
}

// What every call has: the stream that it is put on and the host's time before it.
void CallExpander::finish_call(Call call, Fields& fields, const Environment& names) {
  call.thread = thread_;
  if (const Node* stream = fields.find("stream"))
    call.stream = static_cast<uint32_t>(evaluate(scene_, *stream, names, 0, kMaxStreamsOfThread - 1).value_or(0));
  call.host_gap_ns = static_cast<uint64_t>(fields.duration_ns("gap").value_or(0));
  fields.close();
  streams_ = std::max(streams_, call.stream + 1);
  if (calls_.size() >= kMaxRequestCalls) {
    too_many_ = true;
    return;
  }
  calls_.push_back(std::move(call));
}

bool CallExpander::names_buffer(const std::string& text) const {
  const size_t end = text.find_first_of(" +-*/%(");
  return scene_.buffer(text.substr(0, end)) != nullptr;
}

std::optional<CallExpander::Place> CallExpander::place(const Node& node, const Environment& names) {
  const std::string& text = node.text;
  const size_t end = std::min(text.size(), text.find_first_of(" +-*/%("));
  const SceneBuffer* buffer = node.kind == Node::Kind::scalar ? scene_.buffer(text.substr(0, end)) : nullptr;
  if (!buffer) {
    const auto near = did_you_mean(text.substr(0, end), scene_.buffer_names());
    scene_.problems.add(node, fmt::format("unknown buffer '{}'", sanitize(text.substr(0, end), 60)),
                        near ? fmt::format("did you mean '{}'?", *near) : "declare it under 'buffers'");
    return std::nullopt;
  }
  Place result{buffer->first + (buffer->per_thread ? thread_ : 0), 0};
  const size_t plus = text.find_first_not_of(' ', end);
  if (plus == std::string::npos) return result;
  if (text[plus] != '+') {
    scene_.problems.add(yaml::inside(node, plus), node, "expected '+'", "a place is written NAME or NAME + BYTES");
    return std::nullopt;
  }
  const Result<Expr> expr = Expr::parse(std::string_view(text).substr(plus + 1));
  if (!expr) {
    scene_.problems.add(node, expr.failure());
    return std::nullopt;
  }
  const auto last = static_cast<int64_t>(scene_.workload.buffers[result.buffer].bytes) - 1;
  const auto offset = evaluate(scene_, node, *expr, plus + 1, names, 0, last);
  if (!offset) return std::nullopt;
  result.offset = static_cast<uint64_t>(*offset);
  return result;
}

void CallExpander::expand_memory(CallKind kind, const Node& node, const Environment& names) {
  Fields fields(node, scene_.problems, call_kind_name(kind));
  Call call;
  call.kind = kind;
  uint64_t room = kMaxBufferBytes;
  const auto end_at = [&](const char* key, uint32_t& buffer, uint64_t& offset, bool written) {
    const Node* value = fields.require(key);
    const auto found = value ? place(*value, names) : std::nullopt;
    if (!found) return;
    buffer = found->buffer, offset = found->offset;
    room = std::min(room, scene_.workload.buffers[buffer].bytes - offset);
    if (written && !scene_.workload.buffers[buffer].written)
      scene_.problems.add(*value, "writes a buffer that is marked constant");
  };
  if (kind != CallKind::download) end_at("to", call.dst, call.dst_offset, true);
  if (kind == CallKind::copy || kind == CallKind::download) end_at("from", call.src, call.src_offset, false);
  if (kind == CallKind::memset)
    if (const Node* value = fields.require("value"))
      call.value = static_cast<uint8_t>(evaluate(scene_, *value, names, 0, 255).value_or(0));
  if (const Node* bytes = fields.find("bytes"))
    call.bytes = static_cast<uint64_t>(evaluate(scene_, *bytes, names, 1, static_cast<int64_t>(room)).value_or(1));
  else
    call.bytes = room;
  if (kind == CallKind::copy && call.dst == call.src && call.dst != kNone &&
      call.dst_offset < call.src_offset + call.bytes && call.src_offset < call.dst_offset + call.bytes)
    scene_.problems.add(node, "copies between overlapping ranges");
  finish_call(std::move(call), fields, names);
}

void CallExpander::expand_event(CallKind kind, const Node& node, const Environment& names) {
  Fields fields(node, scene_.problems, call_kind_name(kind));
  Call call;
  call.kind = kind;
  const auto name = fields.string("event", true);
  if (name) {
    if (kind != CallKind::event_record && !events_.contains(*name))
      scene_.problems.add(node, fmt::format("event '{}' was not recorded before", sanitize(*name, 60)));
    call.event = events_.try_emplace(*name, static_cast<uint32_t>(events_.size())).first->second;
  }
  finish_call(std::move(call), fields, names);
}

void CallExpander::expand_sync(const Node& node, const Environment& names) {
  Call call;
  call.kind = CallKind::stream_sync;
  if (node.kind == Node::Kind::scalar && node.text == "context") {
    call.kind = CallKind::context_sync;
    Node no_fields;
    no_fields.kind = Node::Kind::map;
    Fields fields(no_fields, scene_.problems, "sync");
    return finish_call(std::move(call), fields, names);
  }
  if (node.kind != Node::Kind::map)
    return scene_.problems.add(node, "expected what to wait for", "write 'sync: context' or 'sync: {stream: 0}'");
  Fields fields(node, scene_.problems, "sync");
  if (!node.find("stream")) scene_.problems.add(node, "the sync has no 'stream'", "write 'sync: {stream: 0}'");
  finish_call(std::move(call), fields, names);
}

}  // namespace kgate::build
