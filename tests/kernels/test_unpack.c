/* SPDX-License-Identifier: MIT
 *
 * test_unpack.c - rows that went into a panel come out of it, byte by byte
 */
#include "tests/support/test.h"

#include <stdlib.h>

#include "kernels/kernels.h"

static void fill_bytes(unsigned char *p, size_t n, uint64_t *seed)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (unsigned char)test_random(seed);
}

static void check_row(const struct kern_row *row, size_t n_blocks, uint64_t *seed)
{
    const struct kern_format_info *info = kern_format_info((enum kern_format)row->what);
    const struct kern_row *pack = kern_best(KERN_OP_pack, row->what, 1u << row->isa);
    const size_t k = n_blocks * info->block_elems, bytes = n_blocks * info->block_bytes;
    const size_t stride = bytes + 3;
    unsigned char *rows = guard_alloc(KERN_PANEL_ROWS * stride);
    unsigned char *panel = guard_alloc(KERN_PANEL_ROWS * bytes);
    unsigned char *dst = guard_alloc(bytes);

    assert_non_null(pack);
    fill_bytes(rows, KERN_PANEL_ROWS * stride, seed);
    pack->fn.pack(k, rows, stride, panel);
    for (size_t r = 0; r < KERN_PANEL_ROWS; r++) {
        memset(dst, 0, bytes);
        row->fn.unpack(k, panel, r, dst);
        if (memcmp(dst, rows + r * stride, bytes) != 0)
            fail_msg("%s: row %zu of %zu blocks differs", row->name, r, n_blocks);
    }
    guard_free(rows, KERN_PANEL_ROWS * stride);
    guard_free(panel, KERN_PANEL_ROWS * bytes);
    guard_free(dst, bytes);
}

static void unpack(void **state)
{
    size_t n, n_run = 0, n_pack = 0;
    const struct kern_row *rows = kern_rows(&n);
    uint64_t seed = 41;

    (void)state;
    for (size_t i = 0; i < n; i++) {
        if (!(isa_usable() >> rows[i].isa & 1))
            continue;
        n_pack += rows[i].op == KERN_OP_pack;
        if (rows[i].op != KERN_OP_unpack)
            continue;
        /* whole groups of blocks and parts of them */
        for (size_t n_blocks = 1; n_blocks < 12; n_blocks++)
            check_row(&rows[i], n_blocks, &seed);
        n_run++;
    }
    assert_int_equal(n_run, n_pack); /* not every level has panels */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unpack),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
