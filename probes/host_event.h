// What the eBPF programs and their reader in gate/trace agree on. Plain C, for both compilers.
#pragma once

#ifndef __bpf__
#include <linux/types.h>
#endif

enum { KGATE_PROBE_API = 0, KGATE_PROBE_OFF_CPU = 1, KGATE_PROBE_FORK = 2 };
enum { KGATE_MAX_SYMBOLS = 512 };

// Per-CPU counters: what the ring buffer had no room for, by kind, and returns whose entry was not seen.
enum { KGATE_LOST_API = 0, KGATE_LOST_SCHED = 1, KGATE_LOST_FORK = 2, KGATE_UNMATCHED_RETURN = 3, KGATE_COUNTERS = 4 };

// Times are bpf_ktime_get_ns: CLOCK_MONOTONIC.
struct kgate_host_event {
  __u64 begin, end;
  __u64 run_queue;  // off CPU: ns between wake-up and running again
  __u32 thread;     // in the pid namespace of the configuration
  __u32 state;      // off CPU: prev_state of sched_switch, 0 when preempted
  __u32 kind;
  __u32 symbol;  // api: index that the attaching side gave as cookie
};

// Which process is watched. Namespaced, because kgate and its worker may live in a container while eBPF sees the whole
// machine.
struct kgate_probe_config {
  __u64 namespace_device, namespace_inode;  // of /proc/self/ns/pid
  __u32 process;                            // thread group id in that namespace
  __u32 pad;
};
