// `replace:` as it is read, and bound to recorded launches.
#include <gtest/gtest.h>

#include <cstring>

#include "contract/bind.h"
#include "sample.h"

namespace kgate {

namespace {

const std::string kReplace = R"yaml(replace:
  - launches: {kernel: "softmax_rows*"}
    let: {out: ptr@0, x: ptr@8, cols: i32@16, eps: f32@20, rows: grid.x, threads: block.y, smem: shared}
    with:
      - {workspace: scratch, bytes: "rows * 4", init: zeros}
      - {memset: scratch, bytes: "rows * 4"}
      - {entry: softmax_v2, grid: ["cdiv(rows, 4)", 1, 1], block: [128, 1, 1], shared: "smem + 16",
         args: [x, out, cols, null, "rows * 2", scratch, eps, -1]}
      - {sync: true}
)yaml";

std::string with_replace(const std::string& from = "", const std::string& to = "") {
  return with("replace: []\n", from.empty() ? kReplace : with(from, to, kReplace));
}

Replacement replacement() { return parse_contract(with_replace(), "c.yaml").binding.replacements.at(0); }

std::vector<RecordedLaunch> one(RecordedLaunch launch) { return {std::move(launch)}; }

RecordedLaunch recorded() {
  RecordedLaunch launch{"softmax_rows_f16", {10, 1, 1}, {32, 4, 1}, 64, std::vector<std::byte>(24)};
  const uint64_t out = 0x7f0000001000, x = 0x7f0000002000;
  const int32_t cols = -3;
  const float eps = 0.5f;
  std::memcpy(launch.params.data(), &out, 8);
  std::memcpy(launch.params.data() + 8, &x, 8);
  std::memcpy(launch.params.data() + 16, &cols, 4);
  std::memcpy(launch.params.data() + 20, &eps, 4);
  return launch;
}

const EntryAbi kEntry{"softmax_v2", {{0, 8}, {8, 8}, {16, 4}, {24, 8}, {32, 4}, {40, 8}, {48, 4}, {52, 2}}};
const std::vector<std::vector<ParamSlot>> kRecordedSlots{{{0, 8}, {8, 8}, {16, 4}, {20, 4}}};

const ReplacementLaunch& launch_of(const Replacement& from) { return std::get<ReplacementLaunch>(from.with->at(2)); }

std::string said(const Result<std::monostate>& result) { return result ? "fits" : result.failure().what; }

}  // namespace

TEST(Binding, every_kind_of_item_is_read) {
  Replacement read = replacement();
  EXPECT_EQ(read.kernel_glob, "softmax_rows*");
  EXPECT_EQ(read.let.at("cols").kind, RecordedValue::Kind::scalar);
  EXPECT_EQ(read.let.at("cols").offset, 16u);
  EXPECT_EQ(read.let.at("threads").kind, RecordedValue::Kind::block);
  EXPECT_EQ(read.let.at("threads").axis, 1);
  ASSERT_EQ(read.with->size(), 4u);
  EXPECT_TRUE(std::get<ReplacementWorkspace>(read.with->at(0)).zeroed);
  EXPECT_EQ(std::get<ReplacementMemset>(read.with->at(1)).target, "scratch");
  const ReplacementLaunch& launch = launch_of(read);
  EXPECT_EQ(launch.entry, "softmax_v2");
  std::vector<BindingArg::Kind> kinds;
  for (const BindingArg& arg : launch.args) kinds.push_back(arg.kind);
  using Kind = BindingArg::Kind;
  EXPECT_EQ(kinds, (std::vector<Kind>{Kind::let, Kind::let, Kind::let, Kind::null, Kind::expression, Kind::let,
                                      Kind::let, Kind::expression}));
  EXPECT_TRUE(std::holds_alternative<ReplacementSync>(read.with->at(3)));
}

TEST(Binding, absent_and_empty_with_differ) {
  const std::string plain = "replace:\n  - launches: {kernel: k}\n";
  EXPECT_FALSE(parse_contract(with("replace: []\n", plain), "c.yaml").binding.replacements[0].with);
  EXPECT_TRUE(
      parse_contract(with("replace: []\n", plain + "    with: []\n"), "c.yaml").binding.replacements[0].with->empty());
}

