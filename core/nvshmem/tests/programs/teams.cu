// Teams: the ones that are there, splits, translations, and collective calls of teams in kernels and by the host.
#include "check.h"

// Facts that kernels know of a team.
__global__ void ask(nvshmem_team_t team, int member, int n, int world) {
    SEEN(nvshmem_team_my_pe(team) == member && nvshmem_team_n_pes(team) == n);
    SEEN(nvshmem_team_translate_pe(team, member, NVSHMEM_TEAM_WORLD) == world);
    SEEN(nvshmem_team_translate_pe(NVSHMEM_TEAM_WORLD, world, team) == member);
    SEEN(nvshmem_my_pe() == world);
}

// Members add up their numbers, and tell each other of them.
__global__ void collect(nvshmem_team_t team, int* sum, int* all, int* mine) {
    SEEN(nvshmemx_barrier_block(team) == 0);
    SEEN(nvshmemx_int_sum_reduce_block(team, sum, mine, 1) == 0);
    SEEN(nvshmemx_int_fcollect_block(team, all, mine, 1) == 0);
    SEEN(nvshmemx_team_sync_block(team) == 0);
}

static int *sum, *collected, *mine;

// A team of these PEs, of which this one is a member or not.
static void verify(nvshmem_team_t team, const std::vector<int>& members) {
    int member = -1;
    for (int i = 0; i < (int)members.size(); ++i)
        if (members[i] == me) member = i;
    CHECK((team == NVSHMEM_TEAM_INVALID) == (member < 0));
    if (member < 0) {
        CHECK(nvshmem_team_my_pe(team) == -1 && nvshmem_team_n_pes(team) == -1);
        CHECK(nvshmem_team_translate_pe(team, 0, NVSHMEM_TEAM_WORLD) == -1);
        return;
    }
    const int n = (int)members.size();
    CHECK(nvshmem_team_my_pe(team) == member && nvshmem_team_n_pes(team) == n);
    for (int i = 0; i < n; ++i) {
        CHECK(nvshmem_team_translate_pe(team, i, NVSHMEM_TEAM_WORLD) == members[i]);
        CHECK(nvshmem_team_translate_pe(NVSHMEM_TEAM_WORLD, members[i], team) == i);
    }
    CHECK(nvshmem_team_translate_pe(team, n, NVSHMEM_TEAM_WORLD) == -1);
    nvshmem_team_config_t config = NVSHMEM_TEAM_CONFIG_INITIALIZER;
    nvshmem_team_get_config(team, &config);
    ask<<<1, 1>>>(team, member, n, me);
    RAN();
    collect<<<1, 16>>>(team, sum, collected, mine);
    RAN();
    int wanted = 0;
    for (int pe : members) wanted += pe + 100;
    EXPECT(sum, (std::vector<int>{wanted}), "a team's sum by a kernel");
    std::vector<int> numbers;
    for (int pe : members) numbers.push_back(pe + 100);
    EXPECT(collected, numbers, "a team's numbers by a kernel");
    // The same by the host.
    CHECK(nvshmem_team_sync(team) == 0 && nvshmem_barrier(team) == 0);
    CHECK(nvshmem_int_max_reduce(team, sum, mine, 1) == 0);
    EXPECT(sum, (std::vector<int>{members.back() > members.front() ? members.back() + 100 : members.front() + 100}), "a team's maximum");
    CHECK(nvshmem_barrier(team) == 0);
}

