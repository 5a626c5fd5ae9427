/* A record that is smaller than in the version it declares. */
#define RECORD_CHANGES .struct_size = 64,
#include "base.h"
