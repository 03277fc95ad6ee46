// Stream capture: what is asked of a capturing stream becomes nodes of a graph. A stream that waits for an event of a
// capture joins it.
#pragma once

#include <thread>

#include "vgpu/driver_work.h"

namespace kgate::vgpu {

struct Capture {
  CUgraph graph = nullptr;
  CUstream origin = nullptr;
  uint64_t id = 0;
  unsigned mode = 0;     // CU_STREAM_CAPTURE_MODE_*
  bool invalid = false;  // something that cannot be captured was asked for
  bool over = false;
  std::thread::id thread = std::this_thread::get_id();
};

// Null when the stream does not capture.
Stream* capturing(Call& call, StreamArg stream);

// Breaks the capture that the stream takes part in, if any, since a call cannot be captured. CUDA_SUCCESS when there is
// none.
CUresult not_capturing(Call& call, StreamArg stream);                         // STREAM_CAPTURE_UNSUPPORTED
CUresult not_capturing(Call& call, StreamArg stream, std::string_view what);  // NOT_SUPPORTED, by name
// What a capture forbids meanwhile: to anyone (mode GLOBAL), to its thread (THREAD_LOCAL), to nobody (RELAXED).
CUresult forbidden_while_capturing(Call& call);
// The legacy stream would wait for streams that capture.
CUresult implicit_sync(Call& call, StreamArg stream);

CUresult capture(Call& call, Stream& stream, Work work);
CUresult capture_record(Stream& stream, Event& event);  // remembers where the stream is
CUresult capture_wait(Stream& stream, Event& event);    // goes on from there too
void stream_ends(Call& call, CUstream handle);          // a capture that began on it ends without a graph
CUresult break_capture(Stream& stream, CUresult code);  // returns `code`

}  // namespace kgate::vgpu
