/* SPDX-License-Identifier: MIT
 *
 * deploy_print.c - commands, a Modelfile and a manifest
 */
#include "harness/judge/recommend/deploy.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <jansson.h>

#include "harness/base/format.h"
#include "harness/rows/report_rows.h"

#define IMAGE   "ghcr.io/ggml-org/llama.cpp:server"
#define PORT    "8080"
#define MOUNTED "/models"
#define WIDTH   76 /* of comments */

/* ---- parts ----------------------------------------------------------------------- */

static bool is_f16(const struct deploy *d)
{
    return !*row_kv_type_text(&d->rec.best) ||
           !strcmp(row_kv_type_text(&d->rec.best), "f16");
}

/* ik_llama.cpp takes options where llama.cpp takes variables, too. */
static bool is_ik(const struct deploy *d)
{
    return !strncmp(d->source, "ik", 2);
}

/* The folder of the file into buf, which is returned. */
static const char *folder(const char *path, char *buf, size_t cap)
{
    const char *name = basename(path);

    snprintf(buf, cap, "%.*s", name > path + 1 ? (int)(name - path - 1) : 1,
             name > path ? path : ".");
    return buf;
}

/* A text as comments of a few lines, which it cannot leave: it is harmless. */
static void put_comment(FILE *f, const char *text)
{
    char shown[1200];

    fputs("# ", f);
    for (const char *p = text_harmless(shown, sizeof shown, text); *p;) {
        size_t n = strlen(p);

        if (n > WIDTH) {
            for (n = WIDTH; n && p[n] != ' ';)
                n--;
            n = n ? n : strcspn(p, " ");
        }
        fprintf(f, "%.*s\n", (int)n, p);
        p += n + strspn(p + n, " ");
        if (*p)
            fputs("# ", f);
    }
}

static void put_source(FILE *f, const struct deploy *d)
{
    const struct row *r = &d->rec.best;
    const char *source = *d->source ? d->source : "slmbench";
    char text[700];

    snprintf(text, sizeof text, "%s %s: %s%s tok/s at a context depth of %lld, ",
             r->model, r->quant, d->rec.best_from_ctx >= 0 ? "about " : "",
             report_figure(d->rec.best_tok_per_s).text,
             (long long)(r->ctx > 0 ? r->ctx : 0));
    if (d->carried)
        text_append(text, sizeof text,
                    "carried over from %s (to measure this program: `bench sweep "
                    "--engine`)",
                    source);
    else
        text_append(text, sizeof text, "measured with %s%s%s", source,
                    *r->engine_version ? " " : "", r->engine_version);
    put_comment(f, text);
    if (*d->note)
        put_comment(f, d->note);
}

/* That speed is of one sequence. */
static void put_together(FILE *f, const struct deploy *d)
{
    const double all = d->together_tok_per_s, each = all / d->n_sequences;
    char text[300];

    if (d->n_sequences == 1)
        return;
    if (all > 0)
        snprintf(text, sizeof text,
                 "%d sequences decoded %s%s tok/s together there, %s each; `bench "
                 "load URL` measures how many users it can serve",
                 d->n_sequences, d->together_is_lower_bound ? "at least " : "",
                 report_figure(all).text, report_figure(each).text);
    else
        snprintf(text, sizeof text,
                 "that is one sequence, and %d together were not measured: `bench load "
                 "URL` measures how many users it can serve",
                 d->n_sequences);
    put_comment(f, text);
}

static void put_needed(const struct deploy *d, char *text, size_t cap)
{
    const int64_t bytes = row_needed_bytes(&d->rec.best);

    if (d->n_sequences > 1 && d->needed_bytes)
        text_append(text, cap, "%d sequences of %d positions need about %s; ",
                    d->n_sequences, d->ctx, bytes_text(d->needed_bytes).text);
    else if (bytes > 0)
        text_append(text, cap, "it needed %s; ", bytes_text((uint64_t)bytes).text);
}

static void put_memory(FILE *f, const struct deploy *d)
{
    char text[400] = "";

    put_needed(d, text, sizeof text);
    if (d->mem_limit)
        text_append(text, sizeof text, "memory limit %s",
                    bytes_text(d->mem_limit).text);
    else
        text_append(text, sizeof text, "no memory limit is known");
    if (d->is_short)
        text_append(text, sizeof text,
                    ": sequences share what it leaves, and where that runs out the "
                    "latest answer waits");
    if (d->target != DEPLOY_SLMBENCH)
        text_append(text, sizeof text,
                    "; prompts may be kept in %d MiB (--cache-ram, 8192 by default)",
                    d->cache_mib);
    put_comment(f, text);
}

/* Words of a command, a line for each option. */
static void put_option(FILE *f, const char *option, const char *value)
{
    char text[2100] = "";

    shell_word_append(text, sizeof text, value);
    fprintf(f, " \\\n  %s%s", option, text);
}

