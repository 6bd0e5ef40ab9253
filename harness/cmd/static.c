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
 * Threading: no state.
 */
#include <stddef.h>

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
