//! Graphs, which are made by capture or node by node.

use std::ffi::c_void;

use crate::copy::{Copy3d, inside, plane};
use crate::driver;
use crate::error::{Error, Outcome};
use crate::launch::Dim3;
use crate::primary;
use crate::register::function;

fn instantiate(out: *mut u64, graph: u64, flags: u64) -> Outcome {
    if out.is_null() {
        return Err(Error::INVALID_VALUE);
    }
    driver::cuGraphInstantiateWithFlags(out, graph, flags)
}

/// `cudaKernelNodeParams`. The driver's has its own function in place of the kernel's stub.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct KernelNode {
    stub: *const c_void,
    grid: Dim3,
    block: Dim3,
    shared: u32,
    arguments: *const *const c_void,
    extra: *const c_void,
}

#[repr(C)]
struct DriversKernelNode {
    function: u64,
    grid: Dim3,
    block: Dim3,
    shared: u32,
    arguments: *const *const c_void,
    extra: *const c_void,
}

/// Gives the driver a launch.
fn launch(node: *const KernelNode, give: impl FnOnce(*const c_void) -> Outcome) -> Outcome {
    if node.is_null() {
        return Err(Error::INVALID_VALUE);
    }
    // SAFETY: not null, so the runtime's caller vouches for it.
    let node = unsafe { *node };
    let node = DriversKernelNode {
        function: function(node.stub)?,
        grid: node.grid,
        block: node.block,
        shared: node.shared,
        arguments: node.arguments,
        extra: node.extra,
    };
    give((&raw const node).cast())
}

/// Gives the driver a copy.
fn copy(
    copy: Outcome<crate::copy::Planes>,
    give: impl FnOnce(*const c_void) -> Outcome,
) -> Outcome {
    let copy = copy?;
    primary::ensure()?;
    give((&raw const copy).cast())
}

