/* SPDX-License-Identifier: MIT
 *
 * test_plot.c - a plot laid out and written: ticks, legend, rows, texts of others, by
 * both writers
 */
#include "harness/chart/plot.h"

#include <math.h>

#include "harness/chart/chart_files.h"
#include "harness/chart/layout.h"
#include "harness/chart/svg.h"
#include "tests/support/test.h"

static void ticks_are_round(void **state)
{
    double v[PLOT_MAX_TICKS];

    (void)state;
    assert_int_equal(plot_find_ticks(0, 10.8, false, 6, v), 6);
    assert_true(v[0] == 0 && v[1] == 2 && v[5] == 10);
    assert_int_equal(plot_find_ticks(-3, 103, false, 6, v), 6);
    assert_true(v[0] == 0 && v[1] == 20);
    assert_int_equal(plot_find_ticks(0.1, 12, true, 7, v), 7);
    assert_true(v[0] == 0.1 && fabs(v[1] - 0.2) < 1e-12 && v[6] == 10);
    assert_int_equal(plot_find_ticks(1e-6, 1e6, true, 4, v), 5); /* not each decade */
    assert_int_equal(plot_find_ticks(1, 1, false, 5, v), 0);
    assert_int_equal(plot_find_ticks(0, 1, true, 5, v), 0);
    assert_true(plot_find_ticks(0, 1e300, false, 1000, v) <= PLOT_MAX_TICKS);
}

/* Marks of two series at 1 and 2, with intervals, names and figures. */
static struct plot *new_plot(void)
{
    struct plot *p = plot_new("one", "'it''s `id` a <title>\n\\n", "below");

    assert_non_null(p);
    plot_columns(p, "series,x,y,hi,note,.hint");
    for (int i = 0; i < 4; i++) {
        plot_number(p, i / 2);
        plot_number(p, 1 + i % 2);
        plot_number(p, i == 3 ? NAN : 10 * i);
        plot_number(p, 10 * i + 5);
        plot_string(p, i ? "" : "a \"b\", c");
        plot_string(p, "hint");
    }
    struct plot_panel *a = plot_panel(p, 400, 0, 3, 0, 40);

    a->x.title = "threads";
    a->y.title = "tokens per second";
    plot_layer(p, (struct plot_layer){
                      .form = PLOT_MARKS,
                      .x = {"x", 0},
                      .y = {"y", 0},
                      .by = "series",
                      .n_by = 2,
                      .text = ".hint",
                      .style = {.color = PLOT_OWN, .mark = PLOT_SHAPE, .size = 1}});
    plot_key(p, "first", (struct plot_style){.color = 0, .width = 2});
    return p;
}

typedef void write_fn(FILE *f, const struct plot *p);

static void write_script(FILE *f, const struct plot *p)
{
    struct err err = ERR_INIT;

    assert_int_equal(gnuplot_write(f, p, "the style\n", &err), ST_OK);
}

static void write_picture(FILE *f, const struct plot *p)
{
    svg_write(f, p, &plot_look_file);
}

static void write_part(FILE *f, const struct plot *p)
{
    svg_write(f, p, &plot_look_page);
}

static char *written(write_fn *write, const struct plot *p)
{
    char *text = NULL;
    size_t n;
    FILE *f = open_memstream(&text, &n);

    assert_non_null(f);
    write(f, p);
    assert_int_equal(fclose(f), 0);
    return text;
}

/* A row without a figure is in no form, a column with a dot in no file, and a layer
 * without rows in no script. */
