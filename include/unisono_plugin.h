/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * unisono_plugin.h - the contract between unisono (the host) and a plugin.
 *
 * This file is normative; hal/abi mirrors it and a test compares the two, field by field.
 * It is standalone C11 (and C++17): a plugin needs nothing else to compile.
 *
 * A plugin is a shared library that exports one function, unisono_plugin_query. It returns static
 * data: who the plugin is, and tables of functions for devices, memory, streams, events and links.
 * A plugin fills what it can do; a NULL entry means "unsupported".
 *
 * Rules (vendor-docs/abi-rules.md gives the reasons)
 *  - Versions: the major must match. A minor only adds: fields and functions at the end of a struct,
 *    covered by its struct_size. "since 1.x" marks what came after 1.0.
 *  - Sizes: a struct or an array that the plugin fills is as large as the plugin's own layout table
 *    says: the host sets struct_size so in each entry, and adapts. The plugin may write all of the
 *    fields it knows. What the host fills has the host's struct_size: a plugin reads a field "since
 *    1.x" only if that covers it. A command may be longer than the plugin knows it: the tail can
 *    be left unread, as a new meaning always comes with a new flag.
 *  - Ownership: only handles are owned, each with its destroy function. Strings and arrays are
 *    borrowed for the call. Errors are written to a struct that the caller owns.
 *  - No exception and no panic may leave a function.
 *  - Thread rules, said at each table:
 *      [any]     any thread at any time;
 *      [handle]  the host serialises calls on one handle; different handles run concurrently.
 *  - No function blocks, save where "may block" is said. No function changes the calling thread's
 *    current device or context as the caller sees it.
 *  - A unisono_error argument may be NULL. It is written only when the status is negative.
 */
#ifndef UNISONO_PLUGIN_H
#define UNISONO_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define UNISONO_PLUGIN_MAGIC 0x4e4f53494e55ULL /* "UNISON" in memory, little-endian */
#define UNISONO_PLUGIN_ABI_MAJOR 1
#define UNISONO_PLUGIN_ABI_MINOR 9

/* ---------------------------------------------------------------- status and errors ---------- */

typedef int32_t unisono_status;
enum {
  UNISONO_OK = 0,
  UNISONO_AGAIN = 1,             /* no error: nothing to be had now, ask again */
  UNISONO_ERR_INVALID = -1,      /* an argument breaks this contract */
  UNISONO_ERR_UNSUPPORTED = -2,  /* this plugin or device cannot do it */
  UNISONO_ERR_OUT_OF_MEMORY = -3,
  UNISONO_ERR_DEVICE = -4,       /* the device or its driver failed; vendor_code says how */
  UNISONO_ERR_LINK = -5,         /* a link failed */
  UNISONO_ERR_PEER = -6,         /* the other end is gone */
  UNISONO_ERR_TIMEOUT = -7,
  UNISONO_ERR_ABORTED = -8,
  UNISONO_ERR_MISMATCH = -9,     /* a signal carried other words than expected; see error.words */
  UNISONO_ERR_AUTH = -10,        /* the other end could not prove who it is */
  UNISONO_ERR_NO_DRIVER = -11,   /* the vendor's driver or library is missing on this machine */
  UNISONO_ERR_INTERNAL = -12,    /* a bug in the plugin: a caught panic or exception */
  UNISONO_ERR_POISONED = -13     /* the instance was poisoned by an earlier INTERNAL */
};

typedef struct unisono_error {
  uint32_t struct_size;  /* set by the caller */
  int32_t status;        /* the same as the returned status */
  int64_t vendor_code;   /* the vendor's own code, errno for the system; 0 if none */
  uint64_t words[3];     /* MISMATCH: the words that were found */
  char message[232];     /* UTF-8, NUL-terminated, cut if longer */
} unisono_error;

/* A borrowed string: UTF-8, not NUL-terminated. */
typedef struct unisono_str {
  const char *ptr;
  uint64_t len;
} unisono_str;

/* ---------------------------------------------------------------- handles -------------------- */

typedef struct unisono_instance_s *unisono_instance; /* one use of the plugin by one process */
typedef struct unisono_device_s *unisono_device;     /* one opened device */
typedef struct unisono_memory_s *unisono_memory;     /* allocated, registered, wrapped or imported */
typedef struct unisono_stream_s *unisono_stream;     /* an ordered queue of a device */
typedef struct unisono_event_s *unisono_event;
typedef struct unisono_link_s *unisono_link;         /* a posted link to one peer, for one channel */

/* ---------------------------------------------------------------- types of data -------------- */

enum { /* unisono_dtype */
  UNISONO_I8 = 1, UNISONO_U8 = 2, UNISONO_I16 = 3, UNISONO_U16 = 4, UNISONO_I32 = 5,
  UNISONO_U32 = 6, UNISONO_I64 = 7, UNISONO_U64 = 8, UNISONO_F16 = 9, UNISONO_BF16 = 10,
  UNISONO_F32 = 11, UNISONO_F64 = 12,
  UNISONO_F8E4M3FN = 13, /* OCP: no infinity, overflow saturates to +-448. Not the FNUZ flavour. */
  UNISONO_F8E5M2 = 14
};

