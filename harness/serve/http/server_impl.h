/* SPDX-License-Identifier: MIT
 *
 * server_impl.h - connections and requests of a server
 *
 * Threading: the server's thread, but for what is under the mutex.
 */
#ifndef SLM_HARNESS_SERVE_HTTP_SERVER_IMPL_H
#define SLM_HARNESS_SERVE_HTTP_SERVER_IMPL_H

#include <microhttpd.h>
#include <pthread.h>

#include "harness/serve/http/server.h"
#include "harness/serve/scheduler/fair_queue.h"

struct exchange;

/* A connection. */
struct client {
    struct client *next, *prev;
    int fd;
    uint64_t since_ns;  /* it was made, or its last answer was sent */
    struct exchange *x; /* its request, or NULL: none has begun */
    struct listen_peer peer;
};

enum exchange_state {
    EXCHANGE_COMES,    /* headers and body are being received */
    EXCHANGE_PENDING,  /* suspended: whole, and not submitted yet */
    EXCHANGE_WAITS,    /* suspended: the answer comes as a whole */
    EXCHANGE_STREAMS,  /* events are sent; suspended while there are no events */
    EXCHANGE_ANSWERED, /* all of the answer is libmicrohttpd's */
};

/* A request and its answer. */
struct exchange {
    struct fair_item item; /* first: what is pending is an exchange */
    struct server *s;
    struct MHD_Connection *connection;
    struct client *client;
    enum exchange_state state;
    bool suspended, seen, cut, is_pending;
    bool is_preparing;         /* body and made belong to a preparing thread; */
    bool is_gone;              /* and libmicrohttpd has forgotten the request by now */
    bool has_bad_path;         /* a blank or a zero, which may be written as %00 */
    const char *uri;           /* libmicrohttpd's, until the headers were looked at */
    size_t uri_bytes;          /* of the path and its query, as they came */
    bool closes;               /* the connection, with the reply */
    uint64_t begin_ns, end_ns; /* end_ns: all that it is answered with was there */
    uint64_t sent_ns;          /* a stream has sent something, or begun */
    uint64_t client_key;       /* the client that it is of, in queues */

    char method[12], path[320]; /* a model's name may be that of a file */
    enum metrics_route route;
    int status; /* of the reply; 0: none yet */
    struct textbuf body;
    uint64_t n_dropped; /* bytes of the body that were not kept */
    struct refusal refusal;
    struct answer *answer;
    struct { /* of the body, by a preparing thread */
        struct refusal refusal;
        struct answer *answer;
    } made;
    uint64_t kept_bytes;   /* of a whole answer, wherever it is until it was sent */
    uint64_t stream_bytes; /* memory of a stream, as counted */

    struct exchange *next_awake; /* under the mutex */
    bool awake;                  /* it is in the list */
};

/* Requests that are prepared at once, each of another client. */
#define SERVER_PREPARERS 2

struct preparer {
    struct server *s;
    pthread_t thread;
    bool has_thread;
    uint64_t begin_ns;  /* the server's thread: when x came here */
    struct exchange *x; /* the server's thread writes it, under the mutex; NULL: none */
    bool is_done;       /* under the mutex */
};

struct server {
    struct server_params params;
    struct request_memory memory;
    struct MHD_Daemon *daemon;
    int epoll, event;  /* event: an eventfd that wakes the thread */
    bool listens;      /* epoll has the listening socket */
    uint64_t retry_ns; /* before that there is no room for a connection; 0: unknown */
    int n_accepted;    /* connections that libmicrohttpd has, but has not begun */
    bool shortage_reported;
    pthread_t thread;
    struct client *clients;
    struct fair_queue pending; /* requests to be prepared */
    struct preparer preparers[SERVER_PREPARERS];
    struct metrics metrics;
    struct answer_model model; /* scheduler NULL: not ready */
    bool has_served;           /* since memory was given back */
    bool stops;                /* the first signal came */
    bool cancels;              /* the second, or the time is over */
    uint64_t stop_ns;          /* when running completions are cancelled */
    uint64_t end_ns; /* when connections that are left are given up; 0: not yet */

    pthread_mutex_t mutex;
    struct exchange *awake;   /* what there is to read, by the scheduler's thread */
    struct answer_model made; /* by server_ready() */
    bool ends;                /* server_close() */
    bool preparers_end;
    pthread_cond_t work; /* for preparing threads */
};

/* ---- exchange.c: the life of a request ------------------------------------------- */

struct exchange *exchange_new(struct server *s, struct MHD_Connection *connection);

/* Its completions are cancelled, if they still run. */
void exchange_free(struct exchange *x);

