/* The record is not aligned. */
#define ANSWER (const unisono_plugin *)((const char *)&plugin + 1)
#include "base.h"
