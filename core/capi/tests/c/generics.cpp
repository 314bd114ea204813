#include "generics.c"
