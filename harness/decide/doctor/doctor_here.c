/* SPDX-License-Identifier: MIT
 *
 * doctor_here.c - checks of the living machine: disk, programs, neighbours
 */
#include "harness/decide/doctor/doctor_internal.h"

#include <limits.h>
#include <sys/statvfs.h>
#include <time.h>

#include "harness/base/format.h"
#include "harness/base/interrupt.h"
#include "harness/base/program.h"
#include "harness/client/client.h"
#include "harness/machine/measuring.h"
#include "harness/machine/noise.h"
#include "harness/machine/probe.h"
#include "harness/measure/kernels/kernel_plan.h"

#define DISK_BYTES ((uint64_t)128 << 20)
/* A model of 9 billion parameters in Q4_K_M, and the results. */
#define ROOM_BYTES ((uint64_t)6 << 30)
#define QUIET_MS   1200

static void check_room(struct doctor *d, const char *dir)
{
    struct statvfs fs;

    if (statvfs(dir, &fs))
        return;
    const uint64_t left = (uint64_t)fs.f_bavail * fs.f_frsize;
    if (left < ROOM_BYTES)
        doctor_set_mend(doctor_add(d, "Disk room", DOCTOR_PARTLY,
                                   "%s are free in '%s', and a model of 9 billion "
                                   "parameters takes 5 to 6 GB.",
                                   bytes_text(left).text, format_path(dir).text),
                        "bench ... --cache-dir DIR -o DIR, on a larger disk");
    else
        doctor_add(d, "Disk room", DOCTOR_FINE, "%s are free in '%s'.",
                   bytes_text(left).text, format_path(dir).text);
}

void doctor_check_disk(struct doctor *d, const char *dir)
{
    struct err err = ERR_INIT;
    double gbps = 0;

    check_room(d, dir);
    if (probe_disk(dir, DISK_BYTES, &probe_disk_streaming, 1, &gbps, &err))
        doctor_set_mend(doctor_add(d, "Disk speed", DOCTOR_PARTLY,
                                   "not known, so models larger than memory cannot be "
                                   "predicted: %s.",
                                   err.msg),
                        "bench doctor --disk DIR, where models lie");
    else
        doctor_add(d, "Disk speed", DOCTOR_FINE,
                   "%.2f GB/s read in '%s', past the page cache, as weights are "
                   "streamed.",
                   gbps, format_path(dir).text);
}

void doctor_check_programs(struct doctor *d)
{
    struct err err = ERR_INIT;
    char path[PATH_MAX];

    if (program_find(path, sizeof path, "gnuplot"))
        doctor_add(d, "Charts", DOCTOR_FINE, "gnuplot draws them as SVG and PNG.");
    else
        doctor_set_mend(doctor_add(d, "Charts", DOCTOR_NOTE,
                                   "gnuplot is not installed: charts are SVG, without "
                                   "PNG."),
                        "sudo apt-get install gnuplot-nox");
    if (load_client_check(&err))
        doctor_set_mend(doctor_add(d, "Servers", DOCTOR_PARTLY,
                                   "`bench load` and servers as engines of a sweep do "
                                   "not work: %s.",
                                   err.msg),
                        "sudo apt-get install ./slmbench_VERSION_ARCH.deb");
    else
        doctor_add(d, "Servers", DOCTOR_FINE, "`bench load` can send requests.");
    err_clear(&err);
    if (kernel_run_check(&err))
        doctor_set_mend(doctor_add(d, "Kernels", DOCTOR_PARTLY,
                                   "`bench kernels` does not work: %s.", err.msg),
                        "sudo apt-get install libbenchmark-dev, and build again; or "
                        "the .deb");
    else
        doctor_add(d, "Kernels", DOCTOR_FINE, "`bench kernels` can time them.");
}

static void sleep_ms(int ms)
{
    const struct timespec t = {ms / 1000, ms % 1000 * 1000000L};

    if (!interrupted())
        nanosleep(&t, NULL);
}

void doctor_check_quiet(struct doctor *d)
{
    struct noise before, now;
    char why[200];

    if (!measuring_try()) {
        doctor_add(d, "Quiet", DOCTOR_PARTLY,
                   "another program measures; this one would wait for it.");
        return;
    }
    noise_read(&before, "");
    sleep_ms(QUIET_MS);
    noise_since(&now, &before, "");
    if (noise_verdict(&now, 0, why, sizeof why))
        doctor_add(d, "Quiet", DOCTOR_FINE,
                   "nothing else used the CPUs for a second (others %.0f %%, steal "
                   "%.1f %%).",
                   100 * noise_others_share(&now), 100 * noise_steal_share(&now));
    else
        doctor_add(
            d, "Quiet", DOCTOR_PARTLY,
            "a measurement now would be %s. `top` shows by which program, except "
            "for steal, which is the host's.",
            why);
    measuring_end();
}
