/* SPDX-License-Identifier: Apache-2.0 */
/* kiln's version, and the number of its interface, which grows with each release that
 * changes the headers. */
#ifndef KILN_VERSION_H
#define KILN_VERSION_H

#define KILN_VERSION "0.1.0"
#define KILN_API_NUMBER 1

#endif
