/* SPDX-License-Identifier: MIT
 *
 * gate_sides.c - the kinds of sides, and which one both are
 */
#include "harness/decide/gate/gate_sides.h"

#include <string.h>

#include "harness/base/program.h"

static const struct gate_sides *const kinds[] = {&gate_servers, &gate_engines,
                                                 &gate_builds};
#define N_KINDS (sizeof kinds / sizeof kinds[0])

static enum status find(const struct gate_run *run, int side,
                        const struct gate_sides **kind, struct err *err)
{
    enum status st = ST_OK;
    bool is = false;

    for (size_t i = 0; i < N_KINDS && st == ST_OK && !is; i++) {
        *kind = kinds[i];
        is = !kinds[i]->is;
        if (!is)
            st = kinds[i]->is(run, side, &is, err);
    }
    return st;
}

enum status gate_sides_find(struct gate_run *run, struct err *err)
{
    const struct gate_sides *kind[2];
    enum status st = find(run, 0, &kind[0], err);

    if (st == ST_OK)
        st = find(run, 1, &kind[1], err);
    if (st)
        return st;
    for (int side = 0; side < 2 && kind[0] != kind[1]; side++)
        if (!strcmp(run->program[side], self_path()))
            return err_set(err, ST_USAGE,
                           "A is %s and B %s, which cannot take turns: %c is this "
                           "program unless --%c or --%c-launch names another",
                           kind[0]->what, kind[1]->what, 'A' + side, 'a' + side,
                           'a' + side);
    if (kind[0] != kind[1])
        return err_set(err, ST_USAGE,
                       "A is %s and B %s, which cannot take turns: `bench sweep "
                       "--engine` measures both, and `bench compare` compares them",
                       kind[0]->what, kind[1]->what);
    run->sides = kind[0];
    return ST_OK;
}
