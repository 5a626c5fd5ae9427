/* The table that every plugin must have is missing. */
#define RECORD_CHANGES .instance = NULL,
#include "base.h"
