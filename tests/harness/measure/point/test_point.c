/* SPDX-License-Identifier: MIT
 *
 * test_point.c - a point's identity, command line and JSON
 */
#include "tests/support/test.h"

#include <sys/resource.h>

#include "harness/measure/point/point_measure.h"

static struct topology *topo; /* eight CPUs, four recommended */

static void sample_point(struct point *p)
{
    point_init(p);
    strcpy(p->setup.model.text, "nano:Q4_K_M");
    strcpy(p->setup.model.name, "nano");
    strcpy(p->setup.model.path, "/cache/nano-Q4_K_M.gguf");
    p->setup.model.synthetic = true;
    p->setup.model.mix = QUANTMIX_Q4_K_M;
    p->setup.n_threads = 2;
    p->ctx = 1024;
    p->setup.mem_limit = UINT64_C(6) << 30;
}

static void ids(void **state)
{
    struct point p;
    char id[96], other[96];

    (void)state;
    sample_point(&p);
    point_id(&p, id, sizeof id);
    assert_string_equal(id, "nano:Q4_K_M/decode/t2/spread/ctx1024/6G");
    p.setup.n_threads_prefill = 4;
    point_id(&p, id, sizeof id);
    assert_string_equal(id, "nano:Q4_K_M/decode/t2p4/spread/ctx1024/6G");
    assert_int_equal(model_setup_threads(&p.setup), 4);
    p.setup.n_threads_prefill = 0;
    assert_int_equal(model_setup_threads(&p.setup), 2);
    p.ctx_prefill = true;
    p.setup.mem_limit = 0;
    p.setup.placement = PLACEMENT_NONE;
    point_id(&p, id, sizeof id);
    assert_string_equal(id, "nano:Q4_K_M/decode/t2/none/ctx1024p");
    p.kind = POINT_PREFILL;
    p.n_prompt = 128;
    p.setup.residency = WEIGHTS_MEMORY;
    p.setup.explicit_cpus = true;
    p.setup.cpus[0] = 3;
    p.setup.cpus[1] = 4;
    point_id(&p, id, sizeof id);
    assert_string_equal(id, "nano:Q4_K_M/memory/prefill128/t2/cpus3-4");

    p.kind = POINT_SPECULATE;
    p.setup.explicit_cpus = false;
    strcpy(p.text, "copy");
    p.ctx = 0;
    point_id(&p, id, sizeof id);
    assert_string_equal(id, "nano:Q4_K_M/memory/text-copy/t2/none");
    p.ctx = 900;
    strcpy(p.text, "/a/copy.txt");
    point_id(&p, id, sizeof id);
    strcpy(p.text, "/b/copy.txt");
    point_id(&p, other, sizeof other);
    assert_string_not_equal(id, other);
    assert_non_null(strstr(id, "/text-copy.txt~"));
    assert_non_null(strstr(id, "/ctx900p"));
    point_text_name(&p, id, sizeof id);
    assert_string_equal(id, "copy");
    p.n_prompt = 1000;
    assert_int_equal(point_depth(&p), 1000);
    p.n_prompt = 300;
    assert_int_equal(point_depth(&p), 900);
    p.kind = POINT_PREFILL;

    /* names too long for the column stay distinct */
    p.setup.model.synthetic = false;
    memset(p.setup.model.name, 'x', sizeof p.setup.model.name - 1);
    strcpy(p.setup.model.path, "/a/model.gguf");
    point_id(&p, id, sizeof id);
    strcpy(p.setup.model.path, "/b/model.gguf");
    point_id(&p, other, sizeof other);
    assert_true(strlen(id) < sizeof id - 1);
    assert_string_not_equal(id, other);
}

/* Split a command line as a shell would, for words without escapes. */
static int split(char *line, char **argv, int max)
{
    int n = 0;

    for (char *c = line; *c && n < max;) {
        const char end = *c == '\'' ? '\'' : ' ';

        argv[n++] = c += *c == '\'';
        while (*c && *c != end)
            c++;
        while (*c && (*c == ' ' || *c == '\''))
            *c++ = '\0';
    }
    return n;
}

static void check_same(const struct point *a, const struct point *b)
{
    char x[96], y[96];

    point_id(a, x, sizeof x);
    point_id(b, y, sizeof y);
    assert_string_equal(x, y);
    assert_int_equal(a->kind, b->kind);
    assert_string_equal(a->text, b->text);
    assert_int_equal(a->n_tokens, b->n_tokens);
    assert_int_equal(a->setup.n_batch, b->setup.n_batch);
    assert_true(a->budget_s == b->budget_s);
    assert_true(a->setup.seed == b->setup.seed);
    assert_true(a->setup.mem_limit == b->setup.mem_limit);
    assert_int_equal(a->force, b->force);
    assert_int_equal(a->setup.residency, b->setup.residency);
    assert_int_equal(a->setup.kv_type, b->setup.kv_type);
}

