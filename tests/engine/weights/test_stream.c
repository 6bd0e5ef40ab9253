/* SPDX-License-Identifier: MIT
 *
 * test_stream.c - models with streamed layers: the same logits as in memory, and an
 * error instead of others
 */
#include "tests/support/synth_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <math.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "engine/base/random.h"
#include "engine/engine.h"

#define N_CTX   48
#define N_STEPS 12

static const struct synth_shape deep_shape = {.name = "deep",
                                              .arch = "llama",
                                              .n_layers = 12,
                                              .n_embd = 256,
                                              .n_ff = 512,
                                              .n_heads = 4,
                                              .n_kv_heads = 1,
                                              .head_dim = 40,
                                              .n_vocab = 513,
                                              .n_ctx_train = 64,
                                              .rope_base = 10000,
                                              .norm_eps = 1e-5f};

static void make_file(char *path, const struct synth_shape *shape, enum quantmix mix)
{
    const int fd = mkstemp(path);

    assert_true(fd >= 0);
    close(fd);
    write_synth_file(path, shape, mix);
}

static struct slm_params params_of(const char *path, enum weights_residency residency,
                                   uint32_t isa_mask)
{
    struct slm_params p = slm_params_default();

    p.path = path;
    p.residency = residency;
    p.isa_mask = isa_mask;
    p.n_threads = 2;
    p.n_threads_prefill = 3;
    p.n_ctx = N_CTX;
    p.n_batch = 8;
    return p;
}

/* Without layers in panels each product is the same, whoever holds the weights. */
static uint32_t without_panels(void)
{
    const uint32_t mask = 1u << KERN_ISA_scalar;
    struct kern_set kern;

    kern_select(&kern, mask);
    for (int fmt = 0; fmt < KERN_N_FMT; fmt++)
        assert_null(kern.pack[fmt]);
    return mask;
}

/* The limits between which some layers are streamed. */
static void limits_of(const struct slm_params *params, uint64_t *least, uint64_t *all)
{
    struct slm_info info;
    struct gguf *g;
    struct err err = ERR_INIT;
    struct slm_params p = *params;

    p.memory_bytes = 0;
    if (gguf_open(&g, params->path, &err) || slm_plan(&info, g, &p, &err))
        fail_msg("%s", err.msg);
    assert_true(info.stream_least_bytes > 0);
    *least = info.kv_bytes + info.scratch_bytes + info.stream_least_bytes;
    *all = info.kv_bytes + info.scratch_bytes + info.weight_bytes;
    assert_true(*least < *all);
    gguf_close(g);
}

static struct slm *open_model(const struct slm_params *p)
{
    struct err err = ERR_INIT;
    struct slm *m = NULL;

    if (slm_open(&m, p, &err) ||
        weights_preload(slm_weights(m), slm_thread_pool(m), NULL, NULL, &err))
        fail_msg("%s", err.msg);
    return m;
}

/* A prompt, tokens one by one and several at a time, going back, other thread counts:
 * the last logits of each step, [N_STEPS][n_vocab]. */
static float *logits_of(struct slm *m, uint64_t seed)
{
    const size_t n_vocab = (size_t)slm_info(m)->n_vocab;
    float *out = malloc(N_STEPS * n_vocab * sizeof *out);
    struct err err = ERR_INIT;
    struct slm_tuning tuning;
    int32_t tokens[N_CTX];

    assert_non_null(out);
    slm_get_tuning(m, &tuning);
    for (int i = 0; i < N_STEPS; i++) {
        const size_t n = i == 0 ? 19 : i % 3 ? 1 : 1 + random_below(&seed, 4);

        if (i == 5)
            slm_truncate(m, 7);
        if (i == 7)
            assert_int_equal(slm_tune(m, 3, 1, &tuning, &err), ST_OK);
        for (size_t k = 0; k < n; k++)
            tokens[k] = (int32_t)random_below(&seed, n_vocab);
        if (slm_eval(m, tokens, n, SLM_LOGITS_LAST, &err))
            fail_msg("%s", err.msg);
        memcpy(out + (size_t)i * n_vocab, slm_logits(m, 0), n_vocab * sizeof *out);
    }
    return out;
}

