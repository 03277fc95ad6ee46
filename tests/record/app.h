// Runs the application with the recorder inside it, on the virtual GPU.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "records.h"
#include "support/fd.h"

namespace kgate::test {

class RecordApp : public ::testing::Test {
 protected:
  static constexpr int kMissing = 95;  // the driver, or the build, lacks what a mode needs

  RecordApp() {
    std::filesystem::create_directory(folder_.path() / "driver");
    std::filesystem::create_symlink(KGATE_VGPU, folder_.path() / "driver" / "libcuda.so.1");
    std::filesystem::create_directory(recordings());
  }
  std::filesystem::path recordings() const { return folder_.path() / "recordings"; }

  // The exit status; 128 + signal when one ended it. `variables` go to the application, `before` to the shell.
  int run(const std::string& arguments, const std::string& options = {}, const std::string& variables = {},
          const std::string& before = {}) {
    const std::string command = before + " LD_LIBRARY_PATH='" + (folder_.path() / "driver").string() +
                                "' CUDA_INJECTION64_PATH='" KGATE_INJECT "' NVTX_INJECTION64_PATH='" KGATE_INJECT
                                "' KGATE_RECORD_DIR='" +
                                recordings().string() + "' KGATE_RECORD_OPTIONS='" + options + "' " + variables +
                                " exec '" KGATE_SAMPLE "' " + arguments;
    const auto out = folder_.path() / "out", error = folder_.path() / "error";
    const int status =
        std::system(("(" + command + ") >'" + out.string() + "' 2>'" + error.string() + "' </dev/null").c_str());
    out_ = *read_file(out), error_ = *read_file(error);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  // Hexadecimal or decimal numbers that the application printed.
  std::vector<uint64_t> printed() const {
    std::vector<uint64_t> numbers;
    std::istringstream in(out_);
    for (std::string word; in >> word;) numbers.push_back(std::stoull(word, nullptr, 16));
    return numbers;
  }

  std::vector<std::filesystem::path> files(const std::string& extension = ".kgrec") const {
    std::vector<std::filesystem::path> found;
    for (const auto& entry : std::filesystem::directory_iterator(recordings()))
      if (entry.path().extension() == extension) found.push_back(entry.path());
    return found;
  }
  // Of the one process.
  RecordedFile recorded() const {
    const auto all = files();
    EXPECT_EQ(all.size(), 1u);
    if (all.size() != 1) throw std::runtime_error("not one recording: " + error_);
    return RecordedFile(all[0]);
  }
  std::string why() const {
    const auto all = files(".why");
    return all.empty() ? std::string() : *read_file(all[0]);
  }

  TempDir folder_{"record"};
  std::string out_, error_;
};

}  // namespace kgate::test
