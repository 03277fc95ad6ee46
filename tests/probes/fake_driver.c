/* A library with the names of the driver's entry points, each with a first instruction of a class of its own. */
#include <time.h>
#include <unistd.h>

int cuLaunchKernel(void) { return 0; }
int cuStreamSynchronize(void) {
  struct timespec t = {0, 2000000};
  return nanosleep(&t, 0);
}
int cuCtxSynchronize(void) { return 0; }
int cuCtxSynchronize_v2(void) __attribute__((alias("cuCtxSynchronize")));
int cuGraphLaunch(void) { return cuLaunchKernel(); }  /* one entry point inside another */
int not_of_interest(void) { return 0; }

/* endbr64, then push: probed behind it. */
__asm__(".text\n.globl cuLaunchKernelEx\n.type cuLaunchKernelEx, @function\ncuLaunchKernelEx:\n"
        "endbr64\npush %rbp\nmov %rsp, %rbp\nxor %eax, %eax\npop %rbp\nret\n.size cuLaunchKernelEx, .-cuLaunchKernelEx\n");
/* mov first: the kernel would single-step it. */
__asm__(".text\n.globl cuEventSynchronize\n.type cuEventSynchronize, @function\ncuEventSynchronize:\n"
        "mov %rdi, %rax\nxor %eax, %eax\nret\n.size cuEventSynchronize, .-cuEventSynchronize\n");
