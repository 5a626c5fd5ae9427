/* Built for another major version. */
#define RECORD_CHANGES .abi_major = 2, .abi_minor = 3,
#include "base.h"
