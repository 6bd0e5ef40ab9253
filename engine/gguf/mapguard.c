/* SPDX-License-Identifier: MIT
 *
 * mapguard.c - the guarded mappings, and the handler of SIGBUS
 *
 * A guard that is removed stays in the list for the next mapping: the handler, which
 * cannot lock, may walk the list at any time.
 */
#include "engine/gguf/mapguard.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/utf8.h"

#define PATH_BYTES 200

struct mapguard {
    struct mapguard *next;
    _Atomic(uintptr_t) begin; /* 0: free */
    _Atomic(size_t) bytes;
    _Atomic(int) fd;
    _Atomic(int) lost; /* enum loss */
    char path[PATH_BYTES];
};

enum loss { LOSS_NONE, LOSS_SHORTER, LOSS_UNREADABLE };

static _Atomic(struct mapguard *) guards;
static _Atomic(int) any_loss;     /* the first of the process */
static char any_path[PATH_BYTES]; /* written by who set any_claimed, before any_loss */
static atomic_flag any_claimed = ATOMIC_FLAG_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sigaction before;
static uintptr_t page_bytes;

/* ---- the handler ----------------------------------------------------------------- */

static void note(struct mapguard *guard, enum loss loss)
{
    int none = LOSS_NONE;

    atomic_compare_exchange_strong(&guard->lost, &none, (int)loss);
    if (!atomic_flag_test_and_set(&any_claimed)) {
        memcpy(any_path, guard->path, sizeof any_path);
        atomic_store(&any_loss, (int)loss);
    }
}

/* Everything beyond the file's end at once, as a model of gigabytes has a million
 * pages; for a file that is as long as before, the page that cannot be read. */
static bool fill_in(struct mapguard *guard, uintptr_t begin, size_t bytes, uintptr_t at)
{
    const uintptr_t page = at / page_bytes * page_bytes;
    const uintptr_t end = (begin + bytes + page_bytes - 1) / page_bytes * page_bytes;
    uintptr_t from = page, to = page + page_bytes;
    enum loss loss = LOSS_UNREADABLE;
    struct stat st;

    if (!fstat(guard->fd, &st) && (size_t)st.st_size < bytes) {
        const uintptr_t left = ((uintptr_t)st.st_size + page_bytes - 1) / page_bytes;

        loss = LOSS_SHORTER;
        if (begin + left * page_bytes <= page) {
            from = begin + left * page_bytes;
            to = end;
        }
    }
    if (mmap((void *)from, to - from, PROT_READ,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
             0) == MAP_FAILED)
        return false;
    note(guard, loss);
    return true;
}

static struct mapguard *guard_of(uintptr_t at)
{
    struct mapguard *guard = atomic_load(&guards);

    for (; guard; guard = guard->next) {
        const uintptr_t begin = atomic_load(&guard->begin);

        if (begin && at >= begin && at - begin < atomic_load(&guard->bytes))
            return guard;
    }
    return NULL;
}

static void on_sigbus(int sig, siginfo_t *info, void *context)
{
    const int saved = errno;
    /* Only an access has an address; a signal that was sent has a sender. */
    const bool is_access = info->si_code > 0;
    struct mapguard *guard = is_access ? guard_of((uintptr_t)info->si_addr) : NULL;
    const bool is_filled =
        guard && fill_in(guard, guard->begin, guard->bytes, (uintptr_t)info->si_addr);

    errno = saved;
    if (is_filled)
        return;
    if (before.sa_flags & SA_SIGINFO) {
        before.sa_sigaction(sig, info, context);
        return;
    }
    if (before.sa_handler == SIG_IGN && !is_access)
        return;
    if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
        before.sa_handler(sig);
        return;
    }
    /* The access is repeated after the return, and then ends the process. */
    signal(sig, SIG_DFL);
    if (!is_access)
        raise(sig);
}

/* ---- guarding -------------------------------------------------------------------- */

/* Within the lock. A guard that is in use by nobody, or a new one in the list. */
static struct mapguard *take(void)
{
    struct mapguard *guard = atomic_load(&guards);

    while (guard && atomic_load(&guard->begin))
        guard = guard->next;
    if (guard)
        return guard;
    guard = calloc(1, sizeof *guard);
    if (guard) {
        guard->next = atomic_load(&guards);
        atomic_store(&guards, guard);
    }
    return guard;
}

/* Within the lock. Again for each mapping, since others may have set a handler
 * in the meantime: it is then the handler to which any other signal is passed on. */
static void handle(void)
{
    struct sigaction act = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO}, now;

    page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
    sigemptyset(&act.sa_mask);
    if (sigaction(SIGBUS, NULL, &now) ||
        ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_sigbus))
        return;
    before = now;
    sigaction(SIGBUS, &act, NULL);
}

enum status mapguard_add(struct mapguard **out, const void *image, size_t bytes, int fd,
                         const char *path, struct err *err)
{
    struct mapguard *guard;

    pthread_mutex_lock(&lock);
    handle();
    guard = take();
    if (guard) {
        utf8_printable(guard->path, sizeof guard->path, path, strlen(path));
        atomic_store(&guard->lost, LOSS_NONE);
        atomic_store(&guard->fd, fd);
        atomic_store(&guard->bytes, bytes);
        atomic_store(&guard->begin, (uintptr_t)image);
    }
    pthread_mutex_unlock(&lock);
    if (!guard)
        return err_set(err, ST_NO_MEMORY, "no memory to guard the mapping of %.200s",
                       path);
    *out = guard;
    return ST_OK;
}

void mapguard_remove(struct mapguard *guard)
{
    if (guard)
        atomic_store(&guard->begin, 0);
}

static enum status refuse(int loss, const char *path, struct err *err)
{
    if (loss == LOSS_UNREADABLE)
        return err_set(err, ST_IO,
                       "%s has become unreadable while it was read: the system reports "
                       "a bad page; check its disk and copy the model to another one",
                       path);
    return err_set(err, ST_IO,
                   "%s has become shorter while it was read; copy the whole model to a "
                   "new file and rename that, so that an open file does not shrink",
                   path);
}

enum status mapguard_check(const struct mapguard *guard, struct err *err)
{
    const int loss = guard ? atomic_load(&guard->lost) : LOSS_NONE;

    return loss ? refuse(loss, guard->path, err) : ST_OK;
}

enum status mapguard_check_all(struct err *err)
{
    const int loss = atomic_load(&any_loss);

    return loss ? refuse(loss, any_path, err) : ST_OK;
}
