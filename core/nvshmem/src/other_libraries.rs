//! MPI and OpenSHMEM as ways to start: the program's own library carries a unique id to all processes.
//!
//! Nothing is linked. The calls are looked up among the libraries that the program has loaded, or in Open MPI's and MPICH's by name.

use std::ffi::{CStr, c_int, c_void};

use crate::attributes::new_id;
use crate::failure::{Done, Failure};
use crate::types::UniqueId;

/// The ranks of a job, and its id.
pub(crate) struct Found {
    pub(crate) rank: i32,
    pub(crate) size: i32,
    pub(crate) id: UniqueId,
}

/// Libraries of MPI, by the names of their files.
const MPI: [&CStr; 4] = [
    c"libmpi.so.40",
    c"libmpi.so.12",
    c"libmpich.so.12",
    c"libmpi.so",
];

/// A symbol of the program, or of one of the libraries: of one that the program has loaded, if there is one, or of the first that is there.
fn symbol(name: &CStr, libraries: &[&CStr]) -> Option<*mut c_void> {
    // SAFETY: a string that ends; the program's own scope.
    let mut found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    let tries = [libc::RTLD_NOLOAD, libc::RTLD_GLOBAL]
        .into_iter()
        .flat_map(|how| libraries.iter().map(move |library| (how, library)));
    for (how, library) in tries {
        if !found.is_null() {
            break;
        }
        // SAFETY: a string that ends. The library stays loaded: its calls are used for as long as the program uses it.
        let handle = unsafe { libc::dlopen(library.as_ptr(), libc::RTLD_LAZY | how) };
        if !handle.is_null() {
            // SAFETY: the handle of a loaded library, and a string that ends.
            found = unsafe { libc::dlsym(handle, name.as_ptr()) };
        }
    }
    (!found.is_null()).then_some(found)
}

/// The first rank's new id, and no id on the others. One that cannot be made is zeros, so that all ranks meet; its error is for afterwards.
fn id_of(rank: c_int) -> (UniqueId, Done) {
    let none = bytemuck::Zeroable::zeroed();
    match rank {
        0 => match new_id() {
            Ok(id) => (id, Ok(())),
            Err(failure) => (none, Err(failure)),
        },
        _ => (none, Ok(())),
    }
}

/// A call that has to be there.
fn needed(name: &CStr, libraries: &[&CStr], what: &str) -> Done<*mut c_void> {
    symbol(name, libraries).ok_or_else(|| {
        Failure::Start(format!(
            "{} is in no library that this program has loaded; link the program with {what}, or start by nvshmem_init under a launcher",
            name.to_string_lossy()
        ))
    })
}

fn checked(call: &str, code: c_int) -> Done {
    match code {
        0 => Ok(()),
        code => Err(Failure::Start(format!("{call} failed with code {code}"))),
    }
}

/// The communicator of an `MPI_Comm*`, as MPI's calls take it: a pointer with Open MPI, a number with MPICH and its kin. Both fit a
/// register, of which MPICH's calls read the lower half.
type Communicator = usize;

