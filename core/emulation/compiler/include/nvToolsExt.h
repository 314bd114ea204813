// The older place of these calls.
#pragma once
#include "nvtx3/nvToolsExt.h"
