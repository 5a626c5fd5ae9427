/* Serves no host at all. */
#define ANSWER NULL
#include "base.h"
