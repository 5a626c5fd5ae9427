// Types of elements: how each is widened to the type in which it is computed, narrowed back, divided.

#ifndef UNISONO_KERNELS_ELEMENT_H
#define UNISONO_KERNELS_ELEMENT_H

#include "device.h"

template <class To, class From> DEVICE To bits(From from) { return __builtin_bit_cast(To, from); }

// Integers are reduced as unsigned, which wraps, and compared and divided in their own sign.
template <class Stored, class Wrapping> struct Integer {
  typedef Stored Bits;
  typedef Stored Wide;
  static constexpr bool LONG = false;
  static constexpr bool BITWISE = true;
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
  static constexpr bool LONG = false;
  static constexpr bool BITWISE = false;
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

// Floats of 8 bits (OCP FP8), computed as float, rounded to nearest even. LARGEST is what a finite value
// that is too large becomes: infinity, or the largest finite value where there is no infinity. Magnitudes
// from SPECIAL on are no numbers, or infinity if they are SPECIAL alone.
template <u32 EXPONENT, u32 MANTISSA, u32 LARGEST, u32 SPECIAL, u32 NOT_A_NUMBER>
struct Float8 : Floating<float, u32> {
  typedef u8 Bits;
  static constexpr bool LONG = true;
  static constexpr u32 SHIFT = 23 - MANTISSA;
  static constexpr u32 BIAS = 127 - ((1u << (EXPONENT - 1)) - 1);
  DEVICE float widen(Bits x) {
    u32 magnitude = x & 0x7fu, sign = (u32)(x >> 7) << 31;
    if (magnitude >= SPECIAL) {
      bool infinite = SPECIAL != NOT_A_NUMBER && magnitude == SPECIAL;
      return bits<float>(sign | (infinite ? 0x7f800000u : 0x7fc00000u));
    }
    if (magnitude < 1u << MANTISSA) {
      // A multiple of the smallest step: exact, and no subnormal float.
      float step = bits<float>((BIAS + 1 - MANTISSA) << 23);
      return bits<float>(bits<u32>((float)magnitude * step) | sign);
    }
    return bits<float>(sign | ((magnitude << SHIFT) + (BIAS << 23)));
  }
  DEVICE Bits narrow(float value) {
    u32 word = bits<u32>(value), sign = word >> 31 << 7, magnitude = word & 0x7fffffffu;
    if (value != value) {
      return (Bits)(sign | NOT_A_NUMBER);
    }
    u32 rounded;
    if (magnitude < (BIAS + 1) << 23) {
      // Added to a float whose last place is the smallest step, it is rounded by the addition.
      u32 step = (BIAS + 1 + SHIFT) << 23;
      rounded = bits<u32>(bits<float>(magnitude) + bits<float>(step)) - step;
    } else {
      u32 odd = magnitude >> SHIFT & 1;
      rounded = (magnitude - (BIAS << 23) + (1u << (SHIFT - 1)) - 1 + odd) >> SHIFT;
      rounded = rounded < LARGEST ? rounded : LARGEST;
    }
    return (Bits)(sign | rounded);
  }
};

typedef Float8<4, 3, 0x7e, 0x7f, 0x7f> F8E4M3FN; // saturates
typedef Float8<5, 2, 0x7c, 0x7c, 0x7e> F8E5M2;

#endif
