/* SPDX-License-Identifier: MIT
 *
 * sweep_machine.c - machine.json: what was measured on, by what, and how
 */
#include "harness/measure/sweep/sweep.h"

#include <cyaml/cyaml.h>
#include <gnu/libc-version.h>
#include <hwloc.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/format.h"
#include "harness/base/program.h"
#include "harness/machine/machine_key.h"

static json_t *versions(void)
{
    char hwloc[32];
    const unsigned v = hwloc_get_api_version();

    snprintf(hwloc, sizeof hwloc, "%u.%u.%u", v >> 16, v >> 8 & 0xff, v & 0xff);
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "bench", build_version(),
                     "commit", build_commit(), "compiler", build_compiler(), "libc",
                     gnu_get_libc_version(), "hwloc", hwloc, "jansson",
                     jansson_version_str(), "libcyaml", cyaml_version_str);
}

static json_t *command_line(int argc, char **argv)
{
    json_t *list = json_array();

    json_array_append_new(list, json_string("bench"));
    for (int i = 0; i < argc; i++)
        json_array_append_new(list, json_string(argv[i]));
    return list;
}

json_t *sweep_machine_json(const struct topology *topo,
                           const struct probe_report *probe,
                           const struct sweep_settings *s, int argc, char **argv)
{
    char host[65] = "", utc[32];

    gethostname(host, sizeof host - 1);
    return json_pack("{s:s, s:s, s:o, s:o, s:I, s:o, s:o, s:o}", "utc",
                     format_now(utc, sizeof utc), "host", host, "versions", versions(),
                     "command", command_line(argc, argv), "seed",
                     (json_int_t)s->base.setup.seed, "topology", topology_json(topo),
                     "probe", probe ? probe_report_json(probe) : json_null(), "sweep",
                     sweep_settings_json(s));
}

/* ---- resuming -------------------------------------------------------------------- */

/* The machine's profile as it shows itself: which CPUs share a core, where that was
 * measured, is of the moment, and the next measurement may be undecided. */
static bool read_key(struct machine_key *key, const json_t *topology)
{
    json_t *shown = json_deep_copy(topology);
    json_t *cpu = json_object_get(shown, "cpu");

    if (json_is_string(json_object_get(cpu, "smt_measured"))) {
        json_object_set(cpu, "cores", json_object_get(cpu, "cpus"));
        json_object_set_new(cpu, "smt", json_string("hidden"));
    }
    const bool is_machine = machine_key_read(key, shown);

    json_decref(shown);
    return is_machine;
}

static enum status check_build(const json_t *machine, const char *dir, struct err *err)
{
    static const struct {
        const char *key, *what;
        const char *(*here)(void);
    } rows[] = {{"bench", "", build_version},
                {"compiler", "built by ", build_compiler}};
    const json_t *versions = json_object_get(machine, "versions");

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *text = json_string_value(json_object_get(versions, rows[i].key));
        char there[80];

        if (text && !strcmp(text, rows[i].here()))
            continue;
        text_harmless(there, sizeof there, text ? text : "unknown");
        return err_set(err, ST_USAGE,
                       "the sweep in %.160s was measured by bench %s%s, this is %s%s: "
                       "continue with that build, or begin a new one with -o",
                       dir, rows[i].what, there, rows[i].what, rows[i].here());
    }
    return ST_OK;
}

enum status sweep_machine_check(const json_t *machine, const struct topology *topo,
                                const char *dir, struct err *err)
{
    json_t *topology = topology_json(topo);
    struct machine_key there, here;
    char why[320];
    const bool known = read_key(&there, json_object_get(machine, "topology"));

    read_key(&here, topology); /* which our own topology always has */

    json_decref(topology);
    if (!known)
        return err_set(err, ST_INPUT,
                       "machine.json of the sweep in %.160s does not say what machine "
                       "it was measured on; begin a new one with -o",
                       dir);
    if (!machine_key_same(&there, &here, why, sizeof why))
        return err_set(err, ST_USAGE,
                       "the sweep in %.160s was measured on another machine or under "
                       "other limits: %s; continue there, or begin a new one with -o",
                       dir, why);
    return check_build(machine, dir, err);
}
