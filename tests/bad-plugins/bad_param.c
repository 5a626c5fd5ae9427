/* A parameter whose default is out of its own bounds. */
#include "unisono_plugin.h"
static const unisono_param params[] = {{.name = {"chunk", 5},
                                        .help = {"Bytes of a chunk.", 17},
                                        .default_text = {"1 KiB", 5},
                                        .value_type = UNISONO_PARAM_BYTES,
                                        .min = 4096,
                                        .max = 1 << 20}};
#define RECORD_CHANGES .params = params, .param_count = 1,
#include "base.h"
