/* SPDX-License-Identifier: MIT
 *
 * draw_chart.c - draws NAME.gp with NAME.csv as OUT, without gnuplot
 *
 * usage: draw_chart NAME OUT
 */
#include <stdio.h>
#include <stdlib.h>

#include "harness/chart/draw.h"

static char *read_whole(const char *name, const char *ending)
{
    const size_t cap = (size_t)1 << 26;
    char path[4096], *text = malloc(cap);

    snprintf(path, sizeof path, "%s.%s", name, ending);
    FILE *f = fopen(path, "rb");

    if (!f || !text) {
        perror(path);
        exit(2);
    }
    text[fread(text, 1, cap - 1, f)] = '\0';
    fclose(f);
    return text;
}

int main(int argc, char **argv)
{
    struct err err = ERR_INIT;
    FILE *f = argc == 3 ? fopen(argv[2], "wb") : NULL;

    if (!f) {
        fprintf(stderr, "usage: draw_chart NAME OUT\n");
        return 2;
    }
    char *script = read_whole(argv[1], "gp"), *data = read_whole(argv[1], "csv");

    if (draw_svg(script, data, f, &err))
        fprintf(stderr, "%s: %s\n", argv[1], err.msg);
    free(script);
    free(data);
    return (fclose(f) != 0) | (err.code != ST_OK);
}
