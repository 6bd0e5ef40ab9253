/* SPDX-License-Identifier: MIT
 *
 * slow_server.c - a server of the OpenAI kind whose every delay is known
 *
 * usage: slow_server PORT_FILE LOG_FILE [key=value...]
 * Listens on a free port of 127.0.0.1, writes its number to PORT_FILE, and serves until
 * it is killed or the process that started it ends. It sends the tokens that are asked
 * for, one an event:
 *   ttft=MS        from the request to the first token (5)
 *   word=MS        that is added for each word of a prompt that usage calls not cached
 *   gap=MS         from token to token (2)
 *   slow=MS,EVERY  each EVERY-th gap is of MS instead
 *   stall=AT,LONG  from AT to AT + LONG ms after the start nothing is sent at all
 *   slots=N        answers at once; further requests wait (512)
 *   cached=N       tokens of each prompt that usage calls cached
 *   remember=1     or the words that earlier messages began with, where they are more
 *   name=NAME      of the model, which requests must say then (slow)
 *   metrics=1      /metrics has counters as vLLM's
 *   key=KEY        that requests must have
 *   port=N         instead of a free one
 *   extra=N        tokens that usage counts too many
 *   think=N        tokens at the beginning of each answer that are thoughts
 *   inline=1       which are content, between markers, and not in usage
 *   quiet=N        so many tokens at the beginning of each answer have no text
 *   fault=NAME     hang, stop, close, json, event, long, redirect, busy, error, html,
 *                  endless, empty, ping (no text any more, only what keeps the
 *                  connection alive), linger (the body does not end), exit (of the
 *                  server); every=N: for each N-th request (1); drop: a connection's
 *                  second request closes it; forget: each answer does
 * LOG_FILE gets a line for each answer that was sent whole: the X-Request-Id, and in
 * nanoseconds of CLOCK_MONOTONIC when the request was there and when each token was
 * handed to the kernel; with remember=1 the id ends with /turn/prompt tokens/cached.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine/base/clock.h"

#define MAX_CONNECTIONS 600
#define MAX_REQUEST     (1 << 20)
#define MAX_TOKENS      4096
#define MAX_PROMPTS     65536 /* that are remembered */

enum state { READING, WAITING, TALKING, SILENT };

struct connection {
    int fd; /* -1: free */
    enum state state;
    char *in;
    size_t n_in;
    size_t n_request; /* bytes of the request that is answered */
    char id[64];
    const char *fault;
    int n_tokens, n_prompt, n_cached, turn; /* its number in a conversation */
    uint64_t arrived, due;
    uint64_t sent[MAX_TOKENS];
    int n_sent;
    bool has_answered; /* a request of it, with tokens */
    bool calls;        /* a tool, as the request requires it */
};

static struct connection connections[MAX_CONNECTIONS];
static double ttft_ms = 5, word_ms, gap_ms = 2, slow_ms, stall_at, stall_long;
static int slow_every, n_slots = 512, n_cached, n_extra, n_quiet, n_think, is_inline,
                       fault_every = 1, n_busy, remembers, counts, port;
static unsigned long n_requests;
static const char *fault = "", *name, *api_key;
static struct {
    long prompt, cached, output, n;
    double ttft_s;
} sums;
static char *seen[MAX_PROMPTS];
static size_t n_seen;
static uint64_t begin;
static FILE *log_file;

static uint64_t ns(double ms)
{
    return (uint64_t)(ms * 1e6);
}

/* A time, or the end of the stall that it is in. */
static uint64_t after_stall(uint64_t at)
{
    const uint64_t from = begin + ns(stall_at), to = from + ns(stall_long);

    return stall_long > 0 && at >= from && at < to ? to : at;
}

static void put(struct connection *c, const char *text, size_t n)
{
    while (n) {
        const ssize_t done = send(c->fd, text, n, MSG_NOSIGNAL);

        if (done < 0 && (errno == EAGAIN || errno == EINTR)) {
            struct pollfd p = {.fd = c->fd, .events = POLLOUT};

            poll(&p, 1, 100);
            continue;
        }
        if (done < 0)
            return;
        text += done;
        n -= (size_t)done;
    }
}

static void puts_to(struct connection *c, const char *text)
{
    put(c, text, strlen(text));
}

static void put_chunk(struct connection *c, const char *text)
{
    char whole[1024];
    const int n = snprintf(whole, sizeof whole, "%zx\r\n%s\r\n", strlen(text), text);

    put(c, whole, (size_t)n);
}

