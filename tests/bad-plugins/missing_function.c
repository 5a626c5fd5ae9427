/* A function that every plugin must have is missing. */
#define INSTANCE_CHANGES .devices = NULL,
#include "base.h"
