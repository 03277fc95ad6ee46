// Driver callbacks: each call that the virtual GPU exports and CUPTI shows the parameters of, once at its begin and
// once at its end. The table must hold all of them.
#include <map>
#include <set>

#include "call_table.h"
#include "collector.h"
#include "vgpu/driver_exports.h"

namespace kgate {
namespace {

struct Seen {
  uint32_t cbid;
  unsigned site;
  std::string name, symbol;
  const void* params;
  bool params_right;
  int result;  // -1 at the begin
  uint32_t correlation, context_uid;
  uint64_t word;
};

// One subscriber a test; `body` may be set to run inside of each callback.
struct Subscriber {
  static inline std::vector<Seen> seen;
  static inline const CallRow* row = nullptr;
  static inline CallBench* bench = nullptr;
  static inline void (*inside)() = nullptr;

  static void callback(void* user, int domain, uint32_t cbid, const void* data) {
    EXPECT_EQ(user, &seen);
    EXPECT_EQ(domain, static_cast<int>(CUPTI_CB_DOMAIN_DRIVER_API));
    const auto& call = *static_cast<const CUpti_CallbackData*>(data);
    if (call.callbackSite == CUPTI_API_ENTER) {
      EXPECT_EQ(*call.correlationData, 0u);
      *call.correlationData = 1000 + cbid;
    }
    bool right = row == nullptr || row->params == nullptr || row->params(*bench, call);
    seen.push_back({cbid, call.callbackSite, call.functionName ? call.functionName : "",
                    call.symbolName ? call.symbolName : "", call.functionParams, right,
                    call.callbackSite == CUPTI_API_EXIT ? *static_cast<CUresult*>(call.functionReturnValue) : -1,
                    call.correlationId, call.contextUid, *call.correlationData});
    if (inside) inside();
  }
};

class Callbacks : public CuptiTest {
 protected:
  Callbacks() {
    Subscriber::seen.clear();
    Subscriber::row = nullptr;
    Subscriber::inside = nullptr;
    CUpti_SubscriberParams params{sizeof params, "test", nullptr, 0};
    EXPECT_EQ(cupti.cuptiSubscribe_v2(&handle, &Subscriber::callback, &Subscriber::seen, &params), CUPTI_SUCCESS);
    enable_callback = reinterpret_cast<decltype(enable_callback)>(driver->symbol("cuptiEnableCallback"));
    enable_domain = reinterpret_cast<decltype(enable_domain)>(driver->symbol("cuptiEnableDomain"));
  }
  ~Callbacks() override { cupti.cuptiUnsubscribe(handle); }
  void all(bool on) {
    ASSERT_EQ(enable_domain(on, handle, static_cast<int>(CUPTI_CB_DOMAIN_DRIVER_API)), CUPTI_SUCCESS);
  }

