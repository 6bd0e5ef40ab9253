/* SPDX-License-Identifier: MIT
 *
 * sweep_config.c - settings of a sweep from YAML
 */
#include "harness/measure/sweep/sweep.h"

#include "harness/base/program.h"
#include "harness/rows/settings/setting.h"

struct origin {
    struct sweep_settings *s;
    const struct topology *topo;
};

static enum status take(void *arg, enum setting_id id, const char *text,
                        const char *const *words, size_t n, const char *what,
                        struct err *err)
{
    const struct origin *from = arg;

    return id == SETTING_models ? sweep_set_models(from->s, words, n, what, err)
           : id == SETTING_engines
               ? sweep_set_engines(from->s, words, n, what, err)
               : sweep_set(from->s, id, text, from->topo, what, err);
}

enum status sweep_config_load(struct sweep_settings *s, const char *name,
                              const struct topology *topo, struct err *err)
{
    char buf[8192];
    const char *path = data_config_find(buf, sizeof buf, "sweeps", name);
    struct origin from = {s, topo};

    if (!data_file_is_there(path))
        return err_set_errno(err, ST_IO,
                             "cannot open the configuration %s; name a YAML file, or "
                             "one in configs/sweeps such as quick",
                             path);
    return setting_load_yaml(path, take, &from, err);
}
