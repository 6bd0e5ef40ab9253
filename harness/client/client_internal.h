/* SPDX-License-Identifier: MIT
 *
 * client_internal.h - the client of bench load between its files: connections and the
 * requests on them (client_slots.c), when they are sent and answers read (client.c)
 *
 * Threading: as client.h.
 */
#ifndef SLM_HARNESS_CLIENT_CLIENT_INTERNAL_H
#define SLM_HARNESS_CLIENT_CLIENT_INTERNAL_H

#include "harness/client/client.h"

#ifdef SLM_HAVE_CURL
#include <curl/curl.h>

/* libcurl's options of all requests, also those of client_get.c: the URL, our name,
 * HTTP/1.1, no proxy, no redirects. Error: ST_NO_MEMORY. */
enum status client_set_common(CURL *easy, const char *url, struct err *err);

/* A line more of the header, or the one with the key (NULL: none). False: no memory. */
bool client_add_line(struct curl_slist **list, const char *line);
bool client_add_key(struct curl_slist **list, const char *key);

struct slot {
    struct client *client;
    size_t user; /* its number among the slots */
    bool has_sent;
    bool has_user; /* who will send the next request, too */
    struct answer answer;
    CURL *easy;
    struct curl_slist *headers;
    char *body;
    size_t n_body, n_sent; /* bytes of it, and those that libcurl has */
    bool is_running;
    uint64_t resume_ns; /* an idle user sends nothing before */
    struct load_record record;
    struct load_reply reply;
    char error_text[CURL_ERROR_SIZE];
};

struct client {
    const struct load_target *target;
    const struct load_work *work;
    struct load_result *r;
    CURLM *multi;
    struct slot **slots; /* [n_slots] */
    size_t n_slots, n_running;
    size_t n_came;             /* of work->at_s */
    size_t n_started, n_ended; /* ended: measured ones only */
    size_t n_wanted;           /* less than requested if time was short */
    size_t n_failed_in_row;
    bool any_ok;
    struct err failed; /* of work->answered */
    int beat_fd, due_fd;
    uint64_t beat_ns, due_ns, checked_ns;
    float *late_ms;
    size_t n_beats;
    double late_max_ms;
};

/* seconds after begin_ns; UINT64_MAX, which is never, where that is ages away. */
static inline uint64_t client_ns_after(uint64_t begin_ns, double seconds)
{
    return seconds < 1e9 ? begin_ns + (uint64_t)(seconds * 1e9) : UINT64_MAX;
}

/* A new one. Error: ST_NO_MEMORY. */
enum status client_add_slot(struct client *c, struct err *err);

/* A slot without a user or request, or a new one. NULL: err has the
 * reason. */
struct slot *client_idle_slot(struct client *c, struct err *err);

/* Sends the next request on it. scheduled_ns: when it was due; 0: now. Errors:
 * ST_NO_MEMORY, and those of work->body. */
enum status client_start(struct client *c, struct slot *s, uint64_t scheduled_ns,
                         struct err *err);

/* The request has ended, as libcurl reports. */
void client_finish(struct client *c, struct slot *s, CURLcode code);

/* Ends the requests that have been silent, or taken, for too long, and those whose
 * answer is whole but whose connection the server keeps open. */
void client_end_slow(struct client *c, uint64_t now);

/* Cuts what still runs, and frees. */
void client_free_slots(struct client *c);

#endif
#endif
