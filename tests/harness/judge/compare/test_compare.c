/* SPDX-License-Identifier: MIT
 *
 * test_compare.c - machines ranked by hand-made rows: prices, probabilities, what would
 * change it
 */
#include "tests/support/test.h"

#include <math.h>
#include <sys/stat.h>

#include "harness/judge/compare/compare.h"
#include "tests/support/recommend_rows.h"

static char work[] = "/tmp/slm_compare_XXXXXX";

/* Launches of one prefill point, all alike. */
static struct row prompt(double tps)
{
    struct row r = point("Q4_0", 50, 2, 0, tps);

    r.kind = POINT_PREFILL;
    r.ctx = FIELD_NO_INT;
    r.n_prompt = 100;
    r.ttft_warm_s = 100 / tps;
    r.load_s = 1;
    return r;
}

/* A directory with the rows as its sweep. */
static void write_machine(const char *name, const struct row *rows, size_t n,
                          const char *build)
{
    char path[200];
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", work, name);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/%s/sweep.csv", work, name);
    f = fopen(path, "w");
    assert_non_null(f);
    row_csv_header(f);
    for (size_t i = 0; i < n; i++) {
        struct row r = rows[i];

        snprintf(r.build, sizeof r.build, "%s", build);
        snprintf(r.point, sizeof r.point, "p%zu", i);
        r.attempt = 1;
        row_csv_write(f, &r);
    }
    assert_int_equal(fclose(f), 0);
    snprintf(path, sizeof path, "%s/%s/machine.json", work, name);
    f = fopen(path, "w");
    assert_non_null(f);
    fputs("{\"topology\": {\"cpu\": {\"model\": \"A CPU\"}, \"limits\": "
          "{\"cpus_allowed\": 2}}}\n",
          f);
    assert_int_equal(fclose(f), 0);
}

/* 10 and 12 tok/s, each 2 % to either side; prompts of 100 tokens in 1 and 0.5 s. */
static void write_two(void)
{
    const struct row slow[] = {point("Q4_0", 50, 2, 0, 10), prompt(100)};
    const struct row fast[] = {point("Q4_0", 50, 2, 0, 12), prompt(200)};

    write_machine("slow", slow, 2, "0.1.0 (a)");
    write_machine("fast", fast, 2, "0.1.0 (b)");
}

static const char *dir_of(const char *name, char *buf, size_t cap)
{
    snprintf(buf, cap, "%s/%s", work, name);
    return buf;
}

static enum status compare_two(struct comparison *c, const struct price *prices,
                               size_t n, struct compare_params p)
{
    const struct prices list = {(struct price *)(uintptr_t)prices, n};
    static char a[200], b[200];
    const char *dirs[] = {dir_of("slow", a, sizeof a), dir_of("fast", b, sizeof b)};

    p.prices = &list;
    p.prices_from = "a file";
    err_clear(&err);
    return compare_make(c, dirs, 2, &p, &err);
}

static struct price price_of(const char *machine, double per_hour, const char *currency)
{
    struct price p = {.per_hour = per_hour};

    snprintf(p.machine, sizeof p.machine, "%s", machine);
    snprintf(p.currency, sizeof p.currency, "%s", currency);
    return p;
}

static const struct compare_params usual = {.wishes = {.ctx = -1, .n_prompt = 100},
                                            .utilisation = 0.5};

static bool prints(const struct comparison *c, const char *text)
{
    for (int i = 0; i < c->n_changes; i++)
        if (strstr(c->changes[i], text))
            return true;
    return false;
}

static void floors_of_small_models_have_all_digits(void **state)
{
    const struct row slow = point("Q4_0", 50, 2, 0, 10000);
    const struct row fast = point("Q4_0", 50, 2, 0, 12000);
    struct comparison c;

    (void)state;
    write_machine("slow", &slow, 1, "0.1.0");
    write_machine("fast", &fast, 1, "0.1.0");
    assert_int_equal(compare_two(&c, NULL, 0, usual), ST_OK);
    assert_true(prints(&c, "With --min-tps above 9800 only fast qualifies."));
    assert_true(
        prints(&c, "No machine is known to reach more than 11760 tok/s (--min-tps)."));
    compare_free(&c);
}

/* By hand: an hour has 3600 s, of which half are worked in: 10 tok/s are 18000 tokens,
 * for 0.36 are 20 a million; prompts at 100 tok/s are 2 a million. The fast one has
 * 21600 tokens, for 0.54 25 a million, at 200 tok/s prompts 1.5. */
