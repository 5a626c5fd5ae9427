/* Every operation in C, on every type, with every reduction, in place and out, with groups: ranks are
 * threads of this process. Each result is compared with one that is worked out here.
 *
 *     operations COUNT RANKS...       elements of a block; numbers of ranks */

#define _POSIX_C_SOURCE 200809L

#include <pthread.h>

#include "common.h"

enum { MOST = 16 };

/* One rank, and what it works with. */
typedef struct rank_state {
  unisono_comm *comm;
  uint32_t rank, size;
  size_t count;
  const type_info *type;
  char *send, *recv; /* room for size + 1 blocks of count + MOST elements of 8 bytes */
  unsigned long calls;
} rank_state;

static size_t room(const rank_state *s) { return (s->size + 1) * (s->count + MOST) * 8; }

/* Element `at` of what is at `buffer`. */
static char *element(const rank_state *s, char *buffer, size_t at) {
  return buffer + at * s->type->size;
}

/* ---------------------------------------------------------------- what moves ----------------- */

/* Element `at` of rank `rank`'s input: small enough for every type, and different nearly everywhere. */
static unsigned moved(uint32_t rank, size_t at) { return (unsigned)((rank * 3 + at * 5 + at / 7) % 8); }

static void fill(rank_state *s, char *buffer, size_t from, size_t count, uint32_t rank, size_t at) {
  for (size_t i = 0; i < count; i++) put(buffer, from + i, s->type, moved(rank, at + i));
}

static void expect(rank_state *s, const char *buffer, size_t from, size_t count, uint32_t rank,
                   size_t at) {
  for (size_t i = 0; i < count; i++) EXPECT(is(buffer, from + i, s->type, moved(rank, at + i)));
  s->calls++;
}

static void moving(rank_state *s, int in_place) {
  const unisono_datatype t = s->type->type;
  const size_t n = s->count, whole = n * s->size;
  char *mine = in_place ? element(s, s->recv, s->rank * n) : s->send;

  memset(s->recv, 0x55, room(s));
  fill(s, mine, 0, n, s->rank, 0);
  CHECK(unisono_all_gather(mine, s->recv, n, t, s->comm));
  for (uint32_t r = 0; r < s->size; r++) expect(s, s->recv, r * n, n, r, 0);

  for (uint32_t root = 0; root < s->size; root += s->size > 1 ? s->size - 1 : 1) {
    const int is_root = s->rank == root;
    char *out = in_place ? s->send : s->recv;
    memset(out, 0x55, n * s->type->size);
    if (is_root) fill(s, s->send, 0, n, root, 1);
    CHECK(unisono_broadcast(is_root ? s->send : NULL, out, n, t, root, s->comm));
    expect(s, out, 0, n, root, 1);

    memset(s->recv, 0x55, room(s));
    mine = in_place && is_root ? element(s, s->recv, root * n) : s->send;
    fill(s, mine, 0, n, s->rank, 2);
    CHECK(unisono_gather(mine, is_root ? s->recv : NULL, n, t, root, s->comm));
    for (uint32_t r = 0; is_root && r < s->size; r++) expect(s, s->recv, r * n, n, r, 2);

    if (is_root) fill(s, s->send, 0, whole, root, 3);
    mine = in_place && is_root ? element(s, s->send, root * n) : s->recv;
    CHECK(unisono_scatter(is_root ? s->send : NULL, mine, n, t, root, s->comm));
    expect(s, mine, 0, n, root, 3 + s->rank * n);
  }

  mine = in_place ? s->recv : s->send;
  memset(s->recv, 0x55, room(s));
  fill(s, mine, 0, whole, s->rank, 4);
  CHECK(unisono_all_to_all(mine, s->recv, n, t, s->comm));
  for (uint32_t r = 0; r < s->size; r++) expect(s, s->recv, r * n, n, r, 4 + s->rank * n);
}

/* Blocks of unequal lengths: what rank r gives where each gives one. */
static size_t share(const rank_state *s, uint32_t r) { return (s->count + 3 * r) % (s->count + 5); }

/* What rank `from` sends to rank `to`: nothing, to some. */
static size_t pair(const rank_state *s, uint32_t from, uint32_t to) {
  return (from + 2 * to) % 3 == 0 ? 0 : (s->count + from + 2 * to) % (s->count + 3);
}