/* Reductions. Floats: computed in the type (f16, bf16 and fp8 in f32), rounded to the type after
 * each command. min and max give NaN if either input is NaN. Integers wrap. */
enum { /* unisono_reduction */
  UNISONO_SUM = 1, UNISONO_PROD = 2, UNISONO_MIN = 3, UNISONO_MAX = 4,
  UNISONO_AND = 5, UNISONO_OR = 6, UNISONO_XOR = 7 /* bitwise: integers only */
};

/* ---------------------------------------------------------------- host services -------------- */

enum { UNISONO_LOG_ERROR = 1, UNISONO_LOG_WARN = 2, UNISONO_LOG_INFO = 3, UNISONO_LOG_DEBUG = 4,
       UNISONO_LOG_TRACE = 5 };

typedef struct unisono_log_record {
  uint32_t struct_size;
  uint32_t level;
  unisono_str target; /* the part of the plugin that speaks */
  unisono_str file;
  uint32_t line;
  uint32_t reserved;
  unisono_str message;
} unisono_log_record;

/* What the host offers to an instance. Valid until instance_destroy returns. [any] */
typedef struct unisono_host {
  uint32_t struct_size;
  uint32_t reserved;
  void *context;
  uint32_t (*log_level)(void *context); /* records above this level need not be made */
  void (*log)(void *context, const unisono_log_record *record);
} unisono_host;

/* Called by a plugin when armed work may go on: any thread, async-signal-safe, must not re-enter.
 * Valid from arm until disarm or destroy returns; may be called too often, never after that. */
typedef struct unisono_waker {
  void (*wake)(void *context);
  void *context;
} unisono_waker;

/* The authenticated control channel of one communicator, for setting up links. Plugins never see
 * the job's secret: they ask the host to prove and to verify. Valid until link_destroy returns. [any] */
typedef struct unisono_channel {
  uint32_t struct_size;
  uint32_t rank; /* this process's rank in the communicator */
  uint32_t size; /* ranks in the communicator */
  uint32_t reserved;
  uint64_t id;   /* the same on all ranks, unique in the job */
  void *context;
  /* Sign a transcript as this rank. */
  unisono_status (*prove)(void *context, const void *transcript, uint64_t len,
                          uint8_t signature[64]);
  /* OK if `rank` signed the transcript, else ERR_AUTH. */
  unisono_status (*verify)(void *context, uint32_t rank, const void *transcript, uint64_t len,
                           const uint8_t signature[64]);
  /* Send at most 64 KiB to a rank, reliable and in order for one (tag, pair). */
  unisono_status (*send)(void *context, uint32_t rank, uint64_t tag, const void *data,
                         uint64_t len);
  /* The next message: AGAIN if none has come. If it is longer than cap, ERR_INVALID, *len is set
   * and the message stays. */
  unisono_status (*recv)(void *context, uint32_t rank, uint64_t tag, void *data, uint64_t cap,
                         uint64_t *len);
} unisono_channel;

/* ---------------------------------------------------------------- parameters ----------------- */

enum { UNISONO_PARAM_BOOL = 1, UNISONO_PARAM_INT = 2, UNISONO_PARAM_BYTES = 3,
       UNISONO_PARAM_DURATION_NS = 4, UNISONO_PARAM_STRING = 5 };

/* One name means the same everywhere. A STRING parameter "interfaces" that the user did not set gets
 * the network interfaces that the job may use, separated by commas: names ("eth0", "ib*") and
 * networks ("10.0.0.0/8"), those to leave out with "!" before them; empty is all. A job that does not
 * leave its machine says "lo*". A plugin listens at these and at no others. */
typedef struct unisono_param { /* one entry of the plugin's parameter table */
  unisono_str name;            /* lower_snake_case */
  unisono_str help;            /* one sentence */
  unisono_str default_text;    /* as it would stand in the cluster file */
  uint32_t value_type;         /* UNISONO_PARAM_* */
  uint32_t reserved;
  int64_t min, max;            /* bounds for INT, BYTES and DURATION_NS */
} unisono_param;

typedef struct unisono_param_value { /* checked by the host against the table before it is passed */
  unisono_str name;
  unisono_str text; /* STRING */
  int64_t number;   /* BOOL 0 or 1, INT, BYTES in bytes, DURATION_NS in nanoseconds */
  uint32_t value_type;
  uint32_t reserved;
} unisono_param_value;

typedef struct unisono_instance_info {
  uint32_t struct_size;
  uint32_t param_count;
  const unisono_param_value *params; /* one for each entry of the plugin's table, in its order */
  const unisono_host *host;
} unisono_instance_info;

/* ---------------------------------------------------------------- devices -------------------- */

enum { UNISONO_DEVICE_CPU = 1, UNISONO_DEVICE_GPU = 2, UNISONO_DEVICE_NPU = 3,
       UNISONO_DEVICE_NIC = 4, UNISONO_DEVICE_OTHER = 5 };

