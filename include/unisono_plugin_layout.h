/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * unisono_plugin_layout.h - the layout table of a plugin in C or C++, by its own compiler.
 *
 *   static const unisono_layout_entry layout[] = {UNISONO_LAYOUT_TABLE};
 *   ... .layout = layout, .layout_count = sizeof(layout) / sizeof(layout[0]) ...
 *
 * The host compares it with its own at load and names the first field that differs. A field that a
 * later minor adds is compared only where both sides know it.
 *
 * Made by `cargo xtask abi`; a test compares. Do not edit.
 */
#ifndef UNISONO_PLUGIN_LAYOUT_H
#define UNISONO_PLUGIN_LAYOUT_H

#include "unisono_plugin.h"

#define UNISONO_LAYOUT_FIELD(type, field) \
  {#type, #field, (uint32_t)offsetof(type, field), (uint32_t)sizeof(((type *)0)->field)},

#define UNISONO_LAYOUT_unisono_error \
  UNISONO_LAYOUT_FIELD(unisono_error, struct_size) \
  UNISONO_LAYOUT_FIELD(unisono_error, status) \
  UNISONO_LAYOUT_FIELD(unisono_error, vendor_code) \
  UNISONO_LAYOUT_FIELD(unisono_error, words) \
  UNISONO_LAYOUT_FIELD(unisono_error, message)

#define UNISONO_LAYOUT_unisono_str \
  UNISONO_LAYOUT_FIELD(unisono_str, ptr) \
  UNISONO_LAYOUT_FIELD(unisono_str, len)

#define UNISONO_LAYOUT_unisono_log_record \
  UNISONO_LAYOUT_FIELD(unisono_log_record, struct_size) \
  UNISONO_LAYOUT_FIELD(unisono_log_record, level) \
  UNISONO_LAYOUT_FIELD(unisono_log_record, target) \
  UNISONO_LAYOUT_FIELD(unisono_log_record, file) \
  UNISONO_LAYOUT_FIELD(unisono_log_record, line) \
  UNISONO_LAYOUT_FIELD(unisono_log_record, reserved) \
  UNISONO_LAYOUT_FIELD(unisono_log_record, message)

#define UNISONO_LAYOUT_unisono_host \
  UNISONO_LAYOUT_FIELD(unisono_host, struct_size) \
  UNISONO_LAYOUT_FIELD(unisono_host, reserved) \
  UNISONO_LAYOUT_FIELD(unisono_host, context) \
  UNISONO_LAYOUT_FIELD(unisono_host, log_level) \
  UNISONO_LAYOUT_FIELD(unisono_host, log)

#define UNISONO_LAYOUT_unisono_waker \
  UNISONO_LAYOUT_FIELD(unisono_waker, wake) \
  UNISONO_LAYOUT_FIELD(unisono_waker, context)

#define UNISONO_LAYOUT_unisono_channel \
  UNISONO_LAYOUT_FIELD(unisono_channel, struct_size) \
  UNISONO_LAYOUT_FIELD(unisono_channel, rank) \
  UNISONO_LAYOUT_FIELD(unisono_channel, size) \
  UNISONO_LAYOUT_FIELD(unisono_channel, reserved) \
  UNISONO_LAYOUT_FIELD(unisono_channel, id) \
  UNISONO_LAYOUT_FIELD(unisono_channel, context) \
  UNISONO_LAYOUT_FIELD(unisono_channel, prove) \
  UNISONO_LAYOUT_FIELD(unisono_channel, verify) \
  UNISONO_LAYOUT_FIELD(unisono_channel, send) \
  UNISONO_LAYOUT_FIELD(unisono_channel, recv)

#define UNISONO_LAYOUT_unisono_param \
  UNISONO_LAYOUT_FIELD(unisono_param, name) \
  UNISONO_LAYOUT_FIELD(unisono_param, help) \
  UNISONO_LAYOUT_FIELD(unisono_param, default_text) \
  UNISONO_LAYOUT_FIELD(unisono_param, value_type) \
  UNISONO_LAYOUT_FIELD(unisono_param, reserved) \
  UNISONO_LAYOUT_FIELD(unisono_param, min) \
  UNISONO_LAYOUT_FIELD(unisono_param, max)

#define UNISONO_LAYOUT_unisono_param_value \
  UNISONO_LAYOUT_FIELD(unisono_param_value, name) \
  UNISONO_LAYOUT_FIELD(unisono_param_value, text) \
  UNISONO_LAYOUT_FIELD(unisono_param_value, number) \
  UNISONO_LAYOUT_FIELD(unisono_param_value, value_type) \
  UNISONO_LAYOUT_FIELD(unisono_param_value, reserved)

#define UNISONO_LAYOUT_unisono_instance_info \
  UNISONO_LAYOUT_FIELD(unisono_instance_info, struct_size) \
  UNISONO_LAYOUT_FIELD(unisono_instance_info, param_count) \
  UNISONO_LAYOUT_FIELD(unisono_instance_info, params) \
  UNISONO_LAYOUT_FIELD(unisono_instance_info, host)

#define UNISONO_LAYOUT_unisono_device_info \
  UNISONO_LAYOUT_FIELD(unisono_device_info, struct_size) \
  UNISONO_LAYOUT_FIELD(unisono_device_info, kind) \
  UNISONO_LAYOUT_FIELD(unisono_device_info, id) \
  UNISONO_LAYOUT_FIELD(unisono_device_info, name) \
  UNISONO_LAYOUT_FIELD(unisono_device_info, pci) \
  UNISONO_LAYOUT_FIELD(unisono_device_info, numa) \
  UNISONO_LAYOUT_FIELD(unisono_device_info, queues) \
  UNISONO_LAYOUT_FIELD(unisono_device_info, memory_bytes) \
  UNISONO_LAYOUT_FIELD(unisono_device_info, reach) \
  UNISONO_LAYOUT_FIELD(unisono_device_info, streams) \
  UNISONO_LAYOUT_FIELD(unisono_device_info, reduce_bytes_per_second) \
  UNISONO_LAYOUT_FIELD(unisono_device_info, event_sides) \
  UNISONO_LAYOUT_FIELD(unisono_device_info, event_reach)

#define UNISONO_LAYOUT_unisono_support_query \
  UNISONO_LAYOUT_FIELD(unisono_support_query, struct_size) \
  UNISONO_LAYOUT_FIELD(unisono_support_query, command) \
  UNISONO_LAYOUT_FIELD(unisono_support_query, dtype) \
  UNISONO_LAYOUT_FIELD(unisono_support_query, reduction) \
  UNISONO_LAYOUT_FIELD(unisono_support_query, source) \
  UNISONO_LAYOUT_FIELD(unisono_support_query, destination)

#define UNISONO_LAYOUT_unisono_instance_table \
  UNISONO_LAYOUT_FIELD(unisono_instance_table, struct_size) \
  UNISONO_LAYOUT_FIELD(unisono_instance_table, reserved) \
  UNISONO_LAYOUT_FIELD(unisono_instance_table, create) \
  UNISONO_LAYOUT_FIELD(unisono_instance_table, destroy) \
  UNISONO_LAYOUT_FIELD(unisono_instance_table, devices) \
  UNISONO_LAYOUT_FIELD(unisono_instance_table, get_interface)

#define UNISONO_LAYOUT_unisono_device_table \
  UNISONO_LAYOUT_FIELD(unisono_device_table, struct_size) \
  UNISONO_LAYOUT_FIELD(unisono_device_table, reserved) \
  UNISONO_LAYOUT_FIELD(unisono_device_table, open) \
  UNISONO_LAYOUT_FIELD(unisono_device_table, close) \
  UNISONO_LAYOUT_FIELD(unisono_device_table, supports)

#define UNISONO_LAYOUT_unisono_memory_request \
  UNISONO_LAYOUT_FIELD(unisono_memory_request, struct_size) \
  UNISONO_LAYOUT_FIELD(unisono_memory_request, kind) \
  UNISONO_LAYOUT_FIELD(unisono_memory_request, bytes) \
  UNISONO_LAYOUT_FIELD(unisono_memory_request, align) \
  UNISONO_LAYOUT_FIELD(unisono_memory_request, flags)

#define UNISONO_LAYOUT_unisono_memory_view \
  UNISONO_LAYOUT_FIELD(unisono_memory_view, struct_size) \
  UNISONO_LAYOUT_FIELD(unisono_memory_view, place) \
  UNISONO_LAYOUT_FIELD(unisono_memory_view, base) \
  UNISONO_LAYOUT_FIELD(unisono_memory_view, host) \
  UNISONO_LAYOUT_FIELD(unisono_memory_view, bytes) \
  UNISONO_LAYOUT_FIELD(unisono_memory_view, generation) \
  UNISONO_LAYOUT_FIELD(unisono_memory_view, device)

#define UNISONO_LAYOUT_unisono_memory_table \
  UNISONO_LAYOUT_FIELD(unisono_memory_table, struct_size) \
  UNISONO_LAYOUT_FIELD(unisono_memory_table, reserved) \
  UNISONO_LAYOUT_FIELD(unisono_memory_table, alloc) \
  UNISONO_LAYOUT_FIELD(unisono_memory_table, free) \
  UNISONO_LAYOUT_FIELD(unisono_memory_table, register_host) \
  UNISONO_LAYOUT_FIELD(unisono_memory_table, wrap) \
  UNISONO_LAYOUT_FIELD(unisono_memory_table, query) \
  UNISONO_LAYOUT_FIELD(unisono_memory_table, export_memory) \
  UNISONO_LAYOUT_FIELD(unisono_memory_table, import_memory) \
  UNISONO_LAYOUT_FIELD(unisono_memory_table, flush_remote_writes)

#define UNISONO_LAYOUT_unisono_flag_line \
  UNISONO_LAYOUT_FIELD(unisono_flag_line, counter) \
  UNISONO_LAYOUT_FIELD(unisono_flag_line, words) \
  UNISONO_LAYOUT_FIELD(unisono_flag_line, reserved)

#define UNISONO_LAYOUT_unisono_counter \
  UNISONO_LAYOUT_FIELD(unisono_counter, value) \
  UNISONO_LAYOUT_FIELD(unisono_counter, seen)

#define UNISONO_LAYOUT_unisono_command \
  UNISONO_LAYOUT_FIELD(unisono_command, kind) \
  UNISONO_LAYOUT_FIELD(unisono_command, size) \
  UNISONO_LAYOUT_FIELD(unisono_command, flags)

#define UNISONO_LAYOUT_unisono_command_copy \
  UNISONO_LAYOUT_FIELD(unisono_command_copy, head) \
  UNISONO_LAYOUT_FIELD(unisono_command_copy, dst) \
  UNISONO_LAYOUT_FIELD(unisono_command_copy, src) \
  UNISONO_LAYOUT_FIELD(unisono_command_copy, bytes) \
  UNISONO_LAYOUT_FIELD(unisono_command_copy, repeat) \
  UNISONO_LAYOUT_FIELD(unisono_command_copy, dst_stride) \
  UNISONO_LAYOUT_FIELD(unisono_command_copy, src_stride)

#define UNISONO_LAYOUT_unisono_command_reduce \
  UNISONO_LAYOUT_FIELD(unisono_command_reduce, head) \
  UNISONO_LAYOUT_FIELD(unisono_command_reduce, dst) \
  UNISONO_LAYOUT_FIELD(unisono_command_reduce, a) \
  UNISONO_LAYOUT_FIELD(unisono_command_reduce, b) \
  UNISONO_LAYOUT_FIELD(unisono_command_reduce, elements) \
  UNISONO_LAYOUT_FIELD(unisono_command_reduce, repeat) \
  UNISONO_LAYOUT_FIELD(unisono_command_reduce, dst_stride) \
  UNISONO_LAYOUT_FIELD(unisono_command_reduce, a_stride) \
  UNISONO_LAYOUT_FIELD(unisono_command_reduce, b_stride) \
  UNISONO_LAYOUT_FIELD(unisono_command_reduce, dtype) \
  UNISONO_LAYOUT_FIELD(unisono_command_reduce, reduction) \
  UNISONO_LAYOUT_FIELD(unisono_command_reduce, divisor)

#define UNISONO_LAYOUT_unisono_command_signal \
  UNISONO_LAYOUT_FIELD(unisono_command_signal, head) \
  UNISONO_LAYOUT_FIELD(unisono_command_signal, flag) \
  UNISONO_LAYOUT_FIELD(unisono_command_signal, counter) \
  UNISONO_LAYOUT_FIELD(unisono_command_signal, bell) \
  UNISONO_LAYOUT_FIELD(unisono_command_signal, words)

#define UNISONO_LAYOUT_unisono_command_wait \
  UNISONO_LAYOUT_FIELD(unisono_command_wait, head) \
  UNISONO_LAYOUT_FIELD(unisono_command_wait, flag) \
  UNISONO_LAYOUT_FIELD(unisono_command_wait, counter) \
  UNISONO_LAYOUT_FIELD(unisono_command_wait, words)

#define UNISONO_LAYOUT_unisono_command_put \
  UNISONO_LAYOUT_FIELD(unisono_command_put, head) \
  UNISONO_LAYOUT_FIELD(unisono_command_put, src) \
  UNISONO_LAYOUT_FIELD(unisono_command_put, bytes) \
  UNISONO_LAYOUT_FIELD(unisono_command_put, repeat) \
  UNISONO_LAYOUT_FIELD(unisono_command_put, src_stride) \
  UNISONO_LAYOUT_FIELD(unisono_command_put, dst_offset) \
  UNISONO_LAYOUT_FIELD(unisono_command_put, signal_offset) \
  UNISONO_LAYOUT_FIELD(unisono_command_put, dst_window) \
  UNISONO_LAYOUT_FIELD(unisono_command_put, signal_window) \
  UNISONO_LAYOUT_FIELD(unisono_command_put, done_flag) \
  UNISONO_LAYOUT_FIELD(unisono_command_put, done_counter) \
  UNISONO_LAYOUT_FIELD(unisono_command_put, words)

#define UNISONO_LAYOUT_unisono_command_event \
  UNISONO_LAYOUT_FIELD(unisono_command_event, head) \
  UNISONO_LAYOUT_FIELD(unisono_command_event, event)

#define UNISONO_LAYOUT_unisono_command_scale \
  UNISONO_LAYOUT_FIELD(unisono_command_scale, head) \
  UNISONO_LAYOUT_FIELD(unisono_command_scale, dst) \
  UNISONO_LAYOUT_FIELD(unisono_command_scale, src) \
  UNISONO_LAYOUT_FIELD(unisono_command_scale, elements) \
  UNISONO_LAYOUT_FIELD(unisono_command_scale, repeat) \
  UNISONO_LAYOUT_FIELD(unisono_command_scale, dst_stride) \
  UNISONO_LAYOUT_FIELD(unisono_command_scale, src_stride) \
  UNISONO_LAYOUT_FIELD(unisono_command_scale, factor) \
  UNISONO_LAYOUT_FIELD(unisono_command_scale, dtype) \
  UNISONO_LAYOUT_FIELD(unisono_command_scale, reserved)

#define UNISONO_LAYOUT_unisono_command_call \
  UNISONO_LAYOUT_FIELD(unisono_command_call, head) \
  UNISONO_LAYOUT_FIELD(unisono_command_call, function) \
  UNISONO_LAYOUT_FIELD(unisono_command_call, context) \
  UNISONO_LAYOUT_FIELD(unisono_command_call, dst) \
  UNISONO_LAYOUT_FIELD(unisono_command_call, a) \
  UNISONO_LAYOUT_FIELD(unisono_command_call, b) \
  UNISONO_LAYOUT_FIELD(unisono_command_call, elements) \
  UNISONO_LAYOUT_FIELD(unisono_command_call, element_bytes)

#define UNISONO_LAYOUT_unisono_command_read \
  UNISONO_LAYOUT_FIELD(unisono_command_read, head) \
  UNISONO_LAYOUT_FIELD(unisono_command_read, process) \
  UNISONO_LAYOUT_FIELD(unisono_command_read, base) \
  UNISONO_LAYOUT_FIELD(unisono_command_read, offset) \
  UNISONO_LAYOUT_FIELD(unisono_command_read, dst) \
  UNISONO_LAYOUT_FIELD(unisono_command_read, bytes)

#define UNISONO_LAYOUT_unisono_queue_state \
  UNISONO_LAYOUT_FIELD(unisono_queue_state, struct_size) \
  UNISONO_LAYOUT_FIELD(unisono_queue_state, state) \
  UNISONO_LAYOUT_FIELD(unisono_queue_state, accepted) \
  UNISONO_LAYOUT_FIELD(unisono_queue_state, completed) \
  UNISONO_LAYOUT_FIELD(unisono_queue_state, moved) \
  UNISONO_LAYOUT_FIELD(unisono_queue_state, reserved)

#define UNISONO_LAYOUT_unisono_sleep \
  UNISONO_LAYOUT_FIELD(unisono_sleep, struct_size) \
  UNISONO_LAYOUT_FIELD(unisono_sleep, how) \
  UNISONO_LAYOUT_FIELD(unisono_sleep, futex) \
  UNISONO_LAYOUT_FIELD(unisono_sleep, futex_value) \
  UNISONO_LAYOUT_FIELD(unisono_sleep, fd) \
  UNISONO_LAYOUT_FIELD(unisono_sleep, fd_events) \
  UNISONO_LAYOUT_FIELD(unisono_sleep, reserved)

#define UNISONO_LAYOUT_unisono_stream_request \
  UNISONO_LAYOUT_FIELD(unisono_stream_request, struct_size) \
  UNISONO_LAYOUT_FIELD(unisono_stream_request, reserved) \
  UNISONO_LAYOUT_FIELD(unisono_stream_request, priority)

#define UNISONO_LAYOUT_unisono_stream_table \
  UNISONO_LAYOUT_FIELD(unisono_stream_table, struct_size) \
  UNISONO_LAYOUT_FIELD(unisono_stream_table, reserved) \
  UNISONO_LAYOUT_FIELD(unisono_stream_table, create) \
  UNISONO_LAYOUT_FIELD(unisono_stream_table, wrap) \
  UNISONO_LAYOUT_FIELD(unisono_stream_table, destroy) \
  UNISONO_LAYOUT_FIELD(unisono_stream_table, native) \
  UNISONO_LAYOUT_FIELD(unisono_stream_table, submit) \
  UNISONO_LAYOUT_FIELD(unisono_stream_table, poll) \
  UNISONO_LAYOUT_FIELD(unisono_stream_table, arm) \
  UNISONO_LAYOUT_FIELD(unisono_stream_table, disarm) \
  UNISONO_LAYOUT_FIELD(unisono_stream_table, query) \
  UNISONO_LAYOUT_FIELD(unisono_stream_table, abort) \
  UNISONO_LAYOUT_FIELD(unisono_stream_table, capturing)

#define UNISONO_LAYOUT_unisono_event_table \
  UNISONO_LAYOUT_FIELD(unisono_event_table, struct_size) \
  UNISONO_LAYOUT_FIELD(unisono_event_table, reserved) \
  UNISONO_LAYOUT_FIELD(unisono_event_table, create) \
  UNISONO_LAYOUT_FIELD(unisono_event_table, wrap) \
  UNISONO_LAYOUT_FIELD(unisono_event_table, destroy) \
  UNISONO_LAYOUT_FIELD(unisono_event_table, native) \
  UNISONO_LAYOUT_FIELD(unisono_event_table, host_signal) \
  UNISONO_LAYOUT_FIELD(unisono_event_table, host_query)

#define UNISONO_LAYOUT_unisono_link_info \
  UNISONO_LAYOUT_FIELD(unisono_link_info, struct_size) \
  UNISONO_LAYOUT_FIELD(unisono_link_info, link_type) \
  UNISONO_LAYOUT_FIELD(unisono_link_info, scope) \
  UNISONO_LAYOUT_FIELD(unisono_link_info, shared) \
  UNISONO_LAYOUT_FIELD(unisono_link_info, from) \
  UNISONO_LAYOUT_FIELD(unisono_link_info, to) \
  UNISONO_LAYOUT_FIELD(unisono_link_info, kind) \
  UNISONO_LAYOUT_FIELD(unisono_link_info, bytes_per_second) \
  UNISONO_LAYOUT_FIELD(unisono_link_info, latency_ns) \
  UNISONO_LAYOUT_FIELD(unisono_link_info, rail) \
  UNISONO_LAYOUT_FIELD(unisono_link_info, reserved) \
  UNISONO_LAYOUT_FIELD(unisono_link_info, read_bytes_per_second)

#define UNISONO_LAYOUT_unisono_link_request \
  UNISONO_LAYOUT_FIELD(unisono_link_request, struct_size) \
  UNISONO_LAYOUT_FIELD(unisono_link_request, peer) \
  UNISONO_LAYOUT_FIELD(unisono_link_request, device) \
  UNISONO_LAYOUT_FIELD(unisono_link_request, channel) \
  UNISONO_LAYOUT_FIELD(unisono_link_request, peer_address) \
  UNISONO_LAYOUT_FIELD(unisono_link_request, peer_address_len)

#define UNISONO_LAYOUT_unisono_link_statistics \
  UNISONO_LAYOUT_FIELD(unisono_link_statistics, struct_size) \
  UNISONO_LAYOUT_FIELD(unisono_link_statistics, connections) \
  UNISONO_LAYOUT_FIELD(unisono_link_statistics, bytes_sent) \
  UNISONO_LAYOUT_FIELD(unisono_link_statistics, bytes_received) \
  UNISONO_LAYOUT_FIELD(unisono_link_statistics, puts_sent) \
  UNISONO_LAYOUT_FIELD(unisono_link_statistics, puts_received) \
  UNISONO_LAYOUT_FIELD(unisono_link_statistics, refused) \
  UNISONO_LAYOUT_FIELD(unisono_link_statistics, recovered)

#define UNISONO_LAYOUT_unisono_link_table \
  UNISONO_LAYOUT_FIELD(unisono_link_table, struct_size) \
  UNISONO_LAYOUT_FIELD(unisono_link_table, reserved) \
  UNISONO_LAYOUT_FIELD(unisono_link_table, report) \
  UNISONO_LAYOUT_FIELD(unisono_link_table, address) \
  UNISONO_LAYOUT_FIELD(unisono_link_table, create) \
  UNISONO_LAYOUT_FIELD(unisono_link_table, destroy) \
  UNISONO_LAYOUT_FIELD(unisono_link_table, export_window) \
  UNISONO_LAYOUT_FIELD(unisono_link_table, import_window) \
  UNISONO_LAYOUT_FIELD(unisono_link_table, close_window) \
  UNISONO_LAYOUT_FIELD(unisono_link_table, submit) \
  UNISONO_LAYOUT_FIELD(unisono_link_table, poll) \
  UNISONO_LAYOUT_FIELD(unisono_link_table, arm) \
  UNISONO_LAYOUT_FIELD(unisono_link_table, disarm) \
  UNISONO_LAYOUT_FIELD(unisono_link_table, query) \
  UNISONO_LAYOUT_FIELD(unisono_link_table, abort) \
  UNISONO_LAYOUT_FIELD(unisono_link_table, statistics) \
  UNISONO_LAYOUT_FIELD(unisono_link_table, land)

#define UNISONO_LAYOUT_unisono_cpu_table \
  UNISONO_LAYOUT_FIELD(unisono_cpu_table, struct_size) \
  UNISONO_LAYOUT_FIELD(unisono_cpu_table, reserved) \
  UNISONO_LAYOUT_FIELD(unisono_cpu_table, ring) \
  UNISONO_LAYOUT_FIELD(unisono_cpu_table, reduce) \
  UNISONO_LAYOUT_FIELD(unisono_cpu_table, combiner)

#define UNISONO_LAYOUT_unisono_dmabuf \
  UNISONO_LAYOUT_FIELD(unisono_dmabuf, struct_size) \
  UNISONO_LAYOUT_FIELD(unisono_dmabuf, fd) \
  UNISONO_LAYOUT_FIELD(unisono_dmabuf, offset) \
  UNISONO_LAYOUT_FIELD(unisono_dmabuf, bytes) \
  UNISONO_LAYOUT_FIELD(unisono_dmabuf, address) \
  UNISONO_LAYOUT_FIELD(unisono_dmabuf, flush) \
  UNISONO_LAYOUT_FIELD(unisono_dmabuf, context)

#define UNISONO_LAYOUT_unisono_dmabuf_table \
  UNISONO_LAYOUT_FIELD(unisono_dmabuf_table, struct_size) \
  UNISONO_LAYOUT_FIELD(unisono_dmabuf_table, reserved) \
  UNISONO_LAYOUT_FIELD(unisono_dmabuf_table, add) \
  UNISONO_LAYOUT_FIELD(unisono_dmabuf_table, remove)

#define UNISONO_LAYOUT_unisono_layout_entry \
  UNISONO_LAYOUT_FIELD(unisono_layout_entry, struct_name) \
  UNISONO_LAYOUT_FIELD(unisono_layout_entry, field) \
  UNISONO_LAYOUT_FIELD(unisono_layout_entry, offset) \
  UNISONO_LAYOUT_FIELD(unisono_layout_entry, size)

#define UNISONO_LAYOUT_unisono_plugin \
  UNISONO_LAYOUT_FIELD(unisono_plugin, magic) \
  UNISONO_LAYOUT_FIELD(unisono_plugin, abi_major) \
  UNISONO_LAYOUT_FIELD(unisono_plugin, abi_minor) \
  UNISONO_LAYOUT_FIELD(unisono_plugin, struct_size) \
  UNISONO_LAYOUT_FIELD(unisono_plugin, name) \
  UNISONO_LAYOUT_FIELD(unisono_plugin, version) \
  UNISONO_LAYOUT_FIELD(unisono_plugin, vendor) \
  UNISONO_LAYOUT_FIELD(unisono_plugin, build_id) \
  UNISONO_LAYOUT_FIELD(unisono_plugin, features) \
  UNISONO_LAYOUT_FIELD(unisono_plugin, sanitizer) \
  UNISONO_LAYOUT_FIELD(unisono_plugin, param_count) \
  UNISONO_LAYOUT_FIELD(unisono_plugin, params) \
  UNISONO_LAYOUT_FIELD(unisono_plugin, layout) \
  UNISONO_LAYOUT_FIELD(unisono_plugin, layout_count) \
  UNISONO_LAYOUT_FIELD(unisono_plugin, reserved0) \
  UNISONO_LAYOUT_FIELD(unisono_plugin, instance) \
  UNISONO_LAYOUT_FIELD(unisono_plugin, device) \
  UNISONO_LAYOUT_FIELD(unisono_plugin, memory) \
  UNISONO_LAYOUT_FIELD(unisono_plugin, stream) \
  UNISONO_LAYOUT_FIELD(unisono_plugin, event) \
  UNISONO_LAYOUT_FIELD(unisono_plugin, link) \
  UNISONO_LAYOUT_FIELD(unisono_plugin, reserved)

/* All of them, in the order of unisono_plugin.h. */
#define UNISONO_LAYOUT_TABLE \
  UNISONO_LAYOUT_unisono_error \
  UNISONO_LAYOUT_unisono_str \
  UNISONO_LAYOUT_unisono_log_record \
  UNISONO_LAYOUT_unisono_host \
  UNISONO_LAYOUT_unisono_waker \
  UNISONO_LAYOUT_unisono_channel \
  UNISONO_LAYOUT_unisono_param \
  UNISONO_LAYOUT_unisono_param_value \
  UNISONO_LAYOUT_unisono_instance_info \
  UNISONO_LAYOUT_unisono_device_info \
  UNISONO_LAYOUT_unisono_support_query \
  UNISONO_LAYOUT_unisono_instance_table \
  UNISONO_LAYOUT_unisono_device_table \
  UNISONO_LAYOUT_unisono_memory_request \
  UNISONO_LAYOUT_unisono_memory_view \
  UNISONO_LAYOUT_unisono_memory_table \
  UNISONO_LAYOUT_unisono_flag_line \
  UNISONO_LAYOUT_unisono_counter \
  UNISONO_LAYOUT_unisono_command \
  UNISONO_LAYOUT_unisono_command_copy \
  UNISONO_LAYOUT_unisono_command_reduce \
  UNISONO_LAYOUT_unisono_command_signal \
  UNISONO_LAYOUT_unisono_command_wait \
  UNISONO_LAYOUT_unisono_command_put \
  UNISONO_LAYOUT_unisono_command_event \
  UNISONO_LAYOUT_unisono_command_scale \
  UNISONO_LAYOUT_unisono_command_call \
  UNISONO_LAYOUT_unisono_command_read \
  UNISONO_LAYOUT_unisono_queue_state \
  UNISONO_LAYOUT_unisono_sleep \
  UNISONO_LAYOUT_unisono_stream_request \
  UNISONO_LAYOUT_unisono_stream_table \
  UNISONO_LAYOUT_unisono_event_table \
  UNISONO_LAYOUT_unisono_link_info \
  UNISONO_LAYOUT_unisono_link_request \
  UNISONO_LAYOUT_unisono_link_statistics \
  UNISONO_LAYOUT_unisono_link_table \
  UNISONO_LAYOUT_unisono_cpu_table \
  UNISONO_LAYOUT_unisono_dmabuf \
  UNISONO_LAYOUT_unisono_dmabuf_table \
  UNISONO_LAYOUT_unisono_layout_entry \
  UNISONO_LAYOUT_unisono_plugin

#endif /* UNISONO_PLUGIN_LAYOUT_H */
