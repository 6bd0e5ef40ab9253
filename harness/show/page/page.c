/* SPDX-License-Identifier: MIT
 *
 * page.c - the page as a whole
 */
#include "harness/show/page/page.h"

#include <stdlib.h>

#include "harness/base/textfile.h"
#include "harness/show/page/html.h"
#include "harness/show/page/page_files.h"
#include "harness/show/page/page_machine.h"

#define MODEL_CHARACTERS 60 /* of a model in the page's title */

struct page {
    const struct page_params *params;
    struct result_set *sets; /* [params->n], of the paths */
    struct page_machine *v;  /* [n] */
    size_t n;
    char *text; /* the page, [len] */
    size_t len;
};

static void put_hash(FILE *f, const struct page_file *file)
{
    fputs("'sha256-", f);
    html_put_base64(f, file->sha256, sizeof file->sha256);
    fputc('\'', f);
}

/* "yi-1.5-9b on AMD EPYC, 2 CPUs". */
static void put_subject(FILE *f, const struct page_machine *m)
{
    char models[REPORT_NAME_MAX];

    report_models_text(&m->picked, models, sizeof models, MODEL_CHARACTERS);
    if (m->picked.n)
        html_printf(f, "%s on ", models);
    html_put(f, m->title);
}

static void put_title(FILE *f, const struct page *page)
{
    if (page->params->title)
        html_put(f, page->params->title);
    else if (page->n == 1)
        put_subject(f, &page->v[0]);
    else
        html_printf(f, "%zu machines", page->n);
}

/* No request, and no style and script but ours: even where a text of others became
 * HTML, it could do nothing. */
static void put_head(FILE *f, const struct page *page)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
          "img-src data:; base-uri 'none'; form-action 'none'; style-src ",
          f);
    put_hash(f, &page_css);
    fputs("; script-src ", f);
    put_hash(f, &page_js);
    fputs("\">\n<meta name=\"viewport\" content=\"width=device-width, "
          "initial-scale=1\">\n<meta name=\"referrer\" content=\"no-referrer\">\n"
          "<link rel=\"icon\" href=\"data:,\">\n<title>",
          f);
    put_title(f, page);
    fputs(" \xe2\x80\x93 slmbench</title>\n<style>", f);
    fwrite(page_css.text, 1, page_css.n, f);
    fputs("</style>\n</head>\n<body>\n", f);
}

static void put_top(FILE *f, const struct page *page)
{
    fputs("<header class=\"top\">\n<p class=\"label\">slmbench report</p>\n<h1>", f);
    put_title(f, page);
    fputs("</h1>\n", f);
    if (page->n == 1) {
        fputs("<p class=\"sub\">", f);
        page_put_summary(f, &page->v[0]);
        fputs("</p>\n", f);
    } else {
        fputs("<nav>\n", f);
        for (size_t i = 0; i < page->n; i++) {
            fprintf(f, "<a href=\"#m%zu\">", i);
            html_put(f, page->v[i].title);
            fputs("</a>\n", f);
        }
        fputs("</nav>\n", f);
    }
    fputs("</header>\n<main>\n", f);
}

/* Whether there is anything besides what bench load measured. */
static bool has_speeds(const struct page_machine *m)
{
    for (size_t i = 0; i < m->n_rows; i++)
        if (m->rows[i].kind != ROW_LOAD)
            return true;
    return false;
}

static enum status put_machine(FILE *f, const struct page *page, size_t i,
                               struct err *err)
{
    const struct page_machine *m = &page->v[i];

    fprintf(f, "<section id=\"m%zu\">\n", i);
    if (page->n > 1) {
        html_put_in(f, "<h2>", m->title, "</h2>\n<p class=\"sub\">");
        page_put_summary(f, m);
        fputs("</p>\n", f);
    }
    enum status st = page_put_users(f, m, err);