/* How a device's memory can be reached from elsewhere: bits. */
enum {
  UNISONO_REACH_HOST = 1,        /* the CPU can load and store it */
  UNISONO_REACH_PROCESS = 2,     /* exported, another process's device of this plugin can map it */
  UNISONO_REACH_PEER = 4,        /* another device of this plugin, in this process, can access it */
  UNISONO_REACH_DMABUF = 8       /* can be exported as a dma-buf */
};

enum { /* what a device's streams can do: bits */
  UNISONO_STREAM_POLLED = 1,     /* work is done inside poll, on the caller's thread */
  UNISONO_STREAM_CHECKS_WORDS = 2, /* WAIT compares words (else the control channel does) */
  UNISONO_STREAM_CAPTURE = 4,    /* batches can be recorded and replayed */
  UNISONO_STREAM_RINGS = 8       /* SIGNAL rings the bell of a sleeping peer */
};

/* An event's four sides: 2 bits each in unisono_device_info.event_sides. */
enum { UNISONO_SIDE_ABSENT = 0, UNISONO_SIDE_NATIVE = 1, UNISONO_SIDE_EMULATED = 2 };
#define UNISONO_EVENT_DEVICE_SIGNAL_SHIFT 0
#define UNISONO_EVENT_DEVICE_WAIT_SHIFT 2
#define UNISONO_EVENT_HOST_SIGNAL_SHIFT 4
#define UNISONO_EVENT_HOST_QUERY_SHIFT 6

typedef struct unisono_device_info {
  uint32_t struct_size;
  uint32_t kind;             /* UNISONO_DEVICE_* */
  uint8_t id[16];            /* opaque, stable on this node, the same in every process */
  char name[64];             /* NUL-terminated */
  char pci[16];              /* "0000:17:00.0", empty if none: an attribute, never an identity */
  int32_t numa;              /* NUMA node, -1 if unknown */
  uint32_t queues;           /* independent hardware queues; lanes a device never exceed it */
  uint64_t memory_bytes;
  uint64_t reach;            /* UNISONO_REACH_* */
  uint64_t streams;          /* UNISONO_STREAM_* */
  uint64_t reduce_bytes_per_second; /* rate of one REDUCE, result bytes; 0 if unknown */
  uint32_t event_sides;
  uint32_t event_reach;      /* 0 device, 1 process, 2 host */
} unisono_device_info;

enum { /* places, for supports */
  UNISONO_PLACE_DEVICE = 1, UNISONO_PLACE_HOST = 2, UNISONO_PLACE_IMPORTED = 3
};

typedef struct unisono_support_query {
  uint32_t struct_size;
  uint32_t command;     /* UNISONO_CMD_* */
  uint32_t dtype;       /* 0 where none */
  uint32_t reduction;   /* 0 where none */
  uint32_t source;      /* UNISONO_PLACE_* */
  uint32_t destination; /* UNISONO_PLACE_* */
} unisono_support_query;

typedef struct unisono_instance_table { /* [any] */
  uint32_t struct_size;
  uint32_t reserved;
  /* May block (opens drivers). ERR_NO_DRIVER where the vendor's library is missing. */
  unisono_status (*create)(const unisono_instance_info *info, unisono_instance *out,
                           unisono_error *error);
  void (*destroy)(unisono_instance instance);
  /* Writes at most cap entries, *count is how many there are. */
  unisono_status (*devices)(unisono_instance instance, unisono_device_info *out, uint32_t cap,
                            uint32_t *count, unisono_error *error);
  /* An optional table by name, NULL if the plugin has none. */
  const void *(*get_interface)(unisono_instance instance, unisono_str id);
} unisono_instance_table;

typedef struct unisono_device_table { /* [any] */
  uint32_t struct_size;
  uint32_t reserved;
  unisono_status (*open)(unisono_instance instance, uint32_t index, unisono_device *out,
                         unisono_error *error);
  void (*close)(unisono_device device);
  /* OK or ERR_UNSUPPORTED; asked when a plan is made, never discovered in submit. */
  unisono_status (*supports)(unisono_device device, const unisono_support_query *query);
} unisono_device_table;

/* ---------------------------------------------------------------- memory --------------------- */

enum { /* what memory is for */
  UNISONO_MEMORY_DATA = 1,
  UNISONO_MEMORY_SIGNAL = 2, /* flags and counters: host and device see each other's writes */
  UNISONO_MEMORY_BELL = 3,   /* at least one bell (SIGNAL's `bell`), laid out as the plugin likes;
                                the same bell for the whole process */
  UNISONO_MEMORY_STAGING = 4, /* pinned host memory for copies in and out */
  UNISONO_MEMORY_PROCESS = 5  /* since 1.7: stands for all memory of the process that allocates it. Who
                                 imports it may READ that memory, by the base of what was imported.
                                 An import proves that it reaches that process, and no other */
};
enum { UNISONO_MEMORY_EXPORTABLE = 1, UNISONO_MEMORY_LAZY = 2 /* pages appear when touched */ };

typedef struct unisono_memory_request {
  uint32_t struct_size;
  uint32_t kind;     /* UNISONO_MEMORY_DATA... */
  uint64_t bytes;
  uint64_t align;    /* a power of two; 0 means 64 */
  uint64_t flags;    /* UNISONO_MEMORY_EXPORTABLE, ..._LAZY */
} unisono_memory_request;

