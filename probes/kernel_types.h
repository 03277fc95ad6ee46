// The few kernel fields that the probes read. preserve_access_index makes each access a CO-RE relocation: libbpf
// patches the offsets of the running kernel in when it loads the program, so that no 3 MB vmlinux.h is needed and none
// goes stale.
#pragma once

#include <linux/types.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct task_struct {
  int pid;   // of the thread, in the initial pid namespace
  int tgid;  // of the process
};

#pragma clang attribute pop
