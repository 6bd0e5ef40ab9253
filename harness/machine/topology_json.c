/* SPDX-License-Identifier: MIT
 *
 * topology_json.c - the facts of `bench topo` as JSON
 *
 * Sizes are bytes, shares 0..1. A limit that is not there is null, so that no
 * reader takes a zero for one.
 */
#include "harness/machine/topology.h"

#include "harness/base/json_number.h"
#include "kernels/units.h"

static json_t *bytes_or_null(uint64_t bytes)
{
    return bytes ? json_integer((json_int_t)bytes) : json_null();
}

static json_t *cpus_json(const struct topology *t)
{
    json_t *list = json_array();

    for (int i = 0; i < t->n_cpus; i++) {
        const struct topo_cpu *c = &t->cpu[i];

        json_array_append_new(
            list, json_pack("{s:i,s:i,s:i,s:f,s:i,s:i,s:i,s:i,s:b}", "cpu", c->os_id,
                            "core", c->core, "kind", c->kind, "speed", c->speed,
                            "package", c->package, "node", c->node, "llc", c->llc,
                            "sibling", c->sibling, "allowed", c->allowed));
    }
    return list;
}

static json_t *caches_json(const struct topology *t)
{
    json_t *list = json_array();

    for (int i = 0; i < t->n_caches; i++) {
        const struct topo_cache *c = &t->cache[i];

        json_array_append_new(
            list, json_pack("{s:i,s:s,s:I,s:i,s:i}", "level", c->level, "type", c->type,
                            "bytes", (json_int_t)c->bytes, "instances", c->n_instances,
                            "line_bytes", c->line_bytes));
    }
    return list;
}

static json_t *isa_json(const struct topology *t)
{
    json_t *levels = json_object();

    for (int i = 0; i < KERN_N_ISA; i++) {
        json_t *level = json_pack("{s:b,s:o}", "usable", (int)(t->isa_mask >> i & 1u),
                                  "why_not", json_text_or_null(t->isa_missing[i]));

        json_object_set_new(levels, isa_name((enum kern_isa)i), level);
    }
    return levels;
}

static json_t *unused_units_json(const struct topology *t)
{
    json_t *list = json_array();

    for (int i = 0; unit_name(i); i++)
        if (t->unused_units >> i & 1)
            json_array_append_new(list, json_string(unit_name(i)));
    return list;
}

static json_t *one_llc_json(const struct topo_llc *llc)
{
    return json_pack("{s:I,s:I,s:I}", "bytes", (json_int_t)llc->bytes, "lo",
                     (json_int_t)llc->lo, "hi", (json_int_t)llc->hi);
}

static json_t *llc_json(const struct topology *t)
{
    return t->llc_all.bytes ? json_pack("{s:i,s:b,s:o,s:o}", "threads", t->llc_threads,
                                        "disturbed", (int)t->llc_disturbed,
                                        "one_thread", one_llc_json(&t->llc_one),
                                        "all_threads", one_llc_json(&t->llc_all))
                            : json_null();
}

json_t *topology_cache_json(const struct topology *t)
{
    return json_pack("{s:o,s:o}", "llc_bytes", bytes_or_null(t->llc_bytes),
                     "llc_measured", llc_json(t));
}

static void read_llc(struct topo_llc *llc, const json_t *object)
{
    const json_int_t bytes = json_integer_value(json_object_get(object, "bytes"));
    const json_int_t lo = json_integer_value(json_object_get(object, "lo"));
    const json_int_t hi = json_integer_value(json_object_get(object, "hi"));

    if (lo > 0 && bytes >= lo && hi >= bytes)
        *llc = (struct topo_llc){(uint64_t)bytes, (uint64_t)lo, (uint64_t)hi};
}