int main() {
    start();
    sum = (int*)nvshmem_malloc(sizeof(int));
    collected = (int*)nvshmem_malloc(pes * sizeof(int));
    mine = (int*)nvshmem_malloc(sizeof(int));
    fill(mine, std::vector<int>{me + 100});
    nvshmem_barrier_all();
    static_assert(NVSHMEM_TEAM_WORLD == 0 && NVSHMEM_TEAM_SHARED == 1 && NVSHMEM_TEAM_INVALID == -1, "values that programs store");
    static_assert(NVSHMEMX_TEAM_NODE == 2 && NVSHMEMX_TEAM_SAME_MYPE_NODE == 3, "values that programs store");

    // All PEs of the test are on one host.
    std::vector<int> everyone;
    for (int pe = 0; pe < pes; ++pe) everyone.push_back(pe);
    verify(NVSHMEM_TEAM_WORLD, everyone);
    verify(NVSHMEMX_TEAM_NODE, everyone);
    verify(NVSHMEMX_TEAM_SAME_MYPE_NODE, {me});
    // The PEs whose memory kernels load and store: all, or none but this one.
    const bool mapped = pes == 1 || nvshmem_ptr(mine, (me + 1) % pes);
    verify(NVSHMEM_TEAM_SHARED, mapped ? everyone : std::vector<int>{me});

    nvshmem_team_t odd, reversed, of_even;
    CHECK(nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 1, 2, pes / 2, NULL, 0, &odd) == 0);
    std::vector<int> odds, evens;
    for (int pe = 0; pe < pes; ++pe) (pe % 2 ? odds : evens).push_back(pe);
    verify(odd, odds);
    nvshmem_team_config_t config = NVSHMEM_TEAM_CONFIG_INITIALIZER;
    CHECK(nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, pes - 1, -1, pes, &config, 0, &reversed) == 0);
    verify(reversed, {everyone.rbegin(), everyone.rend()});
    // A team of a team: the even PEs are the odd ones from behind.
    const int first = (pes - 1) % 2;
    CHECK(nvshmem_team_split_strided(reversed, first, 2, (pes - first + 1) / 2, NULL, 0, &of_even) == 0);
    verify(of_even, {evens.rbegin(), evens.rend()});
    // A split of a team that this PE is no member of.
    nvshmem_team_t none = 77;
    if (odd == NVSHMEM_TEAM_INVALID) {
        nvshmem_team_split_strided(odd, 0, 1, 1, NULL, 0, &none);
        CHECK(none == NVSHMEM_TEAM_INVALID);
    }

    // Rows of two PEs, and the columns.
    nvshmem_team_t row, column;
    CHECK(nvshmem_team_split_2d(NVSHMEM_TEAM_WORLD, 2, NULL, 0, &row, NULL, 0, &column) == 0);
    std::vector<int> in_row, in_column;
    for (int pe = 0; pe < pes; ++pe) {
        if (pe / 2 == me / 2) in_row.push_back(pe);
        if (pe % 2 == me % 2) in_column.push_back(pe);
    }
    verify(row, in_row);
    verify(column, in_column);

    // The same by strided splits: each PE names its own row and column.
    nvshmem_team_t own_row, own_column;
    const int start_of_row = me / 2 * 2, column_of_me = me % 2;
    CHECK(nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, start_of_row, 1, (int)in_row.size(), NULL, 0, &own_row) == 0);
    verify(own_row, in_row);
    CHECK(nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, column_of_me, 2, (int)in_column.size(), NULL, 0, &own_column) == 0);
    verify(own_column, in_column);
    nvshmem_team_destroy(own_row);
    nvshmem_team_destroy(own_column);
    // PE 0 names a team with PE 1, and PE 1 names another.
    CHECK(nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, me ? me : 0, 1, me ? 1 : 2, NULL, 0, &own_row) != 0 || pes == 1);

    // Many teams: a program may have one for each block.
    std::vector<nvshmem_team_t> many(20);
    for (nvshmem_team_t& team : many) CHECK(nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 0, 1, pes, NULL, 0, &team) == 0);
    verify(many.back(), everyone);
    for (nvshmem_team_t team : many) nvshmem_team_destroy(team);
    nvshmem_team_destroy(column);
    nvshmem_team_destroy(row);
    if (of_even != NVSHMEM_TEAM_INVALID) nvshmem_team_destroy(of_even);
    nvshmem_team_destroy(reversed);
    if (odd != NVSHMEM_TEAM_INVALID) nvshmem_team_destroy(odd);
    // A team after others have gone.
    CHECK(nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 0, 1, pes, NULL, 0, &row) == 0);
    verify(row, everyone);
    // The program may leave it to finalize.
    nvshmem_finalize();
    return 0;
}