TEST(Binding, what_makes_no_sense_is_refused_at_its_place) {
  const struct {
    const char* from;
    const char* to;
    const char* said;
  } refusals[] = {
      {"args: [x,", "args: [y,", "c.yaml:22:17: replace[0].with[2].args[0]: unknown name 'y'; did you mean 'x'?"},
      {"cdiv(rows, 4)", "cdiv(rowz, 4)",
       "c.yaml:21:42: replace[0].with[2].grid[0]: unknown name 'rowz'; did you mean 'rows'?"},
      {"rows * 2", "x + 8",
       "c.yaml:22:38: replace[0].with[2].args[4]: 'x' is an address; an argument that is an address is its name alone"},
      {"rows * 2", "1 + scratch",
       "c.yaml:22:42: replace[0].with[2].args[4]: 'scratch' is an address; an argument that is an address is its name "
       "alone"},
      {"rows * 2", "eps * 2", "c.yaml:22:38: replace[0].with[2].args[4]: 'eps' is f32; expressions are integer"},
      {"null", "~", "c.yaml:22:31: replace[0].with[2].args[3]: expected an integer or an expression, found null"},
      {"{sync: true}", "{stream: legacy}",
       "c.yaml:23:9: replace[0].with[3]: the replacement launch lacks the key that says what it is; give one of: "
       "entry, memset, workspace, sync"},
      {"entry: softmax_v2,", "entry: softmax_v2, stream: own,",
       "c.yaml:21:37: replace[0].with[2].stream: unknown value 'own'; known: legacy"},
      {"{sync: true}", "{sync: true, stream: 7}",
       "c.yaml:23:30: replace[0].with[3].stream: expected one of the known names; 7 is not text to "
       "every YAML reader; write \"7\""},
      {"init: zeros", "init: any, allocate: always",
       "c.yaml:19:70: replace[0].with[0].allocate: unknown value 'always'; known: once, each_launch"},
      {"init: zeros", "init: zeros, allocate: each_launch",
       "c.yaml:19:21: replace[0].with[0].workspace: 'scratch' is zeroed once, and allocated anew at each launch; zero "
       "it at each launch with a memset item"},
      {"shared: \"smem + 16\"", "cluster: [2, 1]",
       "c.yaml:21:89: replace[0].with[2].cluster: a list of 2 where 3 are needed"},
      {"shared: \"smem + 16\"", "cooperative: false",
       "c.yaml:21:93: replace[0].with[2].cooperative: only true makes sense here; remove the key"},
      {"ptr@0", "next.ptr@0",
       "c.yaml:17:16: replace[0].let.out: `then` names 0 launches, and this is of number 1; name the kernel that "
       "follows in `launches: {kernel: ..., then: ...}`"},
      {"ptr@0", "next1.ptr@0",
       "c.yaml:17:16: replace[0].let.out: unknown dtype 'next1.ptr'; known: f64 f32 tf32 f16 bf16 e4m3 e5m2 i8 i16 i32 "
       "i64 u8 u16 u32 u64 bool"},
      {"{sync: true}", "{sinc: true}", "c.yaml:23:10: replace[0].with[3].sinc: unknown key; did you mean 'sync'?"},
      {"{sync: true}", "{wait: true}",
       "c.yaml:23:9: replace[0].with[3]: the replacement launch lacks the key that says what it is; give one of: "
       "entry, memset, workspace, sync"},
      {"ptr@0", "ptr@",
       "c.yaml:17:20: replace[0].let.out: the offset of \"ptr@\" is not within a parameter block; offsets are bytes, "
       "at most 32764"},
      {"ptr@0", "ptr@32760",
       "c.yaml:17:20: replace[0].let.out: the offset of \"ptr@32760\" is not within a parameter block; offsets are "
       "bytes, at most 32764"},
      {"i32@16", "int@16", "c.yaml:17:39: replace[0].let.cols: unknown dtype 'int'; did you mean 'i8'?"},
      {"grid.x", "grid.w",
       "c.yaml:17:66: replace[0].let.rows: \"grid.w\" is not a recorded value; write ptr@OFFSET, DTYPE@OFFSET, grid.x, "
       "block.x or shared; next. before it for the launch after"},
      {"memset: scratch", "memset: cols", "c.yaml:20:18: replace[0].with[1].memset: 'cols' is no pointer"},
      {"memset: scratch", "memset: scrach",
       "c.yaml:20:18: replace[0].with[1].memset: unknown name 'scrach'; did you mean 'scratch'?"},
      {"workspace: scratch", "workspace: out", ""},
      {"launches: {kernel: \"softmax_rows*\"}", "launches: {}",
       "c.yaml:16:15: replace[0].launches: the choice of launches has no 'kernel'; add it: a name or a pattern with * "
       "and ?"},
  };
  for (const auto& refusal : refusals) {
    std::string found = problems(with_replace(refusal.from, refusal.to));
    if (*refusal.said)
      EXPECT_EQ(found, refusal.said) << refusal.to;
    else
      EXPECT_NE(found.find("the name 'out' is taken"), std::string::npos) << found;
  }
}

