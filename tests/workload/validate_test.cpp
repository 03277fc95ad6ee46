#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "recorded_sample.h"
#include "sample.h"
#include "workload/limits.h"

namespace kgate {
namespace {

std::string problem_after(const std::function<void(Workload&)>& change) {
  Workload w = test::sample_workload();
  change(w);
  auto valid = validate(w);
  return valid ? "accepted" : valid.failure().where + ": " + valid.failure().what;
}

TEST(Validate, the_sample_is_accepted) {
  EXPECT_EQ(problem_after([](Workload&) {}), "accepted");
}

struct Case {
  const char* name;
  const char* where;
  std::function<void(Workload&)> change;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class Refused : public testing::TestWithParam<Case> {};

TEST_P(Refused, is_refused_where_it_is) {
  const std::string problem = problem_after(GetParam().change);
  EXPECT_TRUE(problem.starts_with(GetParam().where)) << problem;
}

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

const std::vector<Case> kCases = {
    {"no_threads", "workload", [](Workload& w) { w.threads = 0; }},
    {"huge_thread_count", "workload", [](Workload& w) { w.threads = 0xffffffff; }},
    {"no_streams", "workload", [](Workload& w) { w.streams.clear(); }},
    {"huge_event_count", "workload", [](Workload& w) { w.events = 0xffffffff; }},
    {"period_overflows", "workload", [](Workload& w) { w.period_ns = ~uint64_t{0}; }},
    {"period_before_last_arrival", "workload", [](Workload& w) { w.period_ns = 2499; }},
    {"name_with_escape", "workload", [](Workload& w) { w.name = "a\x1b[31m"; }},
    {"nothing_to_do", "workload", [](Workload& w) { w.calls.clear(), w.requests.clear(); }},
    {"arrivals_of_no_kind", "workload", [](Workload& w) { w.arrivals = static_cast<Arrivals>(7); }},
    {"too_many_calls", "calls", [](Workload& w) { w.calls.resize(cap::kMaxCalls + 1); }},
    {"image_hash", "modules 0", [](Workload& w) { w.modules[0].image += ' '; }},
    {"empty_image", "modules 0", [](Workload& w) { w.modules[0].image.clear(); }},
    {"module_of_kernel", "kernels 0", [](Workload& w) { w.kernels[0].module = 1; }},
    {"entry_with_nul", "kernels 0", [](Workload& w) { w.kernels[0].entry = std::string("a\0b", 3); }},
    {"empty_entry", "kernels 0", [](Workload& w) { w.kernels[0].entry.clear(); }},
    {"param_past_block", "kernels 0",
     [](Workload& w) {
       w.kernels[0].params[2] = {16, 8};
     }},
    {"param_offset_overflow", "kernels 0",
     [](Workload& w) {
       w.kernels[0].params[2] = {0xfffffffc, 0xffffffff};
     }},
    {"param_of_no_size", "kernels 0", [](Workload& w) { w.kernels[0].params[1].second = 0; }},
    {"params_overlap", "kernels 0",
     [](Workload& w) {
       w.kernels[0].params[1] = {4, 8};
     }},
    {"param_block_size", "kernels 0", [](Workload& w) { w.kernels[0].param_bytes = 1u << 31; }},
    {"buffer_of_no_size", "buffers 0", [](Workload& w) { w.buffers[0].bytes = 0; }},
    {"buffer_too_large", "buffers 3", [](Workload& w) { w.buffers[3].bytes = cap::kMaxBufferBytes + 1; }},
    {"alignment_not_a_power", "buffers 0", [](Workload& w) { w.buffers[0].align = 24; }},
    {"alignment_zero", "buffers 0", [](Workload& w) { w.buffers[0].align = 0; }},
    {"address_misaligned", "buffers 1", [](Workload& w) { w.buffers[1].address += 8; }},
    {"address_wraps", "buffers 1", [](Workload& w) { w.buffers[1].address = 0xffffffffffffff00; }},
    {"addresses_overlap", "buffers 2", [](Workload& w) { w.buffers[2].address = w.buffers[1].address + 4088; }},
    {"content_too_long", "buffers 2", [](Workload& w) { w.buffers[2].bytes = 12; }},
    {"unknown_dtype", "buffers 1", [](Workload& w) { std::get<ContentRandom>(w.buffers[1].content).dtype = "f33"; }},
    {"range_nan", "buffers 1", [](Workload& w) { std::get<ContentRandom>(w.buffers[1].content).low = kNan; }},
    {"range_inf", "buffers 1", [](Workload& w) { std::get<ContentRandom>(w.buffers[1].content).high = kInf; }},
    {"range_backwards", "buffers 1", [](Workload& w) { std::get<ContentRandom>(w.buffers[1].content).high = -3; }},
    {"range_of_dtype", "buffers 1",
     [](Workload& w) {
       w.buffers[1].content = ContentRandom{"f16", 0, 65505, 1};
     }},
    {"range_width_overflows", "buffers 1",
     [](Workload& w) {
       w.buffers[1].content = ContentRandom{"f64", -1.7e308, 1.7e308, 1};
     }},
    {"range_of_u64", "buffers 1",
     [](Workload& w) {
       w.buffers[1].content = ContentRandom{"u64", 0, 18446744073709551616.0, 1};
     }},
    {"range_of_unsigned", "buffers 1",
     [](Workload& w) {
       w.buffers[1].content = ContentRandom{"u8", -1, 1, 1};
     }},
    {"range_not_whole", "buffers 1",
     [](Workload& w) {
       w.buffers[1].content = ContentRandom{"i32", 0, 1.5, 1};
     }},
    {"broken_element", "buffers 1", [](Workload& w) { w.buffers[1].bytes = 4094; }},
    {"kernel_of_launch", "launches 0", [](Workload& w) { w.launches[0].kernel = kNone; }},
    {"empty_grid", "launches 0", [](Workload& w) { w.launches[0].grid.x = 0; }},
    {"grid_too_tall", "launches 0", [](Workload& w) { w.launches[0].grid.y = 65536; }},
    {"block_too_large", "launches 0",
     [](Workload& w) {
       w.launches[0].block = {512, 4, 1};
     }},
    {"block_product_overflows", "launches 0",
     [](Workload& w) {
       w.launches[0].block = {0x80000000, 2, 1};
     }},
    {"cluster_with_zero", "launches 0",
     [](Workload& w) {
       w.launches[0].cluster = {2, 0, 1};
     }},
    {"cluster_too_large", "launches 0",
     [](Workload& w) {
       w.launches[0].cluster = {32, 1, 1};
     }},
    {"grid_no_multiple_of_cluster", "launches 0", [](Workload& w) { w.launches[0].grid.x = 5; }},
    {"shared_too_large", "launches 0", [](Workload& w) { w.launches[0].shared = 0xffffffff; }},
    {"params_too_short", "launches 0", [](Workload& w) { w.launches[0].params.pop_back(); }},
    {"relocation_past_params", "launches 0", [](Workload& w) { w.launches[0].relocations[1].param_offset = 13; }},
    {"relocation_offset_overflows", "launches 0",
     [](Workload& w) { w.launches[0].relocations[1].param_offset = 0xfffffffc; }},
    {"relocations_overlap", "launches 0", [](Workload& w) { w.launches[0].relocations[1].param_offset = 4; }},
    {"relocated_buffer", "launches 0", [](Workload& w) { w.launches[0].relocations[0].buffer = 4; }},
    {"pointer_before_buffer", "launches 0", [](Workload& w) { w.launches[0].relocations[0].delta = -1; }},
    {"pointer_past_buffer", "launches 0", [](Workload& w) { w.launches[0].relocations[0].delta = 4097; }},
    {"call_kind", "calls 0", [](Workload& w) { w.calls[0].kind = static_cast<CallKind>(200); }},
    {"call_thread", "calls 0", [](Workload& w) { w.calls[0].thread = 2; }},
    {"call_stream", "calls 0", [](Workload& w) { w.calls[0].stream = 2; }},
    {"call_launch", "calls 1", [](Workload& w) { w.calls[1].launch = 1; }},
    {"sync_with_launch", "calls 3", [](Workload& w) { w.calls[3].launch = 0; }},
    {"call_event", "calls 2", [](Workload& w) { w.calls[2].event = 1; }},
    {"launch_with_event", "calls 1", [](Workload& w) { w.calls[1].event = 0; }},
    {"copy_offset_wraps", "calls 6", [](Workload& w) { w.calls[6].src_offset = ~uint64_t{0} - 50; }},
    {"copy_bytes_wrap", "calls 6", [](Workload& w) { w.calls[6].bytes = ~uint64_t{0}; }},
    {"copy_of_nothing", "calls 6", [](Workload& w) { w.calls[6].bytes = 0; }},
    {"copy_onto_itself", "calls 6", [](Workload& w) { w.calls[6].src = 3; }},
    {"memset_of_no_buffer", "calls 5", [](Workload& w) { w.calls[5].dst = kNone; }},
    {"upload_into_constant", "calls 0", [](Workload& w) { w.buffers[1].written = false; }},
    {"upload_with_source", "calls 0", [](Workload& w) { w.calls[0].src = 0; }},
    {"launch_with_bytes", "calls 1", [](Workload& w) { w.calls[1].bytes = 1; }},
    {"launch_with_value", "calls 1", [](Workload& w) { w.calls[1].value = 1; }},
    {"endless_gap", "calls 1", [](Workload& w) { w.calls[1].host_gap_ns = ~uint64_t{0}; }},
    {"edge_to_itself", "calls 4", [](Workload& w) { w.calls[4].after = {4}; }},
    {"edge_forwards", "calls 0", [](Workload& w) { w.calls[0].after = {5}; }},
    {"edge_within_thread", "calls 3", [](Workload& w) { w.calls[3].after = {1}; }},
    {"edge_twice", "calls 4",
     [](Workload& w) {
       w.calls[4].after = {2, 2};
     }},
    {"request_thread", "requests 0", [](Workload& w) { w.requests[0].thread = 2; }},
    {"request_of_nothing", "requests 0", [](Workload& w) { w.requests[0].calls.clear(); }},
    {"requests_overlap", "requests 1", [](Workload& w) { w.requests[1].calls.front() = 0; }},
    {"request_past_calls", "requests 1", [](Workload& w) { w.requests[1].calls.back() = 70; }},
    {"request_out_of_order", "requests 1",
     [](Workload& w) { std::swap(w.requests[1].calls[0], w.requests[1].calls[1]); }},
    {"call_without_request", "calls 9", [](Workload& w) { w.requests[1].calls.pop_back(); }},
    {"request_on_two_threads", "requests 0", [](Workload& w) { w.calls[1].thread = 1; }},
    {"arrivals_out_of_order", "requests 1", [](Workload& w) { w.requests[1].arrival_ns = 99; }},
    {"closed_with_arrivals", "requests 0", [](Workload& w) { w.arrivals = Arrivals::closed; }},
    {"external_without_period", "workload",
     [](Workload& w) { w.requests[0].arrival_ns = w.requests[1].arrival_ns = w.period_ns = 0; }},
};

INSTANTIATE_TEST_SUITE_P(Validate, Refused, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

std::string recording_problem_after(const std::function<void(Workload&)>& change) {
  Workload w = test::recorded_sample().workload;
  change(w);
  auto valid = validate(w);
  return valid ? "accepted" : valid.failure().where + ": " + valid.failure().what;
}

class RefusedRecording : public testing::TestWithParam<Case> {};

TEST_P(RefusedRecording, is_refused_where_it_is) {
  const std::string problem = recording_problem_after(GetParam().change);
  EXPECT_TRUE(problem.starts_with(GetParam().where)) << problem;
}

constexpr uint64_t kHuge = ~uint64_t{0};

const std::vector<Case> kRecordingCases = {
    {"stream_kind", "streams 0", [](Workload& w) { w.streams[0].kind = static_cast<StreamKind>(9); }},
    {"stream_priority", "streams 1", [](Workload& w) { w.streams[1].priority = 65; }},
    {"legacy_with_priority", "streams 2", [](Workload& w) { w.streams[2].priority = -1; }},
    {"two_legacy_streams", "streams 2", [](Workload& w) { w.streams[1].kind = StreamKind::legacy; }},
    {"thread_stream_of_another", "calls 2", [](Workload& w) { w.calls[2].stream = 3; }},
    {"too_many_events", "workload", [](Workload& w) { w.events = cap::kMaxEvents + 1; }},
    {"addresses_kind", "origin", [](Workload& w) { w.addresses = static_cast<Addresses>(4); }},
    {"device_with_newline", "origin", [](Workload& w) { w.origin.device += "\n"; }},
    {"endless_command", "origin", [](Workload& w) { w.origin.command.assign(cap::kMaxName + 1, 'x'); }},
    {"negative_arch", "origin", [](Workload& w) { w.origin.arch = -90; }},
    {"origin_without_device", "origin", [](Workload& w) { w.origin.device.clear(); }},
    {"empty_note", "notes 0", [](Workload& w) { w.origin.notes[0].clear(); }},
    {"too_many_notes", "notes", [](Workload& w) { w.origin.notes.assign(cap::kMaxNotes + 1, "x"); }},
    {"fidelity_without_device", "fidelity 0", [](Workload& w) { w.fidelity[0].device.clear(); }},
    {"fidelity_above_all", "fidelity 0", [](Workload& w) { w.fidelity[0].shifted_equal = 101; }},
    {"too_few_chunks", "buffers 0",
     [](Workload& w) { std::get<ContentChunks>(w.buffers[0].content).chunks.pop_back(); }},
    {"too_many_chunks", "buffers 0",
     [](Workload& w) { std::get<ContentChunks>(w.buffers[0].content).chunks.emplace_back(); }},
    {"end_hashes_of_another_size", "buffers 1", [](Workload& w) { w.buffers[1].end_hashes.push_back(1); }},
    {"buffers_overlap", "buffers 1", [](Workload& w) { w.buffers[1].address = w.buffers[0].address + 4096; }},
    {"empty_payload", "payloads 2", [](Workload& w) { w.payloads[2].bytes = 0; }},
    {"random_payload", "payloads 2",
     [](Workload& w) {
       w.payloads[2].content = ContentRandom{"u8", 0, 1, 1};
     }},
    {"short_payload", "payloads 0", [](Workload& w) { w.payloads[0].bytes = 65; }},
    {"graph_without_nodes", "graphs 0", [](Workload& w) { w.graphs[0].nodes.clear(); }},
    {"node_kind", "graphs 0: node 0", [](Workload& w) { w.graphs[0].nodes[0].kind = static_cast<GraphNode::Kind>(7); }},
    {"node_launch", "graphs 0: node 1", [](Workload& w) { w.graphs[0].nodes[1].launch = 2; }},
    {"empty_node_with_launch", "graphs 0: node 0", [](Workload& w) { w.graphs[0].nodes[0].launch = 0; }},
    {"node_event", "graphs 0: node 4", [](Workload& w) { w.graphs[0].nodes[4].event = kNone; }},
    {"node_after_itself", "graphs 0: node 3", [](Workload& w) { w.graphs[0].nodes[3].after = {3}; }},
    {"node_cycle", "graphs 0: node 3", [](Workload& w) { w.graphs[0].nodes[3].after = {7}; }},
    {"node_after_twice", "graphs 0: node 3",
     [](Workload& w) {
       w.graphs[0].nodes[3].after = {1, 1};
     }},
    {"node_writes_constant", "graphs 0: node 2",
     [](Workload& w) {
       w.buffers[1].written = false;
       w.calls.clear();
     }},
    {"node_copy_leaves", "graphs 0: node 3", [](Workload& w) { w.graphs[0].nodes[3].pitch.dst = 1024; }},
    {"node_fill_unaligned", "graphs 0: node 2", [](Workload& w) { w.graphs[0].nodes[2].dst_offset = 63; }},
    {"launch_with_graph", "calls 2", [](Workload& w) { w.calls[2].graph = 0; }},
    {"graph_that_is_not", "calls 3", [](Workload& w) { w.calls[3].graph = 1; }},
    {"payload_that_is_not", "calls 1", [](Workload& w) { w.calls[1].payload = 3; }},
    {"payload_of_another_size", "calls 1", [](Workload& w) { w.calls[1].payload = 2; }},
    {"memset_with_payload", "calls 5", [](Workload& w) { w.calls[5].payload = 0; }},
    {"no_rows", "calls 1", [](Workload& w) { w.calls[1].pitch.rows = 0; }},
    {"rows_overflow", "calls 1",
     [](Workload& w) { w.calls[1].pitch.rows = uint64_t{1} << 40, w.calls[1].pitch.dst = uint64_t{1} << 40; }},
    {"rows_wrap_around", "calls 1",
     [](Workload& w) {
       w.calls[1].pitch = {3, kHuge / 2 + 1, 32};
     }},
    {"pitch_below_row", "calls 1", [](Workload& w) { w.calls[1].pitch.dst = 16; }},
    {"pitch_without_rows", "calls 4", [](Workload& w) { w.calls[4].pitch.src = 64; }},
    {"host_side_not_packed", "calls 8", [](Workload& w) { w.calls[8].pitch.dst = 32; }},
    {"launch_with_rows", "calls 2", [](Workload& w) { w.calls[2].pitch.rows = 2; }},
    {"memset_with_source_pitch", "calls 5",
     [](Workload& w) {
       w.calls[5].pitch = {2, 400, 400};
     }},
    {"unit_of_three", "calls 5", [](Workload& w) { w.calls[5].unit = 3; }},
    {"unit_of_nothing", "calls 5", [](Workload& w) { w.calls[5].unit = 0; }},
    {"value_too_wide", "calls 5", [](Workload& w) { w.calls[5].unit = 2; }},
    {"bytes_not_whole_units", "calls 5", [](Workload& w) { w.calls[5].bytes = 399; }},
    {"launch_with_unit", "calls 2", [](Workload& w) { w.calls[2].unit = 4; }},
    {"async_launch", "calls 2", [](Workload& w) { w.calls[2].async = true; }},
    {"pinned_memset", "calls 5", [](Workload& w) { w.calls[5].pinned = true; }},
    {"free_of_nothing", "calls 7", [](Workload& w) { w.calls[7].allocation = 5; }},
    {"free_twice", "calls 11", [](Workload& w) { w.calls[9] = w.calls[12]; }},
    {"alloc_twice", "calls 9", [](Workload& w) { w.calls[7] = w.calls[6]; }},
    {"alloc_without_bytes", "calls 0", [](Workload& w) { w.calls[0].bytes = 0; }},
    {"alloc_without_number", "calls 0", [](Workload& w) { w.calls[0].allocation = kNone; }},
    {"alloc_of_astronomic_number", "calls 0", [](Workload& w) { w.calls[0].allocation = kNone - 1; }},
    {"free_with_bytes", "calls 7", [](Workload& w) { w.calls[7].bytes = 1; }},
    {"host_function_with_event", "calls 6", [](Workload& w) { w.calls[6].event = 0; }},
};

INSTANTIATE_TEST_SUITE_P(Validate, RefusedRecording, testing::ValuesIn(kRecordingCases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Validate, a_recording_is_accepted) {
  EXPECT_EQ(recording_problem_after([](Workload&) {}), "accepted");
}

TEST(Validate, rows_may_interleave_and_end_with_their_buffer) {
  EXPECT_EQ(recording_problem_after([](Workload& w) {
              // 8 rows of 512 bytes are the buffer; the last one needs no pitch behind it.
              w.calls[8].src_offset = 4096 - 512 * 2 - 16, w.calls[8].pitch.src = 512;
            }),
            "accepted");
  EXPECT_TRUE(recording_problem_after([](Workload& w) {
                w.calls[8].src_offset = 4096 - 512 * 2 - 15, w.calls[8].pitch.src = 512;
              }).starts_with("calls 8: leaves its source"));
}

// Identity: a change anywhere changes it, and framing keeps neighbouring fields apart.
TEST(WorkloadHash, every_field_counts) {
  const std::string original = workload_hash(test::sample_workload());
  const std::vector<std::function<void(Workload&)>> changes = {
      [](Workload& w) { w.name += "2"; },
      [](Workload& w) { w.arrivals = Arrivals::closed; },
      [](Workload& w) { ++w.period_ns; },
      [](Workload& w) { ++w.threads; },
      [](Workload& w) { w.streams.emplace_back(); },
      [](Workload& w) { ++w.events; },
      [](Workload& w) { w.blocking_sync = false; },
      [](Workload& w) { w.modules[0].image += " "; },
      [](Workload& w) { w.kernels[0].entry += "2"; },
      [](Workload& w) { w.kernels[0].params[2].second = 2; },
      [](Workload& w) { w.buffers[0].address = 4096; },
      [](Workload& w) { w.buffers[0].written = false; },
      [](Workload& w) { w.buffers[0].content = ContentZeros{}; },
      [](Workload& w) { ++std::get<ContentRandom>(w.buffers[1].content).seed; },
      [](Workload& w) { std::get<ContentBytes>(w.buffers[2].content).bytes[3] = 'x'; },
      [](Workload& w) { w.launches[0].shared = 0; },
      [](Workload& w) { w.launches[0].params[17] = std::byte{1}; },
      [](Workload& w) { w.launches[0].relocations[1].delta = 1028; },
      [](Workload& w) { w.calls[5].value = 8; },
      [](Workload& w) { w.calls[4].after = {0}; },
      [](Workload& w) { ++w.calls[9].host_gap_ns; },
      [](Workload& w) { ++w.requests[0].arrival_ns; },
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    Workload w = test::sample_workload();
    changes[i](w);
    EXPECT_NE(workload_hash(w), original) << "change " << i;
  }
  Workload same = test::sample_workload();
  same.sha256 = "set";
  EXPECT_EQ(workload_hash(same), original);
}

TEST(WorkloadHash, every_field_of_a_recording_counts) {
  const Workload recorded = test::recorded_sample().workload;
  const std::string original = workload_hash(recorded);
  const std::vector<std::function<void(Workload&)>> changes = {
      [](Workload& w) { w.streams[0].priority = 0; },
      [](Workload& w) { w.streams[1].kind = StreamKind::non_blocking; },
      [](Workload& w) { w.origin.device = "NVIDIA H100"; },
      [](Workload& w) { w.origin.arch = 100; },
      [](Workload& w) { ++w.origin.sm_count; },
      [](Workload& w) { ++w.origin.driver_version; },
      [](Workload& w) { w.origin.command = "x"; },
      [](Workload& w) { w.origin.begun = ""; },
      [](Workload& w) { w.origin.notes.clear(); },
      [](Workload& w) { w.modules[0].portable.clear(); },
      [](Workload& w) { std::get<ContentChunks>(w.buffers[0].content).chunks[1][31] = 1; },
      [](Workload& w) { ++w.buffers[2].end_hashes[1]; },
      [](Workload& w) { w.buffers[2].end_hashes.clear(); },
      [](Workload& w) { std::get<ContentBytes>(w.payloads[0].content).bytes[9] = 'q'; },
      [](Workload& w) { ++w.payloads[2].bytes; },
      [](Workload& w) { w.launches[1].cooperative = false; },
      [](Workload& w) { w.launches[0].programmatic = false; },
      [](Workload& w) { w.graphs[0].nodes[6].kind = GraphNode::Kind::empty; },
      [](Workload& w) { w.graphs[0].nodes[1].launch = 1; },
      [](Workload& w) { w.graphs[0].nodes[3].src = 1; },
      [](Workload& w) { w.graphs[0].nodes[3].pitch.src = 128; },
      [](Workload& w) { w.graphs[0].nodes[2].unit = 4; },
      [](Workload& w) { w.graphs[0].nodes[4].event = 1; },
      [](Workload& w) { w.graphs[0].nodes[7].after = {6}; },
      [](Workload& w) { w.graphs.push_back(w.graphs[0]); },
      [](Workload& w) { w.calls[1].pitch.dst = 1024; },
      [](Workload& w) { w.calls[1].pinned = false; },
      [](Workload& w) { w.calls[1].async = false; },
      [](Workload& w) { w.calls[1].payload = kNone; },
      [](Workload& w) { w.calls[5].unit = 1; },
      [](Workload& w) { w.calls[0].allocation = 1; },
      [](Workload& w) { std::swap(w.requests[0], w.requests[1]); },
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    Workload w = recorded;
    changes[i](w);
    EXPECT_NE(workload_hash(w), original) << "change " << i;
  }
  Workload same = recorded;
  same.addresses = Addresses::pinned;
  same.fidelity.clear();
  same.source = "elsewhere.kgw";
  EXPECT_EQ(workload_hash(same), original);
}

TEST(Workload, total_buffer_bytes_adds_up) {
  EXPECT_EQ(total_buffer_bytes(test::sample_workload()), 4096u + 4096 + 40 + (1 << 20));
}

}  // namespace
}  // namespace kgate
