/* SPDX-License-Identifier: MIT
 *
 * test_half.c - f16 and bf16 conversions against their definitions, exhaustively
 */
#include "tests/support/test.h"

#include <math.h>

#include "kernels/half.h"

/* The value of a finite f16 by its definition. */
static double f16_value(uint16_t h)
{
    const int e = h >> 10 & 31;
    const int m = h & 1023;
    const double magnitude = e == 0 ? ldexp(m, -24) : ldexp(1024 + m, e - 25);

    return h & 0x8000 ? -magnitude : magnitude;
}

static void every_half_widens_exactly(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 0x10000; h++) {
        const float f = half_to_f32((uint16_t)h);

        if ((h & 0x7fff) > 0x7c00) {
            assert_true(isnan(f));
        } else if ((h & 0x7fff) == 0x7c00) {
            assert_true(isinf(f) && (signbit(f) != 0) == (h >> 15));
        } else {
            assert_true((double)f == f16_value((uint16_t)h));
            assert_int_equal(signbit(f) != 0, h >> 15);
        }
    }
}

static void every_half_survives_a_round_trip(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 0x10000; h++) {
        const uint16_t back = half_from_f32(half_to_f32((uint16_t)h));

        if ((h & 0x7fff) > 0x7c00)
            assert_int_equal(back, h | 0x200); /* quiet, payload kept */
        else
            assert_int_equal(back, h);
    }
}

/* Between neighbours a and b: the half-way point goes to the even one, anything
 * nearer goes to the nearer. */
static void rounds_to_nearest_even(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 0x7bff; h++) {
        const double a = f16_value((uint16_t)h), b = f16_value((uint16_t)(h + 1));
        const float middle = (float)((a + b) / 2);
        const uint32_t even = h & 1 ? h + 1 : h;

        assert_int_equal(half_from_f32(middle), even);
        assert_int_equal(half_from_f32(-middle), even | 0x8000);
        assert_int_equal(half_from_f32(nextafterf(middle, 0)), h);
        assert_int_equal(half_from_f32(nextafterf(middle, INFINITY)), h + 1);
    }
    assert_int_equal(half_from_f32(nextafterf(65520.0f, 0)), 0x7bff);
    assert_int_equal(half_from_f32(65520.0f), 0x7c00);
    assert_int_equal(half_from_f32(3e38f), 0x7c00);
    assert_int_equal(half_from_f32(-INFINITY), 0xfc00);
    assert_int_equal(half_from_f32(1e-45f), 0);
}

static void bf16_is_the_upper_half(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 0x10000; h++) {
        const float f = bf16_to_f32((uint16_t)h);

        assert_int_equal(float_bits(f), h << 16);
        assert_int_equal(bf16_from_f32(f), (h & 0x7fff) > 0x7f80 ? h | 0x40 : h);
    }
    assert_int_equal(bf16_from_f32(float_from_bits(0x3f808000)), 0x3f80);
    assert_int_equal(bf16_from_f32(float_from_bits(0x3f818000)), 0x3f82);
    assert_int_equal(bf16_from_f32(float_from_bits(0x3f808001)), 0x3f81);
    assert_int_equal(bf16_from_f32(float_from_bits(0x7f7fffff)), 0x7f80);
    assert_int_equal(bf16_from_f32(float_from_bits(0xff800001)), 0xffc0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_half_widens_exactly),
        cmocka_unit_test(every_half_survives_a_round_trip),
        cmocka_unit_test(rounds_to_nearest_even),
        cmocka_unit_test(bf16_is_the_upper_half),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
