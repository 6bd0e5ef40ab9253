/* SPDX-License-Identifier: MIT
 *
 * slow_server.c - a server of the OpenAI kind whose every delay is known
 *
 * usage: slow_server PORT_FILE LOG_FILE [key=value...]
 * Listens on a free port of 127.0.0.1, writes its number to PORT_FILE, and serves until
 * it is killed or the process that started it ends. It sends the tokens that are asked
 * for, one an event, as its settings (settings.h) have it.
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
#include "tests/support/slow_server/settings.h"

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
static int n_busy;
static unsigned long n_requests;
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
    const uint64_t from = begin + ns(settings.stall_at),
                   to = from + ns(settings.stall_long);

    return settings.stall_long > 0 && at >= from && at < to ? to : at;
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
        after_stall(clock_ns() + ns(settings.ttft_ms +
                                    settings.word_ms * (c->n_prompt - c->n_cached)));
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

    if (settings.api_key && !strstr(c->in, settings.api_key)) {
        put_plain(c, "401 Unauthorized", "", "{\"error\":{\"message\":\"no key\"}}");
        return true;
    }
    if (settings.counts && !strncmp(c->in, "GET /metrics", 12)) {
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
                 settings.name ? settings.name : "slow");
        put_plain(c, "200 OK", "", text);
        return true;
    }
    snprintf(text, sizeof text, "\"model\":\"%s\"", settings.name ? settings.name : "");
    if (!settings.name || strstr(c->in, text))
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
    c->n_cached = settings.remembers ? words_known(c->in) : 0;
    if (c->n_cached < settings.n_cached)
        c->n_cached = settings.n_cached;
    if (c->has_answered && !strcmp(settings.fault, "drop")) {
        leave(c);
        return;
    }
    c->fault = ++n_requests % (unsigned long)settings.fault_every ? "" : settings.fault;
    if (fails_at_once(c))
        return;
    if (n_busy < settings.n_slots)
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
             c->n_prompt, c->n_sent + settings.n_extra, c->n_cached,
             settings.is_inline             ? 0
             : settings.n_think < c->n_sent ? settings.n_think
                                            : c->n_sent);
    put_chunk(c, text);
    sums.prompt += c->n_prompt;
    sums.cached += c->n_cached;
    sums.output += c->n_sent;
    sums.ttft_s += (double)(c->sent[0] - c->arrived) * 1e-9;
    sums.n++;
    fputs(c->id, log_file);
    if (settings.remembers)
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
        c->due = clock_ns() + ns(settings.gap_ms);
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
    return c->n_sent == 0                      ? "\"content\":\"<think>\""
           : c->n_sent == settings.n_think - 1 ? "\"content\":\"</think>\""
                                               : "\"content\":\" hm\"";
}

/* A token without text, a thought, a part of a required call, or text. */
static void put_delta(struct connection *c)
{
    char text[200];

    snprintf(
        text, sizeof text, "data: {\"choices\":[{\"delta\":{%s}}]}\n\n",
        c->n_sent < settings.n_quiet                         ? "\"content\":\"\""
        : c->n_sent < settings.n_think && settings.is_inline ? thought_within(c)
        : c->n_sent < settings.n_think ? "\"reasoning_content\":\" hm\""
        : !c->calls                    ? "\"content\":\" word\""
        : c->n_sent == settings.n_think
            ? "\"tool_calls\":[{\"index\":0,\"id\":\"call_1\",\"type\":\"function\","
              "\"function\":{\"name\":\"look_up\",\"arguments\":\"\"}}]"
            : "\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\" \"}}]");
    put_chunk(c, text);
}

static void send_token(struct connection *c)
{
    const bool first = c->n_sent == 0;
    const bool endless = !strcmp(c->fault, "endless");
    const bool slow =
        settings.slow_every && c->n_sent && c->n_sent % settings.slow_every == 0;

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
    c->due = after_stall(c->due + ns(endless ? 0
                                     : slow  ? settings.slow_ms
                                             : settings.gap_ms));
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
    while (n_busy < settings.n_slots) { /* first come, first served */
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
        slow_server_set(argv[i]);
    for (int i = 0; i < MAX_CONNECTIONS; i++)
        connections[i].fd = -1;
    at.sin_port = htons((uint16_t)settings.port);
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
