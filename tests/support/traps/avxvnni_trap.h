/* SPDX-License-Identifier: MIT
 *
 * avxvnni_trap.h - AVX-VNNI's dot products on x86 CPUs that lack them
 *
 * A CPU without AVX-VNNI raises SIGILL at its instructions. avxvnni_trap() installs a
 * handler that does what the instruction would, on the registers that the signal
 * frame holds, and goes on behind it; so the very objects of that level are run, with
 * any CPU of AVX2. Instructions (Intel SDM vol. 2), VEX.66.0F38.W0, no saturation:
 *
 *   50 /r  VPDPBUSD dst, a, b   every dword of dst += 4 products of a's unsigned
 *                               with b's signed bytes
 *   52 /r  VPDPWSSD dst, a, b   every dword of dst += 2 products of signed words
 *
 * Anything else that is illegal kills the program, as it would without a handler.
 *
 * Where the CPU has the same instructions in EVEX coding (AVX-512 VNNI and VL), the
 * signal comes but once for each place: the instruction, of at least five bytes, is
 * overwritten with a jump to its twin in EVEX coding and back.
 */
#ifndef SLM_TESTS_AVXVNNI_TRAP_H
#define SLM_TESTS_AVXVNNI_TRAP_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

/* In the frame: the XSAVE area in its standard form. Its header's first word says
 * which parts are not in their initial state, which is zero. */
enum {
    XSAVE_XMM = 160,
    XSAVE_HEADER = 512,
    XSAVE_YMM_UPPER = 576,
    XSAVE_HAS_YMM = 1 << 2
};

struct vnni_frame {
    greg_t *regs;
    uint8_t *xsave;
};

struct vnni_instruction {
    bool is_256, is_words;
    int dst, a, b; /* vector registers; b < 0: memory */
    const uint8_t *memory;
    size_t length;
};

static void vnni_read(const struct vnni_frame *f, int reg, uint8_t v[32])
{
    uint64_t present;

    memcpy(&present, f->xsave + XSAVE_HEADER, sizeof(present));
    memcpy(v, f->xsave + XSAVE_XMM + 16 * reg, 16);
    if (present & XSAVE_HAS_YMM)
        memcpy(v + 16, f->xsave + XSAVE_YMM_UPPER + 16 * reg, 16);
    else
        memset(v + 16, 0, 16);
}

static void vnni_write(const struct vnni_frame *f, int reg, const uint8_t v[32])
{
    uint64_t present;

    memcpy(&present, f->xsave + XSAVE_HEADER, sizeof(present));
    if (!(present & XSAVE_HAS_YMM))
        memset(f->xsave + XSAVE_YMM_UPPER, 0, 256);
    present |= XSAVE_HAS_YMM;
    memcpy(f->xsave + XSAVE_HEADER, &present, sizeof(present));
    memcpy(f->xsave + XSAVE_XMM + 16 * reg, v, 16);
    memcpy(f->xsave + XSAVE_YMM_UPPER + 16 * reg, v + 16, 16);
}

/* A general register by its number in instructions. */
static uint64_t vnni_general(const struct vnni_frame *f, int n)
{
    static const int low[8] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX,
                               REG_RSP, REG_RBP, REG_RSI, REG_RDI};

    return (uint64_t)f->regs[n < 8 ? low[n] : REG_R8 + n - 8];
}

/* The memory operand whose ModRM byte stands at p; *end is the byte behind it. x, b:
 * 8 where the prefix extends index or base. */
static const uint8_t *vnni_address(const struct vnni_frame *f, const uint8_t *p, int x,
                                   int b, const uint8_t **end)
{
    const int mod = *p >> 6, rm = *p & 7;
    uint64_t at = 0;
    int base = rm | b;
    size_t n_disp = mod == 1 ? 1 : mod == 2 ? 4 : 0;

    p++;
    if (rm == 4) {
        const int index = (*p >> 3 & 7) | x;

        base = (*p & 7) | b;
        if (index != 4)
            at += vnni_general(f, index) << (*p >> 6);
        p++;
    }
    *end = p + n_disp;
    if (mod == 0 && (base & 7) == 5) { /* no base; without an index byte: RIP */
        n_disp = 4;
        *end = p + 4;
        if (rm == 5)
            at += (uint64_t)(uintptr_t)*end;
    } else {
        at += vnni_general(f, base);
    }
    if (n_disp == 1) {
        at += (uint64_t)(int8_t)*p;
    } else if (n_disp == 4) {
        int32_t disp;

        memcpy(&disp, p, sizeof(disp));
        at += (uint64_t)disp;
    }
    return (const uint8_t *)(uintptr_t)at;
}

static bool vnni_decode(const struct vnni_frame *f, const uint8_t *p,
                        struct vnni_instruction *out)
{
    const uint8_t *end = p + 5;

    if (p[0] != 0xc4 || (p[1] & 31) != 2 || (p[2] & 0x83) != 1 ||
        (p[3] != 0x50 && p[3] != 0x52))
        return false;
    out->is_256 = (p[2] & 4) != 0;
    out->is_words = p[3] == 0x52;
    out->dst = (p[4] >> 3 & 7) | (p[1] & 0x80 ? 0 : 8);
    out->a = ~(p[2] >> 3) & 15;
    out->b = -1;
    out->memory = NULL;
    if (p[4] >> 6 == 3)
        out->b = (p[4] & 7) | (p[1] & 0x20 ? 0 : 8);
    else
        out->memory =
            vnni_address(f, p + 4, p[1] & 0x40 ? 0 : 8, p[1] & 0x20 ? 0 : 8, &end);
    out->length = (size_t)(end - p);
    return true;
}

