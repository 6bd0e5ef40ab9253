/* SPDX-License-Identifier: MIT
 *
 * mutate_text.c - other cells, lines and words of a text
 */
#include <string.h>

#include "tests/fuzz/support/mutate.h"
#include "tests/fuzz/support/random.h"

static const char *const odd_words[] = {"",
                                        "-1",
                                        "0",
                                        "1",
                                        "nan",
                                        "inf",
                                        "-inf",
                                        "1e999",
                                        "1e-999",
                                        "0x10",
                                        "4294967296",
                                        "9223372036854775807",
                                        "-9223372036854775809",
                                        "18446744073709551616",
                                        "\"",
                                        "\"\"",
                                        "'",
                                        "\"a\nb\"",
                                        "none",
                                        "null",
                                        "true",
                                        "[",
                                        "]",
                                        "{",
                                        "}",
                                        "[[[[[[[[[[[[[[[[",
                                        "- - - - - - - -",
                                        "&a",
                                        "*a",
                                        "!!str",
                                        "? ",
                                        "|",
                                        ">",
                                        "#",
                                        "%",
                                        ": ",
                                        ",",
                                        "\t",
                                        "\r\n",
                                        "\x1b[2J",
                                        "\xc2\x9b",
                                        "\xe2\x80\xae",
                                        "\xff",
                                        NULL};

/* data[at, at + old) becomes text[n]; the size afterwards, unchanged where it would be
 * too large. */
static size_t replace(uint8_t *data, size_t size, size_t max_size, size_t at,
                      size_t old, const void *text, size_t n)
{
    if (size - old + n > max_size)
        return size;
    memmove(data + at + n, data + at + old, size - at - old);
    memcpy(data + at, text, n);
    return size - old + n;
}

/* The slice [begin, end) stands n times more after itself, as far as there is room. */
static size_t repeat(uint8_t *data, size_t size, size_t max_size, size_t begin,
                     size_t end, size_t n)
{
    const size_t length = end - begin;

    if (!length || n > (max_size - size) / length)
        n = length ? (max_size - size) / length : 0;
    memmove(data + end + n * length, data + end, size - end);
    for (size_t i = 0; i < n; i++)
        memcpy(data + end + i * length, data + begin, length);
    return size + n * length;
}

/* Begin and end of what stands around `at` between two of these characters. */
static void part_around(const uint8_t *data, size_t size, const char *between,
                        size_t at, size_t *begin, size_t *end)
{
    for (*begin = at; *begin > 0 && !strchr(between, data[*begin - 1]);)
        --*begin;
    for (*end = at; *end < size && !strchr(between, data[*end]);)
        ++*end;
}

size_t mutate_text(uint8_t *data, size_t size, size_t max_size, unsigned seed,
                   mutate_words words)
{
    struct choice_source c = choices_from(seed);
    const char *word = choose(&c, 2) ? choose_word(&c, words) : NULL;
    size_t begin, end, n;

    word = word ? word : choose_word(&c, odd_words);
    if (!size || !choose(&c, 8))
        return LLVMFuzzerMutate(data, size, max_size);
    const size_t at = choose(&c, size);
    switch (choose(&c, 6)) {
    case 0: /* a line, many times */
        part_around(data, size, "\n", at, &begin, &end);
        return repeat(data, size, max_size, begin, end < size ? end + 1 : end,
                      choose_count(&c));
    case 1: /* some bytes, many times */
        n = 1 + choose(&c, size - at < 16 ? size - at : 16);
        return repeat(data, size, max_size, at, at + n, choose_count(&c));
    case 2: /* a word more */
        return replace(data, size, max_size, at, 0, word, strlen(word));
    case 3: /* a line less */
        part_around(data, size, "\n", at, &begin, &end);
        return replace(data, size, max_size, begin, end - begin, "", 0);
    case 4: /* a cell with separators that is another word */
        part_around(data, size, ",\n", at, &begin, &end);
        return replace(data, size, max_size, begin, end - begin, word, strlen(word));
    default: /* a word that is another one */
        part_around(data, size, ",:[] \n", at, &begin, &end);
        return replace(data, size, max_size, begin, end - begin, word, strlen(word));
    }
}
