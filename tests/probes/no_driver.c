/* A library that is not a driver. */
int hello(void) { return 0; }
