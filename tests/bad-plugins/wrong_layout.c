/* Compiled against a header in which two fields of a struct have changed places. */
#include "unisono_plugin_layout.h"

typedef struct changed_queue_state {
  uint32_t struct_size;
  uint32_t state;
  uint64_t completed;
  uint64_t accepted;
  uint32_t moved;
  uint32_t reserved;
} changed_queue_state;
#define CHANGED(field) \
  {"unisono_queue_state", #field, (uint32_t)offsetof(changed_queue_state, field), \
   (uint32_t)sizeof(((changed_queue_state *)0)->field)},
#undef UNISONO_LAYOUT_unisono_queue_state
#define UNISONO_LAYOUT_unisono_queue_state \
  CHANGED(struct_size) CHANGED(state) CHANGED(accepted) CHANGED(completed) CHANGED(moved) \
  CHANGED(reserved)
#include "base.h"