typedef struct unisono_memory_view {
  uint32_t struct_size;
  uint32_t place;      /* UNISONO_PLACE_*, as seen from the device that was asked */
  uint64_t base;       /* address for commands on this device */
  uint64_t host;       /* address for the CPU, 0 if it cannot load and store it */
  uint64_t bytes;
  uint64_t generation; /* the vendor's allocation id: another one at the same address differs */
  uint8_t device[16];  /* id of the device that it belongs to */
} unisono_memory_view;

enum { UNISONO_EXPORT_PROCESS = 1, UNISONO_EXPORT_DMABUF = 2 };
#define UNISONO_EXPORT_MAX 256 /* bytes of an exported description, at most */

typedef struct unisono_memory_table { /* [any] */
  uint32_t struct_size;
  uint32_t reserved;
  /* Zeroed memory. May block. */
  unisono_status (*alloc)(unisono_device device, const unisono_memory_request *request,
                          unisono_memory *out, unisono_memory_view *view, unisono_error *error);
  /* Frees, deregisters, unwraps or unmaps, by how the handle was made. May block. */
  void (*free)(unisono_memory memory);
  /* Make existing host memory fast to use for this device. May block. */
  unisono_status (*register_host)(unisono_device device, void *ptr, uint64_t bytes,
                                  unisono_memory *out, unisono_memory_view *view,
                                  unisono_error *error);
  /* Take device memory that the caller owns and keeps alive. */
  unisono_status (*wrap)(unisono_device device, uint64_t base, uint64_t bytes, unisono_memory *out,
                         unisono_memory_view *view, unisono_error *error);
  /* What lies at an address: AGAIN if it is not this plugin's. */
  unisono_status (*query)(unisono_device device, uint64_t address, unisono_memory_view *view,
                          unisono_error *error);
  /* A description that another process's device can import; *len <= UNISONO_EXPORT_MAX. As DMABUF: an
   * int32_t, a descriptor that is the caller's from then on, of the memory from its first byte on,
   * which must be aligned to a page. */
  unisono_status (*export_memory)(unisono_memory memory, uint32_t how, void *out, uint64_t cap,
                                  uint64_t *len, unisono_error *error);
  /* Map it. Proves that what was mapped is what was exported, and that it cannot shrink. In the
   * exporting process it gives the exporter's own address. It stays until it is freed, whatever the
   * exporter does meanwhile. May block. */
  unisono_status (*import_memory)(unisono_device device, const void *description, uint64_t len,
                                  unisono_memory *out, unisono_memory_view *view,
                                  unisono_error *error);
  /* Make a NIC's finished writes to this device's memory visible to it, before the host or the
   * stream looks at a flag that came with them. OK at once where they are so by themselves;
   * ERR_UNSUPPORTED where nothing makes them so: then no NIC is to write there. Never blocks. */
  unisono_status (*flush_remote_writes)(unisono_device device, unisono_error *error);
} unisono_memory_table;

/* ---------------------------------------------------------------- commands ------------------- */

/* A batch is a packed run of commands, each 8-byte aligned and `size` bytes long. Streams take
 * COPY, REDUCE, SIGNAL, WAIT, RECORD, WAIT_EVENT, and those of SCALE, CALL and READ that `supports`
 * claims; links take PUT and WAIT. An unknown kind is ERR_UNSUPPORTED and nothing of the batch is
 * taken. Commands of one queue run in order: each
 * sees the effects of those before it.
 *
 * Flags. A flag line is 64 bytes, aligned: a u64 counter, then three u64 words (the signature of a
 * call), then 32 bytes that are the host's: no SIGNAL, WAIT or PUT touches them. A counter is 16 bytes of the executing side's own memory:
 * {u64 value, u64 seen}. SIGNAL: value += 1, then the flag's counter = value. WAIT: value += 1,
 * then until (int64)(flag - value) >= 0. So no command holds an absolute number, and a batch can be
 * replayed. `seen` is the last flag value read: a WAIT that it satisfies need not read the flag.
 * A flag that is 2^61 or more ahead of value is an abort: the wait ends and compares no words. A WAIT's flag lies in the
 * rank's own memory, so that its abort can raise it; where the device is a CPU also in memory that it has imported, whose
 * owner alone raises it: such a wait ends with the stream's `abort`. */
enum {
  UNISONO_CMD_COPY = 1, UNISONO_CMD_REDUCE = 2, UNISONO_CMD_SIGNAL = 3, UNISONO_CMD_WAIT = 4,
  UNISONO_CMD_PUT = 5, UNISONO_CMD_RECORD = 6, UNISONO_CMD_WAIT_EVENT = 7,
  UNISONO_CMD_SCALE = 8, /* since 1.2 */
  UNISONO_CMD_CALL = 9,  /* since 1.2 */
  UNISONO_CMD_READ = 10  /* since 1.7 */
};
enum {
  UNISONO_CMD_WORDS = 1,    /* SIGNAL, PUT: write words; WAIT: compare them */
  UNISONO_CMD_STREAMING = 2 /* COPY, REDUCE, SCALE: a hint that dst is not read again soon */
};