static void moving_v(rank_state *s, int in_place) {
  const unisono_datatype t = s->type->type;
  size_t counts[MOST], sent[MOST], received[MOST], before = 0, at = 0;
  for (uint32_t r = 0; r < s->size; r++) {
    counts[r] = share(s, r);
    sent[r] = pair(s, s->rank, r);
    received[r] = pair(s, r, s->rank);
    if (r < s->rank) before += counts[r];
  }
  char *mine = in_place ? element(s, s->recv, before) : s->send;
  memset(s->recv, 0x55, room(s));
  fill(s, mine, 0, counts[s->rank], s->rank, 5);
  CHECK(unisono_all_gather_v(mine, s->recv, counts, t, s->comm));
  for (uint32_t r = 0; r < s->size; at += counts[r++]) expect(s, s->recv, at, counts[r], r, 5);
  if (in_place) return;

  at = 0;
  for (uint32_t r = 0; r < s->size; at += sent[r++]) fill(s, s->send, at, sent[r], s->rank, r);
  CHECK(unisono_all_to_all_v(s->send, sent, s->recv, received, t, s->comm));
  at = 0;
  for (uint32_t r = 0; r < s->size; at += received[r++])
    expect(s, s->recv, at, received[r], r, s->rank);
}

/* ---------------------------------------------------------------- what is reduced ------------ */

/* The program's own: the first that is not zero, which does not commute; and the larger, which does. */
static void first_of(void *context, void *dst, const void *a, const void *b, uint64_t elements) {
  const type_info *type = context;
  static const char zero[8];
  for (uint64_t i = 0; i < elements; i++) {
    const size_t at = i * type->size;
    const int none = memcmp((const char *)a + at, zero, type->size) == 0;
    memmove((char *)dst + at, (const char *)(none ? b : a) + at, type->size);
  }
}

/* Positive numbers are ordered like their bits. */
static void larger_of(void *context, void *dst, const void *a, const void *b, uint64_t elements) {
  const type_info *type = context;
  for (uint64_t i = 0; i < elements; i++) {
    uint64_t x = 0, y = 0;
    const size_t at = i * type->size;
    memcpy(&x, (const char *)a + at, type->size);
    memcpy(&y, (const char *)b + at, type->size);
    memcpy((char *)dst + at, x < y ? &y : &x, type->size);
  }
}

enum { SCALED = UNISONO_REDUCE_XOR + 1, FIRST, LARGER, KINDS };

/* What rank `rank` gives: sums and products of it are exact in every type. */
static unsigned operand(int kind, uint32_t rank, uint32_t size, size_t at) {
  switch (kind) {
    case UNISONO_REDUCE_SUM: return (unsigned)((rank + at) % 2);
    case UNISONO_REDUCE_PROD: return rank < 5 ? 1 + (unsigned)((rank + at) % 2) : 1;
    case UNISONO_REDUCE_AVG: /* not every type can write 9, 11, 13 and 15 */
      return rank == at % size && (size <= 8 || size % 2 == 0) ? size * (unsigned)(at % 2) : 0;
    case SCALED: return rank < 2 ? (unsigned)((rank + at) % 2) : 0;
    case FIRST: return (rank + at) % 3 == 0 ? 1 + rank % 7 : 0;
    default: return moved(rank, at);
  }
}

static unsigned folded(int kind, uint32_t size, size_t at) {
  unsigned all = operand(kind, 0, size, at);
  for (uint32_t r = 1; r < size; r++) {
    const unsigned x = operand(kind, r, size, at);
    switch (kind) {
      case UNISONO_REDUCE_PROD: all *= x; break;
      case UNISONO_REDUCE_MIN: all = x < all ? x : all; break;
      case UNISONO_REDUCE_MAX:
      case LARGER: all = x > all ? x : all; break;
      case UNISONO_REDUCE_AND: all &= x; break;
      case UNISONO_REDUCE_OR: all |= x; break;
      case UNISONO_REDUCE_XOR: all ^= x; break;
      case FIRST: all = all ? all : x; break;
      case SCALED: all += (1 + r % 2) * x; break;
      default: all += x;
    }
  }
  return kind == UNISONO_REDUCE_AVG ? all / size : all;
}

static void give(rank_state *s, char *buffer, int kind, size_t count) {
  for (size_t i = 0; i < count; i++) put(buffer, i, s->type, operand(kind, s->rank, s->size, i));
}

