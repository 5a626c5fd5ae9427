/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * unisono.h - collective communication between accelerators of several vendors, for C and C++.
 *
 * Standalone C11 (and C++17); link with -lunisono. It reads like NCCL: a process is one rank with
 * one device; ranks form a communicator and call collectives on it, all in the same order.
 *
 *     unisono_comm *world;
 *     if (unisono_comm_init_from_env(&world)) { puts(unisono_last_error()); exit(1); }
 *     unisono_all_reduce(send, recv, count, UNISONO_FLOAT32, UNISONO_REDUCE_SUM, world);
 *     unisono_comm_finalize(world);
 *
 * Rules
 *  - Every function gives UNISONO_SUCCESS or says what went wrong; unisono_last_error() has the whole
 *    story of the last failure on the calling thread: which rank, which call, what the others did.
 *  - After a failure other than UNISONO_INVALID_ARGUMENT and UNISONO_UNSUPPORTED the communicator is
 *    broken and every later call on it fails alike; unisono_comm_shrink() goes on with the survivors.
 *  - Blocking functions return when their buffers may be used again, also when they fail. The _start
 *    forms return at once; their buffers belong to the library until the work is done.
 *  - Buffers are addresses that the communicator's device can reach. They may be the same for both
 *    ends of a call (in place; see there) and must not overlap otherwise.
 *  - Different communicators may be used from different threads at once. Calls on one communicator
 *    from several threads are safe, but all ranks must make them in the same order.
 *  - Handles are made by functions that take a pointer to them, and stay valid until the function
 *    that is named there is called, once, while no other thread uses them.
 *  - A forked child can call nothing on its parent's handles (UNISONO_FORKED_PROCESS).
 */
#ifndef UNISONO_H
#define UNISONO_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------- results -------------------- */

typedef int32_t unisono_result;
enum {
  UNISONO_SUCCESS = 0,
  UNISONO_INVALID_ARGUMENT = 1, /* nothing was sent; the communicator is as it was */
  UNISONO_UNSUPPORTED = 2,      /* devices, links or plans cannot do it; likewise */
  UNISONO_CALL_MISMATCH = 3,    /* two ranks made calls that do not match */
  UNISONO_RANK_DIED = 4,
  UNISONO_TIMED_OUT = 5,        /* a deadline passed; the message lists who waits for whom */
  UNISONO_WAS_ABORTED = 6,
  UNISONO_PLUGIN_FAILED = 7,
  UNISONO_NOT_LOADED = 8,       /* a plugin could not be found or loaded */
  UNISONO_NOT_JOINED = 9,       /* the ranks could not meet */
  UNISONO_NO_WAY = 10,          /* the links join not all ranks */
  UNISONO_BAD_SETTING = 11,     /* the cluster file or a variable is wrong */
  UNISONO_FORKED_PROCESS = 12,
  UNISONO_WAS_FINALIZED = 13,
  UNISONO_INTERNAL_ERROR = 14   /* a bug in the library */
};

/* What a result means, in a few words. Never NULL; static. */
const char *unisono_result_string(unisono_result result);

/* The whole story of the last failure on this thread; empty if there was none. Valid until the next
 * failure on this thread. */
const char *unisono_last_error(void);

/* The library's version, such as "0.1.0". Static. */
const char *unisono_version(void);

/* ---------------------------------------------------------------- communicators -------------- */

/* A set of ranks that call collectives together. */
typedef struct unisono_comm unisono_comm;

/* Where the ranks of a job meet, and its secret: keep it from strangers. */
typedef struct unisono_unique_id {
  uint8_t bytes[128];
} unisono_unique_id;

/* Makes an id. A rank of this process must join with it; bring it to the others by any way. */
unisono_result unisono_get_unique_id(unisono_unique_id *id);

/* Joins the job of this id as rank `rank` of `size`. Everything else (plugins, device, links,
 * timeouts) is as the environment and the cluster file say. Blocks until all ranks have joined, at
 * most for timeouts.init. Ends with unisono_comm_finalize or unisono_comm_destroy. */
unisono_result unisono_comm_init_rank(unisono_comm **comm, uint32_t size,
                                      const unisono_unique_id *id, uint32_t rank);

/* Joins as the launcher says: `unisono run`, torchrun, mpirun, srun. */
unisono_result unisono_comm_init_from_env(unisono_comm **comm);

unisono_result unisono_comm_rank(const unisono_comm *comm, uint32_t *rank);
unisono_result unisono_comm_size(const unisono_comm *comm, uint32_t *size);

#define UNISONO_NO_COLOR (-1)

/* Splits the ranks by color (0 and up); within a color they are ordered by key, then by rank. A rank
 * with UNISONO_NO_COLOR gets NULL. Every rank must call it. */
unisono_result unisono_comm_split(const unisono_comm *comm, int32_t color, int64_t key,
                                  unisono_comm **result);

/* The same ranks again, with channels of their own. Every rank must call it. */
unisono_result unisono_comm_duplicate(const unisono_comm *comm, unisono_comm **result);

/* A communicator of the ranks that are alive, after a death. Every survivor must call it. */
unisono_result unisono_comm_shrink(const unisono_comm *comm, unisono_comm **result);

/* Waits for what is pending and for all ranks, then frees the communicator, also if it fails. All
 * memory of unisono_alloc goes with it. NULL is nothing to do. */
unisono_result unisono_comm_finalize(unisono_comm *comm);

/* Frees the communicator without waiting for the other ranks. NULL is nothing to do. */
unisono_result unisono_comm_destroy(unisono_comm *comm);

/* Ends every pending and later call on every rank with UNISONO_WAS_ABORTED and this reason (may be
 * NULL). Any thread, also while another is in a call. Does not free. */
