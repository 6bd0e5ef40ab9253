/* SPDX-License-Identifier: MIT
 *
 * test_residency.c - the plan of what stays in memory, on files with random tensors
 */
#include "tests/support/test.h"

#include "engine/base/random.h"
#include "engine/gguf/gguf.h"
#include "engine/weights/residency.h"
#include "tests/support/gguf_build.h"

#define MAX_TENSORS 512
#define I8          24

struct file {
    unsigned char *image;
    struct gguf *g;
    int n_layers;
};

/* n_layers layers of 1 to 4 tensors of random sizes, in random order; an embedding
 * table, an output matrix if it is not tied, and a layer that is not computed. */
static struct file make_file(uint64_t *random, int n_layers, bool tied)
{
    struct file f = {.n_layers = n_layers};
    struct build b = build_new();
    struct {
        char name[48];
        uint64_t bytes;
    } t[MAX_TENSORS];
    struct err err = ERR_INIT;
    uint64_t at = 0;
    int n = 0;

    for (int layer = 0; layer <= n_layers; layer++)
        for (int i = 1 + (int)random_below(random, 4); i > 0; i--) {
            static const char *const names[] = {"ffn_down", "attn_q", "ffn_up",
                                                "ffn_gate"};

            snprintf(t[n].name, sizeof t[n].name, "blk.%d.%s.weight", layer,
                     names[i - 1]);
            t[n++].bytes = 1 + random_below(random, 60000);
        }
    snprintf(t[n].name, sizeof t[n].name, "token_embd.weight");
    t[n++].bytes = 1 + random_below(random, 90000);
    if (!tied) {
        snprintf(t[n].name, sizeof t[n].name, "output.weight");
        t[n++].bytes = 1 + random_below(random, 90000);
    }
    for (int i = n - 1; i > 0; i--) {
        const int k = (int)random_below(random, (uint64_t)i + 1);
        const char *const a = t[i].name;
        char name[48];
        const uint64_t bytes = t[i].bytes;

        memcpy(name, a, sizeof name);
        t[i] = t[k];
        memcpy(t[k].name, name, sizeof name);
        t[k].bytes = bytes;
    }
    put_header(&b, 3, (uint64_t)n, 0);
    for (int i = 0; i < n; i++) {
        put_tensor(&b, t[i].name, I8, 1, &t[i].bytes, at);
        at += (t[i].bytes + 31) / 32 * 32;
    }
    put_padding(&b, 32);
    f.image = aligned_alloc(64, (b.n + at + 63) / 64 * 64);
    assert_non_null(f.image);
    memcpy(f.image, b.data, b.n);
    if (gguf_parse(&f.g, f.image, b.n + at, "random", &err))
        fail_msg("%s", err.msg);
    build_free(&b);
    return f;
}

static void free_file(struct file *f)
{
    gguf_close(f->g);
    free(f->image);
}

/* ---- which layers ---------------------------------------------------------------- */

static void streamed_layers_are_spread(void **state)
{
    (void)state;
    for (int n = 1; n <= 140; n += n < 40 ? 1 : 20)
        for (int s = 1; s <= n; s++) {
            struct residency_plan plan = {.n_layers = n};
            int seen = 0, last;

            residency_stream_evenly(&plan, s);
            last = residency_streamed_layer(&plan, s - 1) - n;

            for (int layer = 0; layer < n; layer++) {
                const int i = residency_streamed_index(&plan, layer);

                if (i < 0)
                    continue;
                assert_int_equal(i, seen++);
                assert_int_equal(residency_streamed_layer(&plan, i), layer);
                assert_in_range(layer - last, n / s, (n + s - 1) / s);
                last = layer;
            }
            assert_int_equal(seen, s);
            assert_int_equal(residency_streamed_index(&plan, -1), -1);
            assert_int_equal(residency_streamed_index(&plan, n), -1);
        }
}

static void layers_of_names(void **state)
{
    static const struct {
        const char *name;
        int layer;
    } names[] = {{"blk.0.attn_q.weight", 0},
                 {"blk.12.x", 12},
                 {"blk.12x", -1},
                 {"blk.-1.x", -1},
                 {"blk.x", -1},
                 {"token_embd.weight", -1},
                 {"blk..x", -1},
                 {"blk.99999999999999999999.x", -1},
                 {"blk.+3.x", -1},
                 {"blk. 3.x", -1}};

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_int_equal(residency_layer(names[i].name), names[i].layer);
}

