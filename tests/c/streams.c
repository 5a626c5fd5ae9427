/* Every operation on streams, and events around them. One thread is all ranks: calls on streams
 * return at once. */

#include "common.h"

enum { RANKS = 3, COUNT = 1000, WHOLE = RANKS * COUNT };

static unisono_comm *comms[RANKS];
static unisono_stream_t streams[RANKS];
static int32_t in[RANKS][WHOLE], out[RANKS][WHOLE];

static int32_t value(uint32_t rank, int at) { return (int32_t)(rank * 100000) + at; }

static void reset(void) {
  for (uint32_t r = 0; r < RANKS; r++)
    for (int i = 0; i < WHOLE; i++) in[r][i] = value(r, i), out[r][i] = -1;
}

static void wait_all(void) {
  for (uint32_t r = 0; r < RANKS; r++) {
    int32_t done = -1;
    CHECK(unisono_stream_synchronize(streams[r]));
    CHECK(unisono_stream_query(streams[r], &done));
    EXPECT(done == 1);
  }
}

/* Calls a function on every rank's stream, in a group or without, and waits. */
#define ON_ALL(name, ...)                                               \
  do {                                                                  \
    for (int grouped = 0; grouped < 2; grouped++) {                     \
      reset();                                                          \
      if (grouped) CHECK(unisono_group_start());                        \
      for (uint32_t r = 0; r < RANKS; r++)                              \
        CHECK(unisono_##name##_on(__VA_ARGS__, comms[r], streams[r]));  \
      if (grouped) CHECK(unisono_group_end());                          \
      wait_all();                                                       \
    }                                                                   \
  } while (0)

static void operations(void) {
  const unisono_datatype t = UNISONO_INT32;
  const unisono_reduction sum = UNISONO_REDUCE_SUM;
  const size_t counts[RANKS] = {COUNT, COUNT, COUNT};

  ON_ALL(all_reduce, in[r], out[r], COUNT, t, sum);
  for (uint32_t r = 0; r < RANKS; r++)
    for (int i = 0; i < COUNT; i++) EXPECT(out[r][i] == 300000 + 3 * i);
  ON_ALL(reduce, in[r], out[r], COUNT, t, sum, 1);
  for (int i = 0; i < COUNT; i++) EXPECT(out[1][i] == 300000 + 3 * i && out[0][i] == -1);
  ON_ALL(reduce_scatter, in[r], out[r], COUNT, t, sum);
  for (uint32_t r = 0; r < RANKS; r++)
    for (int i = 0; i < COUNT; i++) EXPECT(out[r][i] == 300000 + 3 * ((int)r * COUNT + i));
  ON_ALL(reduce_scatter_v, in[r], out[r], counts, t, sum);
  for (uint32_t r = 0; r < RANKS; r++)
    for (int i = 0; i < COUNT; i++) EXPECT(out[r][i] == 300000 + 3 * ((int)r * COUNT + i));
  ON_ALL(all_gather, in[r], out[r], COUNT, t);
  for (uint32_t r = 0; r < RANKS; r++)
    for (int i = 0; i < WHOLE; i++)
      EXPECT(out[r][i] == value((uint32_t)(i / COUNT), i % COUNT));
  ON_ALL(all_gather_v, in[r], out[r], counts, t);
  for (uint32_t r = 0; r < RANKS; r++)
    for (int i = 0; i < WHOLE; i++)
      EXPECT(out[r][i] == value((uint32_t)(i / COUNT), i % COUNT));
  ON_ALL(broadcast, in[r], out[r], COUNT, t, 2);
  for (uint32_t r = 0; r < RANKS; r++)
    for (int i = 0; i < COUNT; i++) EXPECT(out[r][i] == value(2, i));
  ON_ALL(gather, in[r], out[r], COUNT, t, 0);
  for (int i = 0; i < WHOLE; i++) EXPECT(out[0][i] == value((uint32_t)(i / COUNT), i % COUNT));
  ON_ALL(scatter, in[r], out[r], COUNT, t, 0);
  for (uint32_t r = 0; r < RANKS; r++)
    for (int i = 0; i < COUNT; i++) EXPECT(out[r][i] == value(0, (int)r * COUNT + i));
  ON_ALL(all_to_all, in[r], out[r], COUNT, t);
  for (uint32_t r = 0; r < RANKS; r++)
    for (int i = 0; i < WHOLE; i++)
      EXPECT(out[r][i] == value((uint32_t)(i / COUNT), (int)r * COUNT + i % COUNT));
  ON_ALL(all_to_all_v, in[r], counts, out[r], counts, t);
  for (uint32_t r = 0; r < RANKS; r++)
    for (int i = 0; i < WHOLE; i++)
      EXPECT(out[r][i] == value((uint32_t)(i / COUNT), (int)r * COUNT + i % COUNT));
}

/* A message from rank 0 to rank 1, and a barrier. */
static void messages(void) {
  reset();
  CHECK(unisono_send_on(in[0], COUNT, UNISONO_INT32, 1, comms[0], streams[0]));
  CHECK(unisono_recv_on(out[1], COUNT, UNISONO_INT32, 0, comms[1], streams[1]));
  for (uint32_t r = 0; r < RANKS; r++) CHECK(unisono_barrier_on(comms[r], streams[r]));
  wait_all();
  for (int i = 0; i < COUNT; i++) EXPECT(out[1][i] == value(0, i));
}

/* Nothing begins before the streams have come to it, and what follows waits. */
static void events(void) {
  unisono_event_t go, reduced;
  unisono_stream_t other;
  int32_t done = -1;
  reset();
  CHECK(unisono_event_create(comms[0], &go));
  CHECK(unisono_event_create(comms[0], &reduced));
  CHECK(unisono_stream_create(comms[0], &other));
  CHECK(unisono_event_wait(go, other));
  CHECK(unisono_event_record(reduced, other)); /* recorded again below */
  CHECK(unisono_event_wait(go, streams[0]));
  for (uint32_t r = 0; r < RANKS; r++)
    CHECK(unisono_all_reduce_on(in[r], out[r], COUNT, UNISONO_INT32, UNISONO_REDUCE_MAX, comms[r],
                                streams[r]));
  CHECK(unisono_event_record(reduced, streams[0]));
  for (int i = 0; i < 100; i++) {
    CHECK(unisono_event_query(reduced, &done));
    EXPECT(done == 0);
    CHECK(unisono_stream_query(streams[1], &done));
    EXPECT(done == 0 && out[0][0] == -1);
  }
  CHECK(unisono_event_signal(go));
  wait_all();
  CHECK(unisono_stream_synchronize(other));
  CHECK(unisono_event_query(reduced, &done));
  EXPECT(done == 1 && out[0][0] == value(RANKS - 1, 0));
  CHECK(unisono_stream_destroy(other));
  CHECK(unisono_event_destroy(reduced));
  CHECK(unisono_event_destroy(go));
}

static void mistakes(void) {
  unisono_stream_t nothing;
  unisono_event_t none;
  void *native;
  EXPECT(unisono_barrier_on(comms[0], NULL) == UNISONO_INVALID_ARGUMENT);
  EXPECT(strstr(unisono_last_error(), "stream is NULL"));
  EXPECT(unisono_stream_create(NULL, &nothing) == UNISONO_INVALID_ARGUMENT);
  EXPECT(unisono_event_create(comms[0], NULL) == UNISONO_INVALID_ARGUMENT);
  CHECK(unisono_comm_forget_recorded(comms[0])); /* nothing was recorded */
  EXPECT(unisono_comm_forget_recorded(NULL) == UNISONO_INVALID_ARGUMENT);
  EXPECT(unisono_event_record(NULL, streams[0]) == UNISONO_INVALID_ARGUMENT);
  EXPECT(unisono_stream_wrap(comms[0], &nothing, &nothing) == UNISONO_UNSUPPORTED);
  EXPECT(unisono_event_wrap(comms[0], &none, &none) == UNISONO_UNSUPPORTED);
  CHECK(unisono_stream_native(streams[0], &native));
  EXPECT(native == NULL); /* the processor has no streams of a vendor's */
  CHECK(unisono_stream_destroy(NULL));
  CHECK(unisono_event_destroy(NULL));
  CHECK(unisono_group_start());
  CHECK(unisono_barrier(comms[0]));
  EXPECT(unisono_barrier_on(comms[0], streams[0]) == UNISONO_INVALID_ARGUMENT);
  EXPECT(unisono_group_end() == UNISONO_INVALID_ARGUMENT);
  EXPECT(strstr(unisono_last_error(), "all have a stream, or none has (call 2 of the group)"));
}

/* The last: it breaks the communicators. */
static void failure(void) {
  unisono_result error;
  reset();
  CHECK(unisono_all_reduce_on(in[0], out[0], COUNT, UNISONO_INT32, UNISONO_REDUCE_SUM, comms[0],
                              streams[0]));
  CHECK(unisono_comm_abort(comms[1], "to see what happens"));
  EXPECT(unisono_stream_synchronize(streams[0]) == UNISONO_WAS_ABORTED);
  EXPECT(strstr(unisono_last_error(), "to see what happens"));
  CHECK(unisono_comm_async_error(comms[0], &error));
  EXPECT(error == UNISONO_WAS_ABORTED);
  EXPECT(unisono_barrier_on(comms[0], streams[0]) == UNISONO_WAS_ABORTED);
}

int main(void) {
  CHECK(unisono_comm_init_all(comms, RANKS, NULL));
  for (uint32_t r = 0; r < RANKS; r++) CHECK(unisono_stream_create(comms[r], &streams[r]));
  operations();
  messages();
  events();
  mistakes();
  failure();
  for (uint32_t r = 0; r < RANKS; r++) {
    CHECK(unisono_stream_destroy(streams[r]));
    CHECK(unisono_comm_destroy(comms[r]));
  }
  puts("all is well");
  return 0;
}