unisono_result unisono_comm_abort(const unisono_comm *comm, const char *reason);

/* What broke the communicator: UNISONO_SUCCESS if nothing did. Does not block; any thread. */
unisono_result unisono_comm_async_error(const unisono_comm *comm, unisono_result *error);

/* ---------------------------------------------------------------- collectives ---------------- */

typedef int32_t unisono_datatype;
enum {
  UNISONO_INT8 = 1,
  UNISONO_UINT8 = 2,
  UNISONO_INT16 = 3,
  UNISONO_UINT16 = 4,
  UNISONO_INT32 = 5,
  UNISONO_UINT32 = 6,
  UNISONO_INT64 = 7,
  UNISONO_UINT64 = 8,
  UNISONO_FLOAT16 = 9,
  UNISONO_BFLOAT16 = 10,
  UNISONO_FLOAT32 = 11,
  UNISONO_FLOAT64 = 12
};

typedef int32_t unisono_reduction;
enum {
  UNISONO_REDUCE_SUM = 1,
  UNISONO_REDUCE_PROD = 2,
  UNISONO_REDUCE_MIN = 3,
  UNISONO_REDUCE_MAX = 4,
  UNISONO_REDUCE_AVG = 5
};

/* Counts are in elements. In place: send == recv. */
unisono_result unisono_all_reduce(const void *send, void *recv, size_t count,
                                  unisono_datatype type, unisono_reduction op,
                                  const unisono_comm *comm);

/* `send` holds size * recv_count elements; rank r gets block r of the reduction. In place: recv is
 * this rank's block of send. */
unisono_result unisono_reduce_scatter(const void *send, void *recv, size_t recv_count,
                                      unisono_datatype type, unisono_reduction op,
                                      const unisono_comm *comm);

/* `recv` holds size * send_count elements, in rank order. In place: send is this rank's block of
 * recv. */
unisono_result unisono_all_gather(const void *send, void *recv, size_t send_count,
                                  unisono_datatype type, const unisono_comm *comm);

/* `send` is read on the root alone; elsewhere it may be NULL, unless it is memory of unisono_alloc on
 * the root: then give the same place of it on every rank. In place: send == recv. */
unisono_result unisono_broadcast(const void *send, void *recv, size_t count, unisono_datatype type,
                                 uint32_t root, const unisono_comm *comm);

/* No rank leaves before every rank has entered. */
unisono_result unisono_barrier(const unisono_comm *comm);

/* A send meets the receive of as many elements on the other rank. Calls on one communicator run one
 * after the other: two ranks that both send first and then receive may wait for each other. */
unisono_result unisono_send(const void *send, size_t count, unisono_datatype type, uint32_t peer,
                            const unisono_comm *comm);
unisono_result unisono_recv(void *recv, size_t count, unisono_datatype type, uint32_t peer,
                            const unisono_comm *comm);

/* ---------------------------------------------------------------- calls that return at once -- */

/* A call that was started. Ends with unisono_work_free. */
typedef struct unisono_work unisono_work;

unisono_result unisono_all_reduce_start(const void *send, void *recv, size_t count,
                                        unisono_datatype type, unisono_reduction op,
                                        const unisono_comm *comm, unisono_work **work);
unisono_result unisono_reduce_scatter_start(const void *send, void *recv, size_t recv_count,
                                            unisono_datatype type, unisono_reduction op,
                                            const unisono_comm *comm, unisono_work **work);
unisono_result unisono_all_gather_start(const void *send, void *recv, size_t send_count,
                                        unisono_datatype type, const unisono_comm *comm,
                                        unisono_work **work);
unisono_result unisono_broadcast_start(const void *send, void *recv, size_t count,
                                       unisono_datatype type, uint32_t root,
                                       const unisono_comm *comm, unisono_work **work);
unisono_result unisono_barrier_start(const unisono_comm *comm, unisono_work **work);
unisono_result unisono_send_start(const void *send, size_t count, unisono_datatype type,
                                  uint32_t peer, const unisono_comm *comm, unisono_work **work);
unisono_result unisono_recv_start(void *recv, size_t count, unisono_datatype type, uint32_t peer,
                                  const unisono_comm *comm, unisono_work **work);

/* Waits until the call is done, or has failed. Any thread. */
unisono_result unisono_work_wait(const unisono_work *work);

/* Sets `done` to 1 or 0; a failure of the call is this function's. Does not block; any thread. */
unisono_result unisono_work_test(const unisono_work *work, int32_t *done);

/* Frees the handle; the call itself goes on, and its buffers are still the library's. NULL is
 * nothing to do. */
unisono_result unisono_work_free(unisono_work *work);

/* ---------------------------------------------------------------- memory --------------------- */

/* Zeroed memory that the peers can reach directly where links are mapped: the fastest kind of
 * buffer. Every rank must call it with the same length. Ends with unisono_free, or with the
 * communicator. */
unisono_result unisono_alloc(unisono_comm *comm, size_t bytes, void **memory);

/* Frees memory of unisono_alloc of this communicator. NULL is nothing to do. */
unisono_result unisono_free(unisono_comm *comm, void *memory);

/* Memory of the caller's that is made fast to use. */
typedef struct unisono_registration unisono_registration;

/* Registers host memory, which must stay mapped until unisono_deregister. Every rank must call it. */
unisono_result unisono_register(const unisono_comm *comm, void *memory, size_t bytes,
                                unisono_registration **registration);

/* Ends a registration. NULL is nothing to do. */
unisono_result unisono_deregister(unisono_registration *registration);

#ifdef __cplusplus
}
#endif

#endif /* UNISONO_H */