static void prices_are_those_of_a_hand_calculation(void **state)
{
    const struct price prices[] = {price_of("slow", 0.36, "EUR"),
                                   price_of("f*", 0.54, "EUR")};
    struct comparison c;

    (void)state;
    write_two();
    assert_int_equal(compare_two(&c, prices, 2, usual), ST_OK);
    assert_int_equal(c.by, COMPARE_COST);
    assert_string_equal(c.v[0].name, "slow");
    assert_string_equal(c.v[1].name, "fast");
    assert_float_equal(c.v[0].cost_out.mid, 20, 1e-9);
    assert_float_equal(c.v[0].cost_out.lo, 20 / 1.02, 1e-6);
    assert_float_equal(c.v[0].cost_out.hi, 20 / 0.98, 1e-6);
    assert_float_equal(c.v[0].cost_in.mid, 2, 1e-9);
    assert_float_equal(c.v[1].cost_out.mid, 25, 1e-9);
    assert_float_equal(c.v[1].cost_in.mid, 1.5, 1e-9);
    assert_float_equal(c.v[0].ttft_s.mid, 1, 1e-9);
    assert_true(c.v[0].p_first > 0.999 && c.v[1].p_first < 0.001);

    /* the fast one earns 1.2 times 0.36; the slow one may cost 0.54 / 1.2 */
    assert_true(prints(&c, "slow stays first up to a price of 0.45 EUR an hour"));
    assert_true(prints(&c, "fast is first at a price below 0.432 EUR an hour"));
    /* floors: lower ends of 9.8 and 11.76 */
    assert_true(prints(&c, "With --min-tps above 9.8 slow no longer qualifies, and "
                           "fast is first."));
    assert_true(prints(&c, "With --min-tps above 9.8 only fast qualifies."));
    assert_true(
        prints(&c, "No machine is known to reach more than 11.8 tok/s (--min-tps)."));
    assert_int_equal(c.n_differs, 1);
    assert_string_equal(c.differs[0], "builds: 0.1.0 (a) (slow), 0.1.0 (b) (fast)");
    compare_free(&c);
}

/* Equal medians of equal width are first with one half each; with a price of one tenth
 * less the cheaper is nearly sure: its medians are 10 % apart, and each is known to
 * 1 % (one standard deviation). */
static void a_rank_has_a_probability(void **state)
{
    const struct row rows[] = {point("Q4_0", 50, 2, 0, 10)};
    const struct price equal[] = {price_of("*", 0.5, "USD")};
    const struct price cheaper[] = {price_of("slow", 0.5, "USD"),
                                    price_of("fast", 0.45, "USD")};
    struct comparison c;

    (void)state;
    write_machine("slow", rows, 1, "");
    write_machine("fast", rows, 1, "");
    assert_int_equal(compare_two(&c, equal, 1, usual), ST_OK);
    assert_float_equal(c.v[0].p_first, 0.5, 0.02);
    assert_float_equal(c.v[0].p_first + c.v[1].p_first, 1, 1e-9);
    assert_true(prints(&c, "More launches: so far"));
    assert_true(isnan(c.v[0].cost_in.mid) && isnan(c.v[0].ttft_s.mid));
    compare_free(&c);

    assert_int_equal(compare_two(&c, cheaper, 2, usual), ST_OK);
    assert_string_equal(c.v[0].name, "fast");
    assert_true(c.v[0].p_first > 0.999);
    assert_false(prints(&c, "More launches: so far"));
    compare_free(&c);
}

/* A disturbance hides how fast a machine is: whoever is first, that is no rank. */
static void disturbed_rows_give_no_probability(void **state)
{
    const struct row slow[] = {point("Q4_0", 50, 2, 0, 10), prompt(100)};
    struct row fast[] = {point("Q4_0", 50, 2, 0, 40), prompt(200)};
    struct compare_params by_ttft = usual;
    struct comparison c;
    char *text;
    size_t size;
    FILE *f;

    (void)state;
    write_machine("slow", slow, 2, "");
    fast[0] = disturbed(fast[0], "others 70 %");
    write_machine("fast", fast, 2, "");
    assert_int_equal(compare_two(&c, NULL, 0, usual), ST_OK);
    assert_string_equal(c.v[0].name, "fast");
    assert_true(c.v[0].speed_is_bound && !c.v[1].speed_is_bound);
    assert_true(isnan(c.v[0].p_first) && isnan(c.v[1].p_first));
    assert_false(prints(&c, "with a probability"));
    f = open_memstream(&text, &size);
    compare_print(f, &c);
    assert_int_equal(fclose(f), 0);
    for (char *p = text; (p = strchr(p, '\n')) != NULL;)
        *p = ' ';
    assert_non_null(strstr(text, "All rows that count of fast were disturbed"));
    assert_non_null(strstr(text, "at least 40.0"));
    assert_null(strstr(text, "99.9 %"));
    free(text);
    compare_free(&c);

    by_ttft.by_given = true;
    by_ttft.by = COMPARE_TTFT;
    assert_int_equal(compare_two(&c, NULL, 0, by_ttft), ST_OK);
    assert_true(c.v[0].p_first > 0.999); /* prompts were not disturbed */
    compare_free(&c);
    fast[1] = disturbed(fast[1], "others 70 %");
    write_machine("fast", fast, 2, "");
    assert_int_equal(compare_two(&c, NULL, 0, by_ttft), ST_OK);
    assert_true(isnan(c.v[0].p_first));
    compare_free(&c);
}

