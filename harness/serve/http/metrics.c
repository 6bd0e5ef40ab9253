/* SPDX-License-Identifier: MIT
 *
 * metrics.c - counters and histograms as text
 */
#include "harness/serve/http/metrics.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "harness/base/sysfile.h"

static const char *const routes[N_ROUTES] = {"/v1/completions",
                                             "/v1/chat/completions",
                                             "/v1/messages",
                                             "/v1/responses",
                                             "/v1/embeddings",
                                             "/tokenize",
                                             "/detokenize",
                                             "/v1/messages/count_tokens",
                                             "/apply-template",
                                             "/v1/models",
                                             "/health",
                                             "/metrics",
                                             "other"};

/* Seconds. A step takes from under a millisecond to some seconds, a long answer
 * minutes. */
static const double bounds[METRICS_BUCKETS] = {0.001, 0.005, 0.01, 0.025, 0.05, 0.1,
                                               0.2,   0.3,   0.5,  1.0,   2.0,  5.0,
                                               10.0,  30.0,  60.0, 300.0};

const char *metrics_route_name(enum metrics_route route)
{
    return routes[route];
}

void metrics_reply(struct metrics *m, enum metrics_route route, int status)
{
    if (status >= 100 && status < 600)
        m->replies[route][status]++;
}

void histogram_add(struct histogram *h, double seconds)
{
    int i = 0;

    while (i < METRICS_BUCKETS && seconds > bounds[i])
        i++;
    h->count[i]++;
    h->sum += seconds;
}

