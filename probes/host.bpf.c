// The host side of a trace: entry and return of the driver's calls, the time that the watched process's threads spend
// off the CPU, and the processes that it forks, which are not watched.
//
// Everything goes through one ring buffer; what does not fit is counted, because a reservation that fails is silent.
// Events are submitted without a wake-up: the reader polls, so that no wake-up is charged to the thread that is
// measured.
//
// The uprobe programs come in two shapes. In session mode one program runs at entry and return and the kernel keeps its
// state in between. Elsewhere entry and return are two programs and a hash map holds the state, keyed by thread and
// symbol, because one exported call may run inside another. No kprobes: kernels without CONFIG_KPROBES run this too.
// The first header defines the types that the others use.
// clang-format off
#include <linux/bpf.h>
#include <stdbool.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
// clang-format on

#include "host_event.h"
#include "kernel_types.h"

char LICENSE[] SEC("license") = "GPL";

struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 16 << 20);
} events SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, KGATE_COUNTERS);
  __type(key, __u32);
  __type(value, __u64);
} counters SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, KGATE_HIT_COUNTERS);
  __type(key, __u32);
  __type(value, __u64);
} hits SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct kgate_probe_config);
} config SEC(".maps");

// Of prev_state: what the thread waits for (1 interruptible, 2 not, ...) without the flags above; a dead one never
// comes back.
enum { kTaskStates = 0xff, kTaskDead = 0x80 };
enum { kNamespaceLevels = 32 };  // MAX_PID_NS_LEVEL

struct call_key {
  __u32 thread, symbol;
};
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 8192);
  __type(key, struct call_key);
  __type(value, __u64);
} open_calls SEC(".maps");

struct absence {
  __u64 begin, woken;  // woken: 0 while asleep
  __u32 thread, state;
};
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 8192);
  __type(key, __u32);
  __type(value, struct absence);
} absences SEC(".maps");

__u64* bpf_session_cookie(void) __ksym __weak;
bool bpf_session_is_return(void) __ksym __weak;

static __always_inline void count(void* map, __u32 index) {
  __u64* value = bpf_map_lookup_elem(map, &index);
  if (value) ++*value;
}

// The current thread's id in the watched namespace; 0 when it belongs to another process.
static __always_inline __u32 watched_thread(void) {
  __u32 zero = 0;
  struct kgate_probe_config* c = bpf_map_lookup_elem(&config, &zero);
  struct bpf_pidns_info ids = {};
  if (!c || bpf_get_ns_current_pid_tgid(c->namespace_device, c->namespace_inode, &ids, sizeof ids) != 0) return 0;
  return ids.tgid == c->process ? ids.pid : 0;
}

static __always_inline void submit(__u64 begin, __u64 end, __u32 thread, __u32 kind, __u32 symbol, __u32 state,
                                   __u64 run_queue) {
  struct kgate_host_event* event = bpf_ringbuf_reserve(&events, sizeof *event, 0);
  if (!event) {
    count(&counters, kind == KGATE_PROBE_API       ? KGATE_LOST_API
                     : kind == KGATE_PROBE_OFF_CPU ? KGATE_LOST_SCHED
                                                   : KGATE_LOST_FORK);
    return;
  }
  event->begin = begin;
  event->end = end;
  event->run_queue = run_queue;
  event->thread = thread;
  event->state = state;
  event->kind = kind;
  event->symbol = symbol;
  bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
}

SEC("uprobe")
int call_session(struct pt_regs* ctx) {
  __u32 thread = watched_thread();
  __u64* begin = bpf_session_cookie();
  __u32 symbol = (__u32)bpf_get_attach_cookie(ctx);
  if (!thread || !begin) return 1;  // no return probe either
  if (!bpf_session_is_return()) {
    count(&hits, symbol);
    *begin = bpf_ktime_get_ns();
  } else {
    submit(*begin, bpf_ktime_get_ns(), thread, KGATE_PROBE_API, symbol, 0, 0);
  }
  return 0;
}