/* --price NAME=PRICE. */
static void prices_given_are_read(void **state)
{
    static const char *const bad[] = {"zen5",
                                      "zen5=",
                                      "zen5=EUR",
                                      "=x",
                                      "a=1 EURO PER HOUR",
                                      "a=0.000000000000000000000000000001"};
    static const char *const good[] = {"a=0.06", "b=c=7EUR"};
    static const char *const machines[] = {"a", "b=c"}, *const one[] = {"a"};
    static const char *const other[] = {"d*=1"};
    struct prices prices = {NULL, 0};

    (void)state;
    err_clear(&err);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(prices_give(&prices, &bad[i], 1, &err), ST_USAGE);
        assert_non_null(strstr(err.msg, "is no NAME=PRICE"));
        assert_int_equal(prices.n, 0);
        err_clear(&err);
    }
    assert_int_equal(prices_give(&prices, good, 1, &err), ST_OK);
    assert_int_equal(prices_give(&prices, good + 1, 1, &err), ST_OK);
    assert_int_equal(prices.n, 2);
    assert_string_equal(prices.v[0].machine, "b=c");
    assert_string_equal(prices.v[0].currency, "EUR");
    assert_true(prices.v[0].per_hour == 7);
    assert_string_equal(prices.v[1].currency, "USD");
    prices_free(&prices);
    assert_int_equal(prices_check_machines(good, 2, machines, 2, &err), ST_OK);
    assert_int_equal(prices_check_machines(good, 2, one, 1, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "no machine here is named 'b=c'; there is: a"));
    err_clear(&err);
    assert_int_equal(prices_check_machines(other, 1, machines, 2, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "is named 'd*'; there are: a, b=c"));
}

static void without_prices_speed_counts(void **state)
{
    const struct price one[] = {price_of("slow", 0.36, "EUR")};
    const struct price two[] = {price_of("slow", 0.36, "EUR"),
                                price_of("fast", 0.36, "USD")};
    struct compare_params by_cost = usual, by_ttft = usual;
    struct comparison c;

    (void)state;
    write_two();
    by_cost.by_given = by_ttft.by_given = true;
    by_ttft.by = COMPARE_TTFT;
    assert_int_equal(compare_two(&c, NULL, 0, usual), ST_OK);
    assert_int_equal(c.by, COMPARE_SPEED);
    assert_string_equal(c.v[0].name, "fast");
    assert_true(isnan(c.v[0].cost_out.mid));
    compare_free(&c);

    assert_int_equal(compare_two(&c, one, 1, usual), ST_OK);
    assert_int_equal(c.by, COMPARE_SPEED);
    compare_free(&c);
    assert_int_equal(compare_two(&c, one, 1, by_cost), ST_OK);
    assert_string_equal(c.v[0].name, "slow");
    assert_true(prints(&c, "fast has no price; it is first at one below 0.432 EUR"));
    compare_free(&c);

    assert_int_equal(compare_two(&c, two, 2, usual), ST_OK);
    assert_int_equal(c.by, COMPARE_SPEED);
    compare_free(&c);
    assert_int_equal(compare_two(&c, two, 2, by_cost), ST_INPUT);
    assert_non_null(strstr(err.msg, "several currencies"));
    compare_free(&c);
    assert_int_equal(compare_two(&c, NULL, 0, by_cost), ST_INPUT);
    assert_non_null(strstr(err.msg, "no machine has a price"));
    compare_free(&c);

    assert_int_equal(compare_two(&c, NULL, 0, by_ttft), ST_OK);
    assert_string_equal(c.v[0].name, "fast");
    compare_free(&c);
}

