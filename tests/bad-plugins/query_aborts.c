/* Its query aborts, as one does that panics. */
#include <stdlib.h>
#define BEFORE_ANSWER abort()
#include "base.h"
