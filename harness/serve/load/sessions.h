/* SPDX-License-Identifier: MIT
 *
 * sessions.h - users who converse: turns, pauses to think, tools
 *
 * Model of the world: a session is a conversation of some turns. Each turn is a request
 * with all earlier messages, the server's own answers included but without their
 * thoughts. Its user reads and thinks, then sends the next turn; after the last one a
 * new session begins. In a share of the turns the model is to call a tool: the request
 * requires it, and the next turn has the tool's result, at once. A turn that fails ends
 * its session.
 *
 * Users are met in the middle: each begins at a random time within a pause, with a
 * random turn of its first session, whose earlier turns are words. So the mixture of
 * turns is the same from the first request to the last. In an open loop sessions come
 * at random times, and their users leave behind the last turn; those who came before
 * and pause are there from the beginning.
 *
 * A server has had the turn before and its answer, or the turn alone where the answer
 * began with thoughts, since these are not sent back.
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_SERVE_LOAD_SESSIONS_H
#define SLM_HARNESS_SERVE_LOAD_SESSIONS_H

#include "harness/client/client.h"
#include "harness/serve/load/prompts.h"

#define SESSIONS_MAX_TURNS 1000

struct session_settings {
    char text[64]; /* as it was given; "": no sessions */
    struct load_dist turns, think,
        next;         /* requests, seconds, tokens of a later message */
    double tools_pct; /* of the turns */
};

/* "turns=5,think=10,next=64,tools=20"; the last three may be missing: no pause, 64
 * tokens and no tools. Errors: ST_USAGE. */
enum status session_settings_parse(struct session_settings *s, const char *text,
                                   struct err *err);

struct sessions;

/* The sessions of a level of n_users. first_s[n_users]: when each of them begins.
 * Settings and prompts must live as long. Error: ST_NO_MEMORY. */
enum status sessions_begin(struct sessions **out, const struct session_settings *s,
                           const struct load_prompts *p, int n_users, double *first_s,
                           struct err *err);

/* Sessions of users who come, `rate` a second; n_first of them are there, and continue
 * at first_s[LOAD_MAX_USERS]. */
enum status sessions_arrive(struct sessions **out, const struct session_settings *s,
                            const struct load_prompts *p, double rate, double *first_s,
                            int *n_first, struct err *err);
void sessions_end(struct sessions *s);

/* load_body_fn and load_answered_fn of a struct sessions. */
enum status sessions_body(void *sessions, size_t user, struct load_record *r,
                          char **body, struct err *err);
enum status sessions_answered(void *sessions, size_t user, const struct load_record *r,
                              const struct answer *answer, double *pause_s,
                              struct err *err);

#endif
