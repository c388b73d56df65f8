/* Sleeps for a while with jitter, or, with some probability, for quite another while.

   sleeper MILLISECONDS SHARE OTHER: 2 % normal jitter; in a share of the runs OTHER milliseconds instead. */
#include <math.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static double uniform(void) { return (drand48() * 281474976710656.0 + 0.5) / 281474976710657.0; }

int main(int count, char **words)
{
    struct timespec now, wait;
    double length;
    if (count != 4)
        return 2;
    clock_gettime(CLOCK_REALTIME, &now);
    srand48(now.tv_nsec ^ (now.tv_sec << 7) ^ ((long)getpid() << 13));
    for (int i = 0; i < 5; i++)
        drand48();
    length = atof(words[1]) * (1 + 0.02 * sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform()));
    if (drand48() < atof(words[2]))
        length = atof(words[3]);
    wait.tv_sec = (time_t)(length / 1000);
    wait.tv_nsec = (long)((length - 1000.0 * wait.tv_sec) * 1e6);
    nanosleep(&wait, 0);
    return 0;
}
