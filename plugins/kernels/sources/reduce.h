// dst[i] = a[i] op b[i], divided if asked, and dst[i] = src[i] * factor, for pieces at strides.

#ifndef UNISONO_KERNELS_REDUCE_H
#define UNISONO_KERNELS_REDUCE_H

#include "element.h"

struct Reduce {
  u64 dst, a, b;
  u64 elements; // of one piece
  u64 repeat;
  u64 dst_stride, a_stride, b_stride; // bytes
  u32 divisor;                        // 0: do not divide
  u32 reserved;
};

struct Sum {
  template <class T> DEVICE typename T::Wide apply(typename T::Wide a, typename T::Wide b) {
    return T::add(a, b);
  }
};
struct Prod {
  template <class T> DEVICE typename T::Wide apply(typename T::Wide a, typename T::Wide b) {
    return T::multiply(a, b);
  }
};
struct Min {
  template <class T> DEVICE typename T::Wide apply(typename T::Wide a, typename T::Wide b) {
    return T::least(a, b);
  }
};
struct Max {
  template <class T> DEVICE typename T::Wide apply(typename T::Wide a, typename T::Wide b) {
    return T::most(a, b);
  }
};
struct And {
  template <class T> DEVICE typename T::Wide apply(typename T::Wide a, typename T::Wide b) {
    return a & b;
  }
};
struct Or {
  template <class T> DEVICE typename T::Wide apply(typename T::Wide a, typename T::Wide b) {
    return a | b;
  }
};
struct Xor {
  template <class T> DEVICE typename T::Wide apply(typename T::Wide a, typename T::Wide b) {
    return a ^ b;
  }
};

template <class T, class Op>
DEVICE typename T::Bits combine(typename T::Bits a, typename T::Bits b, u32 divisor) {
  typename T::Wide wide = Op::template apply<T>(T::widen(a), T::widen(b));
  return T::narrow(divisor ? T::divide(wide, divisor) : wide);
}

// dst[i] = src[i] * factor, for pieces at strides.
struct Scale {
  u64 dst, src;
  u64 elements; // of one piece
  u64 repeat;
  u64 dst_stride, src_stride; // bytes
  u64 factor;                 // one element, in the first bytes
};

// What one thread loads and stores at once.
template <class T> struct alignas(16) Vector {
  static constexpr u64 LENGTH = 16 / sizeof(typename T::Bits);
  typename T::Bits at[LENGTH];
};

struct Words {
  u64 at[2];
};

// Unsigned, of so many bytes.
template <u64 BYTES> struct Raw;
template <> struct Raw<1> {
  typedef u8 Type;
};
template <> struct Raw<2> {
  typedef u16 Type;
};
template <> struct Raw<4> {
  typedef u32 Type;
};
template <> struct Raw<8> {
  typedef u64 Type;
};

// Elements of two vectors, combined in a loop within words.
template <class T, class Combine>
DEVICE Vector<T> in_words(const Vector<T> &x, const Vector<T> &y, Combine combine) {
  typedef typename T::Bits Bits;
  typedef typename Raw<sizeof(Bits)>::Type Bare;
  Words a = bits<Words>(x), b = bits<Words>(y), z;
#pragma unroll
  for (int w = 0; w < 2; w++) {
    u64 word = 0;
#pragma clang loop unroll(disable)
    for (u32 shift = 0; shift < 64; shift += 8 * sizeof(Bits)) {
      Bits one = combine(bits<Bits>((Bare)(a.at[w] >> shift)), bits<Bits>((Bare)(b.at[w] >> shift)));
      word |= (u64)bits<Bare>(one) << shift;
    }
    z.at[w] = word;
  }
  return bits<Vector<T>>(z);
}

// Types whose arithmetic is long are computed in a loop: unrolled, they would be most of what assemblers and devices
// have to load.
template <class T, class Op>
DEVICE Vector<T> combine_vectors(const Vector<T> &x, const Vector<T> &y, u32 divisor) {
  if constexpr (T::LONG) {
    typedef typename T::Bits Bits;
    return in_words<T>(x, y, [=](Bits a, Bits b) { return combine<T, Op>(a, b, divisor); });
  } else {
    Vector<T> z;
#pragma unroll
    for (u64 k = 0; k < Vector<T>::LENGTH; k++) {
      z.at[k] = combine<T, Op>(x.at[k], y.at[k], divisor);
    }
    return z;
  }
}

template <class T, class Op> DEVICE void reduce(const Reduce &r) {
  typedef typename T::Bits Bits;
  u64 first = block_index() * thread_count() + thread_index();
  u64 step = block_count() * thread_count();
  u64 bytes = r.elements * sizeof(Bits);
  for (u64 piece = row_index(); piece < r.repeat; piece += row_count()) {
    Bits *dst = (Bits *)range(r.dst + piece * r.dst_stride, bytes, WRITE);
    const Bits *a = (const Bits *)range(r.a + piece * r.a_stride, bytes, READ);
    const Bits *b = (const Bits *)range(r.b + piece * r.b_stride, bytes, READ);
    u64 vectors = (((u64)dst | (u64)a | (u64)b) & 15) == 0 ? r.elements / Vector<T>::LENGTH : 0;
    for (u64 i = first; i < vectors; i += step) {
      Vector<T> x = ((const Vector<T> *)a)[i];
      Vector<T> y = ((const Vector<T> *)b)[i];
      ((Vector<T> *)dst)[i] = combine_vectors<T, Op>(x, y, r.divisor);
    }
    for (u64 i = vectors * Vector<T>::LENGTH + first; i < r.elements; i += step) {
      dst[i] = combine<T, Op>(a[i], b[i], r.divisor);
    }
  }
}

template <class T> DEVICE void scale(const Scale &r) {
  typedef typename T::Bits Bits;
  Bits factor = *(const Bits *)&r.factor;
  u64 first = block_index() * thread_count() + thread_index();
  u64 step = block_count() * thread_count();
  u64 bytes = r.elements * sizeof(Bits);
  for (u64 piece = row_index(); piece < r.repeat; piece += row_count()) {
    Bits *dst = (Bits *)range(r.dst + piece * r.dst_stride, bytes, WRITE);
    const Bits *src = (const Bits *)range(r.src + piece * r.src_stride, bytes, READ);
    for (u64 i = first; i < r.elements; i += step) {
      dst[i] = combine<T, Prod>(src[i], factor, 0);
    }
  }
}

#endif