static void parts_of_names(void **state)
{
    static const struct {
        const char *name;
        enum residency_part part;
    } names[] = {{"blk.0.attn_norm.weight", RESIDENCY_ATTENTION},
                 {"blk.7.attn_qkv.weight", RESIDENCY_ATTENTION},
                 {"blk.7.ssm_out.weight", RESIDENCY_ATTENTION},
                 {"blk.12.ffn_up.weight", RESIDENCY_GATE_UP},
                 {"blk.12.ffn_gate_inp.weight", RESIDENCY_GATE_UP},
                 {"blk.1.ffn_gate.3.weight", RESIDENCY_GATE_UP},
                 {"blk.1.ffn_down.3.weight", RESIDENCY_DOWN},
                 {"blk.1.ffn_down_shexp.weight", RESIDENCY_DOWN}};

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_int_equal(residency_part(names[i].name), names[i].part);
}

/* ---- plans ----------------------------------------------------------------------- */

/* What the plan says, added up again from the tensors. */
static void check_plan(const struct file *f, const struct residency_plan *plan,
                       uint64_t room)
{
    uint64_t kept = 0, disk = 0, streamed = 0, slot = 0, most[RESIDENCY_PARTS] = {0};
    struct residency_map map;
    struct err err = ERR_INIT;

    assert_int_equal(residency_map_make(&map, f->g, f->n_layers, &err), ST_OK);
    for (size_t i = 0; i < gguf_n_tensors(f->g); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(f->g, i);
        const enum residency r = residency_of(plan, f->g, t);

        kept += r == RESIDENCY_KEPT ? (t->bytes + 63) / 64 * 64 : 0;
        disk += r == RESIDENCY_DISK ? t->bytes : 0;
        if (r == RESIDENCY_STREAMED)
            assert_true(residency_streamed_index(plan, residency_layer(t->name)) >= 0);
    }
    for (int i = 0; i < plan->n_streamed; i++) {
        const int layer = residency_streamed_layer(plan, i);

        for (int k = 0; k < RESIDENCY_PARTS; k++) {
            const uint64_t bytes = map.bytes[layer * RESIDENCY_PARTS + k];

            streamed += bytes;
            most[k] = bytes > most[k] ? bytes : most[k];
        }
    }
    for (int k = 0; k < RESIDENCY_PARTS; k++) {
        assert_int_equal(plan->part_bytes[k], most[k]);
        assert_int_equal(residency_place(plan, (enum residency_part)k), slot);
        slot += most[k];
    }
    assert_int_equal(plan->kept_bytes, kept);
    assert_int_equal(plan->disk_bytes, disk);
    assert_int_equal(plan->streamed_bytes, streamed);
    assert_int_equal(plan->slot_bytes, slot);
    assert_true(plan->memory_bytes <= room);
    assert_true(plan->memory_bytes >= kept + slot);
    assert_true(plan->memory_bytes < kept + slot + 4096);
    assert_int_equal(plan->n_slots, plan->n_streamed > 0);
    assert_int_not_equal(plan->n_streamed, 1);
    residency_map_free(&map);
}

static void plans_keep_to_their_room(void **state)
{
    uint64_t random = 1;
    int n_partly = 0;

    (void)state;
    for (int try = 0; try < 60; try++) {
        const int n_layers = 1 + (int)random_below(&random, 16);
        struct file f = make_file(&random, n_layers, try & 1);
        struct residency_plan plan = {.n_layers = -1}, again;
        struct err err = ERR_INIT;
        int last = n_layers + 1;
        struct residency_bounds bounds = {.min_bytes = 0};

        assert_int_equal(residency_plan_make(&plan, f.g, n_layers, UINT64_MAX, &err),
                         ST_OK);
        assert_int_equal(plan.n_streamed, 0);
        check_plan(&f, &plan, UINT64_MAX);
        assert_int_equal(residency_bounds_find(&bounds, f.g, n_layers, &err), ST_OK);
        assert_int_equal(bounds.kept_bytes, plan.memory_bytes);
        assert_int_equal(bounds.disk_bytes, plan.disk_bytes);

        for (uint64_t room = 0; room < 2400000;
             room += 1 + random_below(&random, 60000)) {
            const enum status st =
                residency_plan_make(&plan, f.g, n_layers, room, &err);

            if (st) {
                assert_int_equal(st, ST_NO_MEMORY);
                assert_non_null(strstr(err.msg, "random"));
                assert_true(room < bounds.min_bytes);
                err_clear(&err);
                continue;
            }
            check_plan(&f, &plan, room);
            assert_true(room >= bounds.min_bytes);
            assert_true(plan.n_streamed <= last);
            last = plan.n_streamed;
            n_partly += last > 0;
            assert_int_equal(residency_plan_make(&again, f.g, n_layers, room, &err),
                             ST_OK);
            assert_memory_equal(&plan, &again, sizeof plan);
        }
        free_file(&f);
    }
    assert_true(n_partly > 20);
}

