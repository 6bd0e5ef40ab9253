/* SPDX-License-Identifier: MIT
 *
 * tuned_format.c - level, prefetch and panels of a weight format, checked
 */
#include "harness/measure/tune/tuned_format.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "harness/rows/settings/setting.h"
#include "harness/measure/tune/prefetch.h"
#include "harness/measure/tune/tune_settings.h"

#define TEXT(name)                                                                  \
    CYAML_FIELD_STRING_PTR(#name, CYAML_FLAG_POINTER, struct tuned_format, name, 0, \
                           1024)
#define TEXT_OR_NONE(name)                                                  \
    CYAML_FIELD_STRING_PTR(#name, CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, \
                           struct tuned_format, name, 0, 1024)

static const cyaml_schema_field_t fields[] = {TEXT(name),
                                              TEXT(level),
                                              TEXT_OR_NONE(level_prefill),
                                              TEXT_OR_NONE(prefetch),
                                              TEXT_OR_NONE(panels),
                                              TEXT_OR_NONE(ahead),
                                              CYAML_FIELD_END};

const cyaml_schema_value_t tuned_format_schema = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct tuned_format, fields)};

static enum status get_level(const char *path, const char *format, const char *text,
                             uint32_t *mask, struct err *err)
{
    *mask = 0;
    if (!text || !strcasecmp(text, "best"))
        return ST_OK;
    for (int i = 0; i < KERN_N_ISA; i++)
        if (!strcasecmp(text, isa_name((enum kern_isa)i))) {
            *mask = tune_level_mask(i);
            return ST_OK;
        }
    return err_set(
        err, ST_INPUT,
        "%s: %s: there is no level '%.40s'; use best, or one that `bench topo` lists",
        path, format, text);
}

static enum status get_prefetch(const struct tuned_format *raw, const char *path,
                                struct kern_prefetch *prefetch, struct err *err)
{
    char what[512];
    int distance;

    if (raw->prefetch && prefetch_parse(raw->prefetch, prefetch))
        return ST_OK;
    if (!raw->prefetch && raw->ahead) {
        snprintf(what, sizeof what, "%.400s: %.20s: ahead", path, raw->name);
        if (setting_parse_int(SETTING_prefetch, raw->ahead, what, &distance, err))
            return err->code;
        *prefetch = (struct kern_prefetch){(uint32_t)distance, KERN_PREFETCH_T1, 0};
        return ST_OK;
    }
    return err_set(err, ST_INPUT,
                   "%s: %.20s: prefetch: '%.40s' is neither off nor a hint (T0, T1, "
                   "NTA) and a distance of 1 to %u bytes, as \"T0 4096\"",
                   path, raw->name, raw->prefetch ? raw->prefetch : "",
                   TUNING_MAX_DISTANCE);
}

static enum status get_panels(const struct tuned_format *raw, const char *path,
                              uint32_t *n_panels, struct err *err)
{
    static const char *const known[] = {"1", "2", "4"};

    *n_panels = KERN_MAX_INTERLEAVED;
    if (!raw->panels)
        return ST_OK;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (!strcmp(raw->panels, known[i])) {
            *n_panels = (uint32_t)(known[i][0] - '0');
            return ST_OK;
        }
    return err_set(err, ST_INPUT, "%s: %.20s: panels: '%.40s' is not one of 1, 2, 4",
                   path, raw->name, raw->panels);
}

enum status tuned_format_read(const struct tuned_format *raw, const char *path,
                              bool *seen, struct slm_tuning *t, struct err *err)
{
    const enum kern_format fmt = kern_format_by_name(raw->name);
    enum status st;

    if (fmt == KERN_N_FMT)
        return err_set(err, ST_INPUT, "%s: there is no weight format '%.40s'", path,
                       raw->name);
    if (seen[fmt])
        return err_set(err, ST_INPUT, "%s: the weight format %s is there twice", path,
                       raw->name);
    seen[fmt] = true;
    st = get_level(path, raw->name, raw->level, &t->isa_mask[fmt], err);
    if (st == ST_OK)
        st = get_level(path, raw->name, raw->level_prefill, &t->isa_mask_prefill[fmt],
                       err);
    if (st == ST_OK)
        st = get_prefetch(raw, path, &t->prefetch[fmt], err);
    if (st == ST_OK)
        st = get_panels(raw, path, &t->prefetch[fmt].n_panels, err);
    return st;
}
