// See the header. Events that are recorded in a capture become edges, no nodes; those with the EXTERNAL flags become
// nodes.
#include "vgpu/driver_capture.h"

#include <algorithm>
#include <set>

#include "vgpu/driver_graph.h"

namespace kgate::vgpu {

namespace {

void add_tips(std::vector<CUgraphNode>& tips, const std::vector<CUgraphNode>& more) {
  for (CUgraphNode node : more)
    if (std::find(tips.begin(), tips.end(), node) == tips.end()) tips.push_back(node);
}

// Whether everything that a stream of the capture was asked for comes before `tips`.
bool joined(Call& call, const std::vector<CUgraphNode>& tips, const std::vector<CUgraphNode>& others) {
  std::set<CUgraphNode> before(tips.begin(), tips.end());
  std::vector<CUgraphNode> open(tips);
  while (!open.empty()) {
    const GraphNode* node = call.state.nodes.find(open.back());
    open.pop_back();
    if (node == nullptr) continue;
    for (CUgraphNode earlier : node->after)
      if (before.insert(earlier).second) open.push_back(earlier);
  }
  return std::all_of(others.begin(), others.end(), [&](CUgraphNode node) { return before.count(node) != 0; });
}

CUresult begin(Call& call, StreamArg on, CUgraph graph, std::vector<CUgraphNode> tips, unsigned mode) {
  uint32_t id = 0;
  if (mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
  if (CUresult code = stream_id(call, on, id); code != CUDA_SUCCESS) return code;
  Stream* stream = call.state.streams.find(on.handle);
  if (stream == nullptr) {
    bool own = on.handle == reinterpret_cast<CUstream>(kStreamPerThread) || (on.handle == nullptr && on.per_thread);
    return own ? unsupported(call, "a capture of a thread's own default stream")
               : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  if (stream->capture) return CUDA_ERROR_ILLEGAL_STATE;
  auto capture = std::make_shared<Capture>();
  capture->graph = graph != nullptr ? graph : make_graph(call);
  capture->origin = on.handle;
  capture->id = call.state.next_capture++;
  capture->mode = mode;
  stream->capture = capture;
  stream->tips = std::move(tips);
  call.state.captures.push_back(std::move(capture));
  return CUDA_SUCCESS;
}

CUresult begin_to_graph(Call& call, StreamArg on, CUgraph graph, const CUgraphNode* after, const CUgraphEdgeData* data,
                        size_t count, unsigned mode) {
  if (call.state.graphs.find(graph) == nullptr || (count != 0 && after == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  if (data != nullptr) return unsupported(call, "edges of a graph that are not plain");
  for (size_t i = 0; i < count; ++i) {
    GraphNode* node = call.state.nodes.find(after[i]);
    if (node == nullptr || node->graph != graph) return CUDA_ERROR_INVALID_VALUE;
  }
  return begin(call, on, graph, {after, after + count}, mode);
}

void finish(Call& call, const std::shared_ptr<Capture>& capture) {
  call.state.streams.for_each([&](Stream& stream) {
    if (stream.capture != capture) return;
    stream.capture.reset();
    stream.tips.clear();
  });
  capture->over = true;
  std::erase(call.state.captures, capture);
}

CUresult end(Call& call, StreamArg on, CUgraph* out) {
  State& s = call.state;
  uint32_t id = 0;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = nullptr;
  if (CUresult code = stream_id(call, on, id); code != CUDA_SUCCESS) return code;
  Stream* stream = s.streams.find(on.handle);
  if (stream == nullptr || !stream->capture) return CUDA_ERROR_ILLEGAL_STATE;
  std::shared_ptr<Capture> capture = stream->capture;
  if (capture->origin != on.handle) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  CUresult result = capture->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
  std::vector<CUgraphNode> tips = stream->tips;
  s.streams.for_each([&](Stream& other) {
    if (other.capture == capture && result == CUDA_SUCCESS && !joined(call, tips, other.tips))
      result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  });
  finish(call, capture);
  if (result == CUDA_SUCCESS)
    *out = capture->graph;
  else
    destroy_graph(call, capture->graph);
  return result;
}

CUresult status(Call& call, StreamArg on, unsigned* out) {
  uint32_t id = 0;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (CUresult code = stream_id(call, on, id); code != CUDA_SUCCESS) return code;
  Stream* stream = call.state.streams.find(on.handle);
  if (stream == nullptr || !stream->capture)
    *out = CU_STREAM_CAPTURE_STATUS_NONE;
  else
    *out = stream->capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE;
  return CUDA_SUCCESS;
}

struct CaptureInfo {
  unsigned* status;
  uint64_t* id;
  CUgraph* graph;
  const CUgraphNode** after;
  const CUgraphEdgeData** data;
  size_t* count;
};

CUresult info(Call& call, StreamArg on, const CaptureInfo& out) {
  CUresult code = status(call, on, out.status);
  if (code != CUDA_SUCCESS || *out.status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return code;
  Stream* stream = call.state.streams.find(on.handle);
  if (out.id != nullptr) *out.id = stream->capture->id;
  if (out.graph != nullptr) *out.graph = stream->capture->graph;
  if (out.after != nullptr) *out.after = stream->tips.data();
  if (out.data != nullptr) *out.data = nullptr;  // all edges are plain
  if (out.count != nullptr) *out.count = stream->tips.size();
  return CUDA_SUCCESS;
}

}  // namespace

Stream* capturing(Call& call, StreamArg on) {
  Stream* stream = call.state.streams.find(on.handle);
  return stream != nullptr && stream->capture ? stream : nullptr;
}

CUresult break_capture(Stream& stream, CUresult code) {
  stream.capture->invalid = true;
  return code;
}

void stream_ends(Call& call, CUstream handle) {
  Stream* stream = call.state.streams.find(handle);
  if (stream == nullptr || !stream->capture) return;
  std::shared_ptr<Capture> capture = stream->capture;
  capture->invalid = true;
  if (capture->origin != handle) return;
  finish(call, capture);
  destroy_graph(call, capture->graph);
}

CUresult not_capturing(Call& call, StreamArg on) {
  if (Stream* stream = capturing(call, on)) return break_capture(*stream, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  return implicit_sync(call, on);
}

CUresult not_capturing(Call& call, StreamArg on, std::string_view what) {
  uint32_t id = 0;
  if (CUresult code = stream_id(call, on, id); code != CUDA_SUCCESS) return code;
  Stream* stream = capturing(call, on);
  return stream == nullptr ? CUDA_SUCCESS : break_capture(*stream, unsupported(call, what));
}

CUresult forbidden_while_capturing(Call& call) {
  for (const auto& capture : call.state.captures) {
    bool own = capture->mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL && capture->thread == std::this_thread::get_id();
    if (capture->mode != CU_STREAM_CAPTURE_MODE_GLOBAL && !own) continue;
    capture->invalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return CUDA_SUCCESS;
}

CUresult implicit_sync(Call& call, StreamArg on) {
  bool legacy = on.handle == reinterpret_cast<CUstream>(kStreamLegacy) || (on.handle == nullptr && !on.per_thread);
  if (!legacy) return CUDA_SUCCESS;
  for (const auto& capture : call.state.captures) {
    Stream* origin = call.state.streams.find(capture->origin);
    if (origin == nullptr || (origin->flags & CU_STREAM_NON_BLOCKING) != 0) continue;
    capture->invalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  return CUDA_SUCCESS;
}

CUresult capture(Call& call, Stream& stream, Work work) {
  if (stream.capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  CUgraphNodeType type = type_of(work);
  CUgraphNode node = add_node(call, stream.capture->graph, type, std::move(work), stream.tips);
  if (node == nullptr) return break_capture(stream, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);  // the graph is gone
  stream.tips = {node};
  return CUDA_SUCCESS;
}

CUresult capture_record(Stream& stream, Event& event) {
  if (stream.capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  event.capture = stream.capture;
  event.tips = stream.tips;
  return CUDA_SUCCESS;
}

CUresult capture_wait(Stream& stream, Event& event) {
  if (stream.capture && stream.capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (!event.capture) {
    if (event.recorded_ns == 0) return CUDA_SUCCESS;  // never recorded: nothing to wait for
    return break_capture(stream, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  }
  if (event.capture->over) return CUDA_ERROR_CAPTURED_EVENT;
  if (!stream.capture) {
    stream.capture = event.capture;
    stream.tips = event.tips;
    return CUDA_SUCCESS;
  }
  if (stream.capture != event.capture) {
    event.capture->invalid = true;
    return break_capture(stream, CUDA_ERROR_STREAM_CAPTURE_MERGE);
  }
  add_tips(stream.tips, event.tips);
  return CUDA_SUCCESS;
}

#define KGATE_CAPTURE_EXPORTS(suffix, own)                                                                            \
  KGATE_EXPORT CUresult cuStreamBeginCapture_v2##suffix(CUstream stream, unsigned mode) {                             \
    return context_call(KGATE_API(cuStreamBeginCapture_v2##suffix, stream, mode), [&](Call& call) {                   \
      return begin(call, {stream, own}, nullptr, {}, mode);                                                           \
    });                                                                                                               \
  }                                                                                                                   \
  KGATE_EXPORT CUresult cuStreamBeginCaptureToGraph##suffix(CUstream stream, CUgraph graph, const CUgraphNode* after, \
                                                            const CUgraphEdgeData* data, size_t count,                \
                                                            unsigned mode) {                                          \
    return context_call(KGATE_API(cuStreamBeginCaptureToGraph##suffix, stream, graph, after, data, count, mode),      \
                        [&](Call& call) {                                                                             \
                          return begin_to_graph(call, {stream, own}, graph, after, data, count, mode);                \
                        });                                                                                           \
  }                                                                                                                   \
  KGATE_EXPORT CUresult cuStreamEndCapture##suffix(CUstream stream, CUgraph* graph) {                                 \
    return context_call(KGATE_API(cuStreamEndCapture##suffix, stream, graph), [&](Call& call) {                       \
      return end(call, {stream, own}, graph);                                                                         \
    });                                                                                                               \
  }                                                                                                                   \
  KGATE_EXPORT CUresult cuStreamIsCapturing##suffix(CUstream stream, unsigned* out) {                                 \
    return context_call(KGATE_API_ID(cuStreamIsCapturing##suffix), [&](Call& call) {                                  \
      return status(call, {stream, own}, out);                                                                        \
    });                                                                                                               \
  }                                                                                                                   \
  KGATE_EXPORT CUresult cuStreamGetCaptureInfo_v2##suffix(CUstream stream, unsigned* status, uint64_t* id,            \
                                                          CUgraph* graph, const CUgraphNode** after, size_t* count) { \
    return context_call(KGATE_API_ID(cuStreamGetCaptureInfo_v2##suffix), [&](Call& call) {                            \
      return info(call, {stream, own}, {status, id, graph, after, nullptr, count});                                   \
    });                                                                                                               \
  }                                                                                                                   \
  KGATE_EXPORT CUresult cuStreamGetCaptureInfo_v3##suffix(CUstream stream, unsigned* status, uint64_t* id,            \
                                                          CUgraph* graph, const CUgraphNode** after,                  \
                                                          const CUgraphEdgeData** data, size_t* count) {              \
    return context_call(KGATE_API_ID(cuStreamGetCaptureInfo_v3##suffix), [&](Call& call) {                            \
      return info(call, {stream, own}, {status, id, graph, after, data, count});                                      \
    });                                                                                                               \
  }
KGATE_CAPTURE_EXPORTS(, false)
KGATE_CAPTURE_EXPORTS(_ptsz, true)
#undef KGATE_CAPTURE_EXPORTS

}  // namespace kgate::vgpu