/* Nothing is kept that was not, streamed layers stay so, and runs of kept layers are
 * cut in the middle. */
static void plans_give_memory_back(void **state)
{
    uint64_t random = 3;
    int n_reclaimed = 0;

    (void)state;
    for (int try = 0; try < 40; try++) {
        const int n_layers = 2 + (int)random_below(&random, 90);
        struct file f = make_file(&random, n_layers, try & 1);
        struct residency_plan plan, before;
        struct err err = ERR_INIT;

        assert_int_equal(residency_plan_make(&plan, f.g, n_layers, UINT64_MAX, &err),
                         ST_OK);
        for (;;) {
            const uint64_t less = 1 + random_below(&random, 200000);
            const uint64_t room =
                plan.memory_bytes > less ? plan.memory_bytes - less : 0;

            before = plan;
            if (residency_plan_reclaim(&plan, f.g, room, &err)) {
                assert_int_equal(err.code, ST_NO_MEMORY);
                assert_memory_equal(&plan, &before, sizeof plan);
                break;
            }
            check_plan(&f, &plan, room);
            n_reclaimed++;
            assert_true(plan.n_streamed > before.n_streamed);
            for (int layer = 0; layer < n_layers; layer++)
                if (residency_streamed_index(&before, layer) >= 0)
                    assert_true(residency_streamed_index(&plan, layer) >= 0);
        }
        free_file(&f);
    }
    assert_true(n_reclaimed > 100);
}

static void runs_are_cut_in_the_middle(void **state)
{
    uint64_t random = 4;
    struct file f = make_file(&random, 40, false);
    struct residency_plan plan;
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(residency_plan_make(&plan, f.g, 40, UINT64_MAX, &err), ST_OK);
    while (residency_plan_reclaim(&plan, f.g, plan.memory_bytes - 1, &err) == ST_OK &&
           plan.n_streamed < 10)
        continue;
    for (int i = 1; i < plan.n_streamed; i++)
        assert_in_range(residency_streamed_layer(&plan, i) -
                            residency_streamed_layer(&plan, i - 1),
                        40 / plan.n_streamed / 2, 2 * 40 / plan.n_streamed + 1);
    free_file(&f);
}

/* Every byte of a layer's tensors is in one extent, congruent to its offset; extents do
 * not overlap, neither in the file nor in the slot. */
static void extents_cover_their_tensors(void **state)
{
    uint64_t random = 2;

    (void)state;
    for (int try = 0; try < 40; try++) {
        const int n_layers = 1 + (int)random_below(&random, 16);
        struct file f = make_file(&random, n_layers, false);
        struct residency_plan plan = {.n_layers = n_layers, .n_streamed = n_layers};
        struct residency_map map;
        struct err err = ERR_INIT;

        assert_int_equal(residency_map_make(&map, f.g, n_layers, &err), ST_OK);
        for (int k = 0; k < n_layers * RESIDENCY_PARTS; k++) {
            uint64_t at = 0, end = 0, *most = &plan.part_bytes[k % RESIDENCY_PARTS];

            for (size_t i = map.first[k]; i < map.first[k + 1]; i++) {
                const struct residency_extent *e = &map.extents[i];

                assert_int_equal(e->begin % 4096 + e->end % 4096 + e->at % 4096, 0);
                assert_true(i == map.first[k] || e->begin > end);
                assert_int_equal(e->at, at);
                assert_true(e->end > e->begin);
                end = e->end;
                at += e->end - e->begin;
            }
            assert_int_equal(map.bytes[k], at);
            *most = at > *most ? at : *most;
        }
        for (size_t i = 0; i < gguf_n_tensors(f.g); i++) {
            const struct gguf_tensor *t = gguf_tensor_at(f.g, i);
            const enum residency_part part = residency_part(t->name);
            const int layer = residency_layer(t->name);

            if (layer < 0 || layer >= n_layers)
                continue;
            const uint64_t at = residency_slot_offset(&plan, &map, t);
            const uint64_t place = residency_place(&plan, part);

            assert_int_equal(at % 4096, t->offset % 4096);
            assert_true(at >= place);
            assert_true(at + t->bytes <=
                        place + map.bytes[layer * RESIDENCY_PARTS + (int)part]);
        }
        residency_map_free(&map);
        free_file(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streamed_layers_are_spread),
        cmocka_unit_test(layers_of_names),
        cmocka_unit_test(parts_of_names),
        cmocka_unit_test(plans_keep_to_their_room),
        cmocka_unit_test(plans_give_memory_back),
        cmocka_unit_test(runs_are_cut_in_the_middle),
        cmocka_unit_test(extents_cover_their_tensors),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