/// Starts by an MPI communicator; null is that of all processes. Collective over it.
///
/// # Safety
///
/// `communicator` is null or points to a communicator of the program's MPI, which is initialized.
pub(crate) unsafe fn by_mpi(communicator: *mut c_void) -> Done<Found> {
    const WHAT: &str = "MPI";
    type OfComm = unsafe extern "C" fn(Communicator, *mut c_int) -> c_int;
    type Broadcast = unsafe extern "C" fn(*mut c_void, c_int, usize, c_int, Communicator) -> c_int;
    type Initialized = unsafe extern "C" fn(*mut c_int) -> c_int;
    let rank_of = needed(c"MPI_Comm_rank", &MPI, WHAT)?;
    let size_of_comm = needed(c"MPI_Comm_size", &MPI, WHAT)?;
    let broadcast = needed(c"MPI_Bcast", &MPI, WHAT)?;
    let initialized = needed(c"MPI_Initialized", &MPI, WHAT)?;
    // SAFETY: MPI's calls of these names have these types, with handles that fit a register.
    let (rank_of, size_of_comm, broadcast, initialized) = unsafe {
        (
            std::mem::transmute::<*mut c_void, OfComm>(rank_of),
            std::mem::transmute::<*mut c_void, OfComm>(size_of_comm),
            std::mem::transmute::<*mut c_void, Broadcast>(broadcast),
            std::mem::transmute::<*mut c_void, Initialized>(initialized),
        )
    };
    let mut is_ready = 0;
    // SAFETY: the pointer is to a live integer.
    checked("MPI_Initialized", unsafe { initialized(&raw mut is_ready) })?;
    if is_ready == 0 {
        return Err(Failure::Start("call MPI_Init before".into()));
    }
    // Open MPI's handles are addresses of its variables, MPICH's are constants.
    let open_mpi = symbol(c"ompi_mpi_byte", &[]).zip(symbol(c"ompi_mpi_comm_world", &[]));
    const MPICH_BYTE: usize = 0x4c00_010d;
    const MPICH_WORLD: usize = 0x4400_0000;
    let (byte, world) = open_mpi.map_or((MPICH_BYTE, MPICH_WORLD), |(byte, world)| {
        (byte.expose_provenance(), world.expose_provenance())
    });
    let comm = match (communicator.is_null(), open_mpi.is_some()) {
        (true, _) => world,
        // SAFETY: the caller gives the place of a communicator, which is a pointer here.
        (false, true) => unsafe { communicator.cast::<usize>().read() },
        // SAFETY: the caller gives the place of a communicator, which is a number here.
        (false, false) => unsafe { communicator.cast::<u32>().read() as usize },
    };
    let (mut rank, mut size) = (0, 0);
    // SAFETY: the communicator is MPI's; the pointers are to live integers.
    unsafe {
        checked("MPI_Comm_rank", rank_of(comm, &raw mut rank))?;
        checked("MPI_Comm_size", size_of_comm(comm, &raw mut size))?;
    }
    let (mut id, made) = id_of(rank);
    let bytes = size_of_val(&id) as c_int;
    // SAFETY: the buffer has so many bytes; the type is MPI's of bytes.
    let sent = unsafe { broadcast((&raw mut id).cast(), bytes, byte, 0, comm) };
    checked("MPI_Bcast", sent)?;
    made?;
    Ok(Found { rank, size, id })
}

/// Starts by the program's OpenSHMEM, which is initialized. Collective over its PEs.
pub(crate) fn by_shmem() -> Done<Found> {
    const WHAT: &str = "OpenSHMEM";
    type Number = unsafe extern "C" fn() -> c_int;
    type Allocate = unsafe extern "C" fn(usize) -> *mut c_void;
    type Free = unsafe extern "C" fn(*mut c_void);
    type Meet = unsafe extern "C" fn();
    type Get = unsafe extern "C" fn(*mut c_void, *const c_void, usize, c_int);
    let find = |name| needed(name, &[], WHAT);
    // SAFETY: OpenSHMEM's calls of these names have these types.
    let (my_pe, n_pes, malloc, free, barrier, get) = unsafe {
        (
            std::mem::transmute::<*mut c_void, Number>(find(c"shmem_my_pe")?),
            std::mem::transmute::<*mut c_void, Number>(find(c"shmem_n_pes")?),
            std::mem::transmute::<*mut c_void, Allocate>(find(c"shmem_malloc")?),
            std::mem::transmute::<*mut c_void, Free>(find(c"shmem_free")?),
            std::mem::transmute::<*mut c_void, Meet>(find(c"shmem_barrier_all")?),
            std::mem::transmute::<*mut c_void, Get>(find(c"shmem_getmem")?),
        )
    };
    // SAFETY: the calls take no arguments.
    let (rank, size) = unsafe { (my_pe(), n_pes()) };
    // SAFETY: collective, with the same size on all PEs.
    let shared = unsafe { malloc(size_of::<UniqueId>()) }.cast::<UniqueId>();
    if shared.is_null() {
        return Err(Failure::Start(
            "shmem_malloc of 128 bytes failed; give OpenSHMEM's heap more memory".into(),
        ));
    }
    let (mut id, made) = id_of(rank);
    // SAFETY: the block is this PE's and has room for an id; others get PE 0's between the two barriers.
    unsafe {
        shared.write(id);
        barrier();
        get(
            (&raw mut id).cast(),
            shared.cast_const().cast(),
            size_of_val(&id),
            0,
        );
        barrier();
        free(shared.cast());
    }
    made?;
    Ok(Found { rank, size, id })
}
