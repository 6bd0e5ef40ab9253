/* SPDX-License-Identifier: MIT
 *
 * suggest.c - edit distance (Levenshtein 1965) in which two neighbours that changed
 * places count once (Damerau 1964); two rows of the table at a time
 */
#include "harness/base/suggest.h"

#include <string.h>

#define MAX_WORD 63

static int min3(int a, int b, int c)
{
    const int ab = a < b ? a : b;

    return ab < c ? ab : c;
}

static int edit_distance(const char *a, const char *b)
{
    const int n = (int)strlen(b);
    int above2[MAX_WORD + 1] = {0}, above[MAX_WORD + 1], row[MAX_WORD + 1];

    for (int j = 0; j <= n; j++)
        above[j] = j;
    for (int i = 1; a[i - 1]; i++) {
        row[0] = i;
        for (int j = 1; j <= n; j++) {
            row[j] = min3(above[j] + 1, row[j - 1] + 1,
                          above[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = min3(row[j], above2[j - 2] + 1, row[j]);
        }
        memcpy(above2, above, sizeof above2);
        memcpy(above, row, sizeof above);
    }
    return above[n];
}

const char *suggest(const char *word, const char *const *names, int n_names)
{
    const size_t len = strlen(word);
    int limit = (int)len / 3;
    const char *best = NULL;

    if (len > MAX_WORD)
        return NULL;
    limit = limit < 1 ? 1 : limit > 3 ? 3 : limit;
    for (int i = 0; i < n_names; i++) {
        const size_t n = strlen(names[i]);

        if (n > MAX_WORD || n > len + (size_t)limit || len > n + (size_t)limit)
            continue; /* as many letters at least have changed */
        const int d = edit_distance(word, names[i]);
        if (d <= limit) {
            limit = d - 1;
            best = names[i];
        }
    }
    return best;
}
