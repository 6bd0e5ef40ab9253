/* SPDX-License-Identifier: MIT
 *
 * test_draw.c - scripts of charts as SVG: what they evaluate to, what is drawn, and
 * what is refused
 *
 * Places of whole charts are held against gnuplot's by draws_again() of
 * tests/cli/lib.sh.
 */
#include "tests/support/test.h"

#include "harness/chart/draw.h"

static char *svg;

/* The picture of a script, in svg; the error's message or NULL. */
static const char *draw(const char *script, const char *data)
{
    static struct err err;
    size_t len = 0;

    free(svg);
    svg = NULL;
    err = (struct err)ERR_INIT;
    FILE *f = open_memstream(&svg, &len);

    assert_non_null(f);
    const enum status st = draw_svg(script, data, f, &err);

    fclose(f);
    assert_int_equal(st, err.code);
    return st ? err.msg : NULL;
}

#define BEGIN                                                                          \
    "title_text = 'a chart'\nset terminal svg size 1000,500 font 'Sans,14'\n"          \
    "set xrange [0:10]\nset yrange [0:100]\nset lmargin at screen 0.1\n"               \
    "set rmargin at screen 0.9\nset tmargin at screen 0.9\n"                           \
    "set bmargin at screen 0.1\nset border 0\nset xtics ()\nset ytics ()\nunset key\n" \
    "set output 'chart.svg'\n"

/* What an expression is, as the label that it is written to. */
static void assert_value(const char *expression, const char *want)
{
    char script[2000], text[200];

    snprintf(script, sizeof script,
             BEGIN "set label 1 sprintf('%%s', %s) at screen 0.5, 0.5\n"
                   "plot 1 with lines notitle\nset output\n",
             expression);
    const char *why = draw(script, "a\n");

    if (why)
        fail_msg("%s: %s", expression, why);
    snprintf(text, sizeof text, ">%s</text>", want);
    if (!strstr(svg, text))
        fail_msg("%s is not %s: %s", expression, want, svg);
}

static void expressions_are_gnuplots(void **state)
{
    (void)state;
    assert_value("7 / 2", "3");
    assert_value("7 / 2.0", "3.5");
    assert_value("-2 ** 2", "-4");
    assert_value("2 ** 3 ** 2", "512");
    assert_value("10 ** -1", "0.1");
    assert_value("1 + 2 . 'x'", "3x");
    assert_value("1 < 2 && !(2 <= 1) || 0", "1");
    assert_value("1 ? 'yes' : undefined_name(3)", "yes");
    assert_value("0 && undefined_name(3)", "0");
    assert_value("'a' eq \"a\" ? 'it''s' : ''", "it's");
    assert_value("sprintf('%+.1f %% of %d and %s', 2.25, 7.9, 'x')",
                 "+2.2 % of 7 and x");
    assert_value("word('#1 #2 #3', 2)", "#2");
    assert_value("words('a b  c')", "3");
    assert_value("strstrt('\xc3\xa4%b', '%')", "2");
    assert_value("strstrt('a', '%')", "0");
    assert_value("substr('\xc3\xa4%b', 2, 9) . substr('abc', 1, 2)", "%bab");
    assert_value("strlen(substr('abc', 4, 3))", "0");
    assert_value("strlen('\xc3\xa4\xc3\xb6')", "2");
    assert_value("int('12') % 5", "2");
    assert_value("floor(log10(250))", "2");
    assert_value("0xff", "255");
    assert_value("exists('title_text') + exists('nothing')", "1");
}

static void statements_run_as_they_are_nested(void **state)
{
    (void)state;
    assert_null(
        draw("array names[3] = ['a', 'b', 'c'] # a comment with ' and }\n"
             "f(x, y) = x . names[y]\n"
             "line = \"set label 9 \\\"by } eval\\\" at screen 0.1, \\\n"
             "0.1\"\n" BEGIN "do for [i=1:3] {\n"
             "  if (i == 2) { set label i f('second ', i) at screen 0.5, 0.2 } "
             "else {\n    do for [s in 'x y'] { set label i f(s, i) at screen "
             "0.5, 0.1 * i }\n  }\n}\n"
             "eval line; unset label 3\nplot 1 with lines notitle\nset output\n",
             "a\n"));
    assert_non_null(strstr(svg, ">ya</text>"));
    assert_non_null(strstr(svg, ">second b</text>"));
    assert_non_null(strstr(svg, ">by } eval</text>"));
    assert_null(strstr(svg, ">yc</text>"));
}

/* Columns by name; marks full and hollow; a point that has no place breaks a line. */
static void data_have_their_marks(void **state)
{
    (void)state;
    assert_null(draw(
        BEGIN
        "plot data using 'x':'y' with lines lw 2 dt (9,6) lc rgb '#ff0000' notitle, "
        "data using (column('state') == 0 ? column('x') : NaN):'y':'lo':'hi' with "
        "yerrorbars pt 7 lc rgb '#00ff00' notitle, data using "
        "(column('state') == 1 ? column('x') : NaN):'y' with points pt 6 lc rgb "
        "'#0000ff' notitle\nset output\n",
        "x,y,lo,hi,state\n0,0,0,50,0\n5,50,50,50,1\n6,NaN,1,1,0\n10,100,0,100,0\n"));
    /* the picture has 100 to 900 across and 450 to 50 up */
    assert_non_null(strstr(svg, "d=\"M100.00 450.00L500.00 250.00M900.00 50.00\""));
    assert_non_null(strstr(svg, "stroke-dasharray=\"9.0,6.0\""));
    assert_non_null(
        strstr(svg, "fill=\"#ffffff\" stroke-width=\"1.00\" stroke=\"#0000ff\""));
    assert_non_null(strstr(svg, "fill=\"#00ff00\""));
    assert_non_null(
        strstr(svg, "M100.00 450.00L100.00 250.00M95.50")); /* an interval */
    assert_null(strstr(svg, "nan"));
    assert_null(strstr(svg, "NaN"));
}

