/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * unisono.h - collective communication between accelerators of several vendors, for C and C++.
 *
 * Standalone C99 (and C++17); link with -lunisono. It reads like NCCL: a rank has one device; ranks
 * form a communicator and call collectives on it, all in the same order.
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
 *    and _on forms return at once; their buffers belong to the library until the work is done, or
 *    the stream has come past it.
 *  - Buffers are addresses that the communicator's device can reach. They may be the same for both
 *    ends of a call (in place; see there) and must not overlap otherwise.
 *  - Different communicators may be used from different threads at once. Calls on one communicator
 *    from several threads are safe, but all ranks must make them in the same order.
 *  - Functions marked "every rank" block until all ranks of the communicator have called them. Ranks
 *    that are threads of one process call them from threads of their own.
 *  - Handles are made by functions that take a pointer to them, and stay valid until the function
 *    that is named there is called, once, while no other thread uses them. Freeing NULL does nothing.
 *  - Texts and arrays that are given are read before the function returns, and not kept.
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

/* Makes an id. A rank of this process must join with it; bring it to the others by any way. Any
 * thread. */
unisono_result unisono_get_unique_id(unisono_unique_id *id);

/* Joins the job of this id as rank `rank` of `size`. Everything else (plugins, device, links,
 * timeouts) is as the environment and the cluster file say. Blocks until all ranks have joined, at
 * most for timeouts.init. Any thread. Ends with unisono_comm_finalize or unisono_comm_destroy.
 *
 * UNISONO_BAD_SETTING, UNISONO_NOT_LOADED, UNISONO_NOT_JOINED (the story names who is missing) or
 * UNISONO_NO_WAY; there is no handle then. So for all that make communicators. */
unisono_result unisono_comm_init_rank(unisono_comm **comm, uint32_t size,
                                      const unisono_unique_id *id, uint32_t rank);

/* Joins as the launcher says: `unisono run`, torchrun, mpirun, srun. Ends likewise. */
unisono_result unisono_comm_init_from_env(unisono_comm **comm);

/* What a program knows better than its environment and the cluster file. Begin with
 *     unisono_config config = UNISONO_CONFIG_INIT;
 * and set what is to differ: a member that is zero or NULL says nothing. Members are only ever added
 * at the end, so programs and libraries of different versions understand each other; a member that
 * the library does not know is UNISONO_INVALID_ARGUMENT if it is set. */
typedef struct unisono_config {
  size_t size;                  /* bytes of this struct; UNISONO_CONFIG_INIT sets it */
  const char *name;             /* of the communicator: rules of the cluster file select by it. The
                                   same on all ranks; "world" without it */
  const char *device;           /* "PLUGIN:NUMBER", such as "cuda:3" */
  const char *plugins;          /* names, separated by commas */
  const char *cluster_file;     /* its path */
  uint64_t init_timeout_ms;     /* meeting the other ranks, and forming a communicator */
  uint64_t op_timeout_ms;       /* one call, from its first step on */
  uint64_t finalize_timeout_ms; /* leaving in good order */
  int32_t deterministic;        /* 1: the same inputs give the same bits, whatever the links; the
                                   same on all ranks */
  int32_t reserved;             /* 0 */
} unisono_config;

#define UNISONO_CONFIG_INIT {sizeof(unisono_config), NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0}

/* The same with a configuration, which may be NULL. */
unisono_result unisono_comm_init_rank_config(unisono_comm **comm, uint32_t size,
                                             const unisono_unique_id *id, uint32_t rank,
                                             const unisono_config *config);
unisono_result unisono_comm_init_from_env_config(unisono_comm **comm,
                                                 const unisono_config *config);

/* Forms a job of `size` ranks in this process, without a launcher: `comms` has room for `size`
 * handles, by rank. `configs` is NULL, or has a configuration (or NULL) for each rank, such as its
 * device. Use each communicator from a thread of its own, or all from one thread in groups. On
 * failure there are no handles. */
