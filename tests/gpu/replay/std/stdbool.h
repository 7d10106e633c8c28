/* SPDX-License-Identifier: Apache-2.0 */
/* What C takes from here is built into C++ and NVRTC. */
#ifndef TESTS_STD_STDBOOL_H
#define TESTS_STD_STDBOOL_H
#endif