void topology_cache_from_json(struct topology *t, const json_t *cpu)
{
    const json_t *llc = json_object_get(cpu, "llc_measured");
    const json_int_t n = json_integer_value(json_object_get(llc, "threads"));

    const json_int_t reported = json_integer_value(json_object_get(cpu, "llc_bytes"));

    t->llc_bytes = reported > 0 ? (uint64_t)reported : 0;
    t->llc_one = t->llc_all = (struct topo_llc){0};
    if (n < 1 || n > TOPO_MAX_CPUS)
        return;
    t->llc_threads = (int)n;
    t->llc_disturbed = json_is_true(json_object_get(llc, "disturbed"));
    read_llc(&t->llc_one, json_object_get(llc, "one_thread"));
    read_llc(&t->llc_all, json_object_get(llc, "all_threads"));
    if (!t->llc_one.bytes || !t->llc_all.bytes)
        t->llc_one = t->llc_all = (struct topo_llc){0};
}

static json_t *cpu_json(const struct topology *t)
{
    static const char *const smt[] = {"none", "shown", "hidden"};

    return json_pack(
        "{s:o,s:o,s:o,s:i,s:i,s:i,s:i,s:i,s:s,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "model",
        json_text_or_null(t->cpu_model), "vendor", json_text_or_null(t->cpu_vendor),
        "hypervisor", json_text_or_null(t->hypervisor), "cpus", t->n_cpus,
        "cpus_offline", t->n_offline, "cores", t->n_cores, "packages", t->n_packages,
        "nodes", t->n_nodes, "smt", smt[t->smt], "smt_measured",
        json_text_or_null(t->smt_measured), "isa", isa_json(t), "unused_units",
        unused_units_json(t), "caches", caches_json(t), "llc_bytes",
        bytes_or_null(t->llc_bytes), "llc_measured", llc_json(t), "list", cpus_json(t));
}

static json_t *limits_json(const struct topology *t)
{
    return json_pack(
        "{s:i,s:i,s:i,s:o,s:o,s:i,s:o,s:o,s:o,s:o}", "cpus_allowed", t->n_allowed,
        "cores_allowed", t->n_allowed_cores, "cores_fast", t->n_fast_cores, "cpu_quota",
        t->quota_cpus > 0 ? json_real(t->quota_cpus) : json_null(), "cpu_quota_source",
        json_text_or_null(t->quota_source), "cgroup_version", t->cgroup_version,
        "memory_bytes", bytes_or_null(t->mem_limit), "memory_source",
        json_text_or_null(t->mem_limit_source), "memory_left_bytes",
        bytes_or_null(t->mem_left), "memory_left_source",
        json_text_or_null(t->mem_left_source));
}

static json_t *memory_json(const struct topology *t)
{
    return json_pack(
        "{s:I,s:I,s:I,s:I,s:o,s:I,s:I,s:I}", "total_bytes", (json_int_t)t->mem_total,
        "available_bytes", (json_int_t)t->mem_available, "hwloc_bytes",
        (json_int_t)t->mem_hwloc, "swap_bytes", (json_int_t)t->swap_total,
        "transparent_huge_pages", json_text_or_null(t->thp), "huge_2m_total",
        (json_int_t)t->huge_2m_total, "huge_2m_free", (json_int_t)t->huge_2m_free,
        "model_bytes", (json_int_t)topology_model_bytes(t, 0));
}

static json_t *advice_json(const struct topology *t)
{
    struct topo_advice advice[TOPO_MAX_ADVICE];
    const int n = topology_advice(t, advice);
    json_t *list = json_array();

    for (int i = 0; i < n; i++)
        json_array_append_new(list, json_text_or_null(advice[i].text));
    return list;
}

json_t *topology_json(const struct topology *t)
{
    return json_pack("{s:o,s:o,s:o,s:o,s:f,s:i,s:s,s:o}", "cpu", cpu_json(t), "limits",
                     limits_json(t), "memory", memory_json(t), "kernel",
                     json_text_or_null(t->kernel), "steal_share", t->steal_share,
                     "threads_default", t->threads_default, "threads_why",
                     t->threads_why, "advice", advice_json(t));
}
