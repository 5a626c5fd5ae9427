/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * example.c - a whole unisono plugin in one C file: copy it and put your device in.
 *
 *   cc -std=c11 -O2 -Wall -Wextra -shared -fPIC -pthread -Iinclude \
 *      -o libunisono_plugin_example.so plugins/example-c/example.c
 *
 * Its "device" is a thread: each stream has a worker thread that runs commands in order, as a
 * hardware queue would, while the host does other things. Its links are sockets between processes
 * of this machine, which the host's own thread moves when it polls. What a vendor replaces is
 * marked YOURS.
 *
 *   1  small things: errors, flags, threads     5  what streams and links share: a queue
 *   2  the instance and its parameters          6  streams: the worker thread
 *   3  the device, memory, events               7  links: puts over Unix sockets
 *   4  reductions                               8  the tables
 *
 * Waiting: a worker that waits for a flag spins for the parameter `spin`, then looks again every
 * 50 us. Only workers do that, never a thread of the host's: the host sleeps and is woken.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <linux/sockios.h>
#include <time.h>
#include <unistd.h>

#include "unisono_plugin.h"
#include "unisono_plugin_layout.h"

/* ------------------------------------------------------------ 1. small things ----------------- */

enum { NAP_NS = 50 * 1000, NONCE = 16 };

/* Writes an error for the host and returns its status. */
__attribute__((format(printf, 4, 5))) static unisono_status fail(unisono_error *error,
                                                                 unisono_status status,
                                                                 int64_t code, const char *words,
                                                                 ...) {
  if (error != NULL) {
    va_list args;
    memset(error->words, 0, sizeof error->words);
    error->status = status;
    error->vendor_code = code;
    va_start(args, words);
    vsnprintf(error->message, sizeof error->message, words, args);
    va_end(args);
  }
  return status;
}

#define INVALID(error, ...) fail(error, UNISONO_ERR_INVALID, 0, __VA_ARGS__)
#define UNSUPPORTED(error, ...) fail(error, UNISONO_ERR_UNSUPPORTED, 0, __VA_ARGS__)
#define NO_MEMORY(error) fail(error, UNISONO_ERR_OUT_OF_MEMORY, ENOMEM, "example: out of memory")

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Addresses cross the boundary as numbers. */
static void *at(uint64_t address) { return (void *)(uintptr_t)address; }

/* How far a flag is ahead of what a WAIT waits for; negative if it must still wait. */
static int64_t wait_ahead(const unisono_command_wait *c) {
  unisono_counter *counter = at(c->counter);
  counter->seen = atomic_load_explicit((_Atomic uint64_t *)at(c->flag), memory_order_acquire);
  return (int64_t)(counter->seen - (counter->value + 1));
}

/* Tries a WAIT: OK, AGAIN, or MISMATCH. */
static unisono_status wait_try(const unisono_command_wait *c, unisono_error *error) {
  const unisono_flag_line *line = at(c->flag);
  int64_t ahead = wait_ahead(c);
  if (ahead < 0) return UNISONO_AGAIN;
  ((unisono_counter *)at(c->counter))->value++;
  if (ahead >= INT64_C(1) << 61) return UNISONO_OK; /* an abort: the words mean nothing */
  if ((c->head.flags & UNISONO_CMD_WORDS) && memcmp(line->words, c->words, sizeof c->words) != 0) {
    fail(error, UNISONO_ERR_MISMATCH, 0, "example: a signal carries other words than expected");
    if (error != NULL) memcpy(error->words, line->words, sizeof error->words);
    return UNISONO_ERR_MISMATCH;
  }
  return UNISONO_OK;
}

/* Raises a flag, local or imported, after everything before it is visible. */
static void signal_raise(uint64_t flag, uint64_t counter, const uint64_t *words) {
  unisono_counter *own = at(counter);
  unisono_flag_line *line = at(flag);
  if (words != NULL) memcpy(line->words, words, sizeof line->words);
  own->value++;
  atomic_store_explicit((_Atomic uint64_t *)&line->counter, own->value, memory_order_release);
}

/* What every thread of a plugin must do: leave the process's signals alone. */
static int thread_start(pthread_t *thread, void *(*run)(void *), void *arg) {
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  int result = pthread_create(thread, NULL, run, arg);
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  return result;
}

/* ------------------------------------------------------------ 2. the instance ----------------- */

typedef struct unisono_device_s {
  struct unisono_instance_s *instance;
  uint8_t id[16];
  pthread_mutex_t lock; /* guards the list */
  struct unisono_memory_s *memories;
  uint64_t generations;
} device;

typedef struct unisono_instance_s {
  unisono_host host;
  uint64_t spin_ns;
  uint32_t depth;
  device device; /* there is one */
  uint8_t name[NONCE]; /* where our links listen */
  int quiet; /* a descriptor that is never ready */
  atomic_uint_fast64_t refused; /* strangers */
} instance;

#define STR(s) {(s), sizeof(s) - 1}

/* YOURS: the parameters that the cluster file may set; the host checks types and bounds. */
static const unisono_param params[] = {
    {STR("spin"), STR("How long a stream's thread spins before it naps while it waits."),
     STR("20us"), UNISONO_PARAM_DURATION_NS, 0, 0, 1000000},
    {STR("queue_depth"), STR("Commands that a stream or link holds."), STR("1024"),
     UNISONO_PARAM_INT, 0, 16, 65536},
};
enum { PARAMS = sizeof params / sizeof params[0] };

/* The same in every process of this machine, another one on each machine: its boot's id. */
static void device_id(uint8_t id[16]) {
  FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
  memcpy(id, "unisono example ", 16);
  for (int i = 0; file != NULL && i < 16; i++) {
    unsigned byte;
    if (fscanf(file, "%2x%*[-]", &byte) == 1) id[i] ^= (uint8_t)byte;
  }
  if (file != NULL) fclose(file);
}

static unisono_status instance_create(const unisono_instance_info *info, unisono_instance *out,
                                      unisono_error *error) {
  if (info->param_count != PARAMS)
    return INVALID(error, "example: create needs all %d parameters", (int)PARAMS);
  instance *self = calloc(1, sizeof *self);
  if (self == NULL) return NO_MEMORY(error);
  if (info->host != NULL) self->host = *info->host;
  self->spin_ns = (uint64_t)info->params[0].number;
  self->depth = (uint32_t)info->params[1].number;
  self->quiet = eventfd(0, EFD_CLOEXEC);
  if (self->quiet < 0 || getrandom(self->name, NONCE, 0) != NONCE) {
    if (self->quiet >= 0) close(self->quiet);
    free(self);
    return fail(error, UNISONO_ERR_DEVICE, errno, "example: no descriptor or no randomness left");
  }
  self->device.instance = self;
  device_id(self->device.id);
  pthread_mutex_init(&self->device.lock, NULL);
  *out = self;
  return UNISONO_OK;
}

