/* SPDX-License-Identifier: MIT
 *
 * futex.h - sleep until a word changes
 *
 * A waiter reads the word, looks whether what it waits for has happened, and if not
 * sleeps while the word has the value read; whoever makes it happen changes the word
 * afterwards and wakes. Neither can miss the other.
 *
 * Threading: any thread; the word belongs to one process.
 */
#ifndef SLM_ENGINE_BASE_FUTEX_H
#define SLM_ENGINE_BASE_FUTEX_H

#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

/* May return early. */
static inline void futex_wait(atomic_uint *word, unsigned seen)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

/* Change the word and wake all that wait for it. */
static inline void futex_advance(atomic_uint *word)
{
    atomic_fetch_add(word, 1);
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

#endif
