#include "worker/protocol.h"

#include <gtest/gtest.h>

#include <limits>

namespace kgate::worker {
namespace {

using Type = Message::Type;

Message round_trip(const Message& message) {
  std::string line = encode(message);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  line.pop_back();
  auto decoded = decode(line);
  EXPECT_TRUE(decoded) << line;
  return decoded ? *decoded : Message{};
}

TEST(Protocol, hello_survives_the_round_trip) {
  Message m;
  m.type = Type::hello;
  m.hello = {"/lib/libcuda.so.1", 3, "/tmp/plan \"x\"", uint64_t{1} << 40, 77, "/lib/libcupti.so"};
  Message back = round_trip(m);
  EXPECT_EQ(back.type, Type::hello);
  EXPECT_EQ(back.hello.library, m.hello.library);
  EXPECT_EQ(back.hello.ordinal, 3);
  EXPECT_EQ(back.hello.plan, m.hello.plan);
  EXPECT_EQ(back.hello.record_bytes, m.hello.record_bytes);
  EXPECT_EQ(back.hello.readback_bytes, 77u);
  EXPECT_EQ(back.hello.cupti, m.hello.cupti);
}

TEST(Protocol, device_survives_the_round_trip) {
  Message m;
  m.type = Type::device;
  m.device = {gpu::DeviceKind::virtual_gpu,
              1,
              "kgate virtual GPU",
              "00ff",
              9,
              0,
              132,
              13000,
              1ull << 37,
              1ull << 36,
              232448,
              1024,
              "/x.so"};
  auto back = round_trip(m).device;
  EXPECT_EQ(back.kind, gpu::DeviceKind::virtual_gpu);
  EXPECT_EQ(back.name, m.device.name);
  EXPECT_EQ(back.arch(), 90);
  EXPECT_EQ(back.total_memory, m.device.total_memory);
  EXPECT_EQ(back.free_memory, m.device.free_memory);
  EXPECT_EQ(back.max_shared_per_block_optin, 232448);
  EXPECT_EQ(back.library, "/x.so");
}

TEST(Protocol, fault_survives_the_round_trip) {
  Message m;
  m.type = Type::fault;
  m.fault = {"sync",
             1,
             17,
             4,
             700,
             "CUDA_ERROR_ILLEGAL_ADDRESS",
             "store of 4 bytes",
             "out of bounds",
             12,
             "st.global.f32 [%rd1], %f1;"};
  auto back = round_trip(m).fault;
  EXPECT_EQ(back.stage, "sync");
  EXPECT_EQ(back.arm, 1u);
  EXPECT_EQ(back.request, 17u);
  EXPECT_EQ(back.launch, 4u);
  EXPECT_EQ(back.code, 700);
  EXPECT_EQ(back.kind, "out of bounds");
  EXPECT_EQ(back.line, 12u);
  EXPECT_EQ(back.statement, m.fault.statement);
}

TEST(Protocol, done_carries_negative_clock_offsets) {
  Message m;
  m.type = Type::done;
  m.collected = true;
  m.health.library = "libcupti.so.13";
  m.health.dropped = 5;
  m.health.clock_offset_begin = -1785000000123456789;
  m.health.clock_offset_end = std::numeric_limits<int64_t>::min();
  auto back = round_trip(m);
  EXPECT_TRUE(back.collected);
  EXPECT_EQ(back.health.dropped, 5u);
  EXPECT_EQ(back.health.clock_offset_begin, m.health.clock_offset_begin);
  EXPECT_EQ(back.health.clock_offset_end, m.health.clock_offset_end);
}

TEST(Protocol, canary_times_keep_their_nanoseconds) {
  Message m;
  m.type = Type::canary;
  m.numbers = {{"launches", 1}, {"syncs", 1}, {"begin", 8123456789012345.0}, {"end", 8123456789099999.0}};
  EXPECT_EQ(round_trip(m).numbers, m.numbers);
}

TEST(Protocol, a_fault_of_any_length_and_content_fits_a_line) {
  Message m;
  m.type = Type::fault;
  m.fault.detail = std::string(1 << 20, '\xff');
  m.fault.name = std::string(1 << 20, '"');
  m.fault.statement = "a\nb\x1b[31m";
  std::string line = encode(m);
  EXPECT_LT(line.size(), kMaxMessage);
  line.pop_back();
  auto back = decode(line);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->fault.statement, "a b [31m");
}

TEST(Protocol, text_from_the_worker_is_cleaned_of_control_characters) {
  auto back = decode(R"({"type":"fault","stage":"sync","arm":0,"request":0,"launch":0,"code":1,"name":"\u001b[2Jx",)"
                     R"("detail":"a\nb","kind":"","line":0,"statement":""})");
  ASSERT_TRUE(back);
  EXPECT_EQ(back->fault.name, " [2Jx");
  EXPECT_EQ(back->fault.detail, "a b");
}

TEST(Protocol, another_version_is_refused_by_name) {
  auto back = decode(R"({"type":"ready","version":3,"pid":10})");
  ASSERT_FALSE(back);
  EXPECT_NE(back.failure().what.find("protocol version 3"), std::string::npos);
}

class Refused : public testing::TestWithParam<const char*> {};
TEST_P(Refused, is_a_failure) {
  auto decoded = decode(GetParam());
  ASSERT_FALSE(decoded);
  EXPECT_FALSE(decoded.failure().what.empty());
}
INSTANTIATE_TEST_SUITE_P(
    Protocol, Refused,
    testing::Values("", "{", "null", "[]", "7", "\"ready\"", "{}", "Segmentation fault", R"({"type":7})",
                    R"({"type":"reboot"})", R"({"type":"ready"})", R"({"type":"ready","version":1})",
                    R"({"type":"ready","version":1,"pid":0})", R"({"type":"ready","version":1,"pid":-4})",
                    R"({"type":"ready","version":1,"pid":1.5})", R"({"type":"ready","version":1,"pid":99999999999})",
                    R"({"type":"ready","version":1,"pid":"10"})", R"({"type":"ready","version":1,"pid":10,"extra":1})",
                    R"({"type":"go","now":true})", R"({"type":"progress","numbers":{}})",
                    R"({"type":"progress","numbers":{"round":-1}})", R"({"type":"progress","numbers":{"round":1e999}})",
                    R"({"type":"progress","numbers":{"round":"1"}})", R"({"type":"progress","numbers":[1]})",
                    R"({"type":"canary","numbers":{"launches":1,"syncs":1}})",
                    R"({"type":"done","collected":1,"health":{}})", R"({"type":"done","collected":false,"health":{}})",
                    R"({"type":"loaded","numbers":{"a":null}})", "{\"type\":\"go\"} {\"type\":\"go\"}", "\xff\xfe{}"));

TEST(Protocol, deep_nesting_is_refused_without_a_crash) {
  EXPECT_FALSE(decode(std::string(60000, '[')));
  EXPECT_FALSE(decode("{\"type\":\"progress\",\"numbers\":" + std::string(30000, '[') + std::string(30000, ']') + "}"));
}

TEST(Protocol, cut_lines_are_refused_at_every_length) {
  Message m;
  m.type = Type::fault;
  std::string line = encode(m);
  line.pop_back();
  for (size_t n = 0; n < line.size(); ++n) EXPECT_FALSE(decode(line.substr(0, n))) << n;
}

}  // namespace
}  // namespace kgate::worker
