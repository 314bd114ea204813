//! Graphs, which are made by capture.

use crate::driver;
use crate::error::{Error, Outcome};
use crate::primary;

fn instantiate(out: *mut u64, graph: u64, flags: u64) -> Outcome {
    if out.is_null() {
        return Err(Error::INVALID_VALUE);
    }
    driver::cuGraphInstantiateWithFlags(out, graph, flags)
}

runtime_calls! {
    /// Makes a graph ready for launches.
    fn cudaGraphInstantiate(out: *mut u64, graph: u64, flags: u64) {
        instantiate(out, graph, flags)
    }

    /// Makes a graph ready for launches.
    fn cudaGraphInstantiateWithFlags(out: *mut u64, graph: u64, flags: u64) {
        instantiate(out, graph, flags)
    }

    /// Destroys a graph.
    fn cudaGraphDestroy(graph: u64) {
        driver::cuGraphDestroy(graph)
    }

    /// Destroys a graph that was made ready.
    fn cudaGraphExecDestroy(executable: u64) {
        driver::cuGraphExecDestroy(executable)
    }

    /// How many nodes a graph has.
    fn cudaGraphGetNodes(graph: u64, nodes: *mut u64, count: *mut usize) {
        driver::cuGraphGetNodes(graph, nodes, count)
    }
}

stream_calls! {
    /// Gives a graph's work to a stream.
    fn cudaGraphLaunch, cudaGraphLaunch_ptsz(executable: u64; stream) {
        primary::ensure()?;
        driver::cuGraphLaunch(executable, stream)
    }

    /// Prepares a graph's launch.
    fn cudaGraphUpload, cudaGraphUpload_ptsz(executable: u64; stream) {
        primary::ensure()?;
        driver::cuGraphUpload(executable, stream)
    }
}
