/* Preloaded into a process: its wall clock is ten seconds ahead from the moment on at which there is a file $JUMPED. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long ahead_s(void) {
  const char *file = getenv("JUMPED");
  return file && access(file, F_OK) == 0 ? 10 : 0;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  int failed = (int)syscall(SYS_clock_gettime, clock, now);
  if (!failed && clock == CLOCK_REALTIME) now->tv_sec += ahead_s();
  return failed;
}

/* Node's Date.now() asks this one. */
int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  int failed = (int)syscall(SYS_gettimeofday, now, zone);
  if (!failed && now) now->tv_sec += ahead_s();
  return failed;
}
