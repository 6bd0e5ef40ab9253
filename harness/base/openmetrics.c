/* SPDX-License-Identifier: MIT
 *
 * openmetrics.c - figures as text that Prometheus reads
 */
#include "harness/base/openmetrics.h"

#include <string.h>

#include "engine/base/utf8.h"

void openmetrics_head(FILE *f, const char *name, const char *help)
{
    static const char *const units[] = {"seconds", "bytes", "joules", "ratio"};

    fprintf(f, "# HELP slmbench_%s %s\n# TYPE slmbench_%s gauge\n", name, help, name);
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        const size_t len = strlen(name), end = strlen(units[i]);

        if (len > end && name[len - end - 1] == '_' &&
            !strcmp(name + len - end, units[i]))
            fprintf(f, "# UNIT slmbench_%s %s\n", name, units[i]);
    }
}

/* The format is UTF-8. */
static void put_value(FILE *f, const char *value)
{
    char line[2048];
    const char *text = line;

    utf8_printable(line, sizeof line, value, strlen(value));
    for (; *text; text++) {
        if (*text == '\n')
            fputs("\\n", f);
        else if (*text == '"' || *text == '\\')
            fprintf(f, "\\%c", *text);
        else
            fputc(*text, f);
    }
}

void openmetrics_sample(FILE *f, const char *name,
                        const struct openmetrics_label *labels, size_t n, double figure)
{
    bool first = true;

    fprintf(f, "slmbench_%s{", name);
    for (size_t i = 0; i < n; i++) {
        if (!*labels[i].value)
            continue;
        fprintf(f, "%s%s=\"", first ? "" : ",", labels[i].name);
        put_value(f, labels[i].value);
        fputc('"', f);
        first = false;
    }
    fprintf(f, "} %.10g\n", figure);
}

void openmetrics_finish(FILE *f)
{
    fputs("# EOF\n", f);
}