static void put_count(FILE *f, const char *option, int n)
{
    fprintf(f, " \\\n  %s %d", option, n);
}

/* What llama-server is given, but for its file and address: name and value. */
struct setting_pair {
    const char *option;
    char value[24];
};

static size_t server_settings(const struct deploy *d, struct setting_pair out[8])
{
    const char *kv = row_kv_type_text(&d->rec.best);
    size_t n = 0;

#define PUT(name, ...)       \
    (out[n].option = (name), \
     (void)snprintf(out[n].value, sizeof out[n].value, __VA_ARGS__), n++)
    PUT("--threads", "%d", d->n_threads);
    PUT("--threads-batch", "%d", d->n_threads_batch);
    PUT("--ctx-size", "%lld", (long long)d->ctx * d->n_sequences); /* of all slots */
    PUT("--parallel", "%d", d->n_sequences);
    PUT("--ubatch-size", "%d", d->n_batch);
    if (!is_f16(d)) {
        PUT("--cache-type-k", "%.15s", kv);
        PUT("--cache-type-v", "%.15s", kv);
    }
    if (is_ik(d))
        PUT("--cache-ram", "%d", d->cache_mib);
#undef PUT
    return n;
}

/* Its environment. A quantised V needs flash attention, whose option has other words in
 * each version. */
static size_t server_environment(const struct deploy *d, struct setting_pair out[2])
{
    size_t n = 0;

    if (is_ik(d))
        return 0;
    out[n].option = "LLAMA_ARG_CACHE_RAM";
    snprintf(out[n++].value, sizeof out[0].value, "%d", d->cache_mib);
    if (!is_f16(d)) {
        out[n].option = "LLAMA_ARG_FLASH_ATTN";
        snprintf(out[n++].value, sizeof out[0].value, "1");
    }
    return n;
}

static void put_server(FILE *f, const struct deploy *d, const char *model,
                       const char *host)
{
    struct setting_pair pair[8];
    const size_t n = server_settings(d, pair);

    put_option(f, "--model", model);
    for (size_t i = 0; i < n; i++)
        put_option(f, pair[i].option, pair[i].value);
    put_option(f, "--host", host);
    put_option(f, "--port", PORT);
    fputc('\n', f);
}

/* ---- targets --------------------------------------------------------------------- */

/* In hundredths of a CPU, as measured; 0: none. */
static int quota_of(const struct deploy *d)
{
    const double quota = d->rec.best.cpus_quota;

    return quota > 0 && quota <= TOPO_MAX_CPUS ? (int)lround(100 * quota) : 0;
}

static void put_limit_hint(FILE *f, const struct deploy *d)
{
    char text[240] = "";

    if (!d->mem_limit && !quota_of(d))
        return;
    text_append(text, sizeof text, "the limit: put `systemd-run --user --scope");
    if (d->mem_limit)
        text_append(text, sizeof text, " -p MemoryMax=%llu -p MemorySwapMax=0",
                    (unsigned long long)d->mem_limit);
    if (quota_of(d))
        text_append(text, sizeof text, " -p CPUQuota=%d%%", quota_of(d));
    text_append(text, sizeof text, "` before the command");
    put_comment(f, text);
}

static void print_slmbench(FILE *f, const struct deploy *d)
{
    const struct row *r = &d->rec.best;

    put_limit_hint(f, d);
    fputs("bench serve", f);
    put_option(f, "-m", d->model);
    put_option(f, "--listen", "127.0.0.1:" PORT);
    put_count(f, "--sequences", d->n_sequences);
    put_count(f, "--ctx", d->ctx);
    put_count(f, "--threads", d->n_threads);
    if (d->n_threads_batch != d->n_threads)
        put_count(f, "--threads-prefill", d->n_threads_batch);
    if (*d->cpus)
        put_option(f, "--cpus", d->cpus);
    if (!is_f16(d))
        put_option(f, "--kv-type", row_kv_type_text(r));
    if (r->kv_window > 0 && r->kv_window <= 1 << 24)
        put_count(f, "--kv-window", (int)r->kv_window);
    if (*row_prefill_sums_text(r))
        put_option(f, "--prefill-sums", row_prefill_sums_text(r));
    if (*row_residency_text(r) && strcmp(row_residency_text(r), "memory") != 0)
        put_option(f, "--weights", row_residency_text(r));
    fputc('\n', f);
}

static void print_llama_cpp(FILE *f, const struct deploy *d)
{
    struct setting_pair env[2];
    const size_t n = server_environment(d, env);

    put_limit_hint(f, d);
    fputs("env", f);
    for (size_t i = 0; i < n; i++)
        fprintf(f, " %s=%s", env[i].option, env[i].value);
    if (*d->cpus)
        fprintf(f, " \\\n  taskset -c %s", d->cpus);
    fputs(" \\\n  llama-server", f);
    put_server(f, d, d->model, "127.0.0.1");
}

