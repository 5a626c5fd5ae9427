/* What the C programs of the tests share: checks that say where, and numbers of every type. */
#ifndef UNISONO_TESTS_COMMON_H
#define UNISONO_TESTS_COMMON_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unisono.h"

static inline void fail(const char *what, const char *file, int line) {
  fprintf(stderr, "%s:%d: %s: %s\n", file, line, what, unisono_last_error());
  exit(1);
}

/* A call of the library that must succeed. */
#define CHECK(call)                                                        \
  do {                                                                     \
    if ((call) != UNISONO_SUCCESS) fail(#call, __FILE__, __LINE__);        \
  } while (0)

/* Something that must hold. */
#define EXPECT(condition)                                   \
  do {                                                      \
    if (!(condition)) fail(#condition, __FILE__, __LINE__); \
  } while (0)

/* How a type is written. */
typedef struct type_info {
  unisono_datatype type;
  size_t size;
  int mantissa; /* bits of the mantissa; -1 for integers */
  int bias;     /* of the exponent */
} type_info;

static const type_info TYPES[] = {
    {UNISONO_INT8, 1, -1, 0},         {UNISONO_UINT8, 1, -1, 0},
    {UNISONO_INT16, 2, -1, 0},        {UNISONO_UINT16, 2, -1, 0},
    {UNISONO_INT32, 4, -1, 0},        {UNISONO_UINT32, 4, -1, 0},
    {UNISONO_INT64, 8, -1, 0},        {UNISONO_UINT64, 8, -1, 0},
    {UNISONO_FLOAT16, 2, 10, 15},     {UNISONO_BFLOAT16, 2, 7, 127},
    {UNISONO_FLOAT32, 4, 23, 127},    {UNISONO_FLOAT64, 8, 52, 1023},
    {UNISONO_FLOAT8_E4M3, 1, 3, 7},   {UNISONO_FLOAT8_E5M2, 1, 2, 15},
};
enum { TYPE_COUNT = sizeof TYPES / sizeof TYPES[0] };

/* The bits of a small whole number, which the type can write exactly. */
static inline uint64_t bits_of(const type_info *type, unsigned number) {
  int exponent;
  double fraction;
  if (type->mantissa < 0 || number == 0) return number;
  fraction = frexp(number, &exponent) * 2 - 1;
  return ((uint64_t)(exponent - 1 + type->bias) << type->mantissa) |
         (uint64_t)ldexp(fraction, type->mantissa);
}

/* Writes a small whole number as element `at`. */
static inline void put(void *buffer, size_t at, const type_info *type, unsigned number) {
  uint64_t bits = bits_of(type, number); /* little-endian */
  memcpy((char *)buffer + at * type->size, &bits, type->size);
}

/* Whether element `at` is that number, to the bit. */
static inline int is(const void *buffer, size_t at, const type_info *type, unsigned number) {
  uint64_t bits = bits_of(type, number);
  return memcmp((const char *)buffer + at * type->size, &bits, type->size) == 0;
}

#endif
