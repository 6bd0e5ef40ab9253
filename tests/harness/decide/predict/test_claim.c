/* SPDX-License-Identifier: MIT
 *
 * test_claim.c - CPUs by name, claims as people write them, and what they are worth
 */
#include "tests/support/tree_root.h"

#include <math.h>

#include "harness/decide/predict/claim.h"

#define CPUS SLM_SOURCE_DIR "/configs/cpus.yaml"

static void cpus_are_found_by_their_words(void **state)
{
    struct cpus cpus;
    const struct cpu *cpu = NULL;
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(cpus_load(&cpus, CPUS, &err), ST_OK);
    assert_int_equal(cpus_find(&cpus, "ryzen 5900x", &cpu, &err), ST_OK);
    assert_string_equal(cpu->name, "AMD Ryzen 9 5900X");
    assert_float_equal(cpu->peak_gbps, 51.2, 1e-9);
    assert_int_equal(cpus_find(&cpus, "C7G", &cpu, &err), ST_OK);
    assert_string_equal(cpu->name, "AWS Graviton3");
    assert_int_equal(cpus_find(&cpus, "590", &cpu, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "no CPU is known as '590'"));
    err_clear(&err);
    assert_int_equal(cpus_find(&cpus, "epyc", &cpu, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "may be any of AMD EPYC 7R32, "));
    err_clear(&err);
    assert_int_equal(cpus_find(&cpus, " ", &cpu, &err), ST_USAGE);
    for (size_t i = 0; i < cpus.n; i++) {
        const struct cpu *c = &cpus.v[i];

        /* each can be found by its own name, and says where it is from */
        err_clear(&err);
        if (cpus_find(&cpus, c->name, &cpu, &err) == ST_OK)
            assert_ptr_equal(cpu, c);
        else
            assert_non_null(strstr(err.msg, "may be any of"));
        assert_true(c->source[0] && c->date[0] && c->n_cores > 0);
        assert_true(c->core_gbps < c->peak_gbps);
    }
    cpus_free(&cpus);
}

#define CPU(more) "cpus:\n  - {name: A, memory: m, source: s, date: d, " more "}\n"

static void broken_data_sheets_get_a_sentence(void **state)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"cpus:\n  - {name: '', memory: m, source: s, date: d, cores: 1, peak_gbps: 9}",
         "CPU 1 has no name"},
        {CPU("cores: 0, peak_gbps: 9"), "CPU 1: 0 is outside 1..4096"},
        {CPU("cores: 2, peak_gbps: fast"), "CPU 1: 'fast' is not a number"},
        {CPU("cores: 2, peak_gbps: 9, core_gbps: -1"), "CPU 1: -1 is outside"},
        {CPU("cores: 2, peak_gbps: 9, gops: many"), "CPU 1: 'many' is not a number"},
        {CPU("cores: 2, peak_gbps: 9, llc: 32 apples"), "CPU 1: '32 apples' is no"},
        {CPU("cores: 2, peak_gbps: 9, sockets: 2"), "there is no key 'sockets'"},
        {CPU("cores: 2"), "the key 'peak_gbps' is missing"},
        {"cpus: []\n", "1"},
    };
    char path[128];

    (void)state;
    snprintf(path, sizeof path, "%s/cpus.yaml", root);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cpus cpus = {NULL, 7};
        struct err err = ERR_INIT;

        tree_put(root, "/cpus.yaml", cases[i].text);
        assert_int_equal(cpus_load(&cpus, path, &err), ST_INPUT);
        assert_true(!cpus.v && cpus.n == 7);
        if (!strstr(err.msg, cases[i].words))
            fail_msg("'%s' lacks '%s'", err.msg, cases[i].words);
    }
    struct cpus cpus;
    struct err err = ERR_INIT;

    tree_put(root, "/cpus.yaml", CPU("cores: 2, peak_gbps: 9, llc: 32M"));
    assert_int_equal(cpus_load(&cpus, path, &err), ST_OK);
    assert_int_equal(cpus.v[0].llc_bytes, 32 << 20);
    assert_true(cpus.v[0].core_gbps == 0 && cpus.v[0].gops == 0);
    cpus_free(&cpus);
}

