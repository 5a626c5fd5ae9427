// Short steps of a batch, one after the other, by one block of threads: one launch in place of one for each copy,
// each reduction and each group of flags.

#ifndef UNISONO_KERNELS_STEPS_H
#define UNISONO_KERNELS_STEPS_H

#include "flag.h"
#include "move.h"
#include "reduce.h"

// What a step does, and what its numbers are.
enum StepKind {
  STEP_WAIT = 0,     // address, value: until what lies there is not behind it, cyclically
  STEP_EXPECT = 1,   // flag, value, found, command: the same, then its words are compared with the next step
  STEP_EXPECTED = 2, // three words: what the step before expects
  STEP_WORD = 3,     // address, value: stores a word that a later flag tells of
  STEP_FLAG = 4,     // address, value: stores it behind all that came before
  STEP_COPY = 5,     // dst, src, bytes
  STEP_REDUCE = 6,   // dst, a, b, elements; divisor, and above it the reduction and the type by their numbers
};

struct Step {
  u64 kind;
  u64 at[5];
};

struct Steps {
  u64 count;
  Step at[80];
};

// Waits, and compares; only the first thread of the block that finds other words tells of them.
DEVICE void expect(const Step &step, const Step &words, u32 *told) {
  wait_for(step.at[0], step.at[1]);
  const Line *line = (const Line *)range(step.at[0], sizeof(Line), READ_FLAG);
  u64 seen = load_acquire(&line->counter);
  if (is_abort(seen, step.at[1]) || has_words(line, words.at) || exchange(told, 1) != 0) {
    return;
  }
  tell(step.at[2], step.at[3], line);
}

// By the reduction's number in the contract.
template <class T>
DEVICE typename T::Bits combine_by(u32 reduction, typename T::Bits a, typename T::Bits b, u32 divisor) {
  switch (reduction) {
  case 1:
    return combine<T, Sum>(a, b, divisor);
  case 2:
    return combine<T, Prod>(a, b, divisor);
  case 3:
    return combine<T, Min>(a, b, divisor);
  case 4:
    return combine<T, Max>(a, b, divisor);
  }
  if constexpr (T::BITWISE) {
    switch (reduction) {
    case 5:
      return combine<T, And>(a, b, divisor);
    case 6:
      return combine<T, Or>(a, b, divisor);
    case 7:
      return combine<T, Xor>(a, b, divisor);
    }
  }
  return a;
}

// Short: what takes little to load is worth more here than what runs fast.
template <class T>
DEVICE void reduce_short(u64 to, u64 from_a, u64 from_b, u64 elements, u64 how, u64 first, u64 stride) {
  typedef typename T::Bits Bits;
  u64 bytes = elements * sizeof(Bits);
  u32 divisor = (u32)how, reduction = (u16)(how >> 32);
  Bits *dst = (Bits *)range(to, bytes, WRITE);
  const Bits *a = (const Bits *)range(from_a, bytes, READ);
  const Bits *b = (const Bits *)range(from_b, bytes, READ);
  auto combine = [=](Bits x, Bits y) { return combine_by<T>(reduction, x, y, divisor); };
  u64 vectors = (((u64)dst | (u64)a | (u64)b) & 15) == 0 ? elements / Vector<T>::LENGTH : 0;
#pragma clang loop unroll(disable)
  for (u64 i = first; i < vectors; i += stride) {
    Vector<T> x = ((const Vector<T> *)a)[i], y = ((const Vector<T> *)b)[i];
    ((Vector<T> *)dst)[i] = in_words<T>(x, y, combine);
  }
#pragma clang loop unroll(disable)
  for (u64 i = vectors * Vector<T>::LENGTH + first; i < elements; i += stride) {
    dst[i] = combine(a[i], b[i]);
  }
}

// By the type's number in the contract.
DEVICE void reduce_step(u64 dst, u64 a, u64 b, u64 elements, u64 how, u64 first, u64 stride) {
  switch (how >> 48) {
  case 1:
    return reduce_short<I8>(dst, a, b, elements, how, first, stride);
  case 2:
    return reduce_short<U8>(dst, a, b, elements, how, first, stride);
  case 3:
    return reduce_short<I16>(dst, a, b, elements, how, first, stride);
  case 4:
    return reduce_short<U16>(dst, a, b, elements, how, first, stride);
  case 5:
    return reduce_short<I32>(dst, a, b, elements, how, first, stride);
  case 6:
    return reduce_short<U32>(dst, a, b, elements, how, first, stride);
  case 7:
    return reduce_short<I64>(dst, a, b, elements, how, first, stride);
  case 8:
    return reduce_short<U64>(dst, a, b, elements, how, first, stride);
  case 9:
    return reduce_short<F16>(dst, a, b, elements, how, first, stride);
  case 10:
    return reduce_short<BF16>(dst, a, b, elements, how, first, stride);
  case 11:
    return reduce_short<F32>(dst, a, b, elements, how, first, stride);
  case 12:
    return reduce_short<F64>(dst, a, b, elements, how, first, stride);
  case 13:
    return reduce_short<F8E4M3FN>(dst, a, b, elements, how, first, stride);
  case 14:
    return reduce_short<F8E5M2>(dst, a, b, elements, how, first, stride);
  }
}

// The end of the steps from `i` on that are done at once, by a thread each.
DEVICE u64 end_of_run(const Steps &steps, u64 i) {
  u64 kind = steps.at[i].kind, end = i + 1;
  if (kind >= STEP_COPY) {
    return end;
  }
  bool waits = kind <= STEP_EXPECTED;
  while (end < steps.count && (waits ? steps.at[end].kind <= STEP_EXPECTED : steps.at[end].kind == kind)) {
    end++;
  }
  return end;
}

// Waits that follow each other are done at once by as many threads, and so are words; what moves data is done by all
// threads together. Flags are stored by one thread, in order, behind one fence.
DEVICE void run_steps(const Steps &steps) {
  SHARED u32 told;
  u64 thread = thread_index(), threads = thread_count();
  if (thread == 0) {
    told = 0;
  }
  block_barrier();
  for (u64 i = 0, end; i < steps.count; i = end) {
    const Step &step = steps.at[i];
    end = end_of_run(steps, i);
    switch (step.kind) {
    case STEP_WAIT:
    case STEP_EXPECT:
      for (u64 k = i + thread; k < end; k += threads) {
        if (steps.at[k].kind == STEP_WAIT) {
          wait_for(steps.at[k].at[0], steps.at[k].at[1]);
        } else if (steps.at[k].kind == STEP_EXPECT) {
          expect(steps.at[k], steps.at[k + 1], &told);
        }
      }
      break;
    case STEP_WORD:
      for (u64 k = i + thread; k < end; k += threads) {
        *(volatile u64 *)range(steps.at[k].at[0], sizeof(u64), WRITE_FLAG) = steps.at[k].at[1];
      }
      break;
    case STEP_FLAG:
      if (thread == 0) {
        fence_system();
        for (u64 k = i; k < end; k++) {
          *(volatile u64 *)range(steps.at[k].at[0], sizeof(u64), WRITE_FLAG) = steps.at[k].at[1];
        }
      }
      break;
    case STEP_COPY:
      move(step.at[0], step.at[1], step.at[2], thread, threads);
      break;
    case STEP_REDUCE:
      reduce_step(step.at[0], step.at[1], step.at[2], step.at[3], step.at[4], thread, threads);
      break;
    }
    block_barrier();
  }
}

#endif
