/* SPDX-License-Identifier: MIT
 *
 * fair_queue.h - which client's request is next: that of the client with least service
 *
 * Model of the world: each client has a queue, first come, first served, and a counter
 * of the tokens that were computed for it. The next request is of the waiting client
 * with the lowest counter; clients with equal counters take turns. How long a text
 * becomes is not known before, so requests are not weighed when they come, but as they
 * run. A client that had nothing to do begins at the lowest counter of those that have:
 * it can neither save up what it did not use nor start again by leaving for a moment.
 * This is the virtual token counter of Sheng et al. 2024 (arXiv 2401.00588).
 *
 * An item that was put back waits before all others, in the order of tickets.
 *
 * Threading: no locking.
 */
#ifndef SLM_HARNESS_SERVE_SCHEDULER_FAIR_QUEUE_H
#define SLM_HARNESS_SERVE_SCHEDULER_FAIR_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/status.h"

struct fair_client;

/* A part of what waits; zero it first. */
struct fair_item {
    struct fair_item *prev, *next; /* in the list that it waits in */
    struct fair_client *client;
    uint64_t ticket; /* the caller's; lower ones came first */
};

struct fair_list {
    struct fair_item *first, *last;
};

struct fair_queue {
    struct fair_client *clients; /* in any order */
    struct fair_list put_back;
    uint64_t n_turns;
};

/* Initialise with zeros; what is left is freed by fair_queue_close(), items are not. */
void fair_queue_close(struct fair_queue *q);

/* Item waits behind the others of its client. Error: ST_NO_MEMORY. */
enum status fair_queue_add(struct fair_queue *q, struct fair_item *item,
                           uint64_t client, struct err *err);

/* Whether a client has an item that waits, and was not put back. */
bool fair_queue_waits(const struct fair_queue *q, uint64_t client);

/* The next item; NULL: none waits. */
struct fair_item *fair_queue_next(const struct fair_queue *q);

/* Item does not wait any more, it runs. */
void fair_queue_take(struct fair_queue *q, struct fair_item *item);

/* Item runs no more, and waits again. */
void fair_queue_put_back(struct fair_queue *q, struct fair_item *item);

/* Tokens were computed for a client; item waits or runs. */
void fair_queue_charge(struct fair_item *item, double n_tokens);

/* Tokens that were computed for the client of an item, which waits or runs. */
double fair_queue_service(const struct fair_item *item);

/* Item, which waits or runs, is over. */
void fair_queue_remove(struct fair_queue *q, struct fair_item *item, bool waits);

/* To go over all that wait, in no order: the first one after NULL; NULL: no more.
 * Remove an item only after its successor is known. */
struct fair_item *fair_queue_each(const struct fair_queue *q,
                                  const struct fair_item *after);

#endif