static void axes_may_be_logarithmic(void **state)
{
    (void)state;
    assert_null(draw(BEGIN
                     "set xrange [1:100]\nset logscale x\nset xtics (1, 10, 100)\n"
                     "set format x '%.10g'\nplot data using 'x':'y' with points pt "
                     "7 notitle\nset output\n",
                     "x,y\n10,50\n0,50\n"));
    assert_non_null(strstr(svg, "<text x=\"500.00\""));
    assert_non_null(strstr(svg, ">10</text>"));
    assert_null(strstr(svg, "inf"));
}

/* The title is that of the first terminal "svg"; others draw nothing. */
static void other_terminals_are_passed_over(void **state)
{
    (void)state;
    assert_null(draw("set terminal pngcairo size 1400,800\nset output 'a.png'\n"
                     "plot nothing_that_is with lines notitle\nset output\n" BEGIN
                     "plot 1 with lines title 'one & <two>'\nset output\n",
                     "a\n"));
    assert_non_null(strstr(svg, "<title>a chart</title>"));
    assert_int_equal(strncmp(svg, "<svg ", 5), 0);
    assert_non_null(strstr(draw("x = 1\n", "a\n"), "draws no SVG"));
}

static void names_are_no_markup(void **state)
{
    (void)state;
    assert_null(draw(BEGIN "set label 1 '<script>&\"\xff\x01' at screen 0.1, 0.1\n"
                           "plot 1 with lines notitle\nset output\n",
                     "a\n"));
    assert_non_null(strstr(svg, ">&#60;script&#62;&#38;&#34;\xef\xbf\xbd </text>"));
}

static void what_is_not_known_is_refused_with_its_line(void **state)
{
    static const struct {
        const char *script, *why;
    } cases[] = {
        {"x = 1\n\nset hidden3d\n", "\"hidden3d\" is not known there, in line 3"},
        {"a = 1 \\\n + 2\nb = none\n", "there is no variable none, in line 3"},
        {"splot 1\n", "\"splot 1\" is not known there, in line 1"},
        {"x = sinh(1)\n", "there is no function sinh() of 1 arguments"},
        {"x = 1 +\n", "\"a value\" is expected"},
        {"x = 'open\n", "a text has no end"},
        {"do for [i=1:2] {\n", "a block has no end"},
        {"f(x) = f(x)\ny = f(1)\n", "nested too deeply"},
        {"do for [i=1:99999999] { x = i }\n", "it takes too long"},
        {BEGIN "plot for [i=1:999999999] 1 with lines notitle\n", "it takes too long"},
        {"do for [i=1:2:0] { x = i }\n", "no step above 0"},
        {"array a[2]\na[3] = 1\n", "an array is not there, or has fewer elements"},
        {"array a[999999999]\n", "an array has no size"},
        {"x = column('a')\n", "but there is no data"},
        {BEGIN "plot data using 'a' with pm3d\n", "drawn with an unknown style"},
        {"set terminal svg size 1e9,2\n", "no side from 10 to 20000"},
        {"eval 'set nothing'\n", "in \"set nothing\""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *why = draw(cases[i].script, "a\n1\n");

        if (!why || !strstr(why, cases[i].why))
            fail_msg("%s: %s", cases[i].script, why ? why : "is drawn");
    }
}

/* A chart of the examples cut at every byte, and with bytes exchanged, ends. */
static void broken_scripts_end(void **state)
{
    const char *dir = SLM_SOURCE_DIR "/results/examples/zen5-users-9b/users_latency";
    char path[300];
    size_t n, n_data;

    (void)state;
    snprintf(path, sizeof path, "%s.gp", dir);
    char *script = test_read_file(path, &n);

    snprintf(path, sizeof path, "%s.csv", dir);
    char *data = test_read_file(path, &n_data);
    char *text = malloc(n + 1), *cells = malloc(n_data + 1);

    assert_true(text && cells);
    memcpy(cells, data, n_data);
    cells[n_data] = '\0';
    memcpy(text, script, n);
    text[n] = '\0';
    assert_null(draw(text, cells));
    for (size_t cut = 0; cut < n; cut += 3 * test_thin()) {
        memcpy(text, script, n);
        text[cut] = '\0';
        draw(text, cells);
    }
    srand(1);
    for (int turn = 0; turn < 500; turn += (int)test_thin()) {
        memcpy(text, script, n);
        text[n] = '\0';
        for (int k = rand() % 4; k >= 0; k--)
            text[(size_t)rand() % n] = script[(size_t)rand() % n];
        draw(text, cells);
    }
    for (size_t cut = 0; cut < n_data; cut += 5) {
        memcpy(text, script, n);
        text[n] = '\0';
        memcpy(cells, data, n_data);
        cells[cut] = '\0';
        draw(text, cells);
    }
    free(text);
    free(cells);
    free(script);
    free(data);
}

static int free_picture(void **state)
{
    (void)state;
    free(svg);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(expressions_are_gnuplots),
        cmocka_unit_test(statements_run_as_they_are_nested),
        cmocka_unit_test(data_have_their_marks),
        cmocka_unit_test(axes_may_be_logarithmic),
        cmocka_unit_test(other_terminals_are_passed_over),
        cmocka_unit_test(names_are_no_markup),
        cmocka_unit_test(what_is_not_known_is_refused_with_its_line),
        cmocka_unit_test(broken_scripts_end),
    };

    return cmocka_run_group_tests(tests, NULL, free_picture);
}
