/* SPDX-License-Identifier: MIT
 *
 * wide_reads.h - whether the emulator that runs this program reads more than an
 * instruction does: qemu 8.2 (Ubuntu 24.04) reads 32 bytes for VINSERTI128, which
 * has 16.
 */
#ifndef SLM_TESTS_WIDE_READS_H
#define SLM_TESTS_WIDE_READS_H

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __x86_64__
/* Read the last 16 bytes in front of a page that cannot be read. */
static inline void insert_last_bytes(void)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *p = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                   -1, 0);

    if (p == MAP_FAILED || mprotect(p + page, page, PROT_NONE))
        return;
    __asm__ volatile("vinserti128 $1, %0, %%ymm0, %%ymm0"
                     :
                     : "m"(*(char(*)[16])(p + page - 16))
                     : "xmm0");
}

static inline bool emulator_reads_wide(void)
{
    static int known = -1;
    const char *arch = getenv("SLM_TEST_EMULATED_AVX2"), *cpu = getenv("QEMU_CPU");
    int status = 0;

    if (known < 0 && arch && strcmp(arch, "x86") == 0 && cpu &&
        strstr(cpu, "Haswell")) {
        const pid_t pid = fork();

        if (pid == 0) {
            signal(SIGSEGV, SIG_DFL);
            insert_last_bytes();
            _exit(0);
        }
        known = pid > 0 && waitpid(pid, &status, 0) == pid && WIFSIGNALED(status);
    }
    return known > 0;
}
#else
static inline bool emulator_reads_wide(void)
{
    return false;
}
#endif

#endif
