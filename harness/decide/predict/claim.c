/* SPDX-License-Identifier: MIT
 *
 * claim.c - reading a claim and judging it
 */
#include "harness/decide/predict/claim.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "harness/base/format.h"

/* Share of the size that a token reads at least, if only the size is known: models with
 * an output matrix of their own have up to a tenth in the embedding, and a token needs
 * a row of it. A mixture of experts must be named. */
#define MIN_SHARE 0.9

/* Bits of a weight in files, from IQ1_S to F32 with what goes with it. */
#define MIN_BITS 1.0
#define MAX_BITS 34.0

/* A file of a shape and a quantisation may differ from ours by this factor: other
 * mixes. */
#define MAX_OFF 1.3

/* For a shape with a size and without a quantisation. */
#define USUAL_QUANT "Q4_0"

/* ---- reading --------------------------------------------------------------------- */

enum quantity { SPEED, SIZE, BANDWIDTH, THREADS, CONTEXT };

/* A b is a bit and a B a byte where both cases occur; small letters alone are how
 * people type bytes. */
static const struct {
    const char *unit;
    enum quantity of;
    double factor;
} units[] = {
    {"tok/s", SPEED, 1},
    {"t/s", SPEED, 1},
    {"tokens/s", SPEED, 1},
    {"tps", SPEED, 1},
    {"token/s", SPEED, 1},
    {"tok/sec", SPEED, 1},
    {"tokens/sec", SPEED, 1},
    {"tokens per second", SPEED, 1},
    {"GB", SIZE, 1e9},
    {"gb", SIZE, 1e9},
    {"GiB", SIZE, 0x1p30},
    {"gib", SIZE, 0x1p30},
    {"MB", SIZE, 1e6},
    {"mb", SIZE, 1e6},
    {"MiB", SIZE, 0x1p20},
    {"mib", SIZE, 0x1p20},
    {"GB/s", BANDWIDTH, 1},
    {"gb/s", BANDWIDTH, 1},
    {"GBps", BANDWIDTH, 1},
    {"MB/s", BANDWIDTH, 1e-3},
    {"mb/s", BANDWIDTH, 1e-3},
    {"TB/s", BANDWIDTH, 1e3},
    {"GiB/s", BANDWIDTH, 0x1p30 * 1e-9},
    {"Gb/s", BANDWIDTH, 0.125},
    {"Gbit/s", BANDWIDTH, 0.125},
    {"Gbps", BANDWIDTH, 0.125},
    {"threads", THREADS, 1},
    {"thread", THREADS, 1},
    {"cores", THREADS, 1},
    {"ctx", CONTEXT, 1},
};

/* A unit in any case where none has another meaning so; NULL: none. */
static bool find_unit(const char *text, enum quantity *of, double *factor)
{
    for (int any_case = 0; any_case < 2; any_case++)
        for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
            if (any_case ? !strpbrk(text, "bB") && !strcasecmp(text, units[i].unit)
                         : !strcmp(text, units[i].unit)) {
                *of = units[i].of;
                *factor = units[i].factor;
                return true;
            }
    return false;
}

static bool set(double *to, double v)
{
    const bool is_new = !(*to > 0);

    *to = v;
    return is_new;
}

static bool set_count(int *to, double v, double max)
{
    const bool is_new = *to == 0;

    if (v > max)
        return false;
    *to = (int)v;
    return is_new;
}

/* False: given before, or beyond what is possible. */
static bool take_quantity(struct claim *claim, double v, enum quantity of)
{
    return of == SPEED       ? set(&claim->tok_per_s, v)
           : of == SIZE      ? set(&claim->bytes, v)
           : of == BANDWIDTH ? set(&claim->gbps, v)
           : of == THREADS   ? set_count(&claim->n_threads, v, SETTING_MAX(threads))
                             : set_count(&claim->ctx, v, SETTING_MAX(ctx));
}

/* A text of the claim; an error where it is given already. */
static void take_text(char *to, size_t cap, const char *text, const char *part,
                      struct err *err)
{
    if (*to)
        err_set(err, ST_USAGE, "--claim: '%.60s' is a second one, after '%s'", part,
                to);
    else
        snprintf(to, cap, "%s", text);
}

