/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The smallest plugin that has every table, for the tests of the safe handles: it logs what is
 * destroyed, and its streams and links can be told to misbehave.
 */
#include "unisono_plugin_layout.h"

#include <stdlib.h>
#include <string.h>

#define STR(s) {(s), sizeof(s) - 1}

struct unisono_instance_s {
  const unisono_host *host;
  int64_t mode; /* the parameter of that name */
};
struct unisono_device_s {
  unisono_instance instance;
};
struct unisono_memory_s {
  unisono_instance instance;
  void *block;
  uint64_t bytes;
};
struct unisono_event_s {
  unisono_instance instance;
  int complete;
};
/* A queue takes at most two commands a call and runs them at once. */
typedef struct queue {
  unisono_instance instance;
  unisono_queue_state state;
  const unisono_waker *waker;
} queue;
struct unisono_stream_s {
  queue q;
  uint32_t recording;
};
struct unisono_link_s {
  queue q;
  const unisono_channel *channel;
  uint32_t peer;
};

enum { SOUND, TOO_MANY, BAD_STATE, BAD_SLEEP, FAIL, SMALL_MEMORY, NO_HANDLE, ODD_STATUS, MANY };

static void say(unisono_instance i, const char *text) {
  unisono_log_record r = {.struct_size = sizeof r, .level = UNISONO_LOG_INFO};
  r.message.ptr = text;
  r.message.len = strlen(text);
  i->host->log(i->host->context, &r);
}

static unisono_status fail(unisono_error *error, unisono_status status, const char *text) {
  if (error != NULL) {
    error->status = status;
    error->vendor_code = 42;
    error->words[1] = 7;
    strncpy(error->message, text, sizeof error->message - 1);
  }
  return status;
}

static unisono_status create(const unisono_instance_info *info, unisono_instance *out,
                             unisono_error *error) {
  if (info->param_count != 2 || info->params[0].value_type != UNISONO_PARAM_INT ||
      info->params[1].text.len != 2)
    return fail(error, UNISONO_ERR_INVALID, "not the parameters of the table");
  if (info->params[0].number == 99) return fail(error, UNISONO_ERR_NO_DRIVER, "no driver");
  *out = calloc(1, sizeof **out);
  (*out)->host = info->host;
  (*out)->mode = info->params[0].number;
  return UNISONO_OK;
}

static void destroy(unisono_instance i) {
  say(i, "instance");
  free(i);
}

static unisono_status devices(unisono_instance i, unisono_device_info *out, uint32_t cap,
                              uint32_t *count, unisono_error *error) {
  (void)error;
  *count = i->mode == MANY ? 100 : 1;
  for (uint32_t n = 0; n < *count && n < cap; n++) {
    unisono_device_info d = {.struct_size = sizeof d, .kind = UNISONO_DEVICE_OTHER, .numa = -1};
    d.id[0] = (uint8_t)(n + 1);
    strcpy(d.name, "small");
    d.event_sides = UNISONO_SIDE_EMULATED << UNISONO_EVENT_HOST_SIGNAL_SHIFT |
                    UNISONO_SIDE_NATIVE << UNISONO_EVENT_HOST_QUERY_SHIFT;
    d.streams = UNISONO_STREAM_POLLED;
    out[n] = d;
  }
  return UNISONO_OK;
}

static const int table_of_its_own = 5;
static const void *get_interface(unisono_instance i, unisono_str id) {
  (void)i;
  return id.len == 3 && memcmp(id.ptr, "own", 3) == 0 ? &table_of_its_own : NULL;
}

static unisono_status open_device(unisono_instance i, uint32_t index, unisono_device *out,
                                  unisono_error *error) {
  (void)index;
  (void)error;
  *out = calloc(1, sizeof **out);
  (*out)->instance = i;
  return UNISONO_OK;
}

static void close_device(unisono_device d) {
  say(d->instance, "device");
  free(d);
}

static unisono_status supports(unisono_device d, const unisono_support_query *q) {
  (void)d;
  return q->command == UNISONO_CMD_COPY ? UNISONO_OK : UNISONO_ERR_UNSUPPORTED;
}

static unisono_status memory(unisono_device d, uint64_t bytes, void *block, unisono_memory *out,
                             unisono_memory_view *view) {
  view->place = UNISONO_PLACE_HOST;
  view->base = view->host = (uint64_t)(uintptr_t)block;
  view->bytes = d->instance->mode == SMALL_MEMORY ? bytes / 2 : bytes;
  view->generation = 3;
  *out = NULL;
  if (d->instance->mode == NO_HANDLE) return UNISONO_OK;
  *out = calloc(1, sizeof **out);
  (*out)->instance = d->instance;
  (*out)->bytes = bytes;
  (*out)->block = block;
  return UNISONO_OK;
}

