/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * example.c - a whole unisono plugin in one C file: copy it and put your device in.
 *
 *   cc -std=c11 -O2 -Wall -Wextra -shared -fPIC -pthread -Iinclude \
 *      -o libunisono_plugin_example.so plugins/example-c/example.c
 *
 * Its "device" is a thread: each stream has a worker thread that runs commands in order, as a
 * hardware queue would, while the host does other things. What a vendor replaces is marked YOURS.
 *
 *   part 1  small things: errors, nonces, waiting     part 5  streams: the worker thread
 *   part 2  the instance and its parameters           part 6  links: puts over Unix sockets
 *   part 3  the device, memory, events                part 7  the tables
 *   part 4  reductions
 *
 * Waiting: a worker that waits for a flag spins for the parameter `spin`, then looks again every
 * 50 us. Only worker threads do that, never a thread of the host's: the host sleeps and is woken.
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
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
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
#define NO_MEMORY(error) fail(error, UNISONO_ERR_OUT_OF_MEMORY, ENOMEM, "out of memory")

static int nonce_make(uint8_t nonce[NONCE]) { return getrandom(nonce, NONCE, 0) == NONCE ? 0 : -1; }

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Addresses cross the boundary as numbers. */
static void *at(uint64_t address) { return (void *)(uintptr_t)address; }

