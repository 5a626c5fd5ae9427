/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * What the bad plugins share: a plugin that is sound until a file changes one thing of it.
 *
 *   PLUGIN_NAME      its name; the test gives that of the file
 *   RECORD_CHANGES   initialisers that replace those of the record
 *   INSTANCE_CHANGES initialisers that replace those of the instance table
 *   BEFORE_ANSWER    what the query does before it answers
 *   ANSWER           what the query answers
 */
#include "unisono_plugin_layout.h"

#ifndef PLUGIN_NAME
#define PLUGIN_NAME "bad"
#endif
#ifndef RECORD_CHANGES
#define RECORD_CHANGES
#endif
#ifndef INSTANCE_CHANGES
#define INSTANCE_CHANGES
#endif
#ifndef BEFORE_ANSWER
#define BEFORE_ANSWER
#endif
#ifndef ANSWER
#define ANSWER &plugin
#endif
#ifndef BEFORE_CREATE
#define BEFORE_CREATE
#endif
#define STR(s) {(s), sizeof(s) - 1}

struct unisono_instance_s {
  int unused;
};
static struct unisono_instance_s the_instance;

static unisono_status create(const unisono_instance_info *info, unisono_instance *out,
                             unisono_error *error) {
  (void)info;
  (void)error;
  BEFORE_CREATE;
  *out = &the_instance;
  return UNISONO_OK;
}

static void destroy(unisono_instance instance) { (void)instance; }

static unisono_status devices(unisono_instance instance, unisono_device_info *out, uint32_t cap,
                              uint32_t *count, unisono_error *error) {
  (void)instance;
  (void)out;
  (void)cap;
  (void)error;
  *count = 0;
  return UNISONO_OK;
}

static const unisono_instance_table instances = {.struct_size = sizeof instances,
                                                 .create = create,
                                                 .destroy = destroy,
                                                 .devices = devices,
                                                 INSTANCE_CHANGES};
static const unisono_layout_entry layout[] = {UNISONO_LAYOUT_TABLE};

static const unisono_plugin plugin = {.magic = UNISONO_PLUGIN_MAGIC,
                                      .abi_major = UNISONO_PLUGIN_ABI_MAJOR,
                                      .abi_minor = UNISONO_PLUGIN_ABI_MINOR,
                                      .struct_size = sizeof plugin,
                                      .name = STR(PLUGIN_NAME),
                                      .version = STR("1"),
                                      .vendor = STR("tests"),
                                      .layout = layout,
                                      .layout_count = sizeof layout / sizeof layout[0],
                                      .instance = &instances,
                                      RECORD_CHANGES};

#ifndef NO_QUERY
UNISONO_PLUGIN_EXPORT const unisono_plugin *unisono_plugin_query(uint32_t host_major,
                                                                 uint32_t host_minor) {
  (void)host_major;
  (void)host_minor;
  BEFORE_ANSWER;
  return ANSWER;
}
#else
UNISONO_PLUGIN_EXPORT const unisono_plugin *another_symbol(void) { return &plugin; }
#endif