typedef struct unisono_flag_line {
  uint64_t counter; /* atomic */
  uint64_t words[3];
  uint64_t reserved[4]; /* the host's own */
} unisono_flag_line;

typedef struct unisono_counter {
  uint64_t value;
  uint64_t seen;
} unisono_counter;

typedef struct unisono_command {
  uint16_t kind;
  uint16_t size;
  uint32_t flags;
} unisono_command;

/* `repeat` pieces of `bytes` bytes, stride bytes apart. */
typedef struct unisono_command_copy {
  unisono_command head;
  uint64_t dst, src;
  uint64_t bytes;
  uint64_t repeat; /* at least 1 */
  uint64_t dst_stride, src_stride;
} unisono_command_copy;

/* dst[i] = a[i] op b[i], then divided by `divisor` if it is not 0 (avg: floats are divided in the
 * type of computation, integers round toward zero). dst may be a or b, never overlap otherwise. */
typedef struct unisono_command_reduce {
  unisono_command head;
  uint64_t dst, a, b;
  uint64_t elements; /* of one piece */
  uint64_t repeat;
  uint64_t dst_stride, a_stride, b_stride; /* bytes */
  uint16_t dtype, reduction;
  uint32_t divisor;
} unisono_command_reduce;

/* After everything before it is visible: words (if flagged), then the counter, then the bell. */
typedef struct unisono_command_signal {
  unisono_command head;
  uint64_t flag;    /* unisono_flag_line, local or imported */
  uint64_t counter; /* unisono_counter, this side's own */
  uint64_t bell;    /* the bell of the process that waits, 0 if none */
  uint64_t words[3];
} unisono_command_signal;

typedef struct unisono_command_wait {
  unisono_command head;
  uint64_t flag;    /* memory that the waiting process owns; a CPU's may be imported */
  uint64_t counter;
  uint64_t words[3]; /* with CMD_WORDS: a difference is ERR_MISMATCH */
} unisono_command_wait;

/* Posted links only: gather `repeat` pieces, write them one after another at the peer's window and
 * offset, then signal the peer's flag (its link does what SIGNAL does), then, when the source may
 * be reused, do a local signal. bytes may be 0; signal_window may be UNISONO_NO_WINDOW. */
#define UNISONO_NO_WINDOW 0xffffffffu
typedef struct unisono_command_put {
  unisono_command head;
  uint64_t src, bytes, repeat, src_stride;
  uint64_t dst_offset, signal_offset;
  uint32_t dst_window, signal_window;
  uint64_t done_flag, done_counter; /* both 0 if nobody waits */
  uint64_t words[3];
} unisono_command_put;

typedef struct unisono_command_event { /* RECORD, WAIT_EVENT */
  unisono_command head;
  unisono_event event;
} unisono_command_event;

/* Since 1.2. dst[i] = src[i] * factor, computed and rounded like a PROD of two elements; in
 * `repeat` pieces. dst may be src, never overlap otherwise. */
typedef struct unisono_command_scale {
  unisono_command head;
  uint64_t dst, src;
  uint64_t elements; /* of one piece */
  uint64_t repeat;   /* at least 1 */
  uint64_t dst_stride, src_stride; /* bytes */
  uint8_t factor[8]; /* one element in the first bytes, zero after it */
  uint16_t dtype;
  uint16_t reserved[3];
} unisono_command_scale;

/* dst[i] = a[i] combined with b[i], for `elements` elements. dst may be a or b, never overlaps
 * otherwise. Must not block, throw, or call anything of the host's or the plugin's. */
typedef void (*unisono_combine)(void *context, void *dst, const void *a, const void *b,
                                uint64_t elements);

/* Since 1.2. Calls a function of the host process in the queue's order: a reduction of the user's
 * own. The plugin may call it for any parts of the elements, in any order, on any thread, one call
 * at a time. For devices whose memory the CPU can load and store. */
typedef struct unisono_command_call {
  unisono_command head;
  uint64_t function; /* unisono_combine */
  uint64_t context;
  uint64_t dst, a, b;
  uint64_t elements;
  uint64_t element_bytes; /* at least 1 */
} unisono_command_call;

/* Since 1.7. Reads the memory of another process: `bytes` bytes at *base + offset there. What it is
 * read from is known when the command's turn comes, as the process has told it by then. Its memory
 * may be read until a later SIGNAL tells it so; if it ends meanwhile the queue fails with ERR_PEER. */
typedef struct unisono_command_read {
  unisono_command head;
  uint64_t process; /* the base of UNISONO_MEMORY_PROCESS, this process's own or imported */
  uint64_t base;    /* address of a uint64_t in memory of this process */
  uint64_t offset;  /* added to it, modulo 2^64 */
  uint64_t dst;
  uint64_t bytes;
} unisono_command_read;

/* ---------------------------------------------------------------- queues: streams and links -- */

enum { UNISONO_QUEUE_IDLE = 0,    /* all that was accepted is complete */
       UNISONO_QUEUE_READY = 1,   /* more can be done now: poll again */
       UNISONO_QUEUE_WAITING = 2, /* waits for a flag, a peer, or the device */
       UNISONO_QUEUE_CONNECTING = 3, UNISONO_QUEUE_FAILED = 4 };

