/* SPDX-License-Identifier: MIT
 *
 * settings.h - what delays slow_server and what it does wrong, by key=value
 *
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
 *   quiet=N        the first N tokens of each answer have no text
 *   fault=NAME     hang, stop, close, json, event, long, redirect, busy, error, html,
 *                  endless, empty, ping (no text any more, only what keeps the
 *                  connection alive), linger (the body does not end), exit (of the
 *                  server); every=N: for each N-th request (1); drop: a connection's
 *                  second request closes it; forget: each answer does
 */
#ifndef SLM_TESTS_SUPPORT_SLOW_SERVER_SETTINGS_H
#define SLM_TESTS_SUPPORT_SLOW_SERVER_SETTINGS_H

struct slow_server_settings {
    double ttft_ms, word_ms, gap_ms, slow_ms, stall_at, stall_long;
    int slow_every, n_slots, n_cached, n_extra, n_quiet, n_think, is_inline,
        fault_every, remembers, counts, port;
    const char *fault, *name, *api_key;
};

extern struct slow_server_settings settings;

/* Takes one "key=value"; ends the process with 2 where there is no such key. */
void slow_server_set(const char *text);

#endif