/* Counts bytes of its whole answer, until it was sent. */
void exchange_keep(struct exchange *x, uint64_t n_bytes);

/* Adds to the body; and it is needed no more. */
void exchange_add_body(struct exchange *x, const char *bytes, size_t n);
void exchange_drop_body(struct exchange *x);

/* Put it into the queue of its client, to be prepared (prepare.c). False: the reason
 * is in x->refusal. */
bool exchange_enqueue(struct exchange *x);

/* There is something to read of an exchange's answer. Any thread. */
void exchange_wake(void *x);

/* libmicrohttpd lets it be until exchange_resume(). */
void exchange_suspend(struct exchange *x);
void exchange_resume(struct exchange *x);

/* Counts the memory of its stream, which is written to and read from. */
void exchange_count_stream(struct exchange *x);

/* Reads what its completions have, and continues the reply. */
void exchange_advance(struct exchange *x);

/* Send a comment, as a stream's keep-alive. */
void exchange_keep_alive(struct exchange *x);

/* Its client has left, or is cut off. */
void exchange_drop(struct exchange *x, bool cut);

/* Those for which there is something to read. */
void exchange_advance_all(struct server *s);

/* ---- prepare.c: requests become completions -------------------------------------- */

/* Free threads begin with what is pending, of the clients with the least service. */
void prepare_begin(struct server *s);

/* Takes what was prepared, and resumes it where it streams or is refused; then
 * prepare_begin(). */
void prepare_advance(struct server *s);

/* False: no thread can be started. prepare_close() waits for what is being prepared. */
bool prepare_open(struct server *s);
void prepare_close(struct server *s);

/* Wakes the server's thread. */
void server_notify(struct server *s);

/* libmicrohttpd, without a thread, and in s->epoll. Errors: ST_IO. */
enum status server_start_daemon(struct server *s, struct err *err);

/* ---- server_accept.c: connections ------------------------------------------------ */

/* Before each wait: epoll waits for connections where there is room for one. Returns
 * after how many ms that may change though nothing happens; -1: never. */
int server_listen(struct server *s);

/* Accepts some of those that wait. */
void server_accept(struct server *s);

/* ---- http.c: requests and replies, as libmicrohttpd calls ------------------------ */

enum MHD_Result http_request(void *server, struct MHD_Connection *connection,
                             const char *url, const char *method, const char *version,
                             const char *upload, size_t *upload_len, void **context);
void *http_begin(void *server, const char *uri, struct MHD_Connection *connection);
size_t http_decode(void *server, struct MHD_Connection *connection, char *text);
void http_completed(void *server, struct MHD_Connection *connection, void **context,
                    enum MHD_RequestTerminationCode how);
void http_connection(void *server, struct MHD_Connection *connection, void **context,
                     enum MHD_ConnectionNotificationCode what);

/* ---- http_framing.c -------------------------------------------------------------- */

/* Whether the request, whose headers are there, can be read in one way only. Where a
 * part of it is not seen, its connection ends with the reply. */
bool http_check_framing(struct exchange *x, const char *method, const char *version);

/* ---- http_room.c ----------------------------------------------------------------- */

/* Whether a request leaves libmicrohttpd the memory to reply: its URI up to a name or a
 * value of an argument, before that has a record; and what is there of it. */
bool http_query_has_room(const struct exchange *x, const char *text);
bool http_has_room(const struct exchange *x);

/* Refuses it without that memory, and ends the connection: for x->refusal, or because
 * there is no room. */
enum MHD_Result http_cut_off(struct exchange *x);
enum MHD_Result http_refuse_without_room(struct exchange *x);

/* ---- http_reply.c ---------------------------------------------------------------- */

/* Each sends the reply to x; MHD_NO: libmicrohttpd could not, and closes. */
enum MHD_Result http_reply(struct exchange *x, int status, const char *type,
                           struct textbuf *body);
enum MHD_Result http_reply_refusal(struct exchange *x);

/* An error in the form of the API that the request is of. */
void http_put_refusal(struct textbuf *out, const struct exchange *x,
                      const struct refusal *refusal);

/* Sends an error past libmicrohttpd; whoever calls it ends the connection. */
void http_send_refusal(struct client *c, const struct refusal *refusal);
enum MHD_Result http_reply_stream(struct exchange *x);
enum MHD_Result http_reply_answer(struct exchange *x);
enum MHD_Result http_reply_health(struct exchange *x);
enum MHD_Result http_reply_models(struct exchange *x, const char *id);
enum MHD_Result http_reply_metrics(struct exchange *x);

/* A line on standard error. */
void http_log(const struct exchange *x, bool complete);

#endif
