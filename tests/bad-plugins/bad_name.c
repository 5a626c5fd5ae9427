/* A name that breaks the rule. */
#define RECORD_CHANGES .name = STR("Bad Name"),
#include "base.h"
