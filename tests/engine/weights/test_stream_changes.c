/* SPDX-License-Identifier: MIT
 *
 * test_stream_changes.c - a model while its memory or its file changes: the same logits
 * with less memory, and an error instead of others where the file is another one
 */
#include "tests/support/stream_model.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>

#ifndef MADV_COLLAPSE /* Linux 6.1 */
#define MADV_COLLAPSE 25
#endif

/* ---- giving memory back ---------------------------------------------------------- */

/* Pages of the memory of weights, `bytes` from begin on, that are there. */
static size_t pages_of(const char *begin, size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t n = 0, n_pages;
    const uintptr_t first = (uintptr_t)begin / page * page;
    unsigned char *there;

    n_pages = ((uintptr_t)begin + bytes - first + page - 1) / page;
    there = calloc(n_pages, 1);
    assert_non_null(there);
    assert_int_equal(mincore((void *)first, n_pages * page, there), 0);
    for (size_t i = 0; i < n_pages; i++)
        n += there[i] & 1;
    free(there);
    return n;
}

/* What the kernel does of its own accord sooner or later: huge pages, made of what is
 * there of each, and zeros. */
static void collapse(const char *begin, size_t bytes)
{
    const uintptr_t huge = (uintptr_t)2 << 20, end = (uintptr_t)begin + bytes;

    for (uintptr_t at = ((uintptr_t)begin + huge - 1) / huge * huge; at + huge <= end;
         at += huge)
        (void)madvise((void *)at, huge, MADV_COLLAPSE);
}

/* The same logits as logits_of(), with memory given back before each step. */
static void check_reclaiming(struct slm *m, const float *want, uint64_t each)
{
    const size_t n_vocab = (size_t)slm_info(m)->n_vocab;
    size_t memory_bytes;
    const char *begin = weights_memory(slm_weights(m), &memory_bytes);
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t pages = pages_of(begin, memory_bytes);
    const uint64_t memory = slm_info(m)->weights_memory_bytes;
    struct err err = ERR_INIT;
    uint64_t seed = 1, freed, sum = 0;
    struct slm_tuning tuning;
    int32_t tokens[N_CTX];
    int n_reclaimed = 0;

    slm_get_tuning(m, &tuning);
    for (int i = 0; i < N_STEPS; i++) {
        const size_t n = i == 0 ? 19 : i % 3 ? 1 : 1 + random_below(&seed, 4);

        if (i == 5)
            slm_truncate(m, 7);
        for (size_t k = 0; k < n; k++)
            tokens[k] = (int32_t)random_below(&seed, n_vocab);
        if (i == 7)
            assert_int_equal(slm_tune(m, 3, 1, &tuning, &err), ST_OK);
        if (i > 0 && slm_reclaim(m, each, &freed, &err) == ST_OK) {
            assert_true(freed >= each);
            sum += freed;
            n_reclaimed++;
            assert_int_equal(slm_info(m)->residency, WEIGHTS_STREAM);
        } else if (i > 0) {
            assert_int_equal(err.code, ST_NO_MEMORY);
            err_clear(&err);
        }
        if (slm_eval(m, tokens, n, SLM_LOGITS_LAST, &err))
            fail_msg("%s", err.msg);
        assert_memory_equal(slm_logits(m, 0), want + (size_t)i * n_vocab,
                            n_vocab * sizeof *want);
    }
    assert_true(n_reclaimed >= 3);
    assert_true(slm_info(m)->weights_memory_bytes <= memory - sum);
    /* What is kept no more has gone, but for pages that are shared with what stays.
     * Slots are elsewhere. */
    collapse(begin, memory_bytes);
    if (!slm_info(m)->cache_bytes)
        assert_true((pages - pages_of(begin, memory_bytes)) * page + 64 * page >= sum);
}

static void memory_can_be_given_back(void **state)
{
    static const enum weights_residency ways[] = {WEIGHTS_PACKED, WEIGHTS_STREAM};

    (void)state;
    for (int experts = 0; experts < 2; experts++) {
        char path[] = "/tmp/test_stream.XXXXXX";
        struct synth_shape shape = deep_shape_of(experts);

        make_file(path, &shape, QUANTMIX_Q8_0);
        float *want = mapped_logits(path, without_panels());

        for (int i = 0; i < 2; i++) {
            struct slm_params p = params_of(path, ways[i], without_panels());
            uint64_t least, all;

            limits_of(&p, &least, &all);
            p.memory_bytes = i ? least + (all - least) / 2 : 0;
            struct slm *m = open_model(&p);

            check_reclaiming(m, want, (all - least) / 12);
            slm_close(m);
        }
        free(want);
        unlink(path);
    }
}

