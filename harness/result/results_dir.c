/* SPDX-License-Identifier: MIT
 *
 * results_dir.c - a directory of results: its name, its files
 */
#include "harness/result/results_dir.h"

#include <stdio.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/result/quality_rows.h"
#include "harness/result/samples.h"

void results_dir_name(char *name, size_t cap, const char *path)
{
    char own[4096], *slash;

    snprintf(own, sizeof own, "%s", path);
    for (size_t n = strlen(own); n > 1 && own[n - 1] == '/'; n--)
        own[n - 1] = '\0';
    slash = strrchr(own, '/');
    text_harmless(name, cap, slash && slash[1] ? slash + 1 : own);
}

enum status results_dir_files(struct path_list *files, const char *path,
                              struct err *err)
{
    static const char *const names[] = {"sweep.csv", QUALITY_CSV, SAMPLES_CSV,
                                        "machine.json"};
    char file[4200];
    enum status st = ST_OK;

    for (size_t i = 0; i < sizeof names / sizeof *names && st == ST_OK; i++) {
        snprintf(file, sizeof file, "%s/%s", path, names[i]);
        st = path_list_add(files, file, err);
    }
    return st;
}
