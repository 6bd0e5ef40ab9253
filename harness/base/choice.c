/* SPDX-License-Identifier: MIT
 *
 * choice.c - names of values, both ways
 */
#include "harness/base/choice.h"

#include <string.h>

#include "engine/base/mem.h"
#include "engine/weights/weights.h"
#include "harness/base/format.h"
#include "kernels/kernels.h"

_Static_assert(sizeof(enum weights_residency) == sizeof(int) &&
                   sizeof(enum kern_kv) == sizeof(int) &&
                   sizeof(enum mem_pages) == sizeof(int),
               "an enumeration is no int");

static const char *residency_name(int value)
{
    return weights_residency_name((enum weights_residency)value);
}

static const char *kv_name(int value)
{
    return kern_format_info(kern_kv_format((enum kern_kv)value))->name;
}

static const char *pages_name(int value)
{
    return mem_pages_name((enum mem_pages)value);
}

static const char *isa_level_name(int value)
{
    return isa_name((enum kern_isa)value);
}

const struct choices choices_residency = {"weights are", residency_name,
                                          WEIGHTS_MEMORY + 1};
const struct choices choices_kv = {"types of KV cache are", kv_name, KERN_N_KV};
const struct choices choices_pages = {"pages are", pages_name, MEM_PAGES_2M + 1};
const struct choices choices_isa = {"ISA levels are", isa_level_name, KERN_N_ISA};

int choice_find(const struct choices *c, const char *name)
{
    for (int i = 0; i < c->n; i++)
        if (!strcmp(name, c->name(i)))
            return i;
    return -1;
}

const char *choice_list(const struct choices *c, int n, char *buf, size_t cap)
{
    *buf = '\0';
    for (int i = 0; i < n; i++)
        text_append(buf, cap, "%s%s",
                    i == 0      ? ""
                    : i + 1 < n ? ", "
                                : " or ",
                    c->name(i));
    return buf;
}

enum status choice_parse(const struct choices *c, const char *text, const char *what,
                         void *value, struct err *err)
{
    const int found = choice_find(c, text);
    char known[100];

    if (found < 0)
        return err_set(err, ST_USAGE, "%s: %s %s, not '%.40s'", what, c->noun,
                       choice_list(c, c->n, known, sizeof known), text);
    memcpy(value, &found, sizeof found);
    return ST_OK;
}
