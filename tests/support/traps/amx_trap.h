/* SPDX-License-Identifier: MIT
 *
 * amx_trap.h - AMX-INT8 and AMX-BF16 on x86 CPUs that lack them
 *
 * As avxvnni_trap.h has it: amx_trap() installs a handler of SIGILL that does what the
 * instruction would and goes on behind it, so that the very objects of the level are
 * run. Instructions (Intel SDM vol. 2), VEX.128.0F38.W0; pp is the prefix:
 *
 *   49 /0 memory   LDTILECFG (none)      49 C0          TILERELEASE (none)
 *   49 11:rrr:000  TILEZERO (F2)         5E 11:rrr:bbb  TDPBSSD (F2), TDPBSUD (F3)
 *   4B /r memory   TILELOADD (F2), TILESTORED (F3)
 *   5C 11:rrr:bbb  TDPBF16PS (F3)
 *
 * A CPU that has AMX rejects all but LDTILECFG and TILERELEASE in a process without the
 * kernel's leave; what is configured is in the signal frame then.
 *
 * Of one thread. Anything else that is illegal kills the program.
 */
#ifndef SLM_TESTS_AMX_TRAP_H
#define SLM_TESTS_AMX_TRAP_H

#include "tests/support/traps/avxvnni_trap.h"

enum { AMX_NONE, AMX_66, AMX_F3, AMX_F2 };
enum { XSAVE_TILE_CONFIG = 2752, XSAVE_HAS_TILE_CONFIG = 1 << 17 };

static struct {
    uint8_t rows[8];
    uint16_t row_bytes[8];
    uint8_t tile[8][16][64];
    bool is_configured;
} amx_state;

/* The memory operand with an index byte whose ModRM byte stands at p. */
static uint8_t *amx_address(const struct vnni_frame *f, const uint8_t *p, int x, int b,
                            size_t *stride, const uint8_t **end)
{
    const int index = (p[1] >> 3 & 7) | x;
    uint8_t *at = (uint8_t *)(uintptr_t)vnni_address(f, p, x, b, end);

    *stride = 0;
    if ((p[0] & 7) == 4 && index != 4) {
        *stride = (size_t)(vnni_general(f, index) << (p[1] >> 6));
        at -= *stride; /* the index is the distance of rows */
    }
    return at;
}

/* The 64 bytes of a configuration; tiles are loaded or cleared before they are used. */
static void amx_configure(const uint8_t *from)
{
    for (int i = 0; i < 8; i++) {
        memcpy(&amx_state.row_bytes[i], from + 16 + 2 * i, 2);
        amx_state.rows[i] = from[48 + i];
    }
    amx_state.is_configured = from[0] == 1;
}

static void amx_take_configuration(const struct vnni_frame *f)
{
    uint64_t present;

    memcpy(&present, f->xsave + XSAVE_HEADER, sizeof(present));
    if (present & XSAVE_HAS_TILE_CONFIG)
        amx_configure(f->xsave + XSAVE_TILE_CONFIG);
}

/* What is not part of a tile's rows becomes zero. */
static void amx_load(int t, const uint8_t *from, size_t stride)
{
    memset(amx_state.tile[t], 0, sizeof(amx_state.tile[t]));
    for (size_t r = 0; r < amx_state.rows[t]; r++)
        memcpy(amx_state.tile[t][r], from + r * stride, amx_state.row_bytes[t]);
}

static void amx_store(int t, uint8_t *to, size_t stride)
{
    for (size_t r = 0; r < amx_state.rows[t]; r++)
        memcpy(to + r * stride, amx_state.tile[t][r], amx_state.row_bytes[t]);
}

/* Shapes that do not match raise the same signal where tiles are real. */
static bool amx_fits(int dst, int a, int b)
{
    return dst != a && dst != b && a != b && amx_state.rows[a] == amx_state.rows[dst] &&
           amx_state.rows[b] == amx_state.row_bytes[a] / 4 &&
           amx_state.row_bytes[b] == amx_state.row_bytes[dst];
}

/* Bytes of b are signed or not, those of a are. */
static bool amx_dot(int dst, int a, int b, bool is_signed)
{
    const size_t m = amx_state.rows[dst], n = amx_state.row_bytes[dst] / 4,
                 k = amx_state.row_bytes[a] / 4;

    if (!amx_fits(dst, a, b))
        return false;
    for (size_t i = 0; i < m; i++) {
        uint32_t sum[16];

        memcpy(sum, amx_state.tile[dst][i], sizeof(sum));
        for (size_t e = 0; e < k; e++)
            for (size_t j = 0; j < 4 * n; j++) {
                const uint8_t w = amx_state.tile[b][e][j];

                sum[j / 4] += (uint32_t)((int8_t)amx_state.tile[a][i][4 * e + j % 4] *
                                         (is_signed ? (int)(int8_t)w : (int)w));
            }
        memcpy(amx_state.tile[dst][i], sum, 4 * n);
    }
    return true;
}

