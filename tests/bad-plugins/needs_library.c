/* Needs a library that is not on the machine when it is loaded. */
extern int from_a_library(void);
#define BEFORE_CREATE if (from_a_library()) return UNISONO_ERR_INTERNAL
#include "base.h"
