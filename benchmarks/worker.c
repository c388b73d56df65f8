/* Does so many steps of arithmetic, with normal jitter in their number: a program that works instead of sleeping.

   worker STEPS JITTER [NAME]: STEPS (1 + JITTER z) steps. The name is not read: equal commands need different ones. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static double uniform(void) { return (drand48() * 281474976710656.0 + 0.5) / 281474976710657.0; }

int main(int count, char **words)
{
    struct timespec now;
    volatile uint64_t kept;
    uint64_t value = 88172645463325252u;
    double left;
    if (count < 3)
        return 2;
    clock_gettime(CLOCK_REALTIME, &now);
    srand48(now.tv_nsec ^ (now.tv_sec << 7) ^ ((long)getpid() << 13));
    for (int i = 0; i < 5; i++)
        drand48();
    left = atof(words[1]) * (1 + atof(words[2]) * sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform()));
    for (; left > 0; left -= 1) {
        value ^= value << 13;
        value ^= value >> 7;
        value ^= value << 17;
    }
    kept = value;
    (void)kept;
    return 0;
}
