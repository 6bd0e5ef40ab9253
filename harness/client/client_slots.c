/* SPDX-License-Identifier: MIT
 *
 * client_slots.c - connections, and a request on each
 */
#include "harness/client/client_internal.h"

#ifdef SLM_HAVE_CURL

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"

#define LINGER_S 0.1 /* that the end of a body may take after "[DONE]" */

/* ---- one request ----------------------------------------------------------------- */

static size_t on_header(char *bytes, size_t size, size_t n, void *arg)
{
    struct slot *s = arg;

    return load_reply_header(&s->reply, bytes, size * n) ? size * n : 0;
}

static size_t on_body(char *bytes, size_t size, size_t n, void *arg)
{
    struct slot *s = arg;

    return load_reply_feed(&s->reply, bytes, size * n, clock_ns()) ? size * n : 0;
}

static size_t send_body(char *out, size_t size, size_t n, void *arg)
{
    struct slot *s = arg;
    const size_t len = s->n_body - s->n_sent, cap = size * n;
    const size_t now = len < cap ? len : cap;

    memcpy(out, s->body + s->n_sent, now);
    s->n_sent += now;
    return now;
}

/* libcurl would send a request again whose connection ends before the reply. Most
 * clients would not, and the server may have read it: it has failed. A connection that
 * the server closed before is not used again. */
static int fail_instead(void *arg, curl_off_t offset, int origin)
{
    struct slot *s = arg;

    (void)offset, (void)origin;
    load_record_fail(&s->record, "the server closed the connection without an answer");
    return CURL_SEEKFUNC_FAIL;
}

static bool set_body(struct slot *s)
{
    s->n_sent = 0;
    s->n_body = strlen(s->body);
    return !curl_easy_setopt(s->easy, CURLOPT_POST, 1L) &&
           !curl_easy_setopt(s->easy, CURLOPT_READFUNCTION, send_body) &&
           !curl_easy_setopt(s->easy, CURLOPT_READDATA, s) &&
           !curl_easy_setopt(s->easy, CURLOPT_SEEKFUNCTION, fail_instead) &&
           !curl_easy_setopt(s->easy, CURLOPT_SEEKDATA, s) &&
           !curl_easy_setopt(s->easy, CURLOPT_POSTFIELDSIZE_LARGE,
                             (curl_off_t)s->n_body);
}

static bool make_headers(struct slot *s, const char *key, bool is_vector)
{
    char id[64];

    snprintf(id, sizeof id, "X-Request-Id: slmbench-%zu", s->record.index);
    curl_slist_free_all(s->headers);
    s->headers = NULL;
    return client_add_line(&s->headers, "Content-Type: application/json") &&
           client_add_line(&s->headers, is_vector ? "Accept: application/json"
                                                  : "Accept: text/event-stream") &&
           client_add_line(&s->headers, "Expect:") &&
           client_add_line(&s->headers, id) && client_add_key(&s->headers, key);
}

/* A handle for each request: libcurl counts over all requests of a handle how often a
 * kept connection turned out to be closed, and gives up at five. The connections
 * themselves belong to the multi handle. */
static enum status renew(struct slot *s, const char *url, struct err *err)
{
    enum status st;

    curl_easy_cleanup(s->easy);
    s->easy = curl_easy_init();
    if (!s->easy)
        return err_set(err, ST_NO_MEMORY, "no memory for a connection");
    st = client_set_common(s->easy, url, err);
    if (st)
        return st;
    if (curl_easy_setopt(s->easy, CURLOPT_HEADERFUNCTION, on_header) ||
        curl_easy_setopt(s->easy, CURLOPT_HEADERDATA, s) ||
        curl_easy_setopt(s->easy, CURLOPT_WRITEFUNCTION, on_body) ||
        curl_easy_setopt(s->easy, CURLOPT_WRITEDATA, s) ||
        curl_easy_setopt(s->easy, CURLOPT_PRIVATE, s) ||
        curl_easy_setopt(s->easy, CURLOPT_ERRORBUFFER, s->error_text))
        return err_set(err, ST_NO_MEMORY, "no memory for a connection");
    return ST_OK;
}

enum status client_start(struct client *c, struct slot *s, uint64_t scheduled_ns,
                         struct err *err)
{
    enum status st;

