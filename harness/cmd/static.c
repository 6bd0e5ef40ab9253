/* SPDX-License-Identifier: MIT
 *
 * static.c - what the libraries in a program built with SLM_STATIC request and do not
 * get
 *
 * hwloc opens plugins and reads the serial numbers of disks from udev, SQLite can load
 * extensions. A program without shared libraries cannot open one safely: it would bring
 * another glibc into the process. So dlopen() fails, which both take for an answer, and
 * there is no udev, as in most containers; `bench` reads no disks by hwloc.
 *
 * GnuTLS has no archive in Debian that could be linked whole (p11-kit loads modules).
 * libmicrohttpd calls it for daemons that speak TLS, and `bench serve` is none: it only
 * calls the two that begin and end the library. Whatever else is reached is an error of
 * this program.
 *
 * Threading: no state.
 */
#include <stddef.h>
#include <stdlib.h>

/* Calls of dlopen() come here: cmake/static.cmake has --wrap. */
void *__wrap_dlopen(const char *file, int mode);

void *__wrap_dlopen(const char *file, int mode)
{
    (void)file;
    (void)mode;
    return NULL;
}

/* ---- libudev, as far as hwloc uses it -------------------------------------------- */

struct udev;
struct udev_device;

struct udev *udev_new(void);
struct udev *udev_unref(struct udev *udev);
struct udev_device *udev_device_new_from_subsystem_sysname(struct udev *udev,
                                                           const char *subsystem,
                                                           const char *sysname);
const char *udev_device_get_property_value(struct udev_device *dev, const char *key);
struct udev_device *udev_device_unref(struct udev_device *dev);

struct udev *udev_new(void)
{
    return NULL; /* hwloc continues without */
}

struct udev *udev_unref(struct udev *udev)
{
    (void)udev;
    return NULL;
}

struct udev_device *udev_device_new_from_subsystem_sysname(struct udev *udev,
                                                           const char *subsystem,
                                                           const char *sysname)
{
    (void)udev;
    (void)subsystem;
    (void)sysname;
    return NULL;
}

const char *udev_device_get_property_value(struct udev_device *dev, const char *key)
{
    (void)dev;
    (void)key;
    return NULL;
}

struct udev_device *udev_device_unref(struct udev_device *dev)
{
    (void)dev;
    return NULL;
}

/* ---- GnuTLS, as far as libmicrohttpd names it ------------------------------------ */

int gnutls_global_init(void);
void gnutls_global_deinit(void);

int gnutls_global_init(void)
{
    return 0;
}

void gnutls_global_deinit(void)
{
}

/* libmicrohttpd frees with it what it got from GnuTLS. */
extern void *(*gnutls_malloc)(size_t);
void *(*gnutls_malloc)(size_t) = malloc;

/* Only their names matter to the linker. */
#define NEVER_CALLED(name) \
    void name(void);       \
    void name(void)        \
    {                      \
        abort();           \
    }

NEVER_CALLED(gnutls_alpn_set_protocols)
NEVER_CALLED(gnutls_bye)
NEVER_CALLED(gnutls_certificate_allocate_credentials)
NEVER_CALLED(gnutls_certificate_free_credentials)
NEVER_CALLED(gnutls_certificate_server_set_request)
NEVER_CALLED(gnutls_certificate_set_dh_params)
NEVER_CALLED(gnutls_certificate_set_retrieve_function2)
NEVER_CALLED(gnutls_certificate_set_retrieve_function3)
NEVER_CALLED(gnutls_certificate_set_x509_key_mem)
NEVER_CALLED(gnutls_certificate_set_x509_key_mem2)
NEVER_CALLED(gnutls_certificate_set_x509_trust_mem)
NEVER_CALLED(gnutls_cipher_get)
NEVER_CALLED(gnutls_credentials_set)
NEVER_CALLED(gnutls_deinit)
NEVER_CALLED(gnutls_dh_params_deinit)
NEVER_CALLED(gnutls_dh_params_import_pkcs3)
NEVER_CALLED(gnutls_dh_params_init)
NEVER_CALLED(gnutls_handshake)
NEVER_CALLED(gnutls_init)
NEVER_CALLED(gnutls_priority_deinit)
NEVER_CALLED(gnutls_priority_init)
NEVER_CALLED(gnutls_priority_set)
NEVER_CALLED(gnutls_protocol_get_version)
NEVER_CALLED(gnutls_psk_allocate_server_credentials)
NEVER_CALLED(gnutls_psk_free_server_credentials)
NEVER_CALLED(gnutls_psk_set_server_credentials_function)
NEVER_CALLED(gnutls_record_check_pending)
NEVER_CALLED(gnutls_record_get_direction)
NEVER_CALLED(gnutls_record_recv)
NEVER_CALLED(gnutls_record_send)
NEVER_CALLED(gnutls_session_get_ptr)
NEVER_CALLED(gnutls_session_set_ptr)
NEVER_CALLED(gnutls_strerror)
NEVER_CALLED(gnutls_transport_set_int2)
