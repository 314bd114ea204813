//! Breadth-first search of a graph whose vertices are spread over all PEs, level by level.
//!
//! Vertex `v` belongs to PE `v % n`, which keeps its edges and its parent in private memory. In
//! each level a PE follows the edges of the vertices that it found in the last one. An edge to
//! another PE's vertex is sent there through an [`Exchange`], a batch at a time. That PE reads what
//! it was sent after a barrier.

use oxshmem::{Result, Sym, World};

use crate::exchange::Exchange;
use crate::tree::NONE;

/// Pairs of a vertex and its parent that are sent to a PE at a time.
const BATCH: usize = 512;

/// A PE's vertices with their edges, and the state of a search.
#[derive(Debug)]
pub struct Search<'w> {
    world: &'w World,
    owners: Owners,
    /// Each vertex's neighbours on this PE, by their local indices.
    inside: Neighbours,
    /// Each vertex's neighbours on other PEs.
    outside: Neighbours,
    parents: Vec<u32>,
    /// The remote vertices that this PE has already reported to their owners.
    told: Vec<bool>,
    /// Pairs of a vertex and its parent, for each PE.
    batches: Vec<Vec<[u32; 2]>>,
    came: Vec<[u32; 2]>,
    exchange: Exchange<'w, [u32; 2]>,
    reached: Sym<u64>,
}

/// Neighbours of a PE's vertices.
#[derive(Debug)]
struct Neighbours {
    /// For each local index, where its neighbours begin in `all`; one more for the end.
    starts: Vec<usize>,
    all: Vec<u32>,
}

impl Neighbours {
    /// For so many vertices, from pairs of a local index and a neighbour in any order.
    fn new(places: usize, pairs: impl Iterator<Item = (usize, u32)> + Clone) -> Self {
        let mut starts = vec![0; places + 1];
        for (place, _) in pairs.clone() {
            starts[place] += 1;
        }
        let mut next = 0;
        for start in &mut starts {
            next += *start;
            *start = next;
        }
        let mut all = vec![0; next];
        for (place, neighbour) in pairs {
            // Filled from the end of each range, which leaves `starts` at the beginnings.
            starts[place] -= 1;
            all[starts[place]] = neighbour;
        }
        Neighbours { starts, all }
    }

    fn of(&self, place: usize) -> &[u32] {
        &self.all[self.starts[place]..self.starts[place + 1]]
    }
}

/// The owner of each vertex.
#[derive(Clone, Copy, Debug)]
struct Owners {
    pes: u32,
    vertices: u32,
}

impl Owners {
    fn of(self, vertex: u32) -> usize {
        (vertex % self.pes) as usize
    }

    /// Its index among its owner's vertices.
    fn place(self, vertex: u32) -> usize {
        (vertex / self.pes) as usize
    }

    fn count(self, pe: usize) -> usize {
        (self.vertices as usize + self.pes as usize - 1 - pe) / self.pes as usize
    }
}

impl<'w> Search<'w> {
    /// Sends each edge to the owners of its ends. `edges` is this PE's share, in any distribution.
    /// Collective.
    ///
    /// Each end of an edge is below `vertices`. Loops are left out.
    pub fn new(
        world: &'w World,
        vertices: u32,
        edges: impl Iterator<Item = [u32; 2]>,
    ) -> Result<Self> {
        let (me, pes) = (world.my_pe(), world.n_pes());
        let owners = Owners {
            pes: pes as u32,
            vertices,
        };
        let mut batches = vec![Vec::new(); pes];
        for [a, b] in edges.filter(|[a, b]| a != b) {
            batches[owners.of(a)].push([a, b]);
            batches[owners.of(b)].push([b, a]);
        }
        let exchange = Exchange::new(world, most_received(world, &batches)?)?;
        for pe in (0..pes).map(|ahead| (me + ahead) % pes) {
            exchange.send(&batches[pe], pe)?;
            batches[pe] = Vec::with_capacity(BATCH);
        }
        world.barrier_all()?;
        let mut came = Vec::new();
        exchange.receive(&mut came)?;

        let count = owners.count(me);
        let own = |vertex| owners.of(vertex) == me;
        let ends = came
            .iter()
            .map(|[vertex, end]| (owners.place(*vertex), *end));
        let outside = ends.clone().filter(|(_, end)| !own(*end));
        let inside = ends.filter(|(_, end)| own(*end));
        let inside = inside.map(|(place, end)| (place, owners.place(end) as u32));
        Ok(Search {
            world,
            owners,
            inside: Neighbours::new(count, inside),
            outside: Neighbours::new(count, outside),
            parents: vec![NONE; count],
            told: vec![false; vertices as usize],
            batches,
            came: Vec::new(),
            exchange,
            reached: world.alloc(2)?,
        })
    }

