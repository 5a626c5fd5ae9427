/* More parameters than can be true. */
#define RECORD_CHANGES .param_count = 0xffffffffu,
#include "base.h"
