#include "candidate/compile.h"

#include <sys/stat.h>

#include "candidate/compiler_abi.h"
#include "candidate/toolkit.h"
#include "support.h"

#if __has_include("/usr/local/cuda/include/nvJitLink.h")
#include "/usr/local/cuda/include/nvJitLink.h"
#define KGATE_HAVE_NVJITLINK_HEADER 1
#endif

namespace kgate {
namespace {

using test::candidate_of;
using test::fixture;
using test::replaced;
using test::ScopedVariable;

#ifdef KGATE_HAVE_NVJITLINK_HEADER
static_assert(nvjitlink::kInputPtx == NVJITLINK_INPUT_PTX);
static_assert(nvjitlink::kErrorPtxCompile == NVJITLINK_ERROR_PTX_COMPILE);
#endif

std::string small_kernel() { return fixture("blocks.ptx"); }

// A stand-in for ptxas: a shell script. `body` runs for a compilation; --version answers as ptxas does.
class FakePtxas {
 public:
  explicit FakePtxas(const std::string& body)
      : path_(folder_.path() / "ptxas"), variable_("KGATE_PTXAS", (folder_.path() / "ptxas").string()) {
    std::string text = "#!/bin/sh\nif [ \"$1\" = --version ]; then echo 'Cuda compilation tools, release 1.2, V1.2.3'; exit 0; fi\n"
                       "for out; do :; done\n" + body;
    write_file_atomic(path_, text).value_or_throw(Exit::internal);
    ::chmod(path_.c_str(), 0755);
  }