TEST(Binding, streams_clusters_and_allocations_are_read) {
  std::string text = with_replace("init: zeros", "allocate: each_launch");
  text = with("{sync: true}", "{sync: true, stream: legacy}", text);
  text = with("shared: \"smem + 16\",",
              "cluster: [\"rows / 5\", 1, 1], cooperative: true, programmatic: true, stream: legacy,", text);
  Replacement read = parse_contract(text, "c.yaml").binding.replacements.at(0);
  EXPECT_TRUE(std::get<ReplacementWorkspace>(read.with->at(0)).each_launch);
  EXPECT_FALSE(std::get<ReplacementMemset>(read.with->at(1)).legacy);
  EXPECT_TRUE(std::get<ReplacementSync>(read.with->at(3)).legacy);
  const ReplacementLaunch& launch = launch_of(read);
  EXPECT_TRUE(launch.legacy && launch.cooperative && launch.programmatic);
  ASSERT_TRUE(launch.cluster);
  EXPECT_EQ(launch.cluster->at(0).text(), "rows / 5");
}

TEST(Binding, a_fusion_names_what_follows_and_reads_its_values) {
  std::string text = with("{kernel: \"softmax_rows*\"}", "{kernel: \"softmax_rows*\", then: [\"scale*\", bias]}",
                          with_replace("ptr@0", "next.ptr@0"));
  Replacement read = parse_contract(with("eps: f32@20", "eps: next2.f32@20", text), "c.yaml").binding.replacements[0];
  EXPECT_EQ(read.then, (std::vector<std::string>{"scale*", "bias"}));
  EXPECT_EQ(read.let.at("out").launch, 1u);
  EXPECT_EQ(read.let.at("eps").launch, 2u);
  EXPECT_EQ(read.let.at("eps").offset, 20u);
  EXPECT_EQ(read.let.at("x").launch, 0u);
  const std::string one = "replace:\n  - launches: {kernel: a, then: b}\n    with: []\n";
  EXPECT_EQ(parse_contract(with("replace: []\n", one), "c.yaml").binding.replacements[0].then,
            std::vector<std::string>{"b"});
}

TEST(Binding, a_fusion_says_what_runs_instead) {
  EXPECT_EQ(problems(with("replace: []\n", "replace:\n  - launches: {kernel: a, then: b}\n")),
            "c.yaml:16:5: replace[0]: several launches become one, and nothing says which; add `with:`");
  EXPECT_EQ(problems(with("replace: []\n", "replace:\n  - launches: {kernel: a, then: []}\n    with: []\n")),
            "c.yaml:16:33: replace[0].launches.then: a list of 0; between 1 and 15 are allowed");
}

TEST(Binding, two_replacements_of_one_pattern_are_refused) {
  EXPECT_EQ(problems(with("replace: []\n", "replace:\n  - launches: {kernel: k}\n  - launches: {kernel: k}\n")),
            "c.yaml:17:5: replace[1]: a second replacement of \"k\"; the first stands on line 16");
}

TEST(Bind, names_take_their_recorded_values) {
  Result<Environment> values = let_values(replacement(), one(recorded()));
  ASSERT_TRUE(values);
  EXPECT_EQ(*values, (Environment{{"cols", -3}, {"rows", 10}, {"threads", 4}, {"smem", 64}}));
}

