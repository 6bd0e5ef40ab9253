/* SPDX-License-Identifier: MIT
 *
 * model_use.h - synthetic model files that several processes share
 *
 * A process that uses a file holds a shared lock on it until it ends, however that is;
 * one that wants to remove the file needs the lock for itself.
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_MODEL_MODEL_USE_H
#define SLM_HARNESS_MODEL_MODEL_USE_H

#include <stdbool.h>

/* Marks the file as used by this process; false: it is not there, or somebody is
 * removing it. */
bool model_use(const char *path);

/* Removes the file unless another process uses it; whether it is gone. */
bool model_remove_unused(const char *path);

#endif