static unisono_status alloc(unisono_device d, const unisono_memory_request *request,
                            unisono_memory *out, unisono_memory_view *view, unisono_error *error) {
  static _Alignas(64) unsigned char pool[4096];
  if (request->bytes > sizeof pool) return fail(error, UNISONO_ERR_OUT_OF_MEMORY, "pool is full");
  memset(pool, 0, sizeof pool);
  return memory(d, request->bytes, pool, out, view);
}

static void free_memory(unisono_memory m) {
  say(m->instance, "memory");
  free(m);
}

static unisono_status query_memory(unisono_device d, uint64_t address, unisono_memory_view *view,
                                   unisono_error *error) {
  (void)d;
  (void)error;
  if (address != 4096) return UNISONO_AGAIN;
  view->place = UNISONO_PLACE_DEVICE;
  view->base = 4096;
  view->bytes = 10;
  return UNISONO_OK;
}

static unisono_status export_memory(unisono_memory m, uint32_t how, void *out, uint64_t cap,
                                    uint64_t *len, unisono_error *error) {
  if (how != UNISONO_EXPORT_PROCESS || cap < 16) return fail(error, UNISONO_ERR_UNSUPPORTED, "");
  uint64_t text[2] = {(uint64_t)(uintptr_t)m->block, m->bytes};
  memcpy(out, text, 16);
  *len = 16;
  return UNISONO_OK;
}

static unisono_status import_memory(unisono_device d, const void *text, uint64_t len,
                                    unisono_memory *out, unisono_memory_view *view,
                                    unisono_error *error) {
  uint64_t words[2];
  if (len != 16) return fail(error, UNISONO_ERR_INVALID, "not a description");
  memcpy(words, text, 16);
  return memory(d, words[1], (void *)(uintptr_t)words[0], out, view);
}

static unisono_status q_submit(queue *q, const void *commands, uint64_t bytes, uint32_t count,
                               uint32_t *accepted, unisono_error *error) {
  const unsigned char *at = commands, *end = at + bytes;
  if (q->instance->mode == FAIL) return fail(error, UNISONO_ERR_DEVICE, "the device is gone");
  for (*accepted = 0; *accepted < count && *accepted < 2; ++*accepted) {
    const unisono_command *head = (const void *)at;
    if (at + head->size > end) return fail(error, UNISONO_ERR_INVALID, "past the end");
    if (head->kind == UNISONO_CMD_COPY) {
      const unisono_command_copy *c = (const void *)at;
      memcpy((void *)(uintptr_t)c->dst, (const void *)(uintptr_t)c->src, c->bytes);
    } else if (head->kind == UNISONO_CMD_RECORD) {
      ((const unisono_command_event *)(const void *)at)->event->complete = 1;
    } else {
      return fail(error, UNISONO_ERR_UNSUPPORTED, "only copies and records");
    }
    at += head->size;
  }
  q->state.accepted += *accepted;
  q->state.completed = q->state.accepted;
  if (q->instance->mode == TOO_MANY) *accepted = count + 1;
  return UNISONO_OK;
}

static unisono_status q_poll(queue *q, unisono_queue_state *state, unisono_error *error) {
  if (q->instance->mode == FAIL) return fail(error, UNISONO_ERR_MISMATCH, "other words");
  if (q->instance->mode == ODD_STATUS) return 17;
  q->state.state = q->instance->mode == BAD_STATE ? 77 : UNISONO_QUEUE_IDLE;
  *state = q->state;
  return UNISONO_OK;
}

static unisono_status q_arm(queue *q, uint32_t allowed, const unisono_waker *waker,
                            unisono_sleep *sleep) {
  if (q->instance->mode == BAD_SLEEP) allowed = UNISONO_SLEEP_FD;
  if (allowed & UNISONO_SLEEP_FD) {
    sleep->how = UNISONO_SLEEP_FD;
    sleep->fd = 0;
    sleep->fd_events = 1;
  } else if (allowed & UNISONO_SLEEP_WAKER) {
    sleep->how = UNISONO_SLEEP_WAKER;
    q->waker = waker;
    waker->wake(waker->context);
  } else if (allowed & UNISONO_SLEEP_FUTEX) {
    sleep->how = UNISONO_SLEEP_FUTEX;
    sleep->futex = 4096;
    sleep->futex_value = 9;
  } else {
    sleep->how = UNISONO_SLEEP_READY;
  }
  return UNISONO_OK;
}