TEST(Bind, a_launch_is_evaluated_and_its_arguments_resolved) {
  Replacement from = replacement();
  Result<BoundLaunch> bound = bind_launch(launch_of(from), from, one(recorded()));
  ASSERT_TRUE(bound) << bound.failure().what;
  EXPECT_EQ(bound->entry, "softmax_v2");
  EXPECT_EQ(bound->grid, (Dim3{3, 1, 1}));
  EXPECT_EQ(bound->block, (Dim3{128, 1, 1}));
  EXPECT_EQ(bound->shared, 80u);
  ASSERT_EQ(bound->args.size(), 8u);
  EXPECT_EQ(bound->args[0].kind, BoundArg::Kind::pointer_from_offset);
  EXPECT_EQ(bound->args[0].source_offset, 8u);
  EXPECT_EQ(bound->args[2].kind, BoundArg::Kind::scalar_bytes);
  EXPECT_EQ(bound->args[2].size, 4u);
  EXPECT_EQ(bound->args[3].kind, BoundArg::Kind::null);
  EXPECT_EQ(bound->args[4].value, 20);
  EXPECT_EQ(bound->args[5].kind, BoundArg::Kind::workspace);
  EXPECT_EQ(bound->args[5].workspace, "scratch");
  EXPECT_EQ(bound->args[7].value, -1);
}

TEST(Bind, all_items_come_in_order) {
  Result<std::vector<BoundItem>> items = bind_items(replacement(), one(recorded()));
  ASSERT_TRUE(items);
  ASSERT_EQ(items->size(), 4u);
  EXPECT_EQ(std::get<BoundWorkspace>(items->at(0)).bytes, 40u);
  EXPECT_EQ(std::get<BoundMemset>(items->at(1)).target.kind, BoundArg::Kind::workspace);
  EXPECT_EQ(std::get<BoundMemset>(items->at(1)).bytes, 40u);
  EXPECT_EQ(std::get<BoundLaunch>(items->at(2)).grid.x, 3u);
  EXPECT_TRUE(std::holds_alternative<BoundSync>(items->at(3)));
}

TEST(Bind, launches_that_cannot_be_bound_say_where_they_were_written) {
  Replacement from = replacement();
  RecordedLaunch launch = recorded();
  launch.params.resize(18);
  Result<BoundLaunch> bound = bind_launch(launch_of(from), from, one(launch));
  ASSERT_FALSE(bound);
  EXPECT_EQ(bound.failure().what,
            "'cols' is 4 bytes at offset 16; the recorded parameters of 'softmax_rows_f16' are 18 bytes");
  EXPECT_EQ(bound.failure().where, "c.yaml:16:5");

  Replacement zero = parse_contract(with_replace("cdiv(rows, 4)", "cols + 3"), "c.yaml").binding.replacements[0];
  EXPECT_EQ(bind_launch(launch_of(zero), zero, one(recorded())).failure().what,
            "grid.x \"cols + 3\" is 0, not within 1 to 2147483647");
  Replacement division = parse_contract(with_replace("rows * 2", "1 / (cols + 3)"), "c.yaml").binding.replacements[0];
  EXPECT_EQ(bind_launch(launch_of(division), division, one(recorded())).failure().what,
            "argument 5 \"1 / (cols + 3)\": division by zero");
  Replacement block =
      parse_contract(with_replace("block: [128, 1, 1]", "block: [128, 128, 1]"), "c.yaml").binding.replacements[0];
  EXPECT_EQ(bind_launch(launch_of(block), block, one(recorded())).failure().what,
            "a block of 16384 threads; at most 1024");
}

TEST(Bind, integers_past_int64_are_a_failure) {
  Replacement from = parse_contract(with_replace("cols: i32@16", "cols: u64@16"), "c.yaml").binding.replacements[0];
  RecordedLaunch launch = recorded();
  std::memset(launch.params.data() + 16, 0xff, 8);
  EXPECT_EQ(let_values(from, one(launch)).failure().what,
            "'cols': the recorded value 18446744073709551615 is past int64");
}

TEST(CheckAbi, arguments_that_fit_pass) {
  Replacement from = replacement();
  EXPECT_EQ(said(check_abi(from, launch_of(from), kEntry, kRecordedSlots)), "fits");
}

