/* Its query writes to a bad address. */
#define BEFORE_ANSWER *(volatile int *)16 = 1
#include "base.h"
