// Collective calls on data. Each member pushes what others need: by stores to those that are mapped, by the ring to others.
// Every element of a result is folded in the order of members, so that all members get the same bits.
#pragma once

#include "team.cuh"

namespace oxshmem {

// The operations of reductions and scans. A first operand that is NaN stays as least or greatest.
struct Sum {
    template <class T>
    OXSHMEM_DEVICE T of(T a, T b) {
        return a + b;
    }
};
struct Product {
    template <class T>
    OXSHMEM_DEVICE T of(T a, T b) {
        return a * b;
    }
};
struct Min {
    template <class T>
    OXSHMEM_DEVICE T of(T a, T b) {
        return b < a ? b : a;
    }
};
struct Max {
    template <class T>
    OXSHMEM_DEVICE T of(T a, T b) {
        return a < b ? b : a;
    }
};
struct And {
    template <class T>
    OXSHMEM_DEVICE T of(T a, T b) {
        return a & b;
    }
};
struct Or {
    template <class T>
    OXSHMEM_DEVICE T of(T a, T b) {
        return a | b;
    }
};
struct Xor {
    template <class T>
    OXSHMEM_DEVICE T of(T a, T b) {
        return a ^ b;
    }
};

namespace collectives {

// A local copy, by the group.
template <class Scope>
OXSHMEM_DEVICE void keep(Scope scope, void* to, const void* from, u64 bytes) {
    if (to != from) copies::copy<copies::Plain>(scope, (char*)to, (const char*)from, bytes);
}

// The two halves of a team's scratch memory, by turns. A half has a place for each member.
template <class Scope>
struct Scratch {
    teams::InCall<Scope>& call;
    u32 half;

