// One thread of its own does all that takes time: it empties CUPTI's buffers, writes files, and ends the session. The
// application's threads only copy records into buffers that exist, and wait for that thread once, at exit.
//
// At exit the order is: synchronise every context, flush, count drops, read the clock, forced flush; all of it before
// the driver tears itself down, hence in a handler that runs before the driver's: handlers run last in, first out, and
// the first context comes after everything that the driver registers. The wait has a limit, because a kernel that never
// ends would otherwise hold up an exit that works without the tracer. The process then looks as if it had been killed.
//
// A forked child has this memory but not this thread. It must write nothing: every way in checks the process id.
#include "probes/inject_session.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "probes/inject_common.h"
#include "probes/inject_listener.h"
#include "trace/inject_wire.h"

namespace kgate::inject {

using namespace gpu;

namespace {

constexpr auto kDrainInterval = std::chrono::milliseconds(50);
constexpr auto kExitLimit = std::chrono::seconds(20);
constexpr int kHelloLimitMs = 20'000;
constexpr int kHighDescriptor = 700;  // out of the way of applications that count on small numbers

uint64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

struct Session {
  pid_t process = getpid();
  std::string folder, stem;
  Driver driver;
  std::unique_ptr<RecordWriter> writer;
  std::unique_ptr<Listener> listener;
  std::unique_ptr<CuptiCollector> collector;
  wire::ProcessRecord life{};
  uint64_t life_at = RecordWriter::kNowhere, health_at = RecordWriter::kNowhere;

  std::mutex mutex;
  std::condition_variable changed;
  uint32_t thread = 0;  // of the drain; 0: not running yet
  bool stop = false, done = false;

