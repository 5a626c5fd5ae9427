/* Its query ends the process. */
#include <stdlib.h>
#define BEFORE_ANSWER exit(0)
#include "base.h"
