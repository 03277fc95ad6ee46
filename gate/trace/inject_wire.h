// What kgate trace and the library that it has CUDA load into an application (libkgate_inject.so) agree upon.
//
//   KGATE_TRACE_DIR   the folder of the run
//   KGATE_TRACE_BYTES the largest record file of one process, in bytes
//
// In that folder, for each process that initialises CUDA (STEM is its process id, or PID.2, ... when a process replaced
// itself by another program and that one initialises CUDA again):
//
//   STEM.kgr          a record stream (trace/wire.h)
//   STEM-N.cubin      the image of ModuleRecord.image N
//   STEM.why          why it is not traced, or why no further: three lines, Failure's what, where and hint
//   socket            where the process says that it is there, and waits until the probes are attached
#pragma once

#include <cstdint>

namespace kgate::inject {

inline constexpr const char* kTraceDir = "KGATE_TRACE_DIR";
inline constexpr const char* kTraceBytes = "KGATE_TRACE_BYTES";
inline constexpr const char* kSocket = "socket";
inline constexpr uint64_t kDefaultBytes = uint64_t{4} << 30;

inline constexpr uint32_t kHelloMagic = 0x6b67686c;  // "kghl"

// The one message of a process, on a SOCK_SEQPACKET socket, inside cuInit. Any byte, or the end of the connection, lets
// it go on. Who sends it is the kernel's word (SO_PEERCRED); the rest is the process's own.
struct Hello {
  uint32_t magic = kHelloMagic;
  uint32_t process = 0;  // in its own namespace
  uint32_t thread = 0;   // the tracer's own: not the application's doing
  uint32_t pad = 0;
  char driver[4096] = {};  // path of the driver library
};

}  // namespace kgate::inject