/* A number with a unit behind it, with a decimal point or comma. False: it is none, or
 * an error. */
static bool take_number(struct claim *claim, const char *part, struct err *err)
{
    const size_t n = strspn(part, "0123456789.,"), whole = strspn(part, "0123456789");
    char number[32], *end;
    enum quantity of;
    double v, factor;

    if (n == 0 || n >= sizeof number)
        return false;
    snprintf(number, sizeof number, "%.*s", (int)n, part);
    part += n;
    part += strspn(part, " ");
    if (!find_unit(part, &of, &factor))
        return false;
    if (number[whole] == ',' && n == whole + 4) {
        err_set(err, ST_USAGE,
                "--claim: %.30s may be a thousand times the other; write %.*s%.3s or "
                "%.*s.%.3s",
                number, (int)whole, number, number + whole + 1, (int)whole, number,
                number + whole + 1);
        return false;
    }
    if (number[whole] == ',')
        number[whole] = '.';
    v = strtod(number, &end);
    if (*end || !(v > 0)) /* so few digits are finite */
        err_set(err, ST_USAGE, "--claim: '%.30s' is no number above 0", number);
    else if ((of == THREADS || of == CONTEXT) && v != floor(v))
        err_set(err, ST_USAGE, "--claim: '%.30s %.20s' is no whole number", number,
                part);
    else if (!take_quantity(claim, v * factor, of))
        err_set(err, ST_USAGE,
                "--claim: '%.30s %.20s' is given twice, or more than there can be",
                number, part);
    return !err->code;
}

/* "Llama 2 7B" is llama-2-7b. False: it is no model, or an error. */
static bool take_model(struct claim *claim, const char *part, struct err *err)
{
    struct synth_shape shape;
    struct err ignored = ERR_INIT;
    char name[sizeof claim->model];
    enum quantmix mix = QUANTMIX_N;
    char *colon;
    size_t n = 0;

    for (; part[n] && n + 1 < sizeof name; n++)
        name[n] = part[n] == ' ' ? '-' : (char)tolower((unsigned char)part[n]);
    name[n] = '\0';
    colon = strchr(name, ':');
    if (colon) {
        mix = quantmix_by_name(colon + 1);
        if (mix == QUANTMIX_N)
            return false;
        *colon = '\0';
    }
    if (strchr(name, '/') || shape_load(&shape, name, &ignored))
        return false;
    take_text(claim->model, sizeof claim->model, shape.name, part, err);
    if (colon && !err->code)
        take_text(claim->quant, sizeof claim->quant, quantmix_name(mix), part, err);
    return !err->code;
}

static enum status take_part(struct claim *claim, const char *part, struct err *err)
{
    const enum quantmix mix = quantmix_by_name(part);

    if (take_number(claim, part, err) || err->code || take_model(claim, part, err) ||
        err->code)
        return err->code;
    if (mix != QUANTMIX_N) {
        take_text(claim->quant, sizeof claim->quant, quantmix_name(mix), part, err);
        return err->code;
    }
    if (claim->cpu[0])
        return err_set(
            err, ST_USAGE,
            "--claim: '%.60s' and '%.60s' are no speed, size, shape (`bench synth "
            "--list`) or quantisation, and only one of them can be the CPU; write it "
            "as in \"36.7 tok/s, llama-2-7b, 4.1 GB, ryzen 5900x\"",
            claim->cpu, part);
    snprintf(claim->cpu, sizeof claim->cpu, "%.63s", part);
    return ST_OK;
}

/* The part that begins at *rest, which moves behind its comma; a comma between two
 * digits is within a number. */
static char *next_part(char **rest)
{
    char *part = *rest, *end = part;

    while (end && (end = strchr(end, ',')) && end > part &&
           isdigit((unsigned char)end[-1]) && isdigit((unsigned char)end[1]))
        end++;
    if (end)
        *end++ = '\0';
    *rest = end;
    return part;
}

/* What is missing, and which part may have been meant: a CPU has any name. */
static enum status missing(const struct claim *claim, const char *what, struct err *err)
{
    char read[120] = "";

