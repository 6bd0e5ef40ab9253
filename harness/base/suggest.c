/* SPDX-License-Identifier: MIT
 *
 * suggest.c - edit distance (Levenshtein 1965), one row of the table at a time
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
    int row[MAX_WORD + 1];

    for (int j = 0; j <= n; j++)
        row[j] = j;
    for (int i = 1; a[i - 1]; i++) {
        int diagonal = row[0];

        row[0] = i;
        for (int j = 1; j <= n; j++) {
            const int above = row[j];

            row[j] = min3(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
            diagonal = above;
        }
    }
    return row[n];
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
        if (strlen(names[i]) > MAX_WORD)
            continue;
        const int d = edit_distance(word, names[i]);
        if (d <= limit) {
            limit = d - 1;
            best = names[i];
        }
    }
    return best;
}