unisono_result unisono_comm_init_all(unisono_comm **comms, uint32_t size,
                                     const unisono_config *const *configs);

/* This rank, and the number of ranks. Any thread; neither blocks. */
unisono_result unisono_comm_rank(const unisono_comm *comm, uint32_t *rank);
unisono_result unisono_comm_size(const unisono_comm *comm, uint32_t *size);

#define UNISONO_NO_COLOR (-1)

/* Splits the ranks by color (0 and up); within a color they are ordered by key, then by rank. A rank
 * with UNISONO_NO_COLOR gets NULL. Every rank. The result ends like any communicator, and needs
 * `comm` no more. */
unisono_result unisono_comm_split(const unisono_comm *comm, int32_t color, int64_t key,
                                  unisono_comm **result);

/* The same ranks again, with channels of their own. Every rank; else as unisono_comm_split. */
unisono_result unisono_comm_duplicate(const unisono_comm *comm, unisono_comm **result);

/* A communicator of the ranks that are alive, after a death. Every survivor must call it; `comm` is
 * still to be destroyed. */
unisono_result unisono_comm_shrink(const unisono_comm *comm, unisono_comm **result);

/* Waits for what is pending and for all ranks, then frees the communicator, also if it fails. All
 * memory of unisono_alloc and all reductions that were made for it go with it. Every rank. */
unisono_result unisono_comm_finalize(unisono_comm *comm);

/* unisono_comm_finalize of several ranks of this process at once: those of unisono_comm_init_all.
 * The failure is that of the lowest of them that has one. */
unisono_result unisono_comm_finalize_all(unisono_comm *const *comms, uint32_t size);

/* Frees the communicator without waiting for the other ranks; calls that are pending may then fail
 * there. */
unisono_result unisono_comm_destroy(unisono_comm *comm);

/* Ends every pending and later call on every rank with UNISONO_WAS_ABORTED and this reason (may be
 * NULL). Any thread, also while another is in a call. Does not block, and does not free. */
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
  UNISONO_FLOAT64 = 12,
  UNISONO_FLOAT8_E4M3 = 13, /* e4m3fn: no infinities, saturates at 448 */
  UNISONO_FLOAT8_E5M2 = 14
};

/* Floats are computed in their type (16-bit and 8-bit ones in 32 bits) and rounded after each step;
 * MIN and MAX give NaN if any input is NaN. Integers wrap. AVG is the sum divided by the number of
 * ranks; of integers it is rounded toward zero. AND, OR and XOR are bitwise, for integers alone. */
typedef int32_t unisono_reduction;
enum {
  UNISONO_REDUCE_SUM = 1,
  UNISONO_REDUCE_PROD = 2,
  UNISONO_REDUCE_MIN = 3,
  UNISONO_REDUCE_MAX = 4,
  UNISONO_REDUCE_AVG = 5,
  UNISONO_REDUCE_AND = 6,
  UNISONO_REDUCE_OR = 7,
  UNISONO_REDUCE_XOR = 8
};

/* Makes a reduction: the sum of the ranks' contributions, each multiplied by its own rank's factor
 * first. `factor` is one element of `type` in host memory, copied now; the calls' elements must have
 * that type. For calls on `comm` alone; every rank makes one, with a factor of its own. Ends with
 * unisono_reduction_destroy or with the communicator. Does not block; any thread. */
unisono_result unisono_reduction_create_pre_mul_sum(unisono_reduction *op, const void *factor,
                                                    unisono_datatype type,
                                                    const unisono_comm *comm);

/* dst[i] = a[i] combined with b[i], for `elements` elements; with UNISONO_ORDER_RANKS a is of lower
 * ranks than b. dst may be a or b; none need be aligned. It is called from any thread, must not block
 * and must not call the library. */
typedef void (*unisono_reduce_function)(void *context, void *dst, const void *a, const void *b,
                                        uint64_t elements);

/* In which order contributions may be combined. */
enum {
  UNISONO_ORDER_ANY = 0,  /* the function commutes */
  UNISONO_ORDER_RANKS = 1 /* as ranks are numbered: ((0 op 1) op 2) op ...; fewer algorithms can */
};

