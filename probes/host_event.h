// What the eBPF programs, kgate-probe and kgate's reader agree on. Plain C, for both compilers.
#pragma once

#ifndef __bpf__
#include <linux/types.h>
#endif

enum { KGATE_PROBE_API = 0, KGATE_PROBE_OFF_CPU = 1, KGATE_PROBE_FORK = 2 };

// Symbols of one process that can be told apart; one more is kgate-probe's own, for measuring itself.
enum { KGATE_MAX_SYMBOLS = 512, KGATE_OWN_SYMBOL = KGATE_MAX_SYMBOLS, KGATE_HIT_COUNTERS = KGATE_MAX_SYMBOLS + 1 };

// Per-CPU counters: what the ring buffer had no room for, by kind, and returns whose entry was not seen.
enum {
  KGATE_LOST_API = 0,
  KGATE_LOST_SCHED = 1,
  KGATE_LOST_FORK = 2,
  KGATE_UNMATCHED_RETURN = 3,
  KGATE_COUNTERS = 4
};

// Times are bpf_ktime_get_ns: CLOCK_MONOTONIC.
struct kgate_host_event {
  __u64 begin, end;  // fork: the same
  __u64 run_queue;   // off CPU: ns between wake-up and running again
  __u32 thread;      // in the pid namespace of the configuration
  __u32 state;       // off CPU: prev_state of sched_switch, 0 when preempted; fork: the child's process id
  __u32 kind;
  __u32 symbol;  // api: index that the attaching side gave as cookie
};

// Which process is watched. Namespaced, because kgate and its worker may live in a container while eBPF sees the whole
// machine.
struct kgate_probe_config {
  __u64 namespace_device, namespace_inode;  // of /proc/self/ns/pid
  __u32 process;                            // thread group id in that namespace; 0: none
  __u32 unprivileged;                       // the one who asked may not see what a set-user-id program does
};