static void few_threads_read_less(void **state)
{
    const struct cpu desktop = {.n_cores = 12, .peak_gbps = 50},
                     server = {.n_cores = 96, .peak_gbps = 460},
                     known = {.n_cores = 128, .peak_gbps = 600, .core_gbps = 20};

    (void)state;
    assert_float_equal(cpu_read_gbps(&desktop, 0), 40, 1e-9);
    assert_float_equal(cpu_read_gbps(&desktop, 4), 40, 1e-9);
    assert_float_equal(cpu_read_gbps(&server, 0), 368, 1e-9);
    assert_float_equal(cpu_read_gbps(&server, 4), 0, 1e-9);
    assert_float_equal(cpu_read_gbps(&known, 2), 40, 1e-9);
    assert_float_equal(cpu_read_gbps(&known, 128), 480, 1e-9);
}

static void claims_are_read_as_people_write_them(void **state)
{
    struct claim c;
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(
        claim_parse(&c, "36.7 tok/s, llama-2-7b, 4.1 GB, ryzen 5900x", &err), ST_OK);
    assert_float_equal(c.tok_per_s, 36.7, 1e-9);
    assert_float_equal(c.bytes, 4.1e9, 1);
    assert_string_equal(c.model, "llama-2-7b");
    assert_string_equal(c.cpu, "ryzen 5900x");
    assert_string_equal(c.quant, "");

    assert_int_equal(
        claim_parse(&c, "Qwen3 4B:q4_k_m,12t/s , 38 GB/s,4 threads,2048 ctx", &err),
        ST_OK);
    assert_string_equal(c.model, "qwen3-4b");
    assert_string_equal(c.quant, "Q4_K_M");
    assert_float_equal(c.gbps, 38, 1e-9);
    assert_int_equal(c.n_threads, 4);
    assert_int_equal(c.ctx, 2048);

    assert_int_equal(claim_parse(&c, "5 tokens per second, 2 GiB, 8 cores", &err),
                     ST_OK);
    assert_int_equal(c.n_threads, 8);
    assert_float_equal(c.bytes, 0x1p31, 1);

    /* decimal commas, with and without blanks; bits and bytes */
    assert_int_equal(claim_parse(&c, "36,7 TOK/S,14,1 gb,51 Gb/s", &err), ST_OK);
    assert_float_equal(c.tok_per_s, 36.7, 1e-9);
    assert_float_equal(c.bytes, 14.1e9, 1);
    assert_float_equal(c.gbps, 51.0 / 8, 1e-9);
    assert_int_equal(claim_parse(&c, "5 tok/s, 400 Gbps, 1,5 GB", &err), ST_OK);
    assert_float_equal(c.gbps, 50, 1e-9);
    assert_int_equal(claim_parse(&c, "5 tok/s, 1.2 TB/s, 4096 MB", &err), ST_OK);
    assert_float_equal(c.gbps, 1200, 1e-9);

    /* parts without anything in them; a name is cut to what its field holds */
    assert_int_equal(claim_parse(&c,
                                 ",,5 tok/s, , 4 GB,the processor of a machine "
                                 "whose name has more than sixty characters,",
                                 &err),
                     ST_OK);
    assert_float_equal(c.tok_per_s, 5, 1e-9);
    assert_float_equal(c.bytes, 4e9, 1);
    assert_string_equal(c.cpu, "the processor of a machine whose name has more than "
                               "sixty chara");
}