static void expect_folded(rank_state *s, const char *buffer, int kind, size_t from, size_t count) {
  for (size_t i = 0; i < count; i++)
    EXPECT(is(buffer, i, s->type, folded(kind, s->size, from + i)));
  s->calls++;
}

static void reducing(rank_state *s, int kind, unisono_reduction op, int in_place) {
  const unisono_datatype t = s->type->type;
  const size_t n = s->count;
  char *out = in_place ? s->send : s->recv;
  size_t counts[MOST], before = 0, whole = 0;

  give(s, s->send, kind, n);
  CHECK(unisono_all_reduce(s->send, out, n, t, op, s->comm));
  expect_folded(s, out, kind, 0, n);

  for (uint32_t root = 0; root < s->size; root += s->size > 1 ? s->size - 1 : 1) {
    give(s, s->send, kind, n);
    CHECK(unisono_reduce(s->send, s->rank == root ? out : NULL, n, t, op, root, s->comm));
    if (s->rank == root) expect_folded(s, out, kind, 0, n);
  }

  give(s, s->send, kind, n * s->size);
  out = in_place ? element(s, s->send, s->rank * n) : s->recv;
  CHECK(unisono_reduce_scatter(s->send, out, n, t, op, s->comm));
  expect_folded(s, out, kind, s->rank * n, n);

  for (uint32_t r = 0; r < s->size; r++) {
    counts[r] = share(s, r);
    whole += counts[r];
    if (r < s->rank) before += counts[r];
  }
  give(s, s->send, kind, whole);
  out = in_place ? element(s, s->send, before) : s->recv;
  CHECK(unisono_reduce_scatter_v(s->send, out, counts, t, op, s->comm));
  expect_folded(s, out, kind, before, counts[s->rank]);
}

static void every_reduction(rank_state *s, int in_place) {
  const unisono_datatype t = s->type->type;
  uint64_t factor = bits_of(s->type, 1 + s->rank % 2);
  unisono_reduction made[3];
  void *context = (void *)(uintptr_t)s->type;
  CHECK(unisono_reduction_create_pre_mul_sum(&made[0], &factor, t, s->comm));
  CHECK(unisono_reduction_create_user(&made[1], first_of, context, t, UNISONO_ORDER_RANKS, s->comm));
  CHECK(unisono_reduction_create_user(&made[2], larger_of, context, t, UNISONO_ORDER_ANY, s->comm));
  for (int kind = UNISONO_REDUCE_SUM; kind < KINDS; kind++) {
    const int bitwise = kind >= UNISONO_REDUCE_AND && kind <= UNISONO_REDUCE_XOR;
    if (bitwise && s->type->mantissa >= 0) {
      EXPECT(unisono_all_reduce(s->send, s->recv, 1, t, kind, s->comm) == UNISONO_INVALID_ARGUMENT);
      continue;
    }
    reducing(s, kind, kind < SCALED ? kind : made[kind - SCALED], in_place);
  }
  for (int i = 0; i < 3; i++) CHECK(unisono_reduction_destroy(made[i], s->comm));
  EXPECT(unisono_all_reduce(s->send, s->recv, 1, t, made[0], s->comm) == UNISONO_INVALID_ARGUMENT);
  EXPECT(unisono_reduction_destroy(made[0], s->comm) == UNISONO_INVALID_ARGUMENT);
}

/* ---------------------------------------------------------------- forms ---------------------- */