/* One instruction is one line, and so is the name of a file here. */
static enum status print_ollama(FILE *f, const struct deploy *d, struct err *err)
{
    char path[sizeof d->model];

    if (strcmp(text_harmless(path, sizeof path, d->model), d->model) != 0)
        return err_set(err, ST_INPUT,
                       "a Modelfile cannot name %s: give the file another name",
                       format_path(d->model).text);
    put_source(f, d);
    put_together(f, d);
    put_memory(f, d);
    put_comment(f, "The server's environment, in its unit or container (ollama runs "
                   "llama-server, which reads LLAMA_ARG_CACHE_RAM):");
    fprintf(f,
            "#   OLLAMA_NUM_PARALLEL=%d OLLAMA_MAX_LOADED_MODELS=1\n"
            "#   LLAMA_ARG_CACHE_RAM=%d\n",
            d->n_sequences, d->cache_mib);
    if (!is_f16(d))
        fprintf(f, "#   OLLAMA_FLASH_ATTENTION=1 OLLAMA_KV_CACHE_TYPE=%s\n",
                row_kv_type_text(&d->rec.best));
    if (d->mem_limit)
        fprintf(f, "#   MemoryMax=%llu MemorySwapMax=0 (systemd)\n",
                (unsigned long long)d->mem_limit);
    if (quota_of(d))
        fprintf(f, "#   CPUQuota=%d%% (systemd)\n", quota_of(d));
    if (*d->cpus)
        fprintf(f, "#   CPUAffinity=%s (systemd)\n", d->cpus);
    put_comment(f, "Save this as Modelfile; then: ollama create NAME -f Modelfile");
    fprintf(f, "FROM %s%s\nPARAMETER num_ctx %d\nPARAMETER num_thread %d\n",
            strchr(d->model, '/') ? "" : "./", d->model, d->ctx, d->n_threads);
    fprintf(f, "PARAMETER num_batch %d\n", d->n_batch);
    return ST_OK;
}

static enum status print_docker(FILE *f, const struct deploy *d, struct err *err)
{
    char dir[sizeof d->model], mount[sizeof d->model + 100],
        inside[sizeof d->model + 32];
    struct setting_pair env[2];
    const size_t n = server_environment(d, env);

    folder(d->model, dir, sizeof dir);
    if (strpbrk(dir, ",\"\n"))
        return err_set(err, ST_INPUT,
                       "docker cannot mount %s, as it has a comma or a quote: give the "
                       "folder another name",
                       format_path(dir).text);
    put_source(f, d);
    put_together(f, d);
    put_memory(f, d);
    fputs("docker run --rm", f);
    if (d->mem_limit)
        fprintf(f, " \\\n  --memory %llu --memory-swap %llu",
                (unsigned long long)d->mem_limit, (unsigned long long)d->mem_limit);
    if (quota_of(d))
        fprintf(f, " \\\n  --cpus %.2f", quota_of(d) / 100.0);
    if (*d->cpus)
        fprintf(f, " \\\n  --cpuset-cpus %s", d->cpus);
    for (size_t i = 0; i < n; i++)
        fprintf(f, " \\\n  --env %s=%s", env[i].option, env[i].value);
    if (!strcmp(dir, "."))
        snprintf(mount, sizeof mount,
                 "type=bind,source=/PATH/TO/MODELS,target=" MOUNTED ",readonly");
    else
        snprintf(mount, sizeof mount, "type=bind,source=%s,target=" MOUNTED ",readonly",
                 dir);
    put_option(f, "--mount", mount);
    put_option(f, "--publish", "127.0.0.1:" PORT ":" PORT);
    fputs(" \\\n  " IMAGE, f);
    snprintf(inside, sizeof inside, MOUNTED "/%s", basename(d->model));
    put_server(f, d, inside, "0.0.0.0");
    return ST_OK;
}

/* ---- Kubernetes ------------------------------------------------------------------ */

/* A JSON string is a YAML string. */
static void put_string(FILE *f, const char *before, const char *text)
{
    char safe[1200];
    json_t *value = json_string(text);
    char *quoted = NULL;

    if (!value)
        value = json_string(text_harmless(safe, sizeof safe, text));
    quoted = value ? json_dumps(value, JSON_ENCODE_ANY | JSON_ENSURE_ASCII) : NULL;
    fprintf(f, "%s%s\n", before, quoted ? quoted : "\"\"");
    free(quoted);
    json_decref(value);
}

