/* SPDX-License-Identifier: MIT
 *
 * sessions.c - a history for each user
 */
#include "harness/serve/load/sessions.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/random.h"
#include "harness/base/parse.h"

/* Sessions that may have come before the first one of an open loop. */
#define MAX_BEFORE 100000

struct talk {
    uint64_t state;   /* of the random numbers of this user */
    size_t n_talks;   /* sessions begun */
    json_t *messages; /* NULL: the next request begins a session */
    int turn, n_turns;
    int skipped; /* turns that the session has had before its first request */
    int64_t n_known;
    bool calls; /* this turn is to call a tool */
};

struct sessions {
    const struct session_settings *s;
    const struct load_prompts *p;
    json_t *tools; /* NULL: none */
    bool arrive;   /* a user whose session ends leaves */
    size_t n;
    struct talk v[]; /* [n] */
};

/* ---- settings -------------------------------------------------------------------- */

static enum status set(struct session_settings *s, const char *key, const char *value,
                       struct err *err)
{
    if (!strcmp(key, "turns"))
        return load_dist_parse(&s->turns, value, "--sessions turns", err);
    if (!strcmp(key, "think"))
        return load_dist_parse_s(&s->think, value, "--sessions think", err);
    if (!strcmp(key, "next"))
        return load_dist_parse(&s->next, value, "--sessions next", err);
    if (!strcmp(key, "tools"))
        return parse_double(value, "--sessions tools", 0, 100, &s->tools_pct, err);
    return err_set(err, ST_USAGE,
                   "--sessions: '%.40s=%.40s' is not one of turns=N, think=SECONDS, "
                   "next=TOKENS and tools=PERCENT",
                   key, value);
}

enum status session_settings_parse(struct session_settings *s, const char *text,
                                   struct err *err)
{
    struct session_settings own = {.next = {LOAD_FIXED, 64, 64}};
    struct parse_list pairs = {.what = "--sessions", .text = text};
    enum status st = ST_OK;

    if (strlen(text) >= sizeof own.text)
        return err_set(err, ST_USAGE, "--sessions: more than %zu characters",
                       sizeof own.text - 1);
    memcpy(own.text, text, strlen(text) + 1);
    while (parse_item(&pairs, &st, err)) {
        char *value = strchr(pairs.item, '=');

        if (value)
            *value++ = '\0';
        st = set(&own, pairs.item, value ? value : "", err);
    }
    if (st == ST_OK && own.turns.kind != LOAD_LOGNORMAL &&
        !(own.turns.a >= 1 && own.turns.b <= SESSIONS_MAX_TURNS))
        st = err_set(err, ST_USAGE, "--sessions: turns=N is needed, 1 to %d",
                     SESSIONS_MAX_TURNS);
    if (st == ST_OK)
        *s = own;
    return st;
}

/* ---- sessions -------------------------------------------------------------------- */

static double uniform(uint64_t *state)
{
    return (double)(random_bits(state) >> 11) * 0x1p-53;
}

/* Appends a message; false: no memory. Takes the reference. */
static bool append(struct talk *t, json_t *message)
{
    return message && !json_array_append_new(t->messages, message);
}

static bool append_words(struct sessions *x, struct talk *t, const char *role,
                         const struct load_dist *tokens)
{
    char *text = load_prompts_words(x->p, load_dist_draw(tokens, &t->state), &t->state);
    const bool ok =
        text && append(t, json_pack("{s:s, s:s}", "role", role, "content", text));

    free(text);
    return ok;
}

/* The first message, and those of the turns that were before. */
static bool begin_talk(struct sessions *x, struct talk *t, struct load_record *r)
{
    const size_t user = (size_t)(t - x->v), index = (user + 1) << 32 | t->n_talks++;
    char *text = load_prompts_first(x->p, index, r);
    bool ok;

    t->messages = json_array();
    t->turn = t->skipped + 1;
    t->n_known = -1; /* that a server has cached of its template, nobody knows */
    if (!t->skipped)
        t->n_known = r->n_known >= 0 ? r->n_known : x->p->n_known;
    ok = text && t->messages &&
         append(t, json_pack("{s:s, s:s}", "role", "user", "content", text));
    for (; t->skipped && ok; t->skipped--)
        ok = append_words(x, t, "assistant", &x->p->output) &&
             append_words(x, t, "user", &x->s->next);
    free(text);
    return ok;
}

static int draw_turns(const struct session_settings *s, struct talk *t)
{
    const int n = load_dist_draw(&s->turns, &t->state);

    return n < SESSIONS_MAX_TURNS ? n : SESSIONS_MAX_TURNS;
}

static void end_talk(struct sessions *x, struct talk *t)
{
    json_decref(t->messages);
    t->messages = NULL;
    t->n_turns = draw_turns(x->s, t);
}

enum status sessions_body(void *sessions, size_t user, struct load_record *r,
                          char **body, struct err *err)
{
    struct sessions *x = sessions;
    struct talk *t = &x->v[user];
    bool ok = true;
    json_t *o;

    if (t->messages)
        r->n_requested = load_dist_draw(&x->p->output, &t->state);
    else
        ok = begin_talk(x, t, r);
    /* the last turn cannot call: nobody would send the result */
    t->calls =
        x->tools && t->turn < t->n_turns && 100 * uniform(&t->state) < x->s->tools_pct;
    r->turn = t->turn;
    r->n_known = t->n_known;
    o = ok ? load_prompts_request(x->p, json_incref(t->messages), r->n_requested)
           : NULL;
    if (x->tools && o &&
        (json_object_set(o, "tools", x->tools) ||
         json_object_set_new(o, "tool_choice",
                             json_string(t->calls ? "required" : "auto"))))
        ok = false;
    *body = o && ok ? json_dumps(o, JSON_COMPACT) : NULL;
    json_decref(o);
    return *body ? ST_OK : err_set(err, ST_NO_MEMORY, "no memory for a conversation");
}