/* Every operation in its form that returns at once. */
static void started(rank_state *s) {
  enum { CALLS = 14 };
  uint8_t in[CALLS][MOST], out[CALLS][MOST];
  unisono_work *work[CALLS + 1];
  const unisono_datatype t = UNISONO_UINT8;
  const unisono_reduction sum = UNISONO_REDUCE_SUM;
  size_t ones[MOST];
  int calls = 0;
  const uint32_t next = (s->rank + 1) % s->size, last = (s->rank + s->size - 1) % s->size;
  for (uint32_t r = 0; r < MOST; r++) {
    ones[r] = 1;
    for (int i = 0; i < CALLS; i++) in[i][r] = (uint8_t)(10 * s->rank + r);
  }
#define START(name, ...) CHECK(unisono_##name##_start(__VA_ARGS__, s->comm, &work[calls++]))
  START(all_reduce, in[0], out[0], 1, t, sum);
  START(reduce, in[1], out[1], 1, t, sum, 0);
  START(reduce_scatter, in[2], out[2], 1, t, sum);
  START(reduce_scatter_v, in[3], out[3], ones, t, sum);
  START(all_gather, in[4], out[4], 1, t);
  START(all_gather_v, in[5], out[5], ones, t);
  START(broadcast, in[6], out[6], 1, t, 0);
  START(gather, in[7], out[7], 1, t, 0);
  START(scatter, in[8], out[8], 1, t, 0);
  START(all_to_all, in[9], out[9], 1, t);
  START(all_to_all_v, in[10], ones, out[10], ones, t);
  if (s->size > 1 && s->rank % 2 == 0) {
    if (next != 0) START(send, in[11], 1, t, next);
  } else if (s->size > 1) {
    START(recv, out[11], 1, t, last);
  }
  CHECK(unisono_barrier_start(s->comm, &work[calls++]));
  for (int i = calls; i-- > 0;) {
    int32_t done = -1;
    CHECK(unisono_work_wait(work[i]));
    CHECK(unisono_work_test(work[i], &done));
    EXPECT(done == 1);
    CHECK(unisono_work_free(work[i]));
  }
  const uint8_t sums = (uint8_t)(10 * s->size * (s->size - 1) / 2);
  EXPECT(out[0][0] == sums && (s->rank != 0 || out[1][0] == sums));
  EXPECT(out[2][0] == (uint8_t)(sums + s->size * s->rank) && out[3][0] == out[2][0]);
  EXPECT(out[6][0] == 0 && out[8][0] == s->rank);
  for (uint32_t r = 0; r < s->size; r++) {
    EXPECT(out[4][r] == 10 * r && out[5][r] == 10 * r);
    EXPECT(s->rank != 0 || out[7][r] == 10 * r);
    EXPECT(out[9][r] == 10 * r + s->rank && out[10][r] == out[9][r]);
  }
  EXPECT(s->rank % 2 == 0 || out[11][0] == 10 * last);
  s->calls += (unsigned long)calls;
}

/* Messages around a ring and a collective, in one group; and what is wrong in one. */
static void grouped(rank_state *s) {
  int32_t mine = (int32_t)s->rank, theirs = -1, sum = 0, both[2];
  const uint32_t next = (s->rank + 1) % s->size, last = (s->rank + s->size - 1) % s->size;
  unisono_work *work;
  CHECK(unisono_group_start());
  if (s->size > 1) {
    CHECK(unisono_send(&mine, 1, UNISONO_INT32, next, s->comm));
    CHECK(unisono_group_start());
    CHECK(unisono_recv(&theirs, 1, UNISONO_INT32, last, s->comm));
    CHECK(unisono_group_end());
  }
  CHECK(unisono_all_reduce(&mine, &sum, 1, UNISONO_INT32, UNISONO_REDUCE_SUM, s->comm));
  EXPECT(sum == 0 && theirs == -1); /* nothing is started before the end */
  CHECK(unisono_group_end());
  EXPECT(sum == (int32_t)(s->size * (s->size - 1) / 2));
  EXPECT(s->size == 1 || theirs == (int32_t)last);
  s->calls += 3;

  EXPECT(unisono_group_end() == UNISONO_INVALID_ARGUMENT);
  EXPECT(strstr(unisono_last_error(), "no group"));
  CHECK(unisono_group_start());
  CHECK(unisono_barrier(s->comm));
  EXPECT(unisono_all_gather(NULL, both, 1, UNISONO_INT32, s->comm) == UNISONO_INVALID_ARGUMENT);
  CHECK(unisono_barrier(s->comm));
  EXPECT(unisono_barrier_start(s->comm, &work) == UNISONO_INVALID_ARGUMENT);
  EXPECT(unisono_comm_destroy(s->comm) == UNISONO_INVALID_ARGUMENT);
  EXPECT(unisono_group_end() == UNISONO_INVALID_ARGUMENT);
  EXPECT(strstr(unisono_last_error(), "all_gather: send is NULL (call 2 of the group)"));
  /* What the engine alone can see is found at the end. */
  CHECK(unisono_group_start());
  CHECK(unisono_barrier(s->comm));
  CHECK(unisono_broadcast(&mine, &mine, 1, UNISONO_INT32, s->size, s->comm));
  EXPECT(unisono_group_end() == UNISONO_INVALID_ARGUMENT);
  EXPECT(strstr(unisono_last_error(), "call 2 of the group"));
}

