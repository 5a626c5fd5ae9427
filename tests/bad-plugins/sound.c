/* Nothing is wrong with this one. */

#include "base.h"
