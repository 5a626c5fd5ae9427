/* A layout table longer than can be true. */
#define RECORD_CHANGES .layout_count = 0xffffffffu,
#include "base.h"