  void drain();
  void put_health(const CollectorHealth& health);
  void synchronise();
  void end();
};

// Never freed: CUPTI's callbacks and the thread may come until the very end.
Session* session = nullptr;    // of a process that is traced
Session* unstarted = nullptr;  // what CUPTI may still know of one that could not be

void Session::put_health(const CollectorHealth& h) {
  wire::CollectorRecord record{wire::head<wire::CollectorRecord>(wire::Kind::collector, wire::kNoRound),
                               h.cupti_version,
                               h.dropped,
                               h.forced,
                               h.invalid_times,
                               h.unknown_records,
                               h.buffers_exhausted,
                               h.clock_offset_begin,
                               h.clock_offset_end,
                               h.clock_half_width};
  if (health_at == RecordWriter::kNowhere)
    health_at = writer->append(record);
  else
    writer->overwrite(health_at, record);
}

// A context that is broken says so at once.
void Session::synchronise() {
  if (!driver.cuCtxPushCurrent_v2 || !driver.cuCtxPopCurrent_v2 || !driver.cuCtxSynchronize) return;
  for (CUcontext context : listener->contexts()) {
    if (driver.cuCtxPushCurrent_v2(context) != CUDA_SUCCESS) continue;
    driver.cuCtxSynchronize();
    CUcontext popped = nullptr;
    driver.cuCtxPopCurrent_v2(&popped);
  }
}

void Session::end() {
  collector->hide(thread, 0, UINT64_MAX);
  if (collector->active()) {
    synchronise();
    listener->drain(*writer);
    put_health(collector->finish(*writer));
  }
  listener->drain(*writer);
  life.end = monotonic_ns();
  writer->overwrite(life_at, life);
  if (int error = writer->error())
    explain(stem, {std::string("records could not be written: ") + std::strerror(error), stem + ".kgr",
                   "Make room where temporary files go (TMPDIR)."});
}

void Session::drain() {
  pthread_setname_np(pthread_self(), "kgate-trace");
  std::unique_lock lock(mutex);
  thread = static_cast<uint32_t>(gettid());
  changed.notify_all();
  while (!changed.wait_for(lock, kDrainInterval, [&] { return stop; })) {
    lock.unlock();
    listener->drain(*writer);
    if (collector->active()) {  // before CUDA is up, CUPTI's clock is not to be trusted
      collector->drain(*writer, wire::kNoRound);
      put_health(collector->health());
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
  s->changed.wait_for(lock, kExitLimit, [&] { return s->done; });
}

uint64_t record_bytes() {
  uint64_t bytes = kDefaultBytes;
  if (const char* text = std::getenv("KGATE_TRACE_BYTES")) std::from_chars(text, text + std::strlen(text), bytes);
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    bytes = std::min<uint64_t>(bytes, limit.rlim_cur);  // beyond it waits SIGXFSZ
  return bytes;
}

// A process that has replaced itself by another program finds a file of its own id.
Result<Fd> create_records(Session& s) {
  for (int number = 1; number < 100; ++number) {
    s.stem = s.folder + "/" + std::to_string(s.process) + (number == 1 ? "" : "." + std::to_string(number));
    Fd file(::open((s.stem + ".kgr").c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!file && errno == EEXIST) continue;
    if (!file) return Failure{std::string("cannot create: ") + std::strerror(errno), s.stem + ".kgr", {}};
    if (int high = ::fcntl(file.get(), F_DUPFD_CLOEXEC, kHighDescriptor); high >= 0) return Fd(high);
    return file;
  }
  return Failure{"cannot create: too many files of this process", s.stem + ".kgr", {}};
}

std::optional<Failure> start(Session& s, const void* caller) {
  auto file = create_records(s);
  if (!file) return file.failure();
  auto writer = RecordWriter::open_file(std::move(*file), s.stem + ".kgr", record_bytes());
  if (!writer) return writer.failure();
  s.writer = std::move(*writer);
  s.life = {wire::head<wire::ProcessRecord>(wire::Kind::process, wire::kNoRound), monotonic_ns(), 0,
            static_cast<uint32_t>(s.process), static_cast<uint32_t>(getppid())};
  s.life_at = s.writer->append(s.life);
  s.driver = find_driver(caller);
  if (s.driver.path.empty())
    return Failure{"cannot tell which library is the CUDA driver", {}, "Report this with the driver's version."};
  std::string cupti = cupti_library(s.driver);
  if (cupti.empty())
    return Failure{"no CUPTI is found, which is what sees kernels",
                   {},
                   "Install the CUDA 13 toolkit's CUPTI, or set KGATE_CUPTI to its libcupti.so.13."};
  s.listener = std::make_unique<Listener>(s.driver, s.stem, [] { std::atexit(at_exit); });
  auto collector = CuptiCollector::start(cupti, s.listener->subscription());
  if (!collector) return collector.failure();
  s.collector = std::move(*collector);
  s.listener->set_collector(s.collector.get());
  s.put_health(s.collector->health());
  return {};
}

// Tells kgate that this process is there, and gives it the time to attach its probes before the first launch. Without
// an answer the application goes on: then there are no probes.
void hello(const Session& s) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  Fd folder(::open(s.folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  std::string path = "/proc/self/fd/" + std::to_string(folder.get()) + "/" + kSocket;  // any folder's name fits
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket || ::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return;
  auto message = std::make_unique<Hello>();
  message->process = static_cast<uint32_t>(s.process);
  message->thread = s.thread;
  s.driver.path.copy(message->driver, sizeof message->driver - 1);
  if (::send(socket.get(), message.get(), sizeof *message, MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof *message))
    return;
  pollfd wait{socket.get(), POLLIN, 0};
  uint64_t limit = monotonic_ns() + uint64_t{kHelloLimitMs} * 1'000'000;
  for (uint64_t now = monotonic_ns(); now < limit; now = monotonic_ns())
    if (::poll(&wait, 1, static_cast<int>((limit - now) / 1'000'000) + 1) >= 0 || errno != EINTR) break;
}

}  // namespace

void begin(const void* caller) noexcept try {
  const char* folder = std::getenv("KGATE_TRACE_DIR");
  if (folder == nullptr || *folder == '\0' || session != nullptr) return;
  SignalsBlocked blocked;
  auto* s = unstarted = new Session;
  s->folder = folder;
  if (auto failure = start(*s, caller)) {
    explain(s->stem, *failure);
    ::unlink((s->stem + ".kgr").c_str());
    return;
  }
  session = s;
  std::thread(&Session::drain, s).detach();
  {
    std::unique_lock lock(s->mutex);
    s->changed.wait(lock, [&] { return s->thread != 0; });
  }
  std::atexit(at_exit);
  hello(*s);
} catch (...) {  // no memory, no thread: the application goes on untraced, and its file says that it has no end
}

}  // namespace kgate::inject