static unisono_status q_query(queue *q, unisono_queue_state *state) {
  *state = q->state;
  return UNISONO_OK;
}

static void q_abort(queue *q, const char *text) {
  say(q->instance, text);
  q->state.state = UNISONO_QUEUE_FAILED;
}

static unisono_status create_stream(unisono_device d, const unisono_stream_request *request,
                                    unisono_stream *out, unisono_error *error) {
  (void)error;
  *out = calloc(1, sizeof **out);
  (*out)->q.instance = d->instance;
  (*out)->q.state.struct_size = sizeof(unisono_queue_state);
  /* A high priority makes it look busy. */
  (*out)->q.state.state = request->priority > 0 ? UNISONO_QUEUE_WAITING : UNISONO_QUEUE_IDLE;
  /* A low one lets it record into the graph of that number. */
  (*out)->recording = request->priority < 0 ? (uint32_t)-request->priority : 0;
  return UNISONO_OK;
}
static uint32_t s_capturing(unisono_stream s) { return s->recording; }
static void destroy_stream(unisono_stream s) {
  say(s->q.instance, "stream");
  free(s);
}
static unisono_status s_submit(unisono_stream s, const void *commands, uint64_t bytes,
                               uint32_t count, uint32_t *accepted, unisono_error *error) {
  return q_submit(&s->q, commands, bytes, count, accepted, error);
}
static unisono_status s_poll(unisono_stream s, uint64_t budget, unisono_queue_state *state,
                             unisono_error *error) {
  (void)budget;
  return q_poll(&s->q, state, error);
}
static unisono_status s_arm(unisono_stream s, uint32_t allowed, const unisono_waker *waker,
                            unisono_sleep *sleep, unisono_error *error) {
  (void)error;
  return q_arm(&s->q, allowed, waker, sleep);
}
static void s_disarm(unisono_stream s) { say(s->q.instance, "disarm"); }
static unisono_status s_query(unisono_stream s, unisono_queue_state *state) {
  return q_query(&s->q, state);
}
static void s_abort(unisono_stream s) { q_abort(&s->q, "abort stream"); }

static unisono_status create_event(unisono_device d, unisono_event *out, unisono_error *error) {
  (void)error;
  *out = calloc(1, sizeof **out);
  (*out)->instance = d->instance;
  return UNISONO_OK;
}
static void destroy_event(unisono_event e) {
  say(e->instance, "event");
  free(e);
}
static unisono_status host_signal(unisono_event e, unisono_error *error) {
  (void)error;
  e->complete = 1;
  return UNISONO_OK;
}
static unisono_status host_query(unisono_event e, unisono_error *error) {
  (void)error;
  return e->complete ? UNISONO_OK : UNISONO_AGAIN;
}

static unisono_status report(unisono_instance i, unisono_link_info *out, uint32_t cap,
                             uint32_t *count, unisono_error *error) {
  (void)error;
  *count = 1;
  if (cap > 0) {
    unisono_link_info l = {.struct_size = sizeof l,
                           .link_type = UNISONO_LINK_POSTED,
                           .scope = i->mode == BAD_STATE ? 55 : UNISONO_SCOPE_NETWORK,
                           .kind = "small",
                           .bytes_per_second = 1000,
                           .latency_ns = 10,
                           .rail = 2};
    out[0] = l;
  }
  return UNISONO_OK;
}
static unisono_status address(unisono_instance i, void *out, uint64_t cap, uint64_t *len,
                              unisono_error *error) {
  (void)cap;
  (void)error;
  memcpy(out, "here", 4);
  *len = i->mode == TOO_MANY ? 1 << 20 : 4;
  return UNISONO_OK;
}
static unisono_status create_link(unisono_instance i, const unisono_link_request *request,
                                  unisono_link *out, unisono_error *error) {
  uint8_t signature[64];
  const unisono_channel *c = request->channel;
  if (request->peer_address_len != 4 ||
      c->prove(c->context, request->peer_address, 4, signature) != UNISONO_OK)
    return fail(error, UNISONO_ERR_AUTH, "no proof");
  *out = calloc(1, sizeof **out);
  (*out)->q.instance = i;
  (*out)->q.state.struct_size = sizeof(unisono_queue_state);
  (*out)->channel = c;
  (*out)->peer = request->peer;
  return UNISONO_OK;
}
static void destroy_link(unisono_link l) {
  /* The channel is still there. */
  l->channel->send(l->channel->context, l->peer, 1, "bye", 3);
  say(l->q.instance, "link");
  free(l);
}
static unisono_status export_window(unisono_link l, uint32_t id, uint64_t ptr, uint64_t bytes,
                                    void *token, uint64_t cap, uint64_t *len,
                                    unisono_error *error) {
  (void)l;
  (void)ptr;
  (void)bytes;
  (void)cap;
  (void)error;
  memcpy(token, &id, 4);
  *len = 4;
  return UNISONO_OK;
}
static unisono_status import_window(unisono_link l, uint32_t id, const void *token, uint64_t len,
                                    unisono_error *error) {
  (void)l;
  if (len != 4 || memcmp(token, &id, 4) != 0) return fail(error, UNISONO_ERR_LINK, "not a token");
  return UNISONO_OK;
}
static unisono_status l_submit(unisono_link l, const void *commands, uint64_t bytes,
                               uint32_t count, uint32_t *accepted, unisono_error *error) {
  return q_submit(&l->q, commands, bytes, count, accepted, error);
}
static unisono_status l_poll(unisono_link l, uint64_t budget, unisono_queue_state *state,
                             unisono_error *error) {
  (void)budget;
  return q_poll(&l->q, state, error);
}
static unisono_status l_query(unisono_link l, unisono_queue_state *state) {
  return q_query(&l->q, state);
}
static void l_abort(unisono_link l) { q_abort(&l->q, "abort link"); }
static unisono_status statistics(unisono_link l, unisono_link_statistics *out) {
  (void)l;
  out->bytes_sent = 12;
#ifdef GROWN_STATISTICS
  memset((char *)out + sizeof *out, 0xff, GROWN_STATISTICS);
#endif
  return UNISONO_OK;
}