static void *rank_main(void *argument) {
  rank_state *s = argument;
  for (int in_place = 0; in_place < 2; in_place++) {
    for (int type = 0; type < TYPE_COUNT; type++) {
      s->type = &TYPES[type];
      moving(s, in_place);
      moving_v(s, in_place);
      every_reduction(s, in_place);
    }
  }
  started(s);
  grouped(s);
  return NULL;
}

/* One thread is all ranks: a group holds what each of them calls. */
static void one_thread(unisono_comm *const *comms, uint32_t size) {
  int64_t mine[MOST], sums[MOST];
  CHECK(unisono_group_start());
  for (uint32_t r = 0; r < size; r++) {
    mine[r] = (int64_t)r + 1;
    CHECK(unisono_all_reduce(&mine[r], &sums[r], 1, UNISONO_INT64, UNISONO_REDUCE_PROD, comms[r]));
  }
  CHECK(unisono_group_end());
  for (uint32_t r = 1; r < size; r++) EXPECT(sums[r] == sums[r - 1] && sums[r] >= (int64_t)size);
}

/* What a configuration says counts: here a deadline; and what is wrong in it is told. */
static void configured(void) {
  unisono_config config = UNISONO_CONFIG_INIT;
  const unisono_config *configs[2] = {&config, &config};
  unisono_comm *comms[2];
  unisono_work *work;
  config.name = "pair";
  config.deterministic = 1;
  config.op_timeout_ms = 200;
  config.init_timeout_ms = 20000;
  CHECK(unisono_comm_init_all(comms, 2, configs));
  CHECK(unisono_barrier_start(comms[0], &work));
  EXPECT(unisono_work_wait(work) == UNISONO_TIMED_OUT);
  EXPECT(strstr(unisono_last_error(), "200"));
  CHECK(unisono_work_free(work));
  for (int r = 0; r < 2; r++) CHECK(unisono_comm_destroy(comms[r]));
  config.device = "nothing:0";
  EXPECT(unisono_comm_init_all(comms, 2, configs) == UNISONO_INVALID_ARGUMENT);
  EXPECT(strstr(unisono_last_error(), "nothing"));
  config.device = NULL;
  config.deterministic = 7;
  EXPECT(unisono_comm_init_all(comms, 2, configs) == UNISONO_INVALID_ARGUMENT);
  config.deterministic = 0;
  config.size = 3;
  EXPECT(unisono_comm_init_all(comms, 2, configs) == UNISONO_INVALID_ARGUMENT);
  EXPECT(unisono_comm_init_all(comms, 0, NULL) == UNISONO_INVALID_ARGUMENT);
}

static unsigned long run(size_t count, uint32_t size) {
  static unisono_config config = UNISONO_CONFIG_INIT;
  const unisono_config *configs[MOST] = {&config, NULL};
  unisono_comm *comms[MOST];
  rank_state states[MOST];
  pthread_t threads[MOST];
  unsigned long calls = 0;
  CHECK(unisono_comm_init_all(comms, size, size % 2 ? configs : NULL));
  one_thread(comms, size);
  for (uint32_t r = 0; r < size; r++) {
    rank_state *s = &states[r];
    memset(s, 0, sizeof *s);
    s->comm = comms[r];
    CHECK(unisono_comm_rank(s->comm, &s->rank));
    CHECK(unisono_comm_size(s->comm, &s->size));
    EXPECT(s->rank == r && s->size == size);
    s->count = count;
    s->send = malloc(room(s));
    s->recv = malloc(room(s));
    EXPECT(s->send && s->recv);
    EXPECT(pthread_create(&threads[r], NULL, rank_main, s) == 0);
  }
  for (uint32_t r = 0; r < size; r++) {
    EXPECT(pthread_join(threads[r], NULL) == 0);
    calls += states[r].calls;
    free(states[r].send);
    free(states[r].recv);
  }
  CHECK(unisono_comm_finalize_all(comms, size));
  return calls;
}

int main(int argc, char **argv) {
  unsigned long calls = 0;
  EXPECT(argc > 2);
  configured();
  for (int i = 2; i < argc; i++) {
    const unsigned long size = strtoul(argv[i], NULL, 10);
    EXPECT(size > 0 && size <= MOST);
    calls += run(strtoul(argv[1], NULL, 10), (uint32_t)size);
  }
  printf("%lu results were right\n", calls);
  return 0;
}
