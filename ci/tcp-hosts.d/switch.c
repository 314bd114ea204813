/* The switch of ci/tcp-hosts --faults: joins tap interfaces port0 to portN-1, and loses, delays and
 * reorders frames of each port as it is told.
 *
 *   switch PORTS FIFO
 *
 * Each line of FIFO is "ANSWER FAULT PORT VALUE": FAULT is loss (percent), delay, jitter (milliseconds), cut, sever (from
 * the port VALUE alone), reset (VALUE is a TCP port, and 65536 times a number of bytes) or heal. It
 * holds for frames that enter and leave by PORT. The file ANSWER gets "done" when it does. After a reset the next frame with
 * at least so many bytes of data of a TCP connection over IPv4, but of those with port 22 or that port, is lost, and both
 * ends of its connection get a RST each, as from a firewall that has forgotten the connection. A frame
 * goes to the port of its target's address, once a frame from there was seen, and else to all others. A frame of two
 * ports with faults meets both. Frames with equal delay keep their order; with jitter they do not.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { PORTS = 26, FRAME = 2048, QUEUE = 20000, STATIONS = 256 };

struct wire {
    double loss, delay, jitter; /* chance, nanoseconds */
    int cut;
    uint32_t severed; /* a bit for each port that it does not reach */
    int resets, spared, least; /* connections to be reset, the TCP port of those that are not, and the least data */
};
struct frame {
    uint64_t due, number;
    int to, length;
    unsigned char bytes[FRAME];
};

static int ports, taps[PORTS], fifo;
static struct wire wires[PORTS];
/* A heap, the earliest first. */
static struct frame *queue[QUEUE];
static int queued;
static struct {
    unsigned char address[6];
    int port;
} stations[STATIONS];
static int known;

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static int earlier(const struct frame *a, const struct frame *b) {
    return a->due != b->due ? a->due < b->due : a->number < b->number;
}

static void push(struct frame *frame) {
    int at = queued++;
    for (; at > 0 && earlier(frame, queue[(at - 1) / 2]); at = (at - 1) / 2) queue[at] = queue[(at - 1) / 2];
    queue[at] = frame;
}

static struct frame *pop(void) {
    struct frame *first = queue[0], *last = queue[--queued];
    int at = 0;
    for (;;) {
        int child = 2 * at + 1;
        if (child >= queued) break;
        if (child + 1 < queued && earlier(queue[child + 1], queue[child])) child++;
        if (!earlier(queue[child], last)) break;
        queue[at] = queue[child];
        at = child;
    }
    queue[at] = last;
    return first;
}

static int open_tap(int k) {
    struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI};
    int tap = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (tap < 0) fail("/dev/net/tun");
    snprintf(request.ifr_name, sizeof request.ifr_name, "port%d", k);
    if (ioctl(tap, TUNSETIFF, &request) < 0) fail(request.ifr_name);
    return tap;
}

/* The port of a station, or -1. */
static int port_of(const unsigned char *address) {
    for (int i = 0; i < known; i++)
        if (!memcmp(stations[i].address, address, 6)) return stations[i].port;
    return -1;
}

static int lost(const struct wire *wire) { return wire->cut || drand48() < wire->loss; }

static unsigned word16(const unsigned char *bytes) { return (unsigned)bytes[0] << 8 | bytes[1]; }

static unsigned add(unsigned sum, const unsigned char *bytes, int length) {
    for (int i = 0; i < length; i += 2) sum += word16(bytes + i);
    return sum;
}

static void seal(unsigned char *at, unsigned sum) {
    while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
    at[0] = (unsigned char)(~sum >> 8);
    at[1] = (unsigned char)~sum;
}

/* The offsets in a frame of TCP over IPv4 without options. */
enum { IP = 14, FROM = 26, TCP = 34, FLAGS = TCP + 13, RESET = TCP + 20 };

/* Whether a frame has data of a connection that a wire resets. */
static int is_to_reset(const struct wire *wire, const unsigned char *bytes, int length) {
    if (!wire->resets || length < RESET || word16(bytes + 12) != 0x0800 || bytes[IP] != 0x45 || bytes[IP + 9] != 6)
        return 0;
    int data = (int)word16(bytes + IP + 2) - 20 - (bytes[TCP + 12] >> 4) * 4;
    int one = (int)word16(bytes + TCP), other = (int)word16(bytes + TCP + 2);
    int spared = one == 22 || other == 22 || one == wire->spared || other == wire->spared;
    return data > 0 && data >= wire->least && !(bytes[FLAGS] & 2) && !spared;
}

static void send_to(int from, int to, const unsigned char *bytes, int length);

/* Sends the RST that a frame's receiver takes for its sender's, and the other way round. */
static void send_resets(int from, int to, const unsigned char *bytes) {
    for (int back = 0; back < 2; back++) {
        unsigned char reset[RESET];
        memcpy(reset, bytes, RESET);
        if (back) {
            memcpy(reset, bytes + 6, 6), memcpy(reset + 6, bytes, 6);
            memcpy(reset + FROM, bytes + FROM + 4, 4), memcpy(reset + FROM + 4, bytes + FROM, 4);
            memcpy(reset + TCP, bytes + TCP + 2, 2), memcpy(reset + TCP + 2, bytes + TCP, 2);
            memcpy(reset + TCP + 4, bytes + TCP + 8, 4);
        }
        reset[IP + 2] = 0, reset[IP + 3] = 40;
        memset(reset + IP + 10, 0, 2);
        seal(reset + IP + 10, add(0, reset + IP, 20));
        memset(reset + TCP + 8, 0, 12);
        reset[TCP + 12] = 5 << 4;
        reset[FLAGS] = 4;
        seal(reset + TCP + 16, add(6 + 20, reset + FROM, 28));
        send_to(back ? to : from, back ? from : to, reset, RESET);
    }
}