typedef struct unisono_queue_state {
  uint32_t struct_size;
  uint32_t state;
  uint64_t accepted;  /* commands, since the queue was made */
  uint64_t completed;
  uint32_t moved;     /* 1 if this poll made progress */
  uint32_t reserved;
} unisono_queue_state;

/* How a thread may sleep until a queue can go on. */
enum { UNISONO_SLEEP_READY = 0,  /* do not sleep: progress is possible now */
       UNISONO_SLEEP_FUTEX = 1,  /* on a 32-bit futex while it holds futex_value */
       UNISONO_SLEEP_FD = 2,     /* until fd has one of fd_events (as in poll(2)) */
       UNISONO_SLEEP_WAKER = 4 };/* the plugin will call the waker */

typedef struct unisono_sleep {
  uint32_t struct_size;
  uint32_t how;
  uint64_t futex;
  uint32_t futex_value;
  int32_t fd;
  uint32_t fd_events;
  uint32_t reserved;
} unisono_sleep;

typedef struct unisono_stream_request {
  uint32_t struct_size;
  uint32_t reserved;
  int64_t priority; /* higher is sooner; 0 is usual */
} unisono_stream_request;

typedef struct unisono_stream_table { /* [handle], but query and abort are [any] */
  uint32_t struct_size;
  uint32_t reserved;
  unisono_status (*create)(unisono_device device, const unisono_stream_request *request,
                           unisono_stream *out, unisono_error *error);
  unisono_status (*wrap)(unisono_device device, uint64_t native, unisono_stream *out,
                         unisono_error *error);
  void (*destroy)(unisono_stream stream); /* must be idle or aborted */
  uint64_t (*native)(unisono_stream stream);
  /* Takes the first *accepted of `count` commands, copies them, never blocks. */
  unisono_status (*submit)(unisono_stream stream, const void *commands, uint64_t bytes,
                           uint32_t count, uint32_t *accepted, unisono_error *error);
  /* Make progress on this thread for about `budget` bytes of moving; report the state. A negative
   * status means the queue failed: it stays failed and takes no more commands. */
  unisono_status (*poll)(unisono_stream stream, uint64_t budget, unisono_queue_state *state,
                         unisono_error *error);
  /* Prepare to sleep in one of the ways `allowed` (bits). After it answers other than READY, what
   * makes progress possible will end that sleep. */
  unisono_status (*arm)(unisono_stream stream, uint32_t allowed, const unisono_waker *waker,
                        unisono_sleep *sleep, unisono_error *error);
  void (*disarm)(unisono_stream stream);
  unisono_status (*query)(unisono_stream stream, unisono_queue_state *state);
  /* Drop what has not started; what has started ends soon (its waits were released). */
  void (*abort)(unisono_stream stream);
  /* 0 if the stream is recording no graph now. Else a number, since 1.5 of the recording: the same for
   * streams that record into one graph, as one has joined the other's recording by an event, and another
   * for another recording. Such a stream also records RECORD and WAIT_EVENT. 1, which is no recording's
   * number: it records, and nobody can tell which. */
  uint32_t (*capturing)(unisono_stream stream);
} unisono_stream_table;

/* ---------------------------------------------------------------- events --------------------- */

/* An event that a command names stays alive until that command is complete. */
typedef struct unisono_event_table { /* [any] */
  uint32_t struct_size;
  uint32_t reserved;
  unisono_status (*create)(unisono_device device, unisono_event *out, unisono_error *error);
  unisono_status (*wrap)(unisono_device device, uint64_t native, unisono_event *out,
                         unisono_error *error);
  void (*destroy)(unisono_event event);
  uint64_t (*native)(unisono_event event);
  /* Complete it from the host: any thread, never blocks. */
  unisono_status (*host_signal)(unisono_event event, unisono_error *error);
  /* OK if complete, AGAIN if not. A new event, or one recorded again, is not complete. */
  unisono_status (*host_query)(unisono_event event, unisono_error *error);
} unisono_event_table;

/* ---------------------------------------------------------------- links ---------------------- */

enum { UNISONO_LINK_MAPPED = 1, /* memory of one end is imported by the other: stream commands */
       UNISONO_LINK_POSTED = 2  /* the link moves the bytes: PUT */ };
enum { UNISONO_SCOPE_NODE = 1,   /* between processes of this node */
       UNISONO_SCOPE_NETWORK = 2,/* between nodes */
       UNISONO_SCOPE_PAIR = 3    /* between the two devices named */ };

typedef struct unisono_link_info { /* one entry of the plugin's report */
  uint32_t struct_size;
  uint32_t link_type; /* UNISONO_LINK_* */
  uint32_t scope;     /* UNISONO_SCOPE_* */
  uint32_t shared;    /* links with the same number, not 0, share one capacity */
  uint8_t from[16];   /* device id; for NODE and NETWORK: any device of this plugin if all zero */
  uint8_t to[16];
  char kind[16];      /* "shm", "tcp", as in the cluster file */
  uint64_t bytes_per_second; /* from -> to; of a mapped link: as `from` writes it */
  uint64_t latency_ns;
  uint32_t rail;      /* since 1.1: 0 if there are no rails */
  uint32_t reserved;
  uint64_t read_bytes_per_second; /* since 1.6, of a mapped link: the same bytes as `to` reads them,
                                   * where that is faster; else 0 */
} unisono_link_info;

