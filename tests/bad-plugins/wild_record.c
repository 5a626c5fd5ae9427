/* The record lies where nothing is. */
#define ANSWER (const unisono_plugin *)0x123456789000
#include "base.h"