/* What was measured of several sequences together says nothing of one at that depth. */
static void depths_are_those_of_one_sequence(void **state)
{
    struct row rows[] = {point("Q4_0", 50, 2, 512, 10), point("Q4_0", 50, 2, 4096, 30),
                         point("Q4_0", 50, 2, 2048, 8)};
    struct comparison c;

    (void)state;
    rows[1].n_sequences = 4;
    rows[2].n_chunk = 32;
    write_machine("slow", rows, 3, "");
    write_machine("fast", rows, 3, "");
    assert_int_equal(compare_two(&c, NULL, 0, usual), ST_OK);
    assert_int_equal(c.ctx, 512);
    compare_free(&c);
}

static void wishes_are_the_recommendations(void **state)
{
    struct compare_params floor = usual, other = usual;
    struct comparison c;

    (void)state;
    write_two();
    floor.wishes.min_tps = 11;
    assert_int_equal(compare_two(&c, NULL, 0, floor), ST_OK);
    assert_string_equal(c.v[0].name, "fast");
    assert_int_equal(c.v[1].none.code, ST_CHECK);
    assert_non_null(strstr(c.v[1].none.msg, "10.0 tok/s"));
    compare_free(&c);
    floor.wishes.min_tps = 20;
    assert_int_equal(compare_two(&c, NULL, 0, floor), ST_CHECK);
    assert_non_null(strstr(err.msg, "of 2 machines none has a setting"));
    compare_free(&c);
    other.wishes.model = "n";
    assert_int_equal(compare_two(&c, NULL, 0, other), ST_CHECK);
    compare_free(&c);

    struct row rows[] = {point("Q4_0", 50, 2, 0, 10), point("Q4_0", 50, 2, 0, 10)};
    strcpy(rows[1].model, "n");
    write_machine("slow", rows, 2, "");
    assert_int_equal(compare_two(&c, NULL, 0, usual), ST_INPUT);
    assert_non_null(strstr(err.msg, "choose one with --model"));
    compare_free(&c);
}

static void broken_prices_get_a_sentence(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"prices: [{machine: a, per_hour: 0, currency: USD}]\n",
         "price 1: 0 is outside"},
        {"prices: [{machine: a, per_hour: 1, currency: ''}]\n", "must not be empty"},
        {"prices: [{machine: a, per_hour: x, currency: USD}]\n", "'x' is not a number"},
        {"prices: [{machine: a, per_hour: 1}]\n", "'currency' is missing"},
        {"prices: [{machine: '', per_hour: 1, currency: USD}]\n", "must not be empty"},
        {"price: []\n", "there is no key 'price'"},
    };
    char path[200];

    (void)state;
    snprintf(path, sizeof path, "%s/prices.yaml", work);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct prices p;
        FILE *f = fopen(path, "w");

        assert_non_null(f);
        fputs(cases[i].text, f);
        assert_int_equal(fclose(f), 0);
        err_clear(&err);
        assert_int_equal(prices_load(&p, path, &err), ST_INPUT);
        if (!strstr(err.msg, cases[i].says))
            fail_msg("'%s' does not say '%s'", err.msg, cases[i].says);
    }
    unlink(path);

    struct prices ours;
    err_clear(&err);
    assert_int_equal(prices_load(&ours, SLM_SOURCE_DIR "/configs/prices.yaml", &err),
                     ST_OK);
    assert_non_null(prices_find(&ours, "zen5-2vcpu-busy"));
    assert_null(prices_find(&ours, "a-zen5-2vcpu"));
    prices_free(&ours);
}

static int make_dir(void **state)
{
    (void)state;
    return mkdtemp(work) ? 0 : -1;
}

static int remove_dir(void **state)
{
    static const char *const files[] = {"slow/sweep.csv", "slow/machine.json", "slow",
                                        "fast/sweep.csv", "fast/machine.json", "fast"};
    char path[200];

    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        dir_of(files[i], path, sizeof path);
        remove(path);
    }
    return rmdir(work);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(floors_of_small_models_have_all_digits),
        cmocka_unit_test(prices_are_those_of_a_hand_calculation),
        cmocka_unit_test(prices_given_are_read),
        cmocka_unit_test(a_rank_has_a_probability),
        cmocka_unit_test(disturbed_rows_give_no_probability),
        cmocka_unit_test(without_prices_speed_counts),
        cmocka_unit_test(depths_are_those_of_one_sequence),
        cmocka_unit_test(wishes_are_the_recommendations),
        cmocka_unit_test(broken_prices_get_a_sentence),
    };

    return cmocka_run_group_tests_name("compare", tests, make_dir, remove_dir);
}
