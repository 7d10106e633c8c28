/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a fuzzer is: one function that takes any bytes. It stops the program where something
 * that must hold does not. libFuzzer calls it, or corpus_main.c for each file of a corpus.
 */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Holds in release builds too. */
#define FUZZ_CHECK(condition)                                                            \
    ((condition)                                                                         \
         ? (void)0                                                                       \
         : (fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition),      \
            abort()))

#endif
