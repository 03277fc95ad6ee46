/* A program that loads a library only after it was executed: exec_app LIBRARY NAME TIMES. */
#include <dlfcn.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  if (argc != 4) return 64;
  void* library = dlopen(argv[1], RTLD_NOW);
  int (*function)(void) = library ? (int (*)(void))dlsym(library, argv[2]) : 0;
  if (!function) return 1;
  for (int i = atoi(argv[3]); i > 0; --i) function();
  return 0;
}
