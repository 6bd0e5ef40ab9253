/* SPDX-License-Identifier: MIT
 *
 * reply_fixture.h - a reply of a server, in pieces
 */
#ifndef SLM_TESTS_HARNESS_CLIENT_REPLY_FIXTURE_H
#define SLM_TESTS_HARNESS_CLIENT_REPLY_FIXTURE_H

#include "tests/support/test.h"

#include "harness/client/record.h"

#define HEADER "HTTP/1.1 200 OK"
#define TYPE   "Content-Type: text/event-stream; charset=utf-8"
#define PIECE  "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n"
#define USAGE                                                                       \
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":3," \
    "\"prompt_tokens_details\":{\"cached_tokens\":4}}}\n\n"
#define DONE "data: [DONE]\n\n"

static struct load_record record;
static struct load_reply *reply;

static inline int begin(void **state)
{
    (void)state;
    reply = calloc(1, sizeof *reply);
    return reply == NULL;
}

static inline int end(void **state)
{
    (void)state;
    load_record_free(&record);
    load_reply_free(reply);
    free(reply);
    return 0;
}

/* A reply with this body, `step` bytes a millisecond. */
static inline void read_reply(const char *status, const char *type, const char *body,
                              size_t step)
{
    const size_t len = strlen(body);
    uint64_t now = 1000000;

    load_record_free(&record);
    record = (struct load_record){
        .n_requested = 8, .n_prompt = -1, .n_tokens = -1, .n_cached = -1};
    load_reply_begin(reply, &record);
    load_reply_header(reply, status, strlen(status));
    load_reply_header(reply, type, strlen(type));
    for (size_t at = 0; at < len; at += step, now += 1000000)
        if (!load_reply_feed(reply, body + at, len - at < step ? len - at : step, now))
            break;
    load_reply_end(reply, now);
}

#endif
