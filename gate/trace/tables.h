// The tables that rows go into by the batch, and what a row of each is made of: the columns of schema.cpp in order.
#pragma once

#include "trace/bulk.h"

namespace kgate::trace {

struct Tables {
  explicit Tables(BulkWriter* writer)
      : round(writer->table("rounds", "iiiiii")),
        process(writer->table("processes", "iitiiiiii")),
        request(writer->table("requests", "iiiiitiiiiii")),
        kernel_name(writer->table("kernel_names", "ittt")),
        shape(writer->table("launch_shapes", "iiiiiiiiiiiiii")),
        kernel(writer->table("kernels(round, arm, sequence, request, launch, item, launch_class, phase, judged, "
                             "replaced, kernel, shape, start_ns, duration_ns, launch_begin_ns, launch_end_ns, "
                             "launch_source, previous_end_ns, queue_ns, process, thread, stream, device_stream, "
                             "context, correlation_id, graph_id, graph_node)",
                             "iiiiiiitiiiiiiiitiiiiiiiiii")),
        counters(writer->table("counters", "iiiiiitiiiiiiiiiii")),
        api(writer->table("api_calls", "iiiiittiiiiiii")),
        sync(writer->table("syncs", "iiiiitiiiiii")),
        copy(writer->table("copies", "iiiiiiiiii")),
        overhead(writer->table("overheads", "iiiiiii")),
        host_call(writer->table("host_calls", "iiiittiiiii")),
        off_cpu(writer->table("off_cpu", "iiiiiiii")),
        graph(writer->table("graphs", "iiiiiiii")),
        module(writer->table("modules", "iiiii")) {}

  BulkWriter::Table round, process, request, kernel_name, shape, kernel, counters, api, sync, copy, overhead, host_call,
      off_cpu, graph, module;
};

// A row of `kernels` but for what the kernel record says.
struct KernelPlace {
  Cell round = kNull, arm = kNull, sequence = kNull, request = kNull, launch = kNull, item = kNull,
       launch_class = kNull, phase = kNull;
  bool judged = false, replaced = false;
  Cell kernel = kNull;
  uint64_t launch_begin = 0, launch_end = 0, previous_end = 0;  // 0: not known
  Cell source = kNull, process = kNull, thread = kNull, stream = kNull;
};

}  // namespace kgate::trace
