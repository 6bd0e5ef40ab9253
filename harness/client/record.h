/* SPDX-License-Identifier: MIT
 *
 * record.h - what happened to one request, and the reply that shows it
 *
 * Model of the world: times are clock_ns() of this machine, taken when bytes of the
 * reply are handed to us. A piece is an event with text that is not empty, also of
 * thoughts or of a call of a tool; it is visible where it is no thought and not blank.
 * Some servers leave thoughts in the content, between <think> and </think>, or up to
 * </think> where the template has opened the block; they are thoughts all the same.
 * A server usually sends a token in each, but need not: its `usage` reports how many
 * tokens there were, and the number of pieces is kept next to it. Nothing that a server
 * sends is trusted: sizes, numbers and the form of each event are checked, and what is
 * wrong with a reply is one sentence in its record.
 *
 * Threading: data; one thread per reply.
 */
#ifndef SLM_HARNESS_CLIENT_RECORD_H
#define SLM_HARNESS_CLIENT_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "harness/client/answer.h"
#include "harness/client/sse.h"

enum load_end {
    LOAD_RUNNING,
    LOAD_OK,
    LOAD_FAILED, /* an error of any kind: why has it */
    LOAD_CUT,    /* we ended it: the rung was over */
};

struct load_record {
    size_t index;          /* in the order of starting */
    bool is_first;         /* of its user */
    int turn;              /* of its conversation, from 1; 0: it has none */
    uint64_t scheduled_ns; /* when it was due: the clock of open-loop latencies */
    uint64_t sent_ns;      /* handed to libcurl, connecting included */
    uint64_t first_ns, last_ns, done_ns; /* first and last piece, end; 0: never */
    uint64_t visible_ns;                 /* first visible piece; 0: never */
    int n_requested;                     /* maximum of tokens requested */
    int n_pieces, n_thoughts;            /* n_thoughts: those of thoughts */
    float *gap_ms;   /* [n_pieces - 1] between pieces; malloc'ed, or NULL */
    int *gap_tokens; /* [n_pieces - 1] tokens of the piece that ends it; malloc'ed */
    size_t gap_cap;
    int n_first_tokens; /* in the first piece; 1 if the server does not report it */
    int64_t n_counted; /* tokens so far, by llama-server's `timings`; 0: not reported */
    int64_t n_prompt, n_tokens, n_cached; /* by `usage`; -1: not reported, or not
                                             believed */
    int64_t n_known; /* tokens of its prompt that the server has had, by our count; -1:
                        unknown */
    int64_t n_reasoning; /* tokens of thoughts, by `usage`; -1: not reported */
    bool has_calls;      /* of tools */
    bool has_too_many;   /* `usage` had more tokens than were requested, or came */
    enum load_end end;
    int http_status;    /* 0: none came */
    bool is_refusal;    /* 429 or 503: the server is full */
    bool is_late;       /* failed as it took too long */
    bool is_empty;      /* failed as a whole answer without text */
    double retry_after; /* s, with a refusal; 0: not sent */
    double pause_s;     /* of its user after it */
    char why[200];      /* of LOAD_FAILED, one clause */
};

/* Tokens that it counts with: the server's, or pieces if it reports none. */
static inline int64_t load_record_tokens(const struct load_record *r)
{
    return r->n_tokens >= 0 ? r->n_tokens : r->n_pieces;
}

void load_record_free(struct load_record *r);

/* Marks r as failed with a clause, unless it has failed already; what it quotes is made
 * harmless. */
void load_record_fail(struct load_record *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Pieces that a reply may have for n requested tokens; more are an error. */
#define LOAD_PIECES_MAX(n) (4 * (n) + 64)

/* Bytes of text and calls that are kept of a reply with n requested tokens, to be sent
 * again as part of a conversation; more are an error. */
#define LOAD_TEXT_MAX(n) ((size_t)(n)*1024 + (64u << 10))

/* Bytes of a whole reply, and of what is kept of one that is no stream of events. */
#define LOAD_REPLY_MAX_BYTES (64u << 20)

/* Bytes of all its headers, interim replies' (1xx) and trailers. */
#define LOAD_HEADERS_MAX_BYTES (256u << 10)

#define LOAD_PLAIN_MAX_BYTES (16u << 10)

/* Bytes of an embedding; each of its numbers may take 25. */
#define LOAD_VECTOR_MAX_BYTES (4u << 20)

struct load_reply {
    struct load_record *r;
    struct sse sse;
    uint64_t now_ns;  /* of the bytes that are being read */
    uint64_t text_ns; /* of the last piece; who sends the request sets it to then */
    uint64_t n_bytes, n_header_bytes;
    struct answer *answer; /* that keeps its text and calls; NULL: nothing does */
    int64_t n_counted;     /* of r, at the last piece */
    bool thinks, answers;  /* behind the first marker of its content, and the second */
    uint64_t n_content;    /* bytes of its content, without blanks at its beginning */
    char tail[sizeof ANSWER_THINK_END - 1]; /* the last of them */
    bool is_events;                         /* by its Content-Type */
    bool is_vector;          /* the reply is to be an embedding, one JSON object */
    bool is_done;            /* "[DONE]" came */
    bool is_over;            /* an answer with the reason of its end */
    bool has_ended;          /* no byte follows */
    struct answer_text body; /* of a reply without events: an embedding, whole; another
                                one's beginning */
};

/* Begins the reply of a request; frees what was there. */
void load_reply_begin(struct load_reply *p, struct load_record *r);
void load_reply_free(struct load_reply *p);

/* A line of a header or trailer. False: as load_reply_feed(). */
bool load_reply_header(struct load_reply *p, const char *line, size_t len);

/* Bytes of its body that came at now_ns. False: wrong, r->why has the error; read no
 * more.
 */
bool load_reply_feed(struct load_reply *p, const char *bytes, size_t len,
                     uint64_t now_ns);

/* The body has ended as HTTP has it; r->end shows how. */
void load_reply_end(struct load_reply *p, uint64_t now_ns);

#endif
