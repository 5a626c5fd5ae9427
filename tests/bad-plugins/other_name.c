/* Another name than its file's. */
#define RECORD_CHANGES .name = STR("somebody_else"),
#include "base.h"