static uint64_t flag_load(uint64_t flag) {
  return atomic_load_explicit((_Atomic uint64_t *)at(flag), memory_order_acquire);
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

/* A host that armed: woken at most once for each time. Guarded by its owner's mutex, so that no
 * call is under way any more when disarm returns. */
typedef struct {
  int armed;
  unisono_waker waker;
} sleeper;

static void sleeper_wake(sleeper *s) {
  if (s->armed) {
    s->armed = 0;
    s->waker.wake(s->waker.context);
  }
}

/* ------------------------------------------------------------ 2. the instance ----------------- */

struct unisono_link_s; /* part 6 */

typedef struct unisono_instance_s {
  unisono_host host;
  uint64_t spin_ns, handshake_ns, socket_bytes;
  uint32_t depth;
  pthread_mutex_t lock; /* guards what follows */
  int listener;         /* -1 until the host asks for our address */
  uint8_t name[NONCE];  /* of the listener */
  struct unisono_link_s *links;
  struct { int fd; uint64_t since; } callers[16]; /* accepted, not yet known; fd 0 is free */
  uint64_t refused;
} instance;

#define STR(s) {(s), sizeof(s) - 1}

/* YOURS: the parameters that the cluster file may set; the host checks types and bounds. */
static const unisono_param params[] = {
    {STR("spin"), STR("How long a stream's thread spins before it naps while it waits."),
     STR("20us"), UNISONO_PARAM_DURATION_NS, 0, 0, 1000000},
    {STR("queue_depth"), STR("Commands that a stream or link holds."), STR("1024"),
     UNISONO_PARAM_INT, 0, 16, 65536},
    {STR("handshake_timeout"), STR("How long a caller may take to say who it is."), STR("10s"),
     UNISONO_PARAM_DURATION_NS, 0, 1000000, INT64_C(600000000000)},
    {STR("socket_buffer"), STR("Kernel buffer of each connection, each way."), STR("1MiB"),
     UNISONO_PARAM_BYTES, 0, 4096, 1 << 30},
};
enum { PARAMS = sizeof params / sizeof params[0] };

static unisono_status instance_create(const unisono_instance_info *info, unisono_instance *out,
                                      unisono_error *error) {
  if (info == NULL || out == NULL || info->param_count != PARAMS)
    return INVALID(error, "example: create needs all %d parameters", (int)PARAMS);
  instance *self = calloc(1, sizeof *self);
  if (self == NULL) return NO_MEMORY(error);
  if (info->host != NULL) self->host = *info->host;
  self->spin_ns = (uint64_t)info->params[0].number;
  self->depth = (uint32_t)info->params[1].number;
  self->handshake_ns = (uint64_t)info->params[2].number;
  self->socket_bytes = (uint64_t)info->params[3].number;
  self->listener = -1;
  pthread_mutex_init(&self->lock, NULL);
  *out = self;
  return UNISONO_OK;
}

static void instance_destroy(unisono_instance self) {
  if (self == NULL) return;
  for (size_t i = 0; i < sizeof self->callers / sizeof self->callers[0]; i++)
    if (self->callers[i].fd > 0) close(self->callers[i].fd);
  if (self->listener >= 0) close(self->listener);
  pthread_mutex_destroy(&self->lock);
  free(self);
}

__attribute__((format(printf, 3, 4))) static void say(const instance *self, uint32_t level,
                                                      const char *words, ...) {
  const unisono_host *host = &self->host;
  if (host->log == NULL || host->log_level == NULL || level > host->log_level(host->context)) return;
  char text[200];
  va_list args;
  va_start(args, words);
  int len = vsnprintf(text, sizeof text, words, args);
  va_end(args);
  if (len < 0) return;
  if (len >= (int)sizeof text) len = (int)sizeof text - 1;
  unisono_log_record record = {
      sizeof record, level, STR("example"), STR("example.c"), 0, 0, {text, (uint64_t)len}};
  host->log(host->context, &record);
}

/* The same in every process of this machine, another one on each machine. */
static void device_id(uint8_t id[16]) {
  char boot[37] = "00000000-0000-0000-0000-000000000000";
  FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
  if (file != NULL) {
    if (fread(boot, 1, 36, file) != 36) boot[0] = '?';
    fclose(file);
  }
  uint64_t hash[2] = {0xcbf29ce484222325u, 0x6578616d706c6543u};
  for (int i = 0; i < 36; i++) {
    hash[0] = (hash[0] ^ (uint8_t)boot[i]) * 0x100000001b3u;
    hash[1] = (hash[1] ^ hash[0]) * 0x100000001b3u;
  }
  memcpy(id, hash, 16);
}

/* YOURS: ask your driver. */
static unisono_status instance_devices(unisono_instance self, unisono_device_info *out,
                                       uint32_t cap, uint32_t *count, unisono_error *error) {
  if (self == NULL || count == NULL || (out == NULL && cap > 0))
    return INVALID(error, "example: devices got NULL");
  *count = 1;
  if (cap == 0) return UNISONO_OK;
  unisono_device_info *info = &out[0];
  memset(info, 0, sizeof *info);
  info->struct_size = sizeof *info;
  info->kind = UNISONO_DEVICE_CPU;
  device_id(info->id);
  snprintf(info->name, sizeof info->name, "example worker threads");
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

/* ------------------------------------------------------------ 3. device, memory, events ------- */

typedef struct unisono_memory_s {
  struct unisono_memory_s *next; /* in the device's list */
  struct unisono_device_s *device;
  uint8_t *base;
  uint64_t bytes, generation;
  uint32_t place; /* HOST: the caller's own memory */
} memory;

typedef struct unisono_device_s {
  instance *instance;
  uint8_t id[16];
  pthread_mutex_t lock; /* guards the list */
  memory *memories;
  uint64_t generations;
} device;

static unisono_status device_open(unisono_instance self, uint32_t index, unisono_device *out,
                                  unisono_error *error) {
  if (self == NULL || out == NULL) return INVALID(error, "example: open got NULL");
  if (index != 0) return INVALID(error, "example: there is one device, not device %u", index);
  device *d = calloc(1, sizeof *d);
  if (d == NULL) return NO_MEMORY(error);
  d->instance = self;
  device_id(d->id);
  pthread_mutex_init(&d->lock, NULL);
  *out = d;
  return UNISONO_OK;
}

static void device_close(unisono_device d) {
  if (d == NULL) return;
  pthread_mutex_destroy(&d->lock);
  free(d);
}

static int can_reduce(uint32_t dtype, uint32_t op) {
  int integer = dtype >= UNISONO_I8 && dtype <= UNISONO_U64;
  int real = dtype >= UNISONO_F16 && dtype <= UNISONO_F8E5M2;
  return (integer && op >= UNISONO_SUM && op <= UNISONO_XOR) ||
         (real && op >= UNISONO_SUM && op <= UNISONO_MAX);
}

static unisono_status device_supports(unisono_device d, const unisono_support_query *query) {
  if (d == NULL || query == NULL) return UNISONO_ERR_INVALID;
  switch (query->command) {
    case UNISONO_CMD_REDUCE:
      return can_reduce(query->dtype, query->reduction) ? UNISONO_OK : UNISONO_ERR_UNSUPPORTED;
    case UNISONO_CMD_SCALE:
      return can_reduce(query->dtype, UNISONO_PROD) ? UNISONO_OK : UNISONO_ERR_UNSUPPORTED;
    case UNISONO_CMD_COPY: case UNISONO_CMD_SIGNAL: case UNISONO_CMD_WAIT:
    case UNISONO_CMD_RECORD: case UNISONO_CMD_WAIT_EVENT: case UNISONO_CMD_CALL:
      return UNISONO_OK;
    default:
      return UNISONO_ERR_UNSUPPORTED;
  }
}

static void view_of(const memory *m, unisono_memory_view *view) {
  if (view == NULL) return;
  memset(view, 0, sizeof *view);
  view->struct_size = sizeof *view;
  view->place = m->place;
  view->base = view->host = (uint64_t)(uintptr_t)m->base;
  view->bytes = m->bytes;
  view->generation = m->generation;
  memcpy(view->device, m->device->id, 16);
}

static unisono_status memory_new(device *d, uint32_t place, void *base, uint64_t bytes,
                                 memory **out, unisono_error *error) {
  memory *m = calloc(1, sizeof *m);
  if (m == NULL) return NO_MEMORY(error);
  *m = (memory){.device = d, .base = base, .bytes = bytes, .place = place};
  pthread_mutex_lock(&d->lock);
  m->generation = ++d->generations;
  m->next = d->memories;
  d->memories = m;
  pthread_mutex_unlock(&d->lock);
  *out = m;
  return UNISONO_OK;
}

static void memory_free(unisono_memory m) {
  if (m == NULL) return;
  pthread_mutex_lock(&m->device->lock);
  memory **link = &m->device->memories;
  while (*link != m) link = &(*link)->next;
  *link = m->next;
  pthread_mutex_unlock(&m->device->lock);
  if (m->place == UNISONO_PLACE_DEVICE) munmap(m->base, m->bytes);
  free(m);
}

/* YOURS: your allocator. */
static unisono_status memory_alloc(unisono_device d, const unisono_memory_request *request,
                                   unisono_memory *out, unisono_memory_view *view,
                                   unisono_error *error) {
  if (d == NULL || request == NULL || out == NULL) return INVALID(error, "example: alloc got NULL");
  if (request->kind == UNISONO_MEMORY_BELL || (request->flags & UNISONO_MEMORY_EXPORTABLE))
    return UNSUPPORTED(error, "example: no bells, and no memory that other processes can map");
  if (request->bytes == 0 || request->align > (uint64_t)sysconf(_SC_PAGESIZE))
    return INVALID(error, "example: cannot allocate %llu bytes aligned to %llu",
                   (unsigned long long)request->bytes, (unsigned long long)request->align);
  void *base = mmap(NULL, request->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) return NO_MEMORY(error);
  unisono_status status = memory_new(d, UNISONO_PLACE_DEVICE, base, request->bytes, out, error);
  if (status != UNISONO_OK)
    munmap(base, request->bytes);
  else
    view_of(*out, view);
  return status;
}

static unisono_status memory_register(unisono_device d, void *ptr, uint64_t bytes,
                                      unisono_memory *out, unisono_memory_view *view,
                                      unisono_error *error) {
  if (d == NULL || ptr == NULL || bytes == 0 || out == NULL)
    return INVALID(error, "example: register_host got nothing to register");
  unisono_status status = memory_new(d, UNISONO_PLACE_HOST, ptr, bytes, out, error);
  if (status == UNISONO_OK) view_of(*out, view);
  return status;
}

static unisono_status memory_query(unisono_device d, uint64_t address, unisono_memory_view *view,
                                   unisono_error *error) {
  if (d == NULL || view == NULL) return INVALID(error, "example: query got NULL");
  unisono_status status = UNISONO_AGAIN;
  pthread_mutex_lock(&d->lock);
  for (const memory *m = d->memories; m != NULL && status != UNISONO_OK; m = m->next)
    if (m->place != UNISONO_PLACE_HOST && address - (uint64_t)(uintptr_t)m->base < m->bytes) {
      view_of(m, view);
      status = UNISONO_OK;
    }
  pthread_mutex_unlock(&d->lock);
  return status;
}

typedef struct unisono_event_s {
  atomic_int complete;
} event;

static unisono_status event_create(unisono_device d, unisono_event *out, unisono_error *error) {
  if (d == NULL || out == NULL) return INVALID(error, "example: event got NULL");
  *out = calloc(1, sizeof **out);
  return *out != NULL ? UNISONO_OK : NO_MEMORY(error);
}

static void event_destroy(unisono_event e) { free(e); }

static unisono_status event_host_signal(unisono_event e, unisono_error *error) {
  if (e == NULL) return INVALID(error, "example: event is NULL");
  atomic_store_explicit(&e->complete, 1, memory_order_release);
  return UNISONO_OK;
}

static unisono_status event_host_query(unisono_event e, unisono_error *error) {
  if (e == NULL) return INVALID(error, "example: event is NULL");
  return atomic_load_explicit(&e->complete, memory_order_acquire) ? UNISONO_OK : UNISONO_AGAIN;
}

/* ------------------------------------------------------------ 4. reductions ------------------- */

/* YOURS: your kernels. dst[i] = a[i] op b[i], then / divisor. Integers wrap, so they are added and
 * multiplied as u64; min and max give NaN if either is NaN. */
#define INTEGERS(name, type, wide)                                                                 \
  static void name(int op, void *dst, const void *left, const void *right, uint64_t n,             \
                   uint32_t divisor) {                                                             \
    type *d = dst;                                                                                 \
    const type *a = left, *b = right;                                                              \
    for (uint64_t i = 0; i < n; i++) {                                                             \
      type x = a[i], y = b[i], r;                                                                  \
      switch (op) {                                                                                \
        case UNISONO_SUM: r = (type)((uint64_t)x + (uint64_t)y); break;                            \
        case UNISONO_PROD: r = (type)((uint64_t)x * (uint64_t)y); break;                           \
        case UNISONO_MIN: r = x < y ? x : y; break;                                                \
        case UNISONO_MAX: r = x > y ? x : y; break;                                                \
        case UNISONO_AND: r = (type)(x & y); break;                                                \
        case UNISONO_OR: r = (type)(x | y); break;                                                 \
        default: r = (type)(x ^ y); break;                                                         \
      }                                                                                            \
      d[i] = divisor != 0 ? (type)((wide)r / (wide)divisor) : r;                                   \
    }                                                                                              \
  }
INTEGERS(reduce_i8, int8_t, int64_t)
INTEGERS(reduce_u8, uint8_t, uint64_t)
INTEGERS(reduce_i16, int16_t, int64_t)
INTEGERS(reduce_u16, uint16_t, uint64_t)
INTEGERS(reduce_i32, int32_t, int64_t)
INTEGERS(reduce_u32, uint32_t, uint64_t)
INTEGERS(reduce_i64, int64_t, int64_t)
INTEGERS(reduce_u64, uint64_t, uint64_t)

static float from_bits(uint32_t bits) { float f; memcpy(&f, &bits, 4); return f; }
static uint32_t to_bits(float f) { uint32_t bits; memcpy(&bits, &f, 4); return bits; }

static float load_bf16(uint16_t h) { return from_bits((uint32_t)h << 16); }
static uint16_t store_bf16(float f) { /* to nearest, ties to even */
  uint32_t bits = to_bits(f);
  if (f != f) return 0x7fc0;
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* f16 and fp8: a sign, exponent and mantissa, like f32 and shorter. */
typedef struct {
  uint32_t bits, mantissa, bias;
  uint32_t special;  /* magnitudes from here on are not finite; the first is infinity or `nan` */
  uint32_t overflow; /* where too large a number goes: infinity, or the largest */
  uint32_t nan;
} small;
static const small F16 = {16, 10, 15, 0x7c00, 0x7c00, 0x7e00};
static const small E4M3 = {8, 3, 7, 0x7f, 0x7e, 0x7f};
static const small E5M2 = {8, 2, 15, 0x7c, 0x7c, 0x7e};

static float load_small(uint32_t code, const small *s) {
  uint32_t sign = code >> (s->bits - 1) << 31, rest = code & ((1u << (s->bits - 1)) - 1);
  if (rest >= s->special)
    return from_bits(sign | 0x7f800000 | (rest > s->special || rest == s->nan ? 0x400000 : 0));
  if (rest >> s->mantissa != 0)
    return from_bits(sign | ((rest << (23 - s->mantissa)) + ((127 - s->bias) << 23)));
  float f = (float)rest * from_bits((128 - s->bias - s->mantissa) << 23); /* subnormal */
  return sign != 0 ? -f : f;
}
static uint32_t store_small(float f, const small *s) { /* to nearest, ties to even */
  uint32_t bits = to_bits(f), rest = bits & 0x7fffffff, drop = 23 - s->mantissa;
  uint32_t sign = bits >> 31 << (s->bits - 1), code;
  if (rest > 0x7f800000) return s->nan;
  if (rest < (128 - s->bias) << 23) { /* subnormal: the FPU rounds it for us */
    float step = from_bits((128 - s->bias + drop) << 23);
    return sign | (to_bits(from_bits(rest) + step) - to_bits(step));
  }
  code = (rest - ((127 - s->bias) << 23) + (1u << (drop - 1)) - 1 + (rest >> drop & 1)) >> drop;
  return sign | (code < s->overflow ? code : s->overflow);
}
static float load_f16(uint16_t h) { return load_small(h, &F16); }
static uint16_t store_f16(float f) { return (uint16_t)store_small(f, &F16); }
static float load_e4m3(uint8_t c) { return load_small(c, &E4M3); }
static uint8_t store_e4m3(float f) { return (uint8_t)store_small(f, &E4M3); }
static float load_e5m2(uint8_t c) { return load_small(c, &E5M2); }
static uint8_t store_e5m2(float f) { return (uint8_t)store_small(f, &E5M2); }

static float same_f32(float f) { return f; }
static double same_f64(double f) { return f; }

#define FLOATS(name, type, wide, load, store)                                                      \
  static void name(int op, void *dst, const void *left, const void *right, uint64_t n,             \
                   uint32_t divisor) {                                                             \
    type *d = dst;                                                                                 \
    const type *a = left, *b = right;                                                              \
    for (uint64_t i = 0; i < n; i++) {                                                             \
      wide x = load(a[i]), y = load(b[i]), r;                                                      \
      switch (op) {                                                                                \
        case UNISONO_SUM: r = x + y; break;                                                        \
        case UNISONO_PROD: r = x * y; break;                                                       \
        case UNISONO_MIN: r = x != x || x < y ? x : y; break;                                      \
        default: r = x != x || x > y ? x : y; break;                                               \
      }                                                                                            \
      d[i] = store(divisor != 0 ? r / (wide)divisor : r);                                          \
    }                                                                                              \
  }
FLOATS(reduce_e4m3, uint8_t, float, load_e4m3, store_e4m3)
FLOATS(reduce_e5m2, uint8_t, float, load_e5m2, store_e5m2)
FLOATS(reduce_f16, uint16_t, float, load_f16, store_f16)
FLOATS(reduce_bf16, uint16_t, float, load_bf16, store_bf16)
FLOATS(reduce_f32, float, float, same_f32, same_f32)
FLOATS(reduce_f64, double, double, same_f64, same_f64)

static void (*const kernels[])(int, void *, const void *, const void *, uint64_t, uint32_t) = {
    [UNISONO_I8] = reduce_i8,   [UNISONO_U8] = reduce_u8,     [UNISONO_I16] = reduce_i16,
    [UNISONO_U16] = reduce_u16, [UNISONO_I32] = reduce_i32,   [UNISONO_U32] = reduce_u32,
    [UNISONO_I64] = reduce_i64, [UNISONO_U64] = reduce_u64,   [UNISONO_F16] = reduce_f16,
    [UNISONO_BF16] = reduce_bf16, [UNISONO_F32] = reduce_f32, [UNISONO_F64] = reduce_f64,
    [UNISONO_F8E4M3FN] = reduce_e4m3, [UNISONO_F8E5M2] = reduce_e5m2};

static uint64_t element_bytes(uint32_t dtype) {
  switch (dtype) {
    case UNISONO_I8: case UNISONO_U8: case UNISONO_F8E4M3FN: case UNISONO_F8E5M2: return 1;
    case UNISONO_I16: case UNISONO_U16: case UNISONO_F16: case UNISONO_BF16: return 2;
    case UNISONO_I32: case UNISONO_U32: case UNISONO_F32: return 4;
    default: return 8;
  }
}

/* dst[i] = src[i] * factor: a product with an array of the factor. */
static void scale(uint32_t dtype, uint8_t *dst, const uint8_t *src, const uint8_t *factor,
                  uint64_t n) {
  uint64_t factors[64], size = element_bytes(dtype), step = sizeof factors / size;
  for (uint64_t i = 0; i < step; i++) memcpy((uint8_t *)factors + i * size, factor, size);
  for (uint64_t i = 0; i < n; i += step)
    kernels[dtype](UNISONO_PROD, dst + i * size, src + i * size, factors,
                   n - i < step ? n - i : step, 0);
}

/* ------------------------------------------------------------ 5. streams ---------------------- */

typedef union {
  unisono_command head;
  unisono_command_copy copy;
  unisono_command_reduce reduce;
  unisono_command_signal signal;
  unisono_command_wait wait;
  unisono_command_put put;
  unisono_command_event event;
  unisono_command_scale scale;
  unisono_command_call call;
} command;

/* What streams and links share: a ring of commands, and who waits for it. */
typedef struct {
  pthread_mutex_t lock; /* guards all of it but `aborted` */
  pthread_cond_t changed;
  command *ring;
  uint32_t depth;
  uint64_t accepted, completed, reported;
  unisono_status failed; /* 0, or what it failed with */
  unisono_error error;
  sleeper sleeper;
  int stop, running; /* running: a command is under way, and touches the host's memory */
  atomic_int aborted;
} queue;

static int queue_init(queue *q, uint32_t depth) {
  memset(q, 0, sizeof *q);
  q->ring = calloc(depth, sizeof *q->ring);
  q->depth = depth;
  pthread_mutex_init(&q->lock, NULL);
  pthread_cond_init(&q->changed, NULL);
  return q->ring != NULL ? 0 : -1;
}

static void queue_free(queue *q) {
  pthread_cond_destroy(&q->changed);
  pthread_mutex_destroy(&q->lock);
  free(q->ring);
}

static void queue_fail(queue *q, unisono_status status) { /* with the lock held; the first counts */
  if (q->failed == 0) q->failed = status;
  sleeper_wake(&q->sleeper);
  pthread_cond_broadcast(&q->changed);
}

static unisono_status queue_failure(const queue *q, unisono_error *error) {
  if (error != NULL) {
    uint32_t size = error->struct_size;
    *error = q->error;
    error->struct_size = size;
    error->status = q->failed;
  }
  return q->failed;
}

static void queue_abort(queue *q) {
  atomic_store(&q->aborted, 1);
  pthread_mutex_lock(&q->lock);
  if (q->failed == 0) fail(&q->error, UNISONO_ERR_ABORTED, 0, "example: aborted");
  queue_fail(q, UNISONO_ERR_ABORTED);
  pthread_mutex_unlock(&q->lock);
}

static void queue_state(queue *q, uint32_t busy, unisono_queue_state *out) {
  if (out == NULL) return;
  /* FAILED is also a promise: memory is left alone from now on. */
  out->state = q->failed != 0 ? (q->running ? UNISONO_QUEUE_WAITING : UNISONO_QUEUE_FAILED)
               : q->accepted == q->completed ? UNISONO_QUEUE_IDLE : busy;
  out->accepted = q->accepted;
  out->completed = q->completed;
}

/* Checks the commands of a batch for a queue that takes `kinds` (bits): all of them, before any is
 * taken. A command may be longer than we know it; an unknown flag is refused. */
static unisono_status batch_check(const void *commands, uint64_t bytes, uint32_t count,
                                  uint32_t kinds, unisono_error *error) {
  static const struct { uint16_t size; uint16_t flags; } known[] = {
      [UNISONO_CMD_COPY] = {sizeof(unisono_command_copy), UNISONO_CMD_STREAMING},
      [UNISONO_CMD_REDUCE] = {sizeof(unisono_command_reduce), UNISONO_CMD_STREAMING},
      [UNISONO_CMD_SIGNAL] = {sizeof(unisono_command_signal), UNISONO_CMD_WORDS},
      [UNISONO_CMD_WAIT] = {sizeof(unisono_command_wait), UNISONO_CMD_WORDS},
      [UNISONO_CMD_PUT] = {sizeof(unisono_command_put), UNISONO_CMD_WORDS},
      [UNISONO_CMD_RECORD] = {sizeof(unisono_command_event), 0},
      [UNISONO_CMD_WAIT_EVENT] = {sizeof(unisono_command_event), 0},
      [UNISONO_CMD_SCALE] = {sizeof(unisono_command_scale), UNISONO_CMD_STREAMING},
      [UNISONO_CMD_CALL] = {sizeof(unisono_command_call), 0}};
  const uint8_t *p = commands;
  for (uint32_t i = 0; i < count; i++) {
    const command *c = (const command *)p;
    if (bytes < sizeof c->head || c->head.size % 8 != 0 || c->head.size > bytes)
      return INVALID(error, "example: command %u of %u is cut off", i, count);
    if (c->head.kind >= sizeof known / sizeof known[0] || !(kinds >> c->head.kind & 1) ||
        (c->head.flags & ~(uint32_t)known[c->head.kind].flags))
      return UNSUPPORTED(error, "example: command %u of %u: kind %u with flags %#x", i, count,
                         c->head.kind, c->head.flags);
    if (c->head.size < known[c->head.kind].size)
      return INVALID(error, "example: command %u of %u is too short", i, count);
    int bad = 0;
    switch (c->head.kind) {
      case UNISONO_CMD_COPY: bad = c->copy.repeat == 0; break;
      case UNISONO_CMD_REDUCE:
        bad = c->reduce.repeat == 0;
        if (!can_reduce(c->reduce.dtype, c->reduce.reduction))
          return UNSUPPORTED(error, "example: command %u: reduction %u of type %u", i,
                             c->reduce.reduction, c->reduce.dtype);
        break;
      case UNISONO_CMD_SIGNAL: bad = c->signal.flag == 0 || c->signal.counter == 0; break;
      case UNISONO_CMD_WAIT: bad = c->wait.flag == 0 || c->wait.counter == 0; break;
      case UNISONO_CMD_PUT:
        bad = c->put.repeat == 0 || (c->put.done_flag == 0) != (c->put.done_counter == 0);
        break;
      case UNISONO_CMD_SCALE:
        bad = c->scale.repeat == 0;
        if (!can_reduce(c->scale.dtype, UNISONO_PROD))
          return UNSUPPORTED(error, "example: command %u: type %u", i, c->scale.dtype);
        break;
      case UNISONO_CMD_CALL: bad = c->call.function == 0 || c->call.element_bytes == 0; break;
      default: bad = c->event.event == NULL; break;
    }
    if (bad) return INVALID(error, "example: command %u of %u breaks the contract", i, count);
    p += c->head.size;
    bytes -= c->head.size;
  }
  return bytes == 0 ? UNISONO_OK : INVALID(error, "example: bytes are left behind the batch");
}

/* Copies as many commands as there is room for; the batch was checked. */
static unisono_status queue_submit(queue *q, const void *commands, uint32_t count,
                                   uint32_t *accepted, unisono_error *error) {
  const uint8_t *p = commands;
  pthread_mutex_lock(&q->lock);
  unisono_status status = q->failed != 0 ? queue_failure(q, error) : UNISONO_OK;
  while (status == UNISONO_OK && *accepted < count && q->accepted - q->completed < q->depth) {
    const command *c = (const command *)p;
    size_t size = c->head.size < sizeof *c ? c->head.size : sizeof *c;
    memcpy(&q->ring[q->accepted % q->depth], c, size);
    if (c->head.kind == UNISONO_CMD_RECORD) atomic_store(&c->event.event->complete, 0);
    q->accepted++;
    ++*accepted;
    p += c->head.size;
  }
  pthread_cond_signal(&q->changed);
  pthread_mutex_unlock(&q->lock);
  return status;
}

static unisono_status queue_poll(queue *q, uint32_t busy, unisono_queue_state *state,
                                 unisono_error *error) {
  pthread_mutex_lock(&q->lock);
  queue_state(q, busy, state);
  if (state != NULL) state->moved = q->completed != q->reported;
  q->reported = q->completed;
  unisono_status status = q->failed != 0 ? queue_failure(q, error) : UNISONO_OK;
  pthread_mutex_unlock(&q->lock);
  return status;
}

/* Sees whether a WAIT is satisfied: OK, AGAIN, or MISMATCH. */
static unisono_status wait_try(const unisono_command_wait *c, unisono_error *error) {
  unisono_counter *counter = at(c->counter);
  const unisono_flag_line *line = at(c->flag);
  uint64_t target = counter->value + 1, flag = flag_load(c->flag), ahead = flag - target;
  counter->seen = flag;
  if ((int64_t)ahead < 0) return UNISONO_AGAIN;
  counter->value = target;
  if (ahead >= UINT64_C(1) << 61) return UNISONO_OK; /* an abort: the words mean nothing */
  if ((c->head.flags & UNISONO_CMD_WORDS) && memcmp(line->words, c->words, sizeof c->words) != 0) {
    fail(error, UNISONO_ERR_MISMATCH, 0, "example: a signal carries other words than expected");
    memcpy(error->words, line->words, sizeof error->words);
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

typedef struct unisono_stream_s {
  queue q;
  pthread_t worker;
  uint64_t spin_ns;
} stream;

static unisono_status wait_once(const command *c, unisono_error *error) {
  return c->head.kind == UNISONO_CMD_WAIT ? wait_try(&c->wait, error)
                                          : event_host_query(c->event.event, error);
}

/* Spins for a while, then naps; an abort ends it. */
static unisono_status wait_for(stream *s, const command *c, unisono_error *error) {
  uint64_t until = 0;
  for (uint32_t tries = 0;; tries++) {
    unisono_status status = wait_once(c, error);
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
  switch (c->head.kind) {
    case UNISONO_CMD_COPY:
      for (uint64_t i = 0; i < c->copy.repeat; i++)
        memmove(at(c->copy.dst + i * c->copy.dst_stride), at(c->copy.src + i * c->copy.src_stride),
                c->copy.bytes);
      return UNISONO_OK;
    case UNISONO_CMD_REDUCE: {
      const unisono_command_reduce *r = &c->reduce;
      for (uint64_t i = 0; i < r->repeat; i++)
        kernels[r->dtype](r->reduction, at(r->dst + i * r->dst_stride), at(r->a + i * r->a_stride),
                          at(r->b + i * r->b_stride), r->elements, r->divisor);
      return UNISONO_OK;
    }
    case UNISONO_CMD_SCALE: {
      const unisono_command_scale *m = &c->scale;
      for (uint64_t i = 0; i < m->repeat; i++)
        scale(m->dtype, at(m->dst + i * m->dst_stride), at(m->src + i * m->src_stride), m->factor,
              m->elements);
      return UNISONO_OK;
    }
    case UNISONO_CMD_CALL: {
      unisono_combine combine = (unisono_combine)(uintptr_t)c->call.function;
      combine(at(c->call.context), at(c->call.dst), at(c->call.a), at(c->call.b), c->call.elements);
      return UNISONO_OK;
    }
    case UNISONO_CMD_SIGNAL:
      signal_raise(c->signal.flag, c->signal.counter,
                   c->head.flags & UNISONO_CMD_WORDS ? c->signal.words : NULL);
      return UNISONO_OK;
    case UNISONO_CMD_RECORD:
      return event_host_signal(c->event.event, error);
    default: /* WAIT, WAIT_EVENT */
      return wait_for(s, c, error);
  }
}

static void *worker(void *arg) {
  stream *s = arg;
  queue *q = &s->q;
  pthread_mutex_lock(&q->lock);
  for (;;) {
    while (!q->stop && (q->failed != 0 || q->accepted == q->completed))
      pthread_cond_wait(&q->changed, &q->lock);
    if (q->stop) break;
    command c = q->ring[q->completed % q->depth];
    unisono_error error = {.struct_size = sizeof error};
    q->running = 1;
    pthread_mutex_unlock(&q->lock);
    unisono_status status = run(s, &c, &error);
    pthread_mutex_lock(&q->lock);
    q->running = 0;
    if (status != UNISONO_OK) {
      if (q->failed == 0) q->error = error;
      queue_fail(q, status);
    } else {
      q->completed++;
      sleeper_wake(&q->sleeper);
    }
  }
  pthread_mutex_unlock(&q->lock);
  return NULL;
}

static unisono_status stream_create(unisono_device d, const unisono_stream_request *request,
                                    unisono_stream *out, unisono_error *error) {
  if (d == NULL || request == NULL || out == NULL) return INVALID(error, "example: stream got NULL");
  stream *s = calloc(1, sizeof *s);
  if (s == NULL) return NO_MEMORY(error);
  s->spin_ns = d->instance->spin_ns;
  if (queue_init(&s->q, d->instance->depth) != 0 || thread_start(&s->worker, worker, s) != 0) {
    queue_free(&s->q);
    free(s);
    return NO_MEMORY(error);
  }
  *out = s;
  return UNISONO_OK;
}

static void stream_destroy(unisono_stream s) {
  if (s == NULL) return;
  pthread_mutex_lock(&s->q.lock);
  s->q.stop = 1;
  pthread_cond_broadcast(&s->q.changed);
  pthread_mutex_unlock(&s->q.lock);
  atomic_store(&s->q.aborted, 1); /* idle or aborted already, by contract */
  pthread_join(s->worker, NULL);
  queue_free(&s->q);
  free(s);
}

static unisono_status stream_submit(unisono_stream s, const void *commands, uint64_t bytes,
                                    uint32_t count, uint32_t *accepted, unisono_error *error) {
  if (s == NULL || accepted == NULL || (commands == NULL && bytes > 0))
    return INVALID(error, "example: submit got NULL");
  *accepted = 0;
  uint32_t kinds = 1u << UNISONO_CMD_COPY | 1u << UNISONO_CMD_REDUCE | 1u << UNISONO_CMD_SIGNAL |
                   1u << UNISONO_CMD_WAIT | 1u << UNISONO_CMD_RECORD | 1u << UNISONO_CMD_WAIT_EVENT |
                   1u << UNISONO_CMD_SCALE | 1u << UNISONO_CMD_CALL;
  unisono_status status = batch_check(commands, bytes, count, kinds, error);
  return status != UNISONO_OK ? status : queue_submit(&s->q, commands, count, accepted, error);
}

/* The worker does the work: poll only tells how far it is. */
static unisono_status stream_poll(unisono_stream s, uint64_t budget, unisono_queue_state *state,
                                  unisono_error *error) {
  (void)budget;
  if (s == NULL) return INVALID(error, "example: stream is NULL");
  return queue_poll(&s->q, UNISONO_QUEUE_WAITING, state, error);
}

static unisono_status stream_arm(unisono_stream s, uint32_t allowed, const unisono_waker *waker,
                                 unisono_sleep *sleep, unisono_error *error) {
  if (s == NULL || sleep == NULL) return INVALID(error, "example: arm got NULL");
  if (!(allowed & UNISONO_SLEEP_WAKER) || waker == NULL)
    return UNSUPPORTED(error, "example: streams can only call a waker");
  pthread_mutex_lock(&s->q.lock);
  if (s->q.failed != 0 || s->q.completed != s->q.reported) {
    sleep->how = UNISONO_SLEEP_READY; /* poll has not told this yet */
  } else {
    s->q.sleeper = (sleeper){1, *waker};
    sleep->how = UNISONO_SLEEP_WAKER;
  }
  pthread_mutex_unlock(&s->q.lock);
  return UNISONO_OK;
}

static void queue_disarm(queue *q) {
  pthread_mutex_lock(&q->lock);
  q->sleeper.armed = 0;
  pthread_mutex_unlock(&q->lock);
}

static void stream_disarm(unisono_stream s) {
  if (s != NULL) queue_disarm(&s->q);
}

static unisono_status stream_query(unisono_stream s, unisono_queue_state *state) {
  if (s == NULL || state == NULL) return UNISONO_ERR_INVALID;
  pthread_mutex_lock(&s->q.lock);
  queue_state(&s->q, UNISONO_QUEUE_WAITING, state);
  pthread_mutex_unlock(&s->q.lock);
  return UNISONO_OK;
}

static void stream_abort(unisono_stream s) {
  if (s != NULL) queue_abort(&s->q);
}

/* ------------------------------------------------------------ 6. links ------------------------ */

/* A posted link is one Unix socket. The lower rank dials; both say hello and prove by the host's
 * channel that they are the rank they claim; then each PUT is a header and its bytes. The host's
 * poll moves them; a watcher thread waits for the socket, or for the flag of a WAIT, while the host
 * sleeps. */
typedef struct {
  char magic[8];
  uint64_t channel;
  uint32_t from, to;
  uint8_t nonce[NONCE];
} hello;

typedef struct { /* before the bytes of a PUT */
  uint64_t offset, bytes, signal_offset;
  uint32_t window, signal_window, words_valid, reserved;
  uint64_t words[3];
} put_header;

typedef struct { uint32_t id; uint64_t ptr, bytes; } window;
typedef struct { window *list; size_t count; } windows;

enum stage { DIAL, ACCEPT, HELLO, GREET, PROVE, UP };

typedef struct unisono_link_s {
  queue q; /* its lock also guards `stage`, `fd` and what the watcher reads */
  struct unisono_link_s *next; /* in the instance's list, under the instance's lock */
  instance *instance;
  unisono_channel channel;
  uint32_t peer;
  uint8_t peer_name[NONCE];
  enum stage stage;
  int fd, incoming; /* incoming: handed over by whoever accepted it, under the instance's lock */
  hello mine, theirs;
  windows ours, peers; /* exported here; imported from the peer */
  put_header in;
  uint64_t sent, got; /* of the PUT under way each way, header included */
  int blocked, ready; /* the socket is full; poll has more to do */
  struct { uint64_t flag, target; short events; } watch; /* what arm left for the watcher */
  pthread_t watcher;
  int kick; /* an eventfd that ends the watcher's sleep */
  unisono_link_statistics statistics;
} link_state;

static window *window_find(const windows *w, uint32_t id) {
  for (size_t i = 0; i < w->count; i++)
    if (w->list[i].id == id) return &w->list[i];
  return NULL;
}

static unisono_status window_add(windows *w, window new, unisono_error *error) {
  if (window_find(w, new.id) != NULL) return INVALID(error, "example: window %u is taken", new.id);
  window *list = realloc(w->list, (w->count + 1) * sizeof *list);
  if (list == NULL) return NO_MEMORY(error);
  w->list = list;
  list[w->count++] = new;
  return UNISONO_OK;
}

/* Whether [offset, offset + bytes) lies in a window. */
static window *window_holds(const windows *w, uint32_t id, uint64_t offset, uint64_t bytes) {
  window *found = window_find(w, id);
  return found != NULL && offset <= found->bytes && bytes <= found->bytes - offset ? found : NULL;
}

static socklen_t socket_name(const uint8_t name[NONCE], struct sockaddr_un *out) {
  memset(out, 0, sizeof *out); /* abstract: path[0] is 0, nothing is left in the file system */
  out->sun_family = AF_UNIX;
  int len = snprintf(out->sun_path + 1, sizeof out->sun_path - 1, "unisono-example-");
  for (int i = 0; i < NONCE; i++)
    len += snprintf(out->sun_path + 1 + len, sizeof out->sun_path - 1 - (size_t)len, "%02x", name[i]);
  return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
}

static const char address_magic[8] = "exmplL1";

static unisono_status link_address(unisono_instance self, void *out, uint64_t cap, uint64_t *len,
                                   unisono_error *error) {
  if (self == NULL || out == NULL || len == NULL) return INVALID(error, "example: address got NULL");
  *len = sizeof address_magic + NONCE;
  if (cap < *len) return INVALID(error, "example: the address has 24 bytes");
  pthread_mutex_lock(&self->lock);
  int failed = 0;
  if (self->listener < 0) {
    struct sockaddr_un name;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    failed = fd < 0 || nonce_make(self->name) != 0 ||
             bind(fd, (struct sockaddr *)&name, socket_name(self->name, &name)) != 0 ||
             listen(fd, 1024) != 0;
    if (!failed) self->listener = fd;
    else if (fd >= 0) close(fd);
  }
  memcpy(out, address_magic, sizeof address_magic);
  memcpy((uint8_t *)out + sizeof address_magic, self->name, NONCE);
  pthread_mutex_unlock(&self->lock);
  return failed ? fail(error, UNISONO_ERR_LINK, errno, "example: cannot listen") : UNISONO_OK;
}

static unisono_status link_report(unisono_instance self, unisono_link_info *out, uint32_t cap,
                                  uint32_t *count, unisono_error *error) {
  if (self == NULL || count == NULL || (out == NULL && cap > 0))
    return INVALID(error, "example: report got NULL");
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

static void link_pack_transcript(const link_state *l, uint32_t signer, uint8_t out[64]) {
  int low = l->mine.from < l->mine.to;
  const hello *first = low ? &l->mine : &l->theirs, *second = low ? &l->theirs : &l->mine;
  memset(out, 0, 64);
  memcpy(out, address_magic, 8);
  memcpy(out + 8, &l->mine.channel, 8);
  memcpy(out + 16, &first->from, 4);
  memcpy(out + 20, &second->from, 4);
  memcpy(out + 24, first->nonce, NONCE);
  memcpy(out + 40, second->nonce, NONCE);
  memcpy(out + 56, &signer, 4);
}

/* A whole message of the handshake, or AGAIN; each was sent in one piece. */
static unisono_status take(int fd, void *out, size_t len) {
  ssize_t n = recv(fd, out, len, MSG_DONTWAIT | MSG_PEEK);
  if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) return UNISONO_ERR_PEER;
  if (n < (ssize_t)len) return UNISONO_AGAIN;
  return recv(fd, out, len, MSG_DONTWAIT) == (ssize_t)len ? UNISONO_OK : UNISONO_ERR_PEER;
}

static int give(int fd, const void *data, size_t len) {
  return send(fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)len;
}

/* Accepts callers and hands those that name a waiting link to it. Strangers, and whoever says
 * nothing for too long, are dropped; a rank that was dropped in a crowd dials again. */
static void instance_accept(instance *self) {
  size_t slots = sizeof self->callers / sizeof self->callers[0], crowd = 0;
  pthread_mutex_lock(&self->lock);
  for (size_t i = 0; i < slots; i++) crowd += self->callers[i].fd != 0;
  for (size_t i = 0; i < slots; i++) {
    if (self->callers[i].fd == 0 && self->listener >= 0) {
      int fd = accept4(self->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (fd > 0) {
        self->callers[i].fd = fd;
        self->callers[i].since = now_ns();
      }
    }
    int fd = self->callers[i].fd;
    if (fd == 0) continue;
    hello h;
    link_state *l = self->links;
    int known = recv(fd, &h, sizeof h, MSG_DONTWAIT | MSG_PEEK) == (ssize_t)sizeof h &&
                memcmp(h.magic, address_magic, sizeof h.magic) == 0;
    while (known && l != NULL &&
           !(l->channel.id == h.channel && l->peer == h.from && l->channel.rank == h.to &&
             l->peer < l->channel.rank && l->incoming < 0))
      l = l->next;
    if (known && l != NULL) {
      l->incoming = fd;
      self->callers[i].fd = 0;
    } else if (now_ns() - self->callers[i].since >
               (crowd == slots && !known ? 10 * 1000000u : self->handshake_ns)) {
      if (self->refused++ == 0) say(self, UNISONO_LOG_WARN, "dropped a caller: no rank of ours");
      close(fd);
      self->callers[i].fd = 0;
    }
  }
  pthread_mutex_unlock(&self->lock);
}

static void link_set(link_state *l, enum stage stage, int fd) {
  pthread_mutex_lock(&l->q.lock);
  l->stage = stage;
  l->fd = fd;
  pthread_mutex_unlock(&l->q.lock);
}

/* One step of connecting: OK if it went on, AGAIN if it must wait. */
static unisono_status link_connect(link_state *l, unisono_error *error) {
  uint8_t transcript[64], signature[64];
  unisono_status status = UNISONO_OK;
  switch (l->stage) {
    case DIAL: {
      struct sockaddr_un name;
      socklen_t len = socket_name(l->peer_name, &name);
      int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
      if (fd >= 0 && connect(fd, (struct sockaddr *)&name, len) == 0) {
        link_set(l, HELLO, fd);
        return UNISONO_OK;
      }
      int code = errno;
      if (fd >= 0) close(fd);
      if (code == EAGAIN) return UNISONO_AGAIN; /* its backlog is full */
      return fail(error, UNISONO_ERR_PEER, code, "example: rank %u: %s", l->peer, strerror(code));
    }
    case ACCEPT:
      instance_accept(l->instance);
      pthread_mutex_lock(&l->instance->lock);
      int fd = l->incoming;
      l->incoming = -1;
      pthread_mutex_unlock(&l->instance->lock);
      if (fd < 0) return UNISONO_AGAIN;
      link_set(l, HELLO, fd);
      return UNISONO_OK;
    case HELLO: {
      int size = (int)l->instance->socket_bytes;
      setsockopt(l->fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
      if (nonce_make(l->mine.nonce) != 0 || !give(l->fd, &l->mine, sizeof l->mine)) break;
      link_set(l, GREET, l->fd);
      return UNISONO_OK;
    }
    case GREET:
      status = take(l->fd, &l->theirs, sizeof l->theirs);
      if (status == UNISONO_AGAIN) return status;
      if (status != UNISONO_OK || memcmp(l->theirs.magic, l->mine.magic, 8) != 0 ||
          l->theirs.channel != l->mine.channel || l->theirs.from != l->peer ||
          l->theirs.to != l->mine.from)
        break;
      link_pack_transcript(l, l->mine.from, transcript);
      status = l->channel.prove(l->channel.context, transcript, sizeof transcript, signature);
      if (status < 0) return fail(error, status, 0, "example: the host proves nothing");
      if (!give(l->fd, signature, sizeof signature)) break;
      link_set(l, PROVE, l->fd);
      return UNISONO_OK;
    default: /* PROVE */
      status = take(l->fd, signature, sizeof signature);
      if (status == UNISONO_AGAIN) return status;
      if (status != UNISONO_OK) break;
      link_pack_transcript(l, l->peer, transcript);
      status = l->channel.verify(l->channel.context, l->peer, transcript, sizeof transcript,
                                 signature);
      if (status == UNISONO_OK) {
        link_set(l, UP, l->fd);
        return UNISONO_OK;
      }
      say(l->instance, UNISONO_LOG_WARN, "someone posed as rank %u", l->peer);
      l->instance->refused++;
      break;
  }
  close(l->fd); /* that was nobody: wait for the peer, or dial it, anew */
  link_set(l, l->mine.from < l->peer ? DIAL : ACCEPT, -1);
  return UNISONO_AGAIN;
}

/* YOURS: post it to your NIC. Here: header and pieces into the socket, as far as they go. */
static unisono_status put_send(link_state *l, const unisono_command_put *p, uint64_t *budget,
                               unisono_error *error) {
  uint64_t total = p->bytes * p->repeat;
  put_header h = {p->dst_offset, total, p->signal_offset, p->dst_window, p->signal_window,
                  p->head.flags & UNISONO_CMD_WORDS, 0, {p->words[0], p->words[1], p->words[2]}};
  while (l->sent < sizeof h + total) {
    if (*budget == 0) return UNISONO_AGAIN;
    struct iovec pieces[16];
    struct msghdr message = {.msg_iov = pieces};
    uint64_t from = l->sent;
    if (from < sizeof h) {
      pieces[message.msg_iovlen++] = (struct iovec){(uint8_t *)&h + from, sizeof h - from};
      from = sizeof h;
    }
    for (from -= sizeof h; from < total && message.msg_iovlen < 16;) {
      uint64_t piece = from / p->bytes, inside = from % p->bytes, len = p->bytes - inside;
      pieces[message.msg_iovlen++] =
          (struct iovec){at(p->src + piece * p->src_stride + inside), len};
      from += len;
    }
    ssize_t n = sendmsg(l->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {
      l->blocked = 1;
      return UNISONO_AGAIN;
    }
    if (n < 0)
      return fail(error, UNISONO_ERR_PEER, errno, "example: rank %u: %s", l->peer, strerror(errno));
    l->sent += (uint64_t)n;
    *budget -= (uint64_t)n < *budget ? (uint64_t)n : *budget;
  }
  l->sent = 0;
  l->statistics.puts_sent++;
  l->statistics.bytes_sent += total;
  if (p->done_flag != 0) signal_raise(p->done_flag, p->done_counter, NULL);
  return UNISONO_OK;
}

static unisono_status link_send(link_state *l, uint64_t *budget, unisono_error *error) {
  l->blocked = 0;
  while (l->q.completed < l->q.accepted) {
    const command *c = &l->q.ring[l->q.completed % l->q.depth];
    unisono_status status = c->head.kind == UNISONO_CMD_WAIT ? wait_try(&c->wait, error)
                                                             : put_send(l, &c->put, budget, error);
    if (status != UNISONO_OK) return status;
    pthread_mutex_lock(&l->q.lock);
    l->q.completed++;
    pthread_mutex_unlock(&l->q.lock);
  }
  return UNISONO_OK;
}

static unisono_status link_receive(link_state *l, uint64_t *budget, unisono_error *error) {
  put_header *h = &l->in;
  while (*budget > 0) {
    uint8_t *to = (uint8_t *)h + l->got;
    size_t want = sizeof *h - l->got;
    if (l->got >= sizeof *h) { /* looked up each time: it may have been closed meanwhile */
      window *w = window_holds(&l->ours, h->window, h->offset, h->bytes);
      if (w == NULL && h->bytes > 0)
        return fail(error, UNISONO_ERR_LINK, 0, "example: rank %u wrote outside window %u", l->peer,
                    h->window);
      to = h->bytes > 0 ? (uint8_t *)at(w->ptr) + h->offset + (l->got - sizeof *h) : to;
      want = h->bytes - (l->got - sizeof *h);
    }
    if (want > 0) {
      ssize_t n = recv(l->fd, to, want, MSG_DONTWAIT);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) return UNISONO_AGAIN;
      if (n <= 0)
        return fail(error, UNISONO_ERR_PEER, n < 0 ? errno : 0, "example: rank %u is gone", l->peer);
      l->got += (uint64_t)n;
      *budget -= (uint64_t)n < *budget ? (uint64_t)n : *budget;
    }
    if (l->got < sizeof *h || l->got < sizeof *h + h->bytes) continue;
    if (h->signal_window != UNISONO_NO_WINDOW) {
      window *w = window_holds(&l->ours, h->signal_window, h->signal_offset,
                               sizeof(unisono_flag_line));
      if (w == NULL || h->signal_offset % sizeof(unisono_flag_line) != 0)
        return fail(error, UNISONO_ERR_LINK, 0, "example: rank %u signalled no flag", l->peer);
      unisono_flag_line *line = at(w->ptr + h->signal_offset);
      if (h->words_valid) memcpy(line->words, h->words, sizeof line->words);
      /* Added, not stored: an abort may have raised the flag meanwhile. */
      atomic_fetch_add_explicit((_Atomic uint64_t *)&line->counter, 1, memory_order_release);
    }
    l->statistics.puts_received++;
    l->statistics.bytes_received += h->bytes;
    l->got = 0;
  }
  return UNISONO_OK;
}

static unisono_status link_poll(unisono_link l, uint64_t budget, unisono_queue_state *state,
                                unisono_error *error) {
  if (l == NULL) return INVALID(error, "example: link is NULL");
  unisono_error problem = {.struct_size = sizeof problem};
  unisono_status status = UNISONO_OK;
  uint64_t out = budget, in = budget;
  enum stage before = l->stage;
  pthread_mutex_lock(&l->q.lock);
  int run = l->q.running = l->q.failed == 0;
  pthread_mutex_unlock(&l->q.lock);
  if (run) {
    while (l->stage != UP && status == UNISONO_OK) status = link_connect(l, &problem);
    if (l->stage == UP && status >= 0) {
      status = link_send(l, &out, &problem);
      unisono_error late = {.struct_size = sizeof late};
      unisono_status received = link_receive(l, &in, &late);
      if (status >= 0 && received < 0) {
        status = received;
        problem = late;
      }
    }
  }
  pthread_mutex_lock(&l->q.lock);
  l->q.running = 0;
  if (status < 0) {
    if (l->q.failed == 0) l->q.error = problem;
    queue_fail(&l->q, status);
  }
  pthread_mutex_unlock(&l->q.lock);
  if (status < 0 && l->fd >= 0) shutdown(l->fd, SHUT_RDWR);
  l->ready = l->stage == UP && (out == 0 || in == 0);
  uint32_t busy = l->stage != UP ? UNISONO_QUEUE_CONNECTING
                  : l->ready ? UNISONO_QUEUE_READY : UNISONO_QUEUE_WAITING;
  status = queue_poll(&l->q, busy, state, error);
  if (state != NULL && status == UNISONO_OK) {
    if (l->stage != UP || l->ready) state->state = busy;
    state->moved |= out != budget || in != budget || l->stage != before;
  }
  return status;
}

static void *watcher(void *arg) {
  link_state *l = arg;
  queue *q = &l->q;
  pthread_mutex_lock(&q->lock);
  while (!q->stop) {
    if (!q->sleeper.armed) {
      pthread_cond_wait(&q->changed, &q->lock);
      continue;
    }
    int waits = l->watch.flag != 0; /* the host's memory: good while it is armed */
    if (waits && (int64_t)(flag_load(l->watch.flag) - l->watch.target) >= 0) {
      sleeper_wake(&q->sleeper);
      continue;
    }
    int connecting = l->stage != UP; /* short, and bounded by the host: look each millisecond */
    struct timespec nap = {0, connecting ? 1000000 : NAP_NS};
    struct pollfd fds[2] = {{l->kick, POLLIN, 0}, {l->fd, l->watch.events, 0}};
    pthread_mutex_unlock(&q->lock);
    ppoll(fds, 2, connecting || waits ? &nap : NULL, NULL);
    uint64_t kicks;
    if (fds[0].revents != 0 && read(l->kick, &kicks, sizeof kicks) < 0) kicks = 0;
    pthread_mutex_lock(&q->lock);
    if (connecting || fds[1].revents != 0) sleeper_wake(&q->sleeper);
  }
  pthread_mutex_unlock(&q->lock);
  return NULL;
}

static void link_kick(link_state *l) {
  uint64_t one = 1;
  pthread_cond_broadcast(&l->q.changed);
  if (write(l->kick, &one, sizeof one) < 0) return; /* full: it is awake already */
}

static unisono_status link_arm(unisono_link l, uint32_t allowed, const unisono_waker *waker,
                               unisono_sleep *sleep, unisono_error *error) {
  if (l == NULL || sleep == NULL) return INVALID(error, "example: arm got NULL");
  if (!(allowed & UNISONO_SLEEP_WAKER) || waker == NULL)
    return UNSUPPORTED(error, "example: links can only call a waker");
  pthread_mutex_lock(&l->q.lock);
  sleep->how = l->ready || l->q.failed != 0 ? UNISONO_SLEEP_READY : UNISONO_SLEEP_WAKER;
  if (sleep->how == UNISONO_SLEEP_WAKER) {
    const command *head = &l->q.ring[l->q.completed % l->q.depth];
    l->watch.flag = 0;
    if (l->stage == UP && l->q.completed < l->q.accepted && head->head.kind == UNISONO_CMD_WAIT) {
      l->watch.flag = head->wait.flag;
      l->watch.target = ((unisono_counter *)at(head->wait.counter))->value + 1;
    }
    l->watch.events = (short)(POLLIN | (l->blocked ? POLLOUT : 0));
    l->q.sleeper = (sleeper){1, *waker};
    link_kick(l);
  }
  pthread_mutex_unlock(&l->q.lock);
  return UNISONO_OK;
}

static void link_disarm(unisono_link l) {
  if (l != NULL) queue_disarm(&l->q);
}

static unisono_status link_create(unisono_instance self, const unisono_link_request *request,
                                  unisono_link *out, unisono_error *error) {
  if (self == NULL || request == NULL || out == NULL || request->channel == NULL)
    return INVALID(error, "example: link got NULL");
  if (request->peer_address_len != sizeof address_magic + NONCE ||
      memcmp(request->peer_address, address_magic, sizeof address_magic) != 0 ||
      request->peer == request->channel->rank)
    return INVALID(error, "example: rank %u gave no address of this plugin", request->peer);
  link_state *l = calloc(1, sizeof *l);
  if (l == NULL) return NO_MEMORY(error);
  l->instance = self;
  l->channel = *request->channel;
  l->peer = request->peer;
  memcpy(l->peer_name, (const uint8_t *)request->peer_address + sizeof address_magic, NONCE);
  l->fd = l->incoming = -1;
  l->stage = l->channel.rank < l->peer ? DIAL : ACCEPT;
  l->mine.channel = l->channel.id;
  l->mine.from = l->channel.rank;
  l->mine.to = l->peer;
  memcpy(l->mine.magic, address_magic, sizeof l->mine.magic);
  l->kick = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (queue_init(&l->q, self->depth) != 0 || l->kick < 0 ||
      thread_start(&l->watcher, watcher, l) != 0) {
    if (l->kick >= 0) close(l->kick);
    queue_free(&l->q);
    free(l);
    return NO_MEMORY(error);
  }
  pthread_mutex_lock(&self->lock);
  l->next = self->links;
  self->links = l;
  pthread_mutex_unlock(&self->lock);
  *out = l;
  return UNISONO_OK;
}

static void link_destroy(unisono_link l) {
  if (l == NULL) return;
  pthread_mutex_lock(&l->instance->lock);
  link_state **link = &l->instance->links;
  while (*link != l) link = &(*link)->next;
  *link = l->next;
  pthread_mutex_unlock(&l->instance->lock);
  pthread_mutex_lock(&l->q.lock);
  l->q.stop = 1;
  link_kick(l);
  pthread_mutex_unlock(&l->q.lock);
  pthread_join(l->watcher, NULL);
  if (l->fd >= 0) close(l->fd);
  if (l->incoming >= 0) close(l->incoming);
  close(l->kick);
  free(l->ours.list);
  free(l->peers.list);
  queue_free(&l->q);
  free(l);
}

static unisono_status link_export(unisono_link l, uint32_t id, uint64_t ptr, uint64_t bytes,
                                  void *token, uint64_t cap, uint64_t *len, unisono_error *error) {
  window w = {id, ptr, bytes};
  if (l == NULL || ptr == 0 || token == NULL || len == NULL || cap < sizeof w.bytes)
    return INVALID(error, "example: export_window got NULL or too small a token");
  *len = sizeof w.bytes; /* all that the peer must know: how large it is */
  memcpy(token, &w.bytes, sizeof w.bytes);
  return window_add(&l->ours, w, error);
}

static unisono_status link_import(unisono_link l, uint32_t id, const void *token, uint64_t len,
                                  unisono_error *error) {
  window w = {id, 0, 0};
  if (l == NULL || token == NULL || len != sizeof w.bytes)
    return INVALID(error, "example: this is no window of this plugin");
  memcpy(&w.bytes, token, sizeof w.bytes);
  return window_add(&l->peers, w, error);
}

static unisono_status link_close(unisono_link l, uint32_t id, unisono_error *error) {
  window *w = l != NULL ? window_find(&l->ours, id) : NULL;
  if (w == NULL) return INVALID(error, "example: there is no window %u", id);
  *w = l->ours.list[--l->ours.count];
  return UNISONO_OK;
}

static unisono_status link_submit(unisono_link l, const void *commands, uint64_t bytes,
                                  uint32_t count, uint32_t *accepted, unisono_error *error) {
  if (l == NULL || accepted == NULL || (commands == NULL && bytes > 0))
    return INVALID(error, "example: submit got NULL");
  *accepted = 0;
  unisono_status status = batch_check(commands, bytes, count,
                                      1u << UNISONO_CMD_PUT | 1u << UNISONO_CMD_WAIT, error);
  const uint8_t *p = commands;
  for (uint32_t i = 0; status == UNISONO_OK && i < count; i++) {
    const command *c = (const command *)p;
    const unisono_command_put *put = &c->put;
    p += c->head.size;
    if (c->head.kind != UNISONO_CMD_PUT) continue;
    int data = put->bytes == 0 || (put->bytes <= UINT64_MAX / put->repeat &&
                                   window_holds(&l->peers, put->dst_window, put->dst_offset,
                                                put->bytes * put->repeat) != NULL);
    int flag = put->signal_window == UNISONO_NO_WINDOW ||
               window_holds(&l->peers, put->signal_window, put->signal_offset,
                            sizeof(unisono_flag_line)) != NULL;
    if (!data || !flag)
      status = INVALID(error, "example: put %u goes outside rank %u's windows", i, l->peer);
  }
  return status != UNISONO_OK ? status : queue_submit(&l->q, commands, count, accepted, error);
}

static unisono_status link_query(unisono_link l, unisono_queue_state *state) {
  if (l == NULL || state == NULL) return UNISONO_ERR_INVALID;
  pthread_mutex_lock(&l->q.lock);
  queue_state(&l->q, l->stage != UP ? UNISONO_QUEUE_CONNECTING : UNISONO_QUEUE_WAITING, state);
  pthread_mutex_unlock(&l->q.lock);
  return UNISONO_OK;
}

static void link_abort(unisono_link l) {
  if (l != NULL) queue_abort(&l->q);
}

static unisono_status link_statistics(unisono_link l, unisono_link_statistics *out) {
  if (l == NULL || out == NULL) return UNISONO_ERR_INVALID;
  *out = l->statistics;
  out->struct_size = sizeof *out;
  out->connections = l->stage == UP;
  out->refused = l->instance->refused;
  return UNISONO_OK;
}

/* ------------------------------------------------------------ 7. the tables ------------------- */

/* NULL means "unsupported": no wrap, no export of memory, no native handles, no capture. */
static const unisono_instance_table instances = {
    .struct_size = sizeof instances, .create = instance_create, .destroy = instance_destroy,
    .devices = instance_devices};
static const unisono_device_table devices = {
    .struct_size = sizeof devices, .open = device_open, .close = device_close,
    .supports = device_supports};
static const unisono_memory_table memories = {
    .struct_size = sizeof memories, .alloc = memory_alloc, .free = memory_free,
    .register_host = memory_register, .query = memory_query};
static const unisono_stream_table streams = {
    .struct_size = sizeof streams, .create = stream_create, .destroy = stream_destroy,
    .submit = stream_submit, .poll = stream_poll, .arm = stream_arm, .disarm = stream_disarm,
    .query = stream_query, .abort = stream_abort};
static const unisono_event_table events = {
    .struct_size = sizeof events, .create = event_create, .destroy = event_destroy,
    .host_signal = event_host_signal, .host_query = event_host_query};
static const unisono_link_table links = {
    .struct_size = sizeof links, .report = link_report, .address = link_address,
    .create = link_create, .destroy = link_destroy, .export_window = link_export,
    .import_window = link_import, .close_window = link_close, .submit = link_submit,
    .poll = link_poll, .arm = link_arm, .disarm = link_disarm, .query = link_query,
    .abort = link_abort, .statistics = link_statistics};

static const unisono_layout_entry layout[] = {UNISONO_LAYOUT_TABLE};

static const unisono_plugin plugin = {
    .magic = UNISONO_PLUGIN_MAGIC,
    .abi_major = UNISONO_PLUGIN_ABI_MAJOR,
    .abi_minor = UNISONO_PLUGIN_ABI_MINOR,
    .struct_size = sizeof plugin,
    .name = STR("example"),
    .version = STR("0.1.0"),
    .vendor = STR("unisono"),
    .build_id = STR(""),
    .param_count = PARAMS,
    .params = params,
    .layout = layout,
    .layout_count = sizeof layout / sizeof layout[0],
    .instance = &instances,
    .device = &devices,
    .memory = &memories,
    .stream = &streams,
    .event = &events,
    .link = &links};

UNISONO_PLUGIN_EXPORT const unisono_plugin *unisono_plugin_query(uint32_t host_major,
                                                                 uint32_t host_minor) {
  (void)host_minor; /* minors only add */
  return host_major == UNISONO_PLUGIN_ABI_MAJOR ? &plugin : NULL;
}
