// Bytes from one place to another.

#ifndef UNISONO_KERNELS_MOVE_H
#define UNISONO_KERNELS_MOVE_H

#include "device.h"

typedef u64 Sixteen __attribute__((vector_size(16)));

// Units of one width, by one of `step` threads; four under way at once. How many there are in all.
template <class Unit> DEVICE u64 move_units(u8 *to, const u8 *from, u64 bytes, u64 first, u64 step) {
  Unit *dst = (Unit *)to;
  const Unit *src = (const Unit *)from;
  u64 units = bytes / sizeof(Unit), i = first;
  for (; i + 3 * step < units; i += 4 * step) {
    Unit a = src[i], b = src[i + step], c = src[i + 2 * step], d = src[i + 3 * step];
    dst[i] = a;
    dst[i + step] = b;
    dst[i + 2 * step] = c;
    dst[i + 3 * step] = d;
  }
  for (; i < units; i += step) {
    dst[i] = src[i];
  }
  return units * sizeof(Unit);
}

// This thread's part of a copy, of `step` threads.
DEVICE void move(u64 to, u64 from, u64 bytes, u64 first, u64 step) {
  u8 *dst = range(to, bytes, WRITE);
  const u8 *src = range(from, bytes, READ);
  u64 places = (u64)dst | (u64)src, done = 0;
  if ((places & 15) == 0) {
    done = move_units<Sixteen>(dst, src, bytes, first, step);
  } else if ((places & 3) == 0) {
    done = move_units<u32>(dst, src, bytes, first, step);
  }
  for (u64 i = done + first; i < bytes; i += step) {
    dst[i] = src[i];
  }
}

#endif
