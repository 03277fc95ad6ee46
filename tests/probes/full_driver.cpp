// Writes the C source of a library that exports every name of the table of entry points.
#include <cstdio>

#include "trace/entry_points.h"

int main() {
  std::puts("/* generated from gate/trace/entry_points.cpp */");
  for (const kgate::trace::EntryPoint& entry : kgate::trace::entry_points())
    std::printf("int %s(void) { return 0; }\n", entry.name);
  return 0;
}