/* Makes a reduction of the program's own, for calls on `comm` alone whose elements are of `type` and
 * lie in host memory. The function must be associative, and the same on every rank, each of which
 * makes it. It is called with `context` by whatever thread makes progress, until every call with it is
 * complete: till then both are the library's. Ends likewise. Does not block; any thread. */
unisono_result unisono_reduction_create_user(unisono_reduction *op,
                                             unisono_reduce_function function, void *context,
                                             unisono_datatype type, int32_t order,
                                             const unisono_comm *comm);

/* Ends a reduction that was made. Calls that were made with it go on. Does not block; any thread;
 * UNISONO_INVALID_ARGUMENT if it is none of `comm`. */
unisono_result unisono_reduction_destroy(unisono_reduction op, const unisono_comm *comm);

/* All collectives, send and recv:
 *  - Counts are in elements, of the type that is given.
 *  - Any thread. They block until the call is complete on this rank or has failed; then the buffers
 *    are the caller's again. In a group they return at once (see there).
 *  - UNISONO_INVALID_ARGUMENT tells what is wrong with this rank's arguments, UNISONO_UNSUPPORTED what
 *    devices, links or plans cannot do: nothing was sent, and the ranks may call something else.
 *  - UNISONO_CALL_MISMATCH, UNISONO_RANK_DIED, UNISONO_TIMED_OUT, UNISONO_WAS_ABORTED and
 *    UNISONO_PLUGIN_FAILED break the communicator, on every rank. */

/* In place: send == recv. */
unisono_result unisono_all_reduce(const void *send, void *recv, size_t count,
                                  unisono_datatype type, unisono_reduction op,
                                  const unisono_comm *comm);

/* The root gets the reduction; elsewhere `recv` is not touched and may be NULL. In place: send ==
 * recv. */
unisono_result unisono_reduce(const void *send, void *recv, size_t count, unisono_datatype type,
                              unisono_reduction op, uint32_t root, const unisono_comm *comm);

/* `send` holds size * recv_count elements; rank r gets block r of the reduction. In place: recv ==
 * send + rank * recv_count; what lies in the other blocks is then undefined. */
unisono_result unisono_reduce_scatter(const void *send, void *recv, size_t recv_count,
                                      unisono_datatype type, unisono_reduction op,
                                      const unisono_comm *comm);

/* The same with blocks of counts[r] elements, one after another in the order of ranks. `counts` has
 * one for each rank, and is the same on all. In place: recv is this rank's block of send. */
unisono_result unisono_reduce_scatter_v(const void *send, void *recv, const size_t *counts,
                                        unisono_datatype type, unisono_reduction op,
                                        const unisono_comm *comm);

/* `recv` holds size * send_count elements, in the order of ranks. In place: send == recv + rank *
 * send_count. */
unisono_result unisono_all_gather(const void *send, void *recv, size_t send_count,
                                  unisono_datatype type, const unisono_comm *comm);

/* The same where rank r gives counts[r] elements. `counts` has one for each rank, and is the same on
 * all. In place: send is this rank's block of recv. */
unisono_result unisono_all_gather_v(const void *send, void *recv, const size_t *counts,
                                    unisono_datatype type, const unisono_comm *comm);

/* `send` is read on the root alone; elsewhere it may be NULL, unless it is memory of unisono_alloc on
 * the root: then give the same place of it on every rank. In place: send == recv. */
unisono_result unisono_broadcast(const void *send, void *recv, size_t count, unisono_datatype type,
                                 uint32_t root, const unisono_comm *comm);

/* The root's `recv` holds size * send_count elements, in the order of ranks; elsewhere it may be
 * NULL. In place: on the root, send == recv + rank * send_count. */
unisono_result unisono_gather(const void *send, void *recv, size_t send_count,
                              unisono_datatype type, uint32_t root, const unisono_comm *comm);

