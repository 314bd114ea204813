// Checks that end the job.
#pragma once
#include "../../../../examples/cuda/check.h"

#define CHECK(holds)                                                                                                   \
    do {                                                                                                               \
        if (!(holds)) FAIL("%s:%d: %s", __FILE__, __LINE__, #holds);                                                   \
    } while (0)
