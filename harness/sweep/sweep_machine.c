/* SPDX-License-Identifier: MIT
 *
 * sweep_machine.c - machine.json: what was measured on, by what, and how
 */
#include "harness/sweep/sweep.h"

#include <cyaml/cyaml.h>
#include <gnu/libc-version.h>
#include <hwloc.h>
#include <time.h>
#include <unistd.h>

#include "harness/base/program.h"

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
    const time_t now = time(NULL);
    char host[65] = "", utc[32];
    struct tm tm;

    gethostname(host, sizeof host - 1);
    gmtime_r(&now, &tm);
    strftime(utc, sizeof utc, "%Y-%m-%dT%H:%M:%SZ", &tm);
    return json_pack("{s:s, s:s, s:o, s:o, s:I, s:o, s:o, s:o}", "utc", utc, "host",
                     host, "versions", versions(), "command", command_line(argc, argv),
                     "seed", (json_int_t)s->base.setup.seed, "topology",
                     topology_json(topo), "probe",
                     probe ? probe_report_json(probe) : json_null(), "sweep",
                     sweep_settings_json(s));
}