    /// The number of a vertex's edges, without loops. Collective.
    pub fn degree(&self, vertex: u32) -> Result<u64> {
        let owner = self.owners.of(vertex);
        let degree = self.reached.range(..1)?;
        if owner == self.world.my_pe() {
            let place = self.owners.place(vertex);
            let edges = self.inside.of(place).len() + self.outside.of(place).len();
            self.world.write(degree, &[edges as u64])?;
        }
        self.world.broadcast(degree, degree, owner)?;
        self.world.g(degree, self.world.my_pe())
    }

    /// Finds all vertices that `root` is connected with. Collective.
    pub fn run(&mut self, root: u32) -> Result<()> {
        let me = self.world.my_pe();
        self.parents.fill(NONE);
        self.told.fill(false);
        let (mut level, mut next) = (Vec::new(), Vec::new());
        if self.owners.of(root) == me {
            visit(&mut self.parents, self.owners.place(root), root, &mut level);
        }
        self.world.barrier_all()?; // All inboxes are empty.
        loop {
            for place in level.drain(..) {
                self.follow(place, &mut next)?;
            }
            for (pe, batch) in self.batches.iter_mut().enumerate() {
                self.exchange.send(batch, pe)?;
                batch.clear();
            }
            self.world.barrier_all()?; // All puts have arrived.
            self.exchange.receive(&mut self.came)?;
            for [vertex, parent] in &self.came {
                let place = self.owners.place(*vertex);
                visit(&mut self.parents, place, *parent, &mut next);
            }
            // A PE that has the sum knows, too, that all inboxes are empty: each was read before
            // its PE contributed to the sum (M16).
            if self.sum(next.len() as u64)? == 0 {
                return Ok(());
            }
            std::mem::swap(&mut level, &mut next);
        }
    }

    /// Visits the local neighbours of a vertex, and reports the others to their owners.
    fn follow(&mut self, place: usize, next: &mut Vec<usize>) -> Result<()> {
        let vertex = place as u32 * self.owners.pes + self.world.my_pe() as u32;
        for neighbour in self.inside.of(place) {
            visit(&mut self.parents, *neighbour as usize, vertex, next);
        }
        for neighbour in self.outside.of(place) {
            if !std::mem::replace(&mut self.told[*neighbour as usize], true) {
                let owner = self.owners.of(*neighbour);
                let batch = &mut self.batches[owner];
                batch.push([*neighbour, vertex]);
                if batch.len() == BATCH {
                    self.exchange.send(batch, owner)?;
                    batch.clear();
                }
            }
        }
        Ok(())
    }

    /// A number's sum over all PEs.
    fn sum(&self, mine: u64) -> Result<u64> {
        let (from, to) = (self.reached.range(..1)?, self.reached.range(1..)?);
        self.world.write(from, &[mine])?;
        self.world.sum_reduce(to, from)?;
        self.world.g(to, self.world.my_pe())
    }

    /// Every vertex's parent in the last search, on PE 0: itself for the root, [`NONE`] if it was
    /// not reached. Collective.
    pub fn gather(&self) -> Result<Option<Vec<u32>>> {
        let (world, owners) = (self.world, self.owners);
        let shared = world.alloc::<u32>(owners.count(0))?;
        world.write(shared, &self.parents)?;
        world.barrier_all()?;
        let mut parents = None;
        if world.my_pe() == 0 {
            let mut all = vec![NONE; owners.vertices as usize];
            let mut part = vec![NONE; owners.count(0)];
            for pe in 0..world.n_pes() {
                let part = &mut part[..owners.count(pe)];
                world.get(part, shared, pe)?;
                let places = all.iter_mut().skip(pe).step_by(world.n_pes());
                places
                    .zip(part)
                    .for_each(|(place, parent)| *place = *parent);
            }
            parents = Some(all);
        }
        world.free(shared)?; // Its barrier keeps every PE's part until PE 0 has it.
        Ok(parents)
    }

    /// Frees the memory. Collective.
    pub fn free(self) -> Result<()> {
        self.world.free(self.reached)?;
        self.exchange.free()
    }
}

/// Sets the parent of a vertex, if it has none yet.
fn visit(parents: &mut [u32], place: usize, parent: u32, next: &mut Vec<usize>) {
    if parents[place] == NONE {
        parents[place] = parent;
        next.push(place);
    }
}

/// The largest number of pairs that any PE is sent, if every PE sends these. Collective.
fn most_received(world: &World, batches: &[Vec<[u32; 2]>]) -> Result<usize> {
    let (me, pes) = (world.my_pe(), world.n_pes());
    // The number of pairs for each PE: first each PE's own count, then the sum over all.
    let counts = world.alloc::<u64>(pes)?;
    let mine: Vec<u64> = batches.iter().map(|batch| batch.len() as u64).collect();
    world.write(counts, &mine)?;
    world.sum_reduce(counts, counts)?;
    let mut all = vec![0; pes];
    world.get(&mut all, counts, me)?;
    world.free(counts)?;
    Ok(all.into_iter().max().unwrap_or(0) as usize)
}
