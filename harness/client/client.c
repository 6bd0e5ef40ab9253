/* SPDX-License-Identifier: MIT
 *
 * client.c - the requests of a run: one thread, libcurl's multi interface, two timers
 */
#include "harness/client/client.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void load_result_free(struct load_result *r)
{
    for (size_t i = 0; i < r->n; i++)
        load_record_free(&r->records[i]);
    free(r->records);
    memset(r, 0, sizeof *r);
}

double client_pause_s(const struct load_record *r)
{
    if (r->end == LOAD_OK)
        return r->pause_s;
    return r->is_refusal && r->retry_after > 0 ? fmin(r->retry_after, LOAD_PAUSE_MAX_S)
                                               : LOAD_PAUSE_S;
}

#ifndef SLM_HAVE_CURL

enum status load_client_run(struct load_result *r, const struct load_target *target,
                            const struct load_work *work, struct err *err)
{
    (void)r, (void)target, (void)work;
    return load_client_check(err);
}

#else

#include <sched.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "harness/base/interrupt.h"
#include "harness/stats/stats.h"
#include "harness/client/client_internal.h"

#define HEARTBEAT_NS UINT64_C(10000000)
#define MAX_BEATS    (1u << 18) /* then the oldest go */
#define CHECK_NS     UINT64_C(200000000)
#define SECOND_NS    UINT64_C(1000000000)

/* ---- what is due ----------------------------------------------------------------- */

/* When the next one comes; UINT64_MAX: never. */
static uint64_t next_to_come(const struct client *c)
{
    return c->work->n_users || c->n_came == c->work->n_at
               ? UINT64_MAX
               : client_ns_after(c->r->begin_ns, c->work->at_s[c->n_came]);
}

static enum status start_due(struct client *c, uint64_t now, struct err *err)
{
    enum status st = ST_OK;
    uint64_t at;

    for (size_t i = 0; i < c->n_slots && st == ST_OK; i++) {
        struct slot *s = c->slots[i];

        if (s->has_user && !s->is_running && s->resume_ns <= now)
            st = client_start(c, s, c->work->n_users ? 0 : s->resume_ns, err);
    }
    while (st == ST_OK && (at = next_to_come(c)) <= now) {
        struct slot *s = client_idle_slot(c, err);

        if (!s)
            return err->code;
        s->has_user = c->work->answered != NULL;
        c->n_came++;
        st = client_start(c, s, at, err);
    }
    return st;
}

static uint64_t next_due(const struct client *c)
{
    uint64_t due = UINT64_MAX;
    bool has_room = c->n_slots < LOAD_MAX_USERS;

    for (size_t i = 0; i < c->n_slots; i++) {
        const struct slot *s = c->slots[i];

        if (s->has_user && !s->is_running && s->resume_ns < due)
            due = s->resume_ns;
        has_room |= !s->has_user && !s->is_running;
    }
    return has_room && next_to_come(c) < due ? next_to_come(c) : due;
}

static void set_timer(int fd, uint64_t at_ns, uint64_t every_ns)
{
    struct itimerspec t = {
        .it_value = {(time_t)(at_ns / SECOND_NS), (long)(at_ns % SECOND_NS)},
        .it_interval = {(time_t)(every_ns / SECOND_NS), (long)(every_ns % SECOND_NS)}};

    timerfd_settime(fd, TFD_TIMER_ABSTIME, &t, NULL);
}

/* Each beat that is due by now, and how late it is seen. */
static void read_beats(struct client *c, uint64_t now)
{
    while (c->beat_ns <= now) {
        const double late = (double)(now - c->beat_ns) * 1e-6;

        c->late_ms[c->n_beats++ % MAX_BEATS] = (float)late;
        if (late > c->late_max_ms)
            c->late_max_ms = late;
        c->beat_ns += HEARTBEAT_NS;
    }
}

/* ---- the loop -------------------------------------------------------------------- */

static void drain(int fd)
{
    uint64_t n;

    if (read(fd, &n, sizeof n) < 0)
        return; /* not due: it does not block */
}

static enum status look(struct client *c, struct err *err)
{
    struct curl_waitfd fds[2] = {{.fd = c->beat_fd, .events = CURL_WAIT_POLLIN},
                                 {.fd = c->due_fd, .events = CURL_WAIT_POLLIN}};
    const uint64_t due = next_due(c);
    CURLMsg *m;
    int n;

    if (due != c->due_ns) {
        c->due_ns = due;
        set_timer(c->due_fd, due == UINT64_MAX ? 0 : due ? due : 1, 0);
    }
    if (curl_multi_poll(c->multi, fds, 2, 1000, &n) || curl_multi_perform(c->multi, &n))
        return err_set(err, ST_IO, "libcurl cannot wait for its connections");
    while ((m = curl_multi_info_read(c->multi, &n)) != NULL) {
        struct slot *s = NULL;

        curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&s);
        if (m->msg == CURLMSG_DONE && s)
            client_finish(c, s, m->data.result);
    }
    drain(c->beat_fd);
    drain(c->due_fd);
    return ST_OK;
}

