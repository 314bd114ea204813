// Requests to the host's progress thread, for PEs whose memory is not mapped for this GPU. One ring for a GPU; its
// requests are begun in the order of their tickets.
//
// A PE is reached in one way only: all by loads and stores, or all by the ring. So the order towards one PE (M17, G3)
// is kept within one way.
#pragma once

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

// Queues a request; gives its ticket. The release orders before it what this thread, and a barrier of its
// group, did before. A thread that waits for room holds a ticket that no earlier one waits for.
OXSHMEM_OUTLINE u64 post_words(u64 head, u64 remote, u64 local, u64 bytes, u64 value, u64 compare) {
    Ring* ring = oxshmem_state.ring;
    const u64 ticket = words::fetch_add(ring->head, (u64)1);
    const u64 mask = ring->mask;
    if (!has_credit(ring, ticket - mask)) return ticket;
    u64* slot = ring->slots[ticket & mask].words;
    words::store_relaxed(slot + 0, head);
    words::store_relaxed(slot + 1, remote);
    words::store_relaxed(slot + 2, local);
    words::store_relaxed(slot + 3, bytes);
    words::store_relaxed(slot + 4, value);
    words::store_relaxed(slot + 5, compare);
    words::store_release(slot + 7, ticket + 1);
    return ticket;
}
OXSHMEM_DEVICE u64 post(const Request& request) {
    const u64 head = (u64)request.operation | (u64)request.width << 8 | (u64)request.pe << 32;
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
    if (!spin::until(AnswerIs{answer, ticket + 1})) return 0;
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
