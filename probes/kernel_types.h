// The few kernel fields that the probes read. preserve_access_index makes each access a CO-RE relocation: libbpf
// patches the offsets of the running kernel in when it loads the program, so that no 3 MB vmlinux.h is needed and none
// goes stale.
#pragma once

#include <linux/types.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct ns_common {
  unsigned int inum;  // inode of /proc/PID/ns/...
};
struct pid_namespace {
  struct ns_common ns;
};
struct upid {
  int nr;
  struct pid_namespace* ns;
};
struct pid {
  unsigned int level;      // 0 in the initial namespace
  struct upid numbers[1];  // level + 1 of them
};

struct task_struct {
  int pid;   // of the thread, in the initial pid namespace
  int tgid;  // of the process
  struct pid* thread_pid;
};

struct linux_binprm {
  unsigned int secureexec : 1;  // the new program gets rights that the old one had not
};

#pragma clang attribute pop
