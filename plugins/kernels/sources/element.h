// Types of elements: how each is widened to the type in which it is computed, narrowed back, divided.

#ifndef UNISONO_KERNELS_ELEMENT_H
#define UNISONO_KERNELS_ELEMENT_H

#include "device.h"

template <class To, class From> DEVICE To bits(From from) { return __builtin_bit_cast(To, from); }

// Integers are reduced as unsigned, which wraps, and compared and divided in their own sign.
template <class Stored, class Wrapping> struct Integer {
  typedef Stored Bits;
  typedef Stored Wide;
  DEVICE Wide widen(Bits x) { return x; }
  DEVICE Bits narrow(Wide x) { return x; }
  DEVICE Wide add(Wide a, Wide b) { return (Wide)((Wrapping)a + (Wrapping)b); }
  DEVICE Wide multiply(Wide a, Wide b) { return (Wide)((Wrapping)a * (Wrapping)b); }
  DEVICE Wide least(Wide a, Wide b) { return a < b ? a : b; }
  DEVICE Wide most(Wide a, Wide b) { return a < b ? b : a; }
  // Toward zero. A signed type is divided in 64 bits: a divisor has 32, and no sign.
  DEVICE Wide divide(Wide x, u32 divisor) {
    if ((Wide)-1 < (Wide)0) {
      return (Wide)((i64)x / (i64)divisor);
    }
    return (Wide)((u64)x / divisor);
  }
};

// 16 bits wrap in 32: the product of two u16 would overflow the int that C++ makes of them.
typedef Integer<i8, u32> I8;
typedef Integer<u8, u32> U8;
typedef Integer<i16, u32> I16;
typedef Integer<u16, u32> U16;
typedef Integer<i32, u32> I32;
typedef Integer<u32, u32> U32;
typedef Integer<i64, u64> I64;
typedef Integer<u64, u64> U64;

// Floats: min and max give NaN if either is NaN, and order -0 before +0.
template <class Float, class Word> struct Floating {
  typedef Float Wide;
  DEVICE Wide add(Wide a, Wide b) { return a + b; }
  DEVICE Wide multiply(Wide a, Wide b) { return a * b; }
  DEVICE Wide least(Wide a, Wide b) {
    if (a != a || b != b) {
      return a + b;
    }
    return a < b ? a : b < a ? b : bits<Float>((Word)(bits<Word>(a) | bits<Word>(b)));
  }
  DEVICE Wide most(Wide a, Wide b) {
    if (a != a || b != b) {
      return a + b;
    }
    return a < b ? b : b < a ? a : bits<Float>((Word)(bits<Word>(a) & bits<Word>(b)));
  }
  DEVICE Wide divide(Wide x, u32 divisor) { return x / (Float)divisor; }
};

struct F32 : Floating<float, u32> {
  typedef float Bits;
  DEVICE float widen(Bits x) { return x; }
  DEVICE Bits narrow(float x) { return x; }
};

struct F64 : Floating<double, u64> {
  typedef double Bits;
  DEVICE double widen(Bits x) { return x; }
  DEVICE Bits narrow(double x) { return x; }
};

struct F16 : Floating<float, u32> {
  typedef _Float16 Bits;
  DEVICE float widen(Bits x) { return (float)x; }
  DEVICE Bits narrow(float x) { return (_Float16)x; }
};

// The upper half of a float, rounded to nearest even by hand: not every target has the instruction.
struct BF16 : Floating<float, u32> {
  typedef u16 Bits;
  DEVICE float widen(Bits x) { return bits<float>((u32)x << 16); }
  DEVICE Bits narrow(float x) {
    u32 word = bits<u32>(x);
    if (x != x) {
      return (Bits)(word >> 16 | 0x40);
    }
    return (Bits)((word + 0x7fff + (word >> 16 & 1)) >> 16);
  }
};

#endif