SEC("uprobe")
int call_entry(struct pt_regs* ctx) {
  struct call_key key = {watched_thread(), (__u32)bpf_get_attach_cookie(ctx)};
  if (!key.thread) return 0;
  count(&hits, key.symbol);
  __u64 now = bpf_ktime_get_ns();
  if (bpf_map_update_elem(&open_calls, &key, &now, BPF_ANY) != 0) count(&counters, KGATE_LOST_API);
  return 0;
}

SEC("uretprobe")
int call_return(struct pt_regs* ctx) {
  __u64 now = bpf_ktime_get_ns();
  struct call_key key = {watched_thread(), (__u32)bpf_get_attach_cookie(ctx)};
  if (!key.thread) return 0;
  __u64* begin = bpf_map_lookup_elem(&open_calls, &key);
  if (!begin) {
    count(&counters, KGATE_UNMATCHED_RETURN);
    return 0;
  }
  __u64 began = *begin;
  bpf_map_delete_elem(&open_calls, &key);
  submit(began, now, key.thread, KGATE_PROBE_API, key.symbol, 0, 0);
  return 0;
}

// `prev` is still `current` here. Only threads that were seen to leave are in `absences`, so that a look-up there is
// the filter for everything else: the thread that comes back, the one that is woken.
SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct* prev, struct task_struct* next, unsigned int prev_state) {
  __u64 now = bpf_ktime_get_ns();
  __u32 id = next->pid;
  struct absence* gone = bpf_map_lookup_elem(&absences, &id);
  if (gone) {
    struct absence a = *gone;
    bpf_map_delete_elem(&absences, &id);
    submit(a.begin, now, a.thread, KGATE_PROBE_OFF_CPU, 0, a.state, a.woken ? now - a.woken : 0);
  }
  __u32 thread = watched_thread();
  if (!thread) return 0;
  __u32 state = preempt ? 0 : prev_state & kTaskStates;
  if (state & kTaskDead) return 0;
  struct absence left = {.begin = now, .woken = state == 0 ? now : 0, .thread = thread, .state = state};
  id = prev->pid;
  if (bpf_map_update_elem(&absences, &id, &left, BPF_ANY) != 0) count(&counters, KGATE_LOST_SCHED);
  return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(on_wakeup, struct task_struct* task) {
  __u32 id = task->pid;
  struct absence* gone = bpf_map_lookup_elem(&absences, &id);
  if (gone && gone->woken == 0) gone->woken = bpf_ktime_get_ns();
  return 0;
}

// A task's id in the watched namespace; 0 when it has none there.
static __always_inline __u32 id_in_namespace(struct task_struct* task, __u32 inode) {
  struct pid* pid = BPF_CORE_READ(task, thread_pid);
  __u32 level = BPF_CORE_READ(pid, level);
  for (__u32 i = 0; i < kNamespaceLevels && i <= level; ++i) {
    struct upid* id = (void*)pid + bpf_core_field_offset(pid->numbers) + i * bpf_core_type_size(struct upid);
    if (BPF_CORE_READ(id, ns, ns.inum) == inode) return (__u32)BPF_CORE_READ(id, nr);
  }
  return 0;
}

// Runs in the parent. A new thread is no child: it is watched.
SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct* parent, struct task_struct* child) {
  if (parent->tgid == child->tgid) return 0;
  __u32 thread = watched_thread(), zero = 0;
  struct kgate_probe_config* c = bpf_map_lookup_elem(&config, &zero);
  if (!thread || !c) return 0;
  __u64 now = bpf_ktime_get_ns();
  submit(now, now, thread, KGATE_PROBE_FORK, 0, id_in_namespace(child, (__u32)c->namespace_inode), 0);
  return 0;
}

// Who has no rights of his own may not watch a program that has: it is lost from sight.
SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct* task, int old_pid, struct linux_binprm* program) {
  __u32 zero = 0;
  struct kgate_probe_config* c = bpf_map_lookup_elem(&config, &zero);
  if (!c || !c->unprivileged || !watched_thread()) return 0;
  if (BPF_CORE_READ_BITFIELD_PROBED(program, secureexec)) c->process = 0;
  return 0;
}
