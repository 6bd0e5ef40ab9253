/* SPDX-License-Identifier: MIT
 *
 * fuzz_reply.c - what a server sends to `bench load`, as bytes of a connection
 *
 * Through libcurl with the client's own options. A reply gives the same record however
 * its bytes are divided; what ends well has been a stream of events with status 200;
 * and a stream made of the input's lines has one piece for each.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "harness/client/client.h"
#include "tests/fuzz/support/mutate.h"
#include "tests/fuzz/support/oracle.h"

#define N_REQUESTED 100

/* The client would take real-time priority where it may. */
int sched_setscheduler(pid_t pid, int policy, const struct sched_param *param)
{
    (void)pid, (void)policy, (void)param;
    return -1;
}

/* ---- a server of one reply ------------------------------------------------------- */

static struct {
    int fd;
    char url[64];
    const uint8_t *data;
    size_t size, step;
} server = {.fd = -1};

static void open_server(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;

    server.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (server.fd < 0 || bind(server.fd, (struct sockaddr *)&a, len) ||
        listen(server.fd, 16) || getsockname(server.fd, (struct sockaddr *)&a, &len))
        fuzz_fail("no socket");
    snprintf(server.url, sizeof server.url, "http://127.0.0.1:%d/v1/completions",
             ntohs(a.sin_port));
}

/* Reads a request to its last byte, '}', and sends the reply. */
static void *serve(void *arg)
{
    const int fd = accept(server.fd, NULL, NULL);
    char text[4096] = "";

    (void)arg;
    for (ssize_t n = 1; n > 0 && text[n - 1] != '}';)
        n = recv(fd, text, sizeof text, 0);
    for (size_t at = 0; at < server.size;) {
        const size_t left = server.size - at;
        const ssize_t n = send(fd, server.data + at,
                               left < server.step ? left : server.step, MSG_NOSIGNAL);

        if (n <= 0)
            break; /* the client has seen enough */
        at += (size_t)n;
    }
    close(fd);
    return NULL;
}

/* ---- a client of one request ----------------------------------------------------- */

static enum status body(void *arg, size_t user, struct load_record *r, char **text,
                        struct err *err)
{
    (void)arg, (void)user;
    *text = strdup("{\"prompt\":\"a\"}");
    r->n_requested = N_REQUESTED;
    return *text ? ST_OK : err_set(err, ST_NO_MEMORY, "no memory for a body");
}

static struct load_record exchange(const uint8_t *data, size_t size, size_t step)
{
    const struct load_target target = {.url = server.url, .silence_s = 60};
    const struct load_work work = {.n_users = 1, .n_wanted = 1, .body = body};
    struct load_result result;
    struct load_record r;
    struct err err = ERR_INIT;
    pthread_t thread;

    if (server.fd < 0)
        open_server();
    server.data = data;
    server.size = size;
    server.step = step;
    if (pthread_create(&thread, NULL, serve, NULL))
        fuzz_fail("no thread");
    if (!fuzz_accepted(load_client_run(&result, &target, &work, &err), &err) ||
        result.n != 1) {
        shutdown(server.fd, SHUT_RDWR); /* it waits for a client */
        pthread_join(thread, NULL);
        close(server.fd);
        server.fd = -1;
        fuzz_fail("the client does not run");
    }
    pthread_join(thread, NULL);
    r = result.records[0];
    load_result_free(&result);
    if (r.end != LOAD_OK && (r.end != LOAD_FAILED || !*r.why || r.is_late))
        fuzz_fail("a reply that ends has neither ended well nor a reason");
    for (const char *c = r.why; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            fuzz_fail("a reason with the control character %d", *c);
    return r;
}

/* ---- the target ------------------------------------------------------------------ */

static bool holds(const uint8_t *data, size_t size, const char *text)
{
    return memmem(data, size, text, strlen(text)) != NULL;
}

static void read_raw(const uint8_t *data, size_t size)
{
    const struct load_record whole = exchange(data, size, size);
    const struct load_record parts = exchange(data, size, 1 + size / 16);

    if (whole.end != parts.end || whole.n_pieces != parts.n_pieces ||
        whole.n_tokens != parts.n_tokens || whole.http_status != parts.http_status)
        fuzz_fail("in parts it gives '%s', %d pieces, whole '%s', %d pieces", parts.why,
                  parts.n_pieces, whole.why, whole.n_pieces);
    if (whole.end == LOAD_OK &&
        (whole.http_status != 200 || whole.n_pieces < 1 ||
         whole.n_pieces > LOAD_PIECES_MAX(N_REQUESTED) || !holds(data, size, " 200") ||
         !holds(data, size, "data")))
        fuzz_fail("%d pieces end well with status %d", whole.n_pieces,
                  whole.http_status);
}

/* A chunk with an event of one byte of text. */
static void add_event(FILE *f, uint8_t byte)
{
    char event[80];
    const int n = snprintf(event, sizeof event,
                           "data: {\"choices\":[{\"text\":\"\\u%04x\"}]}\n\n", byte);

    fprintf(f, "%x;x=\"y\"\r\n%s\r\n", (unsigned)n, event);
}

/* The first bytes as the texts of a stream, in chunks. */
static void read_made(const uint8_t *data, size_t size)
{
    static const char done[] = "data: [DONE]\n\n";
    const int n = (int)(size < 8 ? size : 8);
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);
    struct load_record r;

    if (!f)
        fuzz_fail("no memory for a stream");
    fputs("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Type: "
          "text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n",
          f);
    for (int i = 0; i < n; i++)
        add_event(f, data[i]);
    fprintf(f, "%x\r\n%s\r\n0\r\nTrailer: x\r\n\r\n", (unsigned)sizeof done - 1, done);
    fclose(f);
    r = exchange((uint8_t *)text, len, 1 + data[0]);
    free(text);
    if (r.end != LOAD_OK || r.n_pieces != n || r.http_status != 200)
        fuzz_fail("%d pieces give %d, '%s'", n, r.n_pieces, r.why);
}

static void read_reply(const uint8_t *data, size_t size)
{
    read_raw(data, size);
    if (size)
        read_made(data, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (server.fd < 0)
        open_server();
    return fuzz_run(read_reply, data, size, FUZZ_BOUND);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned seed)
{
    static const char *const words[] = {"HTTP/1.1 200 OK\r\n",
                                        "HTTP/1.1 100 Continue\r\n\r\n",
                                        "HTTP/1.1 302 Found\r\nLocation: /a\r\n",
                                        "HTTP/1.0 503 \r\n",
                                        "HTTP/2 200\r\n",
                                        "Content-Type: text/event-stream\r\n",
                                        "Content-Length: 60\r\n",
                                        "Content-Length: 99999999999999999999\r\n",
                                        "Transfer-Encoding: chunked\r\n",
                                        "Transfer-Encoding: gzip\r\n",
                                        "Content-Encoding: gzip\r\n",
                                        "Connection: close\r\n",
                                        "Retry-After: 7\r\n",
                                        "Set-Cookie: a=b\r\n",
                                        "\r\n\r\n",
                                        " folded\r\n",
                                        "0\r\n\r\n",
                                        "0\r\nTrailer: x\r\n\r\n",
                                        "ffffffff\r\n",
                                        "data: {\"choices\":[{\"text\":\"w\"}]}\n\n",
                                        "data: [DONE]\n\n",
                                        "\"finish_reason\":\"stop\"",
                                        "\"usage\":{\"completion_tokens\":5}",
                                        "event: error\n",
                                        ": comment\n\n",
                                        NULL};

    return mutate_text(data, size, max_size, seed, words);
}