static size_t logits_bytes(const struct slm *m)
{
    return N_STEPS * (size_t)slm_info(m)->n_vocab * sizeof(float);
}

static float *mapped_logits(const char *path, uint32_t isa_mask)
{
    const struct slm_params p = params_of(path, WEIGHTS_MMAP, isa_mask);
    struct slm *m = open_model(&p);
    float *out = logits_of(m, 1);

    slm_close(m);
    return out;
}

static double nmse(const float *have, const float *want, size_t n)
{
    double error = 0, power = 0;

    for (size_t i = 0; i < n; i++) {
        const double d = (double)have[i] - (double)want[i];

        error += d * d;
        power += (double)want[i] * (double)want[i];
    }
    assert_true(power > 0);
    return error / power;
}

/* Where some layers are in panels, sums are rounded in another order, and a rounding of
 * an activation that falls the other way is carried on through all the layers of a
 * random model. A layer in the wrong place leaves nothing of the logits. */
#define PANELS_NMSE 1e-3

/* ---- the same logits ------------------------------------------------------------ */

/* Slots are filled once; then experts are read that were not in memory, in blocks. */
static void check_experts(const struct slm_info *info, const struct slm_stream *s)
{
    const uint64_t misses = s->expert_uses - s->expert_hits;
    const uint64_t expert = info->expert_bytes / (uint64_t)info->n_layers;

    assert_int_equal(info->n_streamed, 0);
    assert_true(s->expert_uses >=
                N_STEPS * (uint64_t)info->n_layers * (uint64_t)info->n_experts_used);
    assert_true(misses > 0 && s->expert_hits > 0);
    assert_true(s->bytes_read >= misses * expert);
    assert_true(s->bytes_read <=
                (misses + 1) * (expert + 3 * 8192) + info->cache_bytes);
}

/* What the model says it does, and what it has read. */
static void check_stream(struct slm *m, uint64_t memory_bytes)
{
    const struct slm_info *info = slm_info(m);
    struct slm_stream s;

    assert_int_equal(info->residency, WEIGHTS_STREAM);
    assert_true(info->kv_bytes + info->scratch_bytes + info->weights_memory_bytes <=
                memory_bytes);
    assert_int_equal(slm_stream_read(m, &s), info->n_streamed > 0 || info->cache_bytes);
    if (info->cache_bytes)
        check_experts(info, &s);
    if (info->n_streamed == 0)
        return;
    assert_true(info->n_streamed <= info->n_layers);
    assert_true(s.bytes_read >= N_STEPS * info->streamed_bytes);
    /* two batches more of the prompt, and at most what the slots hold read ahead */
    assert_true(s.bytes_read <= (N_STEPS + 3) * info->streamed_bytes);
    assert_true(s.n_reads > 0 && s.depth >= 8 && s.request_bytes >= 1 << 20);
    assert_true(!strcmp(s.backend, "io_uring") || !strcmp(s.backend, "pread"));
}

static void check_rooms(const char *path, uint32_t isa_mask, bool equal, int n_rooms)
{
    const bool experts = strstr(path, "experts");
    struct slm_params p = params_of(path, WEIGHTS_STREAM, isa_mask);
    float *want = mapped_logits(path, isa_mask);
    uint64_t least, all, random = 5;
    int n_streamed = 0;

    limits_of(&p, &least, &all);
    for (int i = 0; i < n_rooms; i++) {
        p.memory_bytes = i ? least + random_below(&random, all - least) : least;
        struct slm *m = open_model(&p);
        float *have = logits_of(m, 1);

        if (equal)
            assert_memory_equal(have, want, logits_bytes(m));
        else
            assert_true(nmse(have, want, logits_bytes(m) / sizeof(float)) <
                        PANELS_NMSE);
        check_stream(m, p.memory_bytes);
        assert_true(i > 0 || experts ||
                    slm_info(m)->n_streamed == slm_info(m)->n_layers);
        assert_true(experts || !slm_info(m)->cache_bytes);
        n_streamed += slm_info(m)->n_streamed > 0 || slm_info(m)->cache_bytes > 0;
        free(have);
        slm_close(m);
    }
    assert_true(n_streamed > n_rooms / 2);
    free(want);
}

