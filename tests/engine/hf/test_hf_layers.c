/* SPDX-License-Identifier: MIT
 *
 * test_hf_layers.c - what is read from tensors: layers that predict further
 * tokens, and the numbers of xIELU
 */
#include "tests/engine/hf/hf_folder.h"

/* A file in memory with tensors that have the same description; names end with NULL. */
static struct safetensors *tensors(const char *const *names, const char *description)
{
    static unsigned char image[4096];
    struct safetensors *s = NULL;
    struct err err = ERR_INIT;
    size_t n = 8;
    char separator = '{';

    for (; *names; names++) {
        n += (size_t)sprintf((char *)image + n, "%c\"%s\":%s", separator, *names,
                             description);
        separator = ',';
        description = "{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[16,16]}";
    }
    image[n++] = '}';
    for (int i = 0; i < 8; i++)
        image[i] = (unsigned char)((uint64_t)(n - 8) >> 8 * i);
    memset(image + n, 0, 16);
    if (safetensors_parse(&s, image, n + 16, "model.safetensors", &err))
        fail_msg("%s", err.msg);
    return s;
}

static const struct hf_arch *kind(const char *type)
{
    for (size_t i = 0; i < hf_n_archs; i++)
        if (!strcmp(hf_archs[i].model_type, type))
            return &hf_archs[i];
    fail_msg("no %s", type);
    return NULL;
}

static void layers_behind_the_last_one(void **state)
{
    static const char *const cases[][3] = {
        {"deepseek_v3", "mtp.layers.0.x", "model.layers.4.x"},
        {"deepseek_v3", "model.mtp.layers.12.x.y", "model.layers.16.x.y"},
        {"deepseek_v3", "mtp.fc.weight", "model.layers.4.eh_proj.weight"},
        {"deepseek_v3", "mtp.norm.weight", "model.layers.4.shared_head.norm.weight"},
        {"deepseek_v3", "mtp.other.weight", "mtp.other.weight"},
        {"deepseek_v3", "mtp.layers.x.y", "mtp.layers.x.y"},
        {"deepseek_v3", "mtp.layers.0", "mtp.layers.0"},
        {"deepseek_v3", "mtp.layers.-1.x", "mtp.layers.-1.x"},
        {"deepseek_v3", "layers.0.x", "model.layers.0.x"},
        {"llama", "mtp.layers.0.x", "mtp.layers.0.x"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct hf_config c = {.arch = kind(cases[i][0]), .n_layers = 4};
        char buf[160];

        assert_string_equal(hf_nextn_name(&c, cases[i][1], buf, sizeof buf),
                            cases[i][2]);
    }
}

static void layers_are_counted(void **state)
{
    static const struct {
        const char *type, *names[4], *blocks, *more;
    } cases[] = {
        {"llama", {"model.layers.7.x"}, "4", "(none)"},
        {"deepseek_v3", {"model.layers.3.x", "lm_head.weight"}, "4", "(none)"},
        {"deepseek_v3", {"model.layers.5.x", "model.layers.4.x"}, "6", "2"},
        {"deepseek_v3", {"mtp.layers.0.x"}, "5", "1"},
        {"deepseek_v3", {"model.layers.19.x"}, "20", "16"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct gguf_kvs kvs = {.n = 0};
        struct hf_config c = {.arch = kind(cases[i].type), .n_layers = 4, .kvs = &kvs};
        struct safetensors *s = tensors(
            cases[i].names, "{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}");
        struct err err = ERR_INIT;
        char key[80];
        void *image;

        assert_int_equal(hf_put_layers(&c, s, &err), ST_OK);
        struct gguf *g = gguf_of_kvs(&image, &kvs, &err);

        snprintf(key, sizeof key, "%s.block_count", c.arch->gguf);
        assert_pair(g, key, cases[i].blocks, cases[i].names[0]);
        snprintf(key, sizeof key, "%s.nextn_predict_layers", c.arch->gguf);
        assert_pair(g, key, cases[i].more, cases[i].names[0]);
        gguf_close(g);
        free(image);
        safetensors_close(s);
    }
}

#define ACT "model.layers.0.mlp.act_fn."

static void numbers_of_xielu(void **state)
{
    static const struct {
        const char *type, *names[4], *description, *message;
    } cases[] = {
        {"llama", {"x"}, "F32\",\"shape\":[1],\"data_offsets\":[0,4]", NULL},
        {"apertus",
         {"x"},
         "F32\",\"shape\":[1],\"data_offsets\":[0,4]",
         "layer 0 has no mlp.act_fn.alpha_p"},
        {"apertus",
         {ACT "alpha_x"},
         "F32\",\"shape\":[1],\"data_offsets\":[0,4]",
         "layer 0 has no mlp.act_fn.alpha_p"},
        {"apertus",
         {"model.layers.9.mlp.act_fn.alpha_p"},
         "F32\",\"shape\":[1],\"data_offsets\":[0,4]",
         "layer 0 has no mlp.act_fn.alpha_p"},
        {"apertus",
         {ACT "alpha_p"},
         "F32\",\"shape\":[2],\"data_offsets\":[0,8]",
         "a tensor of mlp.act_fn is no single number"},
        {"apertus",
         {ACT "beta"},
         "I32\",\"shape\":[1],\"data_offsets\":[0,4]",
         "a tensor of mlp.act_fn is no single number"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct gguf_kvs kvs = {.n = 0};
        struct hf_config c = {.arch = kind(cases[i].type), .n_layers = 1, .kvs = &kvs};
        struct err err = ERR_INIT;
        char description[120];

        snprintf(description, sizeof description, "{\"dtype\":\"%s}",
                 cases[i].description);
        struct safetensors *s = tensors(cases[i].names, description);

        if (cases[i].message)
            assert_refused(hf_put_xielu(&c, s, &err), &err, ST_INPUT, cases[i].message,
                           cases[i].names[0]);
        else
            assert_int_equal(hf_put_xielu(&c, s, &err), ST_OK);
        free(kvs.bytes.data);
        safetensors_close(s);
    }
}

/* Those that are there are read from the file; two have a default. */
static void numbers_of_a_file(void **state)
{
    static const struct folder_tensor both[] = {{ACT "alpha_n", "[1]"},
                                                {ACT "alpha_p", "[]"}};
    char root[64];

    (void)state;
    for (size_t n = 1; n < 3; n++) {
        struct gguf_kvs kvs = {.n = 0};
        struct hf_config c = {.arch = kind("apertus"), .n_layers = 1, .kvs = &kvs};
        struct safetensors *s;
        struct err err = ERR_INIT;

        tree_new(root);
        folder_put_tensors(root, "/model.safetensors", both, n);
        assert_int_equal(safetensors_open(&s, root, &err), ST_OK);
        const enum status st = hf_put_xielu(&c, s, &err);

        if (n == 1) {
            assert_refused(st, &err, ST_INPUT, "layer 0 has no mlp.act_fn.alpha_p",
                           "alpha_n alone");
            free(kvs.bytes.data);
        } else {
            void *image;
            struct gguf *g = gguf_of_kvs(&image, &kvs, &err);

            assert_pair(g, "xielu.alpha_p", "0", "both");
            assert_pair(g, "xielu.beta", "0.5", "both");
            gguf_close(g);
            free(image);
        }
        safetensors_close(s);
        tree_remove(root);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_behind_the_last_one),
        cmocka_unit_test(layers_are_counted),
        cmocka_unit_test(numbers_of_xielu),
        cmocka_unit_test(numbers_of_a_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
