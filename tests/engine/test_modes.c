/* SPDX-License-Identifier: MIT
 *
 * test_modes.c - the table of docs/architectures.md: which architecture runs in which
 * mode, tried with a file of each
 *
 * SLM_UPDATE_DOCS=1 writes the rows as they are found; reasons are written by hand.
 * What a mode computes is test_zoo.c's; here it must open and evaluate, or not. Drafts
 * of a model's own layer are tried with a synthetic model where the file has no such
 * layer.
 */
#include <dirent.h>
#include <unistd.h>

#include "engine/arch/arch.h"
#include "engine/engine.h"
#include "engine/hf/hf_impl.h"
#include "engine/mtp.h"
#include "tests/support/synth_image.h"
#include "tests/support/test.h"

#define DOC    SLM_SOURCE_DIR "/docs/architectures.md"
#define SHARED SLM_SOURCE_DIR "/../shared/golden/models/"

enum { N_TOKENS = 4, N_CTX = 32, MAX_ARCHS = 256, ROW_BYTES = 256 };

static const char *const folders[] = {TEST_DATA "models/", TEST_DATA "models/zoo/",
                                      SHARED "arch/", SHARED "zoo/"};

/* A file for each architecture, by its place in arch_at(). */
static char files[MAX_ARCHS][512];

static void note_file(const char *path)
{
    struct err err = ERR_INIT;
    struct gguf_str name;
    struct gguf *g;

    if (gguf_open(&g, path, &err))
        return;
    for (size_t i = 0; arch_at(i); i++)
        if (gguf_get_str(g, "general.architecture", &name) && !arch_at(i)->encodes &&
            arch_by_name(name.data, name.len) == arch_at(i)) {
            uint64_t more = 0;
            char key[96];

            /* one with a layer that predicts further tokens, where there is one */
            snprintf(key, sizeof key, "%s.nextn_predict_layers", arch_at(i)->name);
            if (!files[i][0] || gguf_get_u64(g, key, &more))
                snprintf(files[i], sizeof files[i], "%s", path);
        }
    gguf_close(g);
}

static void find_files(void)
{
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        DIR *d = opendir(folders[i]);
        char path[512];

        for (const struct dirent *e; d && (e = readdir(d));) {
            const char *end = strrchr(e->d_name, '.');

            snprintf(path, sizeof path, "%s%s", folders[i], e->d_name);
            if (end && !strcmp(end, ".gguf"))
                note_file(path);
        }
        if (d)
            closedir(d);
    }
}

/* ---- modes ----------------------------------------------------------------------- */

static struct slm_params params_of(size_t arch)
{
    struct slm_params p = slm_params_default();

    p.path = files[arch];
    p.residency = WEIGHTS_PACKED;
    p.n_ctx = N_CTX;
    return p;
}

/* Whether the model opens and evaluates so. */
static bool runs(const struct slm_params *p)
{
    static const int32_t tokens[N_TOKENS] = {1, 7, 5, 3};
    const struct slm_part part = {0, tokens, N_TOKENS, SLM_LOGITS_LAST};
    struct err err = ERR_INIT;
    struct slm *m = NULL;
    enum status st = slm_open(&m, p, &err);

    if (st)
        return false;
    st = weights_preload(slm_weights(m), slm_thread_pool(m), NULL, NULL, &err);
    if (!st)
        st = p->n_sequences > 1 ? slm_batch(m, &part, 1, &err)
                                : slm_eval(m, tokens, N_TOKENS, SLM_LOGITS_LAST, &err);
    slm_close(m);
    return !st;
}

