//! The driver's calls on the nodes of graphs.

use std::sync::Arc;

use crate::call::{In, Out, Outcome};
use crate::code::Code;
use crate::context::by_handle_or_current;
use crate::copy::Copy3d;
use crate::driver::{driver, fresh};
use crate::event::{record_work, wait_work};
use crate::fill::FillNode;
use crate::graph::{Graph, Kind, Node, run};
use crate::host_function::HostNode;
use crate::kernel::launch::KernelNode;
use crate::stream::Work;
use crate::sync::lock;

fn graph(handle: u64) -> Outcome<Arc<Graph>> {
    let graph = lock(&driver()?.graphs).get(&handle).cloned();
    graph.ok_or(Code::INVALID_VALUE)
}

/// The graph that has a node.
fn owner(node: u64) -> Outcome<Arc<Graph>> {
    let graphs = lock(&driver()?.graphs);
    let has = |graph: &&Arc<Graph>| lock(&graph.nodes).iter().any(|own| own.handle == node);
    graphs
        .values()
        .find(has)
        .cloned()
        .ok_or(Code::INVALID_VALUE)
}

fn keep(out: Out<u64>, graph: Graph) -> Outcome {
    out.check()?;
    let handle = fresh();
    lock(&driver()?.graphs).insert(handle, Arc::new(graph));
    out.set(handle)
}

/// A node's place: where its handle goes, its graph, and the nodes before it.
struct Place {
    out: Out<u64>,
    graph: u64,
    after: In<u64>,
    count: usize,
}

impl Place {
    fn add(self, kind: Kind, work: impl FnOnce() -> Outcome<Work>) -> Outcome {
        let graph = graph(self.graph)?;
        self.out.check()?;
        let after = self.after.list(self.count)?;
        let work = work()?;
        let mut nodes = lock(&graph.nodes);
        if !all_known(&nodes, &after) {
            return Err(Code::INVALID_VALUE);
        }
        let handle = fresh();
        nodes.push(Node {
            handle,
            kind,
            work,
            after,
            original: 0,
        });
        self.out.set(handle)
    }
}

fn all_known(nodes: &[Node], handles: &[u64]) -> bool {
    let is_known = |handle: &u64| nodes.iter().any(|node| node.handle == *handle);
    handles.iter().all(is_known)
}

/// Changes what a node does, in a graph or in one that is ready to launch.
fn change(nodes: &mut [Node], node: u64, kind: Kind, work: Work) -> Outcome {
    let node = nodes.iter_mut().find(|own| own.handle == node);
    let node = node.filter(|node| node.kind == kind);
    node.ok_or(Code::INVALID_VALUE)?.work = work;
    Ok(())
}

fn change_ready(executable: u64, node: u64, kind: Kind, work: Work) -> Outcome {
    let executable = lock(&driver()?.executables).get(&executable).cloned();
    let executable = executable.ok_or(Code::INVALID_VALUE)?;
    change(&mut lock(&executable.nodes), node, kind, work)
}

