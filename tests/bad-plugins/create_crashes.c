/* Its start writes to a bad address. */
#define BEFORE_CREATE *(volatile int *)16 = 1
#include "base.h"