static void leave(struct connection *c)
{
    n_busy -= c->state == TALKING;
    close(c->fd);
    free(c->in);
    c->in = NULL;
    c->fd = -1;
}

static void put_plain(struct connection *c, const char *status, const char *more,
                      const char *body)
{
    char text[1024];

    snprintf(text, sizeof text,
             "HTTP/1.1 %s\r\n%sContent-Type: application/json\r\nContent-Length: "
             "%zu\r\n\r\n%s",
             status, more, strlen(body), body);
    puts_to(c, text);
}

/* What comes after the request in the buffer is the next one. */
static void next_request(struct connection *c)
{
    n_busy -= c->state == TALKING;
    memmove(c->in, c->in + c->n_request, c->n_in - c->n_request);
    c->n_in -= c->n_request;
    c->in[c->n_in] = '\0';
    c->state = READING;
}

static int number_after(const char *text, const char *key, int otherwise)
{
    const char *at = strstr(text, key);

    return at ? atoi(at + strlen(key)) : otherwise;
}

static void talk(struct connection *c)
{
    c->state = TALKING;
    n_busy++;
    c->n_sent = 0;
    c->due =
        after_stall(clock_ns() + ns(ttft_ms + word_ms * (c->n_prompt - c->n_cached)));
}

/* Faults that need no token. True: this was one. */
static bool fails_at_once(struct connection *c)
{
    if (!strcmp(c->fault, "hang"))
        c->state = SILENT;
    else if (!strcmp(c->fault, "close"))
        leave(c);
    else if (!strcmp(c->fault, "exit"))
        exit(3);
    else if (!strcmp(c->fault, "redirect"))
        put_plain(c, "302 Found", "Location: http://127.0.0.1:1/\r\n", "{}");
    else if (!strcmp(c->fault, "busy"))
        put_plain(c, "429 Too Many Requests", "Retry-After: 1\r\n",
                  "{\"error\":{\"message\":\"the queue is full\"}}");
    else if (!strcmp(c->fault, "error"))
        put_plain(c, "500 Internal Server Error", "",
                  "{\"error\":{\"message\":\"out of memory\"}}");
    else if (!strcmp(c->fault, "html"))
        put_plain(c, "200 OK", "", "<html>Welcome</html>");
    else
        return false;
    if (c->fd >= 0 && c->state != SILENT)
        next_request(c);
    return true;
}

/* Words that the messages begin with and those of one before did, too; they are
 * remembered. */
static int words_known(const char *request)
{
    const char *at = strstr(request, "\"messages\":[");
    const char *end = at ? strstr(at, "}]") : NULL, *prompt = end ? at : "";
    const size_t len = end ? (size_t)(end - at) : 0;
    int most = 0;

    for (size_t i = 0; i < n_seen; i++) {
        int n = 0;

        for (size_t k = 0; k < len && seen[i][k] == prompt[k]; k++)
            n += prompt[k] == ' ' || k + 1 == len;
        most = n > most ? n : most;
    }
    if (n_seen < MAX_PROMPTS && (seen[n_seen] = strndup(prompt, len)))
        n_seen++;
    return most;
}

/* What the server says of its model, whether a request may ask it, and whether a
 * request is for it. True: the request is answered with that. */
static bool is_about_model(struct connection *c)
{
    char text[900];

    if (api_key && !strstr(c->in, api_key)) {
        put_plain(c, "401 Unauthorized", "", "{\"error\":{\"message\":\"no key\"}}");
        return true;
    }
    if (counts && !strncmp(c->in, "GET /metrics", 12)) {
        snprintf(text, sizeof text,
                 "# TYPE vllm:generation_tokens counter\n"
                 "vllm:prompt_tokens_total{model=\"a } b\",e=\"0\"} %ld\n"
                 "vllm:prompt_tokens_total{model=\"c\"} 0\n"
                 "vllm:prefix_cache_hits_total %ld\nvllm:generation_tokens_total %ld\n"
                 "vllm:time_to_first_token_seconds_bucket{le=\"1\"} 5\n"
                 "vllm:time_to_first_token_seconds_sum %.6f\n"
                 "vllm:time_to_first_token_seconds_count %ld\n",
                 sums.prompt, sums.cached, sums.output, sums.ttft_s, sums.n);
        put_plain(c, "200 OK", "", text);
        return true;
    }
    if (!strncmp(c->in, "GET ", 4)) {
        snprintf(text, sizeof text, "{\"data\":[{\"id\":\"%s\"}]}",
                 name ? name : "slow");
        put_plain(c, "200 OK", "", text);
        return true;
    }
    snprintf(text, sizeof text, "\"model\":\"%s\"", name ? name : "");
    if (!name || strstr(c->in, text))
        return false;
    put_plain(c, "404 Not Found", "",
              "{\"error\":{\"message\":\"there is no such model\"}}");
    return true;
}

