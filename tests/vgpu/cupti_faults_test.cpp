// What can go wrong with a record stream: lost buffers, planted faults, other tools, damaged buffers.
#include "collector.h"

namespace kgate {
namespace {

using C = Collector;

class CuptiFaults : public CuptiTest {
 protected:
  // Four launches under KGATE_VGPU_INJECT.
  void run_with(const char* inject) {
    ScopedEnv env("KGATE_VGPU_INJECT", inject);
    VectorAdd add(*driver, 32);
    enable();
    for (int i = 0; i < 4; ++i) add.run();
    flush();
  }
  size_t launches() const {
    size_t n = 0;
    for (const auto& call : C::calls) n += call.cbid == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel;
    return n;
  }
};

TEST_F(CuptiFaults, records_without_a_buffer_are_counted_as_dropped) {
  VectorAdd add(*driver, 32);
  C::decline = true;
  ASSERT_EQ(cupti.cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), CUPTI_SUCCESS);
  for (int i = 0; i < 3; ++i) add.run();
  flush();
  EXPECT_EQ(C::dropped, 3u);
  C::decline = false;
  add.run();
  flush();
  EXPECT_EQ(C::kernels.size(), 1u);  // and recording goes on
  EXPECT_EQ(C::dropped, 3u);         // reading reset the count
}

TEST_F(CuptiFaults, a_buffer_smaller_than_a_record_comes_back_empty) {
  VectorAdd add(*driver, 32);
  C::buffer_bytes = 64;
  ASSERT_EQ(cupti.cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), CUPTI_SUCCESS);
  add.run();
  flush();
  EXPECT_EQ(C::dropped, 1u);
  EXPECT_EQ(C::requested, C::completed);
}

TEST_F(CuptiFaults, dropped_records_are_missing_and_counted) {
  run_with("drop_records=2");
  EXPECT_EQ(C::kernels.size(), 2u);
  EXPECT_EQ(launches(), 4u);
  EXPECT_EQ(C::dropped, 2u);
}

TEST_F(CuptiFaults, lost_records_show_only_in_the_counts) {
  run_with("lose_records=1");
  EXPECT_EQ(C::kernels.size(), 3u);
  EXPECT_EQ(launches(), 4u);
  EXPECT_EQ(C::dropped, 0u);
}

TEST_F(CuptiFaults, times_can_be_absent_or_turned_round) {
  run_with("zero_times=1,end_before_start=2");
  ASSERT_EQ(C::kernels.size(), 4u);
  EXPECT_EQ(C::kernels[0].start, 0u);
  EXPECT_LT(C::kernels[1].end, C::kernels[1].start);
  EXPECT_LT(C::kernels[2].start, C::kernels[2].end);
}

TEST_F(CuptiFaults, a_kernel_can_come_from_nowhere) {
  run_with("kernel_without_launch");
  EXPECT_EQ(C::kernels.size(), 5u);
  size_t orphans = 0;
  for (const auto& kernel : C::kernels) {
    bool found = false;
    for (const auto& call : C::calls) found = found || call.correlationId == kernel.correlationId;
    orphans += !found;
  }
  EXPECT_EQ(orphans, 1u);
}

TEST_F(CuptiFaults, a_misspelt_injection_fails_the_session) {
  ScopedEnv env("KGATE_VGPU_INJECT", "drop_record=2");
  EXPECT_EQ(cupti.cuptiActivityEnable(CUPTI_ACTIVITY_KIND_DRIVER), CUPTI_ERROR_INVALID_PARAMETER);
}

TEST_F(CuptiFaults, unknown_kinds_are_refused) {
  for (int kind : {0, -1, 63, 64, 1000}) {
    EXPECT_EQ(cupti.cuptiActivityEnable(static_cast<CUpti_ActivityKind>(kind)), CUPTI_ERROR_INVALID_KIND) << kind;
  }
}

TEST_F(CuptiFaults, a_second_subscriber_learns_who_was_first) {
  auto nothing = [](void*, int, uint32_t, const void*) {};
  CUpti_SubscriberHandle first = nullptr, second = nullptr;
  CUpti_SubscriberParams params{sizeof params, "kgate", nullptr, 0};
  ASSERT_EQ(cupti.cuptiSubscribe_v2(&first, nothing, nullptr, &params), CUPTI_SUCCESS);
  char name[kCuptiOldSubscriberNameMin] = {};
  CUpti_SubscriberParams other{sizeof other, "other", name, sizeof name};
  EXPECT_EQ(cupti.cuptiSubscribe_v2(&second, nothing, nullptr, &other),
            CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
  EXPECT_NE(std::string(name).find("kgate"), std::string::npos) << name;
  EXPECT_EQ(cupti.cuptiUnsubscribe(nullptr), CUPTI_ERROR_INVALID_PARAMETER);
  EXPECT_EQ(cupti.cuptiUnsubscribe(first), CUPTI_SUCCESS);

  ScopedEnv env("KGATE_VGPU_INJECT", "other_subscriber");
  EXPECT_EQ(cupti.cuptiSubscribe_v2(&first, nothing, nullptr, &other), CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
}

TEST_F(CuptiFaults, damaged_buffers_end_the_walk) {
  alignas(8) uint8_t bytes[256] = {};
  CUpti_Activity* record = nullptr;
  EXPECT_EQ(cupti.cuptiActivityGetNextRecord(nullptr, 8, &record), CUPTI_ERROR_INVALID_PARAMETER);
  EXPECT_EQ(cupti.cuptiActivityGetNextRecord(bytes, 0, &record), CUPTI_ERROR_MAX_LIMIT_REACHED);
  EXPECT_EQ(cupti.cuptiActivityGetNextRecord(bytes, sizeof bytes, &record), CUPTI_ERROR_INVALID_KIND);  // zeros
  CUpti_ActivityAPI api{};
  api.kind = CUPTI_ACTIVITY_KIND_DRIVER;
  std::memcpy(bytes, &api, sizeof api);
  EXPECT_EQ(cupti.cuptiActivityGetNextRecord(bytes, sizeof api - 1, &record), CUPTI_ERROR_INVALID_KIND);  // cut short
  EXPECT_EQ(cupti.cuptiActivityGetNextRecord(bytes, 3, &record), CUPTI_ERROR_INVALID_KIND);
  EXPECT_EQ(cupti.cuptiActivityGetNextRecord(bytes, sizeof api, &record), CUPTI_SUCCESS);
  EXPECT_EQ(cupti.cuptiActivityGetNextRecord(bytes, sizeof api, &record), CUPTI_ERROR_MAX_LIMIT_REACHED);
}

}  // namespace
}  // namespace kgate
