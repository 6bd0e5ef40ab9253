/* SPDX-License-Identifier: MIT
 *
 * point_row.h - the point that a stored row was measured at, and its command
 *
 * A row may come from a foreign file: each column is checked before it becomes a
 * setting. Rows of older versions lack some columns; point_row.c has the values
 * that replace them.
 *
 * Threading: pure functions.
 */
#ifndef SLM_HARNESS_ROWS_POINT_POINT_ROW_H
#define SLM_HARNESS_ROWS_POINT_POINT_ROW_H

#include "harness/rows/point/point.h"

/* The settings of r's point into *p, with this model, on the machine that it was
 * measured on. Error: ST_INPUT (a column is out of range; with which). */
enum status point_from_row(struct point *p, const struct row *r,
                           const struct modelref *model, struct err *err);

/* The command that measures r again. Nothing of it is a text of the row as found: the
 * options are the columns' settings, and the model is the stored command's where it is
 * one word that r's model would have been named by. Errors: ST_INPUT (a speculate
 * point, whose columns lack the path of its text; a column or the command's model is
 * not as expected). */
enum status point_row_command(const struct row *r, char *buf, size_t cap,
                              struct err *err);

/* The model of the stored command into word, where it is one that r's model would have
 * been named by; false: no such word. */
bool point_row_model(const struct row *r, char *word, size_t cap);

/* Whether r's model is a synthetic one, SHAPE:QUANT of a shape that is known here, by
 * the stored command. */
bool point_row_is_synthetic(const struct row *r);

/* Puts that command in the place of the one found, or none where it cannot be made or
 * the row had none: before rows of somebody else are shown. */
void point_row_remake_command(struct row *r);

#endif
