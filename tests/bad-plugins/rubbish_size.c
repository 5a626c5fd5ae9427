/* A record whose size cannot be true. */
#define RECORD_CHANGES .struct_size = 0xfffffff0u,
#include "base.h"
