/* A text that is not UTF-8. */
#define RECORD_CHANGES .vendor = STR("\xff\xfe"),
#include "base.h"
