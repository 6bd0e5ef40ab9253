/* SPDX-License-Identifier: MIT
 *
 * doctor_machine.c - checks that read /proc and /sys, this machine's or recorded ones
 */
#include "harness/decide/doctor/doctor_internal.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/format.h"
#include "harness/base/sysfile.h"
#include "harness/machine/energy.h"
#include "harness/machine/sandbox/sandbox.h"
#include "kernels/isa.h"

void doctor_check_isa(struct doctor *d, const struct topology *t)
{
    char used[160] = "", missing[240] = "";

    for (int i = KERN_ISA_scalar + 1; i < KERN_N_ISA; i++) {
        const char *name = isa_name((enum kern_isa)i);

        if (t->isa_mask >> i & 1u)
            text_append(used, sizeof used, "%s%s", used[0] ? ", " : "", name);
        else if (strncmp(t->isa_missing[i], "for ", 4) != 0) /* another architecture */
            text_append(missing, sizeof missing, "%s%s", missing[0] ? ", " : "", name);
    }
    if (used[0]) /* else topology_advice() has reported it */
        doctor_add(d, "ISA", DOCTOR_FINE, "kernels for %s run.%s%s%s", used,
                   missing[0] ? " Not here: " : "", missing,
                   missing[0] ? " (`bench topo` shows why)." : "");
}

#define GOVERNOR_COMMAND           \
    "echo performance | sudo tee " \
    "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"

/* That of the first CPU that is ours: they are set together, as a rule. */
void doctor_check_governor(struct doctor *d, const struct topology *t, const char *root)
{
    char path[96], governor[32] = "";

    for (int i = 0; i < t->n_cpus && !governor[0]; i++) {
        snprintf(path, sizeof path,
                 "/sys/devices/system/cpu/cpu%d/cpufreq/scaling_governor",
                 t->cpu[i].os_id);
        if (t->cpu[i].allowed)
            sysfile_read(root, path, governor, sizeof governor);
    }
    if (!governor[0])
        doctor_add(d, "Frequency", DOCTOR_FINE,
                   "%s decides about the clock; this system has no governor.",
                   t->hypervisor[0] ? "the host" : "the firmware");
    else if (!strcmp(governor, "performance"))
        doctor_add(d, "Frequency", DOCTOR_FINE, "the governor is 'performance'.");
    else
        doctor_set_mend(
            doctor_add(d, "Frequency", DOCTOR_PARTLY,
                       "the governor is '%.30s', which changes the clock during a "
                       "measurement.",
                       governor),
            GOVERNOR_COMMAND);
}

void doctor_check_energy(struct doctor *d, const char *root)
{
    struct energy e;

    energy_open(&e, root);
    if (e.is_broken)
        doctor_set_mend(
            doctor_add(d, "Energy", DOCTOR_NOTE,
                       "the counters are for root alone, so rows have no joules."),
            "sudo chmod a+r /sys/class/powercap/intel-rapl:*/energy_uj");
    else if (!e.n)
        doctor_add(d, "Energy", DOCTOR_NOTE,
                   "the CPU shows no energy counters (most virtual machines do not), "
                   "so rows have no joules.");
    else
        doctor_add(d, "Energy", DOCTOR_FINE, "%d counter%s can be read.", e.n,
                   plural(e.n, "s"));
}

/* systemd writes the first where it knows; docker and podman make the others. */
void doctor_check_container(struct doctor *d, const char *root)
{
    static const struct {
        const char *file, *name;
    } signs[] = {
        {"/run/systemd/container", ""},
        {"/.dockerenv", "docker"},
        {"/run/.containerenv", "podman"},
    };
    char text[64];

    for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++) {
        if (sysfile_read(root, signs[i].file, text, sizeof text) < 0)
            continue;
        text[strcspn(text, "\n")] = '\0';
        doctor_add(d, "Container", DOCTOR_NOTE,
                   "this is a container (%.30s): its limits hold for every "
                   "measurement, and neighbours outside cannot be seen.",
                   signs[i].name[0] ? signs[i].name : text);
        return;
    }
}

/* The first command that a message names, as `command`. */
static bool take_command(const char *text, char *buf, size_t cap)
{
    const char *begin = strchr(text, '`');
    const char *end = begin ? strchr(begin + 1, '`') : NULL;

    if (!end)
        return false;
    snprintf(buf, cap, "%.*s", (int)(end - begin - 1), begin + 1);
    return true;
}

/* The kind of limit can be set; or why not, with the ways out. */
static void add_limit(struct doctor *d, const char *name, const char *fine,
                      enum status st, const struct err *err)
{
    char command[sizeof d->check[0].mend] = "sudo bench ...";

    if (st == ST_OK) {
        doctor_add(d, name, DOCTOR_FINE, "%s", fine);
        return;
    }
    struct doctor_check *c = doctor_add(d, name, DOCTOR_PARTLY, "%s.", err->msg);
    if (st == ST_PERMISSION &&
        (take_command(err->msg, command, sizeof command) || geteuid()))
        doctor_set_mend(c, command);
}

static void check_memory(struct doctor *d, const char *root)
{
    struct err err = ERR_INIT, why = ERR_INIT;
    uint64_t own = 0;
    const enum status st = sandbox_check(root, 0, &err);

    if (st == ST_PERMISSION && sandbox_own_limit(root, &own, &why) == ST_OK)
        doctor_add(d, "Memory limits", DOCTOR_NOTE,
                   "no group can be made here; the limit that is in force, %s, is "
                   "used with --mem container.",
                   bytes_text(own).text);
    else
        add_limit(d, "Memory limits",
                  "`bench sweep --mem 6G` and the like can limit memory.", st, &err);
}

/* Less than a quota that is in force: the same one needs no group. */
static void check_quota(struct doctor *d, const struct topology *t, const char *root)
{
    const double own = t->quota_cpus;
    const struct sandbox_limits quota = {.quota_cpus = own > 0 ? own / 2 : 1};
    struct err err = ERR_INIT;
    const enum status st = sandbox_check_with(root, &quota, &err);

    if (st == ST_PERMISSION && own > 0)
        doctor_add(d, "CPU quotas", DOCTOR_NOTE,
                   "no group can be made here; the quota that is in force, %.4g CPU%s, "
                   "holds for every point.",
                   own, own > 1 ? "s" : "");
    else
        add_limit(d, "CPU quotas",
                  "`--cpus-quota 1.5` and the like can limit CPU time.", st, &err);
}

void doctor_check_limits(struct doctor *d, const struct topology *t, const char *root)
{
    check_memory(d, root);
    check_quota(d, t, root);
}
