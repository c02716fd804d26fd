// LD_PRELOAD library: makes each fsync take SLOW_SYNC_US microseconds longer, as on an ordinary cloud disk.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

static void linger(void) {
  static long microseconds = -1;
  if (microseconds < 0) {
    const char *text = getenv("SLOW_SYNC_US");
    microseconds = text ? atol(text) : 0;
  }
  struct timespec time = {microseconds / 1000000, microseconds % 1000000 * 1000};
  if (microseconds > 0) nanosleep(&time, NULL);
}

int fsync(int file) {
  static int (*original)(int);
  if (!original) original = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
  int result = original(file);
  linger();
  return result;
}

int fdatasync(int file) {
  static int (*original)(int);
  if (!original) original = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
  int result = original(file);
  linger();
  return result;
}
