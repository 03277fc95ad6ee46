#include "contract/manifest.h"

#include <gtest/gtest.h>

namespace kgate {

namespace {

const std::string kManifest = R"(kgate_manifest: 1
entries:
  - name: off by one
    candidate: bad/off_by_one.ptx
    contract: ../softmax.yaml
    entry: softmax_rows
    expect:
      virtual: {exit: 6, finding: [out-of-bounds, x]}
      gpu: {skip: the fault is not certain there}
  - name: good
    candidate: good.ptx
    contract: ../softmax.yaml
    expect: {virtual: {exit: 0}}
)";

std::string problems(const std::string& from, const std::string& to) {
  std::string text = kManifest;
  size_t at = text.find(from);
  if (at == std::string::npos) return "the manifest has no " + from;
  try {
    parse_manifest(text.replace(at, from.size(), to), "m.yaml");
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::bad_input);
    return error.failure().what;
  }
}

}  // namespace

TEST(Manifest, is_read_whole) {
  Manifest manifest = parse_manifest(kManifest, "/corpus/m.yaml");
  ASSERT_EQ(manifest.entries.size(), 2u);
  const ManifestEntry& entry = manifest.entries[0];
  EXPECT_EQ(entry.name, "off by one");
  EXPECT_EQ(entry.candidate, "/corpus/bad/off_by_one.ptx");
  EXPECT_EQ(entry.contract, "/softmax.yaml");
  EXPECT_EQ(*entry.entry, "softmax_rows");
  EXPECT_EQ(entry.virtual_device->exit, Exit::broken);
  EXPECT_EQ(entry.virtual_device->findings, (std::vector<std::string>{"out-of-bounds", "x"}));
  EXPECT_EQ(*entry.gpu->skip, "the fault is not certain there");
  EXPECT_EQ(entry.where, "/corpus/m.yaml:3:5");
  EXPECT_EQ(manifest.entries[1].virtual_device->exit, Exit::pass);
  EXPECT_FALSE(manifest.entries[1].gpu);
  EXPECT_FALSE(manifest.entries[1].entry);
}

TEST(Manifest, problems_have_their_place) {
  EXPECT_EQ(problems("kgate_manifest: 1", "kgate_manifest: 3"),
            "m.yaml:1:17: kgate_manifest: version 3 of the format; this kgate reads version 1");
  EXPECT_EQ(problems("exit: 6", "exit: 64"),
            "m.yaml:8:23: entries[0].expect.virtual.exit: 64 is not the exit code of a verdict; the codes are 0, 1, 3, "
            "4, 5, 6 and 65");
  EXPECT_EQ(problems("exit: 6", "exit: 262"),
            "m.yaml:8:23: entries[0].expect.virtual.exit: 262 is not the exit code of a verdict; the codes are 0, 1, "
            "3, 4, 5, 6 and 65");
  EXPECT_EQ(problems("exit: 6", "exit: six"), "m.yaml:8:23: entries[0].expect.virtual.exit: \"six\" is not an integer");
  EXPECT_EQ(
      problems("{skip: the fault is not certain there}", "{skip: true}"),
      "m.yaml:9:19: entries[0].expect.gpu.skip: expected text; true is not text to every YAML reader; write \"true\"");
  EXPECT_EQ(problems("virtual: {exit: 0}", "virtul: {exit: 0}"),
            "m.yaml:13:14: entries[1].expect.virtul: unknown key in the expectation; did you mean 'virtual'?");
  EXPECT_EQ(problems("{virtual: {exit: 0}}", "{}"),
            "m.yaml:13:13: entries[1].expect: expects nothing; give virtual, gpu or both");
  EXPECT_EQ(problems("name: good", "name: off by one"),
            "m.yaml:10:11: entries[1].name: a second entry of this name; the first stands on line 3");
  EXPECT_EQ(problems("    candidate: good.ptx\n", ""),
            "m.yaml:10:5: entries[1]: the manifest entry has no 'candidate'; add it: the kernel's file");
}

TEST(Manifest, truncated_files_do_not_crash) {
  for (size_t length = 0; length < kManifest.size(); ++length) {
    try {
      parse_manifest(kManifest.substr(0, length), "m.yaml");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Exit::bad_input);
    }
  }
}

}  // namespace kgate
