//! Calls for bindings to other languages, which programs in Rust do not need.
//!
//! They follow the memory model as the calls of [`Context`](crate::Context) and [`World`](crate::World) do. A binding names
//! objects by address ([`Addresses`], [`object_at`]), has a fast path apart from all the rest (`try_*`: the operation where
//! it is this CPU's own, else nothing is done), waits for words that it reads itself ([`wait_for`]), and ends a world in
//! steps, since C programs may initialize again ([`quiesce`], [`detach`]).
//!
//! `core/capi` and `core/nvshmem` use them. They may change in any version.

mod address;
mod fast_path;
#[cfg(feature = "cuda")]
mod gpu;
#[cfg(feature = "cuda")]
mod images;
mod lifecycle;
mod strided;
mod wait;

pub use self::address::{
    Addresses, address_of, addresses, block_at, cached_object, is_in_gpu_heap, object_at,
    peer_table, rest_at, word_table,
};
pub use self::fast_path::{try_atomic, try_g, try_get, try_p, try_put, try_quiet};
#[cfg(feature = "cuda")]
pub use self::gpu::{
    StridedElements, WordsToAwait, alloc_on_gpu, current_context, default_gpu_limit,
    device_library, get_on_stream, gpu_address_of, gpu_context, gpu_number, open_device_library,
    prepare_module, put_on_stream, put_signal_on_stream, shared_by_gpu, strided_on_stream,
    wait_on_stream, why_no_gpu_heap,
};
#[cfg(feature = "cuda")]
pub use self::images::{Image, has_images, prepare_images, register_image, unregister_image};
pub use self::lifecycle::{
    all_say, bootstrap_deadline, default_variable, detach, drive_in_waits, finalize_at_exit,
    forget_losses, host_id, is_checked, program_memory, quiesce, team_room, unquiesce, uses_lanes,
    variable, without_places,
};
pub use self::strided::{get_blocks, put_blocks};
pub use self::wait::{WaitContext, poll_once, wait_for};
pub use crate::strided::Blocks;
pub use oxshmem_engine::peer::entry::{Peer, PeerWords};
