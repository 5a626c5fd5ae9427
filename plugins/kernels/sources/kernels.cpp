// Every kernel that plugins of accelerators load. The names are the contract with
// plugins/kernels/src/lib.rs: unisono_reduce_REDUCTION_TYPE, unisono_scale_TYPE, and the few below.

#include "device.h"
#include "reduce.h"

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

struct Pieces {
  u64 dst, src;
  u64 bytes; // of one piece
  u64 repeat;
  u64 dst_stride, src_stride;
};

struct alignas(16) Sixteen {
  u64 at[2];
};

// This thread's part of a copy, of `step` threads.
DEVICE void move(u64 to, u64 from, u64 bytes, u64 first, u64 step) {
  u8 *dst = range(to, bytes, WRITE);
  const u8 *src = range(from, bytes, READ);
  u64 vectors = (((u64)dst | (u64)src) & 15) == 0 ? bytes / 16 : 0;
  for (u64 i = first; i < vectors; i += step) {
    ((Sixteen *)dst)[i] = ((const Sixteen *)src)[i];
  }
  for (u64 i = vectors * 16 + first; i < bytes; i += step) {
    dst[i] = src[i];
  }
}

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

// A flag line and a counter, as in unisono_plugin.h.
struct Line {
  u64 counter;
  u64 words[3];
};
struct Counter {
  u64 value, seen;
};

// Where a stream tells its host that a flag carried other words than expected.
struct Found {
  u64 command; // its number, counted from 1; 0: none yet
  u64 words[3];
};

struct Flag {
  u64 flag, counter;
  u64 words[3];
  u64 value;   // of the counter, for `check`
  u64 found;   // address of Found
  u64 command; // what goes to Found
  u64 flags;   // 1: with words
};

DEVICE bool is_abort(u64 flag, u64 value) { return flag - value >= 1ull << 61 && (i64)(flag - value) >= 0; }

DEVICE void compare(const Flag &f, const Line *line, u64 seen, u64 value) {
  if (is_abort(seen, value)) {
    return;
  }
  u64 words[3];
  bool same = true;
#pragma unroll
  for (int i = 0; i < 3; i++) {
    words[i] = *(volatile const u64 *)&line->words[i];
    same &= words[i] == f.words[i];
  }
  Found *found = (Found *)range(f.found, sizeof(Found), WRITE);
  if (same || load_acquire(&found->command) != 0) {
    return;
  }
  for (int i = 0; i < 3; i++) {
    found->words[i] = words[i];
  }
  store_release(&found->command, f.command);
}

// One thread, behind a WAIT that the runtime itself did: compares the flag's words.
KERNEL(check, Flag) {
  const Line *line = (const Line *)range(arguments.flag, sizeof(Line), READ);
  compare(arguments, line, load_acquire(&line->counter), arguments.value);
}

// One thread: SIGNAL, in a recorded graph. The counter is in memory, so it can be replayed.
KERNEL(signal, Flag) {
  Counter *counter = (Counter *)range(arguments.counter, sizeof(Counter), WRITE);
  Line *line = (Line *)range(arguments.flag, sizeof(Line), WRITE);
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
  Counter *counter = (Counter *)range(arguments.counter, sizeof(Counter), WRITE);
  const Line *line = (const Line *)range(arguments.flag, sizeof(Line), READ);
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
  u64 *word = (u64 *)range(address, sizeof(u64), wait ? READ : WRITE);
  if (!wait) {
    fence_system();
    store_release(word, value);
    return;
  }
  while ((i64)(load_acquire(word) - value) < 0) {
    relax();
  }
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
  const Operation *all = (const Operation *)range(arguments.at, bytes, READ);
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
    const Line *line = (const Line *)range(address, sizeof(Line), READ);
    compare(flag, line, load_acquire(&line->counter), value);
    i += 2;
  }
}
