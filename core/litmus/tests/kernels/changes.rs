//! The changes of the header, and of the host's side, that programs have to notice.

/// One change of the header: a piece of its text, and the one in its place.
pub struct Change {
    /// The part of the header, by a piece of text that it has once; the change is behind that.
    pub part: &'static str,
    pub from: &'static str,
    /// The places of `from` behind the part that are passed over.
    pub nth: usize,
    /// Nothing leaves a statement out.
    pub to: &'static str,
    pub name: &'static str,
}

const fn change(
    name: &'static str,
    part: &'static str,
    (from, nth): (&'static str, usize),
    to: &'static str,
) -> Change {
    Change {
        part,
        from,
        nth,
        to,
        name,
    }
}

const SYNC: &str = "scope.sync();";
const FENCE: &str = "words::fence_all();";

pub const CHANGES: &[Change] = &[
    // The instructions themselves.
    change(
        "loads acquire nothing",
        "#if OXSHMEM_PTX\n\n#define",
        (r#""ld.acquire.sys.u" bits " %0, [%1];""#, 0),
        r#""ld.relaxed.sys.u" bits " %0, [%1];""#,
    ),
    change(
        "loads acquire within the GPU",
        "#if OXSHMEM_PTX\n\n#define",
        (r#""ld.acquire.sys.u" bits " %0, [%1];""#, 0),
        r#""ld.acquire.gpu.u" bits " %0, [%1];""#,
    ),
    change(
        "stores release nothing",
        "#if OXSHMEM_PTX\n\n#define",
        (r#""st.release.sys.u" bits " [%0], %1;""#, 0),
        r#""st.relaxed.sys.u" bits " [%0], %1;""#,
    ),
    change(
        "stores release within the GPU",
        "#if OXSHMEM_PTX\n\n#define",
        (r#""st.release.sys.u" bits " [%0], %1;""#, 0),
        r#""st.release.gpu.u" bits " [%0], %1;""#,
    ),
    change(
        "relaxed loads within the GPU",
        "#if OXSHMEM_PTX\n\n#define",
        (r#""ld.relaxed.sys.u" bits " %0, [%1];""#, 0),
        r#""ld.relaxed.gpu.u" bits " %0, [%1];""#,
    ),
    change(
        "relaxed stores within the GPU",
        "#if OXSHMEM_PTX\n\n#define",
        (r#""st.relaxed.sys.u" bits " [%0], %1;""#, 0),
        r#""st.relaxed.gpu.u" bits " [%0], %1;""#,
    ),
    change(
        "fetching atomics within the GPU",
        "#if OXSHMEM_PTX\n\n#define",
        (r#""atom.relaxed.sys." instruction " %0, [%1], %2;""#, 0),
        r#""atom.relaxed.gpu." instruction " %0, [%1], %2;""#,
    ),
    change(
        "compare-and-swap within the GPU",
        "#if OXSHMEM_PTX\n\n#define",
        (r#""atom.relaxed.sys.cas.b" bits " %0, [%1], %2, %3;""#, 0),
        r#""atom.relaxed.gpu.cas.b" bits " %0, [%1], %2, %3;""#,
    ),
    change(
        "other atomics within the GPU",
        "#if OXSHMEM_PTX\n\n#define",
        (r#""red." instruction " [%0], %1;""#, 0),
        r#""!" "red." instruction " [%0], %1;""#,
    ),
    change(
        "no fence",
        "void fence_all() { asm",
        (r#""fence.acq_rel.sys;""#, 0),
        r#""fence.acq_rel.cta;""#,
    ),
    change(
        "fences within the GPU",
        "void fence_all() { asm",
        (r#""fence.acq_rel.sys;""#, 0),
        r#""fence.acq_rel.gpu;""#,
    ),
    change(
        "sequential fences that are not",
        "void fence_sequential() { asm",
        (r#""fence.sc.sys;""#, 0),
        r#""fence.acq_rel.sys;""#,
    ),
    change(
        "sequential fences within the GPU",
        "void fence_sequential() { asm",
        (r#""fence.sc.sys;""#, 0),
        r#""fence.sc.gpu;""#,
    ),
    // spin.cuh
    change(
        "waits for counters acquire nothing",
        "struct AtLeast {",
        ("words::load_acquire(word)", 0),
        "words::load_relaxed(word)",
    ),
    // inbox.cuh
    change(
        "inbox: an errand is read early",
        "void serve(Inbox* inbox) {",
        ("words::load_acquire(inbox->posted)", 0),
        "words::load_relaxed(inbox->posted)",
    ),
    change(
        "inbox: an older counter is taken for errands",
        "void serve(Inbox* inbox) {",
        ("(i64)(words::load_acquire(inbox->posted) - next) > 0", 0),
        "words::load_acquire(inbox->posted) != next",
    ),
    change(
        "inbox: no fence before an atomic",
        "void serve(Inbox* inbox) {",
        (FENCE, 0),
        "",
    ),
    change(
        "inbox: an answer is told early",
        "void serve(Inbox* inbox) {",
        ("words::store_release(&errand->done, ++next);", 0),
        "words::store_relaxed(&errand->done, ++next);",
    ),
    // ring.cuh
    change(
        "ring: no credit is asked for",
        "u64 post_words(u64 head",
        ("!has_credit(ring, ticket - mask)", 0),
        "false",
    ),
    change(
        "ring: credit is acquired by nobody",
        "bool has_credit(const Ring* ring",
        ("spin::AtLeast{ring->credit, wanted}()", 0),
        "((i64)(words::load_relaxed(ring->credit) - wanted) >= 0)",
    ),
    change(
        "ring: credit is passed on without a release",
        "bool ask_for_credit(const Ring* ring",
        (
            "words::store_release(ring->credit, words::load_acquire(ring->taken));",
            0,
        ),
        "words::store_relaxed(ring->credit, words::load_acquire(ring->taken));",
    ),
    change(
        "ring: newer credit is passed on without an acquire",
        "bool ask_for_credit(const Ring* ring",
        ("words::load_acquire(ring->taken)", 0),
        "words::load_relaxed(ring->taken)",
    ),
    change(
        "ring: a request is told early",
        "u64 post_words(u64 head",
        ("words::store_release(slot + 7, ticket + 1);", 0),
        "words::store_relaxed(slot + 7, ticket + 1);",
    ),
    change(
        "ring: a source is awaited without an acquire",
        "void await_source(u64 ticket)",
        (
            "spin::until_at_least(oxshmem_state.ring->sources_read, ticket + 1)",
            0,
        ),
        "spin::until([&] { return (i64)(words::load_relaxed(oxshmem_state.ring->sources_read) - (ticket + 1)) >= 0; })",
    ),
    change(
        "ring: completion is awaited without an acquire",
        "void await_done(u64 ticket)",
        (
            "spin::until_at_least(oxshmem_state.ring->done, ticket + 1)",
            0,
        ),
        "spin::until([&] { return (i64)(words::load_relaxed(oxshmem_state.ring->done) - (ticket + 1)) >= 0; })",
    ),
    change(
        "ring: an answer is read early",
        "struct AnswerIs {",
        ("words::load_acquire(&answer->ticket)", 0),
        "words::load_relaxed(&answer->ticket)",
    ),
    change(
        "ring: an answer's place is freed early",
        "u64 await_answer(u64 ticket)",
        ("words::store_release(&answer->ticket, (u64)0);", 0),
        "words::store_relaxed(&answer->ticket, (u64)0);",
    ),
    // rma.cuh
    change(
        "put: no meeting before it",
        "void put(Scope scope, u32 call",
        (SYNC, 0),
        "",
    ),
    change(
        "put: no meeting behind it",
        "void put(Scope scope, u32 call",
        (SYNC, 1),
        "",
    ),
    change(
        "put: no wait for the source",
        "void put(Scope scope, u32 call",
        (
            "if (ticket && is_blocking) ring::await_source(ticket - 1);",
            0,
        ),
        "",
    ),
    change(
        "get: no meeting before it",
        "void get(Scope scope, void* dest",
        (SYNC, 0),
        "",
    ),
    change(
        "get: no meeting behind it",
        "void get(Scope scope, void* dest",
        (SYNC, 1),
        "",
    ),
    change(
        "iput: no meeting before it",
        "void iput(Scope scope, T* dest",
        (SYNC, 0),
        "",
    ),
    change(
        "iput: no meeting behind it",
        "void iput(Scope scope, T* dest",
        (SYNC, 1),
        "",
    ),
    change(
        "iput: no wait for the source",
        "void iput(Scope scope, T* dest",
        ("if (ticket) ring::await_source(ticket - 1);", 0),
        "",
    ),
    change(
        "iget: no meeting before it",
        "void iget(Scope scope, T* dest",
        (SYNC, 0),
        "",
    ),
    change(
        "iget: no meeting behind it",
        "void iget(Scope scope, T* dest",
        (SYNC, 1),
        "",
    ),
    // order.cuh
    change("fence: no fence", "void fence() {", (FENCE, 0), ""),
    change(
        "fence: no marker in the ring",
        "void fence() {",
        ("if (ring::is_busy()) ring::post_order(ring::OP_FENCE);", 0),
        "",
    ),
    change(
        "quiet: no request in the ring",
        "void quiet() {",
        (
            "if (ring::is_busy()) ring::await_done(ring::post_order(ring::OP_QUIET));",
            0,
        ),
        "",
    ),
    change(
        "quiet: a fence in the ring alone",
        "void quiet() {",
        ("ring::await_done(ring::post_order(ring::OP_QUIET))", 0),
        "(void)ring::post_order(ring::OP_FENCE)",
    ),
    change(
        "quiet: no fence",
        "void quiet() {",
        ("words::fence_sequential();", 0),
        "",
    ),
    change(
        "quiet: a fence that is not sequential",
        "void quiet() {",
        ("words::fence_sequential();", 0),
        FENCE,
    ),
    change(
        "flush: no wait",
        "void flush() {",
        (
            "if (ring) spin::until_at_least(ring->sources_read, words::load_relaxed((const u64*)ring->head));",
            0,
        ),
        "",
    ),
    // atomic.cuh
    change(
        "put_signal: no meeting before it",
        "void put_signal(Scope scope, void* dest",
        (SYNC, 0),
        "",
    ),
    change(
        "put_signal: no meeting before the signal",
        "void put_signal(Scope scope, void* dest",
        (SYNC, 1),
        "",
    ),
    change(
        "put_signal: no meeting behind it",
        "void put_signal(Scope scope, void* dest",
        (SYNC, 2),
        "",
    ),
    change(
        "put_signal: an addition that releases nothing",
        "void put_signal(Scope scope, void* dest",
        ("words::add_release(at, value);", 0),
        "words::add(at, value);",
    ),
    change(
        "put_signal: a store that releases nothing",
        "void put_signal(Scope scope, void* dest",
        ("words::store_release(at, value);", 0),
        "words::store_relaxed(at, value);",
    ),
    change(
        "put_signal: no wait for the source",
        "void put_signal(Scope scope, void* dest",
        ("if (is_blocking) ring::await_source(ticket);", 0),
        "",
    ),
    // wait.cuh
    change(
        "waits: no fence",
        "OXSHMEM_DEVICE void acquire() {",
        (FENCE, 0),
        "",
    ),
    change(
        "waits: no flush",
        "OXSHMEM_DEVICE void acquire() {",
        ("ring::await_done(ring::post_order(ring::OP_FLUSH));", 0),
        "",
    ),
    change(
        "wait_until_all acquires nothing",
        "void wait_all(const Set<T>& set)",
        ("acquire();", 0),
        "",
    ),
    change(
        "wait_until_any acquires nothing",
        "size_t wait_any(const Set<T>& set)",
        ("acquire();", 0),
        "",
    ),
    change(
        "wait_until_some acquires nothing",
        "size_t wait_some(const Set<T>& set",
        ("acquire();", 0),
        "",
    ),
    change(
        "test_all acquires nothing",
        "int test_all(const Set<T>& set)",
        ("acquire();", 0),
        "",
    ),
    change(
        "test_any acquires nothing",
        "size_t test_any(const Set<T>& set)",
        ("acquire();", 0),
        "",
    ),
    change(
        "test_some acquires nothing",
        "size_t test_some(const Set<T>& set",
        ("acquire();", 0),
        "",
    ),
    change(
        "wait_until acquires nothing",
        "T wait(const T* word, Compare compare",
        ("acquire();", 0),
        "",
    ),
    change(
        "test acquires nothing",
        "int test(const T* word, Compare compare",
        ("waits::acquire();", 0),
        "",
    ),
    change(
        "signal_fetch acquires nothing",
        "u64 signal_fetch(const Signal* signal)",
        ("waits::acquire();", 0),
        "",
    ),
    // team.cuh
    change(
        "tell: no meeting before the marker",
        "void tell(Scope scope, const Team* team",
        (SYNC, 0),
        "",
    ),
    change(
        "tell: no marker in the ring",
        "void tell(Scope scope, const Team* team",
        (
            "if (scope.rank() == 0 && ring::is_busy()) ring::post_order(ring::OP_FENCE);",
            0,
        ),
        "",
    ),
    change(
        "tell: no meeting behind the marker",
        "void tell(Scope scope, const Team* team",
        (SYNC, 1),
        "",
    ),
    change(
        "tell: a store that releases nothing",
        "void tell(Scope scope, const Team* team",
        ("words::store_release(rma::in_heap(heap, word), epoch);", 0),
        "words::store_relaxed(rma::in_heap(heap, word), epoch);",
    ),
    change(
        "tell: no wait for sources",
        "void tell(Scope scope, const Team* team",
        ("if (scope.rank() == 0) flush();", 0),
        "",
    ),
    change(
        "hear: an acquire less",
        "void hear(const Team* team",
        ("spin::until_at_least(team->words + i, epoch)", 0),
        "spin::until([&] { return (i64)(words::load_relaxed(team->words + i) - epoch) >= 0; })",
    ),
    change(
        "hear_all: no meeting",
        "void hear_all(Scope scope, const Team* team",
        (SYNC, 0),
        "",
    ),
    change(
        "hear_all: no flush",
        "void hear_all(Scope scope, const Team* team",
        ("if (scope.rank() == 0) waits::acquire();", 0),
        "",
    ),
    change(
        "hear_all: no meeting behind the flush",
        "void hear_all(Scope scope, const Team* team",
        (SYNC, 1),
        "",
    ),
    change(
        "a call's number is changed before all have read it",
        "InCall(Scope scope, Team* team) : scope",
        (SYNC, 0),
        "",
    ),
    change(
        "a call ends without a meeting",
        "void end(bool has_met) {",
        (SYNC, 0),
        "",
    ),
    change(
        "barrier: no meeting before the quiet",
        "int barrier(Scope scope, team_t team) {",
        (SYNC, 0),
        "",
    ),
    change(
        "barrier: no quiet",
        "int barrier(Scope scope, team_t team) {",
        ("if (scope.rank() == 0) quiet();", 0),
        "",
    ),
    // collective.cuh
    change(
        "scratch: its state is changed before all have read it",
        "void begin() {",
        ("call.scope.sync();", 0),
        "",
    ),
    change(
        "scratch: a half is used again at once",
        "void begin() {",
        ("used != 0 && met <= used", 0),
        "false",
    ),
    change(
        "scratch: no meeting in which all have heard of all",
        "void meet() {",
        ("call.scope.sync();", 0),
        "",
    ),
    change(
        "fold: no meeting behind it",
        "void fold(const Scratch<Scope>& scratch",
        (SYNC, 0),
        "",
    ),
    change(
        "broadcast: the others acquire nothing",
        "int broadcast(Scope scope, team_t team",
        ("waits::acquire();", 0),
        "",
    ),
    change(
        "broadcast: the others do not meet",
        "int broadcast(Scope scope, team_t team",
        (SYNC, 0),
        "",
    ),
    change(
        "reduce: no meeting before a round",
        "void fold_all(teams::InCall<Scope>& call",
        ("call.scope.sync();", 0),
        "",
    ),
];
