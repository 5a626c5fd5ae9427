/* A program that is built against what is installed: it joins as its launcher says. */

#include <stdio.h>

#include <unisono.h>

int main(void) {
  unisono_comm *comm;
  uint32_t rank;
  float mine, sum = 0;
  if (unisono_comm_init_from_env(&comm) != UNISONO_SUCCESS ||
      unisono_comm_rank(comm, &rank) != UNISONO_SUCCESS) {
    fprintf(stderr, "%s\n", unisono_last_error());
    return 1;
  }
  mine = (float)rank + 1;
  if (unisono_all_reduce(&mine, &sum, 1, UNISONO_FLOAT32, UNISONO_REDUCE_SUM, comm) !=
      UNISONO_SUCCESS)
    fprintf(stderr, "%s\n", unisono_last_error());
  printf("%g\n", sum);
  return unisono_comm_finalize(comm) != UNISONO_SUCCESS;
}
