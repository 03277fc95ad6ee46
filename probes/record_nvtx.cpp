// NVTX_INJECTION64_PATH: every copy of NVTX in the application loads this library and asks it once to put its functions
// into that copy's tables. It may happen before cuInit: ranges before that belong to nobody.
#include <atomic>
#include <cwchar>
#include <mutex>
#include <set>
#include <string>

#include "probes/nvtx_abi.h"
#include "probes/record_session.h"

namespace kgate::record {

namespace {

using namespace nvtx;

constexpr size_t kMaxName = 4096;

std::atomic<uint64_t> next_range{1};
thread_local int depth = 0;  // what a push returns

std::string narrow(const wchar_t* text) {
  std::string out;
  for (; text != nullptr && *text != L'\0' && out.size() < kMaxName; ++text) {
    const auto c = static_cast<uint32_t>(*text);  // UTF-32 here
    if (c < 0x80) {
      out += static_cast<char>(c);
    } else if (c < 0x800) {
      out += {static_cast<char>(0xc0 | c >> 6), static_cast<char>(0x80 | (c & 0x3f))};
    } else if (c < 0x10000) {
      out += {static_cast<char>(0xe0 | c >> 12), static_cast<char>(0x80 | (c >> 6 & 0x3f)),
              static_cast<char>(0x80 | (c & 0x3f))};
    } else {
      out += {static_cast<char>(0xf0 | (c >> 18 & 7)), static_cast<char>(0x80 | (c >> 12 & 0x3f)),
              static_cast<char>(0x80 | (c >> 6 & 0x3f)), static_cast<char>(0x80 | (c & 0x3f))};
    }
  }
  return out;
}

std::string narrow(const char* text) { return text != nullptr ? std::string(text).substr(0, kMaxName) : std::string(); }

std::string name_of(const EventAttributes* event) {
  if (event == nullptr) return {};
  switch (event->message_type) {
    case kAscii:
      return narrow(event->message.ascii);
    case kUnicode:
      return narrow(event->message.unicode);
    case kRegistered:
      return event->message.registered != nullptr ? *static_cast<const std::string*>(event->message.registered)
                                                  : std::string();
    default:
      return {};
  }
}

int push(const std::string& name) noexcept try {
  if (Recorder* r = recorder()) r->on_range_push(name);
  return depth++;
} catch (...) {
  return depth++;
}

int pop() noexcept try {
  if (Recorder* r = recorder()) r->on_range_pop();
  return depth > 0 ? --depth : -1;
} catch (...) {
  return -1;
}

RangeId start(const std::string& name) noexcept try {
  const RangeId id = next_range++;
  if (Recorder* r = recorder()) r->on_range_start(name, id);
  return id;
} catch (...) {
  return 0;
}

void end(RangeId id) noexcept try {
  if (Recorder* r = recorder()) r->on_range_end(id);
} catch (...) {
}

RangeId start_ex(const EventAttributes* event) { return start(name_of(event)); }
RangeId start_a(const char* text) { return start(narrow(text)); }
RangeId start_w(const wchar_t* text) { return start(narrow(text)); }
int push_ex(const EventAttributes* event) { return push(name_of(event)); }
int push_a(const char* text) { return push(narrow(text)); }
int push_w(const wchar_t* text) { return push(narrow(text)); }
RangeId domain_start(Domain, const EventAttributes* event) { return start(name_of(event)); }
void domain_end(Domain, RangeId id) { end(id); }
int domain_push(Domain, const EventAttributes* event) { return push(name_of(event)); }
int domain_pop(Domain) { return pop(); }

// Handles that the application keeps for its life: one for each text.
String intern(std::string text) noexcept try {
  static std::mutex mutex;
  static auto* const texts = new std::set<std::string>;  // NVTX may call until the very end
  std::lock_guard lock(mutex);
  return const_cast<std::string*>(&*texts->insert(std::move(text)).first);
} catch (...) {
  return nullptr;
}
String register_a(Domain, const char* text) { return intern(narrow(text)); }
String register_w(Domain, const wchar_t* text) { return intern(narrow(text)); }
Domain create_a(const char* text) { return intern(narrow(text)); }
Domain create_w(const wchar_t* text) { return intern(narrow(text)); }

bool attach(const CallbacksTable& callbacks) {
  AnyFunction** table = nullptr;
  unsigned size = 0;
  const auto set = [&](unsigned id, auto function) {
    if (id < size && table[id] != nullptr) *table[id] = reinterpret_cast<AnyFunction>(function);
  };
  if (callbacks.get_functions(kModuleCore, &table, &size) == 0 || table == nullptr) return false;
  set(kRangeStartEx, start_ex);
  set(kRangeStartA, start_a);
  set(kRangeStartW, start_w);
  set(kRangeEnd, end);
  set(kRangePushEx, push_ex);
  set(kRangePushA, push_a);
  set(kRangePushW, push_w);
  set(kRangePop, pop);
  if (callbacks.get_functions(kModuleCore2, &table, &size) == 0 || table == nullptr) return true;
  set(kDomainRangeStartEx, domain_start);
  set(kDomainRangeEnd, domain_end);
  set(kDomainRangePushEx, domain_push);
  set(kDomainRangePop, domain_pop);
  set(kDomainRegisterStringA, register_a);
  set(kDomainRegisterStringW, register_w);
  set(kDomainCreateA, create_a);
  set(kDomainCreateW, create_w);
  return true;
}

}  // namespace

}  // namespace kgate::record

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(kgate::nvtx::GetExportTable get_table) {
  if (!kgate::record::wanted() || get_table == nullptr) return 0;
  const auto* callbacks = static_cast<const kgate::nvtx::CallbacksTable*>(get_table(kgate::nvtx::kTableCallbacks));
  return callbacks != nullptr && callbacks->get_functions != nullptr && kgate::record::attach(*callbacks) ? 1 : 0;
}
