// Not supported.
__managed__ int both;
int main() { return both; }
