// Parts of a program whose kernels are in several files: each of them puts its number to the next PE.
#pragma once

void put_from_one(long* word);
void put_from_two(long* word);
// Of a library that is loaded later.
typedef void PutFromPlugin(long* word);
