// What the dynamic linker loads before the C library: a wall clock that is off by the nanoseconds in a file.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

static long long now(void) { // in nanoseconds
    static const char *offset;
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    if (!offset) offset = mmap(0, 20, PROT_READ, MAP_SHARED, open("/tmp/clock", O_RDONLY), 0);
    return t.tv_sec * 1000000000LL + t.tv_nsec + atoll(offset);
}

int gettimeofday(struct timeval *t, void *zone) {
    long long us = now() / 1000;
    t->tv_sec = us / 1000000, t->tv_usec = us % 1000000;
    return 0;
}

time_t time(time_t *t) {
    time_t s = now() / 1000000000;
    return t ? (*t = s) : s;
}
