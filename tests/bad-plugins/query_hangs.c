/* Its query never comes back. */
#include <unistd.h>
#define BEFORE_ANSWER for (;;) pause()
#include "base.h"
