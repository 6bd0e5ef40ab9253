/* SPDX-License-Identifier: MIT
 *
 * choose_importance.c - the importance matrix of a text, as the first step
 */
#include <stdio.h>
#include <unistd.h>

#include "harness/base/dirs.h"
#include "harness/base/format.h"
#include "harness/decide/choose/choose_impl.h"
#include "harness/measure/quality/quality_text.h"
#include "harness/measure/session/calibration.h"

#define CHUNKS 100 /* more change little */

/* Only a whole matrix gets its name. */
enum status choose_importance(char *path, size_t cap, const struct choose_settings *s,
                              struct err *err)
{
    char part[3100];
    struct calibration c = {
        .session = s->session, .text = s->calibration, .out = part, .n_chunks = CHUNKS};
    struct calibration_result r;
    struct quality_model m;
    struct imatrix *im = NULL;
    enum status st = quality_model_read(&m, s->model, NULL, err);

    snprintf(path, cap, "%.3000s/imatrix.gguf", s->out);
    snprintf(part, sizeof part, "%.3000s/imatrix-part.gguf", s->out);
    if (!st)
        st = dirs_make(s->out, err);
    if (st || !access(path, F_OK))
        return st;
    c.session.model = s->model;
    c.session.n_logits = 1;
    c.session.n_ctx = m.n_ctx_train && m.n_ctx_train < CALIBRATION_CTX
                          ? m.n_ctx_train
                          : CALIBRATION_CTX;
    st = calibrate(&im, &r, &c, err);
    if (!st && rename(part, path))
        st = err_set_errno(err, ST_IO, "cannot rename %s", part);
    if (!st)
        printf("importance matrix: %zu chunks of %s\n", r.done,
               format_path(s->calibration).text);
    imatrix_free(im);
    unlink(part);
    return st;
}