/* A result for each call. */
static bool append_results(struct sessions *x, struct talk *t, const struct answer *a)
{
    bool ok = true;

    for (size_t i = 0; i < a->n_calls && ok; i++) {
        ok = append_words(x, t, "tool", &x->s->next);
        if (ok)
            ok = !json_object_set_new(
                json_array_get(t->messages, json_array_size(t->messages) - 1),
                "tool_call_id", json_string(a->call[i].id));
    }
    return ok;
}

enum status sessions_answered(void *sessions, size_t user, const struct load_record *r,
                              const struct answer *answer, double *pause_s,
                              struct err *err)
{
    struct sessions *x = sessions;
    struct talk *t = &x->v[user];
    bool ok;

    *pause_s = load_dist_draw_s(&x->s->think, &t->state);
    if (r->end != LOAD_OK || t->turn >= t->n_turns) {
        end_talk(x, t);
        *pause_s = x->arrive ? -1 : *pause_s;
        return ST_OK;
    }
    t->turn++;
    t->n_known = r->n_prompt < 0 || r->n_tokens < 0        ? -1
                 : r->n_reasoning > 0 || r->n_thoughts > 0 ? r->n_prompt
                                                           : r->n_prompt + r->n_tokens;
    ok = append(t, answer_message(answer));
    if (answer->n_calls)
        *pause_s = 0; /* a program sends the results */
    ok = ok && (answer->n_calls ? append_results(x, t, answer)
                                : append_words(x, t, "user", &x->s->next));
    return ok ? ST_OK : err_set(err, ST_NO_MEMORY, "no memory for a conversation");
}

/* ---- a level --------------------------------------------------------------------- */

static json_t *make_tools(void)
{
    return json_pack("[{s:s, s:{s:s, s:s, s:{s:s, s:{s:{s:s}}, s:[s]}}}]", "type",
                     "function", "function", "name", "look_up", "description",
                     "Looks a word up", "parameters", "type", "object", "properties",
                     "word", "type", "string", "required", "word");
}

static enum status make(struct sessions **out, const struct session_settings *s,
                        const struct load_prompts *p, int n_users, struct err *err)
{
    const size_t n = (size_t)n_users;
    struct sessions *x = calloc(1, sizeof *x + n * sizeof x->v[0]);

    if (x && s->tools_pct > 0)
        x->tools = make_tools();
    if (!x || (s->tools_pct > 0 && !x->tools)) {
        free(x);
        return err_set(err, ST_NO_MEMORY, "no memory for %d conversations", n_users);
    }
    x->s = s;
    x->p = p;
    x->n = n;
    for (size_t i = 0; i < n; i++) {
        x->v[i].state = p->seed ^ (p->n_before + i + 1) * UINT64_C(0x9e3779b97f4a7c15);
        end_talk(x, &x->v[i]);
    }
    *out = x;
    return ST_OK;
}

enum status sessions_begin(struct sessions **out, const struct session_settings *s,
                           const struct load_prompts *p, int n_users, double *first_s,
                           struct err *err)
{
    const enum status st = make(out, s, p, n_users, err);

    for (int i = 0; i < n_users && !st; i++) {
        struct talk *t = &(*out)->v[i];

        t->skipped = (int)(uniform(&t->state) * t->n_turns);
        first_s[i] = uniform(&t->state) * load_dist_draw_s(&s->think, &t->state);
    }
    return st;
}

/* Whether a session that came age_s ago, whose answers come at once, is in a pause now;
 * then the turns before it, and how long it lasts. */
static bool pauses(const struct session_settings *s, struct talk *t, double age_s,
                   double *first_s)
{
    *first_s = -age_s;
    for (t->skipped = 1; t->skipped < t->n_turns; t->skipped++) {
        if (100 * uniform(&t->state) >= s->tools_pct)
            *first_s += load_dist_draw_s(&s->think, &t->state);
        if (*first_s > 0)
            return true;
    }
    t->skipped = 0;
    return false;
}

/* Hardly a draw is larger. */
static double largest(const struct load_dist *d)
{
    return d->kind == LOAD_LOGNORMAL ? d->a * exp(4 * d->b) : d->b;
}

enum status sessions_arrive(struct sessions **out, const struct session_settings *s,
                            const struct load_prompts *p, double rate, double *first_s,
                            int *n_first, struct err *err)
{
    const double max_age_s = largest(&s->turns) * largest(&s->think);
    const enum status st = make(out, s, p, LOAD_MAX_USERS, err);
    double age_s = 0;

    *n_first = 0;
    if (st)
        return st;
    (*out)->arrive = true;
    for (int i = 0; i < MAX_BEFORE && *n_first < LOAD_MAX_USERS; i++) {
        struct talk *t = &(*out)->v[*n_first];

        age_s -= log(uniform(&t->state) + 0x1p-54) / rate;
        if (age_s > max_age_s)
            break;
        t->n_turns = draw_turns(s, t);
        *n_first += pauses(s, t, age_s, &first_s[*n_first]);
    }
    return ST_OK;
}

void sessions_end(struct sessions *s)
{
    for (size_t i = 0; s && i < s->n; i++)
        json_decref(s->v[i].messages);
    if (s)
        json_decref(s->tools);
    free(s);
}
