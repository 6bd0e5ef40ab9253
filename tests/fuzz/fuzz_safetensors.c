/* SPDX-License-Identifier: MIT
 *
 * fuzz_safetensors.c - the header of a safetensors file, and the index of several
 *
 * What begins with '{' is the JSON of a header, to which length and data are added, or,
 * with a weight_map, an index beside two small files. All else is a file as it is.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/hf/safetensors.h"
#include "tests/fuzz/support/mutate.h"
#include "tests/fuzz/support/oracle.h"

#define DATA_BYTES 4096

static void check(struct safetensors *s, uint64_t file_bytes)
{
    for (size_t i = 0; i < safetensors_count(s) && i < 64; i++) {
        const struct safetensor *t = safetensors_at(s, i);

        if (t->offset > file_bytes || t->bytes > file_bytes - t->offset)
            fuzz_fail("tensor %zu lies outside of its file", i);
        for (size_t k = 0; k < i; k++) {
            const struct safetensor *u = safetensors_at(s, k);

            if (u->file == t->file && u->offset < t->offset + t->bytes &&
                t->offset < u->offset + u->bytes)
                fuzz_fail("tensors %zu and %zu share bytes", k, i);
        }
    }
    safetensors_close(s);
}

static void read_image(const uint8_t *data, size_t size)
{
    struct err err = ERR_INIT;
    struct safetensors *s;

    if (fuzz_accepted(safetensors_parse(&s, data, size, "fuzz", &err), &err))
        check(s, size);
}

/* The file with this header. */
static uint8_t *with_header(const void *json, size_t n, size_t *size)
{
    const uint64_t length = n;
    uint8_t *image = calloc(1, 8 + n + DATA_BYTES);

    if (!image)
        fuzz_fail("no memory for a header");
    memcpy(image, &length, 8);
    memcpy(image + 8, json, n);
    *size = 8 + n + DATA_BYTES;
    return image;
}

static void read_index(const uint8_t *data, size_t size)
{
    static const char shard[][90] = {
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[0,16]}}",
        "{\"b\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[0,4]}}"};
    struct err err = ERR_INIT;
    struct safetensors *s;
    size_t bytes = 0;

    for (int i = 0; i < 2; i++) {
        uint8_t *image = with_header(shard[i], strlen(shard[i]), &bytes);

        fuzz_file(i ? "2.safetensors" : "1.safetensors", image,
                  8 + strlen(shard[i]) + (i ? 4 : 16));
        free(image);
    }
    fuzz_file("model.safetensors.index.json", data, size);
    if (fuzz_accepted(safetensors_open(&s, fuzz_dir(), &err), &err))
        check(s, bytes);
}

static void read_any(const uint8_t *data, size_t size)
{
    size_t bytes;

    if (!size || data[0] != '{') {
        read_image(data, size);
    } else if (memmem(data, size, "weight_map", 10)) {
        read_index(data, size);
    } else {
        fuzz_input_grows(DATA_BYTES);
        uint8_t *image = with_header(data, size, &bytes);

        read_image(image, bytes);
        free(image);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_run(read_any, data, size, FUZZ_BOUND);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned seed)
{
    static const char *const words[] = {"F32",
                                        "F16",
                                        "BF16",
                                        "F64",
                                        "BOOL",
                                        "I8",
                                        "F8",
                                        "dtype",
                                        "shape",
                                        "data_offsets",
                                        "__metadata__",
                                        "format",
                                        "pt",
                                        "weight_map",
                                        "1.safetensors",
                                        "2.safetensors",
                                        "metadata",
                                        "a",
                                        "b",
                                        "a.safetensors",
                                        NULL};

    return mutate_json(data, size, max_size, seed, words);
}