static void answer(struct connection *c)
{
    const char *id = strcasestr(c->in, "x-request-id: ");

    c->arrived = clock_ns();
    snprintf(c->id, sizeof c->id, "%.*s", id ? (int)strcspn(id + 14, "\r\n") : 0,
             id ? id + 14 : "");
    c->n_tokens = number_after(c->in, "\"max_tokens\":", 16);
    if (c->n_tokens > MAX_TOKENS)
        c->n_tokens = MAX_TOKENS;
    c->n_prompt = 1;
    for (size_t i = 0; i < c->n_request; i++)
        c->n_prompt += c->in[i] == ' ';
    c->calls = strstr(c->in, "\"tool_choice\":\"required\"") != NULL;
    c->turn = 1;
    for (const char *at = c->in; (at = strstr(at, "\"role\":\"assistant\"")); at++)
        c->turn++;
    if (is_about_model(c)) {
        next_request(c);
        return;
    }
    c->n_cached = remembers ? words_known(c->in) : 0;
    if (c->n_cached < n_cached)
        c->n_cached = n_cached;
    if (c->has_answered && !strcmp(fault, "drop")) {
        leave(c);
        return;
    }
    c->fault = ++n_requests % (unsigned long)fault_every ? "" : fault;
    if (fails_at_once(c))
        return;
    if (n_busy < n_slots)
        talk(c);
    else
        c->state = WAITING;
}

static void read_more(struct connection *c)
{
    const ssize_t n = recv(c->fd, c->in + c->n_in, MAX_REQUEST - c->n_in, 0);

    if (n <= 0) {
        if (n == 0 || (errno != EAGAIN && errno != EINTR))
            leave(c);
        return;
    }
    c->n_in += (size_t)n;
    c->in[c->n_in] = '\0';
}

/* Whether a whole request is there. */
static bool is_whole(struct connection *c)
{
    const char *end = strstr(c->in, "\r\n\r\n");
    const char *length = end ? strcasestr(c->in, "content-length:") : NULL;

    if (!end)
        return false;
    c->n_request = (size_t)(end + 4 - c->in) +
                   (length && length < end ? (size_t)atol(length + 15) : 0);
    return c->n_in >= c->n_request;
}

static void end_answer(struct connection *c)
{
    char text[256];

    snprintf(text, sizeof text,
             "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":%d,"
             "\"completion_tokens\":%d,\"prompt_tokens_details\":{\"cached_tokens\":%d}"
             ",\"completion_tokens_details\":{\"reasoning_tokens\":%d}}}\n\n"
             "data: [DONE]\n\n",
             c->n_prompt, c->n_sent + n_extra, c->n_cached,
             is_inline             ? 0
             : n_think < c->n_sent ? n_think
                                   : c->n_sent);
    put_chunk(c, text);
    sums.prompt += c->n_prompt;
    sums.cached += c->n_cached;
    sums.output += c->n_sent;
    sums.ttft_s += (double)(c->sent[0] - c->arrived) * 1e-9;
    sums.n++;
    fputs(c->id, log_file);
    if (remembers)
        fprintf(log_file, "/%d/%d/%d", c->turn, c->n_prompt, c->n_cached);
    fprintf(log_file, " %llu", (unsigned long long)c->arrived);
    for (int i = 0; i < c->n_sent; i++)
        fprintf(log_file, " %llu", (unsigned long long)c->sent[i]);
    putc('\n', log_file);
    fflush(log_file);
    c->has_answered = true;
    if (!strcmp(c->fault, "linger")) {
        n_busy--;
        c->state = SILENT;
        return;
    }
    if (!strcmp(c->fault, "forget")) /* the end of both is one packet */
        setsockopt(c->fd, IPPROTO_TCP, TCP_CORK, &(int){1}, sizeof(int));
    puts_to(c, "0\r\n\r\n");
    if (strcmp(c->fault, "forget"))
        next_request(c);
    else
        leave(c);
}

