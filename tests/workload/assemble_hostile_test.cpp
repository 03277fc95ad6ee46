// Recordings that were cut off, damaged or forged: an answer each, never a crash.
#include <gtest/gtest.h>

#include <random>

#include "assemble_sample.h"

namespace kgate {
namespace {

using namespace test;

Recorded good() {
  Recorded r;
  r.alloc(kBase, 8192);
  r.graph(0x61, {r.kernel_node(kBase), r.kernel_node(kBase, {0})});
  r.begin();
  r.snapshot(kBase, std::string(8192, 'q'));
  r.launch_add(kBase);
  r.graph_launch(0x61);
  r.range(Kind::range_push, "step");
  auto copy = r.copy(kBase, 0x1234, 32, Side::device, Side::pinned);
  copy.payload = r.blob(std::string(32, 'x'));
  r.add(copy);
  r.sync();
  r.range(Kind::range_pop);
  r.end();
  return r;
}

std::string bad_input(const std::filesystem::path& path) {
  try {
    assemble(path, {});
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::bad_input) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "accepted";
  return {};
}

void expect_bad(Recorded& r, std::string_view text) {
  const std::string what = bad_input(r.write());
  EXPECT_NE(what.find(text), std::string::npos) << what;
}

TEST(AssembleHostile, what_is_no_recording_is_named) {
  Recorded r = good();
  r.magic = 1;
  expect_bad(r, "is not a recording");
  r.magic = kMagic, r.version = 2;
  expect_bad(r, "version 2; this kgate reads version 1");
  std::ofstream(r.path(), std::ios::trunc) << "short";
  EXPECT_NE(bad_input(r.path()).find("too short"), std::string::npos);
  EXPECT_NE(bad_input(r.path().parent_path() / "absent.kgrec").find("cannot open"), std::string::npos);
}

TEST(AssembleHostile, lengths_that_leave_their_record_are_named) {
  {
    Recorded r = good();
    auto launch = r.make<LaunchRecord>(Kind::launch);
    launch.param_bytes = 0xfffffff0;
    r.add(launch);
    expect_bad(r, "a launch's parameters leave its record");
  }
  {
    Recorded r = good();
    auto function = r.make<FunctionRecord>(Kind::function);
    function.param_count = 0x20000001, function.name_length = 0xfffffff8;
    r.add(function);
    expect_bad(r, "a function's parameters or name leave its record");
  }
  {
    Recorded r = good();
    auto note = r.make<NoteRecord>(Kind::note);
    note.length = 9;
    r.add(note, "12345678");
    expect_bad(r, "a note leaves its record");
  }
  {
    Recorded r = good();
    auto range = r.make<RangeRecord>(Kind::range_start);
    range.length = 1;
    r.add(range);
    expect_bad(r, "a range's name leaves its record");
  }
}

TEST(AssembleHostile, records_of_impossible_size_or_kind_are_named) {
  Recorded r = good();
  const size_t at = r.add(r.make<Head>(Kind::context_sync));
  for (const uint32_t bytes : {0u, 8u, 36u, 44u}) {
    std::memcpy(r.bytes().data() + at + offsetof(Head, bytes), &bytes, sizeof bytes);
    expect_bad(r, "which its kind cannot have");
  }
  const uint32_t bytes = sizeof(Head);
  const uint16_t kind = 999;
  std::memcpy(r.bytes().data() + at + offsetof(Head, bytes), &bytes, sizeof bytes);
  std::memcpy(r.bytes().data() + at, &kind, sizeof kind);
  expect_bad(r, "unknown kind 999");
}

TEST(AssembleHostile, graphs_with_loops_or_too_many_nodes_are_named) {
  for (const uint32_t before : {1u, 0u, 0xffffffffu}) {
    Recorded r = good();
    r.graph(0x62, {r.kernel_node(kBase, {before})});
    expect_bad(r, "depends on one that is not before it");
  }
  Recorded r = good();
  auto graph = r.make<GraphRecord>(Kind::graph);
  graph.node_count = 0xffffffff;
  r.add(graph);
  expect_bad(r, "more nodes than its record has room for");
  Recorded edges = good();
  auto one = edges.make<GraphRecord>(Kind::graph);
  one.node_count = 1;
  Node node{};
  node.after_count = 0x80000000;
  edges.add(one, {reinterpret_cast<const char*>(&node), sizeof node});
  expect_bad(edges, "a graph's node leaves its record");
}

TEST(AssembleHostile, addresses_outside_of_any_space_are_named) {
  Recorded r;
  r.alloc(~uint64_t{0} - 100, 4096);
  r.begin();
  r.launch_add(kBase);
  r.end();
  expect_bad(r, "outside of any address space");
}

TEST(AssembleHostile, parameters_shorter_than_the_kernel_takes_are_named) {
  Recorded r;
  r.begin();
  r.launch(0xf1, "1234");
  r.end();
  expect_bad(r, "4 parameter bytes; the kernel takes 12");
}

TEST(AssembleHostile, impossible_launches_are_named) {
  Recorded r;
  r.begin();
  auto launch = r.make<LaunchRecord>(Kind::launch);
  launch.function = 0xf1, launch.param_bytes = 12;
  r.add(launch, std::string(12, '\0'));
  r.end();
  expect_bad(r, "does not make a workload: launches 0: the grid is out of range");
}

TEST(AssembleHostile, a_file_that_was_cut_off_gives_what_is_whole) {
  Recorded r = good();
  const size_t whole = r.bytes().size();
  for (size_t cut = 8; cut < whole; cut += 8) {
    try {
      const Assembled out = assemble(r.write(cut), {});
      EXPECT_FALSE(out.complete);
      EXPECT_FALSE(out.workload.origin.notes.empty());
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Exit::environment) << error.what();  // nothing of the slice is left
    }
  }
  const Assembled out = assemble(r.write(sizeof(SliceRecord)), {});
  EXPECT_EQ(out.workload.calls.size(), 4u);
}

TEST(AssembleHostile, contents_that_were_cut_off_are_said) {
  Recorded r = good();
  const Assembled out = assemble(r.write(0, 1), {});  // the last blob is the host data of the copy
  EXPECT_EQ(out.workload.calls.size(), 4u);
  EXPECT_EQ(out.workload.calls[2].payload, kNone);
  try {
    assemble(r.write(0, 1 << 13), {});
    const Assembled less = assemble(r.path(), {});
    EXPECT_TRUE(std::holds_alternative<ContentZeros>(less.workload.buffers.at(0).content));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::environment) << error.what();
  }
}

TEST(AssembleHostile, random_damage_never_crashes) {
  Recorded r = good();
  const std::string intact = r.bytes();
  std::mt19937 random(7);
  for (int i = 0; i < 1000; ++i) {
    r.bytes() = intact;
    for (int k = 0; k < 1 + i % 4; ++k) r.bytes()[random() % intact.size()] = static_cast<char>(random());
    try {
      assemble(r.write(), {});
    } catch (const Error& error) {
      EXPECT_NE(error.code(), Exit::internal) << error.what();
    }
  }
}

}  // namespace
}  // namespace kgate
