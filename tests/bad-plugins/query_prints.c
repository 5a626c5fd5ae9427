/* Its query prints what it likes. */
#include <stdio.h>
#define BEFORE_ANSWER (puts("{\"sound\": rubbish}"), fflush(stdout))
#include "base.h"
