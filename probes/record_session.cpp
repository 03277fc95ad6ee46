// A thread of the recorder's own empties the chunks of records and ends the recording at exit. The handler of exit runs
// before the driver's own, since it is registered again once the driver has made its first context: handlers run last
// in, first out. It waits as long as that thread gets on, since a kernel that never ends would hold up an exit that
// works without the recorder.
//
// A forked child has the memory but not the thread, and must write nothing.
#include "probes/record_session.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "probes/inject_common.h"
#include "probes/inject_driver.h"
#include "probes/record_call_table.h"
#include "support/text.h"
#include "trace/cupti_library.h"

namespace kgate::record {

using namespace gpu;

namespace {

constexpr auto kDrainInterval = std::chrono::milliseconds(10);
constexpr auto kExitLimit = std::chrono::seconds(20);  // without any progress

struct Session {
  pid_t process = getpid();
  std::unique_ptr<Recorder> recorder;
  trace::CuptiLibrary cupti;
  CUpti_SubscriberHandle subscriber = nullptr;

  std::mutex mutex;
  std::condition_variable changed;
  bool stop = false, done = false;

  void drain();
  void end();
};

// Never freed: CUPTI's callbacks and the thread may come until the very end.
std::atomic<Session*> session{nullptr};
std::atomic<bool> forked{false};

void Session::end() {
  recorder->finish();
  if (int error = recorder->output().error())
    inject::explain(recorder->output().stem(),
                    {std::string("the recording could not be written: ") + std::strerror(error),
                     recorder->output().stem(), "Make room where temporary files go (TMPDIR)."});
}

void Session::drain() {
  pthread_setname_np(pthread_self(), "kgate-record");
  std::unique_lock lock(mutex);
  bool watching = true;
  while (!changed.wait_for(lock, kDrainInterval, [&] { return stop; })) {
    lock.unlock();
    if (recorder->recording()) {
      recorder->threads().flush_all();
    } else if (std::exchange(watching, false)) {  // what comes after the slice costs nothing
      for (uint32_t id = 0; id < kWatchedCalls.size(); ++id)
        if (kWatchedCalls[id].sort != Sort::none)
          cupti.cuptiEnableCallback(0, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, id);
    }
    lock.lock();
  }
  lock.unlock();
  end();
  lock.lock();
  done = true;
  changed.notify_all();
}

void at_exit() {
  Session* s = session;
  static std::atomic<bool> once{false};  // registered twice, for whichever runs first
  if (s == nullptr || getpid() != s->process || once.exchange(true)) return;
  std::unique_lock lock(s->mutex);
  s->stop = true;
  s->changed.notify_all();
  uint64_t progress = 0;
  do {
    progress = s->recorder->progress();
    s->changed.wait_for(lock, kExitLimit, [&] { return s->done; });
  } while (!s->done && s->recorder->progress() != progress);
}

// A callback may lead to another one, through the calls that it makes itself: API calls are filtered by the recorder.
void on_callback(void*, int domain, uint32_t cbid, const void* data) {
  Recorder* r = recorder();
  if (r == nullptr || data == nullptr) return;
  try {
    if (domain == static_cast<int>(CUPTI_CB_DOMAIN_DRIVER_API))
      return r->on_driver_call(cbid, *static_cast<const CUpti_CallbackData*>(data));
    if (domain != static_cast<int>(CUPTI_CB_DOMAIN_RESOURCE)) return;
    const auto& resource = *static_cast<const CUpti_ResourceData*>(data);
    if (cbid == CUPTI_CBID_RESOURCE_CONTEXT_CREATED) {
      static std::once_flag first;
      std::call_once(first, [] { std::atexit(at_exit); });
      r->on_context_created(resource.context);
    } else if (cbid == CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING) {
      r->on_context_destroyed(resource.context);
    } else if (cbid == CUPTI_CBID_RESOURCE_MODULE_LOADED && resource.resourceDescriptor != nullptr) {
      r->on_module(*static_cast<const CUpti_ModuleResourceData*>(resource.resourceDescriptor));
    }
  } catch (...) {  // no memory: the application goes on
  }
}

std::optional<Failure> subscribe(Session& s) {
  if (!s.cupti.cuptiSubscribe_v2 || !s.cupti.cuptiEnableCallback)
    return Failure{"this CUPTI has no callbacks (cuptiSubscribe_v2, cuptiEnableCallback)", s.cupti.path, {}};
  char other[256] = {};
  CUpti_SubscriberParams parameters{sizeof parameters, "kgate", other, sizeof other};
  const CUptiResult result = s.cupti.cuptiSubscribe_v2(&s.subscriber, on_callback, nullptr, &parameters);
  if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED)
    return Failure{"another tool uses CUPTI in this process: " +
                       (other[0] ? sanitize(other, 100) : std::string("it gives no name")),
                   s.cupti.path, "Record outside of other profilers and debuggers."};
  if (result != CUPTI_SUCCESS) return Failure{"cuptiSubscribe_v2: " + s.cupti.describe(result), s.cupti.path, {}};
  for (uint32_t id : {CUPTI_CBID_RESOURCE_CONTEXT_CREATED, CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING,
                      CUPTI_CBID_RESOURCE_MODULE_LOADED})
    if (CUptiResult r = s.cupti.cuptiEnableCallback(1, s.subscriber, CUPTI_CB_DOMAIN_RESOURCE, id))
      return Failure{"cuptiEnableCallback(" + std::to_string(id) + "): " + s.cupti.describe(r), s.cupti.path, {}};
  for (uint32_t id = 0; id < kWatchedCalls.size(); ++id) {
    if (kWatchedCalls[id].sort == Sort::none) continue;
    const CUptiResult r = s.cupti.cuptiEnableCallback(1, s.subscriber, CUPTI_CB_DOMAIN_DRIVER_API, id);
    if (r == CUPTI_ERROR_INVALID_PARAMETER && kWatchedCalls[id].sort != Sort::launch)
      s.recorder->cannot_watch(driver_cbid_name(id));
    else if (r != CUPTI_SUCCESS)
      return Failure{
          std::string("cuptiEnableCallback(") + driver_cbid_name(id) + "): " + s.cupti.describe(r), s.cupti.path, {}};
  }
  return {};
}

std::optional<Failure> start(Session& s, const std::string& folder, std::string& stem, const void* caller) {
  const char* text = std::getenv(kRecordOptions);
  auto options = parse_options(text != nullptr ? text : "");
  if (!options) return options.failure();
  auto output = Output::create(folder, static_cast<uint32_t>(s.process));
  if (!output) return output.failure();
  stem = (*output)->stem();
  const inject::Driver driver = inject::find_driver(caller);
  if (driver.path.empty())
    return Failure{"cannot tell which library is the CUDA driver", {}, "Report this with the driver's version."};
  const std::string path = inject::cupti_library(driver);
  if (path.empty())
    return Failure{"no CUPTI is found, which is what sees the application's calls",
                   {},
                   "Install the CUDA 13 toolkit's CUPTI, or set KGATE_CUPTI to its libcupti.so.13."};
  auto cupti = trace::load_cupti(path);
  if (!cupti) return cupti.failure();
  s.cupti = *cupti;
  s.recorder = std::make_unique<Recorder>(*options, std::move(*output), resolve_driver_calls(driver.handle));
  session = &s;
  return subscribe(s);
}

}  // namespace

bool wanted() {
  const char* folder = std::getenv(kRecordDir);
  return folder != nullptr && *folder != '\0';
}

Recorder* recorder() {
  if (forked.load(std::memory_order_relaxed)) return nullptr;
  Session* s = session.load(std::memory_order_acquire);
  return s != nullptr ? s->recorder.get() : nullptr;
}

void begin(const void* caller) noexcept try {
  if (session != nullptr) return;
  inject::SignalsBlocked blocked;
  const std::string folder = std::getenv(kRecordDir);
  std::string stem = folder + "/" + std::to_string(getpid());
  auto* s = new Session;
  ::pthread_atfork(nullptr, nullptr, [] { forked = true; });
  if (auto failure = start(*s, folder, stem, caller)) {
    session = nullptr;  // CUPTI may still know the recorder, which stays
    inject::explain(stem, *failure);
    for (const char* suffix : {".kgrec", ".blobs"}) ::unlink((stem + suffix).c_str());
    return;
  }
  std::thread(&Session::drain, s).detach();
  std::atexit(at_exit);
} catch (...) {  // no memory, no thread: the application goes on, and its file says that it has no end
}

}  // namespace kgate::record
