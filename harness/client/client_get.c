/* SPDX-License-Identifier: MIT
 *
 * client_get.c - whether there is libcurl, its options for all requests, and one GET
 */
#include "harness/client/client.h"

#ifndef SLM_HAVE_CURL

enum status load_client_check(struct err *err)
{
    return err_set(
        err, ST_UNSUPPORTED,
        "this program was built without libcurl, which requests to servers are "
        "sent with: build it where libcurl4-gnutls-dev is installed, and not as a "
        "static program");
}

enum status load_client_get(const char *url, const char *key, double seconds,
                            int *http_status, char *buf, size_t cap, struct err *err)
{
    (void)url, (void)key, (void)seconds, (void)http_status, (void)buf, (void)cap;
    return load_client_check(err);
}

#else

#include <stdio.h>
#include <string.h>

#include "harness/base/program.h"
#include "harness/client/client_internal.h"

enum status load_client_check(struct err *err)
{
    static bool done;

    if (!done && curl_global_init(CURL_GLOBAL_DEFAULT))
        return err_set(err, ST_UNSUPPORTED, "libcurl cannot be used here");
    done = true;
    return ST_OK;
}

enum status client_set_common(CURL *easy, const char *url, struct err *err)
{
    CURLcode c = curl_easy_setopt(easy, CURLOPT_URL, url);
    char agent[80];

    snprintf(agent, sizeof agent, "slmbench/%.60s", build_version());
    if (!c)
        c = curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    if (!c)
        c = curl_easy_setopt(easy, CURLOPT_USERAGENT, agent);
    if (!c)
        c = curl_easy_setopt(easy, CURLOPT_PROXY, "");
    if (!c)
        c = curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    if (!c)
        c = curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    if (!c)
        c = curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    if (!c)
        c = curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, 10000L);
    return c ? err_set(err, ST_NO_MEMORY, "libcurl: %s", curl_easy_strerror(c)) : ST_OK;
}

bool client_add_line(struct curl_slist **list, const char *line)
{
    struct curl_slist *longer = curl_slist_append(*list, line);

    if (longer)
        *list = longer;
    return longer != NULL;
}

bool client_add_key(struct curl_slist **list, const char *key)
{
    char line[600];

    if (!key)
        return true;
    snprintf(line, sizeof line, "Authorization: Bearer %s", key);
    return client_add_line(list, line);
}

/* ---- one GET --------------------------------------------------------------------- */

struct body {
    char *buf;
    size_t n, cap, n_header_bytes;
};

static size_t on_get_header(char *bytes, size_t size, size_t n, void *arg)
{
    struct body *b = arg;

    (void)bytes;
    b->n_header_bytes += size * n;
    return b->n_header_bytes <= LOAD_HEADERS_MAX_BYTES ? size * n : 0;
}

static size_t on_get(char *bytes, size_t size, size_t n, void *arg)
{
    struct body *b = arg;
    const size_t len = size * n, room = b->cap - 1 - b->n;
    const size_t kept = len < room ? len : room;

    memcpy(b->buf + b->n, bytes, kept);
    b->n += kept;
    b->buf[b->n] = '\0';
    return len <= room ? len : 0;
}

enum status load_client_get(const char *url, const char *key, double seconds,
                            int *http_status, char *buf, size_t cap, struct err *err)
{
    struct body body = {.buf = buf, .cap = cap};
    enum status st = load_client_check(err);
    CURL *easy = st ? NULL : curl_easy_init();
    struct curl_slist *headers = NULL;
    long code = 0;

    buf[0] = '\0';
    if (st == ST_OK && !easy)
        st = err_set(err, ST_NO_MEMORY, "no memory for a request");
    if (st == ST_OK)
        st = client_set_common(easy, url, err);
    if (st == ST_OK && client_add_key(&headers, key)) {
        curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
        curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_get_header);
        curl_easy_setopt(easy, CURLOPT_HEADERDATA, &body);
        curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_get);
        curl_easy_setopt(easy, CURLOPT_WRITEDATA, &body);
        curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)(seconds * 1e3));
        curl_easy_perform(easy);
        curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &code);
    }
    *http_status = (int)code;
    curl_slist_free_all(headers);
    curl_easy_cleanup(easy);
    return st;
}

#endif