static void instance_destroy(unisono_instance self) {
  pthread_mutex_destroy(&self->device.lock);
  close(self->quiet);
  free(self);
}

static void say(const instance *self, uint32_t level, const char *words) {
  const unisono_host *host = &self->host;
  if (host->log == NULL || host->log_level == NULL || level > host->log_level(host->context)) return;
  unisono_log_record record = {
      sizeof record, level, STR("example"), STR("example.c"), 0, 0, {words, strlen(words)}};
  host->log(host->context, &record);
}

/* ------------------------------------------------------------ 3. device, memory, events ------- */

/* YOURS: ask your driver. */
static unisono_status instance_devices(unisono_instance self, unisono_device_info *info,
                                       uint32_t cap, uint32_t *count, unisono_error *error) {
  (void)error;
  *count = 1;
  if (cap == 0) return UNISONO_OK;
  memset(info, 0, sizeof *info);
  info->struct_size = sizeof *info;
  info->kind = UNISONO_DEVICE_CPU;
  memcpy(info->id, self->device.id, 16);
  strcpy(info->name, "example worker threads");
  info->numa = -1;
  info->queues = 4;
  info->memory_bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
  info->reach = UNISONO_REACH_HOST;
  info->streams = UNISONO_STREAM_CHECKS_WORDS;
  info->event_sides = UNISONO_SIDE_NATIVE << UNISONO_EVENT_DEVICE_SIGNAL_SHIFT |
                      UNISONO_SIDE_NATIVE << UNISONO_EVENT_DEVICE_WAIT_SHIFT |
                      UNISONO_SIDE_NATIVE << UNISONO_EVENT_HOST_SIGNAL_SHIFT |
                      UNISONO_SIDE_NATIVE << UNISONO_EVENT_HOST_QUERY_SHIFT;
  info->event_reach = 1; /* this process */
  return UNISONO_OK;
}

typedef struct unisono_memory_s {
  struct unisono_memory_s *next; /* in the device's list */
  device *device;
  uint8_t *base;
  uint64_t bytes, generation;
  uint32_t place; /* HOST: the caller's own memory */
} memory;

static unisono_status device_open(unisono_instance self, uint32_t index, unisono_device *out,
                                  unisono_error *error) {
  if (index != 0) return INVALID(error, "example: there is one device, not device %u", index);
  *out = &self->device;
  return UNISONO_OK;
}

static void device_close(unisono_device d) { (void)d; }

static int can_reduce(uint32_t dtype, uint32_t op) {
  int integer = dtype >= UNISONO_I8 && dtype <= UNISONO_U64;
  int real = dtype >= UNISONO_F16 && dtype <= UNISONO_F64;
  return (integer && op >= UNISONO_SUM && op <= UNISONO_XOR) ||
         (real && op >= UNISONO_SUM && op <= UNISONO_MAX);
}

static unisono_status device_supports(unisono_device d, const unisono_support_query *query) {
  (void)d;
  int can = query->command != UNISONO_CMD_PUT && query->command >= UNISONO_CMD_COPY &&
            query->command <= UNISONO_CMD_WAIT_EVENT;
  if (query->command == UNISONO_CMD_REDUCE) can = can_reduce(query->dtype, query->reduction);
  return can ? UNISONO_OK : UNISONO_ERR_UNSUPPORTED;
}

static void view_of(const memory *m, unisono_memory_view *view) {
  memset(view, 0, sizeof *view);
  view->struct_size = sizeof *view;
  view->place = m->place;
  view->base = view->host = (uint64_t)(uintptr_t)m->base;
  view->bytes = m->bytes;
  view->generation = m->generation;
  memcpy(view->device, m->device->id, 16);
}

/* Takes memory into the list. */
static unisono_status memory_new(device *d, uint32_t place, void *base, uint64_t bytes,
                                 memory **out, unisono_memory_view *view, unisono_error *error) {
  memory *m = base != MAP_FAILED ? calloc(1, sizeof *m) : NULL;
  if (m == NULL) return NO_MEMORY(error);
  *m = (memory){.device = d, .base = base, .bytes = bytes, .place = place};
  pthread_mutex_lock(&d->lock);
  m->generation = ++d->generations;
  m->next = d->memories;
  d->memories = m;
  pthread_mutex_unlock(&d->lock);
  view_of(m, view);
  *out = m;
  return UNISONO_OK;
}

