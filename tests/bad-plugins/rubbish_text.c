/* A text longer than can be true. */
#define RECORD_CHANGES .vendor = {"x", 0xffffffffffffffffULL},
#include "base.h"