    free(s->body);
    s->body = NULL;
    s->record = (struct load_record){.index = c->n_started,
                                     .is_first = !s->has_sent,
                                     .n_known = -1,
                                     .n_prompt = -1,
                                     .n_tokens = -1,
                                     .n_cached = -1,
                                     .n_reasoning = -1};
    st = c->work->body(c->work->body_arg, s->user, &s->record, &s->body, err);
    if (st == ST_OK)
        st = renew(s, c->target->url, err);
    if (st)
        return st;
    load_reply_begin(&s->reply, &s->record);
    s->reply.is_vector = c->target->is_vector;
    answer_free(&s->answer);
    s->reply.answer = c->work->answered ? &s->answer : NULL;
    s->has_sent = true;
    s->error_text[0] = '\0';
    if (!make_headers(s, c->target->key, c->target->is_vector) ||
        curl_easy_setopt(s->easy, CURLOPT_HTTPHEADER, s->headers) || !set_body(s))
        return err_set(err, ST_NO_MEMORY, "no memory for a request");
    s->record.sent_ns = s->reply.text_ns = clock_ns();
    s->record.scheduled_ns = scheduled_ns ? scheduled_ns : s->record.sent_ns;
    if (curl_multi_add_handle(c->multi, s->easy))
        return err_set(err, ST_NO_MEMORY, "no memory for a request");
    s->is_running = true;
    c->n_running++;
    c->n_started++;
    if (s->record.index < c->n_wanted)
        c->r->end_ns = s->record.sent_ns;
    return ST_OK;
}

/* Out of libcurl, and into the result if it counts. */
static void put_away(struct client *c, struct slot *s)
{
    curl_multi_remove_handle(c->multi, s->easy);
    s->is_running = false;
    c->n_running--;
    if (s->record.index < c->n_wanted) {
        c->r->records[s->record.index] = s->record;
        c->n_ended++;
    } else {
        load_record_free(&s->record);
    }
    s->record.gap_ms = NULL;
}

static void pause_user(struct client *c, struct slot *s, uint64_t now)
{
    if (c->work->answered && !c->failed.code)
        c->work->answered(c->work->body_arg, s->user, &s->record, &s->answer,
                          &s->record.pause_s, &c->failed);
    if (s->record.pause_s < 0) {
        s->has_user = false;
        s->record.pause_s = 0;
    }
    s->resume_ns = client_ns_after(now, client_pause_s(&s->record));
    c->any_ok |= s->record.end == LOAD_OK;
    c->n_failed_in_row = s->record.end == LOAD_OK ? 0 : c->n_failed_in_row + 1;
}

static void note_curl(struct slot *s, CURLcode code)
{
    const char *error_text = *s->error_text ? s->error_text : curl_easy_strerror(code);

    if (s->record.n_pieces)
        load_record_fail(&s->record, "the connection ended after %d pieces: %s",
                         s->record.n_pieces, error_text);
    else
        load_record_fail(&s->record, "%s", error_text);
}

void client_finish(struct client *c, struct slot *s, CURLcode code)
{
    const uint64_t now = clock_ns();

    if (code && s->record.end == LOAD_RUNNING && !s->reply.is_done)
        note_curl(s, code);
    load_reply_end(&s->reply, now);
    pause_user(c, s, now);
    put_away(c, s);
}

/* What keeps a connection alive is no text: a server that sends nothing else hangs. */
void client_end_slow(struct client *c, uint64_t now)
{
    const struct load_target *t = c->target;

    for (size_t i = 0; i < c->n_slots; i++) {
        struct slot *s = c->slots[i];
        const double silent_s = (double)(now - s->reply.text_ns) * 1e-9;
        const double total_s = (double)(now - s->record.sent_ns) * 1e-9;

        if (!s->is_running)
            continue;
        if (s->reply.is_done) {
            if (silent_s >= LINGER_S)
                client_finish(c, s, CURLE_OK);
            continue;
        }
        if (silent_s >= t->silence_s)
            load_record_fail(&s->record, "silent for %.3g s after %d pieces",
                             t->silence_s, s->record.n_pieces);
        else if (t->max_s > 0 && total_s >= t->max_s)
            load_record_fail(&s->record, "not done after %.3g s and %d pieces",
                             t->max_s, s->record.n_pieces);
        else
            continue;
        s->record.is_late = true;
        client_finish(c, s, CURLE_OK);
    }
}

/* ---- slots ----------------------------------------------------------------------- */

enum status client_add_slot(struct client *c, struct err *err)
{
    struct slot *s = calloc(1, sizeof *s);

    if (!s)
        return err_set(err, ST_NO_MEMORY, "no memory for a connection");
    s->client = c;
    s->user = c->n_slots;
    s->has_user = true;
    c->slots[c->n_slots++] = s;
    return ST_OK;
}

struct slot *client_idle_slot(struct client *c, struct err *err)
{
    for (size_t i = 0; i < c->n_slots; i++)
        if (!c->slots[i]->is_running && !c->slots[i]->has_user)
            return c->slots[i];
    if (c->n_slots == LOAD_MAX_USERS || client_add_slot(c, err))
        return NULL;
    return c->slots[c->n_slots - 1];
}

void client_free_slots(struct client *c)
{
    for (size_t i = 0; i < c->n_slots; i++) {
        struct slot *s = c->slots[i];

        if (s->is_running) {
            s->record.end = LOAD_CUT;
            s->record.done_ns = clock_ns();
            put_away(c, s);
        }
        curl_easy_cleanup(s->easy);
        curl_slist_free_all(s->headers);
        load_reply_free(&s->reply);
        answer_free(&s->answer);
        free(s->body);
        free(s);
    }
    free(c->slots);
}

#endif
