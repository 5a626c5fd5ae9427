/* Says that it is built with a sanitizer that the host does not run. */
#define RECORD_CHANGES .sanitizer = UNISONO_SANITIZER_MEMORY,
#include "base.h"
