//! The reference pages: of each the families that it is about, and what they do.
//!
//! A family is named as its row, without the marks of type and context: `shmem_put` is of `shmem_@%_put` and
//! `shmem_@put%`. A test sees to it that each is on one page.

/// A page. It is named after its first family.
pub(crate) struct Page {
    pub families: &'static [&'static str],
    /// In a line.
    pub about: &'static str,
    /// Paragraphs, an empty line between them.
    pub text: &'static str,
}

const fn page(families: &'static [&'static str], about: &'static str, text: &'static str) -> Page {
    Page {
        families,
        about,
        text,
    }
}

#[rustfmt::skip]
pub(crate) const PAGES: &[Page] = &[
    page(&["shmem_init", "shmem_init_thread", "start_pes"], "join the job",
"These join the job; all PEs call one of them, and before it no other call is made but shmem_query_initialized. They may be \
called again, from any part of a program: each call is ended by one shmem_finalize, and the library ends with the last one. After \
that it may be initialized anew.

requested is what threads will do: SHMEM_THREAD_SINGLE (there is one), _FUNNELED (one makes calls), _SERIALIZED (one at a time \
does) or _MULTIPLE; provided is what they may do. shmem_init_thread gives 0, or after a message something else.

start_pes ignores its argument. A program that calls it needs no shmem_finalize: it is done when the process ends with status 0.

Global and static variables of the main program become symmetric in the first call, if no other thread runs yet."),
    page(&["shmem_finalize"], "leave the job",
"Ends one initialization. The last one waits for all PEs, completes what is under way, ends all teams and contexts and gives \
symmetric memory back; one before it is a barrier of all PEs and no more, and one after it does nothing. All PEs call it."),
    page(&["shmem_global_exit"], "end all PEs",
"Ends the job at once, whatever other PEs are doing: the launcher ends with this status. The caller's own output is flushed. It \
does not return."),
    page(&["shmem_query_thread", "shmem_query_initialized"], "what was initialized",
"shmem_query_thread gives the thread level that shmem_init_thread provided. shmem_query_initialized gives 1 between the first \
initialization and the last shmem_finalize, else 0; it may be called at any time."),
    page(&["shmem_my_pe", "shmem_n_pes", "_my_pe", "_num_pes"], "this PE's number, and how many there are",
"PEs are numbered from 0."),
    page(&["shmem_pe_accessible", "shmem_addr_accessible"], "whether a PE, or its memory, can be reached",
"shmem_pe_accessible gives 1 for a PE of this job. shmem_addr_accessible gives 1 if the address is one of symmetric memory that \
can be reached at the PE. Both give 0 for what is none."),
    page(&["shmem_ptr", "shmem_team_ptr"], "a PE's object to load and store directly",
"They give the address at which this PE can load and store another's copy of a symmetric object, or null where it cannot. That \
address is not symmetric: no call takes it for such. It lasts until the object is freed."),
    page(&["shmem_info_get_version", "shmem_info_get_name"], "the specification's version and the library's name",
"The version is that of SHMEM_MAJOR_VERSION and SHMEM_MINOR_VERSION, the name SHMEM_VENDOR_STRING; it takes SHMEM_MAX_NAME_LEN \
bytes at most."),
    page(&["shmem_pcontrol"], "a word to a profiling tool",
"Does nothing. A tool that defines it sees the level: 0 off, 1 as usual, 2 flush, more as the tool says."),
    page(&["shmemx_wtime"], "the time in seconds",
"It gives the seconds since a moment in the past, with the fractions that the system's clock has. It never goes back, and is one clock \
for all PEs of a host; between hosts it means nothing. It may be called at any time.

OpenSHMEM has no such call: where shmemx.h has it HAVE_SHMEMX_WTIME is defined."),
    page(&["shmemx_cuda_init", "shmemx_cuda_device", "shmemx_cuda_malloc", "shmemx_cuda_ptr", "shmemx_cuda_team", "shmemx_cuda_reserve_teams",
           "shmemx_cuda_check", "shmemx_cuda_resume"],
        "symmetric GPU memory, and calls inside kernels",
"shmemx_cuda_init lets kernels make the calls of the header oxshmem.cuh. All PEs call it, after shmem_init and before they launch such \
kernels. It makes this PE's GPU the thread's own (cudaSetDevice). Where a program loads a library with such kernels later (dlopen), it \
calls it again, on that PE alone, while none of these kernels runs. No library with kernels is unloaded during a call. It gives 0, or \
after a message something else: where there is no GPU heap, where a PE could not open its part (on all PEs), where the program and its \
libraries have no such kernels, or where kernels were compiled with another version's header.

shmemx_cuda_device gives the number of this PE's GPU; -1 where there is no GPU heap.

shmemx_cuda_malloc is shmem_malloc in the GPU heap; shmem_free frees the block. The address is one for kernels and for CUDA's own calls. \
Puts, gets, atomics, signals and collective calls of the host take it for their symmetric objects. The other operand of a put or get lies \
in the host's memory, and with OXSHMEM_CHECK=1 one in the GPU heap is refused. Waits and tests of the host refuse the address, and shmem_ptr \
gives null. shmemx_cuda_ptr gives the address of a PE's copy for this PE's kernels, or null where this PE's GPU does not reach it; that \
address is not symmetric.

shmemx_cuda_team gives a team's number for kernels, the same on all members; all of them make the call. It gives -1, after a message, \
where it cannot. SHMEM_TEAM_WORLD is oxshmem::TEAM_WORLD there. Kernels have memory for the first 16 teams, or more where PEs are few. \
Teams count whether kernels use them or not: a team's number is the least that is free on all its members. All PEs call \
shmemx_cuda_reserve_teams for more, up to OXSHMEM_TEAMS. It gives 0, or after a message something else.

shmemx_cuda_check gives 0, or after a message something else: a kernel that was compiled with OXSHMEM_CHECK made a bad call, or a PE was \
lost, so that kernels' waits have ended. It comes after a synchronization with these kernels. After a bad call all later waits end at \
once, and it gives that again, until this PE calls shmemx_cuda_resume, while none of these kernels runs. That gives 0, or after a \
message something else. It brings back no PE that was lost, and a transfer by the host that failed stays an error.

All but shmemx_cuda_init, shmemx_cuda_device, shmemx_cuda_malloc and shmemx_cuda_ptr come after shmemx_cuda_init.

OXSHMEM_CUDA_SYMMETRIC_SIZE is the size of the GPU heap. Without it a program that was linked with such kernels has one of 1 GiB, and \
any other has none. Where a PE cannot have that, because there is no GPU or its program is another, no PE has one. Each of these calls \
has its macro, such as HAVE_SHMEMX_CUDA_INIT."),
    page(&["shmem_malloc", "shmem_calloc", "shmem_align", "shmem_malloc_with_hints", "shmem_realloc", "shmem_free", "shmalloc", "shmemalign", "shrealloc", "shfree"],
        "symmetric memory",
"All PEs make these calls in the same order with the same arguments. What is allocated is aligned for any type; shmem_align takes \
a power of two that is a multiple of a pointer's size; shmem_calloc gives zeros. hints are SHMEM_MALLOC_ATOMICS_REMOTE, \
SHMEM_MALLOC_SIGNAL_REMOTE, both, or 0.

A call that allocates ends with a barrier of all PEs, and shmem_free begins with one. shmem_realloc has one at its begin if there is \
a block, and one at its end if memory is given; it keeps what fits. With a size of 0 they give null and do nothing else, except that \
shmem_realloc frees its block; freeing null does nothing.

Where there is not enough memory all PEs are given null, and nothing has changed: raise SHMEM_SYMMETRIC_SIZE."),
    page(&["shmem_team_my_pe", "shmem_team_n_pes", "shmem_team_translate_pe", "shmem_team_get_config"], "what a team is",
"This PE's number in a team, and how many it has; the number in dest_team of who is src_pe in src_team. They give -1 for \
SHMEM_TEAM_INVALID, and where there is no such PE.

shmem_team_get_config gives the fields that config_mask names, as the team was made with them, and 0; something else where it \
cannot. With a mask of 0 it does nothing."),
    page(&["shmem_team_split_strided", "shmem_team_split_2d"], "make teams of a team's PEs",
"All PEs of the parent call them, with the same arguments. shmem_team_split_strided makes a team of the parent's PEs start, start + \
stride and so on, size of them; stride may be below 0. shmem_team_split_2d lays them out in rows of xrange: PE i is in column i % \
xrange and row i / xrange. xaxis_team is that of its row, yaxis_team that of its column.

They give 0, and SHMEM_TEAM_INVALID to a PE that is no member; or on all PEs something else and SHMEM_TEAM_INVALID if a member \
would lie outside the parent. config and config_mask say how many contexts the team will have (SHMEM_TEAM_NUM_CONTEXTS); the mask \
may be 0 and config null."),
    page(&["shmem_team_destroy"], "end a team",
"All members call it. The team's contexts end, too. SHMEM_TEAM_INVALID is nothing; SHMEM_TEAM_WORLD and SHMEM_TEAM_SHARED are \
always there."),
    page(&["shmem_ctx_create", "shmem_team_create_ctx", "shmem_ctx_destroy", "shmem_ctx_get_team"], "contexts",
"Operations on one context are ordered and completed apart from those on another. options are SHMEM_CTX_SERIALIZED (never two \
threads at a time), SHMEM_CTX_PRIVATE (its maker's thread alone), SHMEM_CTX_NOSTORE (fence and quiet need not heed the program's own \
stores), or 0. In calls with a context of a team a PE's number is that in the team. They give 0, or something else and \
SHMEM_CTX_INVALID.

shmem_ctx_destroy completes what is under way; SHMEM_CTX_INVALID is nothing to it. shmem_ctx_get_team gives the team that the \
context is of."),
    page(&["shmem_ctx_session_start", "shmem_ctx_session_stop"], "say that many operations come",
"Hints that change no rule: between them come about total_ops operations (SHMEM_CTX_SESSION_TOTAL_OPS in config_mask); with \
SHMEM_CTX_SESSION_BATCH in options they may be sent together."),
    page(&["shmem_put", "shmem_p", "shmem_get", "shmem_g"], "copy to, and from, a PE's symmetric memory",
"shmem_put copies nelems elements to the PE's dest, which is symmetric; source is any memory. It returns when source may be changed; \
shmem_quiet(3) tells when they are there. shmem_get copies from the PE's source, which is symmetric, to any memory, and returns when \
they are there. shmem_p and shmem_g copy one value.

nelems counts elements of the type, of SIZE bits, or in shmem_putmem and shmem_getmem bytes. With nelems 0 the addresses do not \
matter. An address that is not aligned for the type is taken, unless OXSHMEM_CHECK=1: the bytes are copied, and no element is stored or \
loaded whole."),
    page(&["shmem_put_nbi", "shmem_get_nbi"], "copy without waiting",
"As shmem_put(3) and shmem_get, but neither memory may be touched, nor what was got be read, before shmem_quiet(3)."),
    page(&["shmem_iput", "shmem_iget", "shmem_ibput", "shmem_ibget"], "copy elements that lie apart",
"shmem_iput and shmem_iget copy nelems elements, every dst-th in dest and every sst-th in source. shmem_ibput and shmem_ibget copy \
nblocks blocks of bsize elements, which begin every dst and sst elements. Strides are 1 element at least."),
    page(&["shmem_atomic_fetch", "shmem_atomic_set", "shmem_atomic_compare_swap", "shmem_atomic_swap", "shmem_atomic_fetch_inc",
           "shmem_atomic_inc", "shmem_atomic_fetch_add", "shmem_atomic_add", "shmem_atomic_fetch_and", "shmem_atomic_and",
           "shmem_atomic_fetch_or", "shmem_atomic_or", "shmem_atomic_fetch_xor", "shmem_atomic_xor"], "atomics",
"Each is done at once with respect to all other atomics of the same type on the same word, by any PE. Those that give a value give \
the one before. shmem_atomic_compare_swap stores value if the word is cond, and gives what it was. Those that give nothing return \
before they are done: see shmem_quiet(3)."),
    page(&["shmem_atomic_fetch_nbi", "shmem_atomic_compare_swap_nbi", "shmem_atomic_swap_nbi", "shmem_atomic_fetch_inc_nbi",
           "shmem_atomic_fetch_add_nbi", "shmem_atomic_fetch_and_nbi", "shmem_atomic_fetch_or_nbi", "shmem_atomic_fetch_xor_nbi"],
        "atomics whose value comes later",
"As shmem_atomic_fetch(3) and its like; the value before is in *fetch, any memory, after the next shmem_quiet(3)."),
    page(&["shmem_fetch", "shmem_set", "shmem_cswap", "shmem_swap", "shmem_finc", "shmem_inc", "shmem_fadd", "shmem_add"],
        "atomics by their old names",
"As shmem_atomic_fetch(3) and its like."),
    page(&["shmem_put_signal", "shmem_put_signal_nbi"], "copy, and then change a word",
"As shmem_put(3) and shmem_put_nbi(3), after which the word at sig_addr is set (SHMEM_SIGNAL_SET) or added to (SHMEM_SIGNAL_ADD): who \
sees the word's new value sees what this call copied. For what was put before see shmem_fence(3). With nelems 0 the word is changed \
all the same."),
    page(&["shmem_signal_add", "shmem_signal_set", "shmem_signal_fetch", "shmem_signal_wait_until"], "words that are signals",
"shmem_signal_add and shmem_signal_set change a PE's word alone. shmem_signal_fetch gives this PE's own. shmem_signal_wait_until waits \
until this PE's own compares as asked (see shmem_wait_until(3)), and gives the value that did. What came before the signal is there."),
    page(&["shmem_wait_until", "shmem_wait", "shmem_test"], "wait for, or look at, a word",
"shmem_wait_until waits until this PE's word at ivar compares with cmp_value as cmp says: SHMEM_CMP_EQ, NE, GT, GE, LT or LE. \
shmem_test gives 1 if it does, else 0. Then what the writer ordered before the word is there. shmem_wait waits until the word is \
not cmp_value."),
    page(&["shmem_wait_until_all", "shmem_wait_until_any", "shmem_wait_until_some", "shmem_wait_until_all_vector",
           "shmem_wait_until_any_vector", "shmem_wait_until_some_vector"], "wait for several words",
"They wait until all of nelems words, one of them, or some compare with cmp_value, or each with its own of cmp_values, as cmp says \
(see shmem_wait_until(3)). A word does not count where status is not 0; status may be null. shmem_wait_until_any gives the place of \
one; shmem_wait_until_some writes the places of those that do to indices, and gives how many. Where no word counts they return at \
once: SIZE_MAX, and 0. None that compares so is left out for ever."),
    page(&["shmem_test_all", "shmem_test_any", "shmem_test_some", "shmem_test_all_vector", "shmem_test_any_vector",
           "shmem_test_some_vector"], "look at several words",
"As shmem_wait_until_all(3) and its like, without waiting: shmem_test_all gives 1 if all compare so, as it does where no word counts; \
shmem_test_any gives SIZE_MAX if none does, and shmem_test_some 0."),
    page(&["shmem_fence", "shmem_quiet", "shmem_pe_quiet"], "order, and completion",
"shmem_fence: what this PE did before, on the context, to one PE's memory (puts, atomics, signals, its own stores) is done there before \
what it does later to the same PE. shmem_quiet: it is all done, at all PEs, and everybody sees it; what was got or fetched without \
waiting is there. shmem_pe_quiet: the same of npes PEs alone. Each is about one context; SHMEM_CTX_INVALID is nothing."),
    page(&["shmem_set_lock", "shmem_clear_lock", "shmem_test_lock"], "locks",
"lock is a symmetric word, 0 on all PEs before. shmem_set_lock waits until this PE has it, in the order in which PEs came; \
shmem_test_lock gives 0 if it has it now, and 1 if another has. shmem_clear_lock completes what was put, and gives it back."),
    page(&["shmem_barrier_all", "shmem_sync_all", "shmem_team_sync"], "wait for all PEs",
"No PE returns before all have called. shmem_barrier_all completes what they did before on the default context; shmem_sync_all and \
shmem_team_sync do not: of each PE's memory its own stores are seen. shmem_team_sync is of a team, and gives 0."),
    page(&["shmem_broadcast", "shmem_collect", "shmem_fcollect", "shmem_alltoall", "shmem_alltoalls"], "move data among a team's PEs",
"All members call them, in the same order. dest and source are symmetric. shmem_broadcast copies the root's source to every dest, its \
own too; shmem_fcollect every PE's source, one after the other, to every dest; shmem_collect the same where PEs give different \
numbers of elements. shmem_alltoall copies the k-th part of nelems elements of each PE's source to PE k's dest, where it is in the \
sender's place; in shmem_alltoalls elements lie dst and sst apart.

Those of a team give 0, or something else where this PE could not. No PE need wait before the next call of the team. When one \
returns this PE's dest is there and its source may be changed, and no more is known of others.

Those that take PE_start, logPE_stride, PE_size and pSync are of the PEs PE_start, PE_start + 2^logPE_stride and so on; their \
broadcast leaves the root's dest. pSync is not used, and left as it was."),
    page(&["shmem_and_reduce", "shmem_or_reduce", "shmem_xor_reduce", "shmem_max_reduce", "shmem_min_reduce", "shmem_sum_reduce",
           "shmem_prod_reduce"], "combine a team's data",
"Element by element all members' source, which is symmetric, goes to every dest. dest may be source. They give 0, or something else \
where this PE could not. In which order floating point numbers are combined is not said."),
    page(&["shmem_sum_inscan", "shmem_sum_exscan"], "sums of the PEs before",
"Element by element the sum of source of all members up to this one; in shmem_sum_exscan without its own, which is 0 on the first. \
dest may be source. They give 0, or something else where this PE could not."),
    page(&["shmem_barrier", "shmem_sync"], "wait for the PEs of an active set",
"As shmem_barrier_all(3) and shmem_sync_all, of the PEs PE_start, PE_start + 2^logPE_stride and so on, PE_size of them. pSync is not \
used, and left as it was."),
    page(&["shmem_and_to_all", "shmem_or_to_all", "shmem_xor_to_all", "shmem_max_to_all", "shmem_min_to_all", "shmem_sum_to_all",
           "shmem_prod_to_all"], "combine an active set's data",
"As shmem_sum_reduce(3) and its like, of the PEs PE_start, PE_start + 2^logPE_stride and so on, PE_size of them. pWrk and pSync are \
not used, and left as they were."),
];
