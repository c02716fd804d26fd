// LD_PRELOAD library: moves the time of day, and the monotonic clock with its timers. `process-clock.ts` controls it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

// Two offsets in milliseconds: of the time of day, and of the clocks that start with the machine.
static volatile int64_t *offsets;
static int (*real_clock)(clockid_t, struct timespec *);

__attribute__((constructor)) static void start(void) {
  real_clock = dlsym(RTLD_NEXT, "clock_gettime");
  const char *path = getenv("CLOCK_PAGE");
  int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (file < 0) return;
  void *mapped = mmap(NULL, 4096, PROT_READ, MAP_SHARED, file, 0);
  close(file);
  if (mapped != MAP_FAILED) offsets = mapped;
}

static int64_t offset(clockid_t clock) {
  if (!offsets) return 0;
  switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
      return offsets[0];
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_RAW:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_BOOTTIME:
      return offsets[1];
    default:
      return 0;
  }
}

static void add_ms(struct timespec *time, int64_t ms) {
  int64_t ns = time->tv_nsec + (ms % 1000) * 1000000;
  time->tv_sec += ms / 1000 + (ns >= 1000000000) - (ns < 0);
  time->tv_nsec = (ns + 1000000000) % 1000000000;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
  // The loader calls this before the constructor has run.
  if (!real_clock) real_clock = dlsym(RTLD_NEXT, "clock_gettime");
  int result = real_clock(clock, time);
  if (result == 0) add_ms(time, offset(clock));
  return result;
}

// The kernel compares a deadline with the real time of day. With a clock that was moved back every deadline would have passed,
// and the threads of the engine, which wait again until their own clock agrees, would never sleep.
int pthread_cond_timedwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict deadline) {
  static int (*real_wait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
  // The default version of the symbol would be that of 2002, whose conditions have another layout.
  if (!real_wait) real_wait = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
  if (!real_wait) real_wait = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
  struct timespec real = *deadline;
  // This bit says that the condition waits on the monotonic clock.
  if (!(condition->__data.__wrefs & 2)) add_ms(&real, -offset(CLOCK_REALTIME));
  return real_wait(condition, mutex, &real);
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
  (void)zone;
  struct timespec now;
  if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
  time->tv_sec = now.tv_sec;
  time->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *result) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (result) *result = now.tv_sec;
  return now.tv_sec;
}
