/* SPDX-License-Identifier: MIT
 *
 * interrupt.c - signals that ask us to stop become a flag
 */
#include "harness/interrupt.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t raised;

static void on_signal(int sig)
{
    (void)sig;
    raised = 1;
}

void interrupt_catch(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction sa = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};

    sigemptyset(&sa.sa_mask);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        sigaction(signals[i], &sa, NULL);
}

bool interrupted(void)
{
    return raised;
}