TEST(CheckAbi, mismatches_are_named) {
  Replacement from = replacement();
  EntryAbi wide = kEntry;
  wide.params[2] = {16, 8};
  EXPECT_EQ(said(check_abi(from, launch_of(from), wide, kRecordedSlots)),
            "argument 3 'cols' is 4 bytes, parameter 3 of 'softmax_v2' at offset 16 has 8");
  EntryAbi narrow = kEntry;
  narrow.params[5].size = 4;
  EXPECT_EQ(said(check_abi(from, launch_of(from), narrow, kRecordedSlots)),
            "argument 6 'scratch' is 8 bytes, parameter 6 of 'softmax_v2' at offset 40 has 4");
  EntryAbi structure = kEntry;
  structure.params[4].size = 12;
  EXPECT_EQ(
      said(check_abi(from, launch_of(from), structure, kRecordedSlots)),
      "argument 5 'rows * 2' is an integer of 1, 2, 4 or 8 bytes, parameter 5 of 'softmax_v2' at offset 32 has 12");
  EntryAbi few = kEntry;
  few.params.pop_back();
  EXPECT_EQ(said(check_abi(from, launch_of(from), few, kRecordedSlots)),
            "8 arguments for 'softmax_v2', which has 7 parameters");
  const std::vector<std::vector<ParamSlot>> shifted{{{0, 8}, {8, 8}, {16, 2}, {20, 4}}};
  EXPECT_EQ(said(check_abi(from, launch_of(from), kEntry, shifted)),
            "'cols' is 4 bytes at offset 16, which no parameter of the recorded kernel holds");
}

TEST(CheckAbi, values_may_lie_inside_a_recorded_struct) {
  Replacement from = replacement();
  const std::vector<std::vector<ParamSlot>> one_struct{{{0, 24}}};
  EXPECT_EQ(said(check_abi(from, launch_of(from), kEntry, one_struct)), "fits");
}

TEST(CheckAbi, without_a_binding_the_candidate_has_the_baselines_parameters) {
  const EntryAbi same{"k", {{0, 8}, {8, 8}, {16, 4}, {20, 4}}};
  EXPECT_EQ(said(check_same_abi(same, kRecordedSlots[0])), "fits");
  EXPECT_EQ(said(check_same_abi(kEntry, kRecordedSlots[0])),
            "'softmax_v2' has 8 parameters, the recorded kernel has 4");
  const EntryAbi other{"k", {{0, 8}, {8, 8}, {16, 8}, {24, 4}}};
  EXPECT_EQ(said(check_same_abi(other, kRecordedSlots[0])),
            "parameter 3 of 'k' has 8 bytes at offset 16, the recorded kernel's has 4 at offset 16");
}

TEST(PackParams, bytes_land_where_the_entry_has_its_parameters) {
  Replacement from = replacement();
  RecordedLaunch launch = recorded();
  BoundLaunch bound = *bind_launch(launch_of(from), from, one(launch));
  Result<std::vector<std::byte>> packed = pack_params(bound, kEntry, one(launch));
  ASSERT_TRUE(packed) << packed.failure().what;
  ASSERT_EQ(packed->size(), 54u);
  EXPECT_EQ(std::memcmp(packed->data(), launch.params.data() + 8, 8), 0);
  EXPECT_EQ(std::memcmp(packed->data() + 8, launch.params.data(), 8), 0);
  EXPECT_EQ(std::memcmp(packed->data() + 16, launch.params.data() + 16, 4), 0);
  uint64_t null = 1;
  std::memcpy(&null, packed->data() + 24, 8);
  EXPECT_EQ(null, 0u);
  int32_t rows = 0;
  std::memcpy(&rows, packed->data() + 32, 4);
  EXPECT_EQ(rows, 20);
  int16_t last = 0;
  std::memcpy(&last, packed->data() + 52, 2);
  EXPECT_EQ(last, -1);
}

TEST(PackParams, a_literal_that_does_not_fit_is_a_failure) {
  Replacement from = replacement();
  BoundLaunch bound = *bind_launch(launch_of(from), from, one(recorded()));
  bound.args[7].value = 65535;  // as an unsigned half word
  EXPECT_TRUE(pack_params(bound, kEntry, one(recorded())));
  bound.args[7].value = 65536;
  EXPECT_EQ(pack_params(bound, kEntry, one(recorded())).failure().what,
            "argument 8 is 65536, which does not fit the 2 bytes of parameter 8 of 'softmax_v2'");
  bound.args[7].value = -32769;
  EXPECT_FALSE(pack_params(bound, kEntry, one(recorded())));
  bound.args.pop_back();
  EXPECT_FALSE(pack_params(bound, kEntry, one(recorded())));
}

}  // namespace kgate