typedef struct unisono_link_request {
  uint32_t struct_size;
  uint32_t peer;             /* rank in the channel */
  uint8_t device[16];        /* id of the local device that the link serves, of any plugin */
  const unisono_channel *channel;
  const void *peer_address;  /* what the peer's `address` gave */
  uint64_t peer_address_len;
} unisono_link_request;

typedef struct unisono_link_statistics { /* since 1.1 */
  uint32_t struct_size;
  uint32_t connections;
  uint64_t bytes_sent, bytes_received, puts_sent, puts_received;
  uint64_t refused; /* strangers dropped by this instance */
  uint64_t recovered; /* since 1.3: connections that were lost and made anew, by any path */
} unisono_link_statistics;

typedef struct unisono_link_table { /* [handle], but report, address, query, abort are [any] */
  uint32_t struct_size;
  uint32_t reserved;
  unisono_status (*report)(unisono_instance instance, unisono_link_info *out, uint32_t cap,
                           uint32_t *count, unisono_error *error);
  /* Where peers of posted links reach this instance; *len <= UNISONO_EXPORT_MAX. */
  unisono_status (*address)(unisono_instance instance, void *out, uint64_t cap, uint64_t *len,
                            unisono_error *error);
  /* Both ends call it; it returns at once, poll connects. The lower rank dials. */
  unisono_status (*create)(unisono_instance instance, const unisono_link_request *request,
                           unisono_link *out, unisono_error *error);
  /* An end that is destroyed while its queue is idle leaves in order: at the other end all that it
   * put lands, and nothing fails until more is submitted, which fails with ERR_PEER. Any other end
   * of a peer fails the queue by itself: with ERR_PEER, ERR_LINK or ERR_ABORTED. */
  void (*destroy)(unisono_link link);
  /* Let the peer write [ptr, ptr+bytes) as window `id`; the token goes to the peer's
   * import_window by the control channel. Memory stays the caller's, and alive. */
  unisono_status (*export_window)(unisono_link link, uint32_t id, uint64_t ptr, uint64_t bytes,
                                  void *token, uint64_t cap, uint64_t *len, unisono_error *error);
  unisono_status (*import_window)(unisono_link link, uint32_t id, const void *token, uint64_t len,
                                  unisono_error *error);
  unisono_status (*close_window)(unisono_link link, uint32_t id, unisono_error *error);
  /* As for streams. poll also receives: the peer's puts land in the windows. */
  unisono_status (*submit)(unisono_link link, const void *commands, uint64_t bytes, uint32_t count,
                           uint32_t *accepted, unisono_error *error);
  unisono_status (*poll)(unisono_link link, uint64_t budget, unisono_queue_state *state,
                         unisono_error *error);
  /* The peer ends the sleep: by puts, by making room, by its end. Not the flag of a WAIT, which
   * streams of this process raise, or other links: the host arms those too. But a WAIT that is
   * satisfied when arm looks is READY. */
  unisono_status (*arm)(unisono_link link, uint32_t allowed, const unisono_waker *waker,
                        unisono_sleep *sleep, unisono_error *error);
  void (*disarm)(unisono_link link);
  unisono_status (*query)(unisono_link link, unisono_queue_state *state);
  void (*abort)(unisono_link link);
  unisono_status (*statistics)(unisono_link link, unisono_link_statistics *out); /* since 1.1 */
  /* Since 1.8, optional. What the peer puts next to the `bytes` bytes at `offset` of an exported window
   * lies at `to` instead, in memory of this process. Next: once the flag line at `after_flag` has reached
   * `after_value` (0: at once), and until that at `flag`, which the peer raises behind the put, has reached
   * `value`; the peer does not put there before the former, nor again before it is told so after the latter.
   * Answers AGAIN, and does nothing, if some of it may have come already, or it does not take so many: then
   * all of it lies in the window. An error does nothing either. After `abort` and `destroy` nothing is written to `to` any more. */
  unisono_status (*land)(unisono_link link, uint32_t window, uint64_t offset, uint64_t bytes,
                         uint64_t to, uint64_t flag, uint64_t value, uint64_t after_flag,
                         uint64_t after_value, unisono_error *error);
} unisono_link_table;

/* ---------------------------------------------------------------- CPU devices --------------- */

/* An optional table, by get_interface(UNISONO_CPU_INTERFACE), of a plugin whose devices are of kind
 * CPU and have reach HOST: their memory and flags are plain memory of this process. There the host
 * may run a short program by itself, on the thread that calls, while the stream is idle: it copies,
 * raises flags as SIGNAL does (words, then the counter with release order), looks at flags as WAIT
 * does, and calls what is here. [any]; no function blocks. */
