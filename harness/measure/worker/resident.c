/* SPDX-License-Identifier: MIT
 *
 * resident.c - memory of this process that must stay resident
 */
#include "harness/measure/worker/worker.h"

#include <stdlib.h>

#include "harness/base/sysfile.h"

bool resident_read(const char *root, uint64_t *bytes)
{
    static const char *const keys[] = {"RssAnon", "VmSwap", "VmPTE"};
    char *text = sysfile_read_all(root, "/proc/self/status");
    uint64_t kib = 0, v;
    const bool is_known = text && text_key_u64(text, keys[0], &v);

    for (int i = 0; i < 3; i++)
        if (text && text_key_u64(text, keys[i], &v))
            kib += v;
    free(text);
    if (is_known)
        *bytes = kib * 1024;
    return is_known;
}
