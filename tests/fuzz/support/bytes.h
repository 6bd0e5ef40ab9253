/* SPDX-License-Identifier: MIT
 *
 * bytes.h - decisions taken from the bytes of a fuzz input
 *
 * A structure-aware target makes a well-formed file with odd values: each decision
 * takes the next bytes, and 0 once there are none.
 *
 * Threading: data of one owner.
 */
#ifndef SLM_TESTS_FUZZ_BYTES_H
#define SLM_TESTS_FUZZ_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct bytes {
    const uint8_t *at;
    size_t n;
};

static inline void bytes_take(struct bytes *b, void *out, size_t n)
{
    const size_t have = n < b->n ? n : b->n;

    memset(out, 0, n);
    if (have)
        memcpy(out, b->at, have);
    b->at += have;
    b->n -= have;
}

static inline uint8_t bytes_u8(struct bytes *b)
{
    uint8_t v;

    bytes_take(b, &v, 1);
    return v;
}

/* 0 .. n - 1, n at most 65536. */
static inline uint32_t bytes_below(struct bytes *b, uint32_t n)
{
    uint16_t v;

    if (n <= 256)
        return bytes_u8(b) % n;
    bytes_take(b, &v, 2);
    return v % n;
}

/* A number, mostly small, often at an edge of a type. */
static inline uint64_t bytes_number(struct bytes *b)
{
    static const uint64_t edge[] = {0,          1,
                                    31,         32,
                                    127,        128,
                                    255,        256,
                                    65535,      65536,
                                    INT32_MAX,  (uint64_t)INT32_MAX + 1,
                                    UINT32_MAX, (uint64_t)UINT32_MAX + 1,
                                    INT64_MAX,  (uint64_t)INT64_MAX + 1,
                                    UINT64_MAX, UINT64_MAX - 31};
    const uint8_t how = bytes_u8(b);
    uint64_t v;

    if (how < 0x80)
        return how % 16;
    if (how < 0xe0)
        return edge[bytes_below(b, sizeof edge / sizeof *edge)];
    bytes_take(b, &v, 8);
    return v;
}

static inline float bytes_float(struct bytes *b)
{
    static const float odd[] = {0.0f, 1.0f, -1.0f, 1e-30f, 1e30f, 10000.0f};
    const uint8_t how = bytes_u8(b);
    float v;

    if (how < 0x80)
        return odd[how % 6];
    bytes_take(b, &v, sizeof v);
    return v;
}

/* One of n texts. */
static inline const char *bytes_of(struct bytes *b, const char *const *texts, size_t n)
{
    return texts[bytes_below(b, (uint32_t)n)];
}

/* A text of up to cap - 1 bytes of any kind but zero; returns buf. */
static inline char *bytes_word(struct bytes *b, char *buf, size_t cap)
{
    const size_t n = bytes_below(b, (uint32_t)cap);

    bytes_take(b, buf, n);
    for (size_t i = 0; i < n; i++)
        buf[i] = buf[i] ? buf[i] : 'a';
    buf[n] = '\0';
    return buf;
}

#endif