#define UNISONO_CPU_INTERFACE "unisono.cpu"
typedef struct unisono_cpu_table { /* since 1.2 */
  uint32_t struct_size;
  uint32_t reserved;
  /* After flags were raised: wakes whom SIGNALs with these bells would wake. */
  void (*ring)(unisono_instance instance, const uint64_t *bells, uint32_t count);
  /* What a REDUCE does, with the same bits. Anything but OK: nothing was done. */
  unisono_status (*reduce)(unisono_instance instance, const unisono_command_reduce *command);
  /* Since 1.9, optional. What a REDUCE of this type and reduction does with one run of elements, however many, undivided
   * and with the same bits: a function, and the context that it is called with, so that no command is made for each. It
   * may call what the plugin likes of its own, and be called [any], by several threads at a time, until the instance is
   * destroyed, also when that is poisoned. Anything but OK: there is none, and nothing was written. */
  unisono_status (*combiner)(unisono_instance instance, uint16_t dtype, uint16_t reduction,
                             unisono_combine *function, void **context);
} unisono_cpu_table;

/* ---------------------------------------------------------------- device memory for links ---- */

/* An optional table, by get_interface(UNISONO_DMABUF_INTERFACE), of a plugin whose posted links read
 * and write the memory of devices by themselves, other plugins' too. The host makes such memory known
 * by the dma-buf that its device exports; from then on it may export windows in it, and puts may read
 * it, by the addresses that it has in commands of its device. Flags and counters stay in memory of the
 * host. A window in it that was closed may still be written by the peer, until the memory is removed.
 * [any]; both functions may block. */
#define UNISONO_DMABUF_INTERFACE "unisono.dmabuf"
typedef struct unisono_dmabuf { /* since 1.4 */
  uint32_t struct_size;
  int32_t fd;       /* the caller's, which may close it once it is added */
  uint64_t offset;  /* of the memory in the dma-buf */
  uint64_t bytes;
  uint64_t address; /* of its first byte */
  /* Called when writes of the peer's into this memory are complete, before a flag is raised that came
   * with them: from poll, on the thread that called that. Must not call the plugin. A negative status
   * is the link's failure. NULL if the device needs no such call. */
  unisono_status (*flush)(void *context);
  void *context;
} unisono_dmabuf;
typedef struct unisono_dmabuf_table { /* since 1.4 */
  uint32_t struct_size;
  uint32_t reserved;
  /* ERR_UNSUPPORTED where a card or its driver cannot. */
  unisono_status (*add)(unisono_instance instance, const unisono_dmabuf *memory,
                        unisono_error *error);
  /* Forgets what was added at an address. Links that have windows in it or puts that read it are gone:
   * flush is not called any more. */
  unisono_status (*remove)(unisono_instance instance, uint64_t address, unisono_error *error);
} unisono_dmabuf_table;

/* ---------------------------------------------------------------- the plugin ----------------- */

typedef struct unisono_layout_entry {
  const char *struct_name; /* NUL-terminated */
  const char *field;
  uint32_t offset, size;
} unisono_layout_entry;

enum { UNISONO_SANITIZER_NONE = 0, UNISONO_SANITIZER_ADDRESS = 1, UNISONO_SANITIZER_THREAD = 2,
       UNISONO_SANITIZER_MEMORY = 3 };

typedef struct unisono_plugin {
  uint64_t magic;
  uint16_t abi_major, abi_minor;
  uint32_t struct_size;
  unisono_str name;     /* "host", "tcp"; [a-z0-9_-]{1,32} */
  unisono_str version;  /* of the plugin */
  unisono_str vendor;
  unisono_str build_id; /* of the binary, for reports; may be empty */
  uint64_t features;    /* reserved for required behaviour: a bit the host does not know is refused */
  uint32_t sanitizer;   /* UNISONO_SANITIZER_* */
  uint32_t param_count;
  const unisono_param *params;
  const unisono_layout_entry *layout; /* include/unisono_plugin_layout.h makes it */
  uint32_t layout_count;
  uint32_t reserved0;
  const unisono_instance_table *instance; /* mandatory: create, destroy, devices */
  const unisono_device_table *device;     /* mandatory for plugins with devices: open, close */
  const unisono_memory_table *memory;
  const unisono_stream_table *stream;
  const unisono_event_table *event;
  const unisono_link_table *link;
  uint64_t reserved[8];
} unisono_plugin;

/* The one exported symbol: a pure query. May be called many times and from any thread; starts
 * nothing, touches no device. `host_major` and `host_minor` are the host's; a plugin may answer
 * NULL if it cannot serve such a host, else the same static data each time. */
#define UNISONO_PLUGIN_QUERY_SYMBOL "unisono_plugin_query"
typedef const unisono_plugin *(*unisono_plugin_query_fn)(uint32_t host_major, uint32_t host_minor);
#if defined(_WIN32)
#define UNISONO_PLUGIN_EXPORT __declspec(dllexport)
#else
#define UNISONO_PLUGIN_EXPORT __attribute__((visibility("default")))
#endif
UNISONO_PLUGIN_EXPORT const unisono_plugin *unisono_plugin_query(uint32_t host_major,
                                                                 uint32_t host_minor);

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif /* UNISONO_PLUGIN_H */