static void same_bits_where_nothing_is_in_panels(void **state)
{
    static const enum quantmix mixes[] = {QUANTMIX_Q4_K_M, QUANTMIX_Q8_0, QUANTMIX_F16};

    (void)state;
    for (int i = 0; i < 3; i++) {
        char path[] = "/tmp/test_stream.XXXXXX";
        struct synth_shape shape = deep_shape;

        shape.tied_output = i == 1;
        make_file(path, &shape, mixes[i]);
        check_rooms(path, without_panels(), true, 6);
        unlink(path);
    }
}

static void same_model_with_panels_for_what_is_kept(void **state)
{
    static const enum quantmix mixes[] = {QUANTMIX_Q6_K, QUANTMIX_Q4_K_M};

    (void)state;
    for (int i = 0; i < 2; i++) {
        char path[] = "/tmp/test_stream.XXXXXX";

        make_file(path, &deep_shape, mixes[i]);
        check_rooms(path, isa_usable(), false, 6);
        unlink(path);
    }
}

/* A prompt of 19 tokens takes nearly all experts, a token two of a layer. Slices of 256
 * rows begin at blocks, those of 200 amid them. */
static void same_bits_with_cached_experts(void **state)
{
    static const enum quantmix mixes[] = {QUANTMIX_Q8_0, QUANTMIX_Q4_K_M, QUANTMIX_F16};

    (void)state;
    for (int i = 0; i < 3; i++) {
        char path[] = "/tmp/test_stream_experts.XXXXXX";
        struct synth_shape shape = deep_shape;

        snprintf(shape.arch, sizeof shape.arch, "qwen3moe");
        shape.n_experts = 9;
        shape.n_experts_used = 2;
        shape.n_ff = i == 0 ? 224 : 256;
        make_file(path, &shape, mixes[i]);
        check_rooms(path, without_panels(), true, 4);
        check_rooms(path, isa_usable(), false, 2);
        unlink(path);
    }
}

/* Which part of a layer a matrix is in follows from its name, which architectures give
 * it: fused ones, those of experts, attention beside the feed-forward part. */
static void same_bits_in_every_architecture(void **state)
{
    static const char *const names[] = {"gemma2", "gemma3",   "llama-moe", "llama-mqa",
                                        "phi2",   "phi3",     "qwen2moe",  "qwen2",
                                        "qwen3",  "qwen3moe", "stablelm"};

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[512];
        struct slm_params p;
        uint64_t least, all;

        snprintf(path, sizeof path, TEST_DATA "models/%s.gguf", names[i]);
        p = params_of(path, WEIGHTS_STREAM, without_panels());
        limits_of(&p, &least, &all);
        p.memory_bytes = least;
        float *want = mapped_logits(path, without_panels());
        struct slm *m = open_model(&p);
        float *have = logits_of(m, 1);

        if (!slm_info(m)->n_streamed && !slm_info(m)->cache_bytes)
            fail_msg("%s: nothing is streamed", names[i]);
        assert_memory_equal(have, want, logits_bytes(m));
        free(have);
        free(want);
        slm_close(m);
    }
}

/* A file system in memory has no unbuffered reads, or has had them since Linux 6.6. */
static void same_bits_from_tmpfs(void **state)
{
    char path[] = "/dev/shm/test_stream.XXXXXX";
    const int fd = mkstemp(path);

    (void)state;
    if (fd < 0)
        skip();
    close(fd);
    write_synth_file(path, &deep_shape, QUANTMIX_Q8_0);
    check_rooms(path, without_panels(), true, 3);
    unlink(path);
}

