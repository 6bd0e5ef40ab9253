/* SPDX-License-Identifier: MIT
 *
 * fuzz_messages.c - what a worker sends its parent from behind the fence
 *
 * The input is an object with the members of messages.h. What its parent takes is sent
 * and taken again as the same; the row that it makes is harmless, and the same when it
 * is read from the table that it is written to.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "harness/measure/point/point_measure.h"
#include "harness/measure/worker/worker_open.h"
#include "tests/fuzz/support/mutate.h"
#include "tests/fuzz/support/oracle.h"

static void compare(const char *what, json_t *first, json_t *second)
{
    if (!first || !json_equal(first, second))
        fuzz_fail("%s is taken as another: %s", what, json_dumps(second, 0));
    json_decref(first);
    json_decref(second);
}

static void take_needs(const json_t *message)
{
    struct err err = ERR_INIT;
    struct point_need need, again;
    struct worker_ready ready, ready_again;
    json_t *object;

    if (fuzz_accepted(point_need_from_json(&need, message, &err), &err)) {
        object = json_pack("{s:o}", "need", point_need_json(&need));
        if (!fuzz_accepted(point_need_from_json(&again, object, &err), &err))
            fuzz_fail("our own need is refused");
        json_decref(object);
        compare("a need", point_need_json(&need), point_need_json(&again));
    }
    if (fuzz_accepted(
            worker_ready_from_json(&ready, json_object_get(message, "ready"), &err),
            &err)) {
        object = worker_ready_json(&ready);
        if (!fuzz_accepted(worker_ready_from_json(&ready_again, object, &err), &err))
            fuzz_fail("our own answer is refused");
        json_decref(object);
        compare("an answer", worker_ready_json(&ready),
                worker_ready_json(&ready_again));
    }
}

/* As its parent keeps them. */
static void take_samples(struct point_samples *s, const json_t *list)
{
    s->ms = calloc(json_array_size(list) + 1, sizeof *s->ms);
    if (!s->ms)
        fuzz_fail("no memory for samples");
    for (; s->n < json_array_size(list); s->n++)
        s->ms[s->n] = json_number_value(json_array_get(list, s->n));
}

static void check_printed(const char *text)
{
    for (const char *c = text; *c; c++)
        if (((unsigned char)*c < ' ' && *c != '\n') || *c == 0x7f)
            fuzz_fail("the control character %d is printed", *c);
}

static char *write_row(const struct row *row)
{
    char *text = NULL;
    size_t len;
    FILE *f = open_memstream(&text, &len);

    if (!f)
        fuzz_fail("no memory to write");
    row_csv_header(f);
    row_csv_write(f, row);
    fclose(f);
    return text;
}

static void check_row(const struct row *row)
{
    char *text = write_row(row), *second;
    struct err err = ERR_INIT;
    struct row *again;
    size_t n;

    check_printed(text);
    if (!fuzz_accepted(
            row_csv_read(fuzz_file("row.csv", text, strlen(text)), &again, &n, &err),
            &err) ||
        n != 1)
        fuzz_fail("our own row is refused: %s", text);
    second = write_row(again);
    if (strcmp(text, second) != 0)
        fuzz_fail("a row is read as another:\n%s%s", text, second);
    free(second);
    free(text);
    free(again);
}

static void print_profile(const json_t *object, const struct row *row)
{
    struct point_profile *profile = calloc(2, sizeof *profile);
    char *text = NULL;
    size_t len;
    FILE *f = open_memstream(&text, &len);
    json_t *sent;

    if (!f || !profile)
        fuzz_fail("no memory for a profile");
    point_profile_from_json(&profile[0], object);
    sent = point_profile_json(&profile[0]);
    point_profile_from_json(&profile[1], sent);
    compare("a profile", sent, point_profile_json(&profile[1]));
    point_profile_print(f, &profile[0], row);
    fclose(f);
    check_printed(text);
    free(text);
    free(profile);
}

static void take_row(const json_t *message)
{
    struct point_samples samples = {.n = 0};
    struct point_facts facts = {0}, facts_again = {0};
    struct noise noise = {0}, noise_again = {0};
    json_t *sent;
    struct row row;

    row_init(&row);
    memcpy(row.point, "p", 2);
    row.kind =
        (enum point_kind)(json_integer_value(json_object_get(message, "kind")) & 1);
    row.status = ROW_STATUS_OK;
    message_take_columns(&row, json_object_get(message, "row"));
    point_facts_from_json(&facts, json_object_get(message, "facts"));
    sent = point_facts_json(&facts);
    point_facts_from_json(&facts_again, sent);
    compare("facts", sent, point_facts_json(&facts_again));
    worker_noise_from_json(&noise, json_object_get(message, "noise"));
    sent = worker_noise_json(&noise);
    worker_noise_from_json(&noise_again, sent);
    compare("noise", sent, worker_noise_json(&noise_again));
    take_samples(&samples, json_object_get(message, "ms"));
    point_judge(&row, &samples, &facts, &noise);
    point_limit(&row, &facts);
    check_row(&row);
    print_profile(json_object_get(message, "profile"), &row);
    point_samples_free(&samples);
}

static void take(const uint8_t *data, size_t size)
{
    json_t *message = message_read((const char *)data, size);

    fuzz_input_grows(size); /* the harness has it in memory, too */
    if (json_is_object(message)) {
        take_needs(message);
        take_row(message);
    }
    json_decref(message);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_run(take, data, size, FUZZ_BOUND);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned seed)
{
    static const char *const words[] = {
        "need",    "ready", "row",       "facts",  "noise",    "ms",        "kind",
        "profile", "quant", "isa",       "load_s", "prefetch", "roof_gbps", "spec_mode",
        "rows",    "f16",   "residency", "decode", "none",     NULL};

    return mutate_json(data, size, max_size, seed, words);
}
