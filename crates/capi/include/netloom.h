/*
 * netloom from C: a simulated network that another program drives.
 *
 *     netloom_simulation *sim = netloom_open("[topology]\nkind = \"fat-tree\"\nk = 8\n");
 *     if (!sim) { fprintf(stderr, "%s\n", netloom_error()); exit(1); }
 *     netloom_start(sim, 0, 9, 1 << 20, 42);
 *     netloom_completion done;
 *     while (netloom_next_completion(sim, NETLOOM_FOREVER, &done) == 1)
 *         printf("%llu arrived at %llu ps\n", (unsigned long long)done.tag, (unsigned long long)done.time_ps);
 *     netloom_finish(sim, "runs/from-c");
 *     netloom_close(sim);
 *
 * Times are picoseconds from the run's begin, sizes are bytes of payload, hosts (servers, where these have several NICs) go by their
 * numbers from 0. A simulation may be used by any thread, but by one at a time; several simulations are independent of each other. The results are those of `netloom run` with
 * the same flows in a list. docs/c.md says more.
 */
#ifndef NETLOOM_H
#define NETLOOM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A run that is driven. */
typedef struct netloom_simulation netloom_simulation;

/* The last byte of a message has arrived. */
typedef struct netloom_completion {
    uint64_t tag;      /* what netloom_start was given */
    uint64_t size;     /* payload, bytes */
    uint64_t start_ps; /* when the message was handed to the sender */
    uint64_t time_ps;  /* when its last byte arrived */
    uint32_t src;      /* sending host */
    uint32_t dst;      /* receiving host */
} netloom_completion;

/* What happened to a message. */
enum {
    NETLOOM_ARRIVED = 0,     /* its last byte has arrived */
    NETLOOM_ACKNOWLEDGED = 1 /* its last ACK is back at the sender */
};

/* An end of a message: at its receiver or, after netloom_report_acknowledged, at its sender. */
typedef struct netloom_event {
    uint64_t tag;      /* what netloom_start was given */
    uint64_t size;     /* payload, bytes */
    uint64_t start_ps; /* when the message was handed to the sender */
    uint64_t time_ps;  /* when this happened */
    uint32_t src;      /* sending host */
    uint32_t dst;      /* receiving host */
    uint32_t kind;     /* NETLOOM_ARRIVED or NETLOOM_ACKNOWLEDGED */
    uint32_t reserved; /* 0 */
} netloom_event;

/* A message for netloom_start_many. */
typedef struct netloom_message {
    uint64_t tag;          /* what its events will carry */
    uint64_t size;         /* payload, bytes */
    uint64_t start_ps;     /* when it starts; NETLOOM_NOW: as netloom_start has it */
    uint32_t src;          /* sending host */
    uint32_t dst;          /* receiving host */
    uint8_t traffic_class; /* 0 unless the scenario has several */
} netloom_message;

/* As a time: until nothing is left to happen. */
#define NETLOOM_FOREVER UINT64_MAX

/* As the start of a message: at netloom_earliest_start. */
#define NETLOOM_NOW UINT64_MAX

/* Version of the library, such as "0.1.0". */
const char *netloom_version(void);

/* Why the last call on this thread failed, in words; "" if none has. It stays until the next call on this thread. */
const char *netloom_error(void);

/*
 * Makes a simulation from a scenario: its text (TOML; files that it names are looked for in the working directory), or a file. Without a
 * workload nothing is sent but what netloom_start says. NULL if the scenario is wrong; netloom_error() then says where and why.
 */
netloom_simulation *netloom_open(const char *toml);
netloom_simulation *netloom_open_file(const char *path);

/* Number of hosts; 0 for NULL. */
uint32_t netloom_hosts(const netloom_simulation *sim);

/* The instant that the run has come to: everything before it has happened; 0 for NULL. */
uint64_t netloom_now(const netloom_simulation *sim);

/*
 * The program's reaction time: no message starts because of a completion at t before t + reaction_ps. With more than 0 a
 * packet-hop costs a fraction of what it costs otherwise, at any length from a picosecond on, and most from a link's latency on; the results are
 * the same. To be called before messages start and time passes. 0, or -1 on an error.
 */
int netloom_set_reaction(netloom_simulation *sim, uint64_t reaction_ps);

/* The number of threads that run the simulation, 1 unless this is called; after netloom_set_reaction. 0, or -1 on an error. */
int netloom_set_threads(netloom_simulation *sim, uint32_t threads);

/*
 * Asks for two events of every message: its arrival, and when the sender has the last ACK. netloom_next_event then gives them, and
 * netloom_next_completion is an error. To be called before messages start and time passes. 0, or -1 on an error: a transport without ACKs, say.
 */
int netloom_report_acknowledged(netloom_simulation *sim);

/*
 * When a message may start at the earliest: now or, with a reaction time, that long after the last event that was given, but not later than the `until_ps` with which that was asked for. 0 for NULL.
 */
uint64_t netloom_earliest_start(const netloom_simulation *sim);

/*
 * Sends `size` bytes from host `src` to host `dst`: now, or at an instant from now on, in a traffic class (0 unless the scenario has
 * several). With a reaction time "now" is netloom_earliest_start. A message of no bytes is one packet with one byte of payload.
 * A message to the sender itself does not enter the network: it arrives, and is acknowledged, when it starts, and is not in the outcome. 0, or -1 if there
 * is no such host or class, or it is too early.
 */
int netloom_start(netloom_simulation *sim, uint32_t src, uint32_t dst, uint64_t size, uint64_t tag);
int netloom_start_at(netloom_simulation *sim, uint32_t src, uint32_t dst, uint64_t size, uint64_t tag, uint64_t time_ps,
                     uint8_t traffic_class);

/* Sends `count` messages as netloom_start_at does, in the order of the list: all of them or, on an error, which names the first that is wrong, none. 0, or -1. */
int netloom_start_many(netloom_simulation *sim, const netloom_message *messages, size_t count);

/* Lets everything happen that happens before `time_ps`. 0, or -1 on an error. */
int netloom_run_until(netloom_simulation *sim, uint64_t time_ps);

/*
 * The next arrival of a message's last byte, in order of time: lets the run go on to it if need be, but not beyond `until_ps`. 1 and
 * `*completion` is filled; 0 if there is none before `until_ps` (the run has then come to it); -1 on an error.
 */
int netloom_next_completion(netloom_simulation *sim, uint64_t until_ps, netloom_completion *completion);

/* The same for events of all kinds. */
int netloom_next_event(netloom_simulation *sim, uint64_t until_ps, netloom_event *event);

/*
 * Ends the run here, checks that no packet was lost track of, and writes an outcome folder as `netloom run` does, which must not exist
 * yet; nothing is written if `folder` is NULL. Afterwards the simulation can only be closed. 0, or -1 on an error.
 */
int netloom_finish(netloom_simulation *sim, const char *folder);

/* Gives back all that the simulation holds; NULL is allowed. */
void netloom_close(netloom_simulation *sim);

#ifdef __cplusplus
}
#endif

#endif
