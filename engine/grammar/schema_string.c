/* SPDX-License-Identifier: MIT
 *
 * schema_string.c - strings of a schema: lengths, patterns, formats
 *
 * A format is a regular expression here, of the most usual texts that are valid by its
 * specification, or of all.
 *
 * Source: RFC 3339 (dates; durations in appendix A), 9562 (UUIDs), 5321 (addresses),
 * 1123 (host names), 4291 (IPv6), 3986 (URIs), 6570 (templates of them), 6901 (JSON
 * pointers), 4648 (base64); ECMA 262 (regular expressions).
 */
#include "engine/grammar/build.h"

#include <string.h>

#define LEAP "(0[48]|[2468][048]|[13579][26])"
#define DATE                                                                 \
    "(\\d{4}-(0[13578]|1[02])-(0[1-9]|[12]\\d|3[01])|"                       \
    "\\d{4}-(0[469]|11)-(0[1-9]|[12]\\d|30)|\\d{4}-02-(0[1-9]|1\\d|2[0-8])|" \
    "(\\d\\d" LEAP "|([02468][048]|[13579][26])00)-02-29)"
#define HOUR_MINUTE "([01]\\d|2[0-3]):[0-5]\\d"
#define TIME        HOUR_MINUTE ":[0-5]\\d(\\.\\d{1,9})?(Z|[+-]" HOUR_MINUTE ")"
#define LABEL       "[A-Za-z0-9]([A-Za-z0-9-]{0,30}[A-Za-z0-9])?"
#define HOST        LABEL "(\\." LABEL "){0,5}"
#define ATOM        "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]{1,31}"
#define BYTE        "(25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)"
#define H           "[0-9a-fA-F]{1,4}"
#define SECONDS     "\\d{1,9}S"
#define MINUTES     "(\\d{1,9}M(" SECONDS ")?|" SECONDS ")"
#define CLOCK       "T(\\d{1,9}H" MINUTES "?|" MINUTES ")"
#define DAYS        "\\d{1,9}D"
#define MONTHS      "(\\d{1,9}M(" DAYS ")?|" DAYS ")"
#define HEX(n)      "[0-9a-fA-F]{" #n "}"
#define PATH        "[A-Za-z0-9._~!$&'()*+,;=:@-]"
#define URI                                                                  \
    "https?://" HOST "(:[1-9]\\d{0,3})?(/" PATH "{0,60}){0,6}(\\?[A-Za-z0-9" \
    "._~!$&'()*+,;=:@/?-]{0,120})?(#[A-Za-z0-9._~/?-]{0,60})?"
#define REFERENCE                                                                    \
    "(/?[A-Za-z0-9._~!$&'()*+,;=@-]+(/" PATH "*)*)?(\\?[A-Za-z0-9._~!$&'()*+,;=:@/?" \
    "-]*)?(#[A-Za-z0-9._~/?-]*)?"
#define POINTER        "(/([^/~]|~[01])*)*"
#define REGEX_CHAR     "[A-Za-z0-9 _,:;=@%&<>#!~.-]|\\\\[dwsDWS.+*?()/[\\]{}|^$\\\\]"
#define BASE64(more)   "([A-Za-z0-9" more "]{4})*"
#define BASE64_2(more) "[A-Za-z0-9" more "][AQgw]"
#define BASE64_3(more) "[A-Za-z0-9" more "]{2}[AEIMQUYcgkosw048]"

