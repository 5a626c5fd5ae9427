/* Calls a function that nobody has. */
extern void nobody_has_this_function(void);
#define BEFORE_ANSWER nobody_has_this_function()
#include "base.h"
