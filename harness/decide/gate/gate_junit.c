/* SPDX-License-Identifier: MIT
 *
 * gate_junit.c - a gate's result as JUnit XML
 *
 * The elements are those that CI servers agree on (testsuites, testsuite, properties,
 * testcase with failure or skipped, system-out); inconclusive is skipped, so that it
 * neither breaks a build nor passes for a success.
 */
#include <string.h>

#include "engine/base/utf8.h"
#include "harness/decide/gate/gate_report.h"
#include "harness/show/page/html.h"

/* Text or attribute, on one line. */
static void put(FILE *f, const char *s)
{
    char line[2048];

    html_put(f, utf8_printable(line, sizeof line, s, strlen(s)));
}

static void put_attribute(FILE *f, const char *name, const char *value)
{
    fprintf(f, " %s=\"", name);
    put(f, value);
    fputc('"', f);
}

static void put_property(FILE *f, const char *name, const char *value)
{
    if (!value[0])
        return;
    fprintf(f, "      <property name=\"%s\"", name);
    put_attribute(f, "value", value);
    fputs("/>\n", f);
}

static void put_properties(FILE *f, const struct gate_result *r)
{
    static const char *const names[2][3] = {{"a", "a.commit", "a.compiler"},
                                            {"b", "b.commit", "b.compiler"}};

    fputs("    <properties>\n", f);
    put_property(f, "verdict", gate_verdict_word(r->verdict));
    put_property(f, "machine", r->cpu);
    put_property(f, "model", r->model);
    put_property(f, "settings", r->settings);
    for (int i = 0; i < 2; i++) {
        put_property(f, names[i][0], r->side[i].name);
        put_property(f, names[i][1], r->side[i].commit);
        put_property(f, names[i][2], r->side[i].compiler);
    }
    put_property(f, "disturbed", r->disturbed);
    put_property(f, "not covered", r->notes);
    fputs("    </properties>\n", f);
}

/* message in the attribute, where lists show it, and in the element, where it is read.
 */
static void put_case(FILE *f, const char *name, double seconds,
                     enum gate_verdict verdict, const char *message)
{
    fputs("    <testcase classname=\"bench.gate\"", f);
    put_attribute(f, "name", name);
    fprintf(f, " time=\"%.3f\"", seconds);
    if (verdict == GATE_PASS) {
        fputs(">\n      <system-out>", f);
        put(f, message);
        fputs("</system-out>\n    </testcase>\n", f);
        return;
    }
    fprintf(f, ">\n      <%s", verdict == GATE_FAIL ? "failure" : "skipped");
    put_attribute(f, "message", message);
    if (verdict == GATE_FAIL)
        fputs(" type=\"slower\"", f);
    fputc('>', f);
    put(f, message);
    fprintf(f, "</%s>\n    </testcase>\n",
            verdict == GATE_FAIL ? "failure" : "skipped");
}

static const char *metric_message(char *buf, size_t cap, const struct gate_metric *m)
{
    snprintf(buf, cap, "%s: %s, margin %.3g %%; A %s, B %s",
             gate_verdict_word(gate_metric_verdict(m)), gate_effect_text(m).text,
             100 * m->margin, gate_value_text(m->a, m->unit).text,
             gate_value_text(m->b, m->unit).text);
    return buf;
}

static void put_counts(FILE *f, const char *element, const struct gate_result *r,
                       size_t n, double share)
{
    const bool alone = gate_stands_alone(r);
    size_t failures = alone && r->verdict == GATE_FAIL;
    size_t skipped = alone && r->verdict != GATE_FAIL && r->verdict != GATE_PASS;

    for (size_t i = 0; i < r->n_metrics; i++) {
        failures += gate_metric_verdict(&r->metric[i]) == GATE_FAIL;
        skipped += gate_metric_verdict(&r->metric[i]) == GATE_UNCLEAR;
    }
    fprintf(f,
            "<%s name=\"bench gate\" tests=\"%zu\" failures=\"%zu\" errors=\"0\" "
            "skipped=\"%zu\" time=\"%.3f\"",
            element, n, failures, skipped, share * (double)n);
}

void gate_junit_write(FILE *f, const struct gate_result *r)
{
    const bool alone = gate_stands_alone(r);
    const size_t n = r->n_metrics + alone;
    const double share = n ? r->seconds / (double)n : 0; /* a round serves them all */
    char sentence[1024], message[1024];

    gate_sentence(r, sentence, sizeof sentence);
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n", f);
    put_counts(f, "testsuites", r, n, share);
    fputs(">\n  ", f);
    put_counts(f, "testsuite", r, n, share);
    put_attribute(f, "timestamp", r->when);
    fputs(">\n", f);
    put_properties(f, r);
    for (size_t i = 0; i < r->n_metrics; i++)
        put_case(f, r->metric[i].name, share, gate_metric_verdict(&r->metric[i]),
                 metric_message(message, sizeof message, &r->metric[i]));
    if (alone)
        put_case(f, "the gate as a whole", share, r->verdict, sentence);
    fputs("    <system-out>", f);
    put(f, sentence);
    fputs("</system-out>\n  </testsuite>\n</testsuites>\n", f);
}