 private:
  TempDir folder_{"kgate-test"};
  std::filesystem::path path_;
  ScopedVariable variable_;
};

TEST(Assemble, a_compiler_that_hangs_times_out_with_its_children) {
  FakePtxas fake("sleep 1000 & sleep 1000\n");
  CompileOptions options;
  options.timeout = std::chrono::milliseconds(300);
  CompileResult result = assemble(small_kernel(), options);
  EXPECT_EQ(result.outcome, CompileOutcome::timed_out);
  EXPECT_EQ(result.first_error, "not finished after 300.00 ms");
  EXPECT_EQ(result.compiler, "ptxas 1.2.3");
}

TEST(Assemble, a_compiler_that_eats_memory_meets_the_limit) {
  FakePtxas fake("exec dd if=/dev/zero of=/dev/null bs=600M count=1\n");
  CompileOptions options;
  options.memory_bytes = uint64_t{200} << 20;
  CompileResult result = assemble(small_kernel(), options);
  EXPECT_EQ(result.outcome, CompileOutcome::rejected);
  EXPECT_NE(result.first_error.find("memory"), std::string::npos) << result.first_error;
  EXPECT_NE(result.first_error.find("200.00 MiB"), std::string::npos) << result.first_error;
}

TEST(Assemble, a_compiler_that_dies_of_a_signal_has_crashed) {
  FakePtxas fake("kill -SEGV $$\n");
  CompileResult result = assemble(small_kernel(), {});
  EXPECT_EQ(result.outcome, CompileOutcome::crashed);
  EXPECT_EQ(result.first_error, "the compiler died of SIGSEGV");
}

TEST(Assemble, garbage_and_silence_are_rejections_with_a_text) {
  {
    FakePtxas fake("printf '\\001\\377garbage\\n'; head -c 3000000 /dev/urandom; exit 9\n");
    CompileResult result = assemble(small_kernel(), {});
    EXPECT_EQ(result.outcome, CompileOutcome::rejected);
    EXPECT_LE(result.log.size(), size_t{1} << 20);
    EXPECT_FALSE(result.first_error.empty());
    EXPECT_EQ(result.first_error.find('\x01'), std::string::npos);
  }
  {
    FakePtxas fake("exit 4\n");
    EXPECT_EQ(assemble(small_kernel(), {}).first_error, "the compiler failed without a message: exit 4");
  }
  {
    FakePtxas fake("exit 0\n");
    CompileResult result = assemble(small_kernel(), {});
    EXPECT_EQ(result.outcome, CompileOutcome::rejected);
    EXPECT_EQ(result.first_error, "the compiler reported success and wrote no output");
  }
}

TEST(Assemble, a_named_compiler_that_is_not_there_is_not_replaced_by_another) {
  ScopedVariable ptxas("KGATE_PTXAS", "/nonexistent/ptxas"), helper("KGATE_COMPILE", "/nonexistent/kgate-compile");
  CompileResult result = assemble(small_kernel(), {});
  EXPECT_EQ(result.outcome, CompileOutcome::no_compiler);
  EXPECT_NE(result.compiler.find("KGATE_PTXAS"), std::string::npos);
  EXPECT_FALSE(result.first_error.empty());
  CompilersFound found = find_compilers();
  EXPECT_TRUE(found.ptxas.empty());
  EXPECT_TRUE(found.nvjitlink.empty());
}

TEST(Assemble, the_architecture_follows_the_options_and_the_target) {
  FakePtxas fake("echo \"$@\"; exit 1\n");
  auto arch = [&](const std::string& target, int arch, bool specific) {
    CompileOptions options;
    options.arch = arch;
    options.arch_specific = specific;
    std::string log = assemble("// .target sm_10\n.version 8.0\n.target " + target + "\n", options).log;
    size_t at = log.find("-arch=");
    return log.substr(at + 6, log.find(' ', at) - at - 6);
  };
  EXPECT_EQ(arch("sm_90a", 0, false), "sm_90a");
  EXPECT_EQ(arch("sm_90a", 90, false), "sm_90a");
  EXPECT_EQ(arch("sm_90a", 100, false), "sm_100");
  EXPECT_EQ(arch("sm_100f, debug", 0, false), "sm_100f");
  EXPECT_EQ(arch("sm_50", 0, false), "sm_75");
  EXPECT_EQ(arch("sm_80", 90, false), "sm_90");
  EXPECT_EQ(arch("sm_90", 90, true), "sm_90a");
  EXPECT_EQ(arch("sm_99999999999", 0, false), "sm_75");
}

class WithPtxas : public testing::Test {
 protected:
  void SetUp() override {
    if (!find_ptxas()) GTEST_SKIP() << "no ptxas here";
  }
};

TEST_F(WithPtxas, ptx_becomes_a_cubin_and_the_command_can_be_repeated) {
  CompileResult result = assemble(small_kernel(), {});
  ASSERT_EQ(result.outcome, CompileOutcome::ok) << result.log;
  EXPECT_EQ(result.first_error, "");
  EXPECT_EQ(result.compiler.substr(0, 6), "ptxas ");
  EXPECT_TRUE(result.command.ends_with("ptxas -v -warn-spills -arch=sm_75 candidate.ptx -o candidate.cubin")) << result.command;
  EXPECT_EQ(candidate_of(result.image).target, "sm_75");
  EXPECT_TRUE(resource_usage(result.log, "exact"));
}

TEST_F(WithPtxas, errors_name_the_line_and_no_temporary_folder) {
  CompileResult result = assemble(replaced(small_kernel(), "cvt.u32.u16", "foo.u32.u16"), {});
  EXPECT_EQ(result.outcome, CompileOutcome::rejected);
  EXPECT_EQ(result.first_error, "line 11: Not a name of any known instruction: 'foo'");
  EXPECT_EQ(result.log.find("/tmp/"), std::string::npos) << result.log;
  EXPECT_TRUE(result.image.empty());
  EXPECT_EQ(assemble("", {}).outcome, CompileOutcome::rejected);
  EXPECT_EQ(assemble(std::string(1000, '\xff'), {}).outcome, CompileOutcome::rejected);
}

TEST_F(WithPtxas, the_input_that_kills_ptxas_13_is_a_crash_or_compiles) {
  CompileResult result = assemble(fixture("implicit_param.ptx"), {});
  if (result.compiler.starts_with("ptxas 13.0"))
    EXPECT_EQ(result.outcome, CompileOutcome::crashed) << result.log;
  else
    EXPECT_NE(result.outcome, CompileOutcome::no_compiler);
}

class WithHelper : public testing::Test {
 protected:
  void SetUp() override {
    if (find_compilers().nvjitlink.empty()) GTEST_SKIP() << "no nvJitLink here";
    options_.assembler = Assembler::nvjitlink;
  }
  CompileOptions options_;
};

TEST_F(WithHelper, nvjitlink_assembles_and_its_log_has_the_resources) {
  CompileResult result = assemble(small_kernel(), options_);
  ASSERT_EQ(result.outcome, CompileOutcome::ok) << result.log << result.first_error;
  EXPECT_EQ(result.compiler.substr(0, 10), "nvJitLink ");
  Candidate candidate = candidate_of(result.image);
  EXPECT_EQ(candidate.target, "sm_75");
  auto usage = resource_usage(result.log, "exact");
  ASSERT_TRUE(usage);
  EXPECT_EQ((*candidate.entry("exact"))->registers, usage->registers);
}

TEST_F(WithHelper, nvjitlink_rejects_and_crashes_like_ptxas) {
  CompileResult bad = assemble(replaced(small_kernel(), "cvt.u32.u16", "foo.u32.u16"), options_);
  EXPECT_EQ(bad.outcome, CompileOutcome::rejected);
  EXPECT_EQ(bad.first_error, "line 11: Not a name of any known instruction: 'foo'");
  options_.arch = 7;
  EXPECT_EQ(assemble(small_kernel(), options_).outcome, CompileOutcome::rejected);
  options_.arch = 0;
  CompileResult crash = assemble(fixture("implicit_param.ptx"), options_);
  if (crash.compiler == "nvJitLink 13.0") {
    EXPECT_EQ(crash.outcome, CompileOutcome::crashed) << crash.log;
  }
}

TEST_F(WithHelper, a_library_that_cannot_be_loaded_is_no_compiler) {
  ScopedVariable library("KGATE_NVJITLINK", "/nonexistent/libnvJitLink.so");
  CompileResult result = assemble(small_kernel(), options_);
  EXPECT_EQ(result.outcome, CompileOutcome::no_compiler);
  EXPECT_NE(result.first_error.find("cannot load"), std::string::npos) << result.first_error;
}

class WithNvrtc : public testing::Test {
 protected:
  void SetUp() override {
    if (find_compilers().nvrtc.empty()) GTEST_SKIP() << "no NVRTC here";
  }
};

TEST_F(WithNvrtc, cuda_becomes_ptx_with_toolkit_headers_and_headers_beside_it) {
  TempDir folder("kgate-test");
  write_file_atomic(folder.path() / "half_scale.h", "#define SCALE 2\n").value_or_throw(Exit::internal);
  CompileOptions options;
  options.arch = 90;
  CompileResult result = compile_cuda(
      "#include <cuda_fp16.h>\n#include \"half_scale.h\"\n"
      "extern \"C\" __global__ void twice(__half* p) { p[threadIdx.x] *= __half(SCALE); }\n",
      (folder.path() / "kernel.cu").string(), options);
  ASSERT_EQ(result.outcome, CompileOutcome::ok) << result.log << result.first_error;
  EXPECT_EQ(result.compiler.substr(0, 6), "NVRTC ");
  Candidate candidate = candidate_of(result.image);
  EXPECT_EQ(candidate.target, "sm_90");
  EXPECT_EQ((*candidate.entry("twice"))->param_bytes, 8u);
}

TEST_F(WithNvrtc, errors_in_cuda_name_the_line) {
  CompileResult result = compile_cuda("extern \"C\" __global__ void k(int* p) {\n  *p = y;\n}\n", "k.cu", {});
  EXPECT_EQ(result.outcome, CompileOutcome::rejected);
  EXPECT_EQ(result.first_error, "line 2: identifier \"y\" is undefined");
  EXPECT_TRUE(result.image.empty());
}

}  // namespace
}  // namespace kgate
