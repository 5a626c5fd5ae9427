/* A table whose size cannot be true. */
#define INSTANCE_CHANGES .struct_size = 0x7fffffffu,
#include "base.h"