/* An argument: $(NAME) of it would be a variable, and $$ is a dollar. */
static void put_argument(FILE *f, const char *text)
{
    char out[700];
    size_t n = 0;

    for (; *text && n + 2 < sizeof out; text++) {
        if (*text == '$')
            out[n++] = '$';
        out[n++] = *text;
    }
    out[n] = '\0';
    put_string(f, "            - ", out);
}

/* "yi-1-5-9b-q4-k-m": letters, digits and '-', as names of objects are. */
static void object_name(const struct deploy *d, char *buf, size_t cap)
{
    char text[130];
    size_t n = 0;

    snprintf(text, sizeof text, "%.40s-%.12s", d->rec.best.model, d->rec.best.quant);
    for (const char *p = text; *p && n + 1 < cap; p++)
        if (isalnum((unsigned char)*p) && (unsigned char)*p < 128)
            buf[n++] = (char)tolower((unsigned char)*p);
        else if (n && buf[n - 1] != '-')
            buf[n++] = '-';
    while (n && buf[n - 1] == '-')
        n--;
    buf[n] = '\0';
    if (!n)
        snprintf(buf, cap, "model");
}

static void put_resources(FILE *f, const struct deploy *d)
{
    const int n = d->n_threads > d->n_threads_batch ? d->n_threads : d->n_threads_batch;

    /* equal, and without a quota whole CPUs: the kubelet's static policy pins them */
    fputs("          resources:\n", f);
    for (int i = 0; i < 2; i++) {
        fprintf(f, "            %s:\n              cpu: \"%d%s\"\n",
                i ? "limits" : "requests", quota_of(d) ? 10 * quota_of(d) : n,
                quota_of(d) ? "m" : "");
        if (d->mem_limit)
            fprintf(f, "              memory: \"%llu\"\n",
                    (unsigned long long)d->mem_limit);
    }
}

static void put_container(FILE *f, const struct deploy *d)
{
    struct setting_pair pair[8], env[2];
    const size_t n = server_settings(d, pair), n_env = server_environment(d, env);
    char inside[sizeof d->model + 32];

    fputs("        - name: llama-server\n", f);
    put_string(f, "          image: ", IMAGE);
    fputs("          args:\n            - \"--model\"\n", f);
    snprintf(inside, sizeof inside, MOUNTED "/%s", basename(d->model));
    put_argument(f, inside);
    for (size_t i = 0; i < n; i++) {
        put_string(f, "            - ", pair[i].option);
        put_string(f, "            - ", pair[i].value);
    }
    fputs("            - \"--host\"\n            - \"0.0.0.0\"\n"
          "            - \"--port\"\n            - \"" PORT "\"\n",
          f);
    if (n_env)
        fputs("          env:\n", f);
    for (size_t i = 0; i < n_env; i++) {
        put_string(f, "            - name: ", env[i].option);
        put_string(f, "              value: ", env[i].value);
    }
    fputs("          ports:\n            - containerPort: " PORT "\n"
          "          readinessProbe:\n            httpGet:\n"
          "              path: /health\n              port: " PORT "\n",
          f);
    put_resources(f, d);
    fputs("          volumeMounts:\n            - name: models\n"
          "              mountPath: " MOUNTED "\n              readOnly: true\n",
          f);
}

static void print_k8s(FILE *f, const struct deploy *d)
{
    char name[64], dir[sizeof d->model];

    object_name(d, name, sizeof name);
    folder(d->model, dir, sizeof dir);
    put_comment(f, "The volume is the folder on the node; put your claim in its place. "
                   "CPUs are pinned by a kubelet with --cpu-manager-policy=static.");
    fputs("apiVersion: apps/v1\nkind: Deployment\nmetadata:\n", f);
    put_string(f, "  name: ", name);
    fputs("spec:\n  replicas: 1\n  selector:\n    matchLabels:\n", f);
    put_string(f, "      app: ", name);
    fputs("  template:\n    metadata:\n      labels:\n", f);
    put_string(f, "        app: ", name);
    fputs("    spec:\n      containers:\n", f);
    put_container(f, d);
    fputs("      volumes:\n        - name: models\n          hostPath:\n", f);
    put_string(f, "            path: ", strcmp(dir, ".") ? dir : "/PATH/TO/MODELS");
    fputs("            type: Directory\n", f);
}

enum status deploy_print(FILE *f, const struct deploy *d, struct err *err)
{
    if (d->target == DEPLOY_OLLAMA)
        return print_ollama(f, d, err);
    if (d->target == DEPLOY_DOCKER)
        return print_docker(f, d, err);
    put_source(f, d);
    put_together(f, d);
    put_memory(f, d);
    if (d->target == DEPLOY_SLMBENCH)
        print_slmbench(f, d);
    else if (d->target == DEPLOY_LLAMA_CPP)
        print_llama_cpp(f, d);
    else
        print_k8s(f, d);
    return ST_OK;
}