driver_calls! {
    /// Makes a graph without nodes.
    fn cuGraphCreate(out: Out<u64>, flags: u32) {
        if flags != 0 {
            return Err(Code::INVALID_VALUE);
        }
        keep(out, Graph::default())
    }

    /// Makes a copy of a graph.
    fn cuGraphClone(out: Out<u64>, original: u64) {
        keep(out, graph(original)?.duplicate())
    }

    /// The node of a copy that stands for a node of the original.
    fn cuGraphNodeFindInClone(out: Out<u64>, original: u64, clone: u64) {
        let clone = graph(clone)?;
        let nodes = lock(&clone.nodes);
        let node = nodes.iter().find(|node| node.original == original && original != 0);
        out.set(node.ok_or(Code::INVALID_VALUE)?.handle)
    }

    /// A graph's nodes, or how many they are.
    fn cuGraphGetNodes(of: u64, out: Out<u64>, count: Out<usize>) {
        let graph = graph(of)?;
        let nodes = lock(&graph.nodes);
        if out.raw().is_null() {
            return count.set(nodes.len());
        }
        let room = count.get()?;
        for at in 0..room {
            // SAFETY: the caller of the driver vouches for as many places.
            unsafe { out.raw().add(at).write_unaligned(nodes.get(at).map_or(0, |node| node.handle)) };
        }
        count.set(room.min(nodes.len()))
    }

    /// Makes nodes come before others.
    fn cuGraphAddDependencies(of: u64, from: In<u64>, to: In<u64>, count: usize) {
        let graph = graph(of)?;
        let (from, to) = (from.list(count)?, to.list(count)?);
        let mut nodes = lock(&graph.nodes);
        if !all_known(&nodes, &from) || !all_known(&nodes, &to) {
            return Err(Code::INVALID_VALUE);
        }
        for (from, to) in from.into_iter().zip(to) {
            let node = nodes.iter_mut().find(|node| node.handle == to);
            let after = &mut node.ok_or(Code::INVALID_VALUE)?.after;
            // Of two nodes one comes before the other once.
            if from == to || after.contains(&from) {
                return Err(Code::INVALID_VALUE);
            }
            after.push(from);
        }
        Ok(())
    }

    /// Takes a node out of its graph. Graphs that are ready to launch keep it.
    fn cuGraphDestroyNode(node: u64) {
        let graph = owner(node)?;
        let mut nodes = lock(&graph.nodes);
        nodes.retain(|own| own.handle != node);
        nodes.iter_mut().for_each(|own| own.after.retain(|other| *other != node));
        Ok(())
    }

    /// Adds a launch.
    fn cuGraphAddKernelNode(out: Out<u64>, graph: u64, after: In<u64>, count: usize, node: In<KernelNode>) {
        Place { out, graph, after, count }.add(Kind::Kernel, || node.get()?.work())
    }

    /// Adds a launch.
    fn cuGraphAddKernelNode_v2(out: Out<u64>, graph: u64, after: In<u64>, count: usize, node: In<KernelNode>) {
        Place { out, graph, after, count }.add(Kind::Kernel, || node.get()?.work())
    }

    /// Adds a copy.
    fn cuGraphAddMemcpyNode(out: Out<u64>, graph: u64, after: In<u64>, count: usize, node: In<Copy3d>, context: u64) {
        Place { out, graph, after, count }.add(Kind::Copy, || node.get()?.work(&*by_handle_or_current(context)?))
    }

    /// Adds a memory set.
    fn cuGraphAddMemsetNode(out: Out<u64>, graph: u64, after: In<u64>, count: usize, node: In<FillNode>, context: u64) {
        Place { out, graph, after, count }.add(Kind::Fill, || node.get()?.work(&*by_handle_or_current(context)?))
    }

    /// Adds a call of a function of the program.
    fn cuGraphAddHostNode(out: Out<u64>, graph: u64, after: In<u64>, count: usize, node: In<HostNode>) {
        Place { out, graph, after, count }.add(Kind::Host, || node.get()?.work())
    }

    /// Adds a node that does nothing, for dependencies.
    fn cuGraphAddEmptyNode(out: Out<u64>, graph: u64, after: In<u64>, count: usize) {
        Place { out, graph, after, count }.add(Kind::Empty, || Ok(Arc::new(|_| Ok(()))))
    }

    /// Adds the recording of an event.
    fn cuGraphAddEventRecordNode(out: Out<u64>, graph: u64, after: In<u64>, count: usize, event: u64) {
        Place { out, graph, after, count }.add(Kind::Record, || record_work(event))
    }

    /// Adds a wait for an event.
    fn cuGraphAddEventWaitNode(out: Out<u64>, graph: u64, after: In<u64>, count: usize, event: u64) {
        Place { out, graph, after, count }.add(Kind::Wait, || wait_work(event))
    }

    /// Adds all that another graph does now.
    fn cuGraphAddChildGraphNode(out: Out<u64>, graph: u64, after: In<u64>, count: usize, child: u64) {
        let nodes = self::graph(child)?.in_order()?;
        let work: Work = Arc::new(move |context| run(&nodes, context));
        Place { out, graph, after, count }.add(Kind::Child, || Ok(work))
    }

    /// Changes a node's launch.
    fn cuGraphKernelNodeSetParams(node: u64, to: In<KernelNode>) {
        let work = to.get()?.work()?;
        change(&mut lock(&owner(node)?.nodes), node, Kind::Kernel, work)
    }

    /// Changes a node's launch.
    fn cuGraphKernelNodeSetParams_v2(node: u64, to: In<KernelNode>) {
        let work = to.get()?.work()?;
        change(&mut lock(&owner(node)?.nodes), node, Kind::Kernel, work)
    }

    /// Changes a launch in a graph that is ready.
    fn cuGraphExecKernelNodeSetParams(executable: u64, node: u64, to: In<KernelNode>) {
        change_ready(executable, node, Kind::Kernel, to.get()?.work()?)
    }

    /// Changes a launch in a graph that is ready.
    fn cuGraphExecKernelNodeSetParams_v2(executable: u64, node: u64, to: In<KernelNode>) {
        change_ready(executable, node, Kind::Kernel, to.get()?.work()?)
    }

    /// Changes a copy in a graph that is ready.
    fn cuGraphExecMemcpyNodeSetParams(executable: u64, node: u64, to: In<Copy3d>, context: u64) {
        change_ready(executable, node, Kind::Copy, to.get()?.work(&*by_handle_or_current(context)?)?)
    }

    /// Changes a memory set in a graph that is ready.
    fn cuGraphExecMemsetNodeSetParams(executable: u64, node: u64, to: In<FillNode>, context: u64) {
        change_ready(executable, node, Kind::Fill, to.get()?.work(&*by_handle_or_current(context)?)?)
    }

    /// Changes a call of the program in a graph that is ready.
    fn cuGraphExecHostNodeSetParams(executable: u64, node: u64, to: In<HostNode>) {
        change_ready(executable, node, Kind::Host, to.get()?.work()?)
    }
}