/* Whether the model opens, evaluates, and its own layer drafts. */
static bool drafts(const struct slm_params *p)
{
    static const int32_t tokens[N_TOKENS] = {1, 7, 5, 3};
    struct mtp_guess g = {.id = 9};
    struct err err = ERR_INIT;
    struct slm *m = NULL;

    if (slm_open(&m, p, &err))
        return false;
    if (!weights_preload(slm_weights(m), slm_thread_pool(m), NULL, NULL, &err) &&
        !slm_eval(m, tokens, N_TOKENS, SLM_LOGITS_LAST, &err))
        mtp_first(m, &g, 1);
    g.id = 11;
    if (g.logits)
        mtp_next(m, &g, 1);
    slm_close(m);
    return g.logits;
}

static bool planned(size_t arch, struct slm_info *info)
{
    const struct slm_params p = params_of(arch);
    struct err err = ERR_INIT;
    struct gguf *g;

    if (gguf_open(&g, p.path, &err))
        return false;
    const enum status st = slm_plan(info, g, &p, &err);

    gguf_close(g);
    return !st;
}

static bool has_folder(const char *arch)
{
    if (!strcmp(arch, "nemotron_h_moe")) /* hf_nemotron_kind() */
        arch = "nemotron_h";
    for (size_t i = 0; i < hf_n_archs; i++)
        if (!strcmp(hf_archs[i].gguf, arch))
            return true;
    return false;
}

static const char *cell(bool yes)
{
    return yes ? "yes" : "no";
}

/* How many of the keys' types run. */
static const char *kv_cell(size_t arch, const struct slm_info *info)
{
    struct slm_params p = params_of(arch);
    int n = 0;

    if (!info->n_attends)
        return "none";
    for (int type = 0; type < KERN_N_KV; type++) {
        p.kv_type = (enum kern_kv)type;
        n += runs(&p);
    }
    return n == KERN_N_KV ? "all" : "some";
}

/* ---- drafts of a model's own layer ----------------------------------------------- */

/* Architectures whose files are known to have such a layer, but for the file that is
 * tried. */
#define SMALL                                                                         \
    .name = "small", .n_layers = 4, .n_embd = 64, .n_ff = 32, .n_heads = 2,           \
    .n_kv_heads = 2, .head_dim = 48, .n_rot = 16, .n_vocab = 320, .n_ctx_train = 512, \
    .rope_base = 10000, .norm_eps = 1e-6F, .n_experts = 8, .n_experts_used = 2,       \
    .n_ff_shared = 32, .n_nextn = 1
#define SMALL_DELTA                                                           \
    .full_attention_interval = 4, .n_delta_k_heads = 2, .n_delta_v_heads = 4, \
    .delta_head_dim = 32, .n_delta_conv = 4
static const struct synth_shape predicting[] = {
    {SMALL, .arch = "bailingmoe2", .n_dense = 1, .n_ff_dense = 96},
    {SMALL, .arch = "deepseek2", .kv_rank = 64, .value_dim = 32},
    {SMALL, .arch = "qwen35moe", SMALL_DELTA},
    {SMALL, .arch = "qwen3next", SMALL_DELTA},
};

/* Whether a synthetic model's own layer drafts. */
static bool small_predicts(size_t arch)
{
    bool works = false;

    for (size_t i = 0; i < sizeof predicting / sizeof predicting[0]; i++) {
        if (strcmp(predicting[i].arch, arch_at(arch)->name) != 0)
            continue;
        struct synth_image image = synth_image_make(&predicting[i], QUANTMIX_Q8_0, 1);
        struct slm_params p = synth_image_params(&image, 1, N_CTX, N_CTX);

        p.mtp = true;
        works = drafts(&p);
        synth_image_drop(&image);
    }
    return works;
}

/* "no" also where folders of an architecture do not have what its files have. */
static bool predicts(size_t arch)
{
    struct slm_params p = params_of(arch);
    bool all = true;

    for (size_t i = 0; i < hf_n_archs; i++)
        if (!strcmp(hf_archs[i].gguf, arch_at(arch)->name))
            all &= hf_predicts(&hf_archs[i]);
    p.mtp = true;
    return (drafts(&p) || small_predicts(arch)) && all;
}