static void vnni_execute(const struct vnni_frame *f, const struct vnni_instruction *i)
{
    const int n = i->is_256 ? 8 : 4;
    uint8_t a[32], b[32], dst[32];
    int16_t wa[16], wb[16];
    uint32_t sum[8];

    vnni_read(f, i->a, a);
    vnni_read(f, i->dst, dst);
    if (i->b >= 0)
        vnni_read(f, i->b, b);
    else
        memcpy(b, i->memory, 4 * (size_t)n);
    memcpy(wa, a, sizeof(wa));
    memcpy(wb, b, sizeof(wb));
    memcpy(sum, dst, sizeof(sum));
    for (int lane = 0; lane < n; lane++) {
        for (int e = 4 * lane; e < 4 * lane + 4 && !i->is_words; e++)
            sum[lane] += (uint32_t)(a[e] * (int8_t)b[e]);
        for (int e = 2 * lane; e < 2 * lane + 2 && i->is_words; e++)
            sum[lane] += (uint32_t)(wa[e] * wb[e]);
    }
    memset(dst, 0, sizeof(dst)); /* 128-bit forms clear the upper half */
    memcpy(dst, sum, 4 * (size_t)n);
    vnni_write(f, i->dst, dst);
}

/* ---- twins ----------------------------------------------------------------------- */

enum { VNNI_TWINS_BYTES = 1 << 20 };

static struct {
    uint8_t *next, *end; /* executable memory that jumps reach from the program */
} vnni_twins;

/* The twin of the instruction at p, without its operand's displacement where it has
 * none of its own coding: EVEX scales an 8-bit one. Returns its length, 0 if there
 * is no twin (an operand relative to RIP). */
static size_t vnni_twin(const uint8_t *p, size_t length, uint8_t *to)
{
    const int mod = p[4] >> 6, rm = p[4] & 7;
    size_t n = 6;

    if (mod == 0 && rm == 5)
        return 0;
    to[0] = 0x62;
    to[1] = (p[1] & 0xe0) | 0x12 | (mod == 3 ? 0x40 : 0); /* R X B, map 0F38 */
    to[2] = (p[2] & 0x78) | 0x05;                         /* vvvv, 66 */
    to[3] = (p[2] & 4 ? 0x20 : 0) | 0x08;                 /* length */
    to[4] = p[3];
    to[5] = p[4];
    if (mod != 1) {
        memcpy(to + n, p + 5, length - 5);
        return n + length - 5;
    }
    to[5] = (uint8_t)((p[4] & 0x3f) | 0x80); /* a 32-bit displacement instead */
    if (rm == 4)
        to[n++] = p[5];

    const int32_t disp = (int8_t)p[length - 1];

    memcpy(to + n, &disp, sizeof(disp));
    return n + sizeof(disp);
}

static void vnni_jump(uint8_t *at, const uint8_t *to)
{
    const int32_t by = (int32_t)(to - (at + 5));

    at[0] = 0xe9;
    memcpy(at + 1, &by, sizeof(by));
}

static void vnni_overwrite(uint8_t *p, size_t length)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t first = (uintptr_t)p & -page;
    uint8_t *twin = vnni_twins.next;
    size_t n;

    if (vnni_twins.end - twin < 32)
        return;
    n = vnni_twin(p, length, twin);
    if (n == 0 || mprotect((void *)first, (uintptr_t)p + 5 - first,
                           PROT_READ | PROT_WRITE | PROT_EXEC) != 0)
        return;
    vnni_jump(twin + n, p + length);
    vnni_twins.next = twin + n + 5;
    vnni_jump(p, twin);
}

/* Leaves no room for twins where they are impossible. */
static void vnni_open_twins(void)
{
    const uintptr_t here = (uintptr_t)vnni_open_twins, reach = 1u << 30;
    uint8_t *got;

    if (vnni_twins.end != NULL || !__builtin_cpu_supports("avx512vnni") ||
        !__builtin_cpu_supports("avx512vl"))
        return;
    got = mmap((void *)(here - reach / 2), VNNI_TWINS_BYTES,
               PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (got == MAP_FAILED || (uintptr_t)got + reach - here > 2 * reach)
        return;
    vnni_twins.next = got;
    vnni_twins.end = got + VNNI_TWINS_BYTES;
}

/* ---- the handler ----------------------------------------------------------------- */

static void vnni_on_signal(int signum, siginfo_t *info, void *context)
{
    ucontext_t *uc = context;
    const struct vnni_frame f = {uc->uc_mcontext.gregs,
                                 (uint8_t *)uc->uc_mcontext.fpregs};
    struct vnni_instruction i;
    int n_done = 0;

    (void)info;
    /* one signal serves all that follow each other */
    while (vnni_decode(&f, (const uint8_t *)(uintptr_t)f.regs[REG_RIP], &i)) {
        uint8_t *p = (uint8_t *)(uintptr_t)f.regs[REG_RIP];

        vnni_execute(&f, &i);
        vnni_overwrite(p, i.length);
        f.regs[REG_RIP] += (greg_t)i.length;
        n_done++;
    }
    if (n_done == 0)
        signal(signum, SIG_DFL); /* returns to the instruction, and dies of it */
}

static inline void avxvnni_trap(void)
{
    struct sigaction action = {.sa_sigaction = vnni_on_signal, .sa_flags = SA_SIGINFO};

    vnni_open_twins();
    sigaction(SIGILL, &action, NULL);
}

#endif