/* Rank r gets block r of the root's `send`, which holds size * recv_count elements; elsewhere `send`
 * may be NULL. In place: on the root, recv == send + rank * recv_count. */
unisono_result unisono_scatter(const void *send, void *recv, size_t recv_count,
                               unisono_datatype type, uint32_t root, const unisono_comm *comm);

/* Rank r gets block r of every rank's `send`, in the order of ranks; `send` and `recv` hold size *
 * count elements each. In place: send == recv. */
unisono_result unisono_all_to_all(const void *send, void *recv, size_t count,
                                  unisono_datatype type, const unisono_comm *comm);

/* The same with blocks of unequal lengths, one after another in the order of ranks: send_counts[r]
 * elements go to rank r, recv_counts[r] come from it, as it says in its own send_counts. Not in
 * place. */
unisono_result unisono_all_to_all_v(const void *send, const size_t *send_counts, void *recv,
                                    const size_t *recv_counts, unisono_datatype type,
                                    const unisono_comm *comm);

/* No rank leaves before every rank has entered. */
unisono_result unisono_barrier(const unisono_comm *comm);

/* A send meets the receive of as many elements on the other rank. Calls on one communicator run one
 * after the other: two ranks that both send first and then receive may wait for each other, unless
 * they do it in a group. */
unisono_result unisono_send(const void *send, size_t count, unisono_datatype type, uint32_t peer,
                            const unisono_comm *comm);
unisono_result unisono_recv(void *recv, size_t count, unisono_datatype type, uint32_t peer,
                            const unisono_comm *comm);

/* ---------------------------------------------------------------- calls that return at once -- */

/* A call that was started. Ends with unisono_work_free. */
typedef struct unisono_work unisono_work;

/* Each starts the call of the same name and returns at once. Its buffers must stay, and must not be
 * touched, until the work is done. Not in a group. */
unisono_result unisono_all_reduce_start(const void *send, void *recv, size_t count,
                                        unisono_datatype type, unisono_reduction op,
                                        const unisono_comm *comm, unisono_work **work);
unisono_result unisono_reduce_start(const void *send, void *recv, size_t count,
                                    unisono_datatype type, unisono_reduction op, uint32_t root,
                                    const unisono_comm *comm, unisono_work **work);
unisono_result unisono_reduce_scatter_start(const void *send, void *recv, size_t recv_count,
                                            unisono_datatype type, unisono_reduction op,
                                            const unisono_comm *comm, unisono_work **work);
unisono_result unisono_reduce_scatter_v_start(const void *send, void *recv, const size_t *counts,
                                              unisono_datatype type, unisono_reduction op,
                                              const unisono_comm *comm, unisono_work **work);
unisono_result unisono_all_gather_start(const void *send, void *recv, size_t send_count,
                                        unisono_datatype type, const unisono_comm *comm,
                                        unisono_work **work);
unisono_result unisono_all_gather_v_start(const void *send, void *recv, const size_t *counts,
                                          unisono_datatype type, const unisono_comm *comm,
                                          unisono_work **work);
unisono_result unisono_broadcast_start(const void *send, void *recv, size_t count,
                                       unisono_datatype type, uint32_t root,
                                       const unisono_comm *comm, unisono_work **work);
unisono_result unisono_gather_start(const void *send, void *recv, size_t send_count,
                                    unisono_datatype type, uint32_t root, const unisono_comm *comm,
                                    unisono_work **work);
unisono_result unisono_scatter_start(const void *send, void *recv, size_t recv_count,
                                     unisono_datatype type, uint32_t root, const unisono_comm *comm,
                                     unisono_work **work);
unisono_result unisono_all_to_all_start(const void *send, void *recv, size_t count,
                                        unisono_datatype type, const unisono_comm *comm,
                                        unisono_work **work);
