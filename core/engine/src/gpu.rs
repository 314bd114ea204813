//! GPU heaps: the traits of their memory, the flushes after which a GPU sees data that NICs have placed (M27), and the
//! server of copies through host memory.

pub mod flush;
pub mod memory;
pub mod stage_request;
pub mod staging_server;
