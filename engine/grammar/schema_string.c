/* SPDX-License-Identifier: MIT
 *
 * schema_string.c - strings of a schema
 */
#include "engine/grammar/build.h"

uint32_t build_string_type(struct build *b, const json_t *schema, uint32_t to)
{
    uint32_t min = 0, max = NO_LIMIT;

    build_get_count(b, schema, "minLength", &min);
    build_get_count(b, schema, "maxLength", &max);
    if (json_object_get(schema, "pattern") || json_object_get(schema, "format")) {
        build_refuse(b, "the keywords 'pattern' and 'format' are not supported");
        return NODE_DEAD;
    }
    return build_string(b, min, max, to);
}