/* Calls to io_uring_setup() fail from here on. */
static void forbid_uring(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {sizeof filter / sizeof *filter, filter};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        _exit(99);
}

static int run_without_uring(const char *path, const float *want)
{
    struct slm_params p = params_of(path, WEIGHTS_STREAM, without_panels());
    struct slm_stream s = {.bytes_read = 0};
    uint64_t least, all;
    struct slm *m;
    float *have;
    int result;

    forbid_uring();
    limits_of(&p, &least, &all);
    p.memory_bytes = least;
    m = open_model(&p);
    have = logits_of(m, 1);
    result = memcmp(have, want, logits_bytes(m))                     ? 1
             : !slm_stream_read(m, &s) || strcmp(s.backend, "pread") ? 2
                                                                     : 0;
    free(have);
    slm_close(m);
    return result;
}

static void same_bits_where_io_uring_is_forbidden(void **state)
{
    char path[] = "/tmp/test_stream.XXXXXX";
    int status = -1;

    (void)state;
    make_file(path, &deep_shape, QUANTMIX_Q8_0);
    float *want = mapped_logits(path, without_panels());
    const pid_t child = fork();

    if (child == 0)
        _exit(run_without_uring(path, want));
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!(WIFEXITED(status) && WEXITSTATUS(status) == 99))
        assert_int_equal(status, 0);
    free(want);
    unlink(path);
}

/* The profile has a row for waiting, only where there is something to wait for. */
static void waiting_is_in_the_profile(void **state)
{
    char path[] = "/tmp/test_stream.XXXXXX";
    struct slm_params p = params_of(path, WEIGHTS_STREAM, isa_usable());
    struct err err = ERR_INIT;
    struct slm_profile profile;
    uint64_t least, all;

    (void)state;
    make_file(path, &deep_shape, QUANTMIX_Q8_0);
    limits_of(&p, &least, &all);
    for (int i = 0; i < 2; i++) {
        int n_read = 0;

        p.memory_bytes = i ? all : least;
        struct slm *m = open_model(&p);

        assert_int_equal(slm_profile_start(m, &err), ST_OK);
        free(logits_of(m, 1));
        slm_profile_read(m, &profile);
        for (size_t k = 0; k < profile.n_rows; k++)
            n_read += profile.rows[k].op == SLM_OP_READ;
        assert_int_equal(n_read, i == 0);
        slm_close(m);
    }
    unlink(path);
}

/* ---- what is chosen -------------------------------------------------------------- */

static void auto_streams_what_does_not_fit(void **state)
{
    char path[] = "/tmp/test_stream.XXXXXX";
    struct slm_params p = params_of(path, WEIGHTS_AUTO, isa_usable());
    uint64_t least, all;

    (void)state;
    make_file(path, &deep_shape, QUANTMIX_Q8_0);
    limits_of(&p, &least, &all);
    const struct {
        uint64_t memory_bytes;
        enum weights_residency residency;
    } ways[] = {{all, WEIGHTS_PACKED},
                {all - 1, WEIGHTS_STREAM},
                {least, WEIGHTS_STREAM},
                {least - 1, WEIGHTS_MMAP}};

    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct err err = ERR_INIT;
        struct slm_info planned;
        struct slm *m;

        p.memory_bytes = ways[i].memory_bytes;
        m = open_model(&p);
        assert_int_equal(slm_info(m)->residency, ways[i].residency);
        assert_int_equal(slm_plan(&planned, slm_gguf(m), &p, &err), ST_OK);
        assert_memory_equal(&planned, slm_info(m), sizeof planned);
        slm_close(m);
    }
    unlink(path);
}

static void what_cannot_be_streamed_is_refused(void **state)
{
    char path[] = "/tmp/test_stream.XXXXXX";
    struct slm_params p = params_of(path, WEIGHTS_STREAM, isa_usable());
    struct err err = ERR_INIT;
    struct slm *m = NULL;
    uint64_t least, all;

    (void)state;
    make_file(path, &deep_shape, QUANTMIX_F16);
    limits_of(&p, &least, &all);
    p.memory_bytes = least - 1;
    assert_int_equal(slm_open(&m, &p, &err), ST_NO_MEMORY);
    assert_non_null(strstr(err.msg, "layers streamed"));
    assert_non_null(strstr(err.msg, path));
    err_clear(&err);
    p.memory_bytes = least;
    p.quant = "Q8_0";
    assert_int_equal(slm_open(&m, &p, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "bench pack"));
    assert_null(m);
    unlink(path);
}