static const unisono_param params[] = {
    {STR("mode"), STR("How to misbehave."), STR("0"), UNISONO_PARAM_INT, 0, 0, 99},
    {STR("text"), STR("Two letters."), STR("ab"), UNISONO_PARAM_STRING, 0, 0, 0}};
static const unisono_instance_table instances = {sizeof instances, 0,       create,
                                                 destroy,          devices, get_interface};
static const unisono_device_table device_functions = {sizeof device_functions, 0, open_device,
                                                      close_device, supports};
static const unisono_memory_table memories = {.struct_size = sizeof memories,
                                              .alloc = alloc,
                                              .free = free_memory,
                                              .query = query_memory,
                                              .export_memory = export_memory,
                                              .import_memory = import_memory};
static const unisono_stream_table streams = {.struct_size = sizeof streams,
                                             .create = create_stream,
                                             .destroy = destroy_stream,
                                             .submit = s_submit,
                                             .poll = s_poll,
                                             .arm = s_arm,
                                             .disarm = s_disarm,
                                             .query = s_query,
                                             .abort = s_abort,
                                             .capturing = s_capturing};
static const unisono_event_table events = {.struct_size = sizeof events,
                                           .create = create_event,
                                           .destroy = destroy_event,
                                           .host_signal = host_signal,
                                           .host_query = host_query};
static const unisono_link_table links = {.struct_size = sizeof links,
                                         .report = report,
                                         .address = address,
                                         .create = create_link,
                                         .destroy = destroy_link,
                                         .export_window = export_window,
                                         .import_window = import_window,
                                         .submit = l_submit,
                                         .poll = l_poll,
                                         .query = l_query,
                                         .abort = l_abort,
                                         .statistics = statistics};
static const unisono_layout_entry layout[] = {
    UNISONO_LAYOUT_TABLE
#ifdef GROWN_STATISTICS /* by so many bytes, as a later minor might */
    {"unisono_link_statistics", "later", sizeof(unisono_link_statistics), GROWN_STATISTICS},
#endif
};
static const unisono_plugin plugin = {.magic = UNISONO_PLUGIN_MAGIC,
                                      .abi_major = UNISONO_PLUGIN_ABI_MAJOR,
                                      .abi_minor = UNISONO_PLUGIN_ABI_MINOR,
                                      .struct_size = sizeof plugin,
                                      .name = STR(PLUGIN_NAME),
                                      .version = STR("1"),
                                      .vendor = STR("tests"),
                                      .params = params,
                                      .param_count = 2,
                                      .layout = layout,
                                      .layout_count = sizeof layout / sizeof layout[0],
                                      .instance = &instances,
                                      .device = &device_functions,
                                      .memory = &memories,
                                      .stream = &streams,
                                      .event = &events,
                                      .link = &links};

UNISONO_PLUGIN_EXPORT const unisono_plugin *unisono_plugin_query(uint32_t host_major,
                                                                 uint32_t host_minor) {
  (void)host_minor;
  return host_major == 1 ? &plugin : NULL;
}
