// Every kernel that plugins of accelerators load. The names are the contract with
// plugins/kernels/src/lib.rs: unisono_reduce_REDUCTION_TYPE, unisono_scale_TYPE, and the few below.

#include "device.h"
#include "flag.h"
#include "move.h"
#include "reduce.h"
#if !defined(__HIP__) // the plugin for AMD's devices uses none
#include "steps.h"
#endif

#define REDUCE(op, Op, type, Type)                                                                 \
  KERNEL(reduce_##op##_##type, Reduce) { reduce<Type, Op>(arguments); }
#define ORDERED(type, Type)                                                                        \
  REDUCE(sum, Sum, type, Type)                                                                     \
  REDUCE(prod, Prod, type, Type)                                                                   \
  REDUCE(min, Min, type, Type)                                                                     \
  REDUCE(max, Max, type, Type)                                                                     \
  KERNEL(scale_##type, Scale) { scale<Type>(arguments); }
#define BITWISE(type, Type)                                                                        \
  REDUCE(and, And, type, Type)                                                                     \
  REDUCE(or, Or, type, Type)                                                                       \
  REDUCE(xor, Xor, type, Type)
#define INTEGER(type, Type)                                                                        \
  ORDERED(type, Type)                                                                              \
  BITWISE(type, Type)

INTEGER(i8, I8)
INTEGER(u8, U8)
INTEGER(i16, I16)
INTEGER(u16, U16)
INTEGER(i32, I32)
INTEGER(u32, U32)
INTEGER(i64, I64)
INTEGER(u64, U64)
ORDERED(f16, F16)
ORDERED(bf16, BF16)
ORDERED(f32, F32)
ORDERED(f64, F64)
ORDERED(f8e4m3fn, F8E4M3FN)
ORDERED(f8e5m2, F8E5M2)

#if !defined(__HIP__)
KERNEL(steps, Steps) { run_steps(arguments); }
#endif

struct Pieces {
  u64 dst, src;
  u64 bytes; // of one piece
  u64 repeat;
  u64 dst_stride, src_stride;
};

// Pieces at strides that the runtime's own copies cannot take.
KERNEL(copy, Pieces) {
  u64 first = block_index() * thread_count() + thread_index();
  u64 step = block_count() * thread_count();
  for (u64 piece = row_index(); piece < arguments.repeat; piece += row_count()) {
    u64 dst = arguments.dst + piece * arguments.dst_stride;
    u64 src = arguments.src + piece * arguments.src_stride;
    move(dst, src, arguments.bytes, first, step);
  }
}

struct Apart {
  u64 dst, src, bytes;
};
struct Copies {
  u64 count;
  Apart at[8];
};

// Copies to several devices at once, each by a row of blocks: over as many links as there are rows, on one
// queue.
KERNEL(copies, Copies) {
  u64 first = block_index() * thread_count() + thread_index();
  u64 step = block_count() * thread_count();
  for (u64 row = row_index(); row < arguments.count && row < 8; row += row_count()) {
    move(arguments.at[row].dst, arguments.at[row].src, arguments.at[row].bytes, first, step);
  }
}

// One thread, behind a WAIT that the runtime itself did: compares the flag's words.
KERNEL(check, Flag) {
  const Line *line = (const Line *)range(arguments.flag, sizeof(Line), READ_FLAG);
  compare(arguments, line, load_acquire(&line->counter), arguments.value);
}

// One thread: SIGNAL, in a recorded graph. The counter is in memory, so it can be replayed.
KERNEL(signal, Flag) {
  Counter *counter = (Counter *)range(arguments.counter, sizeof(Counter), WRITE_FLAG);
  Line *line = (Line *)range(arguments.flag, sizeof(Line), WRITE_FLAG);
  u64 value = counter->value + 1;
  counter->value = value;
  fence_system();
  if (arguments.flags & 1) {
    for (int i = 0; i < 3; i++) {
      *(volatile u64 *)&line->words[i] = arguments.words[i];
    }
  }
  store_release(&line->counter, value);
}

// One thread: WAIT, in a recorded graph.
KERNEL(wait, Flag) {
  Counter *counter = (Counter *)range(arguments.counter, sizeof(Counter), WRITE_FLAG);
  const Line *line = (const Line *)range(arguments.flag, sizeof(Line), READ_FLAG);
  u64 value = counter->value + 1;
  counter->value = value;
  u64 seen = load_acquire(&line->counter);
  while ((i64)(seen - value) < 0) {
    relax();
    seen = load_acquire(&line->counter);
  }
  counter->seen = seen;
  if (arguments.flags & 1) {
    compare(arguments, line, seen, value);
  }
}

// Writes and waits of a runtime whose own cannot reach memory that processes share.
struct Operation {
  u64 wait; // 0: write
  u64 address, value;
};
struct Operations {
  u64 count;
  Operation at[8];
};

DEVICE void operate(u64 wait, u64 address, u64 value) {
  if (wait) {
    wait_for(address, value);
    return;
  }
  u64 *word = (u64 *)range(address, sizeof(u64), WRITE_FLAG);
  fence_system();
  store_release(word, value);
}

// One thread: one operation after another.
KERNEL(operate, Operations) {
  for (u64 i = 0; i < arguments.count && i < 8; i++) {
    operate(arguments.at[i].wait, arguments.at[i].address, arguments.at[i].value);
  }
}

// Operations in memory: a graph has their address, and the host writes others there for each launch.
// One with `wait` 2 begins three that compare a flag's words: {2, flag, value}, {words}, {found, command, 0}.
struct Table {
  u64 at, count;
};

// What the host wrote before this launch, not what an earlier one left in a cache.
DEVICE u64 fresh(const u64 *at) { return *(const volatile u64 *)at; }

// One thread: one operation of a table after another.
KERNEL(replay, Table) {
  u64 bytes = arguments.count * sizeof(Operation);
  const Operation *all = (const Operation *)range(arguments.at, bytes, READ_FLAG);
  for (u64 i = 0; i < arguments.count; i++) {
    u64 wait = fresh(&all[i].wait);
    u64 address = fresh(&all[i].address), value = fresh(&all[i].value);
    if (wait < 2) {
      operate(wait, address, value);
      continue;
    }
    const u64 *rest = &all[i + 1].wait;
    Flag flag;
    for (int word = 0; word < 3; word++) {
      flag.words[word] = fresh(&rest[word]);
    }
    flag.found = fresh(&rest[3]);
    flag.command = fresh(&rest[4]);
    const Line *line = (const Line *)range(address, sizeof(Line), READ_FLAG);
    compare(flag, line, load_acquire(&line->counter), value);
    i += 2;
  }
}
