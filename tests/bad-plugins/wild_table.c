/* A table lies where nothing is. */
#define RECORD_CHANGES .memory = (const void *)0x123456789000,
#include "base.h"