/* The command in a row gives the same point again. */
static void command_round_trip(void **state)
{
    struct point_options o;
    struct point p;
    char line[400], *argv[64];

    (void)state;
    for (int i = 0; i < 16; i++) {
        struct err err = ERR_INIT;
        int argc;

        sample_point(&p);
        p.kind = i & 1 ? POINT_PREFILL : i & 2 ? POINT_SPECULATE : POINT_DECODE;
        if (p.kind == POINT_SPECULATE)
            strcpy(p.text, "free");
        p.n_prompt = i & 1 ? 100 : 0;
        p.ctx = i & 1 ? 0 : 77;
        p.ctx_prefill = !(i & 1) && i & 2;
        p.setup.explicit_cpus = i & 4;
        p.setup.cpus[0] = 0;
        p.setup.cpus[1] = 5;
        p.force = i & 8;
        p.setup.residency = i & 8   ? WEIGHTS_MEMORY
                            : i & 4 ? WEIGHTS_PACKED
                                    : WEIGHTS_MMAP;
        p.setup.kv_type = i % KERN_N_KV;
        p.setup.mem_limit = i & 2 ? UINT64_C(2560) << 20 : 0;
        p.setup.placement = i & 2 ? PLACEMENT_COMPACT : PLACEMENT_NONE;
        p.setup.n_batch = 17 + i;
        p.n_tokens = 99;
        p.budget_s = 2.5;
        p.setup.seed = UINT64_C(12345678901234567890);
        point_command(&p, line, sizeof line);
        argc = split(line, argv, 64);
        assert_string_equal(argv[1], "decode");
        if (point_options_parse(&o, argc - 1, argv + 1, topo, &err))
            fail_msg("%s", err.msg);
        check_same(&p, &o.point);
    }
    sample_point(&p);
    strcpy(p.setup.model.text, "it's a model.gguf");
    point_command(&p, line, sizeof line);
    assert_non_null(strstr(line, " -m 'it'\\''s a model.gguf' -t 2"));
}

static void options_are_checked(void **state)
{
    static const struct {
        const char *line, *says;
    } bad[] = {
        {"decode", "name the model"},
        {"decode -m nano:Q4_K_M --speculate copy --prefill 5", "exclude each other"},
        {"decode -m nano:Q4_K_M --speculate nothing", "come with the program"},
        {"decode -m nano:Q4_K_M --speculate ./nothing", "cannot open the text"},
        {"decode -m nano:Q4_K_M --cpus 0 -t 2", "1 CPU for 2 threads"},
        {"decode -m nano:Q4_K_M --cpus 0 --placement none", "exclude each other"},
        {"decode -m nano:Q4_K_M --cpus 1023", "not run on CPU 1023"},
        {"decode -m nano:Q4_K_M --placement sideways", "sideways"},
        {"decode -m nano:Q4_K_M --mem lots", "lots"},
        {"decode -m nano:Q4_K_M extra", "extra"},
        {"decode -m /nowhere.gguf", "/nowhere.gguf"},
        {"decode -m nano:Q4_K_M -t 0", "outside"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct point_options o;
        struct err err = ERR_INIT;
        char line[128], *argv[16];

        snprintf(line, sizeof line, "%s", bad[i].line);
        const int argc = split(line, argv, 16);
        assert_int_equal(point_options_parse(&o, argc, argv, topo, &err), ST_USAGE);
        if (!strstr(err.msg, bad[i].says))
            fail_msg("'%s' says: %s", bad[i].line, err.msg);
    }
}

static void json_round_trip(void **state)
{
    struct point in, out;
    struct err err = ERR_INIT;
    json_t *object;

    (void)state;
    sample_point(&in);
    in.setup.explicit_cpus = true;
    in.setup.n_threads_prefill = 3;
    in.setup.cpus[0] = 7;
    in.setup.cpus[1] = 9;
    in.setup.cpus[2] = 8;
    in.setup.seed = UINT64_MAX;
    in.setup.isa_disabled = 5;
    in.budget_s = 0.125;
    object = point_json(&in);
    assert_non_null(object);
    assert_int_equal(point_from_json(&out, object, &err), ST_OK);
    assert_string_equal(out.setup.model.text, in.setup.model.text);
    assert_string_equal(out.setup.model.path, in.setup.model.path);
    assert_int_equal(out.setup.n_threads_prefill, 3);
    assert_int_equal(out.setup.cpus[1], 9);
    assert_int_equal(out.setup.cpus[2], 8);
    assert_int_equal(out.setup.isa_disabled, 5);
    assert_true(out.setup.seed == in.setup.seed && out.budget_s == in.budget_s);

    json_object_set_new(object, "n_threads", json_integer(4));
    assert_int_equal(point_from_json(&out, object, &err), ST_USAGE);
    err_clear(&err);
    json_object_set_new(object, "n_threads", json_string("2"));
    assert_int_equal(point_from_json(&out, object, &err), ST_USAGE);
    json_decref(object);
}

/* Whatever keeps a point from being measured, its row names it: here no file can be
 * opened, so the machine's memory is unknown. */
static void an_error_has_a_row(void **state)
{
    struct point p;
    struct row row;
    struct point_samples samples = {0};
    struct err err = ERR_INIT;
    struct rlimit limit, none;
    char id[96];

    (void)state;
    sample_point(&p);
    point_id(&p, id, sizeof id);
    row_init(&row);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = limit;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    const enum status st = point_run(&p, topo, &row, &samples, NULL, NULL, &err);

    setrlimit(RLIMIT_NOFILE, &limit);
    assert_int_not_equal(st, ST_OK);
    assert_true(strlen(err.msg) > 0);
    assert_string_equal(row.point, id);
    assert_string_equal(row.model, "nano");
    point_samples_free(&samples);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids),
        cmocka_unit_test(command_round_trip),
        cmocka_unit_test(options_are_checked),
        cmocka_unit_test(json_round_trip),
        cmocka_unit_test(an_error_has_a_row),
    };

    topo = calloc(1, sizeof *topo);
    topo->n_cpus = topo->n_allowed = topo->n_cores = 8;
    topo->threads_default = 4;
    for (int i = 0; i < topo->n_cpus; i++)
        topo->cpu[i] = (struct topo_cpu){.os_id = i, .core = i, .allowed = true};
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(topo);
    return failed;
}