    if (claim->cpu[0])
        snprintf(read, sizeof read, " ('%s' was read as the CPU)", claim->cpu);
    return err_set(err, ST_USAGE, "--claim has %s%s", what, read);
}

enum status claim_parse(struct claim *claim, const char *text, struct err *err)
{
    char copy[512], *rest = copy, *part;
    enum status st = ST_OK;

    *claim = (struct claim){.tok_per_s = 0};
    if (strlen(text) >= sizeof copy)
        return err_set(err, ST_USAGE, "--claim is longer than %zu characters",
                       sizeof copy - 1);
    text_harmless(copy, sizeof copy, text);
    while (st == ST_OK && (part = next_part(&rest)) != NULL)
        if (*text_squeeze(part))
            st = take_part(claim, part, err);
    if (st)
        return st;
    if (!(claim->tok_per_s > 0))
        return missing(claim,
                       "no speed; write it as in \"36.7 tok/s, llama-2-7b, 4.1 GB, "
                       "ryzen 5900x\"",
                       err);
    if (!(claim->bytes > 0) && !(claim->model[0] && claim->quant[0]))
        return missing(claim,
                       "neither the size of the model (4.1 GB) nor a shape with its "
                       "quantisation (llama-2-7b:Q4_K_M)",
                       err);
    return ST_OK;
}

/* ---- what a token reads ---------------------------------------------------------- */

/* The sizes of the shape, on a machine that holds any. */
static enum status plan_shape(struct predictions *out, const struct claim *claim,
                              struct err *err)
{
    const char *quant = claim->quant[0] ? claim->quant : USUAL_QUANT;
    const struct predict_params p = {.model = claim->model,
                                     .quants = &quant,
                                     .n_quants = 1,
                                     .kv = {KERN_KV_f16},
                                     .n_kv = 1,
                                     .ctx = {claim->ctx},
                                     .n_ctx = 1};
    struct candidate *c = calloc(1, sizeof *c);
    enum status st;

    if (!c)
        return err_set(err, ST_NO_MEMORY, "no memory for a plan");
    c->topo.mem_total = c->topo.mem_available = UINT64_C(1) << 50;
    st = predict_plan(out, &p, c, err);
    free(c);
    return st;
}

/* Whether a file of that shape can have that size. */
static enum status check_size(const struct claim *claim, const struct point_need *need,
                              struct err *err)
{
    const double bits = 8 * claim->bytes / (double)need->n_params;
    const double share = claim->bytes / (double)need->weight_bytes;
    char claimed[24], planned[24];

    format_bytes(claimed, sizeof claimed, (uint64_t)claim->bytes);
    format_bytes(planned, sizeof planned, need->weight_bytes);
    if (bits < MIN_BITS || bits > MAX_BITS)
        return err_set(err, ST_USAGE,
                       "--claim: %s for the %.3g billion weights of %s are %.2g bits "
                       "each; files have %g to %g, so its unit may be another",
                       claimed, (double)need->n_params * 1e-9, claim->model, bits,
                       MIN_BITS, MAX_BITS);
    if (claim->quant[0] && (share < 1 / MAX_OFF || share > MAX_OFF))
        return err_set(err, ST_USAGE,
                       "--claim: %s:%s has %s, and not %s; leave out the size or the "
                       "quantisation",
                       claim->model, claim->quant, planned, claimed);
    return ST_OK;
}

enum status claim_apply_need(struct claim *claim, double *min_share,
                             const struct point_need *need, struct err *err)
{
    const double weights = (double)need->weight_bytes;
    const double share = fmin(1, (double)need->token_bytes / weights);
    const bool has_size = claim->bytes > 0;

    *min_share = share;
    if (has_size && check_size(claim, need, err))
        return ST_USAGE;
    if (!has_size)
        claim->bytes = weights;
    /* a token reads a part of a mixture of experts, whatever the quantisation */
    if (!has_size || share < MIN_SHARE) {
        claim->bytes *= share;
        *min_share = 1;
    }
    return ST_OK;
}

