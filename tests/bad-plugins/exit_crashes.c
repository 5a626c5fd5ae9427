/* Sound, but crashes when the process ends. */
#include <stdlib.h>
static void at_exit(void) { *(volatile int *)16 = 1; }
#define BEFORE_ANSWER atexit(at_exit)
#include "base.h"
