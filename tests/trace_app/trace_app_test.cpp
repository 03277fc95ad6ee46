// kgate trace as a user runs it, on an application whose every call is known. The probes are real where the machine
// allows them; the GPU is the virtual one, whose faults can be planted.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "candidate/candidate.h"
#include "cli/trace_files.h"
#include "support/fd.h"
#include "trace/records.h"
#include "trace/store.h"

namespace kgate {
namespace {

namespace fs = std::filesystem;

struct Ended {
  int code = -1;
  std::string out, error;
};

class TraceApp : public ::testing::Test {
 protected:
  TempDir folder_{"trace-app"};
  const fs::path trace_ = folder_.path() / "trace.db";

  // `prefix`: variables; `options`: of kgate trace.
  Ended trace(const std::string& arguments, const std::string& prefix = {}, const std::string& options = {}) {
    return shell(prefix + " '" KGATE_PROGRAM "' trace --out '" + trace_.string() +
                 "' --cuda-library '" KGATE_VGPU "' " + options + " -- '" KGATE_SAMPLE "' " + arguments);
  }
  Ended shell(const std::string& command) {
    fs::path out = folder_.path() / "out", error = folder_.path() / "error";
    int status =
        std::system(("(" + command + ") >'" + out.string() + "' 2>'" + error.string() + "' </dev/null").c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, *read_file(out), *read_file(error)};
  }
  std::unique_ptr<TraceStore> store() {
    auto opened = TraceStore::open(trace_);
    if (!opened) throw std::runtime_error(opened.failure().what);
    return std::move(*opened);
  }
  std::map<std::string, HealthRow> health() {
    std::map<std::string, HealthRow> rows;
    for (const HealthRow& row : store()->health()) rows[row.name] = row;
    return rows;
  }
  double value(const std::string& name) {
    auto rows = health();
    return rows.contains(name) ? rows[name].value : -1;
  }
  std::map<std::string, size_t> kernels() {
    std::map<std::string, size_t> count;
    for (const KernelRow& row : store()->kernels()) ++count[row.name];
    return count;
  }
};

using Counts = std::map<std::string, size_t>;

TEST_F(TraceApp, every_call_of_every_process_is_counted_once) {
  Ended run = trace("plain");
  ASSERT_EQ(run.code, 0) << run.error;
  auto s = store();
  EXPECT_EQ(kernels(), (Counts{{"add_one", 35}, {"add_two", 20}}));
  Counts calls, host;
  for (const ApiRow& row : s->api_calls())
    if (row.is_launch || row.is_sync) ++calls[row.name];
  EXPECT_EQ(calls, (Counts{{"cuLaunchKernel", 55},
                           {"cuStreamSynchronize", 6},
                           {"cuCtxSynchronize", 1},  // the tracer's own at exit is not the application's
                           {"cuMemcpyHtoD_v2", 1},
                           {"cuMemcpyDtoH_v2", 1}}));
  size_t syncs = 0, copies = 0, sets = 0;
  for (const SyncRow& row : s->syncs())
    syncs += row.type == gpu::CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE;
  for (const CopyRow& row : s->copies()) ++(row.copy_kind == 0xffffffff ? sets : copies);
  EXPECT_EQ(syncs, 6u);
  EXPECT_EQ(copies, 2u);
  EXPECT_EQ(sets, 1u);
  for (const HealthRow& row : s->health()) EXPECT_TRUE(row.ok()) << row.name << " " << row.value << " " << row.note;
  if (s->info().tier != "T0") GTEST_SKIP() << "no probes here: " << s->info().facts["tier_reason"];
  for (const HostCallRow& row : s->host_calls()) ++host[row.name];
  EXPECT_EQ(host["cuLaunchKernel"], 55u);
  EXPECT_EQ(host["cuStreamSynchronize"], 6u);
  EXPECT_EQ(host["cuCtxSynchronize"], 1u);
}

TEST_F(TraceApp, a_child_that_executes_itself_is_a_process_of_its_own) {
  ASSERT_EQ(trace("plain").code, 0);
  auto processes = store()->processes();
  ASSERT_EQ(processes.size(), 2u);
  if (processes[0].begin > processes[1].begin) std::swap(processes[0], processes[1]);
  EXPECT_EQ(processes[1].parent, processes[0].process);
  EXPECT_NE(processes[0].command.find("plain"), std::string::npos) << processes[0].command;
  EXPECT_NE(processes[1].command.find("child"), std::string::npos) << processes[1].command;
  size_t of_the_child = 0;
  for (const KernelRow& row : store()->kernels()) of_the_child += row.process == processes[1].process;
  EXPECT_EQ(of_the_child, 5u);
  for (const ProcessRow& row : processes) {
    EXPECT_TRUE(row.cuda && row.recorded);
    EXPECT_GT(row.end, row.begin);
  }
}

TEST_F(TraceApp, kernels_are_known_by_the_code_that_was_loaded) {
  ASSERT_EQ(trace("child").code, 0);
  for (const KernelRow& row : store()->kernels()) EXPECT_EQ(row.kernel_id.size(), 64u) << row.name;
}

TEST_F(TraceApp, the_summary_names_tier_processes_kernels_and_synchronisations) {
  Ended run = trace("child");
  ASSERT_EQ(run.code, 0) << run.error;
  for (const char* text : {"tier T", "[whole]", "add_one", "100.0 %", "cuStreamSynchronize"})
    EXPECT_NE(run.out.find(text), std::string::npos) << text << " in\n" << run.out;
  EXPECT_EQ(run.error, "");
}

TEST_F(TraceApp, a_process_that_dies_is_unfinished_and_fails_the_step) {
  Ended run = trace("crash");
  EXPECT_EQ(run.code, 5);
  EXPECT_NE(run.error.find("SIGABRT"), std::string::npos) << run.error;
  ASSERT_EQ(store()->processes().size(), 1u);
  EXPECT_EQ(store()->processes()[0].end, 0u);
  run = trace("_exit");
  EXPECT_EQ(run.code, 0);
  EXPECT_EQ(store()->processes()[0].end, 0u);
  EXPECT_NE(run.out.find("its last records are missing"), std::string::npos) << run.out;
}

TEST_F(TraceApp, exit_status_of_the_application_is_told_and_the_trace_is_kept) {
  Ended run = trace("status 3");
  EXPECT_EQ(run.code, 5);
  EXPECT_NE(run.error.find("the application ended with exit 3"), std::string::npos) << run.error;
  EXPECT_EQ(kernels(), (Counts{{"add_one", 5}}));
}

TEST_F(TraceApp, exit_from_a_thread_loses_nothing) {
  ASSERT_EQ(trace("thread").code, 0);
  EXPECT_EQ(kernels(), (Counts{{"add_one", 5}}));
  EXPECT_GT(store()->processes()[0].end, 0u);
}

TEST_F(TraceApp, a_forked_process_that_never_execs_writes_nothing_of_its_parents) {
  Ended run = trace("fork");
  ASSERT_EQ(run.code, 0) << run.error;
  EXPECT_EQ(kernels(), (Counts{{"add_one", 10}}));
  size_t recorded = 0;
  for (const ProcessRow& row : store()->processes()) recorded += row.recorded;
  EXPECT_EQ(recorded, 1u);
  EXPECT_EQ(value("record_stream_bad"), 0);
}

TEST_F(TraceApp, a_process_that_becomes_another_program_counts_twice) {
  ASSERT_EQ(trace("replace").code, 0);
  size_t recorded = 0;
  for (const ProcessRow& row : store()->processes()) recorded += row.recorded;
  EXPECT_EQ(recorded, 2u);
  EXPECT_GE(kernels()["add_one"], 5u);  // the first program's last records went with it
}

TEST_F(TraceApp, an_application_that_closes_all_descriptors_is_traced_all_the_same) {
  ASSERT_EQ(trace("close").code, 0);
  EXPECT_EQ(kernels(), (Counts{{"add_one", 5}}));
}

TEST_F(TraceApp, a_second_driver_lowers_the_tier_and_is_named) {
  fs::path second = folder_.path() / "libcuda.so.99";
  fs::copy_file(KGATE_VGPU, second);
  Ended run = trace("second '" + second.string() + "'");
  ASSERT_EQ(run.code, 0) << run.error;
  EXPECT_EQ(kernels(), (Counts{{"add_one", 5}}));
  auto info = store()->info();
  EXPECT_EQ(info.tier, "T2");
  EXPECT_NE(info.facts["tier_reason"].find("second driver: " + second.string()), std::string::npos)
      << info.facts["tier_reason"];
  EXPECT_EQ(info.facts["driver_library"], fs::canonical(KGATE_VGPU).string());
}

TEST_F(TraceApp, no_cuda_is_told_with_a_hint_and_leaves_no_trace) {
  Ended run = trace("none");
  EXPECT_EQ(run.code, 5);
  EXPECT_NE(run.error.find("no CUDA call was seen"), std::string::npos);
  EXPECT_NE(run.error.find("hint:"), std::string::npos);
  EXPECT_FALSE(fs::exists(trace_));
  EXPECT_NE(trace("none 4").error.find("exit 4"), std::string::npos);
}

TEST_F(TraceApp, another_subscriber_is_named_and_the_application_runs_untraced) {
  Ended run = trace("plain", "KGATE_VGPU_INJECT=other_subscriber");
  EXPECT_EQ(run.code, 5);
  EXPECT_NE(run.error.find("another tool uses CUPTI in this process: CUPTI for injected tool"), std::string::npos)
      << run.error;
  EXPECT_EQ(run.error.find("ended with"), std::string::npos);
}

TEST_F(TraceApp, cupti_that_is_not_there_is_told) {
  // The real driver's road: the virtual GPU is its own CUPTI, and KGATE_CUPTI is what a user sets to choose.
  Ended run = trace("child", "KGATE_CUPTI=/nonexistent/libcupti.so");
  EXPECT_EQ(run.code, 0) << "the virtual GPU needs no other CUPTI: " << run.error;
}

struct Fault {
  const char* planted;
  const char* health;
  double value;
};
class TraceAppFaults : public TraceApp, public ::testing::WithParamInterface<Fault> {};
TEST_P(TraceAppFaults, reaches_the_health_rows) {
  Ended run = trace("child", std::string("KGATE_VGPU_INJECT=") + GetParam().planted);
  ASSERT_EQ(run.code, 0) << run.error;
  EXPECT_EQ(value(GetParam().health), GetParam().value);
  EXPECT_FALSE(health()[GetParam().health].ok());
  EXPECT_NE(run.out.find(GetParam().health), std::string::npos) << run.out;
}
INSTANTIATE_TEST_SUITE_P(, TraceAppFaults,
                         ::testing::Values(Fault{"drop_records=2", "cupti_dropped", 2},
                                           Fault{"lose_records=2", "unmatched_launches", 2},
                                           Fault{"zero_times=1", "invalid_times", 1},
                                           Fault{"end_before_start=1", "invalid_times", 1},
                                           Fault{"kernel_without_launch=1", "unmatched_kernels", 1}),
                         [](const auto& info) {
                           std::string name = info.param.planted;
                           return name.substr(0, name.find('='));
                         });

TEST_F(TraceApp, records_that_do_not_fit_are_counted) {
  Ended run = trace("launches 500", "KGATE_TRACE_BYTES=20000");
  ASSERT_EQ(run.code, 0) << run.error;
  EXPECT_GT(value("lost_records"), 100);
  EXPECT_LT(kernels()["add_one"], 500u);
}

TEST_F(TraceApp, a_required_tier_is_held) {
  Ended run = trace("child", "", "--require-tier T2");
  EXPECT_EQ(run.code, 0) << run.error;
  run = trace("child", "", "--require-tier T0");
  EXPECT_EQ(run.code, probe_support().ok ? 0 : 5) << run.error;
}

// The library alone, as an application meets it.

TEST_F(TraceApp, nothing_that_fails_inside_reaches_the_application) {
  fs::path driver = folder_.path() / "driver";
  fs::create_directory(driver);
  fs::create_symlink(KGATE_VGPU, driver / "libcuda.so.1");
  std::string base = "LD_LIBRARY_PATH='" + driver.string() + "' ", sample = " '" KGATE_SAMPLE "' child";
  std::string inject = "CUDA_INJECTION64_PATH='" KGATE_INJECT "' ";
  EXPECT_EQ(shell(base + sample).code, 0);
  EXPECT_EQ(shell(base + "CUDA_INJECTION64_PATH=/nonexistent.so" + sample).code, 0);
  EXPECT_EQ(shell(base + inject + sample).code, 0);
  EXPECT_EQ(shell(base + inject + "KGATE_TRACE_DIR=/nonexistent" + sample).code, 0);
  EXPECT_EQ(shell(base + inject + "KGATE_TRACE_DIR=/proc" + sample).code, 0);
  fs::path records = folder_.path() / "records";
  fs::create_directory(records);
  Ended run = shell("ulimit -f 1; " + base + inject + "KGATE_TRACE_DIR='" + records.string() + "'" + sample);
  EXPECT_EQ(run.code, 0) << run.error;
  EXPECT_EQ(run.out + run.error, "");
}

TEST_F(TraceApp, without_kgate_a_process_goes_on_and_leaves_its_records) {
  fs::path driver = folder_.path() / "driver", records = folder_.path() / "records";
  fs::create_directory(driver);
  fs::create_directory(records);
  fs::create_symlink(KGATE_VGPU, driver / "libcuda.so.1");
  ASSERT_EQ(
      shell("LD_LIBRARY_PATH='" + driver.string() + "' CUDA_INJECTION64_PATH='" KGATE_INJECT "' KGATE_TRACE_DIR='" +
            records.string() + "' '" KGATE_SAMPLE "' child")
          .code,
      0);
  auto files = cli::find_process_files(records);
  ASSERT_EQ(files.size(), 1u);
  std::string bytes = *read_file(files.begin()->second.records);
  trace::Records r = trace::read_records(std::as_bytes(std::span(bytes)));
  EXPECT_EQ(r.bad, 0u) << r.first_bad;
  EXPECT_EQ(r.kernels.size(), 5u);
  ASSERT_EQ(r.processes.size(), 1u);
  EXPECT_GT(r.processes[0].end, r.processes[0].begin);
  ASSERT_EQ(r.collectors.size(), 1u);
  EXPECT_EQ(r.collectors[0].cupti_version, gpu::kCuptiVersion);
  ASSERT_EQ(r.modules.size(), 1u);
  EXPECT_EQ(r.modules[0].image, 0u);
  EXPECT_EQ(files.begin()->second.images.size(), 1u);
}

TEST(KernelIds, a_name_with_two_meanings_has_none) {
  TempDir folder;
  auto image = [&](const char* name, const std::string& entries) {
    fs::path path = folder.path() / name;
    EXPECT_TRUE(write_file_atomic(path, ".version 7.0\n.target sm_70\n.address_size 64\n" + entries));
    return path;
  };
  auto first = image("1-0.cubin", ".visible .entry same() { ret; }\n.visible .entry differs() { ret; }\n");
  auto second = image("1-1.cubin", ".visible .entry same() { ret; }\n.visible .entry differs() { bar.sync 0; ret; }\n");
  auto noise = image("1-2.cubin",
                     "\x7f"
                     "ELF and then nothing");
  auto ids = cli::kernel_ids({first, second, noise, folder.path() / "absent"});
  EXPECT_EQ(ids.size(), 1u);
  EXPECT_TRUE(ids.contains("same"));
}

TEST(ProcessFiles, other_files_in_the_folder_are_nobodys) {
  TempDir folder;
  for (const char* name : {"12.kgr", "12-0.cubin", "12-1.cubin", "12.2.kgr", "12.2-0.cubin", "13.why", "socket",
                           "x.kgr", "0.kgr", "14.txt"})
    ASSERT_TRUE(write_file_atomic(folder.path() / name, "what\nwhere\x1b[31m\n"));
  auto files = cli::find_process_files(folder.path());
  ASSERT_EQ(files.size(), 3u);
  EXPECT_EQ(files["12"].images.size(), 2u);
  EXPECT_EQ(files["12.2"].process, 12u);
  EXPECT_EQ(files["12.2"].images.size(), 1u);
  ASSERT_TRUE(files["13"].why);
  EXPECT_EQ(files["13"].why->what, "what");
  EXPECT_EQ(files["13"].why->where.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace kgate
