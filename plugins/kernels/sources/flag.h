// Flags: lines that one side raises and another waits for.

#ifndef UNISONO_KERNELS_FLAG_H
#define UNISONO_KERNELS_FLAG_H

#include "device.h"

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

DEVICE bool has_words(const Line *line, const u64 *words) {
  bool same = true;
#pragma unroll
  for (int i = 0; i < 3; i++) {
    same &= *(volatile const u64 *)&line->words[i] == words[i];
  }
  return same;
}

// Tells the host of the words of a line, unless it was told of others before.
DEVICE void tell(u64 where, u64 command, const Line *line) {
  Found *found = (Found *)range(where, sizeof(Found), WRITE_FLAG);
  if (load_acquire(&found->command) != 0) {
    return;
  }
#pragma unroll
  for (int i = 0; i < 3; i++) {
    found->words[i] = *(volatile const u64 *)&line->words[i];
  }
  store_release(&found->command, command);
}

DEVICE void compare(const Flag &f, const Line *line, u64 seen, u64 value) {
  if (!is_abort(seen, value) && !has_words(line, f.words)) {
    tell(f.found, f.command, line);
  }
}

// Until what lies there is not behind a number, cyclically.
DEVICE void wait_for(u64 address, u64 value) {
  const u64 *word = (const u64 *)range(address, sizeof(u64), READ_FLAG);
  while ((i64)(load_acquire(word) - value) < 0) {
    relax();
  }
}

#endif
