/* SPDX-License-Identifier: MIT
 *
 * chat_tools_impl.h - what is rendered to find how a template calls tools, and parts of
 * it, for chat_tools*.c
 */
#ifndef SLM_ENGINE_TEXT_CHAT_TOOLS_IMPL_H
#define SLM_ENGINE_TEXT_CHAT_TOOLS_IMPL_H

#include <string.h>

#include "engine/text/chat_impl.h"

/* Calls that are rendered: arguments of several types, whose last one is no string, and
 * one; none; texts that JSON escapes. Keys are in the order of the alphabet, in which
 * some templates write them. */
enum { N_PROBES = 4, MAX_PART = 256 };
struct call_probe {
    const char *name, *id, *arguments;
};
extern const struct call_probe call_probes[N_PROBES];

/* How a template wants its calls: the content next to them, and arguments as a text. */
struct style {
    int content; /* 0: "", 1: null, 2: no member, 3: parts, and "" in the one */
    bool text_arguments;
};

/* ---- parts of texts -------------------------------------------------------------- */

static inline bool is_blank(char ch)
{
    return ch == ' ' || (ch >= '\t' && ch <= '\r');
}

/* A part of a text: [from, to). */
struct part {
    const char *s;
    size_t n;
};

static inline struct part part(const char *from, const char *to)
{
    return (struct part){from, from && to && to > from ? (size_t)(to - from) : 0};
}

static inline size_t common_prefix(struct part a, struct part b)
{
    size_t n = 0;

    while (n < a.n && n < b.n && a.s[n] == b.s[n])
        n++;
    return n;
}

static inline size_t common_suffix(struct part a, struct part b)
{
    size_t n = 0;

    while (n < a.n && n < b.n && a.s[a.n - 1 - n] == b.s[b.n - 1 - n])
        n++;
    return n;
}

static inline bool same(struct part a, struct part b)
{
    return a.n == b.n && !memcmp(a.s, b.s, a.n);
}

static inline struct part from(struct part p, size_t n)
{
    return (struct part){p.s + n, p.n - n};
}

static inline struct part without_end(struct part p, size_t n)
{
    return (struct part){p.s, p.n - n};
}

static inline struct part trim_end(struct part p)
{
    while (p.n && is_blank(p.s[p.n - 1]))
        p.n--;
    return p;
}

static inline struct part trim(struct part p)
{
    while (p.n && is_blank(*p.s))
        p = from(p, 1);
    return trim_end(p);
}

/* ---- what is looked for ---------------------------------------------------------- */

struct finding {
    const struct chat_template *c;
    const struct tokenizer *tok;
    int32_t *controls; /* [n_controls] the vocabulary's, which have no text */
    int n_controls;
    struct style style;
    char *answer, *each[N_PROBES], *two, *three;
    struct part head, tail; /* before and behind an answer */
    struct call_form *f;
    const char *why; /* not */
};

/* ---- chat_tools_form.c ----------------------------------------------------------- */

/* Fill x->f; false: x->why. */
bool calls_find_form(struct finding *x);

/* It has no form, because. */
bool calls_fail(struct finding *x, const char *why);

/* The part with its control tokens marked, and ids as holes where wanted. ends: it
 * stops at a control token that ends an answer. NULL: no memory. */
char *calls_coded(const struct finding *x, struct part p, bool holes, bool ends);

/* The marker that text begins with; 0: none. */
size_t calls_marker_len(const char *s);

/* What is written before an answer: the form's marker, or none. */
void calls_put_answer(struct finding *x, struct part p);

/* s[n] without a tag that it only begins. */
size_t calls_whole_tags(const char *s, size_t n);

/* What was rendered of calls alone, in rendered text. */
struct part calls_rendered(const struct finding *x, const char *text);

/* Whether [text, end) are the arguments of probe i. */
bool calls_is_object(const char *text, const char *end, int i);

#endif
