/* SPDX-License-Identifier: MIT
 *
 * weights_file.c - a descriptor of a gguf's file that reads past the page cache
 */
#include "engine/weights/weights_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/weights/residency.h"

static bool same_file(int a, int b)
{
    struct stat one, other;

    return !fstat(a, &one) && !fstat(b, &other) && one.st_dev == other.st_dev &&
           one.st_ino == other.st_ino;
}

int weights_file_open_again(const struct gguf *g, int flags)
{
    char name[64];
    int fd;

    snprintf(name, sizeof name, "/proc/self/fd/%d", gguf_fd(g));
    fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags);
    if (fd >= 0 && !same_file(fd, gguf_fd(g))) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* Opening says too little: some file systems refuse only the read. buffer: a block. */
static bool reads_directly(int fd, void *buffer)
{
    return fd >= 0 && pread(fd, buffer, RESIDENCY_ALIGN, 0) > 0;
}

void weights_file_open(struct weights_file *f, const struct gguf *g, void *memory)
{
    f->g = g;
    f->own = weights_file_open_again(g, O_DIRECT);
    f->direct = reads_directly(f->own, memory);
    if (f->direct)
        return;
    if (f->own >= 0)
        close(f->own);
    /* Requests are longer than any readahead, which would read the same bytes twice
     * where they complete out of order. */
    f->own = weights_file_open_again(g, 0);
    if (f->own >= 0)
        (void)posix_fadvise(f->own, 0, 0, POSIX_FADV_RANDOM);
}

void weights_file_close(struct weights_file *f)
{
    if (f->own >= 0)
        close(f->own);
    f->own = -1;
}

int weights_file_fd(const struct weights_file *f)
{
    return f->own >= 0 ? f->own : gguf_fd(f->g);
}

struct extent_reader_params weights_file_params(const struct weights_file *f)
{
    return (struct extent_reader_params){
        .fd = weights_file_fd(f),
        .path = gguf_path(f->g),
        .file_bytes = gguf_image_bytes(f->g),
        .direct = f->direct,
        .depth = WEIGHTS_FILE_DEPTH,
        .request_bytes = WEIGHTS_FILE_REQUEST_BYTES,
    };
}
