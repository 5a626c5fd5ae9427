/* Does not start with the magic number. */
#define RECORD_CHANGES .magic = 0x1234567890abcdefULL,
#include "base.h"
