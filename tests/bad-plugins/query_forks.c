/* Its query leaves a process behind that holds every descriptor. */
#include <unistd.h>
#define BEFORE_ANSWER if (fork() == 0) for (;;) pause()
#include "base.h"
