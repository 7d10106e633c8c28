/* SPDX-License-Identifier: Apache-2.0 */
/* NVRTC has no system headers: what the library's own take from this one. */
#ifndef TESTS_STD_STDINT_H
#define TESTS_STD_STDINT_H

typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
typedef unsigned long uintptr_t;

#define INT32_MAX 0x7fffffff
#define INT64_MAX 0x7fffffffffffffffLL

#endif
