/* Requires behaviour that no host has. */
#define RECORD_CHANGES .features = 1ull << 40,
#include "base.h"
