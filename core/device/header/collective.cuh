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

using teams::Call;

// A copy of a group to a member's memory, or within its own.
OXSHMEM_OUTLINE void give(Call call, u32 member, void* to, const void* from, u64 bytes) {
    if (member != call.team->me)
        rma::put_part(call.group, to, from, bytes, teams::pe_of(call.team, member));
    else if (to != from)
        copies::copy<copies::Plain>(call.group, (char*)to, (const char*)from, bytes);
}

// The `k`-th member from this one on: each member begins with itself, so that not all push to one.
OXSHMEM_DEVICE u32 from_me(const Team* team, u32 k) { return (team->me + k) % team->n; }

// The two halves of a team's scratch memory are used by turns. A half has a place for each member.
OXSHMEM_DEVICE char* place(const Call& call, u32 member) {
    return call.team->scratch + ((call.epoch & 1) * call.team->n + member) * call.team->place;
}

// Every member has heard of all in this round.
OXSHMEM_DEVICE void note_met(const Call& call) {
    if (call.group.rank() == 0) words::store_relaxed(&call.team->met, call.epoch);
    call.group.sync();
}

// Takes this round's half of the scratch memory; gives the round in which it is free. That is the next one if it is not known yet that
// all members have read what was there: all members know alike, so all wait, or none.
OXSHMEM_OUTLINE u64 take_half(Call call) {
    Team* team = call.team;
    const u64 used = words::load_relaxed((const u64*)&team->half_used[call.epoch & 1]);
    const u64 met = words::load_relaxed((const u64*)&team->met);
    call.group.sync();
    if (used != 0 && met <= used) {
        call.tell();
        call.hear_all();
        note_met(call);
        // The other half is free now, too.
        ++call.epoch;
    }
    if (call.group.rank() == 0) words::store_relaxed(&team->half_used[call.epoch & 1], call.epoch);
    return call.epoch;
}
OXSHMEM_DEVICE u64 take_next_half(Call call) {
    note_met(call);
    ++call.epoch;
    return take_half(call);
}

// Bytes to this member's place at each member, of which member i gets those from `step * i` on; behind them, the word of it.
// The group has met when it took the half.
OXSHMEM_OUTLINE void exchange(Call call, const void* source, u64 step, u64 bytes) {
    for (u32 k = 0; k < call.team->n; ++k) {
        const u32 i = from_me(call.team, k);
        give(call, i, place(call, call.team->me), (const char*)source + step * i, bytes);
    }
    call.tell();
    call.hear_all();
}

// Members `first` to `last` of a half, folded into `out`.
template <class Operation, class T>
OXSHMEM_OUTLINE void fold(Call call, u32 first, u32 last, T* out, u64 elements) {
    for (u64 e = call.group.rank(); e < elements; e += call.group.size()) {
        typedef typename Computed<T>::Type Value;
        Value value = Computed<T>::of(((const T*)place(call, first))[e]);
        for (u32 i = first + 1; i <= last; ++i) value = Operation::of(value, Computed<T>::of(((const T*)place(call, i))[e]));
        out[e] = Computed<T>::rounded(value);
    }
    call.group.sync();
}

OXSHMEM_OUTLINE int broadcast(Group group, team_t number, void* dest, const void* source, u64 bytes, u64 align, int root) {
    if (!check::team(check::CALL_BROADCAST, number)) return -1;
    Team* team = teams::find(number);
    if (!check::root(check::CALL_BROADCAST, root, team->n) || !check::range(check::CALL_BROADCAST, my_pe(), dest, bytes, align))
        return -1;
    const Call call = Call::begin(group, team);
    if (team->me == (u32)root) {
        for (u32 i = 0; i < team->n; ++i) give(call, i, dest, source, bytes);
        call.tell();
    } else {
        if (group.rank() == 0) {
            teams::hear(team, (u32)root, call.epoch);
            waits::acquire();
        }
    }
    // All meet here.
    call.end(false);
    return 0;
}

// `bytes` bytes for each member, from the source's byte `step * i` on for member i, to this member's block of its dest.
OXSHMEM_OUTLINE int spread(u32 call_number, Group group, team_t number, void* dest, const void* source, u64 bytes, u64 step, u64 align) {
    if (!check::team(call_number, number)) return -1;
    Team* team = teams::find(number);
    if (!check::range(call_number, my_pe(), dest, team->n * bytes, align)) return -1;
    const Call call = Call::begin(group, team);
    for (u32 k = 0; k < team->n; ++k) {
        const u32 i = from_me(team, k);
        give(call, i, (char*)dest + team->me * bytes, (const char*)source + step * i, bytes);
    }
    call.tell();
    call.hear_all();
    call.end(true);
    return 0;
}

// Block i of all members' sources, `n` elements from the source's element `step * i` on, folded over members `first` to `last`, at
// member i. Gives the call's last round.
template <class Operation, class T>
OXSHMEM_OUTLINE u64 fold_all(Call call, T* dest, const T* source, u64 n, u64 step, u32 first, u32 last) {
    const u64 most = call.team->place / sizeof(T);
    call.epoch = take_half(call);
    for (u64 done = 0;; done += most) {
        const u64 now = n - done < most ? n - done : most;
        exchange(call, source + done, step * sizeof(T), now * sizeof(T));
        fold<Operation>(call, first, last, dest + done, now);
        if (done + now >= n) return call.epoch;
        call.epoch = take_next_half(call);
    }
}

