/* Exports another symbol. */
#define NO_QUERY
#include "base.h"