static bool is_over(struct client *c, uint64_t now)
{
    const double seconds = (double)(now - c->r->begin_ns) * 1e-9;

    if (c->work->n_users && c->work->limit_s > 0 && seconds > c->work->limit_s &&
        c->n_started && c->n_started < c->n_wanted)
        c->n_wanted = c->n_started;
    if (!c->any_ok && c->n_failed_in_row >= LOAD_GIVE_UP(c->work->n_users))
        c->r->gave_up = true;
    c->r->is_interrupted = interrupted();
    return c->n_ended >= c->n_wanted || c->r->gave_up || c->r->is_interrupted;
}

static enum status run_loop(struct client *c, struct err *err)
{
    enum status st = ST_OK;

    while (st == ST_OK) {
        const uint64_t now = clock_ns();

        read_beats(c, now);
        if (is_over(c, now))
            break;
        if (now - c->checked_ns > CHECK_NS) {
            c->checked_ns = now;
            client_end_slow(c, now);
            if (c->work->progress)
                c->work->progress(c->work->progress_arg, c->n_ended,
                                  (double)(now - c->r->begin_ns) * 1e-9);
        }
        st = c->failed.code ? err_set(err, c->failed.code, "%s", c->failed.msg)
                            : start_due(c, clock_ns(), err);
        if (st == ST_OK)
            st = look(c, err);
    }
    return st;
}

/* ---- around it ------------------------------------------------------------------- */

static double cpu_seconds(void)
{
    struct rusage u;

    getrusage(RUSAGE_THREAD, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

static void note_lateness(struct client *c)
{
    const size_t n = c->n_beats < MAX_BEATS ? c->n_beats : MAX_BEATS;
    double *v = n ? malloc(n * sizeof *v) : NULL;

    c->r->late_max_ms = c->late_max_ms;
    if (!v)
        return;
    for (size_t i = 0; i < n; i++)
        v[i] = (double)c->late_ms[i];
    stats_sort(v, n);
    c->r->late_p99_ms = stats_quantile_sorted(v, n, 0.99);
    free(v);
}

static enum status open_client(struct client *c, struct err *err)
{
    enum status st = load_client_check(err);

    if (st)
        return st;
    c->beat_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    c->due_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (c->beat_fd < 0 || c->due_fd < 0)
        return err_set_errno(err, ST_IO, "cannot make a timer");
    c->multi = curl_multi_init();
    c->slots = calloc(LOAD_MAX_USERS, sizeof *c->slots);
    c->late_ms = calloc(MAX_BEATS, sizeof *c->late_ms);
    c->r->records = calloc(c->n_wanted + 1, sizeof *c->r->records);
    if (!c->multi || !c->slots || !c->late_ms || !c->r->records)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu requests", c->n_wanted);
    curl_multi_setopt(c->multi, CURLMOPT_MAXCONNECTS, (long)LOAD_MAX_USERS);
    for (int i = 0; i < c->work->n_users + c->work->n_first && st == ST_OK; i++)
        st = client_add_slot(c, err);
    return st;
}

static void close_client(struct client *c)
{
    if (c->slots)
        client_free_slots(c);
    if (c->multi)
        curl_multi_cleanup(c->multi);
    free(c->late_ms);
    if (c->beat_fd >= 0)
        close(c->beat_fd);
    if (c->due_fd >= 0)
        close(c->due_fd);
}

/* Where it is allowed this thread runs before all others when it has something to do,
 * which is little: it would else wait for its turn behind a server that keeps all CPUs
 * busy, and so late would all times be. Its policy until now into *old. */
static bool run_first(struct sched_param *param, int *old)
{
    const struct sched_param first = {.sched_priority = 1};

    *old = sched_getscheduler(0);
    return *old >= 0 && !sched_getparam(0, param) &&
           !sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &first);
}

enum status load_client_run(struct load_result *r, const struct load_target *target,
                            const struct load_work *work, struct err *err)
{
    struct client c = {.target = target,
                       .work = work,
                       .r = r,
                       .n_wanted = work->n_wanted,
                       .failed = ERR_INIT,
                       .beat_fd = -1,
                       .due_fd = -1};
    enum status st;

    memset(r, 0, sizeof *r);
    st = open_client(&c, err);
    if (st == ST_OK) {
        const double cpu_s = cpu_seconds();
        struct sched_param param;
        int policy;
        const bool runs_first = run_first(&param, &policy);

        r->begin_ns = c.checked_ns = clock_ns();
        c.beat_ns = r->begin_ns + HEARTBEAT_NS;
        for (size_t i = 0; i < c.n_slots && work->first_s; i++)
            c.slots[i]->resume_ns = client_ns_after(r->begin_ns, work->first_s[i]);
        set_timer(c.beat_fd, c.beat_ns, HEARTBEAT_NS);
        st = run_loop(&c, err);
        r->wall_s = (double)(clock_ns() - r->begin_ns) * 1e-9;
        r->cpu_s = cpu_seconds() - cpu_s;
        if (runs_first)
            sched_setscheduler(0, policy, &param);
        note_lateness(&c);
    }
    close_client(&c);
    r->n_started = c.n_started;
    r->n = c.n_wanted < c.n_started ? c.n_wanted : c.n_started;
    if (st)
        load_result_free(r);
    return st;
}

#endif
