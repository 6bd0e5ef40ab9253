/* SPDX-License-Identifier: MIT
 *
 * test_listen.c - addresses, names of this machine, files of keys, and the metrics'
 * text
 */
#include "tests/support/test.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "harness/serve/http/apikeys.h"
#include "harness/serve/http/listen.h"
#include "harness/serve/http/metrics.h"

static void addresses(void **state)
{
    static const char *const bad[] = {
        "",           "example.com",     "1.2.3",      "[::1",        "[::1]8080",
        "::1:8080:x", "127.0.0.1:65536", "127.0.0.1:", "127.0.0.1:x", "[1.2.3.4x]:1"};
    struct listening l;
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(listen_open(&l, "localhost:0", -1, &err), ST_OK);
    assert_true(l.loopback);
    assert_int_equal(strncmp(l.text, "127.0.0.1:", 10), 0);
    assert_int_not_equal(atoi(l.text + 10), 0);
    listen_close(&l);
    assert_int_equal(l.fd, -1);
    assert_int_equal(listen_open(&l, "*:1", 0, &err),
                     ST_OK); /* the port is the option's */
    assert_false(l.loopback);
    listen_close(&l);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        err_clear(&err);
        if (listen_open(&l, bad[i], *bad[i] ? -1 : 0, &err) == ST_OK) {
            assert_string_equal(bad[i], ""); /* nothing said: the defaults */
            listen_close(&l);
        } else {
            assert_int_equal(err.code, ST_USAGE);
        }
    }
}

static void taken_ports(void **state)
{
    struct listening first, second;
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(listen_open(&first, "127.0.0.1:0", -1, &err), ST_OK);
    assert_int_equal(listen_open(&second, first.text, -1, &err), ST_IO);
    assert_non_null(strstr(err.msg, "another program"));
    listen_close(&first);
}

static void own_names(void **state)
{
    static const char *const own[] = {"localhost",     "LocalHost:80", "127.0.0.1",
                                      "10.1.2.3:8080", "[::1]:8080",   "[fe80::1]"};
    static const char *const others[] = {"evil.example",
                                         "localhost.evil.example:80",
                                         "127.0.0.1.nip.io",
                                         "[::1",
                                         "",
                                         "1.2.3.4.5",
                                         "localhostx"};

    (void)state;
    assert_true(listen_is_own_name(NULL));
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        assert_true(listen_is_own_name(own[i]));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(listen_is_own_name(others[i]));
}

static struct listen_peer peer(const char *address)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    const bool is_v4 = inet_pton(AF_INET, address, &v4.sin_addr) == 1;
    struct listen_peer p;

    if (!is_v4)
        assert_int_equal(inet_pton(AF_INET6, address, &v6.sin6_addr), 1);
    listen_name_peer(&p, is_v4 ? (const struct sockaddr *)&v4
                               : (const struct sockaddr *)&v6);
    return p;
}

/* Clients are told apart by their address: of IPv6 by its network, and IPv4 is the same
 * whatever the socket is. */
static void peers(void **state)
{
    struct listen_peer p;

    (void)state;
    assert_string_equal(peer("10.1.2.3").text, "10.1.2.3");
    assert_string_equal(peer("::ffff:10.1.2.3").text, "10.1.2.3");
    assert_string_equal(peer("2001:db8::1").text, "2001:db8::1");
    assert_true(peer("10.1.2.3").key != peer("10.1.2.4").key);
    assert_true(peer("::ffff:10.1.2.3").key == peer("10.1.2.3").key);
    assert_true(peer("::ffff:10.1.2.3").key != peer("::ffff:10.1.2.4").key);
    assert_true(peer("2001:db8::1").key == peer("2001:db8::2").key);
    assert_true(peer("2001:db8::1").key != peer("2001:db8:0:1::1").key);
    listen_name_peer(&p, NULL);
    assert_string_equal(p.text, "-");
}

static enum status read_bytes(struct apikeys **k, const char *text, size_t n,
                              struct err *err)
{
    char path[] = "/tmp/test_listen_XXXXXX";
    const int fd = mkstemp(path);
    enum status st;

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, n), n);
    close(fd);
    err_clear(err);
    st = apikeys_read(k, path, err);
    unlink(path);
    return st;
}

static enum status read_keys(struct apikeys **k, const char *text, struct err *err)
{
    return read_bytes(k, text, strlen(text), err);
}

static void keys(void **state)
{
    static const char *const bad[] = {"", "# none\n", "short\n",
                                      "has a blank in the key\n",
                                      "unprintable-key-\x01\n"};
    char longest[400];
    struct apikeys *k;
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(read_keys(&k, "aaaaaaaaaaaaaaaa\r\n#\nbbbbbbbbbbbbbbbbb", &err),
                     ST_OK);
    assert_int_equal(apikeys_find(k, "Bearer aaaaaaaaaaaaaaaa"), 0);
    assert_int_equal(apikeys_find(k, "bearer  bbbbbbbbbbbbbbbbb"), 1);
    assert_int_equal(apikeys_find(k, "Bearer bbbbbbbbbbbbbbbb"), -1);
    assert_int_equal(apikeys_find(k, "Bearer aaaaaaaaaaaaaaaab"), -1);
    assert_int_equal(apikeys_find(k, "Bearer "), -1);
    assert_int_equal(apikeys_find(k, "aaaaaaaaaaaaaaaa"), -1);
    assert_int_equal(apikeys_find(k, NULL), -1);
    snprintf(longest, sizeof longest, "Bearer %0380d", 0);
    assert_int_equal(apikeys_find(k, longest), -1);
    apikeys_free(k);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(read_keys(&k, bad[i], &err), ST_INPUT);
        assert_null(strstr(err.msg, "unprintable-key"));
    }
    assert_int_equal(read_bytes(&k, "aaaaaaaaaaaaaaaa\n\0bbbbbbbbbbbbbbbb\n", 35, &err),
                     ST_INPUT);
    assert_non_null(strstr(err.msg, "zero byte"));
}

static void histograms(void **state)
{
    struct metrics m = {0};
    struct textbuf out = {.text = NULL};

    (void)state;
    histogram_add(&m.first, 0.001); /* a bound belongs to its bucket */
    histogram_add(&m.first, 0.004);
    histogram_add(&m.first, 1000);
    metrics_reply(&m, ROUTE_CHAT, 429);
    metrics_reply(&m, ROUTE_CHAT, 429);
    metrics_put(&out, &m, NULL);
    assert_non_null(
        strstr(out.text, "slm_time_to_first_token_seconds_bucket{le=\"0.001\"} 1\n"));
    assert_non_null(
        strstr(out.text, "slm_time_to_first_token_seconds_bucket{le=\"0.005\"} 2\n"));
    assert_non_null(
        strstr(out.text, "slm_time_to_first_token_seconds_bucket{le=\"300\"} 2\n"));
    assert_non_null(
        strstr(out.text, "slm_time_to_first_token_seconds_bucket{le=\"+Inf\"} 3\n"));
    assert_non_null(strstr(out.text, "slm_time_to_first_token_seconds_sum 1000.005\n"));
    assert_non_null(strstr(
        out.text,
        "slm_http_replies_total{route=\"/v1/chat/completions\",code=\"429\"} 2\n"));
    assert_null(strstr(out.text, "slm_steps_total")); /* there is no scheduler */
    assert_false(out.failed);
    textbuf_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses), cmocka_unit_test(taken_ports),
        cmocka_unit_test(own_names), cmocka_unit_test(peers),
        cmocka_unit_test(keys),      cmocka_unit_test(histograms),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