static void what_is_no_claim_gets_a_sentence(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"llama-2-7b, 4 GB", "has no speed"},
        {"10 tok/s, llama-2-7b", "neither the size of the model"},
        {"10 tok/s, 4 GB, ryzen, core", "'ryzen' and 'core' are no speed, size, shape"},
        {"-3 tok/s, 4 GB", "has no speed"},
        {"", "has no speed"},
        {"nan tok/s, 4 GB", "has no speed"},
        {"1,234 tok/s, 4 GB", "write 1234 or 1.234"},
        {"1.234,5 tok/s, 4 GB", "is no number"},
        {"0 tok/s, 4 GB", "is no number above 0"},
        {"5 tok/s, 7 tok/s, 4 GB", "'7 tok/s' is given twice"},
        {"5 tok/s, 4 GB, 5 GB", "is given twice"},
        {"5 tok/s, 4 Gb, 38 sockets", "'4 Gb' and '38 sockets'"},
        {"5 tok/s, 4 Gb, 51 GB/s", "('4 Gb' was read as the CPU)"},
        {"5 tok/s, llama-2-7b:Q9, 51 GB/s", "('llama-2-7b:Q9' was read as the CPU)"},
        {"5 tok/s 4 GB 51 GB/s", "('5 tok/s 4 GB 51 GB/s' was read as the CPU)"},
        {"5 tok/s, 4 GB, 9999999 threads", "more than there can be"},
        {"5 tok/s, 4 GB, 2.5 threads", "'2.5 threads' is no whole number"},
        {"5 tok/s, 4 GB, 0.5 threads, 4 threads", "is no whole number"},
        {"5 tok/s, 4 GB, 2048,5 ctx", "is no whole number"},
        {"5 tok/s, 4 GB, 4 threads, 2 threads", "'2 threads' is given twice"},
        {"5 tok/s, 4 GB, 2048 ctx, 4096 ctx", "'4096 ctx' is given twice"},
        {"5 tok/s, 4 GB, 99999999999 ctx", "more than there can be"},
        {"5 tok/s, llama-2-7b:Q4_0, Q8_0", "'Q8_0' is a second one, after 'Q4_0'"},
        {"5 tok/s, Q4_0, Q4_0, 4 GB", "is a second one"},
        {"5 tok/s, llama-2-7b, qwen3-4b, 4 GB", "'qwen3-4b' is a second one"},
        {"5 tok/s, llama-2-7b, qwen3-4b:Q4_0", "'qwen3-4b:Q4_0' is a second one"},
        {"0000000000000000000000000000000005 tok/s, 4 GB", "has no speed"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct claim c;
        struct err err = ERR_INIT;

        assert_int_equal(claim_parse(&c, cases[i].text, &err), ST_USAGE);
        if (!strstr(err.msg, cases[i].says))
            fail_msg("'%s' does not say '%s'", err.msg, cases[i].says);
    }
}

static void long_claims_are_refused(void **state)
{
    char text[513];
    struct claim c;
    struct err err = ERR_INIT;

    (void)state;
    memset(text, ' ', sizeof text - 1);
    memcpy(text, "5 tok/s, 4 GB", 13);
    text[512] = '\0';
    assert_int_equal(claim_parse(&c, text, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "--claim is longer than 511 characters"));
    err_clear(&err);
    text[511] = '\0';
    assert_int_equal(claim_parse(&c, text, &err), ST_OK);
    assert_true(c.tok_per_s == 5 && c.bytes == 4e9);
}

/* Plans as they are made of shapes: a dense model, whose tokens read nearly all of its
 * file, and a mixture of experts, whose tokens read a tenth. */
static const struct point_need dense = {.n_params = 6738415616,
                                        .weight_bytes = 3800000000,
                                        .token_bytes = 3724000000},
                               mixture = {.n_params = 30532122624,
                                          .weight_bytes = 17000000000,
                                          .token_bytes = 1700000000};

static void sizes_are_those_of_the_shape(void **state)
{
    static const struct {
        const char *text;
        const struct point_need *need;
        double bytes, min_share;
    } cases[] = {
        {"5 tok/s, llama-2-7b, 4.1 GB", &dense, 4.1e9, 0.98},
        {"5 tok/s, llama-2-7b:Q4_0, 4.1 GB", &dense, 4.1e9, 0.98},
        {"5 tok/s, llama-2-7b:Q4_0", &dense, 3.724e9, 1},
        {"5 tok/s, qwen3-30b-a3b, 18 GB", &mixture, 1.8e9, 1},
        {"5 tok/s, qwen3-30b-a3b:Q4_0", &mixture, 1.7e9, 1},
    };
    struct claim c;
    struct err err = ERR_INIT;
    double min_share = 0;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(claim_parse(&c, cases[i].text, &err), ST_OK);
        if (claim_apply_need(&c, &min_share, cases[i].need, &err))
            fail_msg("%s: %s", cases[i].text, err.msg);
        assert_float_equal(c.bytes, cases[i].bytes, 1);
        assert_float_equal(min_share, cases[i].min_share, 1e-9);
    }
    /* without a shape nothing is planned */
    assert_int_equal(claim_parse(&c, "5 tok/s, 4 GB", &err), ST_OK);
    assert_int_equal(claim_size(&c, &min_share, &err), ST_OK);
    assert_float_equal(c.bytes, 4e9, 1);
    assert_float_equal(min_share, 0.9, 1e-9);
}

