/* SPDX-License-Identifier: MIT
 *
 * test_hf_links.c - which files a model folder's links may lead to
 */
#include "tests/support/tree.h"

#include <limits.h>
#include <unistd.h>

#include "engine/hf/hf.h"

static char root[64], top[PATH_MAX]; /* top: root without links */
static char found[4096];

static int setup(void **state)
{
    (void)state;
    tree_new(root);
    assert_non_null(realpath(root, top));
    tree_put(root, "/secret.json", "{}");
    tree_put(root, "/disk/part.safetensors", "");
    tree_put(root, "/cache/models--org--name/blobs/0123", "{}");
    tree_put(root, "/cache/other/blobs/0123", "{}");
    tree_put(root, "/model/config.json", "{}");
    tree_put(root, "/model/own/other.json", "{}");
    tree_mkdir(root, "/cache/models--org--name/snapshots/abc");
    tree_mkdir(root, "/cache/other/snapshots/abc");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    tree_remove(root);
    return 0;
}

static void link_to(const char *to, const char *name)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s%s", root, name);
    unlink(path);
    assert_int_equal(symlink(to, path), 0);
}

/* The path is noted without the root. */
static enum status note(void *arg, const char *path, struct err *err)
{
    (void)arg;
    (void)err;
    assert_memory_equal(path, top, strlen(top));
    strcat(found, path + strlen(top));
    strcat(found, ";");
    return ST_OK;
}

static enum status look(const char *folder, struct err *err)
{
    char path[PATH_MAX];

    *found = '\0';
    *err = (struct err)ERR_INIT;
    snprintf(path, sizeof path, "%s%s", root, folder);
    return hf_links(path, note, NULL, err);
}

#define CACHE "/cache/models--org--name"

static void own_links(void **state)
{
    struct err err;

    (void)state;
    link_to("config.json", "/model/copy.json");
    link_to("own/other.json", "/model/other.json");
    link_to("../disk/part.safetensors", "/model/part.safetensors");
    link_to("../secret.json", "/model/README");
    link_to("../disk", "/model/folder.json");
    link_to("nowhere", "/model/broken.json");
    assert_int_equal(look("/model", &err), ST_OK);
    assert_string_equal(found, "/disk/part.safetensors;");
    link_to(".." CACHE "/blobs/0123", "/model/tokenizer.json");
    assert_int_equal(look("/model/", &err), ST_OK);
    assert_non_null(strstr(found, CACHE "/blobs/0123;"));
    assert_int_equal(hf_links("/nowhere", note, NULL, &err), ST_OK);
}

/* Refused by its name and where it leads, by every reader of the folder. */
static void is_refused(const char *to, const char *name, const char *where)
{
    struct gguf *g = NULL;
    char path[PATH_MAX];
    struct err err;

    link_to(to, name);
    assert_int_equal(look("/model", &err), ST_INPUT);
    assert_non_null(strstr(err.msg, name));
    assert_non_null(strstr(err.msg, where));
    err = (struct err)ERR_INIT;
    snprintf(path, sizeof path, "%s/model", root);
    assert_int_equal(hf_open(&g, path, &err), ST_INPUT);
    assert_non_null(strstr(err.msg, "out of the model's folder"));
    snprintf(path, sizeof path, "%s%s", root, name);
    unlink(path);
}

static void links_elsewhere(void **state)
{
    (void)state;
    is_refused("../secret.json", "/model/tokenizer.json", "/secret.json");
    is_refused("../secret.json", "/model/chat_template.jinja", "/secret.json");
    is_refused("../secret.json", "/model/model.safetensors", "/secret.json");
    is_refused("../../secret.json", "/model/own/config.json", "/secret.json");
    is_refused("../cache/other/blobs/0123", "/model/tokenizer.json",
               "/other/blobs/0123");
    link_to("../../../secret.json", CACHE "/blobs/chain");
    is_refused(".." CACHE "/blobs/chain", "/model/tokenizer.json", "/secret.json");
    link_to("../model-two", "/model/two");
    tree_put(root, "/model-two/x.json", "{}");
    is_refused("../model-two/x.json", "/model/tokenizer.json", "/model-two/x.json");
}

/* Its blobs come along, unless they are a link themselves. */
static void snapshots(void **state)
{
    struct err err;

    (void)state;
    link_to("../../blobs/0123", CACHE "/snapshots/abc/config.json");
    assert_int_equal(look(CACHE "/snapshots/abc", &err), ST_OK);
    assert_string_equal(found, CACHE "/blobs;" CACHE "/blobs/0123;");
    link_to("models--org--name/snapshots/abc", "/cache/current");
    assert_int_equal(look("/cache/current", &err), ST_OK);
    assert_string_equal(found, CACHE "/blobs;" CACHE "/blobs/0123;");
    assert_int_equal(look("/cache/other/snapshots/abc", &err), ST_OK);
    assert_string_equal(found, "");
    tree_mkdir(root, "/cache/models--x/snapshots/abc");
    link_to("../..", "/cache/models--x/blobs");
    assert_int_equal(look("/cache/models--x/snapshots/abc", &err), ST_OK);
    assert_string_equal(found, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(own_links),
                                       cmocka_unit_test(links_elsewhere),
                                       cmocka_unit_test(snapshots)};

    return cmocka_run_group_tests(tests, setup, teardown);
}
