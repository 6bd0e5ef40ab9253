/* SPDX-License-Identifier: MIT
 *
 * test_layout.c - the order of bytes in panels is part of a file format: it may not
 * change without another GGUF_LAYOUT_VERSION
 */
#include "tests/support/test.h"

#include <inttypes.h>
#include <xxhash.h>

#include "engine/gguf/gguf_panels.h"
#include "kernels/isa.h"

/* Of a row: whole groups (kern_panel_group()) of 2 and of 4, and one that is not. */
#define N_BLOCKS 11

/* XXH3 of the panel of 16 rows of random bytes, in the layout of this version. Where a
 * format is new, its row is added; where a row has changed, GGUF_LAYOUT_VERSION
 * increases, and RECORDED_VERSION and the rows follow. */
#define RECORDED_VERSION 1

static const struct {
    const char *format;
    uint64_t checksum;
} recorded[] = {
    {"q4_0", 0xbbe7ae8b609387a8},   {"q8_0", 0xcee614ab22b1e0dd},
    {"q4_1", 0xd5d9161072e18438},   {"q5_0", 0xc746afb5bac91d78},
    {"q5_1", 0x9dd09c551205a64b},   {"iq4_nl", 0xbbe7ae8b609387a8},
    {"iq4_xs", 0xa03478f0fbb973a9}, {"mxfp4", 0x312b3d45c55b664e},
    {"q2_K", 0x1a0083890d5c9c01},   {"q3_K", 0x7d361dc4445aad87},
    {"q4_K", 0x3345f2215c4c0b9a},   {"q5_K", 0x04943432e812cf91},
    {"q6_K", 0x1b260faa2daed168},   {"iq3_xxs", 0x07f4b3c0b133fcd7},
    {"iq3_s", 0x86c9c0291c9575cd},  {"tq1_0", 0x7cc20b6c13923211},
    {"tq2_0", 0x404e06fdad1b2b29},  {"iq2_xxs", 0xb807df0e2984ff60},
    {"iq2_xs", 0xbd0fe97c6ab38889}, {"iq2_s", 0x5ffef4ff847ced60},
    {"iq1_s", 0xc7694b5419353d34},  {"iq1_m", 0x1d661fa49b7dcbad},
    {"nvfp4", 0xcfb7c2bd0ce4e246},  {"q1_0", 0xbbe7ae8b609387a8},
    {"q2_0", 0xbbe7ae8b609387a8},   {"q2_0_128", 0xcee614ab22b1e0dd},
};

static uint64_t panel_checksum(const struct kern_row *pack)
{
    const enum kern_format fmt = (enum kern_format)pack->what;
    const size_t k = N_BLOCKS * (size_t)kern_format_info(fmt)->block_elems;
    const size_t row = kern_format_bytes(fmt, k);
    const size_t bytes = KERN_PANEL_ROWS * row;
    unsigned char *rows = malloc(bytes),
                  *panel = aligned_alloc(64, (bytes + 63) / 64 * 64);
    uint64_t rng = 1, sum;

    assert_true(rows && panel);
    for (size_t i = 0; i < bytes; i++)
        rows[i] = (unsigned char)test_random(&rng);
    pack->fn.pack(k, rows, row, panel);
    sum = XXH3_64bits(panel, bytes);
    free(rows);
    free(panel);
    return sum;
}

static const uint64_t *find(const char *format)
{
    for (size_t i = 0; i < sizeof recorded / sizeof *recorded; i++)
        if (!strcmp(recorded[i].format, format))
            return &recorded[i].checksum;
    return NULL;
}

static void panels_are_those_of_the_version(void **state)
{
    size_t n;
    const struct kern_row *rows = kern_rows(&n);
    bool failed = false;

    (void)state;
    assert_int_equal(GGUF_LAYOUT_VERSION, RECORDED_VERSION);
    for (size_t i = 0; i < n; i++) {
        if (rows[i].op != KERN_OP_pack || !(isa_usable() >> rows[i].isa & 1))
            continue;
        const char *format = kern_format_info((enum kern_format)rows[i].what)->name;
        const uint64_t *want = find(format), have = panel_checksum(&rows[i]);

        if (want && *want == have)
            continue;
        print_error("{\"%s\", 0x%016" PRIx64 "}, not recorded, by %s\n", format, have,
                    rows[i].name);
        failed = true;
    }
    if (failed)
        fail_msg("panels have another layout than files of version %u: increase "
                 "GGUF_LAYOUT_VERSION, or record the new format",
                 GGUF_LAYOUT_VERSION);
}

/* Every format that has panels has its row. */
static void every_format_is_recorded(void **state)
{
    (void)state;
    for (int fmt = 0; fmt < KERN_N_FMT; fmt++) {
        const char *name = kern_format_info((enum kern_format)fmt)->name;

        if (gguf_has_panels((enum kern_format)fmt) != (find(name) != NULL))
            fail_msg("%s is %srecorded", name, find(name) ? "" : "not ");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(panels_are_those_of_the_version),
        cmocka_unit_test(every_format_is_recorded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