static void sizes_that_no_file_has_are_refused(void **state)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"5 tok/s, llama-2-7b, 100 MB", "are 0.12 bits each; files have 1 to 34"},
        {"5 tok/s, llama-2-7b, 400 GB", "bits each; files have 1 to 34"},
        {"5 tok/s, llama-2-7b:Q4_0, 13 GB", "llama-2-7b:Q4_0 has 3.5"},
        {"5 tok/s, llama-2-7b:Q4_0, 2 GB", "leave out the size or the quantisation"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct claim c;
        struct err err = ERR_INIT;
        double min_share;

        assert_int_equal(claim_parse(&c, cases[i].text, &err), ST_OK);
        assert_int_equal(claim_apply_need(&c, &min_share, &dense, &err), ST_USAGE);
        if (!strstr(err.msg, cases[i].words))
            fail_msg("'%s' lacks '%s'", err.msg, cases[i].words);
    }
}

static struct claim_answer judge(double tok_per_s, double llc_bytes)
{
    static struct candidate c;
    const struct claim claim = {.tok_per_s = tok_per_s, .bytes = 4e9};
    const struct share_band share = {.lo = 0.8, .mid = 0.9, .hi = 1};
    struct claim_answer answer;

    memset(&c, 0, sizeof c);
    snprintf(c.name, sizeof c.name, "a CPU");
    snprintf(c.from, sizeof c.from, "a sheet");
    c.roofs.read_gbps = 40;
    c.roof_lo = c.roof_hi = 1;
    c.max_gbps = 50;
    c.topo.llc_bytes = (uint64_t)llc_bytes;
    claim_judge(&answer, &claim, 1, &c, &share);
    return answer;
}

/* By hand: 40 GB/s and 4 GB a token are 10 tok/s at all of the roof; the memory gives
 * 12.5 at most. */
static void claims_are_judged_by_bandwidth(void **state)
{
    struct claim_answer a = judge(12.6, 0);

    (void)state;
    assert_int_equal(a.verdict, CLAIM_IMPOSSIBLE);
    assert_float_equal(a.need_gbps, 50.4, 1e-9);
    assert_float_equal(a.decode.mid, 9, 1e-9);
    assert_true(strstr(a.sentence, "impossible: needs 50 GB/s of 50") == a.sentence);
    assert_int_equal(judge(12.4, 0).verdict, CLAIM_IMPLAUSIBLE);
    assert_int_equal(judge(9.5, 0).verdict, CLAIM_PLAUSIBLE);
    assert_int_equal(judge(3, 0).verdict, CLAIM_SLOW);
    assert_int_equal(judge(100, 5e9).verdict, CLAIM_IN_CACHE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_claims_are_refused),
        cmocka_unit_test(cpus_are_found_by_their_words),
        cmocka_unit_test_setup_teardown(broken_data_sheets_get_a_sentence, make_root,
                                        remove_root),
        cmocka_unit_test(few_threads_read_less),
        cmocka_unit_test(claims_are_read_as_people_write_them),
        cmocka_unit_test(what_is_no_claim_gets_a_sentence),
        cmocka_unit_test(sizes_are_those_of_the_shape),
        cmocka_unit_test(sizes_that_no_file_has_are_refused),
        cmocka_unit_test(claims_are_judged_by_bandwidth),
    };

    return cmocka_run_group_tests_name("claim", tests, NULL, NULL);
}
