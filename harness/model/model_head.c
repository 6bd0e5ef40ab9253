/* SPDX-License-Identifier: MIT
 *
 * model_head.c - metadata and table of tensors, without the data
 */
#include "harness/model/modelref.h"

#include <string.h>
#include <sys/mman.h>

#include "harness/base/format.h"

enum status model_head_of_plan(struct model_head *h, const struct synth_plan *plan,
                               const char *name, struct err *err)
{
    const uint64_t bytes = synth_plan_bytes(plan);
    struct model_head out = {.bytes = bytes};
    size_t n;
    const void *head = synth_plan_header(plan, &n);
    enum status st;

    out.image = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (out.image == MAP_FAILED)
        return err_set_errno(err, ST_NO_MEMORY, "no address space of %s to plan %s in",
                             bytes_text(bytes).text, name);
    memcpy(out.image, head, n);
    st = gguf_parse(&out.g, out.image, bytes, name, err);
    if (st)
        munmap(out.image, bytes);
    else
        *h = out;
    return st;
}

void model_head_close(struct model_head *h)
{
    gguf_close(h->g);
    if (h->image)
        munmap(h->image, h->bytes);
    *h = (struct model_head){.g = NULL};
}
