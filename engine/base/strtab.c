/* SPDX-License-Identifier: MIT
 *
 * strtab.c - open addressing with linear probing, at most half full
 */
#include "engine/base/strtab.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

struct strtab_slot {
    const char *data; /* NULL: free */
    uint32_t len;
    uint32_t id;
};

static inline uint64_t rotl(uint64_t x, int n)
{
    return x << n | x >> (64 - n);
}

static inline void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[2] += v[3];
    v[1] = rotl(v[1], 13) ^ v[0];
    v[3] = rotl(v[3], 16) ^ v[2];
    v[0] = rotl(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = rotl(v[1], 17) ^ v[2];
    v[3] = rotl(v[3], 21) ^ v[0];
    v[2] = rotl(v[2], 32);
}

static uint64_t siphash13(const uint64_t key[2], const char *data, size_t len)
{
    uint64_t v[4] = {key[0] ^ 0x736f6d6570736575u, key[1] ^ 0x646f72616e646f6du,
                     key[0] ^ 0x6c7967656e657261u, key[1] ^ 0x7465646279746573u};
    size_t i = 0;

    for (; i + 8 <= len; i += 8) {
        uint64_t word;

        memcpy(&word, data + i, 8);
        v[3] ^= word;
        sip_round(v);
        v[0] ^= word;
    }
    uint64_t last = (uint64_t)len << 56; /* the length's low byte, then the tail */

    for (int shift = 0; i < len; i++, shift += 8)
        last |= (uint64_t)(unsigned char)data[i] << shift;
    v[3] ^= last;
    sip_round(v);
    v[0] ^= last;
    v[2] ^= 0xff;
    for (int r = 0; r < 3; r++)
        sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

enum status strtab_init(struct strtab *t, size_t n_max, struct err *err)
{
    size_t n_slots = 16;
    uint64_t key[2];

    while (n_slots / 2 < n_max && n_slots <= SIZE_MAX / 4)
        n_slots *= 2;
    struct strtab_slot *slots = calloc(n_slots, sizeof *slots);

    if (!slots)
        return err_set(err, ST_NO_MEMORY, "cannot allocate an index of %zu names",
                       n_max);
    if (getrandom(key, sizeof key, GRND_NONBLOCK) != (ssize_t)sizeof key) {
        struct timespec now;

        /* Early boot: with a predictable key a hostile file can only cost time. */
        clock_gettime(CLOCK_MONOTONIC, &now);
        key[0] = (uint64_t)now.tv_nsec * 0x9e3779b97f4a7c15u;
        key[1] = (uint64_t)(uintptr_t)slots ^ (uint64_t)now.tv_sec;
    }
    *t = (struct strtab){.slots = slots, .mask = n_slots - 1, .key = {key[0], key[1]}};
    return ST_OK;
}

void strtab_free(struct strtab *t)
{
    free(t->slots);
    *t = (struct strtab){0};
}

/* The slot that holds the string, or the free slot for it. */
static struct strtab_slot *probe(const struct strtab *t, const char *data, size_t len)
{
    size_t i = siphash13(t->key, data, len) & t->mask;

    while (t->slots[i].data &&
           (t->slots[i].len != len || memcmp(t->slots[i].data, data, len)))
        i = (i + 1) & t->mask;
    return &t->slots[i];
}

uint32_t strtab_put(struct strtab *t, const char *data, uint32_t len, uint32_t id)
{
    assert(t->slots && data && id != STRTAB_NONE);

    struct strtab_slot *slot = probe(t, data, len);

    if (slot->data)
        return slot->id;
    *slot = (struct strtab_slot){.data = data, .len = len, .id = id};
    return STRTAB_NONE;
}

uint32_t strtab_find(const struct strtab *t, const char *data, size_t len)
{
    if (!t->slots)
        return STRTAB_NONE;
    const struct strtab_slot *slot = probe(t, data, len);

    return slot->data ? slot->id : STRTAB_NONE;
}