/* Faults within the stream, at its third token. True: the answer ends with it. */
static bool fails_here(struct connection *c)
{
    if (c->n_sent != 3 && strcmp(c->fault, "empty") != 0)
        return false;
    if (!strcmp(c->fault, "stop")) {
        leave(c);
    } else if (!strcmp(c->fault, "silence")) {
        n_busy--;
        c->state = SILENT;
    } else if (!strcmp(c->fault, "ping")) {
        put_chunk(c, ": ping\n\n");
        c->due = clock_ns() + ns(gap_ms);
    } else if (!strcmp(c->fault, "short") || !strcmp(c->fault, "empty")) {
        puts_to(c, "0\r\n\r\n");
        next_request(c);
    } else if (!strcmp(c->fault, "json")) {
        put_chunk(c, "data: {\"choices\":[{\"delta\"\n\n");
    } else if (!strcmp(c->fault, "long")) {
        for (int i = 0; i < 1000 && c->fd >= 0; i++) {
            char line[1001];

            memset(line, 'x', sizeof line - 1);
            line[sizeof line - 1] = '\0';
            put_chunk(c, line);
        }
        leave(c);
    } else {
        return false;
    }
    return true;
}

/* A thought as content. */
static const char *thought_within(const struct connection *c)
{
    return c->n_sent == 0             ? "\"content\":\"<think>\""
           : c->n_sent == n_think - 1 ? "\"content\":\"</think>\""
                                      : "\"content\":\" hm\"";
}

/* A token without text, a thought, a part of a required call, or text. */
static void put_delta(struct connection *c)
{
    char text[200];

    snprintf(
        text, sizeof text, "data: {\"choices\":[{\"delta\":{%s}}]}\n\n",
        c->n_sent < n_quiet                ? "\"content\":\"\""
        : c->n_sent < n_think && is_inline ? thought_within(c)
        : c->n_sent < n_think              ? "\"reasoning_content\":\" hm\""
        : !c->calls                        ? "\"content\":\" word\""
        : c->n_sent == n_think
            ? "\"tool_calls\":[{\"index\":0,\"id\":\"call_1\",\"type\":\"function\","
              "\"function\":{\"name\":\"look_up\",\"arguments\":\"\"}}]"
            : "\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\" \"}}]");
    put_chunk(c, text);
}

static void send_token(struct connection *c)
{
    const bool first = c->n_sent == 0;
    const bool endless = !strcmp(c->fault, "endless");
    const bool slow = slow_every && c->n_sent && c->n_sent % slow_every == 0;

    if (first) {
        puts_to(c, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                   "Transfer-Encoding: chunked\r\n\r\n");
        put_chunk(c, "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\","
                     "\"content\":\"\"}}]}\n\n");
    }
    if (!strcmp(c->fault, "event"))
        put_chunk(c, "this is not an event\n\n");
    if (fails_here(c))
        return;
    if (strcmp(c->fault, "event") != 0) {
        if (c->n_sent < MAX_TOKENS)
            c->sent[c->n_sent] = clock_ns();
        put_delta(c);
    }
    if (c->n_sent < MAX_TOKENS - 1 || !endless)
        c->n_sent++;
    c->due = after_stall(c->due + ns(endless ? 0 : slow ? slow_ms : gap_ms));
    if (c->n_sent >= c->n_tokens && !endless)
        end_answer(c);
}

/* One look at everybody; when to look again. */
static uint64_t serve_due(void)
{
    uint64_t next = UINT64_MAX;

    for (int i = 0; i < MAX_CONNECTIONS; i++) {
        struct connection *c = &connections[i];

        if (c->fd >= 0 && c->state == READING && is_whole(c))
            answer(c);
        if (c->fd >= 0 && c->state == TALKING && c->due <= clock_ns())
            send_token(c);
    }
    while (n_busy < n_slots) { /* first come, first served */
        struct connection *oldest = NULL;

        for (int i = 0; i < MAX_CONNECTIONS; i++)
            if (connections[i].fd >= 0 && connections[i].state == WAITING &&
                (!oldest || connections[i].arrived < oldest->arrived))
                oldest = &connections[i];
        if (!oldest)
            break;
        talk(oldest);
    }
    for (int i = 0; i < MAX_CONNECTIONS; i++)
        if (connections[i].fd >= 0 && connections[i].state == TALKING &&
            connections[i].due < next)
            next = connections[i].due;
    return next;
}

