// Requests to the host's progress thread, for PEs whose memory is not mapped for this GPU. One ring for a GPU; its
// requests are begun in the order of their tickets.
//
// A PE is reached in one way only: all by loads and stores, or all by the ring. So the order towards one PE (M17, G3)
// is kept within one way.
#pragma once

#include "lanes.cuh"
#include "spin.cuh"

namespace oxshmem {
namespace ring {

// In the order of `Operation` in core/device/src/ring.rs.
enum Operation : u32 {
    OP_PUT,
    OP_PUT_VALUE,
    OP_GET,
    OP_GET_VALUE,
    OP_PUT_SIGNAL,
    OP_SIGNAL,
    OP_FETCH,
    OP_SET,
    OP_SWAP,
    OP_COMPARE_SWAP,
    OP_ADD,
    OP_FETCH_ADD,
    OP_AND,
    OP_FETCH_AND,
    OP_OR,
    OP_FETCH_OR,
    OP_XOR,
    OP_FETCH_XOR,
    OP_FENCE,
    OP_QUIET,
    OP_FLUSH,
};

struct Request {
    u32 operation;
    u32 width;       // bytes of a word; or the signal's operation; or whether a put or get is waited for
    u32 pe;
    u64 remote;      // offset in the heap there
    u64 local;       // address here: source of a put, destination of a get
    u64 bytes;
    u64 value;
    u64 compare;     // or the signal's offset
};

OXSHMEM_DEVICE u64 offset_of(const void* symmetric) { return (u64)symmetric - (u64)oxshmem_state.heap; }

// Waits until the host has read so many requests, whose slots are free then. Threads that find the credit used up ask the host; the
// answer serves all later ones. False if the wait was ended.
OXSHMEM_OUTLINE bool ask_for_credit(const Ring* ring, u64 wanted) {
    if (!spin::until_at_least(ring->taken, wanted)) return false;
    words::store_release(ring->credit, words::load_acquire(ring->taken));
    return true;
}
OXSHMEM_DEVICE bool has_credit(const Ring* ring, u64 wanted) {
    return spin::AtLeast{ring->credit, wanted}() || ask_for_credit(ring, wanted);
}

// The head of a request: its operation, width and PE, and how many lanes' requests of values are joined to it.
OXSHMEM_DEVICE u64 head_of(u32 operation, u32 width, u32 pe) { return (u64)operation | (u64)width << 8 | (u64)pe << 32; }
OXSHMEM_DEVICE u64 joined(u32 more) { return (u64)more << 16; }

// A ticket for each of some lanes, taken by the first one; gives the first ticket.
OXSHMEM_DEVICE u64 take_tickets(Ring* ring, const Lanes& lanes) {
    u64 first = 0;
    if (lanes.rank == 0) first = words::fetch_add(ring->head, (u64)lanes.count());
    first = lanes.of_first(first);
    // Each of them may ask at once whether the GPU has queued anything.
    lanes.sync();
    return first;
}

// Whether all lanes ask for neighbouring words of one PE, by the same operation on values.
OXSHMEM_DEVICE bool are_neighbours(const Lanes& lanes, u64 head, u64 remote) {
    const u32 operation = (u32)head & 0xff, width = (u32)(head >> 8) & 0xff;
    const u64 first_head = lanes.of_first(head), first_remote = lanes.of_first(remote);
    const bool follows = head == first_head && remote == first_remote + lanes.rank * width;
    return lanes.all_say(follows && (operation == OP_PUT_VALUE || operation == OP_GET_VALUE));
}

// Queues a request; gives its ticket. The release orders before it what this thread, and a barrier of its
// group, did before.
//
// Lanes that post at the same time take their tickets together, and all wait for room for the last one: until the host has read a
// request of a lap before it. That is older than every ticket of theirs, so none waits for a request that it holds back. Requests for
// neighbouring values become one, the first lane's. The slots of the others have the value at most.
OXSHMEM_OUTLINE u64 post_words(u64 head, u64 remote, u64 local, u64 bytes, u64 value, u64 compare) {
    Ring* ring = oxshmem_state.ring;
    const Lanes lanes = Lanes::now();
    const u64 mask = ring->mask, first = take_tickets(ring, lanes), ticket = first + lanes.rank;
    const u32 more = lanes.count() - 1;
    // A wait that was ended for one of them ends for all.
    if (!lanes.all_say(has_credit(ring, first + more - mask))) return ticket;
    u64* slot = ring->slots[ticket & mask].words;
    if (more && are_neighbours(lanes, head, remote)) {
        if (lanes.rank != 0 && (head & 0xff) == OP_PUT_VALUE) words::store_relaxed(slot + 4, value);
        lanes.sync();
        if (lanes.rank != 0) return ticket;
        head |= joined(more);
    }
    words::store_pair_relaxed(slot, head, remote);
    words::store_pair_relaxed(slot + 2, local, bytes);
    words::store_pair_relaxed(slot + 4, value, compare);
    words::store_release(slot + 7, ticket + 1);
    return ticket;
}
OXSHMEM_DEVICE u64 post(const Request& request) {
    const u64 head = head_of(request.operation, request.width, request.pe);
    return post_words(head, request.remote, request.local, request.bytes, request.value, request.compare);
}

OXSHMEM_DEVICE void await_source(u64 ticket) { spin::until_at_least(oxshmem_state.ring->sources_read, ticket + 1); }
OXSHMEM_DEVICE void await_done(u64 ticket) { spin::until_at_least(oxshmem_state.ring->done, ticket + 1); }

// Waits until the sources of all requests may be changed.
OXSHMEM_DEVICE void await_sources() {
    const Ring* ring = oxshmem_state.ring;
    if (ring) spin::until_at_least(ring->sources_read, words::load_relaxed((const u64*)ring->head));
}

struct AnswerIs {
    const Answer* answer;
    u64 ticket;

    OXSHMEM_MEMBER bool operator()() const { return words::load_acquire(&answer->ticket) == ticket; }
};

// Waits for the word that a request fetches. 0 if the job has failed.
//
// The place of the answer is that of the slot. Whoever used it a lap before frees it when it has read its value.
OXSHMEM_OUTLINE u64 await_answer(u64 ticket) {
    Ring* ring = oxshmem_state.ring;
    Answer* answer = &ring->answers[ticket & ring->mask];
    AnswerIs condition = {answer, ticket + 1};
    if (!spin::until(condition)) return 0;
    const u64 value = words::load_relaxed(&answer->value);
    words::store_release(&answer->ticket, (u64)0);
    return value;
}

OXSHMEM_DEVICE u64 fetch(const Request& request) { return await_answer(post(request)); }

// A request without operands, behind all that were queued before.
OXSHMEM_DEVICE u64 post_order(u32 operation) { return post(Request{operation, 0, 0, 0, 0, 0, 0, 0}); }

// Whether this GPU has queued anything that may not be complete.
OXSHMEM_DEVICE bool is_busy() {
    const Ring* ring = oxshmem_state.ring;
    return ring && words::load_relaxed(ring->done) != words::load_relaxed((const u64*)ring->head);
}

}  // namespace ring
}  // namespace oxshmem
