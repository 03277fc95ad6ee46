// What a contract may not say, each with the place and the words of the problem.
#include <gtest/gtest.h>

#include "sample.h"

namespace kgate {

namespace {

struct Refusal {
  const char* from;
  const char* to;
  const char* said;
};

void expect_refused(std::initializer_list<Refusal> refusals) {
  for (const Refusal& refusal : refusals)
    EXPECT_EQ(problems(with(refusal.from, refusal.to)), refusal.said) << refusal.to;
}

const char* const kOut = "\"f16[rows, cols]\", role: out";
const char* const kCols = "{name: cols, scalar: i32}";
const char* const kGrid = "[\"rows\", 1, 1]";
const char* const kReference = "{cuda: ../workloads/references/softmax.cu, entry: softmax_ref}";

}  // namespace

TEST(ContractRefuses, keys_that_are_missing_or_unknown) {
  expect_refused({
      {"kgate: 1\n", "kgate: 2\n", "c.yaml:1:8: kgate: version 2 of the format; this kgate reads version 1"},
      {"kgate: 1\n", "", "c.yaml:1:1: the contract has no 'kgate'; add it: the version of the format: 1"},
      {"kernel: softmax_rows\n", "kernl: softmax_rows\n",
       "c.yaml:1:1: the contract has no 'kernel'; add it: the entry to judge\n"
       "c.yaml:2:1: kernl: unknown key in the contract; did you mean 'kernel'?"},
      {"kernel: softmax_rows\n", "kernel: softmax_rows\nkernel: other\n",
       "c.yaml:3:1: kernel: duplicate key; it stands on line 2 already"},
      {"role: in}", "role: in, zzz: 1}",
       "c.yaml:5:55: params[1].zzz: unknown key in the tensor parameter; known: tensor, name, role, strides, init, "
       "range"},
      {"tensor: \"f16[rows, cols]\", role: in", "tenser: \"f16[rows, cols]\", role: in",
       "c.yaml:5:18: params[1].tenser: unknown key; did you mean 'tensor'?"},
      {kCols, "{name: cols}",
       "c.yaml:6:5: params[2]: the tensor parameter lacks the key that says what it is; give one of: tensor, scalar"},
      {"shared: 0", "shraed: 0", "c.yaml:7:52: launch.shraed: unknown key in the launch; did you mean 'shared'?"},
      {"launch: {grid: [\"rows\", 1, 1], block: [128, 1, 1], shared: 0}\n", "",
       "c.yaml:8:3: shapes: the contract has 'shapes' but no 'launch'; give 'params' and 'launch'; without them "
       "numbers are compared on the workload's own launches"},
      {"kernel: softmax_rows", "kernel: soft max",
       "c.yaml:2:9: kernel: \"soft max\" is not the name of a kernel entry"},
  });
}

TEST(ContractRefuses, what_is_no_tensor) {
  expect_refused({
      {kOut, "\"f17[rows, cols]\", role: out",
       "c.yaml:4:26: params[0].tensor: unknown dtype 'f17'; did you mean 'f16'?"},
      {kOut, "\"f16[rows, col]\", role: out",
       "c.yaml:4:37: params[0].tensor: unknown name 'col'; did you mean 'cols'?"},
      {kOut, "\"f16[rows, ]\", role: out", "c.yaml:4:37: params[0].tensor: an empty expression"},
      {kOut, "\"f16[rows, cdiv(cols]\", role: out",
       "c.yaml:4:46: params[0].tensor: 'cdiv' takes two arguments: expected ','"},
      {kOut, "\"f16(rows, cols)\", role: out",
       "c.yaml:4:26: params[0].tensor: \"f16(rows, cols)\" is not a tensor; write dtype[dim, dim], for example "
       "\"f16[rows, cols]\""},
      {kOut, "\"f16[rows, 1-cols]\", role: out",
       "c.yaml:4:37: params[0].tensor: the dimension is -999, below 0, in shape {cols: 1000, rows: 512}"},
      {kOut, "\"f16[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\", role: out",
       "c.yaml:4:26: params[0].tensor: a tensor of more than 16 dimensions"},
      {kOut, "\"f16[rows, cols]\", role: out, strides: [cols]",
       "c.yaml:4:65: params[0].strides: 1 strides for 2 dimensions"},
      {kOut, "\"f16[rows, cols]\", role: out, strides: [ld, 1]",
       "c.yaml:4:66: params[0].strides[0]: unknown name 'ld'; the shapes name: cols, rows"},
      {kOut, "\"f16[rows * 4611686018427387904, cols]\", role: out",
       "c.yaml:4:31: params[0].tensor: the dimension has no value: the result does not fit 64 bits in shape {cols: "
       "1000, rows: 512}"},
      {kOut, "\"f16[2305843009213693952, cols]\", role: out",
       "c.yaml:9:5: shapes[0]: 'out': the tensor has more bytes than 64 bits count in shape {cols: 1000, rows: 512}"},
  });
}

TEST(ContractRefuses, roles_and_what_does_not_go_with_them) {
  expect_refused({
      {"role: out", "role: output",
       "c.yaml:4:51: params[0].role: unknown value 'output'; known: in, out, inout, workspace"},
      {"role: out", "role: in",
       "c.yaml:4:3: params: no parameter is an output: there is nothing to compare; give one role: out or inout"},
      {"name: x,", "name: out,",
       "c.yaml:5:12: params[1].name: a second parameter of this name; the first stands on line 4"},
      {"role: in}", "role: in, init: zeros}", "c.yaml:5:61: params[1].init: init is for role workspace; remove it"},
      {"role: out", "role: out, range: [0, 1]", "c.yaml:4:63: params[0].range: a range is for inputs; this one is out"},
      {"role: in}", "role: in, range: [1, 0]}", "c.yaml:5:62: params[1].range: the low end is above the high end"},
      {"role: in}", "role: in, range: [0, .inf]}",
       "c.yaml:5:66: params[1].range[1]: \".inf\" is not finite; write a finite number"},
      {"role: in}", "role: in, range: [0]}", "c.yaml:5:62: params[1].range: a list of 1 where 2 are needed"},
  });
}

TEST(ContractRefuses, scalars_without_a_value_that_fits) {
  expect_refused({
      {kCols, "{name: depth, scalar: i32}",
       "c.yaml:6:12: params[2].name: unknown name 'depth'; the shapes name: cols, rows"},
      {kCols, "{name: cols, scalar: tf32}", "c.yaml:6:26: params[2].scalar: unknown value 'tf32'; did you mean 'f32'?"},
      {kCols, "{name: cols, scalar: f32}",
       "c.yaml:6:5: params[2]: a floating scalar has no 'value'; add value: NUMBER"},
      {kCols, "{name: cols, scalar: f32, value: .nan}",
       "c.yaml:6:38: params[2].value: \".nan\" is not finite; write a finite number"},
      {kCols, "{name: cols, scalar: f32, value: rows}", "c.yaml:6:38: params[2].value: \"rows\" is not a number"},
      {kCols, "{name: cols, scalar: f16, value: 1e5}", "c.yaml:6:38: params[2].value: 1e5 does not fit f16"},
      {kCols, "{name: cols, scalar: u8}",
       "c.yaml:6:12: params[2].name: the value is 1000, above 255, in shape {cols: 1000, rows: 512}"},
      {kCols, "{name: cols, scalar: i32, value: cols * colz}",
       "c.yaml:6:45: params[2].value: unknown name 'colz'; did you mean 'cols'?"},
      {kCols, "{name: cols, scalar: i32, value: 1.5}", "c.yaml:6:39: params[2].value: unexpected '.'"},
  });
}

TEST(ContractRefuses, launches_that_no_gpu_takes) {
  expect_refused({
      {kGrid, "[\"rows\", 1]", "c.yaml:7:16: launch.grid: a list of 2 where 3 are needed"},
      {kGrid, "[\"rows - 1\", 1, 1]", "c.yaml:7:18: launch.grid[0]: grid.x is 0, below 1, in shape {cols: 1, rows: 1}"},
      {kGrid, "[1, \"rows * 512\", 1]",
       "c.yaml:7:21: launch.grid[1]: grid.y is 262144, above 65535, in shape {cols: 1000, rows: 512}"},
      {kGrid, "[\"cdiv(row, 4)\", 010, yes]",
       "c.yaml:7:23: launch.grid[0]: unknown name 'row'; did you mean 'rows'?\n"
       "c.yaml:7:33: launch.grid[1]: \"010\" starts with 0, which some readers take for octal; write 10\n"
       "c.yaml:7:38: launch.grid[2]: unknown name 'yes'; the shapes name: cols, rows"},
      {kGrid, "[\"1 / (rows - rows)\", 1, 1]",
       "c.yaml:7:18: launch.grid[0]: grid.x has no value: division by zero in shape {cols: 1000, rows: 512}"},
      {"block: [128, 1, 1]", "block: [128, 16, 1]",
       "c.yaml:9:5: shapes[0]: a block of 2048 threads, above 1024, in shape {cols: 1000, rows: 512}"},
      {"shared: 0", "shared: -1",
       "c.yaml:7:60: launch.shared: shared is -1, below 0, in shape {cols: 1000, rows: 512}"},
  });
}

TEST(ContractRefuses, shapes_that_do_not_belong_together) {
  expect_refused({
      {"{rows: 512, cols: 1000}", "{rows: 512, cols: -1}", "c.yaml:9:23: shapes[0].cols: -1 is below 0"},
      {"{rows: 512, cols: 1000}", "{rows: 512}",
       "c.yaml:10:20: shapes[1].cols: the first shape (line 9) has no such name"},
      {"{rows: 512, cols: 1000}", "{rows: 512, cols: 1000, depth: 1}",
       "c.yaml:10:5: shapes[1]: the shape has no 'depth', which the first shape has"},
      {"rows: [1, 7]", "rows: []", "c.yaml:10:12: shapes[1].rows: a list of 0; between 1 and 4096 are allowed"},
      {"{rows: 512, cols: 1000}", "{rows: 512, cols: 1e3}", "c.yaml:9:23: shapes[0].cols: \"1e3\" is not an integer"},
      {"{rows: 512, cols: 1000}", "{rows: 512, cols: 0x10}",
       "c.yaml:9:23: shapes[0].cols: \"0x10\" is not decimal; write the number in decimal"},
      {"{rows: 512, cols: 1000}", "{rows: 512, cols: \"1000\"}",
       "c.yaml:9:23: shapes[0].cols: expected an integer, 0 or more, found text in quotes; remove the quotes"},
      {"{rows: 512, cols: 1000}", "{rows: 512, cols: 1000, a-b: 1}",
       "c.yaml:9:29: shapes[0].a-b: \"a-b\" is not a name (letters, digits and '_')\n"
       "c.yaml:10:5: shapes[1]: the shape has no 'a-b', which the first shape has"},
  });
}

TEST(ContractRefuses, more_shapes_than_can_be_run) {
  std::string values = "1";
  for (int i = 2; i <= 100; ++i) values += ", " + std::to_string(i);
  std::string product = "{rows: [" + values + "], cols: [" + values + "]}";
  EXPECT_EQ(problems(with("{rows: 512, cols: 1000}", product)),
            "c.yaml:9:5: shapes[0]: more than 4096 shapes in all; name fewer values");
}

TEST(ContractRefuses, shapes_outside_the_constraints) {
  expect_refused({
      {"shapes:", "constraints: [\"cols > 5000\"]\nshapes:",
       "c.yaml:10:5: shapes[0]: the shape is outside the constraint \"cols > 5000\"\n"
       "c.yaml:11:5: shapes[1]: every combination is outside the constraints, the first outside \"cols > 5000\""},
      {"shapes:", "constraints: [\"colz > 5000\"]\nshapes:",
       "c.yaml:8:16: constraints[0]: unknown name 'colz'; did you mean 'cols'?"},
      {"shapes:", "constraints: [\"rows / 0 == 1\"]\nshapes:",
       "c.yaml:8:15: constraints[0]: the constraint has no value: division by zero"},
      {"shapes:", "constraints: \"rows > 0\"\nshapes:",
       "c.yaml:8:14: constraints: expected a list; write [item, item] or one '- item' a line"},
  });
}

TEST(ContractRefuses, references_and_baselines_that_say_too_little) {
  expect_refused({
      {"reference: {cuda", "reference: {cudo", "c.yaml:11:13: reference.cudo: unknown key; did you mean 'cuda'?"},
      {"softmax.cu,", "softmax.cc,", "c.yaml:11:19: reference.cuda: a reference is a .cu or .ptx file"},
      {kReference, "{baseline: false}", "c.yaml:11:23: reference.baseline: only true makes sense here; remove the key"},
      {kReference, "{baseline: yes}",
       "c.yaml:11:23: reference.baseline: \"yes\" is not a boolean; write true or false"},
      {kReference, "{cuda: x.cu}", "c.yaml:11:12: reference: the reference has no 'entry'; add it: the kernel in it"},
      {"baseline: ../workloads/kernels/softmax.ptx", "baseline: {path: a.ptx, entri: b}",
       "c.yaml:14:25: baseline.entri: unknown key in the baseline; did you mean 'entry'?"},
      {"baseline: ../workloads/kernels/softmax.ptx", "baseline:", "c.yaml:14:1: baseline: has no value; give a path"},
      {"workload: ../workloads/decode.kgw", "workload: \"\"", "c.yaml:13:11: workload: is empty; give a path"},
  });
}

TEST(ContractRefuses, tolerances_and_limits_without_meaning) {
  expect_refused({
      {"rtol: 2e-3", "rtol: .inf", "c.yaml:12:25: tolerance.f16.rtol: \".inf\" is not finite; write a finite number"},
      {"rtol: 2e-3", "rtol: -1", "c.yaml:12:25: tolerance.f16.rtol: a tolerance is 0 or more"},
      {"f16: {rtol", "f15: {rtol", "c.yaml:12:13: tolerance.f15: unknown key in the tolerance; did you mean 'f16'?"},
      {"{max_regression: 5%}", "{max_regression: 5}",
       "c.yaml:17:37: limits.\"service.p99\".max_regression: \"5\" has no unit; write 5%"},
      {"{max_regression: 5%}", "{max_regression: 0.05}",
       "c.yaml:17:37: limits.\"service.p99\".max_regression: \"0.05\" has no unit; write 0.05%"},
      {"{max_regression: 5%}", "{max_regression: .nan}",
       "c.yaml:17:37: limits.\"service.p99\".max_regression: \".nan\" is not finite; write a finite number"},
      {"{max_regression: 5%}", "{max_regression: 2000%}",
       "c.yaml:17:37: limits.\"service.p99\".max_regression: more than 1000% is no limit"},
      {"{max_regression: 5%}", "{max_regresion: 5%}",
       "c.yaml:17:21: limits.\"service.p99\".max_regresion: unknown key in the limit; did you mean 'max_regression'?"},
      {"{max_regression: 5%}", "{}",
       "c.yaml:17:20: limits.\"service.p99\": the limit says nothing; give max_regression, max_increase, max or "
       "min_improvement"},
      {"{max_regression: 5%}", "5%", "c.yaml:17:20: limits.\"service.p99\": expected a map: the fields of a limit"},
      {"{max_regression: 5%}", "{min_improvement: 0%}",
       "c.yaml:17:38: limits.\"service.p99\".min_improvement: an improvement is above 0% and below 100%"},
      {"service.p99: ", "service.p9: ",
       "c.yaml:17:3: limits.\"service.p9\": unknown key in the list of limits; did you mean 'service.p99'?"},
      {"max_increase: 2us", "max_increase: 2",
       "c.yaml:19:35: limits.sync_stall.max_increase: \"2\" has no unit; write 2ns or 2us or 2ms or 2s"},
      {"{max: 0}", "{max: 64}",
       "c.yaml:20:26: limits.spill_bytes.max: \"64\" has no unit; write 64B or 64KiB or 64MiB or 64GiB"},
      {"{max: 0}", "{max: 1us}",
       "c.yaml:20:26: limits.spill_bytes.max: \"1us\": unknown unit \"us\"; a size ends in B, KiB, MiB, GiB"},
      {"spill_bytes:     {max: 0}", "registers: {max: 64B}",
       "c.yaml:20:20: limits.registers.max: \"64B\" is not an integer"},
  });
}

TEST(ContractRefuses, everything_at_once_in_order_of_the_lines) {
  std::string bad =
      with("max_regression: 5%", "max_regression: 5", with("role: out", "role: ouput", with("kgate: 1", "kgate: one")));
  EXPECT_EQ(problems(bad),
            "c.yaml:1:8: kgate: \"one\" is not an integer\n"
            "c.yaml:4:51: params[0].role: unknown value 'ouput'; did you mean 'out'?\n"
            "c.yaml:17:37: limits.\"service.p99\".max_regression: \"5\" has no unit; write 5%");
}

TEST(ContractRefuses, files_that_are_no_map) {
  EXPECT_EQ(problems("[1, 2]\n"), "c.yaml:1:1: expected a map: the fields of a contract");
  EXPECT_EQ(problems("hello\n"), "c.yaml:1:1: expected a map: the fields of a contract");
  EXPECT_EQ(problems(""), "c.yaml:1:1: the file is empty");
}

TEST(ContractRefuses, files_that_cannot_be_read) {
  try {
    read_contract("/nonexistent/contract.yaml");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::bad_input);
  }
  EXPECT_THROW(read_contract("/proc/self"), Error);
}

TEST(ContractRefuses, a_truncated_file_without_a_crash) {
  for (size_t length = 0; length < kSample.size(); ++length) problems(kSample.substr(0, length));
  for (size_t from = 0; from < kSample.size(); from += 7) problems(kSample.substr(from));
}

TEST(ContractRefuses, damaged_files_without_a_crash) {
  uint64_t state = 88172645463325252ull;
  auto random = [&](uint64_t below) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state % below;
  };
  const std::string marks = "{}[],:-?|>&*!%@`\"'#\\ \n\t~0123456789()x\xff";
  for (int round = 0; round < 3000; ++round) {
    std::string text = kSample;
    for (uint64_t edits = 1 + random(4); edits > 0; --edits) {
      size_t at = random(text.size());
      switch (random(3)) {
        case 0:
          text[at] = marks[random(marks.size())];
          break;
        case 1:
          text.insert(at, 1, marks[random(marks.size())]);
          break;
        default:
          text.erase(at, 1 + random(20));
      }
    }
    problems(text);
  }
}

}  // namespace kgate