    // Waits, if it is not known yet, until all members have read what was in the half before. All members know
    // alike, so all wait, or none.
    OXSHMEM_MEMBER explicit Scratch(teams::InCall<Scope>& call) : call(call), half((u32)(call.epoch & 1)) { begin(); }
    OXSHMEM_MEMBER void begin() {
        Team* team = call.team;
        const u64 used = words::load_relaxed((const u64*)&team->half_used[half]);
        const u64 met = words::load_relaxed((const u64*)&team->met);
        call.scope.sync();
        if (used != 0 && met <= used) {
            call.tell();
            call.hear_all();
            meet();
            call.next();
            half = (u32)(call.epoch & 1);
            // The other half is free now, too.
        }
        if (call.scope.rank() == 0) words::store_relaxed(&team->half_used[half], call.epoch);
    }
    // Every member has heard of all in this round.
    OXSHMEM_MEMBER void meet() {
        if (call.scope.rank() == 0) words::store_relaxed(&call.team->met, call.epoch);
        call.scope.sync();
    }
    OXSHMEM_MEMBER void again() {
        meet();
        call.next();
        half = (u32)(call.epoch & 1);
        begin();
    }
    OXSHMEM_MEMBER char* place(u32 member) const {
        return call.team->scratch + ((u64)half * call.team->n + member) * call.team->place;
    }
};

// Members `first` to `last` of a half, folded into `out`.
template <class Operation, class T, class Scope>
OXSHMEM_OUTLINE void fold(const Scratch<Scope>& scratch, u32 first, u32 last, T* out, u64 elements) {
    Scope scope = scratch.call.scope;
    for (u64 e = scope.rank(); e < elements; e += scope.size()) {
        T value = ((const T*)scratch.place(first))[e];
        for (u32 i = first + 1; i <= last; ++i) value = Operation::of(value, ((const T*)scratch.place(i))[e]);
        out[e] = value;
    }
    scope.sync();
}

// This member's elements to its place at member `i`.
template <class T, class Scope>
OXSHMEM_OUTLINE void push(const Scratch<Scope>& scratch, u32 i, const T* source, u64 elements) {
    Team* team = scratch.call.team;
    char* place = scratch.place(team->me);
    if (i == team->me)
        keep(scratch.call.scope, place, source, elements * sizeof(T));
    else
        rma::put_part(scratch.call.scope, place, source, elements * sizeof(T), teams::pe_of(team, i));
}

}  // namespace collectives

// `n` elements of the root's source to every member's dest. The root's own dest is written, too.
template <class Scope, class T>
OXSHMEM_OUTLINE int broadcast(Scope scope, team_t team, T* dest, const T* source, size_t n, int root) {
    if (!check::team(check::CALL_BROADCAST, team)) return -1;
    Team* members = teams::find(team);
    if (!check::root(check::CALL_BROADCAST, root, members->n) ||
        !check::range(check::CALL_BROADCAST, my_pe(), dest, n * sizeof(T), alignof(T)))
        return -1;
    teams::InCall<Scope> call(scope, members);
    if (members->me == (u32)root) {
        for (u32 i = 0; i < members->n; ++i) {
            if (i == members->me)
                collectives::keep(scope, dest, source, n * sizeof(T));
            else
                rma::put_part(scope, dest, source, n * sizeof(T), teams::pe_of(members, i));
        }
        call.tell();
    } else {
        if (scope.rank() == 0) {
            teams::hear(members, (u32)root, call.epoch);
            waits::acquire();
        }
    }
    // All meet here.
    call.end(false);
    return 0;
}

namespace collectives {

// `n` elements for each member, from the source's element `step * i` on for member i, to this member's block of its dest.
template <class Scope, class T>
OXSHMEM_OUTLINE int spread(u32 call_number, Scope scope, team_t team, T* dest, const T* source, size_t n, size_t step) {
    if (!check::team(call_number, team)) return -1;
    Team* members = teams::find(team);
    if (!check::range(call_number, my_pe(), dest, members->n * n * sizeof(T), alignof(T))) return -1;
    teams::InCall<Scope> call(scope, members);
    T* place = dest + members->me * n;
    for (u32 k = 0; k < members->n; ++k) {
        // Each begins with another member, so that not all push to one.
        const u32 i = (members->me + k) % members->n;
        if (i == members->me)
            keep(scope, place, source + i * step, n * sizeof(T));
        else
            rma::put_part(scope, place, source + i * step, n * sizeof(T), teams::pe_of(members, i));
    }
    call.tell();
    call.hear_all();
    call.end(true);
    return 0;
}

}  // namespace collectives

// Every member's `n` elements, in the order of members, to every member's dest.
template <class Scope, class T>
OXSHMEM_DEVICE int fcollect(Scope scope, team_t team, T* dest, const T* source, size_t n) {
    return collectives::spread(check::CALL_FCOLLECT, scope, team, dest, source, n, 0);
}

// Element block i of the source, `n` elements, to member i's block of this member.
template <class Scope, class T>
OXSHMEM_DEVICE int alltoall(Scope scope, team_t team, T* dest, const T* source, size_t n) {
    return collectives::spread(check::CALL_ALLTOALL, scope, team, dest, source, n, n);
}

namespace collectives {

// Every element folded over members `first` to `last`, of each member's own `elements` elements.
template <class Operation, class T, class Scope>
OXSHMEM_OUTLINE void fold_all(teams::InCall<Scope>& call, T* dest, const T* source, u64 elements, u32 first, u32 last,
                             bool is_empty) {
    const u64 most = call.team->place / sizeof(T);
    Scratch<Scope> scratch(call);
    for (u64 done = 0;; done += most) {
        const u64 now = elements - done < most ? elements - done : most;
        for (u32 k = 0; k < call.team->n; ++k)
            push(scratch, (call.team->me + k) % call.team->n, source + done, now);
        call.tell();
        call.hear_all();
        if (!is_empty) fold<Operation>(scratch, first, last, dest + done, now);
        if (done + now >= elements) break;
        scratch.again();
    }
}

// A reduction in two steps, for long vectors: each member folds its share and pushes the result to all.
template <class Operation, class T, class Scope>
OXSHMEM_OUTLINE void fold_shares(teams::InCall<Scope>& call, T* dest, const T* source, u64 elements) {
    Team* team = call.team;
    const u64 share = team->place / sizeof(T);
    Scratch<Scope> scratch(call);
    for (u64 done = 0; done < elements; done += share * team->n) {
        if (done) scratch.again();
        u64 mine = 0;
        for (u32 k = 0; k < team->n; ++k) {
            const u32 i = (team->me + k) % team->n;
            const u64 start = done + i * share;
            const u64 left = start < elements ? elements - start : 0;
            const u64 now = left < share ? left : share;
            if (i == team->me) mine = now;
            push(scratch, i, source + start, now);
        }
        call.tell();
        call.hear_all();
        T* at = dest + done + team->me * share;
        if (mine) {
            fold<Operation>(scratch, 0, team->n - 1, at, mine);
            for (u32 k = 1; k < team->n; ++k)
                rma::put_part(call.scope, at, at, mine * sizeof(T), teams::pe_of(team, (team->me + k) % team->n));
        }
        scratch.meet();
        call.next();
        call.tell();
        call.hear_all();
    }
}

}  // namespace collectives

// Every element of all members' sources, folded, to every member's dest. Dest and source may be one.
template <class Operation, class Scope, class T>
OXSHMEM_OUTLINE int reduce(Scope scope, team_t team, T* dest, const T* source, size_t n) {
    if (!check::team(check::CALL_REDUCE, team)) return -1;
    if (!check::range(check::CALL_REDUCE, my_pe(), dest, n * sizeof(T), alignof(T))) return -1;
    if (n == 0) return 0;
    Team* members = teams::find(team);
    teams::InCall<Scope> call(scope, members);
    if (n * sizeof(T) <= members->place || members->n == 1)
        collectives::fold_all<Operation>(call, dest, source, n, 0, members->n - 1, false);
    else
        collectives::fold_shares<Operation>(call, dest, source, n);
    call.end(true);
    return 0;
}

// Block i of all members' sources, `n` elements, folded, to member i's dest.
template <class Operation, class Scope, class T>
OXSHMEM_OUTLINE int reduce_scatter(Scope scope, team_t team, T* dest, const T* source, size_t n) {
    if (!check::team(check::CALL_REDUCE_SCATTER, team)) return -1;
    if (!check::range(check::CALL_REDUCE_SCATTER, my_pe(), dest, n * sizeof(T), alignof(T))) return -1;
    if (n == 0) return 0;
    Team* members = teams::find(team);
    teams::InCall<Scope> call(scope, members);
    const u64 most = members->place / sizeof(T);
    collectives::Scratch<Scope> scratch(call);
    for (u64 done = 0;; done += most) {
        const u64 now = n - done < most ? n - done : most;
        for (u32 k = 0; k < members->n; ++k) {
            const u32 i = (members->me + k) % members->n;
            collectives::push(scratch, i, source + i * n + done, now);
        }
        call.tell();
        call.hear_all();
        collectives::fold<Operation>(scratch, 0, members->n - 1, dest + done, now);
        if (done + now >= n) break;
        scratch.again();
    }
    call.end(true);
    return 0;
}

// Prefix folds over the members: the inclusive one counts this member's own elements. The first member's dest of
// an exclusive scan is zero.
template <class Operation, class Scope, class T>
OXSHMEM_OUTLINE int inscan(Scope scope, team_t team, T* dest, const T* source, size_t n) {
    if (!check::team(check::CALL_SCAN, team)) return -1;
    if (!check::range(check::CALL_SCAN, my_pe(), dest, n * sizeof(T), alignof(T))) return -1;
    if (n == 0) return 0;
    teams::InCall<Scope> call(scope, teams::find(team));
    collectives::fold_all<Operation>(call, dest, source, n, 0, call.team->me, false);
    call.end(true);
    return 0;
}
template <class Operation, class Scope, class T>
OXSHMEM_OUTLINE int exscan(Scope scope, team_t team, T* dest, const T* source, size_t n) {
    if (!check::team(check::CALL_SCAN, team)) return -1;
    if (!check::range(check::CALL_SCAN, my_pe(), dest, n * sizeof(T), alignof(T))) return -1;
    if (n == 0) return 0;
    teams::InCall<Scope> call(scope, teams::find(team));
    const bool is_first = call.team->me == 0;
    collectives::fold_all<Operation>(call, dest, source, n, 0, is_first ? 0 : call.team->me - 1, is_first);
    if (is_first)
        for (size_t e = scope.rank(); e < n; e += scope.size()) dest[e] = T();
    call.end(true);
    return 0;
}

}  // namespace oxshmem