  CUpti_SubscriberHandle handle = nullptr;
  CUptiResult (*enable_callback)(uint32_t, CUpti_SubscriberHandle, int, uint32_t) = nullptr;
  CUptiResult (*enable_domain)(uint32_t, CUpti_SubscriberHandle, int) = nullptr;
};

TEST_F(Callbacks, every_call_is_shown_once_at_its_begin_and_once_at_its_end) {
  for (const CallRow& row : call_table()) {
    SCOPED_TRACE(row.name);
    CallBench bench(*driver);
    if (row.prepare) row.prepare(bench);
    Subscriber::seen.clear();
    Subscriber::row = &row;
    Subscriber::bench = &bench;
    ASSERT_EQ(enable_callback(1, handle, static_cast<int>(CUPTI_CB_DOMAIN_DRIVER_API), row.cbid), CUPTI_SUCCESS);
    CUresult result = row.call(bench);
    ASSERT_EQ(enable_callback(0, handle, static_cast<int>(CUPTI_CB_DOMAIN_DRIVER_API), row.cbid), CUPTI_SUCCESS);
    EXPECT_EQ(result, row.expected);
    ASSERT_EQ(Subscriber::seen.size(), 2u);
    const Seen &enter = Subscriber::seen[0], &exit = Subscriber::seen[1];
    EXPECT_EQ(enter.site, unsigned{CUPTI_API_ENTER});
    EXPECT_EQ(exit.site, unsigned{CUPTI_API_EXIT});
    for (const Seen& seen : Subscriber::seen) {
      EXPECT_EQ(seen.cbid, row.cbid);
      EXPECT_EQ(seen.name, row.name);
      EXPECT_TRUE(seen.params_right);
      EXPECT_EQ(seen.params == nullptr, row.params == nullptr);
      EXPECT_EQ(seen.word, 1000 + row.cbid);
      EXPECT_EQ(seen.symbol,
                row.name.starts_with("cuLaunch") && row.name.find("HostFunc") == row.name.npos ? "vector_add" : "");
    }
    EXPECT_EQ(enter.correlation, exit.correlation);
    EXPECT_EQ(exit.result, result);
    if (row.restore) row.restore(bench);
  }
}

TEST_F(Callbacks, the_table_holds_every_export_whose_parameters_are_declared) {
  std::set<std::string, std::less<>> exported, tested;
#define KGATE_ROW(asked, name) exported.insert(#name);
#define KGATE_ROW2(asked, name, per_thread) exported.insert({#name, #per_thread});
  KGATE_EXPORTS(KGATE_ROW, KGATE_ROW2)
#undef KGATE_ROW
#undef KGATE_ROW2
  for (const CallRow& row : call_table()) tested.emplace(row.name);
#define KGATE_ROW(name, params) \
  EXPECT_LE(exported.count(#name), tested.count(#name)) << #name;
  KGATE_CUPTI_DRIVER_PARAMS(KGATE_ROW)
#undef KGATE_ROW
}

TEST_F(Callbacks, correlation_ids_are_those_of_the_records) {
  VectorAdd add(*driver);
  enable();
  all(true);
  add.run();
  driver->synchronize(nullptr);
  all(false);
  flush();
  ASSERT_EQ(Subscriber::seen.size(), 4u);
  ASSERT_EQ(Collector::kernels.size(), 1u);
  ASSERT_EQ(Collector::calls.size(), 2u);
  EXPECT_EQ(Subscriber::seen[0].correlation, Collector::kernels[0].correlationId);
  EXPECT_EQ(Subscriber::seen[0].correlation, Collector::calls[0].correlationId);
  EXPECT_EQ(Subscriber::seen[2].correlation, Collector::calls[1].correlationId);
  EXPECT_EQ(Subscriber::seen[0].context_uid, Collector::kernels[0].contextId);
}

TEST_F(Callbacks, come_only_for_what_is_enabled_and_for_nobody_after_unsubscribing) {
  driver->synchronize_context();
  EXPECT_TRUE(Subscriber::seen.empty());
  ASSERT_EQ(enable_callback(1, handle, static_cast<int>(CUPTI_CB_DOMAIN_DRIVER_API),
                            CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize),
            CUPTI_SUCCESS);
  driver->synchronize_context();
  EXPECT_TRUE(Subscriber::seen.empty());
  driver->synchronize(nullptr);
  EXPECT_EQ(Subscriber::seen.size(), 2u);
  all(true);
  ASSERT_EQ(cupti.cuptiUnsubscribe(handle), CUPTI_SUCCESS);
  driver->synchronize(nullptr);
  EXPECT_EQ(Subscriber::seen.size(), 2u);
}

TEST_F(Callbacks, bad_ids_domains_and_strangers_are_refused) {
  constexpr int kDriver = static_cast<int>(CUPTI_CB_DOMAIN_DRIVER_API);
  EXPECT_EQ(enable_callback(1, handle, kDriver, 0), CUPTI_ERROR_INVALID_PARAMETER);
  EXPECT_EQ(enable_callback(1, handle, kDriver, 1u << 20), CUPTI_ERROR_INVALID_PARAMETER);
  EXPECT_EQ(enable_callback(1, handle, 77, 1), CUPTI_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(enable_callback(1, nullptr, kDriver, 17), CUPTI_ERROR_INVALID_PARAMETER);
  EXPECT_EQ(enable_domain(1, handle, 77), CUPTI_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(enable_domain(1, nullptr, kDriver), CUPTI_ERROR_INVALID_PARAMETER);
}

TEST_F(Callbacks, a_failed_call_is_shown_with_its_code) {
  all(true);
  auto free = reinterpret_cast<CUresult (*)(CUdeviceptr)>(driver->symbol("cuMemFree_v2"));
  EXPECT_EQ(free(0x1234), CUDA_ERROR_INVALID_VALUE);
  all(false);
  ASSERT_EQ(Subscriber::seen.size(), 2u);
  EXPECT_EQ(Subscriber::seen[1].result, CUDA_ERROR_INVALID_VALUE);
}

// As with CUPTI, the subscriber's own calls are shown to it too, and it must guard itself.
TEST_F(Callbacks, a_callback_may_call_the_driver_and_sees_its_own_calls) {
  static Driver* from_inside = nullptr;
  static int depth = 0;
  from_inside = driver.get();
  Subscriber::inside = [] {
    if (depth++ == 0) from_inside->synchronize(nullptr);
    --depth;
  };
  all(true);
  driver->synchronize_context();
  all(false);
  std::vector<std::pair<uint32_t, unsigned>> order;
  for (const Seen& seen : Subscriber::seen) order.push_back({seen.cbid, seen.site});
  constexpr uint32_t kOuter = CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize,
                     kInner = CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize;
  EXPECT_EQ(order, (std::vector<std::pair<uint32_t, unsigned>>{
                       {kOuter, 0}, {kInner, 0}, {kInner, 1}, {kOuter, 1}, {kInner, 0}, {kInner, 1}}));
}

}  // namespace
}  // namespace kgate
