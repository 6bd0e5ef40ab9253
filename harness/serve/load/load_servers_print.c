/* SPDX-License-Identifier: MIT
 *
 * load_servers_print.c - what servers carry, each and together
 */
#include "harness/serve/load/load_servers.h"

#include "harness/base/format.h"
#include "harness/base/progress.h"
#include "harness/measure/engines/launch.h"
#include "harness/judge/users/users.h"

#define LINE_WIDTH  79
#define ANSWER_TEXT 1200

/* Of --launch; "" of a server at a URL. */
static const char *name_of(const struct load_plan *plan, size_t i,
                           char name[LAUNCH_MAX_NAME + 1])
{
    struct err ignored = ERR_INIT;
    const char *command;

    name[0] = '\0';
    if (i < plan->launches.n)
        launch_parse(plan->launches.v[i], name, &command, &ignored);
    return name;
}

/* ---- for a person ---------------------------------------------------------------- */

static enum status print_together(FILE *f, const struct load_found *found,
                                  struct err *err)
{
    struct users u = {0};
    char text[ANSWER_TEXT];
    const enum status st = users_find(&u, found->rows, found->n_rows, err);

    if (st == ST_OK && u.n > 1) {
        users_answer(&u, text, sizeof text);
        text_wrap(f, text, 0, 0, LINE_WIDTH, false);
        users_print_pairs(f, &u);
        putc('\n', f);
    }
    users_free(&u);
    return st;
}

enum status load_found_print(FILE *f, const struct load_found *found,
                             const struct load_plan *plan, struct err *err)
{
    char name[LAUNCH_MAX_NAME + 1];
    const enum status st = found->n > 1 ? print_together(f, found, err) : ST_OK;

    for (size_t i = 0; i < found->n; i++) {
        if (!found->a[i].n_levels)
            continue;
        if (found->n > 1)
            fprintf(f, "%s%s\n\n", i ? "\n" : "", name_of(plan, i, name));
        load_print(f, &found->a[i], &plan->s);
    }
    if (found->is_kept)
        fprintf(f, "Rows and times are in %s.\n", plan->dir_path);
    return st;
}

/* ---- for a program --------------------------------------------------------------- */

static json_t *server_json(const struct load_answer *a, const struct load_settings *s)
{
    json_t *rows = json_array();
    char text[ANSWER_TEXT];

    load_answer_text(a, s, text, sizeof text);
    for (size_t i = 0; i < a->n_levels; i++)
        json_array_append_new(rows, row_json(&a->level[i].row));
    return json_pack("{s:s, s:i, s:i, s:b, s:o}", "answer", text, "carries", a->carries,
                     "misses", a->misses, "undecided", a->undecided, "rows", rows);
}

json_t *load_found_json(const struct load_found *found, const struct load_plan *plan,
                        struct err *err)
{
    char name[LAUNCH_MAX_NAME + 1], text[ANSWER_TEXT] = "";
    struct users u = {0};
    json_t *servers;

    if (found->n == 1)
        return server_json(&found->a[0], &plan->s);
    if (users_find(&u, found->rows, found->n_rows, err))
        return NULL;
    users_answer(&u, text, sizeof text);
    users_free(&u);
    servers = json_array();
    for (size_t i = 0; i < found->n; i++) {
        json_t *server = server_json(&found->a[i], &plan->s);

        json_object_set_new(server, "name", json_string(name_of(plan, i, name)));
        json_array_append_new(servers, server);
    }
    return json_pack("{s:s, s:o}", "answer", text, "servers", servers);
}

/* ---- charts ---------------------------------------------------------------------- */

/* From the rows as they are stored, as `bench plot` draws them later. */
static enum status draw_stored(const char *dir, bool *any, struct err *err)
{
    struct result_set set;
    enum status st = result_set_open(&set, dir, RESULT_LAST, err);

    if (st == ST_OK)
        st = users_charts(dir, NULL, &set.parts[0], any, err);
    result_set_free(&set);
    return st;
}

enum status load_found_draw(FILE *f, const struct load_plan *plan, struct err *err)
{
    struct err why = ERR_INIT;
    bool any = false;

    if (!draw_stored(plan->dir_path, &any, &why)) {
        if (any && f)
            fprintf(f, "Charts are in %s.\n", format_path(plan->dir_path).text);
        return ST_OK;
    }
    if (why.code == ST_UNSUPPORTED) { /* the rows are what there is */
        message_print(why.msg);
        return ST_OK;
    }
    return err_set(err, why.code, "%s", why.msg);
}
