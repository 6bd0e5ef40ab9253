/* SPDX-License-Identifier: MIT
 *
 * test_tuned_kernels.c - what was found for a CPU's kernels, saved and read again
 */
#include "tests/support/test.h"

#include <unistd.h>

#include "harness/measure/tune/tuned_kernels.h"

static struct topology machine(const char *cpu)
{
    struct topology t;

    memset(&t, 0, sizeof t);
    snprintf(t.cpu_model, sizeof t.cpu_model, "%s", cpu);
    t.n_cpus = t.n_cores = t.n_packages = t.n_nodes = 1;
    t.cpu[0].allowed = true;
    return t;
}

static struct kernel_choices two_choices(void)
{
    return (struct kernel_choices){.v = {{.fmt = KERN_FMT_q4_K,
                                          .isa = KERN_ISA_scalar,
                                          .prefetch = {2048, KERN_PREFETCH_NTA, 1},
                                          .gbps = 36,
                                          .default_gbps = 33},
                                         {.fmt = KERN_FMT_q8_0,
                                          .isa = KERN_ISA_avx2,
                                          .prefetch = {0, KERN_PREFETCH_T0, 2},
                                          .gbps = 38,
                                          .default_gbps = 38,
                                          .is_default = true}},
                                   .n = 2,
                                   .n_threads = 2,
                                   .read_gbps = 41.5};
}

static void what_is_saved_is_read(void **state)
{
    static struct topology here, there;
    const struct slm_tuning plain = slm_tuning_default();
    const struct kernel_choices choices = two_choices();
    struct slm_tuning t = plain;
    char dir[] = "tuned-kernels-XXXXXX", path[64], note[256];
    struct err err = ERR_INIT;

    (void)state;
    here = machine("A CPU");
    there = machine("Another CPU");
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/k.yaml", dir);
    if (tuned_kernels_save(path, &here, &choices, &err) ||
        tuned_kernels_load(&t, path, &here, note, sizeof note, &err))
        fail_msg("%s", err.msg);
    assert_string_equal(note, "");
    assert_int_equal(t.isa_mask[KERN_FMT_q4_K], 1u << KERN_ISA_scalar);
    assert_int_equal(t.isa_mask_prefill[KERN_FMT_q4_K], 0);
    assert_int_equal(t.prefetch[KERN_FMT_q4_K].distance, 2048);
    assert_int_equal(t.prefetch[KERN_FMT_q4_K].hint, KERN_PREFETCH_NTA);
    assert_int_equal(t.prefetch[KERN_FMT_q4_K].n_panels, 1);
    assert_int_equal(t.prefetch[KERN_FMT_q8_0].distance, 0);
    assert_int_equal(t.prefetch[KERN_FMT_q8_0].n_panels, 2);
    assert_memory_equal(&t.prefetch[KERN_FMT_q6_K], &plain.prefetch[KERN_FMT_q6_K],
                        sizeof plain.prefetch[0]);

    t = plain; /* another CPU's is not taken */
    assert_int_equal(tuned_kernels_load(&t, path, &there, note, sizeof note, &err),
                     ST_OK);
    assert_non_null(strstr(note, "another CPU"));
    assert_memory_equal(&t, &plain, sizeof t);
    unlink(path);
    rmdir(dir);
}

static void every_cpu_has_its_file(void **state)
{
    static struct topology here, there;
    char a[4096], b[4096];
    struct err err = ERR_INIT;

    (void)state;
    here = machine("A CPU");
    there = machine("Another CPU");
    setenv("SLMBENCH_CACHE", "a-cache", 1);
    assert_int_equal(tuned_kernels_path(a, sizeof a, &here, &err), ST_OK);
    assert_int_equal(tuned_kernels_path(b, sizeof b, &there, &err), ST_OK);
    assert_non_null(strstr(a, "a-cache/tuned/kernels-"));
    assert_string_not_equal(a, b);
}

/* One value after the other is spoiled: said, and nothing is taken. */
static void spoiled_files_are_refused(void **state)
{
    static const struct {
        const char *from, *to, *says;
    } edits[] = {
        {"version: 1", "version: 7", "version"},
        {"name: q4_K", "name: q4_Q", "q4_Q"},
        {"name: q4_K", "name: q8_0", "twice"},
        {"level: scalar", "level: avx9", "avx9"},
        {"NTA 2048", "NTA -1", "NTA -1"},
        {"panels: 1", "panels: 3", "not one of 1, 2, 4"},
        {"formats:", "format:", "format"},
    };
    static struct topology here;
    const struct slm_tuning plain = slm_tuning_default();
    const struct kernel_choices choices = two_choices();
    char dir[] = "tuned-kernels-XXXXXX", path[64], text[4096];
    struct err err = ERR_INIT;

    (void)state;
    here = machine("A CPU");
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/k.yaml", dir);
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        struct slm_tuning t = plain;

        assert_int_equal(tuned_kernels_save(path, &here, &choices, &err), ST_OK);
        FILE *f = fopen(path, "r");
        const size_t n = fread(text, 1, sizeof text - 1, f);
        fclose(f);
        text[n] = '\0';
        char *at = strstr(text, edits[i].from);
        assert_non_null(at);
        f = fopen(path, "w");
        fprintf(f, "%.*s%s%s", (int)(at - text), text, edits[i].to,
                at + strlen(edits[i].from));
        fclose(f);
        if (tuned_kernels_load(&t, path, &here, NULL, 0, &err) != ST_INPUT ||
            !strstr(err.msg, edits[i].says))
            fail_msg("'%s': %s", edits[i].to, err.msg);
        assert_memory_equal(&t, &plain, sizeof t);
        err_clear(&err);
    }
    unlink(path);
    rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_saved_is_read),
        cmocka_unit_test(every_cpu_has_its_file),
        cmocka_unit_test(spoiled_files_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
