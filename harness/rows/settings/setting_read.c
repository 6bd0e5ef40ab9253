/* SPDX-License-Identifier: MIT
 *
 * setting_read.c - settings as options of a command, and as keys of a YAML file
 *
 * Values are texts, and both sources use the same parsers.
 */
#include <stdio.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/base/yamlfile.h"
#include "harness/rows/settings/setting.h"

/* ---- options --------------------------------------------------------------------- */

/* " (default 512)" where that is informative. */
static void append_default(enum setting_id id, char *help, size_t cap)
{
    const struct setting *s = setting_row(id);
    double field = 0; /* as large as any that is no text */
    char text[40];

    if (s->type == SETTING_TYPE_FLAG || s->type == SETTING_TYPE_TEXT)
        return;
    setting_default(id, &field, sizeof field);
    text_append(help, cap, " (default %s)",
                setting_text(id, &field, text, sizeof text));
}

static void make_help(enum setting_id id, const char *end, bool sweeps, char *help,
                      size_t cap)
{
    snprintf(help, cap, "%s%s", setting_row(id)->help, end ? end : "");
    if (!sweeps && !end)
        append_default(id, help, cap);
}

size_t setting_options(struct opt *opts, struct setting_request *r, unsigned command)
{
    const bool sweeps = command == SETTING_OPTION_SWEEP;
    size_t n = 0;

    memset(r, 0, sizeof *r);
    for (enum setting_id id = 0; id < SETTING_N; id++) {
        const struct setting *s = setting_row(id);
        const bool is_flag = s->type == SETTING_TYPE_FLAG;

        if (!(s->in & command) || !s->option)
            continue;
        make_help(id, sweeps ? s->many : s->one, sweeps, r->help[id],
                  sizeof r->help[id]);
        opts[n++] = (struct opt){
            .kind = is_flag ? OPT_KIND_FLAG : OPT_KIND_STR,
            .letter = s->letter,
            .name = s->option,
            .dst = is_flag ? (void *)&r->flag[id] : (void *)&r->text[id],
            .arg = sweeps && s->swept ? "LIST" : s->arg,
            .help = r->help[id],
            .choices = s->choices,
        };
    }
    opts[n] = (struct opt)OPT_END;
    return n;
}

struct opt setting_option(enum setting_id id, opt_take_fn *take, void *dst)
{
    static char help[SETTING_N][SETTING_MAX_HELP];
    const struct setting *s = setting_row(id);

    make_help(id, s->run ? s->run : s->one, false, help[id], sizeof help[id]);
    return (struct opt){.kind = OPT_KIND_TAKE,
                        .letter = s->letter,
                        .name = s->option,
                        .dst = dst,
                        .arg = s->arg,
                        .help = help[id],
                        .take = take,
                        .id = (int)id,
                        .choices = s->choices};
}

const char *setting_given(const struct setting_request *r, enum setting_id id)
{
    const struct setting *s = setting_row(id);

    if (!r->flag[id])
        return r->text[id];
    return s->words[1] ? s->words[1] : "true";
}

/* ---- YAML ------------------------------------------------------------------------ */

enum setting_id setting_find(const char *name, unsigned in)
{
    enum setting_id id = 0;

    while (id < SETTING_N &&
           (!(setting_row(id)->in & in) || strcmp(setting_row(id)->name, name) != 0))
        id++;
    return id;
}

struct taking {
    setting_take_fn *take;
    void *arg;
};

static enum status take_key(void *arg, const char *key, const char *text,
                            const char *const *words, size_t n, const char *what,
                            struct err *err)
{
    const struct taking *to = arg;

    return to->take(to->arg, setting_find(key, SETTING_YAML), text, words, n, what,
                    err);
}

enum status setting_load_yaml(const char *path, setting_take_fn *take, void *arg,
                              struct err *err)
{
    struct taking to = {take, arg};
    struct yaml_key keys[SETTING_N];
    size_t n = 0;

    for (enum setting_id id = 0; id < SETTING_N; id++)
        if (setting_row(id)->in & SETTING_YAML)
            keys[n++] = (struct yaml_key){.name = setting_row(id)->name,
                                          .is_list = setting_row(id)->swept,
                                          .or_text = id == SETTING_mem};
    return yaml_load_keys(path, keys, n, take_key, &to, err);
}