static void both_writers_draw_the_rows(void **state)
{
    struct plot *p = new_plot();
    char *table, *script, *picture;

    (void)state;
    assert_int_equal(plot_rows(p), 4);
    assert_true(plot_draws(p, &p->layer[0], 1, 2));
    assert_false(plot_draws(p, &p->layer[0], 0, 2));
    assert_false(plot_draws(p, &p->layer[0], 1, 3));
    plot_layer(p, (struct plot_layer){.form = PLOT_TEXT,
                                      .x = {"x", 0},
                                      .y = {"y", 0},
                                      .only = {{"series", 7, 7}},
                                      .text = "note"});
    plot_lay_out(p, &plot_look_file);
    table = written(gnuplot_write_table, p);
    script = written(write_script, p);
    picture = written(write_picture, p);
    assert_string_equal(table, "series,x,y,hi,note\n0,1,0,5,a 'b'; c\n0,2,10,15,\n"
                               "1,1,20,25,\n1,2,NaN,35,\n");
    assert_non_null(strstr(script,
                           "title_text = '\xe2\x80\x99it\xe2\x80\x99\xe2\x80\x99s "
                           "`id` a <title> \\n'\n"));
    assert_non_null(strstr(script, "\nthe style\n"));
    assert_non_null(strstr(script,
                           "(column(\"series\") == 1 ? column(\"x\") : NaN):"
                           "(column(\"y\")) with points pt solid(1) ps 1*point"));
    assert_null(strstr(script, "with labels"));
    assert_non_null(strstr(picture, "s `id` a &#60;title&#62; \\n</text>"));
    assert_int_equal(strncmp(picture, "<svg xmlns=", 11), 0);
    assert_null(strstr(picture, "class="));
    free(script);
    p->title = "a]]>b]>]]]>"; /* gnuplot writes it into XML */
    script = written(write_script, p);
    assert_non_null(strstr(script, "title_text = 'a]] >b]>]]] >'\n"));
    free(table);
    free(script);
    free(picture);
    plot_free(p);
}

/* In a page colours are classes and the legend is HTML; no attribute is a style. */
static void lines_do_not_show_through_hollow_marks(void **state)
{
    struct plot *p = new_plot();
    char *script, *picture;

    (void)state;
    plot_layer(p, (struct plot_layer){.form = PLOT_MARKS,
                                      .x = {"x", 0},
                                      .y = {"hi", 0},
                                      .style = plot_marked(3, PLOT_HOLLOW, 1.4)});
    plot_lay_out(p, &plot_look_file);
    script = written(write_script, p);
    picture = written(write_picture, p);
    assert_non_null(strstr(script, " pt solid(3) ps 1.4*point lc rgb paper notitle, "));
    assert_non_null(strstr(script, " pt hollow(3) ps 1.4*point"));
    assert_non_null(strstr(picture, "fill=\"#ffffff\" stroke=\"#cc79a7\""));
    free(script);
    free(picture);
    plot_free(p);
}

static void a_page_has_classes(void **state)
{
    struct plot *p = new_plot();
    char *part;

    (void)state;
    plot_lay_out(p, &plot_look_page);
    assert_true(p->keys.height == 0 && p->width == 370);
    part = written(write_part, p);
    assert_int_equal(strncmp(part, "<ul class=\"legend\">", 19), 0);
    assert_non_null(strstr(part, "class=\"area s1\""));
    assert_non_null(strstr(part, "<g><title>hint</title>"));
    assert_null(strstr(part, "below")); /* the page has it */
    assert_null(strstr(part, "style="));
    assert_null(strstr(part, "fill=\"#"));
    free(part);
    plot_free(p);
}

/* Next to the panels, or below them where its texts would take too much. */
static void the_legend_finds_room(void **state)
{
    struct plot *p = new_plot();
    double x, y;

    (void)state;
    plot_lay_out(p, &plot_look_file);
    assert_true(p->keys.left > p->panel[0].box.left + p->panel[0].box.width);
    plot_free(p);
    p = new_plot();
    for (int i = 0; i < 30; i++)
        plot_key(p, "a rather long name of a setting",
                 (struct plot_style){.color = i, .mark = PLOT_SHAPE, .size = 1});
    plot_lay_out(p, &plot_look_file);
    assert_true(p->key_columns > 1);
    for (size_t i = 0; i < p->n_keys; i++) {
        plot_key_place(p, i, &x, &y);
        assert_true(x > 0 && x + 250 < p->width);
        assert_true(y > p->panel[0].box.top + p->panel[0].box.height && y < p->height);
    }
    plot_free(p);
}

/* A panel of two rows with names, and labels behind their values. */
static struct plot_panel *labelled_rows(struct plot *p, const char *const names[2])
{
    struct plot_panel *a = plot_panel(p, 30, 0, 10, 1.5, -0.5);