runtime_calls! {
    /// Makes a graph without nodes.
    fn cudaGraphCreate(out: *mut u64, flags: u32) {
        primary::ensure()?;
        driver::cuGraphCreate(out, flags)
    }

    /// Makes a copy of a graph.
    fn cudaGraphClone(out: *mut u64, original: u64) {
        driver::cuGraphClone(out, original)
    }

    /// The node of a copy that stands for a node of the original.
    fn cudaGraphNodeFindInClone(out: *mut u64, original: u64, clone: u64) {
        driver::cuGraphNodeFindInClone(out, original, clone)
    }

    /// Makes nodes come before others.
    fn cudaGraphAddDependencies(graph: u64, from: *const u64, to: *const u64, count: usize) {
        driver::cuGraphAddDependencies(graph, from, to, count)
    }

    /// Takes a node out of its graph.
    fn cudaGraphDestroyNode(node: u64) {
        driver::cuGraphDestroyNode(node)
    }

    /// Adds a launch.
    fn cudaGraphAddKernelNode(out: *mut u64, graph: u64, after: *const u64, count: usize, node: *const KernelNode) {
        launch(node, |node| driver::cuGraphAddKernelNode(out, graph, after, count, node))
    }

    /// Changes a node's launch.
    fn cudaGraphKernelNodeSetParams(node: u64, to: *const KernelNode) {
        launch(to, |to| driver::cuGraphKernelNodeSetParams(node, to))
    }

    /// Changes a launch in a graph that is ready.
    fn cudaGraphExecKernelNodeSetParams(executable: u64, node: u64, to: *const KernelNode) {
        launch(to, |to| driver::cuGraphExecKernelNodeSetParams(executable, node, to))
    }

    /// Adds a copy of planes of rows.
    fn cudaGraphAddMemcpyNode(out: *mut u64, graph: u64, after: *const u64, count: usize, node: *const Copy3d) {
        copy(Copy3d::planes(node), |node| driver::cuGraphAddMemcpyNode(out, graph, after, count, node, 0))
    }

    /// Adds a copy of bytes.
    fn cudaGraphAddMemcpyNode1D(
        out: *mut u64, graph: u64, after: *const u64, count: usize, to: u64, from: u64, bytes: usize, kind: u32
    ) {
        copy(plane(to, from, bytes, kind), |node| driver::cuGraphAddMemcpyNode(out, graph, after, count, node, 0))
    }

    /// Adds a copy to a variable.
    fn cudaGraphAddMemcpyNodeToSymbol(
        out: *mut u64, graph: u64, after: *const u64, count: usize, symbol: *const c_void, from: u64, bytes: usize,
        offset: usize, kind: u32
    ) {
        let to = inside(symbol, bytes, offset)?;
        copy(plane(to, from, bytes, kind), |node| driver::cuGraphAddMemcpyNode(out, graph, after, count, node, 0))
    }

    /// Adds a copy from a variable.
    fn cudaGraphAddMemcpyNodeFromSymbol(
        out: *mut u64, graph: u64, after: *const u64, count: usize, to: u64, symbol: *const c_void, bytes: usize,
        offset: usize, kind: u32
    ) {
        let from = inside(symbol, bytes, offset)?;
        copy(plane(to, from, bytes, kind), |node| driver::cuGraphAddMemcpyNode(out, graph, after, count, node, 0))
    }

    /// Changes a copy in a graph that is ready.
    fn cudaGraphExecMemcpyNodeSetParams(executable: u64, node: u64, to: *const Copy3d) {
        copy(Copy3d::planes(to), |to| driver::cuGraphExecMemcpyNodeSetParams(executable, node, to, 0))
    }

    /// Changes a copy of bytes in a graph that is ready.
    fn cudaGraphExecMemcpyNodeSetParams1D(executable: u64, node: u64, to: u64, from: u64, bytes: usize, kind: u32) {
        copy(plane(to, from, bytes, kind), |to| driver::cuGraphExecMemcpyNodeSetParams(executable, node, to, 0))
    }

    /// Adds a memory set.
    fn cudaGraphAddMemsetNode(out: *mut u64, graph: u64, after: *const u64, count: usize, node: *const c_void) {
        primary::ensure()?;
        driver::cuGraphAddMemsetNode(out, graph, after, count, node, 0)
    }

    /// Changes a memory set in a graph that is ready.
    fn cudaGraphExecMemsetNodeSetParams(executable: u64, node: u64, to: *const c_void) {
        primary::ensure()?;
        driver::cuGraphExecMemsetNodeSetParams(executable, node, to, 0)
    }

    /// Adds a call of a function of the program.
    fn cudaGraphAddHostNode(out: *mut u64, graph: u64, after: *const u64, count: usize, node: *const c_void) {
        driver::cuGraphAddHostNode(out, graph, after, count, node)
    }

    /// Changes a call of the program in a graph that is ready.
    fn cudaGraphExecHostNodeSetParams(executable: u64, node: u64, to: *const c_void) {
        driver::cuGraphExecHostNodeSetParams(executable, node, to)
    }

    /// Adds a node that does nothing.
    fn cudaGraphAddEmptyNode(out: *mut u64, graph: u64, after: *const u64, count: usize) {
        driver::cuGraphAddEmptyNode(out, graph, after, count)
    }

    /// Adds the recording of an event.
    fn cudaGraphAddEventRecordNode(out: *mut u64, graph: u64, after: *const u64, count: usize, event: u64) {
        driver::cuGraphAddEventRecordNode(out, graph, after, count, event)
    }

    /// Adds a wait for an event.
    fn cudaGraphAddEventWaitNode(out: *mut u64, graph: u64, after: *const u64, count: usize, event: u64) {
        driver::cuGraphAddEventWaitNode(out, graph, after, count, event)
    }

    /// Adds all that another graph does now.
    fn cudaGraphAddChildGraphNode(out: *mut u64, graph: u64, after: *const u64, count: usize, child: u64) {
        driver::cuGraphAddChildGraphNode(out, graph, after, count, child)
    }

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

    /// A graph's nodes, or how many they are.
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