/* A row of sums += a row of pairs of bf16 times a tile of pairs. Products of first and
 * of second numbers are added up apart and rounded once each: a product of two bf16 is
 * a float. */
static __attribute__((noinline)) void amx_dot_row(float sum[16], const uint32_t *row,
                                                  uint8_t (*b)[64], size_t k, size_t n)
{
    float of[2][16] = {{0}};

    for (size_t e = 0; e < k; e++) {
        uint32_t w[2][16], x[2] = {row[e] << 16, row[e] & 0xffff0000};
        float fw[2][16], fx[2];

        memcpy(w[1], b[e], sizeof(w[1]));
        for (size_t j = 0; j < 16; j++) {
            w[0][j] = w[1][j] << 16;
            w[1][j] &= 0xffff0000;
        }
        memcpy(fw, w, sizeof(fw));
        memcpy(fx, x, sizeof(fx));
        for (size_t i = 0; i < 2; i++)
            for (size_t j = 0; j < 16; j++)
                of[i][j] += fx[i] * fw[i][j];
    }
    for (size_t j = 0; j < n; j++)
        sum[j] += of[0][j] + of[1][j];
}

/* Whatever MXCSR is: to nearest, no signals, denormals are and become zero. */
static bool amx_dot_bf16(int dst, int a, int b)
{
    const unsigned before = __builtin_ia32_stmxcsr();

    if (!amx_fits(dst, a, b))
        return false;
    __builtin_ia32_ldmxcsr(0x9fc0);
    for (size_t i = 0; i < amx_state.rows[dst]; i++) {
        uint32_t row[16];
        float sum[16];

        memcpy(row, amx_state.tile[a][i], sizeof(row));
        memcpy(sum, amx_state.tile[dst][i], sizeof(sum));
        amx_dot_row(sum, row, amx_state.tile[b], amx_state.rows[b],
                    amx_state.row_bytes[dst] / 4);
        memcpy(amx_state.tile[dst][i], sum, sizeof(sum));
    }
    __builtin_ia32_ldmxcsr(before);
    return true;
}

/* Executes the instruction at p; returns its length, 0 if it is none of these. */
static size_t amx_execute(const struct vnni_frame *f, const uint8_t *p)
{
    const int prefix = p[2] & 3, reg = p[4] >> 3 & 7, rm = p[4] & 7;
    const int x = p[1] & 0x40 ? 0 : 8, b = p[1] & 0x20 ? 0 : 8;
    const bool in_memory = p[4] >> 6 != 3;
    const uint8_t *end = p + 5;
    size_t stride = 0;
    uint8_t *at = NULL;

    if (p[0] != 0xc4 || (p[1] & 31) != 2 || (p[2] & 0x84) != 0 ||
        (p[3] != 0x49 && p[3] != 0x4b && p[3] != 0x5c && p[3] != 0x5e))
        return 0;
    if (in_memory)
        at = amx_address(f, p + 4, x, b, &stride, &end);
    if (p[3] == 0x49 && prefix == AMX_NONE && in_memory)
        amx_configure(at + stride); /* here an index is one */
    else if (p[3] == 0x49 && prefix == AMX_NONE && p[4] == 0xc0)
        amx_state.is_configured = false;
    else if (!amx_state.is_configured)
        return 0;
    else if (p[3] == 0x49 && prefix == AMX_F2 && !in_memory)
        memset(amx_state.tile[reg], 0, sizeof(amx_state.tile[reg]));
    else if (p[3] == 0x4b && prefix == AMX_F2 && in_memory)
        amx_load(reg, at, stride);
    else if (p[3] == 0x4b && prefix == AMX_F3 && in_memory)
        amx_store(reg, at, stride);
    else if (p[3] == 0x5c && prefix == AMX_F3 && !in_memory)
        return amx_dot_bf16(reg, rm, ~(p[2] >> 3) & 15) ? 5 : 0;
    else if (p[3] != 0x5e || in_memory || (prefix != AMX_F2 && prefix != AMX_F3) ||
             !amx_dot(reg, rm, ~(p[2] >> 3) & 15, prefix == AMX_F2))
        return 0;
    return (size_t)(end - p);
}

static void amx_on_signal(int signum, siginfo_t *info, void *context)
{
    ucontext_t *uc = context;
    const struct vnni_frame f = {uc->uc_mcontext.gregs,
                                 (uint8_t *)uc->uc_mcontext.fpregs};
    size_t length, n_done = 0;

    (void)info;
    amx_take_configuration(&f);
    /* one signal serves all that follow each other */
    while ((length = amx_execute(&f, (const uint8_t *)(uintptr_t)f.regs[REG_RIP])) !=
           0) {
        f.regs[REG_RIP] += (greg_t)length;
        n_done++;
    }
    if (n_done == 0)
        signal(signum, SIG_DFL); /* returns to the instruction, and dies of it */
}

static inline void amx_trap(void)
{
    struct sigaction action = {.sa_sigaction = amx_on_signal, .sa_flags = SA_SIGINFO};

    sigaction(SIGILL, &action, NULL);
}

#endif