/* What is said to be the weights' memory still holds what it held, however much of it
 * has been given back. */
static void what_is_left_is_unchanged(void **state)
{
    char path[] = "/tmp/test_stream.XXXXXX";
    int n_reclaimed = 0;

    (void)state;
    make_file(path, &deep_shape, QUANTMIX_Q8_0);
    for (int i = 0; i < 2; i++) {
        struct slm_params p =
            params_of(path, i ? WEIGHTS_STREAM : WEIGHTS_PACKED, without_panels());
        struct err err = ERR_INIT;
        uint64_t least, all, freed;
        size_t bytes, before;

        limits_of(&p, &least, &all);
        p.memory_bytes = i ? least + (all - least) / 2 : 0;
        struct slm *m = open_model(&p);
        const char *begin = weights_memory(slm_weights(m), &before);
        char *held = malloc(before);

        assert_non_null(held);
        memcpy(held, begin, before);
        while (slm_reclaim(m, (all - least) / 12, &freed, &err) == ST_OK) {
            const char *left = weights_memory(slm_weights(m), &bytes);

            assert_true(left >= begin && left + bytes <= begin + before);
            assert_true(bytes > 0 && bytes < before);
            assert_memory_equal(left, held + (left - begin), bytes);
            n_reclaimed++;
        }
        free(held);
        slm_close(m);
    }
    assert_true(n_reclaimed >= 4);
    unlink(path);
}

static void only_what_can_be_read_again_is_given_back(void **state)
{
    char path[] = "/tmp/test_stream.XXXXXX";
    struct err err = ERR_INIT;
    uint64_t freed = 7;

    (void)state;
    make_file(path, &deep_shape, QUANTMIX_F16);
    for (int i = 0; i < 3; i++) {
        struct slm_params p =
            params_of(path, i == 0 ? WEIGHTS_MMAP : WEIGHTS_PACKED, isa_usable());

        p.quant = i == 1 ? "Q8_0" : NULL;
        struct slm *m = open_model(&p);

        assert_int_equal(slm_reclaim(m, i == 2 ? UINT64_MAX : 1, &freed, &err),
                         i == 2 ? ST_NO_MEMORY : ST_USAGE);
        assert_non_null(strstr(err.msg, path));
        err_clear(&err);
        assert_int_equal(freed, 7);
        assert_int_equal(slm_info(m)->residency, p.residency);
        slm_close(m);
    }
    unlink(path);
}

/* Threads of this process that read weights; each may run on the CPUs of mask. */
static int readers_on(const cpu_set_t *mask)
{
    DIR *tasks = opendir("/proc/self/task");
    const struct dirent *d;
    int n = 0;

    assert_non_null(tasks);
    while ((d = readdir(tasks))) {
        char path[300], name[16] = "";
        cpu_set_t its;

        snprintf(path, sizeof path, "/proc/self/task/%s/comm", d->d_name);
        FILE *f = fopen(path, "r");

        if (!f)
            continue;
        if (fscanf(f, "%15s", name) == 1 &&
            (!strcmp(name, "slm-stream") || !strcmp(name, "slm-read"))) {
            assert_int_equal(sched_getaffinity(atoi(d->d_name), sizeof its, &its), 0);
            assert_true(CPU_EQUAL(&its, mask));
            n++;
        }
        fclose(f);
    }
    closedir(tasks);
    return n;
}

/* Whoever gives memory back is pinned then; what reads from then on is not, and the
 * caller is pinned again. (Of a process with one CPU this says nothing.) */