static bool keeps_prefixes(size_t arch)
{
    struct slm_params p = params_of(arch);
    struct err err = ERR_INIT;
    struct slm *m;

    p.n_sequences = 2;
    p.n_checkpoints = 2;
    if (slm_open(&m, &p, &err))
        return false;
    const bool keeps = slm_keeps_prefixes(m);

    slm_close(m);
    return keeps;
}

/* The row of an architecture. */
static void make_row(size_t arch, char row[ROW_BYTES])
{
    struct slm_params p = params_of(arch);
    struct slm_info info;
    bool packed, mapped, streams, sequences;

    assert_true(planned(arch, &info));
    packed = runs(&p);
    p.residency = WEIGHTS_MMAP;
    mapped = runs(&p);
    p.residency = WEIGHTS_STREAM;
    p.memory_bytes = info.kv_bytes + info.scratch_bytes + info.stream_min_bytes + 4096;
    streams = info.stream_min_bytes && runs(&p);
    p = params_of(arch);
    p.n_sequences = 2;
    sequences = runs(&p);
    snprintf(row, ROW_BYTES, "| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n",
             arch_at(arch)->name, cell(packed), cell(mapped), cell(streams),
             cell(sequences), kv_cell(arch, &info), cell(keeps_prefixes(arch)),
             info.n_recurrent ? "again" : "yes", cell(predicts(arch)),
             cell(has_folder(arch_at(arch)->name)));
}

/* ---- the document ---------------------------------------------------------------- */

/* The place of an architecture's row in the text, or NULL. */
static char *row_in(char *text, const char *arch)
{
    char begin[80];

    snprintf(begin, sizeof begin, "\n| %s | ", arch);
    char *at = strstr(text, begin);

    return at ? at + 1 : NULL;
}

static void write_doc(char *text, char rows[][ROW_BYTES])
{
    char *table = strstr(text, "\n|--"), *end;
    FILE *f;

    assert_non_null(table);
    table = strchr(table + 1, '\n') + 1;
    end = strstr(table - 1, "\n\n");
    assert_non_null(end);
    f = fopen(DOC, "w");
    assert_non_null(f);
    fwrite(text, 1, (size_t)(table - text), f);
    for (size_t i = 0; arch_at(i); i++) {
        const char *old = row_in(text, arch_at(i)->name);

        if (rows[i][0])
            fputs(rows[i], f);
        else if (old)
            fwrite(old, 1, strcspn(old, "\n") + 1, f);
    }
    fputs(end + 1, f);
    fclose(f);
}

static void table_is_true(void **state)
{
    static char rows[MAX_ARCHS][ROW_BYTES];
    size_t bytes, n_rows = 0, n_tried = 0;
    char *doc = test_read_file(DOC, &bytes), *text = malloc(bytes + 1);

    (void)state;
    assert_non_null(text);
    memcpy(text, doc, bytes);
    text[bytes] = '\0';
    free(doc);
    find_files();
    for (size_t i = 0; arch_at(i); i++) {
        assert_true(i < MAX_ARCHS);
        n_tried += files[i][0] != '\0';
        if (files[i][0])
            make_row(i, rows[i]);
    }
    if (getenv("SLM_UPDATE_DOCS"))
        write_doc(text, rows);
    else
        for (size_t i = 0; arch_at(i); i++) {
            const char *row = row_in(text, arch_at(i)->name);

            if (!row && rows[i][0])
                fail_msg("%s has no row of %s: SLM_UPDATE_DOCS=1 writes it", DOC,
                         arch_at(i)->name);
            if (!row)
                continue;
            if (rows[i][0] && strncmp(row, rows[i], strlen(rows[i])) != 0)
                fail_msg("a row of %s is %.*s, and found was %s: SLM_UPDATE_DOCS=1 "
                         "writes it",
                         DOC, (int)strcspn(row, "\n"), row, rows[i]);
            n_rows++;
        }
    print_message("%zu rows, %zu tried\n", n_rows, n_tried);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(table_is_true)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
