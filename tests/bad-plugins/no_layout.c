/* No layout table. */
#define RECORD_CHANGES .layout_count = 0,
#include "base.h"
