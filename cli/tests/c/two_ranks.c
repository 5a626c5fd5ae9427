/* Two ranks through the C API: every function once at least, with checked results. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unisono.h"

#define COUNT 10007

static uint32_t rank, size;

static void fail(const char *what, int line) {
  fprintf(stderr, "line %d: %s: %s\n", line, what, unisono_last_error());
  exit(1);
}

#define CHECK(call)                                  \
  do {                                               \
    if ((call) != UNISONO_SUCCESS) fail(#call, __LINE__); \
  } while (0)
#define EXPECT(condition)                          \
  do {                                             \
    if (!(condition)) fail(#condition, __LINE__);  \
  } while (0)

static void collectives(unisono_comm *comm) {
  float *a = malloc(2 * COUNT * sizeof *a), *b = malloc(2 * COUNT * sizeof *b);
  EXPECT(a && b);
  for (int i = 0; i < 2 * COUNT; i++) a[i] = (float)(i + (int)rank);
  CHECK(unisono_all_reduce(a, b, COUNT, UNISONO_FLOAT32, UNISONO_REDUCE_SUM, comm));
  for (int i = 0; i < COUNT; i++) EXPECT(b[i] == (float)(2 * i + 1));
  CHECK(unisono_all_reduce(a, a, COUNT, UNISONO_FLOAT32, UNISONO_REDUCE_AVG, comm));
  for (int i = 0; i < COUNT; i++) EXPECT(a[i] == (float)i + 0.5f);

  for (int i = 0; i < 2 * COUNT; i++) a[i] = (float)(i + (int)rank);
  CHECK(unisono_reduce_scatter(a, b, COUNT, UNISONO_FLOAT32, UNISONO_REDUCE_MAX, comm));
  for (int i = 0; i < COUNT; i++) EXPECT(b[i] == (float)(i + COUNT * (int)rank + 1));
  CHECK(unisono_all_gather(a, b, COUNT, UNISONO_FLOAT32, comm));
  for (int i = 0; i < COUNT; i++) EXPECT(b[i] == (float)i && b[COUNT + i] == (float)(i + 1));
  CHECK(unisono_broadcast(rank == 1 ? a : NULL, b, COUNT, UNISONO_FLOAT32, 1, comm));
  for (int i = 0; i < COUNT; i++) EXPECT(b[i] == (float)(i + 1));
  CHECK(unisono_barrier(comm));

  if (rank == 0) CHECK(unisono_send(a, COUNT, UNISONO_FLOAT32, 1, comm));
  if (rank == 1) CHECK(unisono_recv(b, COUNT, UNISONO_FLOAT32, 0, comm));
  for (int i = 0; rank == 1 && i < COUNT; i++) EXPECT(b[i] == (float)i);
  free(a);
  free(b);
}

static void started(unisono_comm *comm) {
  double *x = malloc(COUNT * sizeof *x);
  uint8_t byte = (uint8_t)(rank + 3), bytes[2] = {0, 0};
  unisono_work *first, *second, *third;
  int32_t done = -1;
  EXPECT(x);
  for (int i = 0; i < COUNT; i++) x[i] = i;
  CHECK(unisono_all_reduce_start(x, x, COUNT, UNISONO_FLOAT64, UNISONO_REDUCE_SUM, comm, &first));
  CHECK(unisono_all_gather_start(&byte, bytes, 1, UNISONO_UINT8, comm, &second));
  CHECK(unisono_barrier_start(comm, &third));
  CHECK(unisono_work_test(third, &done));
  EXPECT(done == 0 || done == 1);
  CHECK(unisono_work_wait(third));
  CHECK(unisono_work_wait(first));
  CHECK(unisono_work_test(second, &done));
  EXPECT(done == 1 && bytes[0] == 3 && bytes[1] == 4);
  for (int i = 0; i < COUNT; i++) EXPECT(x[i] == 2.0 * i);
  CHECK(unisono_work_free(first));
  CHECK(unisono_work_free(second));
  CHECK(unisono_work_free(third));
  CHECK(unisono_work_free(NULL));
  free(x);
}

static void memory(unisono_comm *comm) {
  unisono_registration *registration;
  int64_t *mine = calloc(4096, 8);
  void *window;
  EXPECT(mine);
  CHECK(unisono_alloc(comm, COUNT * sizeof(int32_t), &window));
  int32_t *values = window;
  for (int i = 0; i < COUNT; i++) {
    EXPECT(values[i] == 0);
    values[i] = i;
  }
  CHECK(unisono_all_reduce(values, values, COUNT, UNISONO_INT32, UNISONO_REDUCE_SUM, comm));
  for (int i = 0; i < COUNT; i++) EXPECT(values[i] == 2 * i);
  CHECK(unisono_free(comm, window));
  EXPECT(unisono_free(comm, window) == UNISONO_INVALID_ARGUMENT);
  CHECK(unisono_register(comm, mine, 4096 * 8, &registration));
  mine[7] = rank + 1;
  CHECK(unisono_all_reduce(mine, mine, 4096, UNISONO_INT64, UNISONO_REDUCE_PROD, comm));
  EXPECT(mine[7] == 2 && mine[8] == 0);
  CHECK(unisono_deregister(registration));
  free(mine);
}

static void others(unisono_comm *comm) {
  unisono_comm *copy, *alone, *none;
  uint32_t n;
  CHECK(unisono_comm_duplicate(comm, &copy));
  CHECK(unisono_barrier(copy));
  CHECK(unisono_comm_split(comm, (int32_t)rank, 0, &alone));
  CHECK(unisono_comm_size(alone, &n));
  EXPECT(n == 1);
  CHECK(unisono_comm_finalize(alone));
  CHECK(unisono_comm_split(comm, rank == 0 ? 5 : UNISONO_NO_COLOR, 0, &none));
  EXPECT((none != NULL) == (rank == 0));
  CHECK(unisono_comm_destroy(none));
  CHECK(unisono_comm_finalize(copy));
}

static void mistakes(unisono_comm *comm) {
  float x = 1;
  unisono_comm *nobody;
  unisono_work *work;
  unisono_result error;
  EXPECT(unisono_barrier(NULL) == UNISONO_INVALID_ARGUMENT);
  EXPECT(strstr(unisono_last_error(), "comm is NULL"));
  EXPECT(unisono_all_reduce(&x, NULL, 1, UNISONO_FLOAT32, UNISONO_REDUCE_SUM, comm) ==
         UNISONO_INVALID_ARGUMENT);
  EXPECT(strstr(unisono_last_error(), "recv is NULL"));
  EXPECT(unisono_all_reduce(&x, &x, 1, 99, UNISONO_REDUCE_SUM, comm) == UNISONO_INVALID_ARGUMENT);
  EXPECT(unisono_all_reduce(&x, &x, 1, UNISONO_FLOAT32, 99, comm) == UNISONO_INVALID_ARGUMENT);
  EXPECT(unisono_broadcast(&x, &x, 1, UNISONO_FLOAT32, 9, comm) == UNISONO_INVALID_ARGUMENT);
  EXPECT(unisono_send(&x, 1, UNISONO_FLOAT32, rank, comm) == UNISONO_INVALID_ARGUMENT);
  EXPECT(unisono_all_gather(&x, &x, SIZE_MAX, UNISONO_FLOAT32, comm) == UNISONO_INVALID_ARGUMENT);
  EXPECT(unisono_barrier_start(comm, NULL) == UNISONO_INVALID_ARGUMENT);
  EXPECT(unisono_work_wait(NULL) == UNISONO_INVALID_ARGUMENT);
  EXPECT(unisono_comm_split(comm, -7, 0, &nobody) == UNISONO_INVALID_ARGUMENT);
  EXPECT(unisono_comm_init_from_env(NULL) == UNISONO_INVALID_ARGUMENT);
  CHECK(unisono_comm_async_error(comm, &error));
  EXPECT(error == UNISONO_SUCCESS);
  CHECK(unisono_all_reduce(NULL, NULL, 0, UNISONO_FLOAT32, UNISONO_REDUCE_SUM, comm));
  CHECK(unisono_barrier_start(comm, &work));
  CHECK(unisono_work_wait(work));
  CHECK(unisono_work_free(work));
}

/* Ends a communicator of its own: rank 1 aborts it while rank 0 waits in it. */
static void aborted(unisono_comm *comm) {
  unisono_comm *copy;
  unisono_result error;
  CHECK(unisono_comm_duplicate(comm, &copy));
  if (rank == 1) {
    CHECK(unisono_comm_abort(copy, "to see what happens"));
  } else {
    EXPECT(unisono_barrier(copy) == UNISONO_WAS_ABORTED);
    EXPECT(strstr(unisono_last_error(), "to see what happens"));
  }
  CHECK(unisono_comm_async_error(copy, &error));
  EXPECT(error == UNISONO_WAS_ABORTED);
  CHECK(unisono_barrier(comm));
  CHECK(unisono_comm_destroy(copy));
}