// A reduction in two steps, for long vectors: each member folds its share and pushes the result to all.
template <class Operation, class T>
OXSHMEM_OUTLINE u64 fold_shares(Call call, T* dest, const T* source, u64 n) {
    Team* team = call.team;
    const u64 share = team->place / sizeof(T);
    call.epoch = take_half(call);
    for (u64 done = 0; done < n; done += share * team->n) {
        if (done) call.epoch = take_next_half(call);
        u64 mine = 0;
        for (u32 k = 0; k < team->n; ++k) {
            const u32 i = from_me(team, k);
            const u64 start = done + i * share;
            const u64 left = start < n ? n - start : 0;
            const u64 now = left < share ? left : share;
            if (i == team->me) mine = now;
            give(call, i, place(call, team->me), source + start, now * sizeof(T));
        }
        call.tell();
        call.hear_all();
        T* at = dest + done + team->me * share;
        if (mine) {
            fold<Operation>(call, 0, team->n - 1, at, mine);
            for (u32 k = 1; k < team->n; ++k) give(call, from_me(team, k), at, at, mine * sizeof(T));
        }
        note_met(call);
        ++call.epoch;
        call.tell();
        call.hear_all();
    }
    return call.epoch;
}

// The team of a call whose dest has `n` elements; null after a bad call.
template <class T>
OXSHMEM_DEVICE Team* checked(u32 call_number, team_t number, const T* dest, u64 n) {
    if (!check::team(call_number, number) || !check::range(call_number, my_pe(), dest, n * sizeof(T), alignof(T))) return nullptr;
    return teams::find(number);
}

template <class Operation, class T>
OXSHMEM_OUTLINE int reduce(Group group, team_t number, T* dest, const T* source, u64 n) {
    Team* team = checked(check::CALL_REDUCE, number, dest, n);
    if (!team) return -1;
    if (n == 0) return 0;
    Call call = Call::begin(group, team);
    call.epoch = n * sizeof(T) <= team->place || team->n == 1
                     ? fold_all<Operation>(call, dest, source, n, 0, 0, team->n - 1)
                     : fold_shares<Operation>(call, dest, source, n);
    call.end(true);
    return 0;
}

template <class Operation, class T>
OXSHMEM_OUTLINE int reduce_scatter(Group group, team_t number, T* dest, const T* source, u64 n) {
    Team* team = checked(check::CALL_REDUCE_SCATTER, number, dest, n);
    if (!team) return -1;
    if (n == 0) return 0;
    Call call = Call::begin(group, team);
    call.epoch = fold_all<Operation>(call, dest, source, n, n, 0, team->n - 1);
    call.end(true);
    return 0;
}

// A prefix fold, with this member's own elements or without.
template <class Operation, class T>
OXSHMEM_OUTLINE int scan(Group group, team_t number, T* dest, const T* source, u64 n, bool is_inclusive) {
    Team* team = checked(check::CALL_SCAN, number, dest, n);
    if (!team) return -1;
    if (n == 0) return 0;
    Call call = Call::begin(group, team);
    const bool is_empty = !is_inclusive && team->me == 0;
    call.epoch = fold_all<Operation>(call, dest, source, n, 0, 0, is_inclusive || is_empty ? team->me : team->me - 1);
    if (is_empty)
        for (u64 e = group.rank(); e < n; e += group.size()) dest[e] = T();
    call.end(true);
    return 0;
}

}  // namespace collectives

// `n` elements of the root's source to every member's dest. The root's own dest is written, too.
template <class Scope, class T>
OXSHMEM_DEVICE int broadcast(Scope scope, team_t team, T* dest, const T* source, size_t n, int root) {
    return collectives::broadcast(Group::of(scope), team, dest, source, n * sizeof(T), alignof(T), root);
}

// Every member's `n` elements, in the order of members, to every member's dest.
template <class Scope, class T>
OXSHMEM_DEVICE int fcollect(Scope scope, team_t team, T* dest, const T* source, size_t n) {
    return collectives::spread(check::CALL_FCOLLECT, Group::of(scope), team, dest, source, n * sizeof(T), 0, alignof(T));
}

// Element block i of the source, `n` elements, to member i's block of this member.
template <class Scope, class T>
OXSHMEM_DEVICE int alltoall(Scope scope, team_t team, T* dest, const T* source, size_t n) {
    const u64 bytes = n * sizeof(T);
    return collectives::spread(check::CALL_ALLTOALL, Group::of(scope), team, dest, source, bytes, bytes, alignof(T));
}

// Every element of all members' sources, folded, to every member's dest. Dest and source may be one.
template <class Operation, class Scope, class T>
OXSHMEM_DEVICE int reduce(Scope scope, team_t team, T* dest, const T* source, size_t n) {
    return collectives::reduce<Operation>(Group::of(scope), team, dest, source, n);
}

// Block i of all members' sources, `n` elements, folded, to member i's dest.
template <class Operation, class Scope, class T>
OXSHMEM_DEVICE int reduce_scatter(Scope scope, team_t team, T* dest, const T* source, size_t n) {
    return collectives::reduce_scatter<Operation>(Group::of(scope), team, dest, source, n);
}

// Prefix folds over the members: the inclusive one counts this member's own elements. The first member's dest of
// an exclusive scan is zero.
template <class Operation, class Scope, class T>
OXSHMEM_DEVICE int inscan(Scope scope, team_t team, T* dest, const T* source, size_t n) {
    return collectives::scan<Operation>(Group::of(scope), team, dest, source, n, true);
}
template <class Operation, class Scope, class T>
OXSHMEM_DEVICE int exscan(Scope scope, team_t team, T* dest, const T* source, size_t n) {
    return collectives::scan<Operation>(Group::of(scope), team, dest, source, n, false);
}

}  // namespace oxshmem
