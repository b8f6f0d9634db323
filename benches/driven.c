/* What a message of 64 bytes costs a program in C: nanoseconds of CPU time from netloom_start to its completion, simulation included (two packets, four packet-hops on a switch).
 * `make bench-driven` builds and runs it. */
#include <netloom.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { HOSTS = 64, MESSAGES = 1000000 };

static double per_message(uint64_t reaction_ps, int many) {
    netloom_simulation *sim = netloom_open("[topology]\nkind = \"crossbar\"\nhosts = 64\nrate = \"400Gbps\"\nlatency = \"500ns\"\n");
    if (!sim || (reaction_ps && netloom_set_reaction(sim, reaction_ps))) {
        fprintf(stderr, "%s\n", netloom_error());
        exit(1);
    }
    clock_t begin = clock();
    uint32_t started = 0;
    static netloom_message batch[MESSAGES];
    if (many) {
        for (; started < MESSAGES; started++) {
            netloom_message message = {started, 64, 50000ULL * (started / HOSTS), started % HOSTS, (started + 1) % HOSTS, 0};
            batch[started] = message;
        }
        netloom_start_many(sim, batch, MESSAGES);
    }
    for (; started < HOSTS; started++) netloom_start(sim, started, (started + 1) % HOSTS, 64, started);
    netloom_completion done;
    uint32_t ended = 0;
    while (netloom_next_completion(sim, NETLOOM_FOREVER, &done) == 1) {
        ended++;
        if (started < MESSAGES) netloom_start_at(sim, done.dst, (done.dst + 1) % HOSTS, 64, started++, done.time_ps + reaction_ps, 0);
    }
    double spent = (double)(clock() - begin) / CLOCKS_PER_SEC;
    if (ended != MESSAGES) {
        fprintf(stderr, "%u of %u messages: %s\n", ended, MESSAGES, netloom_error());
        exit(1);
    }
    netloom_close(sim);
    return spent * 1e9 / MESSAGES;
}

int main(void) {
    printf("a message of 64 bytes, 64 of them under way, each answered when it has arrived:\n");
    printf("  event by event           %6.0f ns\n", per_message(0, 0));
    printf("  with a reaction of 1 us  %6.0f ns\n", per_message(1000000, 0));
    printf("all of them in one call:\n");
    printf("  with a reaction of 1 us  %6.0f ns\n", per_message(1000000, 1));
    return 0;
}