/* YOURS: your allocator. */
static unisono_status memory_alloc(unisono_device d, const unisono_memory_request *request,
                                   unisono_memory *out, unisono_memory_view *view,
                                   unisono_error *error) {
  if (request->kind == UNISONO_MEMORY_BELL || (request->flags & UNISONO_MEMORY_EXPORTABLE))
    return UNSUPPORTED(error, "example: no bells, and no memory that other processes can map");
  if (request->bytes == 0 || request->align > (uint64_t)sysconf(_SC_PAGESIZE))
    return INVALID(error, "example: cannot allocate %llu bytes aligned to %llu",
                   (unsigned long long)request->bytes, (unsigned long long)request->align);
  void *base = mmap(NULL, request->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory_new(d, UNISONO_PLACE_DEVICE, base, request->bytes, out, view, error);
}

static unisono_status memory_register(unisono_device d, void *ptr, uint64_t bytes,
                                      unisono_memory *out, unisono_memory_view *view,
                                      unisono_error *error) {
  if (ptr == NULL || bytes == 0) return INVALID(error, "example: there is nothing to register");
  return memory_new(d, UNISONO_PLACE_HOST, ptr, bytes, out, view, error);
}

static void memory_free(unisono_memory m) {
  pthread_mutex_lock(&m->device->lock);
  memory **link = &m->device->memories;
  while (*link != m) link = &(*link)->next;
  *link = m->next;
  pthread_mutex_unlock(&m->device->lock);
  if (m->place == UNISONO_PLACE_DEVICE) munmap(m->base, m->bytes);
  free(m);
}

static unisono_status memory_query(unisono_device d, uint64_t address, unisono_memory_view *view,
                                   unisono_error *error) {
  (void)error;
  pthread_mutex_lock(&d->lock);
  const memory *m = d->memories;
  while (m != NULL && (m->place == UNISONO_PLACE_HOST ||
                       address - (uint64_t)(uintptr_t)m->base >= m->bytes))
    m = m->next;
  if (m != NULL) view_of(m, view);
  pthread_mutex_unlock(&d->lock);
  return m != NULL ? UNISONO_OK : UNISONO_AGAIN;
}

typedef struct unisono_event_s {
  atomic_int complete;
} event;

static unisono_status event_create(unisono_device d, unisono_event *out, unisono_error *error) {
  (void)d;
  *out = calloc(1, sizeof **out);
  return *out != NULL ? UNISONO_OK : NO_MEMORY(error);
}

static void event_destroy(unisono_event e) { free(e); }

static unisono_status event_host_signal(unisono_event e, unisono_error *error) {
  (void)error;
  atomic_store_explicit(&e->complete, 1, memory_order_release);
  return UNISONO_OK;
}

static unisono_status event_host_query(unisono_event e, unisono_error *error) {
  (void)error;
  return atomic_load_explicit(&e->complete, memory_order_acquire) ? UNISONO_OK : UNISONO_AGAIN;
}

/* ------------------------------------------------------------ 4. reductions ------------------- */

/* YOURS: your kernels. First the short floats, which are computed in f32. */
static float from_bits(uint32_t bits) { float f; memcpy(&f, &bits, 4); return f; }
static uint32_t to_bits(float f) { uint32_t bits; memcpy(&bits, &f, 4); return bits; }

static float load_bf16(uint16_t h) { return from_bits((uint32_t)h << 16); }
static uint16_t store_bf16(float f) { /* to nearest, ties to even */
  uint32_t bits = to_bits(f);
  return f != f ? 0x7fc0 : (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float load_f16(uint16_t h) {
  uint32_t sign = (uint32_t)h >> 15 << 31, rest = h & 0x7fff;
  if (rest >= 0x7c00) return from_bits(sign | 0x7f800000 | (rest - 0x7c00) << 13);
  if (rest >= 0x400) return from_bits(sign | (rest + (112 << 10)) << 13);
  return (sign != 0 ? -1.0f : 1.0f) * (float)rest / (1 << 24); /* subnormal */
}
static uint16_t store_f16(float f) { /* to nearest, ties to even */
  uint32_t bits = to_bits(f), rest = bits & 0x7fffffff, sign = bits >> 31 << 15;
  if (rest > 0x7f800000) return 0x7e00;
  if (rest < 113 << 23) /* subnormal: the FPU rounds it for us */
    return (uint16_t)(sign | (to_bits(from_bits(rest) + 0.5f) - to_bits(0.5f)));
  rest = (rest - (112 << 23) + 0xfff + (rest >> 13 & 1)) >> 13;
  return (uint16_t)(sign | (rest < 0x7c00 ? rest : 0x7c00));
}

/* Types: name, in memory, computed in, sums and products in (integers wrap), wrapped to, read, written. */
#define TYPES(X)                                                                                   \
  X(I8, int8_t, int64_t, uint64_t, int8_t, v, v)                                                   \
  X(U8, uint8_t, uint64_t, uint64_t, uint8_t, v, v)                                                \
  X(I16, int16_t, int64_t, uint64_t, int16_t, v, v)                                                \
  X(U16, uint16_t, uint64_t, uint64_t, uint16_t, v, v)                                             \
  X(I32, int32_t, int64_t, uint64_t, int32_t, v, v)                                                \
  X(U32, uint32_t, uint64_t, uint64_t, uint32_t, v, v)                                             \
  X(I64, int64_t, int64_t, uint64_t, int64_t, v, v)                                                \
  X(U64, uint64_t, uint64_t, uint64_t, uint64_t, v, v)                                             \
  X(F16, uint16_t, float, float, float, load_f16(v), store_f16(v))                                \
  X(BF16, uint16_t, float, float, float, load_bf16(v), store_bf16(v))                              \
  X(F32, float, float, float, float, v, v)                                                         \
  X(F64, double, double, double, double, v, v)

/* dst[i] = a[i] op b[i], then / divisor; min and max give NaN if either is NaN. */
#define KERNEL(NAME, type, wide, sum, wrap, LOAD, STORE)                                           \
  static inline wide load_##NAME(type v) { return LOAD; }                                          \
  static inline type store_##NAME(wide v) { return (type)(STORE); }                                \
  static void reduce_##NAME(int op, void *dst, const void *left, const void *right, uint64_t n,    \
                            uint32_t divisor) {                                                    \
    type *d = dst;                                                                                 \
    const type *a = left, *b = right;                                                              \
    for (uint64_t i = 0; i < n; i++) {                                                             \
      wide x = load_##NAME(a[i]), y = load_##NAME(b[i]), r;                                        \
      switch (op) {                                                                                \
        case UNISONO_SUM: r = (wide)(wrap)((sum)x + (sum)y); break;                                \
        case UNISONO_PROD: r = (wide)(wrap)((sum)x * (sum)y); break;                               \
        case UNISONO_MIN: r = x != x || x < y ? x : y; break;                                      \
        case UNISONO_MAX: r = x != x || x > y ? x : y; break;                                      \
        case UNISONO_AND: r = (wide)((uint64_t)x & (uint64_t)y); break; /* of integers only */     \
        case UNISONO_OR: r = (wide)((uint64_t)x | (uint64_t)y); break;                             \
        default: r = (wide)((uint64_t)x ^ (uint64_t)y); break;                                     \
      }                                                                                            \
      d[i] = store_##NAME(divisor != 0 ? r / (wide)divisor : r);                                   \
    }                                                                                              \
  }
TYPES(KERNEL)

#define ROW(NAME, type, ...) [UNISONO_##NAME] = {reduce_##NAME, sizeof(type)},
static const struct {
  void (*reduce)(int op, void *dst, const void *a, const void *b, uint64_t n, uint32_t divisor);
  uint64_t bytes;
} types[] = {TYPES(ROW)};

/* ------------------------------------------------------------ 5. queues ----------------------- */

typedef union {
  unisono_command head;
  unisono_command_copy copy;
  unisono_command_reduce reduce;
  unisono_command_signal signal;
  unisono_command_wait wait;
  unisono_command_put put;
  unisono_command_event event;
} command;

/* What streams and links share: a ring of commands. */
typedef struct {
  pthread_mutex_t lock; /* guards all of it but `aborted` */
  pthread_cond_t changed;
  command *ring;
  uint32_t depth, busy; /* busy: its state while commands are left */
  uint64_t accepted, completed, reported;
  unisono_error error; /* what it failed with, once its status is not OK */
  int running;         /* a command is under way, and touches the host's memory */
  atomic_int aborted;
  int armed; /* the host sleeps, and is woken at most once for each time */
  unisono_waker waker;
} queue;

static int queue_init(queue *q, uint32_t depth, uint32_t busy) {
  pthread_mutex_init(&q->lock, NULL);
  pthread_cond_init(&q->changed, NULL);
  q->ring = calloc(depth, sizeof *q->ring);
  q->depth = depth;
  q->busy = busy;
  return q->ring != NULL;
}

static void queue_free(queue *q) {
  pthread_cond_destroy(&q->changed);
  pthread_mutex_destroy(&q->lock);
  free(q->ring);
}

/* With the lock held, as all calls of a waker: none is under way any more when disarm returns. */
static void queue_wake(queue *q) {
  if (q->armed) {
    q->armed = 0;
    q->waker.wake(q->waker.context);
  }
}

/* With the lock held. What a command came to: it is complete, or the queue fails. */
static void queue_step(queue *q, unisono_status status, const unisono_error *error) {
  if (status == UNISONO_OK) q->completed++;
  if (status < 0 && q->error.status == UNISONO_OK) q->error = *error;
  queue_wake(q);
  pthread_cond_broadcast(&q->changed);
}

static void queue_abort(queue *q) {
  unisono_error error = {0};
  fail(&error, UNISONO_ERR_ABORTED, 0, "example: aborted");
  atomic_store(&q->aborted, 1);
  pthread_mutex_lock(&q->lock);
  queue_step(q, UNISONO_ERR_ABORTED, &error);
  pthread_mutex_unlock(&q->lock);
}

/* With the lock held. FAILED is also a promise: memory is left alone from now on. */
static unisono_status queue_tell(const queue *q, unisono_queue_state *out, unisono_error *error) {
  unisono_status failed = q->error.status;
  if (out != NULL) {
    out->state = failed != 0 && !q->running            ? UNISONO_QUEUE_FAILED
                 : failed != 0                         ? UNISONO_QUEUE_WAITING
                 : q->busy == UNISONO_QUEUE_CONNECTING ? q->busy
                 : q->accepted == q->completed         ? UNISONO_QUEUE_IDLE : q->busy;
    out->accepted = q->accepted;
    out->completed = q->completed;
  }
  if (failed != 0 && error != NULL) {
    uint32_t size = error->struct_size;
    *error = q->error;
    error->struct_size = size;
  }
  return failed;
}

static unisono_status queue_query(queue *q, unisono_queue_state *state) {
  pthread_mutex_lock(&q->lock);
  queue_tell(q, state, NULL);
  pthread_mutex_unlock(&q->lock);
  return UNISONO_OK;
}

/* Polls tell how far it is; a stream's worker does the work, a link's is done before. */
static unisono_status queue_poll(queue *q, unisono_queue_state *state, unisono_error *error) {
  pthread_mutex_lock(&q->lock);
  unisono_status status = queue_tell(q, state, error);
  if (state != NULL) state->moved = q->completed != q->reported;
  q->reported = q->completed;
  pthread_mutex_unlock(&q->lock);
  return status;
}

/* What is known of each command: its size and flags, which queues take it, and two of its u64 fields
 * that must not be 0. */
enum { STREAM = 1, LINK = 2 };
#define KNOWN(type, flags, takers, first, second)                                                  \
  {sizeof(unisono_command_##type), flags, takers,                                                  \
   {offsetof(unisono_command_##type, first), offsetof(unisono_command_##type, second)}}
static const struct { uint16_t size, flags, takers, must[2]; } known[] = {
    [UNISONO_CMD_COPY] = KNOWN(copy, UNISONO_CMD_STREAMING, STREAM, repeat, repeat),
    [UNISONO_CMD_REDUCE] = KNOWN(reduce, UNISONO_CMD_STREAMING, STREAM, repeat, repeat),
    [UNISONO_CMD_SIGNAL] = KNOWN(signal, UNISONO_CMD_WORDS, STREAM, flag, counter),
    [UNISONO_CMD_WAIT] = KNOWN(wait, UNISONO_CMD_WORDS, STREAM | LINK, flag, counter),
    [UNISONO_CMD_PUT] = KNOWN(put, UNISONO_CMD_WORDS, LINK, repeat, repeat),
    [UNISONO_CMD_RECORD] = KNOWN(event, 0, STREAM, event, event),
    [UNISONO_CMD_WAIT_EVENT] = KNOWN(event, 0, STREAM, event, event)};

static unisono_status command_check(const command *c, uint64_t bytes, int taker) {
  uint32_t kind = c->head.kind;
  uint64_t first, second;
  if (bytes < sizeof c->head || c->head.size % 8 != 0 || c->head.size > bytes)
    return UNISONO_ERR_INVALID;
  if (kind >= sizeof known / sizeof known[0] || !(known[kind].takers & taker) ||
      (c->head.flags & ~(uint32_t)known[kind].flags)) /* an unknown flag is refused */
    return UNISONO_ERR_UNSUPPORTED;
  if (c->head.size < known[kind].size) return UNISONO_ERR_INVALID; /* it may be longer */
  if (kind == UNISONO_CMD_REDUCE && !can_reduce(c->reduce.dtype, c->reduce.reduction))
    return UNISONO_ERR_UNSUPPORTED;
  memcpy(&first, (const uint8_t *)c + known[kind].must[0], sizeof first);
  memcpy(&second, (const uint8_t *)c + known[kind].must[1], sizeof second);
  int half = kind == UNISONO_CMD_PUT && (c->put.done_flag == 0) != (c->put.done_counter == 0);
  return first == 0 || second == 0 || half ? UNISONO_ERR_INVALID : UNISONO_OK;
}

/* Checks all commands of a batch before any is taken. */
static unisono_status batch_check(const void *commands, uint64_t bytes, uint32_t count, int taker,
                                  unisono_error *error) {
  const command *c = commands;
  for (uint32_t i = 0; i < count; i++) {
    unisono_status status = command_check(c, bytes, taker);
    if (status != UNISONO_OK) return fail(error, status, 0, "example: command %u of %u", i, count);
    bytes -= c->head.size;
    c = (const command *)((const uint8_t *)c + c->head.size);
  }
  return bytes == 0 ? UNISONO_OK : INVALID(error, "example: bytes are left behind the batch");
}

/* Copies as many commands as there is room for; the batch was checked. */
static unisono_status queue_submit(queue *q, const void *commands, uint32_t count,
                                   uint32_t *accepted, unisono_error *error) {
  const uint8_t *p = commands;
  pthread_mutex_lock(&q->lock);
  unisono_status status = queue_tell(q, NULL, error);
  while (status == UNISONO_OK && *accepted < count && q->accepted - q->completed < q->depth) {
    const command *c = (const command *)p;
    memcpy(&q->ring[q->accepted++ % q->depth], c, known[c->head.kind].size);
    if (c->head.kind == UNISONO_CMD_RECORD) atomic_store(&c->event.event->complete, 0);
    ++*accepted;
    p += c->head.size;
  }
  pthread_cond_broadcast(&q->changed);
  pthread_mutex_unlock(&q->lock);
  return status;
}

/* ------------------------------------------------------------ 6. streams ---------------------- */

typedef struct unisono_stream_s {
  queue q;
  pthread_t worker;
  uint64_t spin_ns;
  int stop;
} stream;

/* Spins for a while, then naps; an abort ends it. */
static unisono_status wait_for(stream *s, const command *c, unisono_error *error) {
  uint64_t until = 0;
  for (uint32_t tries = 0;; tries++) {
    unisono_status status = c->head.kind == UNISONO_CMD_WAIT ? wait_try(&c->wait, error)
                                                             : event_host_query(c->event.event, error);
    if (status != UNISONO_AGAIN) return status;
    if (atomic_load_explicit(&s->q.aborted, memory_order_relaxed))
      return fail(error, UNISONO_ERR_ABORTED, 0, "example: aborted");
    if (tries % 64 != 63) continue;
    if (until == 0) until = now_ns() + s->spin_ns;
    if (now_ns() >= until) nanosleep(&(struct timespec){0, NAP_NS}, NULL);
  }
}

/* YOURS: hand the command to your hardware queue instead. */
static unisono_status run(stream *s, const command *c, unisono_error *error) {
  const unisono_command_copy *m = &c->copy;
  const unisono_command_reduce *r = &c->reduce;
  switch (c->head.kind) {
    case UNISONO_CMD_COPY:
      for (uint64_t i = 0; i < m->repeat; i++)
        memmove(at(m->dst + i * m->dst_stride), at(m->src + i * m->src_stride), m->bytes);
      return UNISONO_OK;
    case UNISONO_CMD_REDUCE:
      for (uint64_t i = 0; i < r->repeat; i++)
        types[r->dtype].reduce(r->reduction, at(r->dst + i * r->dst_stride),
                               at(r->a + i * r->a_stride), at(r->b + i * r->b_stride), r->elements,
                               r->divisor);
      return UNISONO_OK;
    case UNISONO_CMD_SIGNAL:
      signal_raise(c->signal.flag, c->signal.counter,
                   c->head.flags & UNISONO_CMD_WORDS ? c->signal.words : NULL);
      return UNISONO_OK;
    case UNISONO_CMD_RECORD: return event_host_signal(c->event.event, error);
    default: return wait_for(s, c, error); /* WAIT, WAIT_EVENT */
  }
}

static void *worker(void *arg) {
  stream *s = arg;
  queue *q = &s->q;
  pthread_mutex_lock(&q->lock);
  while (!s->stop) {
    if (q->error.status != UNISONO_OK || q->accepted == q->completed) {
      pthread_cond_wait(&q->changed, &q->lock);
      continue;
    }
    command c = q->ring[q->completed % q->depth];
    unisono_error error = {0};
    q->running = 1;
    pthread_mutex_unlock(&q->lock);
    unisono_status status = run(s, &c, &error);
    pthread_mutex_lock(&q->lock);
    q->running = 0;
    queue_step(q, status, &error);
  }
  pthread_mutex_unlock(&q->lock);
  return NULL;
}

static unisono_status stream_create(unisono_device d, const unisono_stream_request *request,
                                    unisono_stream *out, unisono_error *error) {
  (void)request;
  stream *s = calloc(1, sizeof *s);
  if (s == NULL) return NO_MEMORY(error);
  s->spin_ns = d->instance->spin_ns;
  if (!queue_init(&s->q, d->instance->depth, UNISONO_QUEUE_WAITING) ||
      thread_start(&s->worker, worker, s) != 0) {
    queue_free(&s->q);
    free(s);
    return NO_MEMORY(error);
  }
  *out = s;
  return UNISONO_OK;
}

static void stream_destroy(unisono_stream s) {
  pthread_mutex_lock(&s->q.lock);
  s->stop = 1;
  pthread_cond_broadcast(&s->q.changed);
  pthread_mutex_unlock(&s->q.lock);
  pthread_join(s->worker, NULL); /* it is idle or aborted, by contract */
  queue_free(&s->q);
  free(s);
}

static unisono_status stream_submit(unisono_stream s, const void *commands, uint64_t bytes,
                                    uint32_t count, uint32_t *accepted, unisono_error *error) {
  *accepted = 0;
  unisono_status status = batch_check(commands, bytes, count, STREAM, error);
  return status != UNISONO_OK ? status : queue_submit(&s->q, commands, count, accepted, error);
}

static unisono_status stream_poll(unisono_stream s, uint64_t budget, unisono_queue_state *state,
                                  unisono_error *error) {
  (void)budget;
  return queue_poll(&s->q, state, error);
}

static unisono_status stream_arm(unisono_stream s, uint32_t allowed, const unisono_waker *waker,
                                 unisono_sleep *sleep, unisono_error *error) {
  queue *q = &s->q;
  if (!(allowed & UNISONO_SLEEP_WAKER) || waker == NULL)
    return UNSUPPORTED(error, "example: streams can only call a waker");
  pthread_mutex_lock(&q->lock);
  /* What poll has not told yet is no reason to sleep. */
  q->armed = q->error.status == UNISONO_OK && q->completed == q->reported;
  q->waker = *waker;
  sleep->how = q->armed ? UNISONO_SLEEP_WAKER : UNISONO_SLEEP_READY;
  pthread_mutex_unlock(&q->lock);
  return UNISONO_OK;
}

static void stream_disarm(unisono_stream s) {
  pthread_mutex_lock(&s->q.lock);
  s->q.armed = 0;
  pthread_mutex_unlock(&s->q.lock);
}

/* [any]: on whatever thread. */
static void stream_abort(unisono_stream s) { queue_abort(&s->q); }
static unisono_status stream_query(unisono_stream s, unisono_queue_state *state) {
  return queue_query(&s->q, state);
}

/* ------------------------------------------------------------ 7. links ------------------------ */

/* A posted link is one Unix socket, which keeps packets whole. The lower rank dials, the other
 * listens at a name that both know. Both say hello, and prove by the host's channel that they are
 * the rank they claim; then each PUT is a packet or several, the last of which signals. The host's
 * poll moves them; while it sleeps, it sleeps on the socket. */
enum { PACKET = 64 << 10, WINDOWS = 16, SOCKET_BUFFER = 1 << 20 };
/* How long a caller may take to say who it is, and how long if others wait behind it. */
enum { HANDSHAKE_NS = 2 * 1000 * 1000 * 1000, CROWD_NS = 10 * 1000 * 1000 };

enum { DATA, LAST, BYE }; /* BYE: the link was destroyed, with nothing left to send */
typedef struct { /* before the bytes of a packet */
  uint32_t kind, window, signal_window, words_valid;
  uint64_t offset, bytes, signal_offset, words[3];
} packet;

typedef struct { uint32_t id, taken; uint64_t ptr, bytes; } window;

typedef struct unisono_link_s {
  queue q; /* a link that is not up is `busy` connecting */
  instance *instance;
  unisono_channel channel;
  uint32_t peer;
  struct sockaddr_un name;
  socklen_t name_len;
  int fd, door;        /* -1; the one that listens has a door until its peer has come */
  uint64_t since;      /* when the one at fd came */
  int greeted, left;   /* at fd: has said hello; has said BYE */
  uint8_t mine[NONCE], theirs[NONCE]; /* made for this meeting alone: the hellos */
  window ours[WINDOWS], peers[WINDOWS]; /* exported here; imported from the peer */
  uint64_t sent, room; /* of the PUT under way; how much the socket may hold */
  int blocked;         /* it holds that */
  unisono_link_statistics statistics;
} link_state;

static window *window_find(window *list, uint32_t id) {
  for (int i = 0; i < WINDOWS; i++)
    if (list[i].taken && list[i].id == id) return &list[i];
  return NULL;
}

static unisono_status window_add(window *list, uint32_t id, uint64_t ptr, uint64_t bytes,
                                 unisono_error *error) {
  if (window_find(list, id) != NULL) return INVALID(error, "example: window %u is taken", id);
  for (int i = 0; i < WINDOWS; i++)
    if (!list[i].taken) {
      list[i] = (window){id, 1, ptr, bytes};
      return UNISONO_OK;
    }
  return fail(error, UNISONO_ERR_OUT_OF_MEMORY, 0, "example: a link has %d windows", WINDOWS);
}

/* Whether [offset, offset + bytes) lies in a window. */
static window *window_holds(window *list, uint32_t id, uint64_t offset, uint64_t bytes) {
  window *found = window_find(list, id);
  return found != NULL && offset <= found->bytes && bytes <= found->bytes - offset ? found : NULL;
}

static unisono_status link_address(unisono_instance self, void *out, uint64_t cap, uint64_t *len,
                                   unisono_error *error) {
  *len = NONCE;
  if (cap < NONCE) return INVALID(error, "example: the address has %d bytes", NONCE);
  memcpy(out, self->name, NONCE);
  return UNISONO_OK;
}

static unisono_status link_report(unisono_instance self, unisono_link_info *out, uint32_t cap,
                                  uint32_t *count, unisono_error *error) {
  (void)self, (void)error;
  *count = 1;
  if (cap == 0) return UNISONO_OK;
  memset(out, 0, sizeof *out);
  out->struct_size = sizeof *out;
  out->link_type = UNISONO_LINK_POSTED;
  out->scope = UNISONO_SCOPE_NODE;
  out->shared = 1; /* all of them pass through the same memory */
  strcpy(out->kind, "example-unix");
  out->bytes_per_second = UINT64_C(2000000000);
  out->latency_ns = 30000;
  return UNISONO_OK;
}

static void link_hang_up(link_state *l) {
  if (l->fd >= 0) close(l->fd);
  l->fd = -1;
  l->greeted = 0;
}

/* Finds somebody: dials, or looks who is at the door. */
static unisono_status link_meet(link_state *l, unisono_error *error) {
  int flags = SOCK_CLOEXEC | SOCK_NONBLOCK, size = SOCKET_BUFFER;
  l->fd = l->door >= 0 ? accept4(l->door, NULL, NULL, flags)
                       : socket(AF_UNIX, SOCK_SEQPACKET | flags, 0);
  if (l->fd < 0) return UNISONO_AGAIN;
  l->since = now_ns();
  setsockopt(l->fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
  if ((l->door >= 0 || connect(l->fd, (struct sockaddr *)&l->name, l->name_len) == 0) &&
      getrandom(l->mine, NONCE, 0) == NONCE && send(l->fd, l->mine, NONCE, MSG_NOSIGNAL) == NONCE)
    return UNISONO_OK;
  int absent = errno == ECONNREFUSED || errno == EAGAIN || errno == EPIPE || errno == ECONNRESET;
  fail(error, UNISONO_ERR_PEER, errno, "example: rank %u: %s", l->peer, strerror(errno));
  link_hang_up(l);
  return absent ? UNISONO_AGAIN : UNISONO_ERR_PEER;
}

/* What a side signs: who it is, for whom, in this meeting. */
typedef struct { uint64_t channel; uint32_t from, to; uint8_t own[NONCE], other[NONCE]; } transcript;

/* One step with whoever is there: OK if it went on, AGAIN if it must wait. Strangers, and who says
 * nothing for too long, are dropped; a rank that was dropped in a crowd dials again. */
static unisono_status link_greet(link_state *l, unisono_error *error) {
  uint8_t signature[64];
  unisono_channel *channel = &l->channel;
  transcript t = {channel->id, channel->rank, l->peer, {0}, {0}};
  ssize_t n = l->greeted ? recv(l->fd, signature, sizeof signature, 0)
                         : recv(l->fd, l->theirs, NONCE, 0);
  if (n < 0 && errno == EAGAIN) {
    struct pollfd door = {l->door, POLLIN, 0};
    uint64_t patience = poll(&door, 1, 0) > 0 ? CROWD_NS : HANDSHAKE_NS;
    if (now_ns() - l->since <= patience) return UNISONO_AGAIN;
  } else if (l->greeted && n == sizeof signature) {
    t = (transcript){channel->id, l->peer, channel->rank, {0}, {0}};
    memcpy(t.own, l->theirs, NONCE);
    memcpy(t.other, l->mine, NONCE);
    if (channel->verify(channel->context, l->peer, &t, sizeof t, signature) == UNISONO_OK) {
      int size = 0;
      getsockopt(l->fd, SOL_SOCKET, SO_SNDBUF, &size, &(socklen_t){sizeof size});
      l->room = (uint64_t)size / 3; /* the rest is for one more packet, and for BYE */
      if (l->door >= 0) close(l->door);
      l->door = -1;
      pthread_mutex_lock(&l->q.lock);
      l->q.busy = UNISONO_QUEUE_WAITING;
      pthread_mutex_unlock(&l->q.lock);
      return UNISONO_OK;
    }
  } else if (!l->greeted && n == NONCE) {
    memcpy(t.own, l->mine, NONCE);
    memcpy(t.other, l->theirs, NONCE);
    unisono_status status = channel->prove(channel->context, &t, sizeof t, signature);
    if (status < 0) return fail(error, status, 0, "example: the host proves nothing");
    l->greeted = send(l->fd, signature, sizeof signature, MSG_NOSIGNAL) == sizeof signature;
    if (l->greeted) return UNISONO_OK;
  }
  if ((n > 0 || l->door >= 0) && atomic_fetch_add(&l->instance->refused, 1) == 0)
    say(l->instance, UNISONO_LOG_WARN, "dropped a caller: no rank of ours");
  link_hang_up(l);
  return UNISONO_AGAIN;
}

/* YOURS: post it to your NIC. Here: packets into the socket, as many as it takes. */
static unisono_status put_send(link_state *l, const unisono_command_put *p, uint64_t *budget) {
  uint64_t total = p->bytes * p->repeat, most = l->room < PACKET ? l->room : PACKET;
  for (int last = 0; !last;) {
    packet h = {DATA, p->dst_window, UNISONO_NO_WINDOW, 0, p->dst_offset + l->sent, 0, 0, {0}};
    if (total > 0) {
      uint64_t left = p->bytes - l->sent % p->bytes; /* of this piece */
      h.bytes = left < most ? left : most;
    }
    void *from = total > 0 ? at(p->src + l->sent / p->bytes * p->src_stride + l->sent % p->bytes) : &h;
    struct iovec parts[2] = {{&h, sizeof h}, {from, h.bytes}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    last = l->sent + h.bytes == total;
    if (last) {
      h.kind = LAST;
      h.signal_window = p->signal_window;
      h.signal_offset = p->signal_offset;
      h.words_valid = p->head.flags & UNISONO_CMD_WORDS;
      memcpy(h.words, p->words, sizeof h.words);
    }
    int held = 0;
    ioctl(l->fd, SIOCOUTQ, &held);
    l->blocked = (uint64_t)held > l->room;
    if (l->blocked || *budget == 0) return UNISONO_AGAIN;
    if (sendmsg(l->fd, &message, MSG_NOSIGNAL) < 0) {
      l->blocked = errno == EAGAIN; /* else the peer is gone: what it sent before says how */
      return UNISONO_AGAIN;
    }
    l->sent += h.bytes;
    *budget -= h.bytes < *budget ? h.bytes : *budget;
  }
  l->sent = 0;
  l->statistics.puts_sent++;
  l->statistics.bytes_sent += total;
  if (p->done_flag != 0) signal_raise(p->done_flag, p->done_counter, NULL);
  return UNISONO_OK;
}

static unisono_status link_send(link_state *l, uint64_t *budget, unisono_error *error) {
  while (l->q.completed < l->q.accepted) {
    const command *c = &l->q.ring[l->q.completed % l->q.depth];
    if (l->left) return fail(error, UNISONO_ERR_PEER, 0, "example: rank %u has left", l->peer);
    unisono_status status = c->head.kind == UNISONO_CMD_WAIT ? wait_try(&c->wait, error)
                                                             : put_send(l, &c->put, budget);
    if (status != UNISONO_OK) return status;
    pthread_mutex_lock(&l->q.lock);
    queue_step(&l->q, status, error);
    pthread_mutex_unlock(&l->q.lock);
  }
  return UNISONO_OK;
}

static unisono_status link_receive(link_state *l, uint64_t *budget, unisono_error *error) {
  while (*budget > 0 && !l->left) {
    packet h;
    ssize_t n = recv(l->fd, &h, sizeof h, MSG_PEEK);
    if (n < 0 && errno == EAGAIN) return UNISONO_AGAIN;
    if (n < 0 && errno == ECONNRESET) continue; /* said once, before what the peer sent */
    if (n < (ssize_t)sizeof h)
      return fail(error, UNISONO_ERR_PEER, n < 0 ? errno : 0, "example: rank %u is gone", l->peer);
    window *w = window_holds(l->ours, h.window, h.offset, h.bytes);
    window *s = window_holds(l->ours, h.signal_window, h.signal_offset, sizeof(unisono_flag_line));
    int signals = h.kind == LAST && h.signal_window != UNISONO_NO_WINDOW;
    if ((h.bytes > 0 && w == NULL) || (signals && (s == NULL || h.signal_offset % 64 != 0)))
      return fail(error, UNISONO_ERR_LINK, 0, "example: rank %u wrote outside its windows", l->peer);
    struct iovec parts[2] = {{&h, sizeof h}, {w != NULL ? at(w->ptr + h.offset) : &h, h.bytes}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = h.bytes > 0 ? 2 : 1};
    if (recvmsg(l->fd, &message, 0) != (ssize_t)(sizeof h + h.bytes))
      return fail(error, UNISONO_ERR_LINK, 0, "example: rank %u sent half a packet", l->peer);
    if (signals) {
      unisono_flag_line *line = at(s->ptr + h.signal_offset);
      if (h.words_valid) memcpy(line->words, h.words, sizeof line->words);
      /* Added, not stored: an abort may have raised the flag meanwhile. */
      atomic_fetch_add_explicit((_Atomic uint64_t *)&line->counter, 1, memory_order_release);
    }
    l->left = h.kind == BYE;
    l->statistics.puts_received += h.kind == LAST;
    l->statistics.bytes_received += h.bytes;
    *budget -= h.bytes < *budget ? h.bytes : *budget;
  }
  return UNISONO_OK;
}

static unisono_status link_poll(unisono_link l, uint64_t budget, unisono_queue_state *state,
                                unisono_error *error) {
  queue *q = &l->q;
  unisono_error problem = {0};
  unisono_status status = UNISONO_OK;
  uint64_t out = budget, in = budget, puts = l->statistics.puts_received;
  uint32_t before = q->busy;
  pthread_mutex_lock(&q->lock);
  q->running = q->error.status == UNISONO_OK;
  pthread_mutex_unlock(&q->lock);
  while (q->running && q->busy == UNISONO_QUEUE_CONNECTING && status == UNISONO_OK)
    status = l->fd < 0 ? link_meet(l, &problem) : link_greet(l, &problem);
  if (q->running && q->busy != UNISONO_QUEUE_CONNECTING && status >= 0)
    status = link_send(l, &out, &problem);
  if (q->running && q->busy != UNISONO_QUEUE_CONNECTING && status >= 0)
    status = link_receive(l, &in, &problem);
  pthread_mutex_lock(&q->lock);
  q->running = 0;
  if (status < 0) queue_step(q, status, &problem);
  int over = q->error.status != UNISONO_OK || l->left;
  pthread_mutex_unlock(&q->lock);
  if (over) link_hang_up(l);
  status = queue_poll(q, state, error);
  if (state != NULL)
    state->moved |= out != budget || in != budget || puts != l->statistics.puts_received ||
                    before != q->busy;
  return status;
}

static unisono_status link_arm(unisono_link l, uint32_t allowed, const unisono_waker *waker,
                               unisono_sleep *sleep, unisono_error *error) {
  (void)waker;
  if (!(allowed & UNISONO_SLEEP_FD))
    return UNSUPPORTED(error, "example: a sleep on a link is one on its descriptor");
  const command *c = &l->q.ring[l->q.completed % l->q.depth];
  int can_send = l->q.completed < l->q.accepted && !l->blocked &&
                 (c->head.kind != UNISONO_CMD_WAIT || wait_ahead(&c->wait) >= 0);
  int can_sleep = l->left || (l->fd >= 0 && l->q.busy == UNISONO_QUEUE_WAITING);
  sleep->how = can_sleep && !can_send ? UNISONO_SLEEP_FD : UNISONO_SLEEP_READY;
  sleep->fd = l->left ? l->instance->quiet : l->fd;
  sleep->fd_events = POLLIN | (l->blocked ? POLLOUT : 0);
  return UNISONO_OK;
}

static void link_disarm(unisono_link l) { (void)l; }

static void link_destroy(unisono_link l) {
  packet bye = {.kind = BYE};
  if (l->fd >= 0 && l->q.busy != UNISONO_QUEUE_CONNECTING && l->q.accepted == l->q.completed &&
      l->q.error.status == UNISONO_OK && send(l->fd, &bye, sizeof bye, MSG_NOSIGNAL) < 0)
    say(l->instance, UNISONO_LOG_DEBUG, "a peer was gone before it was told goodbye");
  link_hang_up(l);
  if (l->door >= 0) close(l->door);
  queue_free(&l->q);
  free(l);
}

static unisono_status link_create(unisono_instance self, const unisono_link_request *request,
                                  unisono_link *out, unisono_error *error) {
  const unisono_channel *channel = request->channel;
  if (request->peer_address_len != NONCE || request->peer == channel->rank)
    return INVALID(error, "example: rank %u gave no address of this plugin", request->peer);
  link_state *l = calloc(1, sizeof *l);
  if (l == NULL) return NO_MEMORY(error);
  int dials = channel->rank < request->peer;
  l->instance = self;
  l->channel = *channel;
  l->peer = request->peer;
  l->fd = l->door = -1;
  uint64_t name[2];
  memcpy(name, dials ? request->peer_address : self->name, NONCE);
  l->name.sun_family = AF_UNIX; /* abstract: path[0] is 0, nothing is left in the file system */
  int len = snprintf(l->name.sun_path + 1, sizeof l->name.sun_path - 1,
                     "unisono-example-%016llx%016llx-%llx-%u-%u", (unsigned long long)name[0],
                     (unsigned long long)name[1], (unsigned long long)channel->id,
                     dials ? channel->rank : l->peer, dials ? l->peer : channel->rank);
  l->name_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
  if (!dials) l->door = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  int open = dials || (bind(l->door, (struct sockaddr *)&l->name, l->name_len) == 0 &&
                       listen(l->door, 1024) == 0);
  int code = errno;
  if (queue_init(&l->q, self->depth, UNISONO_QUEUE_CONNECTING) && open) {
    *out = l;
    return UNISONO_OK;
  }
  link_destroy(l);
  return open ? NO_MEMORY(error) : fail(error, UNISONO_ERR_LINK, code, "example: cannot listen");
}

static unisono_status link_export(unisono_link l, uint32_t id, uint64_t ptr, uint64_t bytes,
                                  void *token, uint64_t cap, uint64_t *len, unisono_error *error) {
  *len = sizeof bytes; /* all that the peer must know: how large it is */
  if (cap < sizeof bytes) return INVALID(error, "example: a token has %zu bytes", sizeof bytes);
  memcpy(token, &bytes, sizeof bytes);
  return window_add(l->ours, id, ptr, bytes, error);
}

static unisono_status link_import(unisono_link l, uint32_t id, const void *token, uint64_t len,
                                  unisono_error *error) {
  uint64_t bytes;
  if (len != sizeof bytes) return INVALID(error, "example: this is no window of this plugin");
  memcpy(&bytes, token, sizeof bytes);
  return window_add(l->peers, id, 0, bytes, error);
}

static unisono_status link_close(unisono_link l, uint32_t id, unisono_error *error) {
  window *w = window_find(l->ours, id);
  if (w == NULL) return INVALID(error, "example: there is no window %u", id);
  w->taken = 0;
  return UNISONO_OK;
}

static unisono_status link_submit(unisono_link l, const void *commands, uint64_t bytes,
                                  uint32_t count, uint32_t *accepted, unisono_error *error) {
  *accepted = 0;
  unisono_status status = batch_check(commands, bytes, count, LINK, error);
  const command *c = commands;
  for (uint32_t i = 0; status == UNISONO_OK && i < count;
       i++, c = (const command *)((const uint8_t *)c + c->head.size)) {
    const unisono_command_put *p = &c->put;
    if (c->head.kind != UNISONO_CMD_PUT) continue;
    int data = p->bytes == 0 || (p->bytes <= UINT64_MAX / p->repeat &&
                                 window_holds(l->peers, p->dst_window, p->dst_offset,
                                              p->bytes * p->repeat) != NULL);
    int flag = p->signal_window == UNISONO_NO_WINDOW ||
               window_holds(l->peers, p->signal_window, p->signal_offset,
                            sizeof(unisono_flag_line)) != NULL;
    if (!data || !flag)
      status = INVALID(error, "example: put %u goes outside rank %u's windows", i, l->peer);
  }
  return status != UNISONO_OK ? status : queue_submit(&l->q, commands, count, accepted, error);
}

static void link_abort(unisono_link l) { queue_abort(&l->q); }
static unisono_status link_query(unisono_link l, unisono_queue_state *state) {
  return queue_query(&l->q, state);
}

static unisono_status link_statistics(unisono_link l, unisono_link_statistics *out) {
  *out = l->statistics;
  out->struct_size = sizeof *out;
  out->connections = l->q.busy != UNISONO_QUEUE_CONNECTING && l->fd >= 0;
  out->refused = l->instance->refused;
  return UNISONO_OK;
}

/* ------------------------------------------------------------ 8. the tables ------------------- */

/* NULL means "unsupported": no wrap, no export of memory, no native handles, no capture. */
#define TABLE(type, name, ...) \
  static const unisono_##type##_table name = {.struct_size = sizeof name, __VA_ARGS__}
TABLE(instance, instances, .create = instance_create, .destroy = instance_destroy,
      .devices = instance_devices);
TABLE(device, devices, .open = device_open, .close = device_close, .supports = device_supports);
TABLE(memory, memories, .alloc = memory_alloc, .free = memory_free,
      .register_host = memory_register, .query = memory_query);
TABLE(stream, streams, .create = stream_create, .destroy = stream_destroy, .submit = stream_submit,
      .poll = stream_poll, .arm = stream_arm, .disarm = stream_disarm, .query = stream_query,
      .abort = stream_abort);
TABLE(event, events, .create = event_create, .destroy = event_destroy,
      .host_signal = event_host_signal, .host_query = event_host_query);
TABLE(link, links, .report = link_report, .address = link_address, .create = link_create,
      .destroy = link_destroy, .export_window = link_export, .import_window = link_import,
      .close_window = link_close, .submit = link_submit, .poll = link_poll, .arm = link_arm,
      .disarm = link_disarm, .query = link_query, .abort = link_abort,
      .statistics = link_statistics);

static const unisono_layout_entry layout[] = {UNISONO_LAYOUT_TABLE};

static const unisono_plugin plugin = {
    UNISONO_PLUGIN_MAGIC, UNISONO_PLUGIN_ABI_MAJOR, UNISONO_PLUGIN_ABI_MINOR, sizeof plugin,
    .name = STR("example"), .version = STR("0.1.0"), .vendor = STR("unisono"), .build_id = STR(""),
    .param_count = PARAMS, .params = params,
    .layout = layout, .layout_count = sizeof layout / sizeof layout[0],
    .instance = &instances, .device = &devices, .memory = &memories,
    .stream = &streams, .event = &events, .link = &links};

UNISONO_PLUGIN_EXPORT const unisono_plugin *unisono_plugin_query(uint32_t host_major,
                                                                 uint32_t host_minor) {
  (void)host_minor; /* minors only add */
  return host_major == UNISONO_PLUGIN_ABI_MAJOR ? &plugin : NULL;
}