int main(void) {
  unisono_comm *world;
  EXPECT(strcmp(unisono_result_string(UNISONO_SUCCESS), "success") == 0);
  EXPECT(unisono_version()[0] != '\0' && unisono_last_error()[0] == '\0');
  CHECK(unisono_comm_init_from_env(&world));
  CHECK(unisono_comm_rank(world, &rank));
  CHECK(unisono_comm_size(world, &size));
  EXPECT(size == 2);
  collectives(world);
  started(world);
  memory(world);
  others(world);
  mistakes(world);
  aborted(world);

  /* The way of NCCL users: rank 0 makes an id and brings it to the others. */
  unisono_unique_id id;
  unisono_comm *job;
  if (rank == 0) CHECK(unisono_get_unique_id(&id));
  CHECK(unisono_broadcast(&id, &id, sizeof id, UNISONO_UINT8, 0, world));
  CHECK(unisono_comm_init_rank(&job, size, &id, rank));
  CHECK(unisono_barrier(job));
  CHECK(unisono_comm_finalize(job));

  /* Rank 1 dies; the survivor goes on alone. */
  if (rank == 1) _Exit(0);
  unisono_comm *rest;
  uint32_t left;
  EXPECT(unisono_barrier(world) == UNISONO_RANK_DIED);
  EXPECT(strstr(unisono_last_error(), "rank 1"));
  CHECK(unisono_comm_shrink(world, &rest));
  CHECK(unisono_comm_size(rest, &left));
  EXPECT(left == 1);
  CHECK(unisono_barrier(rest));
  CHECK(unisono_comm_finalize(rest));
  CHECK(unisono_comm_destroy(world));
  puts("all is well");
  return 0;
}