static void readers_run_on_any_cpu(void **state)
{
    char path[] = "/tmp/test_stream.XXXXXX";
    cpu_set_t before, now;
    int cpu = 0;

    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    while (!CPU_ISSET((size_t)cpu, &before))
        cpu++;
    for (int experts = 0; experts < 2; experts++) {
        struct synth_shape shape = deep_shape_of(experts);
        struct slm_params p = params_of(path, WEIGHTS_PACKED, without_panels());
        struct err err = ERR_INIT;
        uint64_t least, all, freed;

        if (experts)
            write_synth_file(path, &shape, QUANTMIX_Q8_0);
        else
            make_file(path, &shape, QUANTMIX_Q8_0);
        limits_of(&p, &least, &all);
        p.n_threads = p.n_threads_prefill = 1;
        p.cpus = &cpu;
        struct slm *m = open_model(&p);

        if (slm_reclaim(m, (all - least) / 12, &freed, &err))
            fail_msg("%s", err.msg);
        assert_true(readers_on(&before) > 0);
        assert_int_equal(sched_getaffinity(0, sizeof now, &now), 0);
        assert_true(CPU_COUNT(&now) == 1 && CPU_ISSET((size_t)cpu, &now));
        slm_close(m);
        assert_int_equal(sched_getaffinity(0, sizeof now, &now), 0);
        assert_true(CPU_EQUAL(&now, &before));
    }
    unlink(path);
}

/* ---- files that change ----------------------------------------------------------- */

enum change { TRUNCATED, OVERWRITTEN, REPLACED, REMOVED };

static void change_file(const char *path, enum change change)
{
    char other[] = "/tmp/test_stream.XXXXXX";
    const int fd = open(path, O_WRONLY);
    struct stat st;

    assert_true(fd >= 0 && !fstat(fd, &st));
    switch (change) {
    case TRUNCATED:
        assert_int_equal(ftruncate(fd, st.st_size / 2), 0);
        break;
    case OVERWRITTEN:
        assert_int_equal(pwrite(fd, "other weights", 13, st.st_size / 2), 13);
        break;
    case REPLACED:
        make_file(other, &deep_shape, QUANTMIX_Q4_0);
        assert_int_equal(rename(other, path), 0);
        break;
    case REMOVED:
        assert_int_equal(unlink(path), 0);
        break;
    }
    close(fd);
}

/* Another file at the same path is not the model's: it goes on as it was. */
static void changed_files_are_errors(void **state)
{
    static const char *const what[] = {"shorter", "written to", NULL, NULL};

    (void)state;
    for (int change = TRUNCATED; change <= REMOVED; change++) {
        char path[] = "/tmp/test_stream.XXXXXX";
        struct slm_params p = params_of(path, WEIGHTS_STREAM, without_panels());
        const int32_t tokens[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
        const struct timespec old[] = {{1000000, 0}, {1000000, 0}};
        struct err err = ERR_INIT, again = ERR_INIT;
        uint64_t least, all;
        enum status st = ST_OK;
        struct slm *m, *mapped;

        make_file(path, &deep_shape, QUANTMIX_Q8_0);
        assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
        limits_of(&p, &least, &all);
        p.memory_bytes = least;
        m = open_model(&p);
        p.residency = WEIGHTS_PACKED;
        mapped = open_model(&p);
        assert_int_equal(slm_eval(m, tokens, 4, SLM_LOGITS_LAST, &err), ST_OK);
        change_file(path, (enum change)change);
        /* what has been read ahead is still good */
        for (int i = 0; i < 4 && !st; i++)
            st = slm_eval(m, tokens + 4 + i, 1, SLM_LOGITS_LAST, &err);
        if (!what[change]) {
            assert_int_equal(st, ST_OK);
            assert_int_equal(slm_eval(mapped, tokens, 8, SLM_LOGITS_LAST, &err), ST_OK);
            assert_memory_equal(slm_logits(m, 0), slm_logits(mapped, 0),
                                (size_t)slm_info(m)->n_vocab * sizeof(float));
        } else {
            const int n_past = slm_n_past(m);

            assert_int_equal(st, ST_IO);
            if (!strstr(err.msg, what[change]) || !strstr(err.msg, path))
                fail_msg("%s", err.msg);
            assert_true(n_past >= 4 && n_past < 8);
            assert_int_equal(slm_eval(m, tokens, 10, SLM_LOGITS_LAST, &again), ST_IO);
            assert_string_equal(again.msg, err.msg);
            assert_int_equal(slm_n_past(m), n_past);
        }
        slm_close(m);
        slm_close(mapped);
        unlink(path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_can_be_given_back),
        cmocka_unit_test(what_is_left_is_unchanged),
        cmocka_unit_test(only_what_can_be_read_again_is_given_back),
        cmocka_unit_test(readers_run_on_any_cpu),
        cmocka_unit_test(changed_files_are_errors),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