static const struct {
    const char *name, *pattern;
} formats[] = {
    {"date", "^" DATE "$"},
    {"time", "^" TIME "$"},
    {"date-time", "^" DATE "T" TIME "$"},
    {"duration",
     "^P((\\d{1,9}Y" MONTHS "?|" MONTHS ")(" CLOCK ")?|" CLOCK "|\\d{1,9}W)$"},
    {"uuid", "^" HEX(8) "-" HEX(4) "-" HEX(4) "-" HEX(4) "-" HEX(12) "$"},
    {"email", "^" ATOM "(\\." ATOM ")?@" LABEL "(\\." LABEL "){1,5}$"},
    {"hostname", "^" HOST "$"},
    {"ipv4", "^" BYTE "(\\." BYTE "){3}$"},
    {"ipv6", "^((" H ":){7}" H "|(" H ":){1,7}:|(" H ":){1,6}:" H "|(" H ":){1,5}(:" H
             "){1,2}|(" H ":){1,4}(:" H "){1,3}|(" H ":){1,3}(:" H "){1,4}|(" H
             ":){1,2}(:" H "){1,5}|" H ":(:" H "){1,6}|:((:" H "){1,7}|:))$"},
    {"uri", "^" URI "$"},
    {"uri-reference", "^(" URI "|" REFERENCE ")$"},
    {"uri-template",
     "^(https?://" HOST ")?(/([A-Za-z0-9._~-]+|\\{[A-Za-z0-9_]+\\}))+$"},
    {"json-pointer", "^" POINTER "$"},
    {"relative-json-pointer", "^(0|[1-9]\\d{0,3})(#|" POINTER ")$"},
    {"regex", "^\\^?((" REGEX_CHAR "|\\[(a-z|A-Z|0-9|_)+\\])[*+?]?)+\\$?$"},
    /* of OpenAPI and of programs that write schemas */
    {"byte", "^" BASE64("+/") "(" BASE64_2("+/") "==|" BASE64_3("+/") "=)?$"},
    {"base64", "^" BASE64("+/") "(" BASE64_2("+/") "==|" BASE64_3("+/") "=)?$"},
    {"base64url", "^" BASE64("_-") "(" BASE64_2("_-") "|" BASE64_3("_-") ")?$"},
    {"char", "^[^]$"},
    {"decimal", "^-?(0|[1-9]\\d{0,17})(\\.\\d{1,17})?$"},
    {"int64", "^(0|-?[1-9]\\d{0,17})$"},
    {"uint64", "^(0|[1-9]\\d{0,17})$"},
    {"binary", NULL},
    {"password", NULL},
};

/* Names for the same, or for what has others among its texts. */
static const struct {
    const char *name, *same;
} aliases[] = {{"iri", "uri"},         {"iri-reference", "uri-reference"},
               {"idn-email", "email"}, {"idn-hostname", "hostname"},
               {"url", "uri"},         {"guid", "uuid"}};
#define N_ALIASES (sizeof aliases / sizeof *aliases)
#define N_FORMATS (sizeof formats / sizeof *formats)

/* The pattern of a format; NULL: any text, or it is not known and refused. */
static const char *find_format(struct build *b, const json_t *format)
{
    const char *name = json_text(format);

    for (size_t i = 0; i < N_ALIASES; i++)
        name = strcmp(name, aliases[i].name) ? name : aliases[i].same;
    for (size_t i = 0; i < N_FORMATS; i++) {
        if (!strcmp(name, formats[i].name))
            return formats[i].pattern;
    }
    if (schema_format_about(format) == TYPE_STRING)
        build_refuse(b,
                     "the format '%.32s' is not supported; docs/schemas.md has those "
                     "that are",
                     name);
    return NULL;
}

/* A string by the keywords of its schema; free makes one of any characters. */
static uint32_t string_type(struct build *b, const json_t *schema, uint32_t to,
                            uint32_t (*free_string)(struct build *b, uint32_t min,
                                                    uint32_t max, uint32_t to))
{
    const json_t *pattern = json_object_get(schema, "pattern");
    const json_t *format = json_object_get(schema, "format");
    const char *known = NULL;
    uint32_t min = 0, max = NO_LIMIT;

    build_get_count(b, schema, "minLength", &min);
    build_get_count(b, schema, "maxLength", &max);
    if ((pattern && !json_text(pattern)) || (format && !json_text(format))) {
        build_refuse(b, "'pattern' and 'format' are texts without U+0000");
        return NODE_DEAD;
    }
    if (format)
        known = find_format(b, format);
    if (b->a->st)
        return NODE_DEAD;
    if (pattern)
        return build_pattern(b, json_string_value(pattern), json_string_length(pattern),
                             known, min, max, to);
    if (known)
        return build_pattern(b, known, strlen(known), NULL, min, max, to);
    return free_string(b, min, max, to);
}

uint32_t build_string_type(struct build *b, const json_t *schema, uint32_t to)
{
    return string_type(b, schema, to, build_string);
}

/* A text with limits has not the first byte of what closes it; one without may. */
static uint32_t free_raw(struct build *b, uint32_t min, uint32_t max, uint32_t to)
{
    static const struct char_range all = {0, CHAR_MAX_CODE};
    struct automaton *a = b->a;

    if (min > 0 || max != NO_LIMIT)
        return build_repeat(a, build_chars(a, &all, 1, NODE_POP), min, max,
                            build_text(a, a->raw, strlen(a->raw), to));
    if (b->raw == NO_RULE) {
        b->raw = build_rule(a);
        const uint32_t start = build_raw_until(a, a->raw, NODE_POP);

        if (!a->st)
            a->rules[b->raw].start = start;
    }
    return build_call(a, b->raw, 0, to);
}

uint32_t build_raw_string(struct build *b, const json_t *schema, uint32_t to)
{
    return string_type(b, schema, to, free_raw);
}