    a->y.has_names = true;
    for (int i = 0; i < 2; i++)
        plot_tick(p, &a->y, i, names[i]);
    a->x.has_room = true;
    plot_layer(p, (struct plot_layer){.form = PLOT_TEXT,
                                      .x = {"v", 0},
                                      .y = {"row", 0},
                                      .anchor = PLOT_LEFT,
                                      .dx = 9,
                                      .text = "label"});
    return a;
}

/* Texts behind bars are on the axis, which grows; names of rows have their room left of
 * them, or in a page above. */
static void rows_have_room(void **state)
{
    const struct plot_look *looks[] = {&plot_look_file, &plot_look_page};
    static const char *const names[] = {"a setting with a name", "b"};

    (void)state;
    for (int k = 0; k < 2; k++) {
        struct plot *p = plot_new("bars", "", "");

        plot_columns(p, "row,v,label");
        for (int i = 0; i < 2; i++) {
            plot_number(p, i);
            plot_number(p, 10);
            plot_string(p, "10.0 of something long");
        }
        struct plot_panel *a = labelled_rows(p, names);
        const struct plot_box *box = &a->box;

        plot_lay_out(p, looks[k]);
        assert_true(plot_x(a, 10) + 9 + plot_text_width("10.0 of something long", 11) <=
                    box->left + box->width);
        assert_true(plot_y(a, looks[k], 0) < plot_y(a, looks[k], 1));
        if (k == 0)
            assert_true(box->left > plot_text_width(names[0], 13));
        else /* above the bar */
            assert_true(box->left < 10 && plot_y(a, looks[k], -0.5) >= box->top + 20);
        plot_free(p);
    }
}

/* Names and texts behind bars that together are wider than the picture. */
static void long_texts_are_cut(void **state)
{
    static const char *const names[] = {
        "another-Some-Distri\xe2\x80\xa6ix-of-a-friend Q6_K mmap of someone else's",
        "b"};
    static const struct plot_look *const looks[] = {&plot_look_file, &plot_look_page};
    const char *label =
        "7.16 GiB (charged 6.00 GiB)  pages from disk; oom at some points";

    (void)state;
    for (int k = 0; k < 4; k++) {
        const struct plot_look *look = looks[k % 2];
        struct plot *p = plot_new("bars", "", "");
        const double size = look->size[TEXT_LABEL];

        plot_columns(p, "row,v,label");
        PLOT_NUMBERS(p, 0, 10);
        plot_string(p, label);
        struct plot_panel *a = labelled_rows(p, names);

        a->has_lines = k >= 2;
        plot_lay_out(p, look);
        const double behind =
            look->is_page && a->has_lines ? a->box.left : plot_x(a, 10) + 9;
        const char *name = a->y.v[0].text;

        assert_true(behind + plot_text_width(plot_cell_text(p, 0, "label"), size) <=
                    a->box.left + a->box.width);
        assert_true(plot_text_width(name, look->size[TEXT_ROW]) <
                    (look->is_page ? a->box.width : a->box.left - 14));
        assert_ptr_equal(strstr(name, "\xe2\x80\xa6"), strrchr(name, '\xe2'));
        plot_free(p);
    }
}

/* Ticks that would touch are left out. */
static void ticks_do_not_touch(void **state)
{
    struct plot *p = new_plot();
    struct plot_axis *x = &p->panel[0].x;

    (void)state;
    plot_tick(p, x, 1, NULL);
    plot_tick(p, x, 1.001, NULL);
    plot_tick(p, x, 2, NULL);
    plot_tick(p, x, 4, NULL); /* not on the axis */
    plot_lay_out(p, &plot_look_file);
    assert_int_equal(x->n, 2);
    assert_true(x->v[1].at == 2);
    plot_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ticks_are_round),
        cmocka_unit_test(long_texts_are_cut),
        cmocka_unit_test(both_writers_draw_the_rows),
        cmocka_unit_test(lines_do_not_show_through_hollow_marks),
        cmocka_unit_test(a_page_has_classes),
        cmocka_unit_test(the_legend_finds_room),
        cmocka_unit_test(rows_have_room),
        cmocka_unit_test(ticks_do_not_touch),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