unisono_result unisono_all_to_all_v_start(const void *send, const size_t *send_counts, void *recv,
                                          const size_t *recv_counts, unisono_datatype type,
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

/* Frees the handle; the call itself goes on, and its buffers are still the library's. */
unisono_result unisono_work_free(unisono_work *work);

/* ---------------------------------------------------------------- groups --------------------- */

/* Calls between the two are noted, and made together at the end: on one communicator its collectives
 * in their order, then its sends and receives all beside each other, in any order on any rank.
 * Communicators run beside each other: also those of several ranks in this process, so that one
 * thread can be all of them.
 *
 *  - A group is its thread's own. Groups may be nested; all is done at the end of the outermost.
 *  - A call in a group returns at once. What is wrong with it is told by the call, and again by
 *    unisono_group_end, which then starts nothing; the story says which call it was.
 *  - unisono_group_end returns when all calls are complete, or have failed: until then the buffers are
 *    the library's.
 *  - Only the collectives, send and recv can be in a group, also on streams, not their _start forms.
 *    What makes, ends or splits communicators is UNISONO_INVALID_ARGUMENT there. */
unisono_result unisono_group_start(void);
unisono_result unisono_group_end(void);

/* ---------------------------------------------------------------- streams -------------------- */

/* An ordered queue of a device: of the vendor's own, or made here. What is put on it runs in its
 * order: the program's kernels and copies (by the vendor's means), events, and collectives. Any
 * thread. Ends with unisono_stream_destroy. */
typedef struct unisono_api_stream *unisono_stream_t;

/* A point in a stream's work. Any thread. Ends with unisono_event_destroy. */
typedef struct unisono_api_event *unisono_event_t;

/* A new stream of the communicator's device. It may be used with every communicator of that device. */
unisono_result unisono_stream_create(const unisono_comm *comm, unisono_stream_t *stream);

/* A stream of the program's own, of the communicator's device, by the vendor's handle (such as a
 * cudaStream_t). The program keeps it alive until what was put on it here is done, and ends it
 * itself. UNISONO_UNSUPPORTED if the device has no streams of a vendor's. */
unisono_result unisono_stream_wrap(const unisono_comm *comm, void *native,
                                   unisono_stream_t *stream);

/* The vendor's handle; NULL if there is none. */
unisono_result unisono_stream_native(unisono_stream_t stream, void **native);

/* Waits until all that was put on the stream here is done. What broke the stream, or a communicator
 * whose calls on it are not complete, is this function's failure; no device touches the buffers of
 * these calls any more when it returns. */
unisono_result unisono_stream_synchronize(unisono_stream_t stream);

/* Sets `done` to 1 or 0; fails as unisono_stream_synchronize. Does not block. */
unisono_result unisono_stream_query(unisono_stream_t stream, int32_t *done);

/* Frees the handle; what is on the stream goes on. Does not block. */
unisono_result unisono_stream_destroy(unisono_stream_t stream);

/* A new event of the communicator's device, which is not complete; and one of the program's own, by
 * the vendor's handle, which it keeps alive and ends itself. */
unisono_result unisono_event_create(const unisono_comm *comm, unisono_event_t *event);
unisono_result unisono_event_wrap(const unisono_comm *comm, void *native, unisono_event_t *event);

/* The event is complete when the stream has come here; until then, and if it is recorded again, it
 * is not. UNISONO_UNSUPPORTED if the device's events cannot. */
unisono_result unisono_event_record(unisono_event_t event, unisono_stream_t stream);

/* What is put on the stream from now on waits for what the event was recorded for last, or for
 * unisono_event_signal. Does not block. UNISONO_UNSUPPORTED if the device's events cannot. */
unisono_result unisono_event_wait(unisono_event_t event, unisono_stream_t stream);

/* Completes the event from the host. */
unisono_result unisono_event_signal(unisono_event_t event);

/* Sets `done` to 1 if the event is complete, else to 0. Does not block. */
unisono_result unisono_event_query(unisono_event_t event, int32_t *done);

/* Frees the handle; what is on streams goes on. Does not block. */
unisono_result unisono_event_destroy(unisono_event_t event);

/* Each is the call of the same name on a stream, and returns at once (if the stream's queue is full,
 * once there is room): the call begins when the stream has come to it, and what is put on the stream
 * next begins when it is complete.
 *
 *  - The stream must be of the communicator's device. All ranks make their calls in the same order,
 *    whatever streams they are on.
 *  - The buffers are the library's until the stream has done the call.
 *  - While the program records a graph from the stream, the call becomes part of the graph where all
 *    ranks' devices can record it, and is UNISONO_UNSUPPORTED elsewhere, on all ranks alike. All
 *    ranks record the same calls and replay them in the same order; the graphs of one communicator run
 *    one after the other. Its calls in one graph do so too, in the order in which they were made,
 *    whatever streams of the recording they are on. The buffers are the library's until no graph
 *    with the call is run any more: see unisono_comm_forget_recorded.
 *  - A call's deadline does not run while the stream has not come to it; that of ranks which wait for
 *    it in the call does.
 *  - What fails later lets the stream go on, and is told by unisono_stream_synchronize,
 *    unisono_stream_query and unisono_comm_async_error.
 *  - In a group all calls on one communicator have a stream, or none has. With several streams they
 *    begin when all of these have come to them. unisono_group_end does not wait for them. */
unisono_result unisono_all_reduce_on(const void *send, void *recv, size_t count,
                                     unisono_datatype type, unisono_reduction op,
                                     const unisono_comm *comm, unisono_stream_t stream);
unisono_result unisono_reduce_on(const void *send, void *recv, size_t count, unisono_datatype type,
                                 unisono_reduction op, uint32_t root, const unisono_comm *comm,
                                 unisono_stream_t stream);
unisono_result unisono_reduce_scatter_on(const void *send, void *recv, size_t recv_count,
                                         unisono_datatype type, unisono_reduction op,
                                         const unisono_comm *comm, unisono_stream_t stream);
unisono_result unisono_reduce_scatter_v_on(const void *send, void *recv, const size_t *counts,
                                           unisono_datatype type, unisono_reduction op,
                                           const unisono_comm *comm, unisono_stream_t stream);
unisono_result unisono_all_gather_on(const void *send, void *recv, size_t send_count,
                                     unisono_datatype type, const unisono_comm *comm,
                                     unisono_stream_t stream);
unisono_result unisono_all_gather_v_on(const void *send, void *recv, const size_t *counts,
                                       unisono_datatype type, const unisono_comm *comm,
                                       unisono_stream_t stream);
unisono_result unisono_broadcast_on(const void *send, void *recv, size_t count,
                                    unisono_datatype type, uint32_t root, const unisono_comm *comm,
                                    unisono_stream_t stream);
unisono_result unisono_gather_on(const void *send, void *recv, size_t send_count,
                                 unisono_datatype type, uint32_t root, const unisono_comm *comm,
                                 unisono_stream_t stream);
unisono_result unisono_scatter_on(const void *send, void *recv, size_t recv_count,
                                  unisono_datatype type, uint32_t root, const unisono_comm *comm,
                                  unisono_stream_t stream);
unisono_result unisono_all_to_all_on(const void *send, void *recv, size_t count,
                                     unisono_datatype type, const unisono_comm *comm,
                                     unisono_stream_t stream);
unisono_result unisono_all_to_all_v_on(const void *send, const size_t *send_counts, void *recv,
                                       const size_t *recv_counts, unisono_datatype type,
                                       const unisono_comm *comm, unisono_stream_t stream);
unisono_result unisono_barrier_on(const unisono_comm *comm, unisono_stream_t stream);
unisono_result unisono_send_on(const void *send, size_t count, unisono_datatype type, uint32_t peer,
                               const unisono_comm *comm, unisono_stream_t stream);
unisono_result unisono_recv_on(void *recv, size_t count, unisono_datatype type, uint32_t peer,
                               const unisono_comm *comm, unisono_stream_t stream);

/* Gives up the buffers and the scratch that calls keep which were recorded into graphs, and their
 * buffers are the caller's again. No graph with such a call of this communicator may run now or be run
 * again; without it they are given up with the communicator. Does not block; any thread. */
unisono_result unisono_comm_forget_recorded(const unisono_comm *comm);

/* ---------------------------------------------------------------- memory --------------------- */

/* Zeroed memory that the peers can reach directly where links are mapped: the fastest kind of
 * buffer. Every rank, with the same length. Ends with unisono_free, or with the communicator. What lies
 * in it on one rank must lie at the same place of it on all; of a reduce that goes for `send`. Its root
 * may have `recv` at any place of any such memory, which then stays allocated on all ranks; elsewhere
 * it reduces alone. */
unisono_result unisono_alloc(unisono_comm *comm, size_t bytes, void **memory);

/* Frees memory of unisono_alloc of this communicator, which no pending call may use. Does not block.
 */
unisono_result unisono_free(unisono_comm *comm, void *memory);

/* Memory of the caller's that is made fast to use. */
typedef struct unisono_registration unisono_registration;

/* Registers host memory, which must stay mapped until unisono_deregister. Every rank; waits for what is
 * pending on all of them. */
unisono_result unisono_register(const unisono_comm *comm, void *memory, size_t bytes,
                                unisono_registration **registration);

/* Ends a registration. Every rank; waits for what is pending on all of them. */
unisono_result unisono_deregister(unisono_registration *registration);

/* ---------------------------------------------------------------- porting from NCCL ---------- *
 *
 *   ncclComm_t                          unisono_comm *
 *   ncclUniqueId, ncclGetUniqueId       unisono_unique_id, unisono_get_unique_id
 *   ncclConfig_t                        unisono_config
 *   ncclCommInitRank(&c, n, id, r)      unisono_comm_init_rank(&c, n, &id, r)
 *   ncclCommInitRankConfig              unisono_comm_init_rank_config
 *   ncclCommInitAll(c, n, devices)      unisono_comm_init_all(c, n, configs), with configs[r]->device
 *   ncclCommSplit, ncclCommShrink       unisono_comm_split, unisono_comm_shrink
 *   ncclCommCount, ncclCommUserRank     unisono_comm_size, unisono_comm_rank
 *   ncclCommGetAsyncError               unisono_comm_async_error
 *   ncclCommFinalize, ncclCommDestroy   unisono_comm_finalize, which also frees
 *   ncclCommAbort                       unisono_comm_abort, then unisono_comm_destroy
 *   ncclAllReduce(..., comm, stream)    unisono_all_reduce_on(..., comm, stream)
 *   ncclReduce, ncclBroadcast           unisono_reduce_on, unisono_broadcast_on
 *   ncclAllGather, ncclReduceScatter    unisono_all_gather_on, unisono_reduce_scatter_on
 *   ncclAlltoAll, ncclGather            unisono_all_to_all_on, unisono_gather_on
 *   ncclScatter                         unisono_scatter_on
 *   ncclSend, ncclRecv                  unisono_send_on, unisono_recv_on
 *   ncclGroupStart, ncclGroupEnd        unisono_group_start, unisono_group_end
 *   ncclRedOpCreatePreMulSum            unisono_reduction_create_pre_mul_sum, factor in host memory
 *   ncclRedOpDestroy                    unisono_reduction_destroy
 *   ncclMemAlloc, ncclMemFree           unisono_alloc, unisono_free: of a communicator, by every rank
 *   ncclCommRegister, ncclCommDeregister  unisono_register, unisono_deregister: by every rank
 *   ncclGetErrorString                  unisono_result_string
 *   ncclGetLastError                    unisono_last_error: of the thread
 *   cudaStream_t                        unisono_stream_t, by unisono_stream_wrap
 *   ncclFloat32, ncclSum, ...           UNISONO_FLOAT32, UNISONO_REDUCE_SUM, ...
 *
 * Without a stream a call blocks; with _start it gives a handle to wait for. */

#ifdef __cplusplus
}
#endif

#endif /* UNISONO_H */
