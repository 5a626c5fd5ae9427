/* A table that is smaller than in the version it declares. */
#define INSTANCE_CHANGES .struct_size = 16,
#include "base.h"
