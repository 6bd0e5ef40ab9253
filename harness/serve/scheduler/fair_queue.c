/* SPDX-License-Identifier: MIT
 *
 * fair_queue.c - clients, their queues and counters
 */
#include "harness/serve/scheduler/fair_queue.h"

#include <stddef.h>
#include <stdlib.h>

struct fair_client {
    struct fair_client *next;
    uint64_t id;
    double service; /* tokens that were computed for it */
    uint64_t turn;  /* when one of its items was taken last */
    int n_items;    /* that wait or run */
    struct fair_list waiting;
};

/* ---- lists ----------------------------------------------------------------------- */

static void list_remove(struct fair_list *l, struct fair_item *item)
{
    if (item->prev)
        item->prev->next = item->next;
    else
        l->first = item->next;
    if (item->next)
        item->next->prev = item->prev;
    else
        l->last = item->prev;
    item->prev = item->next = NULL;
}

/* after NULL: at the beginning. */
static void list_insert(struct fair_list *l, struct fair_item *after,
                        struct fair_item *item)
{
    item->prev = after;
    item->next = after ? after->next : l->first;
    if (after)
        after->next = item;
    else
        l->first = item;
    if (item->next)
        item->next->prev = item;
    else
        l->last = item;
}

/* ---- clients --------------------------------------------------------------------- */

/* The lowest counter of clients with something to do; false: no such client. */
static bool lowest(const struct fair_queue *q, double *service)
{
    bool any = false;

    for (const struct fair_client *c = q->clients; c; c = c->next)
        if (c->n_items && (!any || c->service < *service)) {
            *service = c->service;
            any = true;
        }
    return any;
}

/* Forgets idle clients whose counters are at or below the lowest. */
static void forget_clients(struct fair_queue *q)
{
    double least = 0;
    const bool any = lowest(q, &least);

    for (struct fair_client **at = &q->clients; *at;) {
        struct fair_client *c = *at;

        if (c->n_items == 0 && (!any || c->service <= least)) {
            *at = c->next;
            free(c);
        } else {
            at = &c->next;
        }
    }
}

static struct fair_client *find_client(struct fair_queue *q, uint64_t id)
{
    struct fair_client *c = q->clients;

    while (c && c->id != id)
        c = c->next;
    if (c || !(c = calloc(1, sizeof *c)))
        return c;
    c->id = id;
    c->next = q->clients;
    q->clients = c;
    return c;
}

void fair_queue_close(struct fair_queue *q)
{
    while (q->clients) {
        struct fair_client *c = q->clients;

        q->clients = c->next;
        free(c);
    }
}

/* ---- the queue ------------------------------------------------------------------- */

enum status fair_queue_add(struct fair_queue *q, struct fair_item *item,
                           uint64_t client, struct err *err)
{
    struct fair_client *c = find_client(q, client);
    double least = 0;

    if (!c)
        return err_set(err, ST_NO_MEMORY, "no memory for the queue of a client");
    if (lowest(q, &least) && least > c->service)
        c->service = least;
    c->n_items++;
    item->client = c;
    list_insert(&c->waiting, c->waiting.last, item);
    return ST_OK;
}

bool fair_queue_waits(const struct fair_queue *q, uint64_t client)
{
    const struct fair_client *c = q->clients;

    while (c && c->id != client)
        c = c->next;
    return c && c->waiting.first;
}

struct fair_item *fair_queue_next(const struct fair_queue *q)
{
    const struct fair_client *next = NULL;

    if (q->put_back.first)
        return q->put_back.first;
    for (const struct fair_client *c = q->clients; c; c = c->next) {
        if (!c->waiting.first)
            continue;
        if (!next || c->service < next->service ||
            (!(c->service > next->service) &&
             (c->turn < next->turn ||
              (c->turn == next->turn &&
               c->waiting.first->ticket < next->waiting.first->ticket))))
            next = c;
    }
    return next ? next->waiting.first : NULL;
}

/* The list that an item waits in: what was put back has no other mark. */
static struct fair_list *list_of(struct fair_queue *q, const struct fair_item *item)
{
    for (const struct fair_item *i = q->put_back.first; i; i = i->next)
        if (i == item)
            return &q->put_back;
    return &item->client->waiting;
}

void fair_queue_take(struct fair_queue *q, struct fair_item *item)
{
    list_remove(list_of(q, item), item);
    item->client->turn = ++q->n_turns;
}

void fair_queue_put_back(struct fair_queue *q, struct fair_item *item)
{
    struct fair_item *after = q->put_back.last;

    while (after && after->ticket > item->ticket)
        after = after->prev;
    list_insert(&q->put_back, after, item);
}

void fair_queue_charge(struct fair_item *item, double n_tokens)
{
    item->client->service += n_tokens;
}

double fair_queue_service(const struct fair_item *item)
{
    return item->client->service;
}

void fair_queue_remove(struct fair_queue *q, struct fair_item *item, bool waits)
{
    if (waits)
        list_remove(list_of(q, item), item);
    item->client->n_items--;
    item->client = NULL;
    forget_clients(q);
}

struct fair_item *fair_queue_each(const struct fair_queue *q,
                                  const struct fair_item *after)
{
    const struct fair_client *c = q->clients;

    if (after && after->next)
        return after->next;
    if (!after && q->put_back.first)
        return q->put_back.first;
    if (after && after != q->put_back.last)
        c = after->client->next;
    while (c && !c->waiting.first)
        c = c->next;
    return c ? c->waiting.first : NULL;
}