static void put_head(struct textbuf *out, const char *name, const char *type,
                     const char *help)
{
    textbuf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void put_value(struct textbuf *out, const char *name, const char *type,
                      const char *help, double v)
{
    put_head(out, name, type, help);
    textbuf_printf(out, "%s %.17g\n", name, v);
}

static void put_histogram(struct textbuf *out, const char *name, const char *help,
                          const struct histogram *h)
{
    uint64_t n = 0;

    put_head(out, name, "histogram", help);
    for (int i = 0; i < METRICS_BUCKETS; i++) {
        n += h->count[i];
        textbuf_printf(out, "%s_bucket{le=\"%g\"} %" PRIu64 "\n", name, bounds[i], n);
    }
    n += h->count[METRICS_BUCKETS];
    textbuf_printf(out, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n", name, n);
    textbuf_printf(out, "%s_sum %.9g\n%s_count %" PRIu64 "\n", name, h->sum, name, n);
}

static void put_replies(struct textbuf *out, const struct metrics *m)
{
    static const char name[] = "slm_http_replies_total";

    put_head(out, name, "counter", "Replies by route and HTTP status.");
    for (int route = 0; route < N_ROUTES; route++)
        for (int status = 100; status < 600; status++)
            if (m->replies[route][status])
                textbuf_printf(out, "%s{route=\"%s\",code=\"%d\"} %" PRIu64 "\n", name,
                               routes[route], status, m->replies[route][status]);
}

/* Acceptance is the second over the first; for drafts' tokens behind a rejected one
 * nothing is known. */
static void put_drafts(struct textbuf *out, const struct scheduler_stats *s)
{
    const struct {
        const char *name, *help;
        const uint64_t *n;
    } each[] = {
        {"slm_draft_tried_total",
         "Drafted tokens before which all were accepted, by position in the draft.",
         s->drafted_at},
        {"slm_draft_accepted_total", "Drafted tokens that were accepted, by position.",
         s->accepted_at},
    };

    for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
        put_head(out, each[i].name, "counter", each[i].help);
        for (int at = 0; at < SPECULATE_MAX; at++)
            textbuf_printf(out, "%s{position=\"%d\"} %" PRIu64 "\n", each[i].name,
                           at + 1, each[i].n[at]);
    }
}

static void put_scheduler(struct textbuf *out, const struct scheduler_stats *s)
{
    const struct {
        const char *name, *help;
        double v;
    } counters[] = {
        {"slm_requests_total", "Completions requested.", (double)s->n_requests},
        {"slm_requests_refused_total", "Completions refused: the queue was full.",
         (double)s->n_refused},
        {"slm_requests_completed_total", "Completions that ended.",
         (double)s->n_completed},
        {"slm_requests_cancelled_total", "Completions whose client left.",
         (double)s->n_cancelled},
        {"slm_requests_failed_total", "Completions that an error ended.",
         (double)s->n_failed},
        {"slm_preemptions_total", "Times that one was dropped and computed again.",
         (double)s->n_preempted},
        {"slm_prompt_tokens_total", "Tokens of prompts.", (double)s->n_prompt},
        {"slm_cached_tokens_total", "Tokens of prompts taken from kept prefixes.",
         (double)s->n_cached},
        {"slm_checkpoints_made_total", "Checkpoints kept.",
         (double)s->n_checkpoints_made},
        {"slm_checkpoints_restored_total", "Times that a text continued from one.",
         (double)s->n_checkpoints_restored},
        {"slm_checkpoints_dropped_total", "Checkpoints that were kept no longer.",
         (double)(s->n_checkpoints_made - s->n_checkpoints_kept)},
        {"slm_generated_tokens_total", "Tokens generated.", (double)s->n_generated},
        {"slm_forced_tokens_total",
         "Tokens of completions that have ended which a grammar or a budget of "
         "thoughts "
         "forced, without the model.",
         (double)s->n_forced},
        {"slm_drafted_tokens_total", "Tokens of drafts (speculative decoding).",
         (double)s->n_drafted},
        {"slm_steps_total", "Passes of the model.", (double)s->n_steps},
        {"slm_step_tokens_total", "Tokens in passes.", (double)s->n_step_tokens},
        {"slm_step_seconds_total", "Seconds in passes.", s->busy_s},
    };
    const struct {
        const char *name, *help;
        double v;
    } gauges[] = {
        {"slm_requests_waiting", "Completions that wait.", s->n_waiting},
        {"slm_requests_running", "Completions that run.", s->n_running},
        {"slm_sequences", "Completions that can run at once.", s->n_sequences},
        {"slm_kv_pages", "Pages of the KV cache.", (double)s->n_pages},
        {"slm_kv_pages_free", "Pages without content.", (double)s->n_pages_free},
        {"slm_kv_pages_kept", "Pages that keep prefixes.", (double)s->n_pages_kept},
        {"slm_checkpoints", "Checkpoints that can be kept.", s->n_checkpoints},
        {"slm_checkpoints_kept", "Checkpoints that keep prefixes.",
         (double)s->n_checkpoints_kept},
        {"slm_checkpoints_free", "Places without a checkpoint.",
         (double)s->n_checkpoints_free},
    };

    for (size_t i = 0; i < sizeof counters / sizeof *counters; i++)
        put_value(out, counters[i].name, "counter", counters[i].help, counters[i].v);
    for (size_t i = 0; i < sizeof gauges / sizeof *gauges; i++)
        put_value(out, gauges[i].name, "gauge", gauges[i].help, gauges[i].v);
    put_drafts(out, s);
}

/* ---- this process ---------------------------------------------------------------- */

static double resident_bytes(void)
{
    unsigned long long resident = 0;
    char text[128];

    if (sysfile_read("", "/proc/self/statm", text, sizeof text) > 0)
        sscanf(text, "%*u %llu", &resident);
    return (double)resident * (double)sysconf(_SC_PAGESIZE);
}

static double cpu_seconds(void)
{
    struct rusage u;

    if (getrusage(RUSAGE_SELF, &u))
        return 0;
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static double open_files(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int n = 0;

    if (!dir)
        return 0;
    for (const struct dirent *e; (e = readdir(dir));)
        n += e->d_name[0] != '.';
    closedir(dir);
    return n - 1; /* that of the folder */
}

void metrics_put(struct textbuf *out, const struct metrics *m,
                 const struct scheduler_stats *s)
{
    put_replies(out, m);
    put_value(out, "slm_http_connections", "gauge", "Connections that are open.",
              m->n_connections);
    put_value(out, "slm_http_requests", "gauge", "Requests that are being served.",
              m->n_requests);
    put_value(out, "slm_http_body_bytes", "gauge", "Bytes of bodies that come.",
              (double)m->body_bytes);
    put_value(out, "slm_answer_bytes", "gauge",
              "Bytes of answers that are kept to be sent as a whole.",
              (double)m->whole_bytes);
    put_value(out, "slm_stream_bytes", "gauge",
              "Memory of streams that their clients have not read yet.",
              (double)m->stream_bytes);
    put_value(out, "slm_schema_bytes", "gauge", "Memory of the schemas of requests.",
              (double)__atomic_load_n(&m->schema_bytes, __ATOMIC_RELAXED));
    put_value(out, "slm_clients_gone_total", "counter",
              "Clients that left before the end of their answer.", (double)m->n_gone);
    put_value(out, "slm_clients_cut_total", "counter",
              "Clients that were cut off because they read too slowly.",
              (double)m->n_cut);
    put_histogram(out, "slm_time_to_first_token_seconds",
                  "From the request to its first text.", &m->first);
    put_histogram(out, "slm_inter_token_seconds",
                  "From one piece of text of an answer to the next.", &m->gap);
    put_histogram(out, "slm_request_seconds", "From the request to its answer's end.",
                  &m->whole);
    if (s)
        put_scheduler(out, s);
    put_value(out, "process_resident_memory_bytes", "gauge", "Memory in use.",
              resident_bytes());
    put_value(out, "process_cpu_seconds_total", "counter", "CPU time.", cpu_seconds());
    put_value(out, "process_open_fds", "gauge", "Descriptors that are open.",
              open_files());
}
