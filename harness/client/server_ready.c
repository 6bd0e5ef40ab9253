/* SPDX-License-Identifier: MIT
 *
 * server_ready.c - a free port, /health
 */
#include "harness/client/server_ready.h"

#include <arpa/inet.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "engine/base/json_read.h"
#include "harness/base/interrupt.h"
#include "harness/client/client.h"

/* Between two questions whether it is ready: this share of the time waited. */
#define PAUSE_SHARE 0.02
#define MIN_PAUSE_S 0.002
#define MAX_PAUSE_S 0.1
#define MAX_MODELS  (256u << 10)

int server_free_port(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int port = 0;

    if (fd >= 0 && !bind(fd, (struct sockaddr *)&at, sizeof at) &&
        !getsockname(fd, (struct sockaddr *)&at, &len))
        port = ntohs(at.sin_port);
    if (fd >= 0)
        close(fd);
    return port;
}

static enum status request_health(const char *url, bool *ready, struct err *err)
{
    static const char *const paths[] = {"/health", "/v1/models"};
    char whole[96], body[512];
    enum status st = ST_OK;
    int http = 404;

    for (int i = 0; i < 2 && http == 404 && st == ST_OK; i++) {
        snprintf(whole, sizeof whole, "%s%s", url, paths[i]);
        st = load_client_get(whole, NULL, 2, &http, body, sizeof body, err);
    }
    *ready = st == ST_OK && (http == 200 || http == 401 || http == 403);
    return st;
}

enum status server_wait(enum server_state *state, const struct child *child,
                        const char *url, double wait_s,
                        void (*tick)(void *arg, double waited_s), void *arg,
                        struct err *err)
{
    const uint64_t begin = clock_ns();
    double waited_s = 0;
    bool ready = false;
    enum status st = ST_OK;

    while (st == ST_OK && !ready) {
        const double pause_s =
            fmin(fmax(PAUSE_SHARE * waited_s, MIN_PAUSE_S), MAX_PAUSE_S);

        nanosleep(&(struct timespec){.tv_nsec = (long)(pause_s * 1e9)}, NULL);
        waited_s = (double)(clock_ns() - begin) * 1e-9;
        *state = interrupted()            ? SERVER_INTERRUPTED
                 : child_has_ended(child) ? SERVER_ENDED
                 : waited_s > wait_s      ? SERVER_LATE
                                          : SERVER_READY;
        if (*state != SERVER_READY)
            return ST_OK;
        if (tick)
            tick(arg, waited_s);
        st = request_health(url, &ready, err);
    }
    return st;
}

enum status server_model(char **name, const char *url, const char *key, int *http,
                         struct err *err)
{
    char *text = malloc(MAX_MODELS), whole[600];
    const char *first = NULL;
    json_t *list = NULL;
    enum status st;

    if (!text)
        return err_set(err, ST_NO_MEMORY, "no memory for a list of models");
    snprintf(whole, sizeof whole, "%s/v1/models", url);
    st = load_client_get(whole, key, 10, http, text, MAX_MODELS, err);
    if (st == ST_OK && *http == 200) {
        list = json_try(text, strlen(text), (struct json_limit){MAX_MODELS, MAX_MODELS},
                        JSON_LOSSY);
        first = json_text(
            json_object_get(json_array_get(json_object_get(list, "data"), 0), "id"));
    }
    if (st == ST_OK) {
        *name = first ? strdup(first) : NULL;
        if (first && !*name)
            st = err_set(err, ST_NO_MEMORY, "no memory for a name");
    }
    free(text);
    json_decref(list);
    return st;
}
