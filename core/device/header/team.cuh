// Teams, barrier and sync. The host makes teams; their numbers are valid in kernels.
//
// One collective call of a team is under way at a time (NVSHMEM's rule): the program orders them, with the same calls
// in the same order on all members (M36). All members' kernels must run at once.
#pragma once

#include "wait.cuh"

namespace oxshmem {
namespace teams {

OXSHMEM_DEVICE Team* find(team_t team) { return oxshmem_state.teams[team]; }
OXSHMEM_DEVICE int pe_of(const Team* team, u32 member) { return (int)team->members[member]; }

// Tells other members that this one has reached call `epoch`, behind what the group did before.
OXSHMEM_OUTLINE void tell(Group group, const Team* team, u64 epoch) {
    // The first thread alone has queued requests since the group met.
    if (group.rank() == 0 && ring::is_busy()) ring::post_order(ring::OP_FENCE);
    group.sync();
    for (u32 i = group.rank(); i < team->n; i += group.size()) {
        if (i == team->me) continue;
        const int pe = pe_of(team, i);
        u64* word = team->words + team->me;
        const i64 distance = rma::distance_to(pe);
        if (rma::is_mapped(distance))
            words::store_release(rma::at(word, distance), epoch);
        else
            ring::post(ring::Request{ring::OP_SIGNAL, SIGNAL_SET, (u32)pe, 0, 0, 0, epoch, ring::offset_of(word)});
    }
    // The sources may be changed from here on.
    if (group.rank() == 0) ring::await_sources();
}

// Waits until member `i` has told of call `epoch`, for this thread alone.
OXSHMEM_DEVICE void hear(const Team* team, u32 i, u64 epoch) {
    if (i != team->me) spin::until_at_least(team->words + i, epoch);
}

// Waits for all members, for the whole group.
OXSHMEM_OUTLINE void hear_all(Group group, const Team* team, u64 epoch) {
    for (u32 i = group.rank(); i < team->n; i += group.size()) hear(team, i, epoch);
    group.sync();
    if (!(oxshmem_state.flags & FLUSH_AFTER_WAIT)) return;
    if (group.rank() == 0) waits::acquire();
    group.sync();
}

// One collective call of a group, or a round of one: its number, which all members give it alike.
struct Call {
    Group group;
    Team* team;
    u64 epoch;

    // The number is read by all threads before one of them changes it.
    OXSHMEM_DEVICE Call begin(Group group, Team* team) {
        const u64 epoch = words::load_relaxed((const u64*)&team->epoch) + 1;
        group.sync();
        return Call{group, team, epoch};
    }
    OXSHMEM_MEMBER void tell() const { teams::tell(group, team, epoch); }
    OXSHMEM_MEMBER void hear_all() const { teams::hear_all(group, team, epoch); }
    // The end, for a call in which every member has heard of all, or not.
    OXSHMEM_MEMBER void end(bool has_met) const {
        if (group.rank() == 0) {
            words::store_relaxed(&team->epoch, epoch);
            if (has_met) words::store_relaxed(&team->met, epoch);
        }
        group.sync();
    }
};

OXSHMEM_OUTLINE int sync(Group group, team_t team) {
    if (!check::team(check::CALL_BARRIER, team)) return -1;
    const Call call = Call::begin(group, find(team));
    call.tell();
    call.hear_all();
    call.end(true);
    return 0;
}

}  // namespace teams

OXSHMEM_DEVICE int team_my_pe(team_t team) {
    return check::team(check::CALL_TEAM, team) ? (int)teams::find(team)->me : -1;
}
OXSHMEM_DEVICE int team_n_pes(team_t team) {
    return check::team(check::CALL_TEAM, team) ? (int)teams::find(team)->n : -1;
}
// The number in `dest` of PE `pe` of `source`; -1 if it is no member.
OXSHMEM_DEVICE int team_translate_pe(team_t source, int pe, team_t dest) {
    if (!check::team(check::CALL_TEAM, source) || !check::team(check::CALL_TEAM, dest)) return -1;
    const Team *from = teams::find(source), *to = teams::find(dest);
    if (pe < 0 || (u32)pe >= from->n) return -1;
    const int world = teams::pe_of(from, (u32)pe);
    for (u32 i = 0; i < to->n; ++i)
        if (teams::pe_of(to, i) == world) return (int)i;
    return -1;
}

// Waits until all members have called it. It completes nothing (M24).
template <class Scope>
OXSHMEM_DEVICE int sync(Scope scope, team_t team) {
    return teams::sync(Group::of(scope), team);
}
OXSHMEM_DEVICE int sync(team_t team) { return sync(thread(), team); }

// A quiet of each member, and a sync: all see all that was done before (M24, M25).
template <class Scope>
OXSHMEM_DEVICE int barrier(Scope scope, team_t team) {
    scope.sync();
    if (scope.rank() == 0) quiet();
    return sync(scope, team);
}
OXSHMEM_DEVICE int barrier(team_t team) { return barrier(thread(), team); }

template <class Scope>
OXSHMEM_DEVICE void barrier_all(Scope scope) {
    barrier(scope, TEAM_WORLD);
}
OXSHMEM_DEVICE void barrier_all() { barrier(thread(), TEAM_WORLD); }
template <class Scope>
OXSHMEM_DEVICE void sync_all(Scope scope) {
    sync(scope, TEAM_WORLD);
}
OXSHMEM_DEVICE void sync_all() { sync(thread(), TEAM_WORLD); }

}  // namespace oxshmem
