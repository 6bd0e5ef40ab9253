/* SPDX-License-Identifier: MIT
 *
 * page_files.h - page.css and page.js, which cmake/page_files.cmake makes C of
 *
 * Threading: constants.
 */
#ifndef SLM_HARNESS_SHOW_PAGE_PAGE_FILES_H
#define SLM_HARNESS_SHOW_PAGE_PAGE_FILES_H

#include <stddef.h>
#include <stdint.h>

struct page_file {
    const unsigned char *text; /* [n] */
    size_t n;
    uint8_t sha256[32]; /* of the text */
};

extern const struct page_file page_css, page_js;

#endif