    if (has_speeds(m)) {
        fputs("<div class=\"pair\">\n<div class=\"card\">\n", f);
        page_put_decision(f, m);
        fputs("</div>\n", f);
    } else {
        fputs("<div>\n", f);
    }
    fputs("<div class=\"card\">\n<h3>Machine and limits</h3>\n", f);
    page_put_facts(f, m);
    fputs("</div>\n</div>\n", f);
    if (st == ST_OK)
        st = page_put_charts(f, m, err);

    fputs("</section>\n<section>\n", f);
    page_put_table(f, m);
    fputs("</section>\n", f);
    return st;
}

static enum status put_page(FILE *f, const struct page *page, struct err *err)
{
    enum status st = ST_OK;

    put_head(f, page);
    put_top(f, page);
    if (page->n > 1)
        st = page_put_overview(f, page->v, page->n, err);
    for (size_t i = 0; i < page->n && st == ST_OK; i++)
        st = put_machine(f, page, i, err);
    fputs("</main>\n<footer><p>Speeds are medians with 95 % intervals. The roof is the "
          "memory bandwidth probed in the same run, divided by the bytes that a token "
          "reads. Written by bench report; the page makes no request.</p></footer>\n",
          f);
    page_put_fields(f);
    fputs("<script>", f);
    fwrite(page_js.text, 1, page_js.n, f);
    fputs("</script>\n</body>\n</html>\n", f);
    return st;
}

/* ---- files ----------------------------------------------------------------------- */

static enum status add_machines(struct page *page, const struct result_set *set,
                                struct err *err)
{
    enum status st = ST_OK;

    for (size_t i = 0; i < set->n_parts && st == ST_OK; i++) {
        struct page_machine *m = &page->v[page->n];

        if (page->n == PAGE_MAX_MACHINES)
            return err_set(err, ST_USAGE,
                           "more than %d machines are too many for a page",
                           PAGE_MAX_MACHINES);
        st = page_machine_make(m, &set->parts[i], &page->params->wishes, err);
        m->number = (int)page->n++;
    }
    return st;
}

static enum status read_machines(struct page *page, struct err *err)
{
    const struct page_params *p = page->params;
    enum status st = ST_OK;

    page->sets = calloc(p->n + 1, sizeof *page->sets);
    page->v = calloc(PAGE_MAX_MACHINES, sizeof *page->v);
    if (!page->sets || !page->v)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu machines", p->n);
    for (size_t i = 0; i < p->n && st == ST_OK; i++) {
        struct result_set *set = &page->sets[i];

        st = result_set_open(set, p->paths[i], RESULT_BY_MACHINE, err);
        if (st == ST_OK)
            st = path_list_check_output(&set->files, p->out, err);
    }
    if (st == ST_OK)
        st = result_parts_join_models(page->sets, p->n, err);
    for (size_t i = 0; i < p->n && st == ST_OK; i++)
        st = add_machines(page, &page->sets[i], err);
    page_name_machines(page->v, page->n);
    return st;
}

static enum status make_text(struct page *page, struct err *err)
{
    FILE *f = open_memstream(&page->text, &page->len);
    enum status st;

    if (!f)
        return err_set(err, ST_NO_MEMORY, "no memory for the page");
    st = put_page(f, page, err);
    if (fclose(f) && st == ST_OK)
        st = err_set(err, ST_NO_MEMORY, "no memory for the page");
    return st;
}

static void write_text(FILE *f, const void *arg)
{
    const struct page *page = arg;

    fwrite(page->text, 1, page->len, f);
}

enum status page_make(const struct page_params *p, size_t *bytes, size_t *n_machines,
                      struct err *err)
{
    struct page page = {.params = p};
    enum status st = read_machines(&page, err);

    if (st == ST_OK)
        st = make_text(&page, err);
    if (st == ST_OK)
        st = textfile_write(p->out, write_text, &page, err);
    *bytes = page.len;
    *n_machines = page.n;
    for (size_t i = 0; i < page.n; i++)
        page_machine_free(&page.v[i]);
    for (size_t i = 0; page.sets && i < p->n; i++)
        result_set_free(&page.sets[i]);
    free(page.sets);
    free(page.v);
    free(page.text);
    return st;
}