enum status claim_size(struct claim *claim, double *min_share, struct err *err)
{
    struct predictions plans = {NULL, 0, 0};
    enum status st;

    *min_share = MIN_SHARE;
    if (!claim->model[0])
        return ST_OK;
    st = plan_shape(&plans, claim, err);
    if (st == ST_OK)
        st = claim_apply_need(claim, min_share, &plans.v[0].need, err);
    predictions_free(&plans);
    return st;
}

/* ---- judging --------------------------------------------------------------------- */

static const char *verdict_name(enum claim_verdict verdict)
{
    static const char *const names[] = {[CLAIM_IMPOSSIBLE] = "impossible",
                                        [CLAIM_IMPLAUSIBLE] = "implausible",
                                        [CLAIM_PLAUSIBLE] = "plausible",
                                        [CLAIM_SLOW] = "plausible, and slow",
                                        [CLAIM_IN_CACHE] = "not limited by memory"};

    return names[verdict];
}

static enum claim_verdict judge(const struct claim_answer *a, const struct claim *claim,
                                double min_share, const struct candidate *c)
{
    const struct topo_llc cache = topology_cache(&c->topo, c->n_threads);

    if (topology_cached(&cache, claim->bytes * min_share) == TOPO_CACHED)
        return CLAIM_IN_CACHE;
    if (a->need_gbps * min_share > a->max_gbps)
        return CLAIM_IMPOSSIBLE;
    if (claim->tok_per_s * min_share > a->decode.hi)
        return CLAIM_IMPLAUSIBLE;
    return claim->tok_per_s < a->decode.lo ? CLAIM_SLOW : CLAIM_PLAUSIBLE;
}

static void append_speed(char *buf, size_t cap, double v)
{
    text_append(buf, cap, "%.*f", v < 10 ? 1 : 0, v);
}

static void explain(struct claim_answer *a, const struct claim *claim,
                    const struct candidate *c)
{
    char *buf = a->sentence;
    const size_t cap = sizeof a->sentence;

    buf[0] = '\0';
    text_append(buf, cap, "%s: needs ", verdict_name(a->verdict));
    append_speed(buf, cap, a->need_gbps);
    text_append(buf, cap, " GB/s of ");
    append_speed(buf, cap, a->max_gbps);
    text_append(buf, cap, " (%g tok/s times %.3g GB; %s, %s).", claim->tok_per_s,
                claim->bytes * 1e-9, c->name, c->from);
    if (a->verdict == CLAIM_IN_CACHE)
        text_append(buf, cap, " The last-level cache holds half or more of the model.");
    else if (isfinite(a->decode.mid))
        text_append(
            buf, cap,
            " Expected are %.3g tok/s, nine of ten times between %.3g and %.3g.",
            a->decode.mid, a->decode.lo, a->decode.hi);
    if (a->verdict <= CLAIM_IMPLAUSIBLE)
        text_append(buf, cap,
                    " More comes only of drafts that are accepted, of several "
                    "sequences at once, or of less that is read.");
}

void claim_judge(struct claim_answer *answer, const struct claim *claim,
                 double min_share, const struct candidate *c,
                 const struct share_band *share)
{
    const struct token_work work = {.memory_bytes = claim->bytes};

    *answer = (struct claim_answer){
        .need_gbps = claim->tok_per_s * claim->bytes * 1e-9,
        .max_gbps = c->max_gbps,
        .decode = predict_decode(&work, &c->roofs, c->roof_lo, c->roof_hi, share)};
    answer->verdict = judge(answer, claim, min_share, c);
    explain(answer, claim, c);
}

json_t *claim_json(const struct claim *claim, const struct claim_answer *a,
                   const struct candidate *c)
{
    return json_pack("{s:s, s:s, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:s, s:s}",
                     "verdict", verdict_name(a->verdict), "sentence", a->sentence,
                     "tok_per_s", claim->tok_per_s, "bytes", claim->bytes, "need_gbps",
                     a->need_gbps, "max_gbps", a->max_gbps, "expected_tok_per_s",
                     a->decode.mid, "expected_lo", a->decode.lo, "expected_hi",
                     a->decode.hi, "machine", c->name, "from", c->from);
}