static void send_to(int from, int to, const unsigned char *bytes, int length) {
    static uint64_t number;
    struct wire *in = &wires[from], *out = &wires[to];
    if (lost(in) || lost(out) || in->severed >> to & 1 || queued == QUEUE) return;
    struct wire *resets = is_to_reset(in, bytes, length) ? in : is_to_reset(out, bytes, length) ? out : NULL;
    if (resets) {
        resets->resets--;
        send_resets(from, to, bytes);
        return;
    }
    struct frame *frame = malloc(sizeof *frame);
    if (!frame) fail("memory");
    frame->due = now() + (uint64_t)(in->delay + out->delay + in->jitter * drand48() + out->jitter * drand48());
    frame->number = number++;
    frame->to = to;
    frame->length = length;
    memcpy(frame->bytes, bytes, (size_t)length);
    push(frame);
}

static void receive(int from) {
    unsigned char bytes[FRAME];
    /* A few at once, so that no port holds up the others. */
    for (int i = 0; i < 64; i++) {
        int length = (int)read(taps[from], bytes, sizeof bytes);
        if (length < 14) return;
        if (port_of(bytes + 6) < 0 && known < STATIONS) {
            memcpy(stations[known].address, bytes + 6, 6);
            stations[known++].port = from;
        }
        int to = bytes[0] & 1 ? -1 : port_of(bytes);
        for (int k = 0; k < ports; k++)
            if (k != from && (to < 0 || to == k)) send_to(from, k, bytes, length);
    }
}

/* Ethernet itself may lose a frame: one that an interface refuses is lost. */
static void deliver(void) {
    while (queued && queue[0]->due <= now()) {
        struct frame *frame = pop();
        if (!wires[frame->to].cut && write(taps[frame->to], frame->bytes, (size_t)frame->length) < 0 && errno == EBADFD)
            fail("port");
        free(frame);
    }
}

static const char *obey(const char *fault, int port, double value) {
    if (port < 0 || port >= ports) return "no such port";
    struct wire *wire = &wires[port];
    if (!strcmp(fault, "loss")) wire->loss = value / 100;
    else if (!strcmp(fault, "delay")) wire->delay = value * 1e6;
    else if (!strcmp(fault, "jitter")) wire->jitter = value * 1e6;
    else if (!strcmp(fault, "cut")) wire->cut = 1;
    else if (!strcmp(fault, "sever") && value >= 0 && value < ports) {
        wire->severed |= 1u << (int)value;
        wires[(int)value].severed |= 1u << port;
    } else if (!strcmp(fault, "reset")) {
        wire->resets++;
        wire->spared = (int)((long)value % 65536);
        wire->least = (int)((long)value / 65536);
    } else if (!strcmp(fault, "heal")) {
        *wire = (struct wire){0};
        for (int k = 0; k < ports; k++) wires[k].severed &= ~(1u << port);
    }
    else return "no such fault";
    return "done";
}

static void command(void) {
    static char text[4096];
    static size_t length;
    ssize_t got = read(fifo, text + length, sizeof text - 1 - length);
    if (got > 0) length += (size_t)got;
    text[length] = 0;
    for (char *end; (end = strchr(text, '\n')); length -= (size_t)(end + 1 - text), memmove(text, end + 1, length + 1)) {
        char answer[256], fault[16];
        int port;
        double value;
        *end = 0;
        if (sscanf(text, "%255s %15s %d %lf", answer, fault, &port, &value) != 4) continue;
        const char *said = obey(fault, port, value);
        int to = open(answer, O_WRONLY | O_CLOEXEC);
        if (to >= 0) {
            dprintf(to, "%s\n", said);
            close(to);
        }
    }
    if (length == sizeof text - 1) length = 0;
}

int main(int argc, char **argv) {
    struct pollfd polled[PORTS + 1];
    ports = argc == 3 ? atoi(argv[1]) : 0;
    if (ports < 1 || ports > PORTS) {
        fprintf(stderr, "usage: switch PORTS FIFO\n");
        return 2;
    }
    /* Open for writing, too: the FIFO has no end. */
    fifo = open(argv[2], O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (fifo < 0) fail(argv[2]);
    for (int k = 0; k < ports; k++) {
        taps[k] = open_tap(k);
        polled[k] = (struct pollfd){.fd = taps[k], .events = POLLIN};
    }
    polled[ports] = (struct pollfd){.fd = fifo, .events = POLLIN};
    for (;;) {
        struct timespec wait = {.tv_sec = 3600}, *limit = &wait;
        if (queued) {
            uint64_t at = now(), left = queue[0]->due > at ? queue[0]->due - at : 0;
            wait = (struct timespec){.tv_sec = (time_t)(left / 1000000000u), .tv_nsec = (long)(left % 1000000000u)};
        }
        if (ppoll(polled, (nfds_t)ports + 1, limit, NULL) < 0 && errno != EINTR) fail("ppoll");
        for (int k = 0; k < ports; k++)
            if (polled[k].revents & POLLIN) receive(k);
        if (polled[ports].revents & POLLIN) command();
        deliver();
    }
}
