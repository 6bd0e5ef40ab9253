/* SPDX-License-Identifier: MIT
 *
 * sse.h - server-sent events, as a server streams an answer
 *
 * Model of the world: bytes come in pieces that end anywhere. An event is some lines
 * and an empty line; only its `data:` lines matter here, and several of them are
 * one text with line ends between; an event may be named an error. Comments (":") and
 * other fields are passed over. A line may end in \n, \r\n or \r. The sender is not
 * trusted: an event longer than SSE_MAX_EVENT ends the reading.
 *
 * Threading: one thread per reader.
 * Source: HTML Living Standard, "Server-sent events".
 */
#ifndef SLM_HARNESS_CLIENT_SSE_H
#define SLM_HARNESS_CLIENT_SSE_H

#include <stdbool.h>
#include <stddef.h>

#define SSE_MAX_EVENT (256u << 10)

/* The data of one event, zero-terminated, len bytes; false: read no more. */
typedef bool sse_event_fn(void *arg, const char *data, size_t len);

enum sse_status {
    SSE_OK,
    SSE_STOPPED,  /* the function wants no more */
    SSE_TOO_LONG, /* an event longer than SSE_MAX_EVENT */
    SSE_NO_MEMORY,
};

struct sse {
    char *line, *data; /* malloc'ed when they are needed */
    size_t n_line, n_data, line_cap, data_cap;
    bool has_data;      /* the event has a line of data */
    bool is_error;      /* it is named so: "event: error" */
    bool after_return;  /* the last byte was \r: a \n belongs to it */
    bool has_begun;     /* a byte order mark may be before the first line alone */
    size_t n_events;    /* with data */
    size_t n_odd_lines; /* that are no field, comment or empty line */
};

/* Reads len bytes more. Anything but SSE_OK ends the stream: do not call it again. */
enum sse_status sse_feed(struct sse *s, const char *bytes, size_t len, sse_event_fn *fn,
                         void *arg);

/* The stream has ended: an event that no empty line follows is one, too. Some servers
 * end so. The same results. */
enum sse_status sse_end(struct sse *s, sse_event_fn *fn, void *arg);

/* Frees its memory; *s is then as it began, all zero. */
void sse_free(struct sse *s);

#endif
