/* Drives a run as a program in C would: requests to one host, each answered when it has arrived. Prints what completed, one line each. */
#include <netloom.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                        \
    do {                                                                                        \
        if (!(condition)) {                                                                     \
            fprintf(stderr, "line %d: %s: %s\n", __LINE__, #condition, netloom_error());        \
            exit(1);                                                                            \
        }                                                                                       \
    } while (0)

static void refusals(void) {
    CHECK(strlen(netloom_version()) > 0 && strcmp(netloom_error(), "") == 0);
    CHECK(netloom_open("[topology]\nkind = \"fat-tre\"\n") == NULL);
    CHECK(strstr(netloom_error(), "scenario:2:") && strstr(netloom_error(), "did you mean `fat-tree`?"));
    CHECK(netloom_open("[measure]\nuntil = \"1ms\"\n") == NULL && strstr(netloom_error(), "measure.until"));
    CHECK(netloom_open(NULL) == NULL && strstr(netloom_error(), "NULL"));
    CHECK(netloom_open("\xff") == NULL && strstr(netloom_error(), "UTF-8"));
    CHECK(netloom_open_file("nowhere.toml") == NULL && strstr(netloom_error(), "nowhere.toml"));
    CHECK(netloom_start(NULL, 0, 1, 1, 0) == -1 && netloom_hosts(NULL) == 0 && netloom_now(NULL) == 0);
    netloom_close(NULL);
}

/* Both ends of messages, many of them in one call, of no bytes and to oneself; two simulations at the same time, which are independent of each other. */
static void both_ends(void) {
    const char *scenario = "[topology]\nkind = \"fat-tree\"\nk = 4\n";
    netloom_simulation *sims[2] = {netloom_open(scenario), netloom_open(scenario)};
    static netloom_message messages[4000];
    for (uint32_t i = 0; i < 4000; i++) {
        const netloom_message message = {i, 100 * (i % 50), i % 2 ? NETLOOM_NOW : 1000 * i, i % 16, (i / 16) % 16, 0};
        messages[i] = message;
    }
    uint64_t ends[2] = {0, 0};
    CHECK(netloom_start_many(sims[0], NULL, 1) == -1 && strstr(netloom_error(), "messages: expected 1 messages, found NULL"));
    for (int i = 0; i < 2; i++) {
        CHECK(sims[i] && netloom_set_reaction(sims[i], 10000) == 0);
        CHECK(netloom_report_acknowledged(sims[i]) == 0);
        CHECK(netloom_start_many(sims[i], NULL, 0) == 0);
        messages[3999].dst = 16;
        CHECK(netloom_start_many(sims[i], messages, 4000) == -1);
        CHECK(strcmp(netloom_error(), "messages[3999].dst: expected a host from 0 to 15, found 16") == 0);
        messages[3999].dst = 9;
        CHECK(netloom_start_many(sims[i], messages, 4000) == 0);
        CHECK(netloom_report_acknowledged(sims[i]) == -1 && strstr(netloom_error(), "before flows start"));
        netloom_completion arrival;
        CHECK(netloom_next_completion(sims[i], NETLOOM_FOREVER, &arrival) == -1 && strstr(netloom_error(), "netloom_next_event"));
        CHECK(netloom_next_event(sims[i], NETLOOM_FOREVER, NULL) == -1);
    }
    /* In turn. */
    for (int events = 0; events < 8000; events++) {
        static char has_arrived[2][4000], is_acknowledged[2][4000];
        for (int i = 0; i < 2; i++) {
            netloom_event event;
            CHECK(netloom_next_event(sims[i], NETLOOM_FOREVER, &event) == 1 && event.tag < 4000 && event.reserved == 0);
            const netloom_message *message = &messages[event.tag];
            CHECK(event.size == message->size && event.src == message->src && event.dst == message->dst);
            CHECK(event.start_ps == (message->start_ps == NETLOOM_NOW ? 0 : message->start_ps));
            CHECK(event.time_ps >= ends[i] && netloom_now(sims[i]) == event.time_ps);
            CHECK(netloom_earliest_start(sims[i]) == event.time_ps + 10000);
            if (event.src == event.dst)
                CHECK(event.time_ps == event.start_ps);
            ends[i] = event.time_ps;
            if (event.kind == NETLOOM_ARRIVED) {
                CHECK(!has_arrived[i][event.tag]);
                has_arrived[i][event.tag] = 1;
            } else {
                CHECK(event.kind == NETLOOM_ACKNOWLEDGED && has_arrived[i][event.tag] && !is_acknowledged[i][event.tag]);
                is_acknowledged[i][event.tag] = 1;
            }
        }
        CHECK(ends[0] == ends[1]);
    }
    for (int i = 0; i < 2; i++) {
        netloom_event event;
        CHECK(netloom_next_event(sims[i], NETLOOM_FOREVER, &event) == 0);
        CHECK(netloom_finish(sims[i], NULL) == 0);
        netloom_close(sims[i]);
    }
}

int main(int argc, char **argv) {
    CHECK(argc == 4);
    refusals();
    both_ends();
    netloom_simulation *sim = netloom_open_file(argv[1]);
    CHECK(sim);
    const uint32_t hosts = netloom_hosts(sim);
    CHECK(hosts == 16 && netloom_now(sim) == 0);
    const uint64_t reaction = strtoull(argv[3], NULL, 10);
    CHECK(netloom_set_threads(sim, 2) == -1 && strstr(netloom_error(), "threads: expected 1 without a reaction time"));
    CHECK(netloom_set_reaction(sim, reaction) == 0);
    if (reaction)
        CHECK(netloom_set_threads(sim, 2) == 0);

    /* Two of the requests later than the others. */
    for (uint32_t host = 1; host < hosts; host++) {
        if (host < 3)
            CHECK(netloom_start_at(sim, host, 0, 30000 + 777 * host, host, 3000000, 0) == 0);
        else
            CHECK(netloom_start(sim, host, 0, 30000 + 777 * host, host) == 0);
    }
    CHECK(netloom_start(sim, 0, hosts, 1, 0) == -1 && strstr(netloom_error(), "dst: expected a host from 0 to 15"));
    CHECK(netloom_start_at(sim, 0, 1, 1, 0, 0, 9) == -1 && strstr(netloom_error(), "traffic_class"));

    CHECK(netloom_run_until(sim, 1000000) == 0 && netloom_now(sim) == 1000000);
    CHECK(netloom_start_at(sim, 0, 1, 1, 0, 999999, 0) == -1 && strstr(netloom_error(), "at: expected"));
    netloom_completion done;
    CHECK(netloom_next_completion(sim, 1000000, &done) == 0);
    CHECK(netloom_next_completion(sim, NETLOOM_FOREVER, NULL) == -1);
    int found;
    while ((found = netloom_next_completion(sim, NETLOOM_FOREVER, &done)) == 1) {
        printf("%u %u %llu %llu %llu %llu\n", done.src, done.dst, (unsigned long long)done.size,
               (unsigned long long)done.tag, (unsigned long long)done.start_ps, (unsigned long long)done.time_ps);
        CHECK(done.time_ps == netloom_now(sim));
        if (reaction) {
            CHECK(netloom_start_at(sim, 0, 1, 1, 0, done.time_ps + reaction - 1, 0) == -1);
            CHECK(strstr(netloom_error(), "after the last completion at"));
        }
        if (done.tag < 100)
            CHECK(netloom_start(sim, 0, done.src, 5000 + 1000 * done.src, 100 + done.tag) == 0);
    }
    CHECK(found == 0);
    CHECK(netloom_finish(sim, "/dev/null/nowhere") == -1);
    CHECK(netloom_finish(sim, argv[2]) == 0);
    CHECK(netloom_finish(sim, NULL) == -1 && strstr(netloom_error(), "the run has ended"));
    CHECK(netloom_run_until(sim, NETLOOM_FOREVER) == -1);
    netloom_close(sim);
    return 0;
}
