/* SPDX-License-Identifier: MIT
 *
 * client_curl.h - libcurl's options for all requests, for client.c and client_get.c
 */
#ifndef SLM_HARNESS_CLIENT_CLIENT_CURL_H
#define SLM_HARNESS_CLIENT_CLIENT_CURL_H

#include <curl/curl.h>
#include <stdbool.h>

#include "engine/base/status.h"

/* The URL, our name, HTTP/1.1, no proxy, no redirects. Error: ST_NO_MEMORY. */
enum status client_set_common(CURL *easy, const char *url, struct err *err);

/* A line more of the header, or the one with the key (NULL: none). False: no memory. */
bool client_add_line(struct curl_slist **list, const char *line);
bool client_add_key(struct curl_slist **list, const char *key);

#endif
