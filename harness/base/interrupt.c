/* SPDX-License-Identifier: MIT
 *
 * interrupt.c - termination signals set a flag
 */
#include "harness/base/interrupt.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t raised;

static void on_signal(int sig)
{
    raised = sig;
}

void interrupt_catch(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction sa = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};

    sigemptyset(&sa.sa_mask);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        struct sigaction now;

        if (signals[i] == SIGHUP && sigaction(SIGHUP, NULL, &now) == 0 &&
            now.sa_handler == SIG_IGN)
            continue; /* started by nohup */
        sigaction(signals[i], &sa, NULL);
    }
}

bool interrupted(void)
{
    return raised != 0;
}

bool interrupted_by_user(void)
{
    return raised == SIGINT;
}

void interrupt_forget(void)
{
    raised = 0;
    interrupt_catch();
}
