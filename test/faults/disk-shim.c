// LD_PRELOAD library: delays, fails and logs file operations of the server below one path. `disk-shim.ts` controls it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

// Same order as in disk-shim.ts.
enum { SYNC_DELAY_US, SYNC_ERRNO, WRITE_ERRNO, FAIL_AT, FAIL_ERRNO, CALLS, FAILED_CALL };

static volatile int64_t *page;
static const char *below;
static size_t below_length;
static int log_file = -1;
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;

static int (*real_fsync)(int), (*real_fdatasync)(int), (*real_ftruncate)(int, off_t), (*real_unlink)(const char *);
static int (*real_rename)(const char *, const char *);
static ssize_t (*real_pwrite)(int, const void *, size_t, off_t), (*real_write)(int, const void *, size_t);
static ssize_t (*real_send)(int, const void *, size_t, int);

__attribute__((constructor)) static void start(void) {
  real_fsync = dlsym(RTLD_NEXT, "fsync");
  real_fdatasync = dlsym(RTLD_NEXT, "fdatasync");
  real_ftruncate = dlsym(RTLD_NEXT, "ftruncate64");
  real_unlink = dlsym(RTLD_NEXT, "unlink");
  real_rename = dlsym(RTLD_NEXT, "rename");
  real_pwrite = dlsym(RTLD_NEXT, "pwrite64");
  real_write = dlsym(RTLD_NEXT, "write");
  real_send = dlsym(RTLD_NEXT, "send");
  const char *path = getenv("SHIM_PAGE");
  int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
  if (file < 0) return;
  void *mapped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  below = getenv("SHIM_BELOW");
  if (mapped == MAP_FAILED || !below) return;
  below_length = strlen(below);
  const char *log_path = getenv("SHIM_LOG");
  if (log_path) log_file = open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  page = mapped;
}

static int is_ours(const char *path) { return strncmp(path, below, below_length) == 0; }

static int find(int fd, char *path) {
  char link[64];
  if (!page) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, 511);
  if (length <= 0) return 0;
  path[length] = 0;
  return is_ours(path);
}

// Appends a record: letter, path length, offset, data length (little endian), path, data.
static void record(char letter, const char *path, uint64_t offset, uint64_t length, const void *data) {
  if (log_file < 0) return;
  char head[21];
  uint32_t path_length = strlen(path);
  head[0] = letter;
  memcpy(head + 1, &path_length, 4);
  memcpy(head + 5, &offset, 8);
  memcpy(head + 13, &length, 8);
  struct iovec parts[3] = {{head, 21}, {(void *)path, path_length}, {(void *)data, data ? length : 0}};
  pthread_mutex_lock(&log_lock);
  if (writev(log_file, parts, 3) < 0) abort();
  pthread_mutex_unlock(&log_lock);
}

// Instead of an errno: ends the process before the call is made, as kill -9 does.
enum { KILL = -1 };

// Counts a call. Returns the errno that it must fail with, or 0.
static int fault(char letter, int slot) {
  int64_t number = __sync_add_and_fetch(&page[CALLS], 1);
  if (page[FAIL_AT] == number) {
    page[FAILED_CALL] = letter;
    if (page[FAIL_ERRNO] == KILL) {
      kill(getpid(), SIGKILL);
      pause();
    }
    return page[FAIL_ERRNO];
  }
  return slot >= 0 ? page[slot] : 0;
}

static int sync_file(int fd, int (*real)(int)) {
  char path[512];
  if (!find(fd, path)) return real(fd);
  int error = fault('S', SYNC_ERRNO);
  if (error) return errno = error, -1;
  int64_t delay = page[SYNC_DELAY_US];
  if (delay > 0) {
    struct timespec pause = {delay / 1000000, (delay % 1000000) * 1000};
    nanosleep(&pause, NULL);
  }
  // Another thread may write meanwhile, which this does not bring to disk.
  record('B', path, 0, 0, NULL);
  int result = real(fd);
  if (result == 0) record('S', path, 0, 0, NULL);
  return result;
}

int fsync(int fd) { return sync_file(fd, real_fsync); }
int fdatasync(int fd) { return sync_file(fd, real_fdatasync); }

ssize_t pwrite64(int fd, const void *data, size_t length, off_t offset) {
  char path[512];
  if (!find(fd, path)) return real_pwrite(fd, data, length, offset);
  int error = fault('W', WRITE_ERRNO);
  if (error) return errno = error, -1;
  ssize_t written = real_pwrite(fd, data, length, offset);
  if (written > 0) record('W', path, offset, written, data);
  return written;
}

int ftruncate64(int fd, off_t length) {
  char path[512];
  if (!find(fd, path)) return real_ftruncate(fd, length);
  int error = fault('T', WRITE_ERRNO);
  if (error) return errno = error, -1;
  int result = real_ftruncate(fd, length);
  if (result == 0) record('T', path, length, 0, NULL);
  return result;
}

int unlink(const char *path) {
  if (!page || !is_ours(path)) return real_unlink(path);
  int error = fault('U', -1);
  if (error) return errno = error, -1;
  int result = real_unlink(path);
  if (result == 0) record('U', path, 0, 0, NULL);
  return result;
}

int rename(const char *from, const char *to) {
  if (!page || !is_ours(from)) return real_rename(from, to);
  int error = fault('R', -1);
  if (error) return errno = error, -1;
  int result = real_rename(from, to);
  if (result == 0) record('R', from, 0, strlen(to), to);
  return result;
}

// Logs a response before it is sent, so that every write that a caller may know of precedes it in the log.
static void record_answer(const void *data, size_t length) {
  if (page && log_file >= 0 && length > 12 && memcmp(data, "HTTP/1.1 ", 9) == 0) record('A', "", 0, length, data);
}

ssize_t send(int fd, const void *data, size_t length, int flags) {
  record_answer(data, length);
  return real_send(fd, data, length, flags);
}