static void accept_one(int listener)
{
    const int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK), one = 1;

    if (fd < 0)
        return;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    for (int i = 0; i < MAX_CONNECTIONS; i++)
        if (connections[i].fd < 0) {
            connections[i] = (struct connection){.fd = fd, .fault = ""};
            connections[i].in = calloc(1, MAX_REQUEST + 1);
            if (connections[i].in)
                return;
            connections[i].fd = -1;
            break;
        }
    close(fd);
}

static void serve(int listener)
{
    static struct pollfd fds[MAX_CONNECTIONS + 1];
    static struct connection *of[MAX_CONNECTIONS + 1];

    for (;;) {
        const uint64_t next = serve_due(), now = clock_ns();
        const uint64_t wait = next == UINT64_MAX ? 1000000000u
                              : next > now       ? next - now
                                                 : 0;
        const struct timespec t = {(time_t)(wait / 1000000000u),
                                   (long)(wait % 1000000000u)};
        nfds_t n = 1;

        fds[0] = (struct pollfd){.fd = listener, .events = POLLIN};
        for (int i = 0; i < MAX_CONNECTIONS; i++)
            if (connections[i].fd >= 0 && connections[i].n_in < MAX_REQUEST) {
                of[n] = &connections[i];
                fds[n++] = (struct pollfd){.fd = connections[i].fd, .events = POLLIN};
            }
        ppoll(fds, n, &t, NULL);
        for (nfds_t i = 1; i < n; i++)
            if (fds[i].revents && of[i]->fd >= 0)
                read_more(of[i]);
        if (fds[0].revents)
            accept_one(listener);
    }
}

static void set(const char *text)
{
    static const struct {
        const char *key;
        enum { NUMBER, NUMBERS, EVERY, COUNT, TEXT } is;
        void *v, *second; /* behind a comma, a count where it is EVERY */
    } keys[] = {
        {"ttft=", NUMBER, &ttft_ms, NULL},
        {"word=", NUMBER, &word_ms, NULL},
        {"gap=", NUMBER, &gap_ms, NULL},
        {"slow=", EVERY, &slow_ms, &slow_every},
        {"stall=", NUMBERS, &stall_at, &stall_long},
        {"slots=", COUNT, &n_slots, NULL},
        {"cached=", COUNT, &n_cached, NULL},
        {"remember=", COUNT, &remembers, NULL},
        {"metrics=", COUNT, &counts, NULL},
        {"name=", TEXT, &name, NULL},
        {"key=", TEXT, &api_key, NULL},
        {"extra=", COUNT, &n_extra, NULL},
        {"think=", COUNT, &n_think, NULL},
        {"inline=", COUNT, &is_inline, NULL},
        {"quiet=", COUNT, &n_quiet, NULL},
        {"fault=", TEXT, &fault, NULL},
        {"port=", COUNT, &port, NULL},
        {"every=", COUNT, &fault_every, NULL},
    };

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const size_t n = strlen(keys[i].key);
        const char *comma = strchr(text, ',');

        if (strncmp(text, keys[i].key, n))
            continue;
        if (keys[i].is == TEXT)
            *(const char **)keys[i].v = text + n;
        else if (keys[i].is == COUNT)
            *(int *)keys[i].v = atoi(text + n);
        else
            *(double *)keys[i].v = atof(text + n);
        if (keys[i].is == EVERY && comma)
            *(int *)keys[i].second = atoi(comma + 1);
        if (keys[i].is == NUMBERS && comma)
            *(double *)keys[i].second = atof(comma + 1);
        return;
    }
    fprintf(stderr, "slow_server: what is '%s'?\n", text);
    exit(2);
}

int main(int argc, char **argv)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    char part[4096];
    int listener;
    FILE *f;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (argc < 3)
        return 2;
    for (int i = 3; i < argc; i++)
        set(argv[i]);
    for (int i = 0; i < MAX_CONNECTIONS; i++)
        connections[i].fd = -1;
    at.sin_port = htons((uint16_t)port);
    log_file = fopen(argv[2], "we");
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (!log_file || listener < 0 ||
        bind(listener, (struct sockaddr *)&at, sizeof at) || listen(listener, 512) ||
        getsockname(listener, (struct sockaddr *)&at, &len))
        return 2;
    snprintf(part, sizeof part, "%s.part", argv[1]);
    f = fopen(part, "we");
    if (!f || fprintf(f, "%d\n", ntohs(at.sin_port)) < 0 || fclose(f) ||
        rename(part, argv[1]))
        return 2;
    begin = clock_ns();
    serve(listener);
    return 0;
}
