/* SPDX-License-Identifier: MIT
 *
 * test_stream.c - models with streamed layers or cached experts: the same logits as in
 * memory, and what is chosen
 */
#include "tests/support/nmse.h"
#include "tests/support/stream_model.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* Where some layers are in panels, sums are rounded in another order, and a rounding of
 * an activation that falls the other way is carried on through all the layers of a
 * random model. A layer in the wrong place leaves nothing of the logits. */
#define PANELS_NMSE 1e-3

/* ---- the same logits ------------------------------------------------------------- */

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

/* Under a sanitizer a product takes many times as long, and is the same in each room.
 */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
enum { ROOMS = 3, ROOMS_OF_EXPERTS = 2 };
#else
enum { ROOMS = 6, ROOMS_OF_EXPERTS = 4 };
#endif

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
        check_rooms(path, without_panels(), true, ROOMS);
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
        check_rooms(path, isa_usable(), false, ROOMS);
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
        struct synth_shape shape = deep_shape_of(true);

        shape.n_ff = i == 0 ? 224 : 256;
        make_file(path, &shape, mixes[i]);
        check_rooms(path, without_panels(), true, ROOMS_OF_EXPERTS);
        check_rooms(path, isa_usable(), false, 2);
        unlink(path);
    }
}

/* Which part of a layer a matrix is in follows from its name, which architectures give
 * it: fused ones, those of experts, attention beside the feed-forward part. */
enum { N_SEQS = 3 };

/* The last logits of each sequence in each step, [N_STEPS][N_SEQS][n_vocab]: of single
 * tokens beside two of one of them, with a copy, and going back. */
static float *logits_of_sequences(struct slm *m)
{
    const size_t n_vocab = (size_t)slm_info(m)->n_vocab;
    float *out = malloc((size_t)N_STEPS * N_SEQS * n_vocab * sizeof *out);
    int32_t tokens[N_SEQS][2];
    struct err err = ERR_INIT;
    uint64_t seed = 2;

    assert_non_null(out);
    for (int i = 0; i < N_STEPS; i++) {
        struct slm_part parts[N_SEQS];

        if (i == 3)
            slm_seq_fork(m, 0, 2);
        if (i == 6)
            slm_seq_truncate(m, 1, 2);
        for (int seq = 0; seq < N_SEQS; seq++) {
            for (int k = 0; k < 2; k++)
                tokens[seq][k] = (int32_t)random_below(&seed, n_vocab);
            parts[seq] = (struct slm_part){seq, tokens[seq], seq == i % 4 ? 2 : 1,
                                           SLM_LOGITS_LAST};
        }
        if (slm_batch(m, parts, N_SEQS, &err))
            fail_msg("%s", err.msg);
        for (int seq = 0; seq < N_SEQS; seq++)
            memcpy(out + ((size_t)i * N_SEQS + (size_t)seq) * n_vocab,
                   slm_batch_logits(m, seq, 0), n_vocab * sizeof *out);
    }
    return out;
}

/* A step of several sequences reads layers once, and takes the experts of all. */
static void same_bits_of_several_sequences(void **state)
{
    (void)state;
    for (int experts = 0; experts < 2; experts++) {
        char path[] = "/tmp/test_stream.XXXXXX";
        struct synth_shape shape = deep_shape_of(experts);
        struct slm_params p = params_of(path, WEIGHTS_MMAP, without_panels());

        make_file(path, &shape, QUANTMIX_Q8_0);
        p.path = path;
        p.n_sequences = N_SEQS;
        struct slm *m = open_model(&p);
        float *want = logits_of_sequences(m);

        slm_close(m);
        m = open_streamed(p, experts);
        float *have = logits_of_sequences(m);

        assert_memory_equal(have, want, N_SEQS * logits_bytes(m));
        free(have);
        free(want);
        slm_close(m);
        unlink(path);
    }
}

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
    struct slm_info info;
    uint64_t least, all;

    (void)state;
    make_file(path, &deep_shape, QUANTMIX_Q8_0);
    limits_of(&p, &least, &all);
    info_of(&p, &info);
    const uint64_t rest = info.kv_bytes + info.scratch_bytes;
    const uint64_t kept = rest + info.stream_kept_bytes;
    const uint64_t mapped = rest + info.map_bytes;
    const struct {
        uint64_t memory_bytes, spare_bytes;
        enum weights_residency residency;
        bool streams;
    } ways[] = {{all, 0, WEIGHTS_PACKED, false},
                {all - 1, 0, WEIGHTS_STREAM, false}, /* embeddings stay in the file */
                {kept, mapped, WEIGHTS_STREAM, false},
                {kept - 1, 0, WEIGHTS_STREAM, true},
                {kept - 1, mapped - kept + 1, WEIGHTS_MMAP, false},
                {kept - 1, mapped - kept, WEIGHTS_STREAM, true},
                {least, mapped - least, WEIGHTS_MMAP, false},
                {least, mapped - least - 1, WEIGHTS_STREAM, true},
                {least - 1, 0, WEIGHTS_MMAP, false}};

    assert_true(kept < mapped && kept < all);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct err err = ERR_INIT;
        struct slm_info planned;
        struct slm *m;

        p.memory_bytes = ways[i].memory_bytes;
        p.spare_bytes = ways[i].spare_bytes;
        m = open_model(&p);
        assert_int_equal(slm_info(m)->n_streamed > 0, ways[i].streams);
        assert_int_equal(slm_fits_memory(slm_info(m), p.memory_bytes, p.spare_bytes),
                         !ways[i].streams && i + 1 < sizeof ways / sizeof *ways);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits_where_nothing_is_in_panels),
        cmocka_unit_test(same_model_with_panels_for_what_is_kept),
        cmocka_unit_test(same_bits_in_every_architecture),
        cmocka_unit_test(same_bits_with_cached_experts),
        cmocka_unit_test(same_bits_of_several_sequences),
        cmocka_unit_test(same_bits_from_tmpfs),
        cmocka_unit_test(same_bits_where_io_uring_is_forbidden),
        cmocka_unit_test(waiting_is_in_the_profile),
        cmocka_unit_test(auto_streams_what_does_not_fit),
        cmocka_unit_test(what_cannot_be_streamed_is_refused),
        cmocka_unit_test(may_be_closed_at_any_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