static int stop(void *arg, size_t done, size_t total)
{
    (void)arg;
    (void)done;
    (void)total;
    return 1;
}

static void may_be_closed_at_any_time(void **state)
{
    char path[] = "/tmp/test_stream.XXXXXX";
    struct slm_params p = params_of(path, WEIGHTS_STREAM, isa_usable());
    struct err err = ERR_INIT;
    uint64_t least, all;
    const int32_t token = 3;

    (void)state;
    make_file(path, &deep_shape, QUANTMIX_Q8_0);
    limits_of(&p, &least, &all);
    p.memory_bytes = least;
    for (int i = 0; i < 12; i++) {
        struct slm *m = NULL;

        assert_int_equal(slm_open(&m, &p, &err), ST_OK);
        if (i % 4 == 1) {
            struct weights *w = slm_weights(m);

            assert_int_equal(weights_preload(w, NULL, stop, NULL, &err),
                             ST_INTERRUPTED);
            err_clear(&err);
            assert_false(weights_ready(w));
            assert_int_equal(slm_eval(m, &token, 1, SLM_LOGITS_LAST, &err), ST_USAGE);
            err_clear(&err);
        }
        if (i % 4 > 0)
            assert_int_equal(weights_preload(slm_weights(m), NULL, NULL, NULL, &err),
                             ST_OK);
        if (i % 4 == 3)
            assert_int_equal(slm_eval(m, &token, 1, SLM_LOGITS_LAST, &err), ST_OK);
        slm_close(m);
    }
    unlink(path);
}

/* ---- giving memory back ---------------------------------------------------------- */

/* Pages of the kept weights that are in memory. */
static size_t pages_of(struct slm *m)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t bytes, n = 0, n_pages;
    const char *begin = weights_memory(slm_weights(m), &bytes);
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

/* The same logits as logits_of(), with memory given back before each step. */
static void check_reclaiming(struct slm *m, const float *want, uint64_t each)
{
    const size_t n_vocab = (size_t)slm_info(m)->n_vocab;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = pages_of(m);
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
    if (!slm_info(m)->cache_bytes)
        assert_true((pages - pages_of(m)) * page + 64 * page >= sum);
}

static void memory_can_be_given_back(void **state)
{
    static const enum weights_residency ways[] = {WEIGHTS_PACKED, WEIGHTS_STREAM};

    (void)state;
    for (int experts = 0; experts < 2; experts++) {
        char path[] = "/tmp/test_stream.XXXXXX";
        struct synth_shape shape = deep_shape;

        if (experts) {
            snprintf(shape.arch, sizeof shape.arch, "qwen3moe");
            shape.n_experts = 9;
            shape.n_experts_used = 2;
        }
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
        cmocka_unit_test(same_bits_where_nothing_is_in_panels),
        cmocka_unit_test(same_model_with_panels_for_what_is_kept),
        cmocka_unit_test(same_bits_in_every_architecture),
        cmocka_unit_test(same_bits_with_cached_experts),
        cmocka_unit_test(same_bits_from_tmpfs),
        cmocka_unit_test(same_bits_where_io_uring_is_forbidden),
        cmocka_unit_test(waiting_is_in_the_profile),
        cmocka_unit_test(auto_streams_what_does_not_fit),
        cmocka_unit_test(what_cannot_be_streamed_is_refused),
        cmocka_unit_test(may_be_closed_at_any_time),
        cmocka_unit_test(memory_can_be_given_back),
        cmocka_unit_test(only_what_can_be_read_again_is_given_back),
        cmocka_unit_test(changed_files_are_errors),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
