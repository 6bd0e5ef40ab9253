/* SPDX-License-Identifier: MIT
 *
 * fuzz_quality.c - stored records of `bench quality`: a file of this program's records
 * of which some bytes are others
 *
 * The first bytes choose the records and the changes; a file that begins with "raw" is
 * what follows.
 */
#include <string.h>

#include "harness/measure/quality/quality_job.h"
#include "tests/fuzz/support/bytes.h"
#include "tests/fuzz/support/oracle.h"

#define KEY          7
#define RECORD_BYTES 24
#define MAX_BYTES    4096

static void use_store(const char *path)
{
    struct err err = ERR_INIT;
    struct quality_store *s;
    uint8_t record[RECORD_BYTES];

    if (!fuzz_accepted(quality_store_open(&s, path, KEY, RECORD_BYTES, &err), &err))
        return;
    const size_t n = quality_store_n(s);

    for (size_t i = 0; i < n; i++)
        fuzz_accepted(quality_store_read(s, i, record, &err), &err);
    memset(record, 1, sizeof record);
    if (!fuzz_accepted(quality_store_append(s, record, &err), &err) ||
        !fuzz_accepted(quality_store_read(s, n, record, &err), &err) || record[0] != 1)
        fuzz_fail("a record is written and not read");
    fuzz_accepted(quality_store_cut(s, n / 2, &err), &err);
    quality_store_close(s);
}

/* A sound file of n records, in image; returns its size. */
static size_t make_store(uint8_t *image, const char *path, size_t n)
{
    struct err err = ERR_INIT;
    struct quality_store *s;
    uint8_t record[RECORD_BYTES] = {0};
    size_t size;
    FILE *f;

    remove(path);
    if (!fuzz_accepted(quality_store_open(&s, path, KEY, RECORD_BYTES, &err), &err))
        fuzz_fail("no store can be made");
    for (size_t i = 0; i < n; i++) {
        record[0] = (uint8_t)i;
        if (!fuzz_accepted(quality_store_append(s, record, &err), &err))
            fuzz_fail("no record can be written");
    }
    quality_store_close(s);
    f = fopen(path, "rb");
    size = f ? fread(image, 1, MAX_BYTES, f) : 0;
    if (f)
        fclose(f);
    return size;
}

static void read_store(const uint8_t *data, size_t size)
{
    struct bytes b = {data, size};
    uint8_t image[MAX_BYTES];
    size_t n;

    if (size > 3 && !memcmp(data, "raw", 3)) {
        use_store(fuzz_file("store", data + 3, size - 3));
        return;
    }
    n = make_store(image, fuzz_path("store"), bytes_below(&b, 20));
    for (uint32_t i = bytes_below(&b, 5); i && n; i--)
        image[bytes_below(&b, (uint32_t)n)] = bytes_u8(&b);
    if (bytes_u8(&b) & 1)
        n -= bytes_below(&b, (uint32_t)n + 1);
    use_store(fuzz_file("store", image, n));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_run(read_store, data, size, FUZZ_BOUND);
}
