//! The serial reference: what each step of a plan is, and what every PE's memory holds after it.

use std::ops::Range;
use std::sync::Arc;

use oxshmem::Fold;

use super::plan::{By, Call, Kind, Len, Plan, Shape, Step};
use crate::by_host;
use crate::numbers::Number;
use crate::setting::pattern;

/// A plan with every number settled.
#[derive(Debug)]
pub struct Script {
    /// Bytes of each PE's memory.
    pub bytes: usize,
    /// Each PE's memory before the first step.
    pub before: Vec<Arc<Vec<u8>>>,
    pub moments: Vec<Moment>,
    /// How often the word that the lock guards is counted up.
    pub counted: u64,
}

/// A step: who takes part, in what, and all PEs' memory after it.
#[derive(Debug)]
pub struct Moment {
    pub members: Vec<usize>,
    pub deed: Deed,
    pub after: Vec<Arc<Vec<u8>>>,
}

/// The call that the members make. Teams are numbered as they are made; 0 is the world's.
#[derive(Debug)]
pub enum Deed {
    /// The new teams, the first of which has the number `first`.
    Split {
        team: usize,
        by: Split,
        first: usize,
        made: Vec<Vec<usize>>,
    },
    Destroy {
        team: usize,
    },
    Call {
        team: usize,
        call: Settled,
    },
    Wrong {
        team: usize,
        how: usize,
    },
    Exchange {
        team: usize,
        by: By,
        shift: usize,
        into: Range<usize>,
        seed: usize,
    },
    Count {
        team: usize,
    },
    Allocate {
        words: usize,
    },
}

#[derive(Debug)]
pub enum Split {
    Strided(usize, isize, usize),
    Listed(Vec<usize>),
    Grid(usize),
}

/// A call with its objects, as elements of the whole memory.
#[derive(Clone, Debug)]
pub struct Settled {
    pub kind: Kind,
    pub number: usize,
    pub fold: Fold,
    pub root: usize,
    /// Elements of one block.
    pub len: usize,
    pub strides: (usize, usize),
    pub dst: Range<usize>,
    pub src: Range<usize>,
    pub fresh: bool,
    pub reused: bool,
    pub seed: usize,
}

impl Settled {
    /// The elements that a member writes into its source before the call.
    pub fn given<T: Number>(&self, member: usize) -> Vec<T> {
        let value = |i| T::make(pattern(self.seed * 1024 + member, i));
        (0..self.src.len()).map(value).collect()
    }

    /// The elements that it writes there after the call.
    pub fn next<T: Number>(&self, member: usize) -> Vec<T> {
        self.given(member + 512)
    }

    /// A member's destination: in place, of a reduce-scatter, the first block of its source or its own.
    pub fn destination(&self, member: usize) -> Range<usize> {
        let is_in_place = self.kind == Kind::ReduceScatter && self.dst.start == self.src.start;
        let at = match is_in_place && pattern(self.seed, 6000 + member).is_multiple_of(2) {
            true => member * self.len,
            false => 0,
        };
        self.dst.start + at..self.dst.end + at
    }

    /// The part of its source that a member gives to a collect.
    pub fn part(&self, member: usize) -> Range<usize> {
        let chosen = pattern(self.seed, 5000 + member) as usize;
        let len = chosen % (self.len + 1);
        let start = (chosen >> 32) % (self.src.len() - len + 1);
        self.src.start + start..self.src.start + start + len
    }
}

/// Calls a function with the element type of this number.
macro_rules! with_number {
    ($number:expr, $f:ident($($argument:expr),*)) => {
        match $number {
            0 => $f::<u8>($($argument),*),
            1 => $f::<i8>($($argument),*),
            2 => $f::<u16>($($argument),*),
            3 => $f::<i16>($($argument),*),
            4 => $f::<u32>($($argument),*),
            5 => $f::<i32>($($argument),*),
            6 => $f::<u64>($($argument),*),
            7 => $f::<i64>($($argument),*),
            8 => $f::<u128>($($argument),*),
            9 => $f::<i128>($($argument),*),
            10 => $f::<f32>($($argument),*),
            11 => $f::<f64>($($argument),*),
            12 => $f::<oxshmem::f16>($($argument),*),
            13 => $f::<oxshmem::bf16>($($argument),*),
            14 => $f::<oxshmem::Complex<f32>>($($argument),*),
            _ => $f::<oxshmem::Complex<f64>>($($argument),*),
        }
    };
}
pub(super) use with_number;

const NUMBERS: usize = 16;
/// More teams than so many are not alive at a time.
const MOST_TEAMS: usize = 10;

/// The job as the steps have left it.
struct Job {
    /// Bytes of each half of the memory.
    half: usize,
    memory: Vec<Arc<Vec<u8>>>,
    /// The host of each PE.
    hosts: Vec<usize>,
    /// None for one that was destroyed.
    teams: Vec<Option<Vec<usize>>>,
    counted: u64,
}

/// Does a plan's steps one after the other, in two halves of memory of so many bytes, with PEs on these hosts.
pub fn script(plan: &Plan, half: usize, hosts: &[usize]) -> Script {
    let start = |pe| {
        let bytes = (0..2 * half).map(|i| pattern(pe, i) as u8);
        Arc::new(bytes.collect())
    };
    let mut job = Job {
        half,
        memory: (0..plan.pes).map(start).collect(),
        hosts: hosts.to_vec(),
        teams: vec![Some((0..plan.pes).collect())],
        counted: 0,
    };
    let before = job.memory.clone();
    let moments = plan.steps.iter().map(|step| job.take(step)).collect();
    Script {
        bytes: 2 * half,
        before,
        moments,
        counted: job.counted,
    }
}

impl Job {
    fn take(&mut self, step: &Step) -> Moment {
        let (members, deed) = match step {
            Step::Split { team, shape } => self.split(*team, shape),
            Step::Destroy { team } => self.destroy(*team),
            Step::Call { team, call } => self.call(*team, call),
            Step::Wrong { team, how } => {
                let (team, members) = self.team(*team);
                (members, Deed::Wrong { team, how: *how })
            }
            Step::Exchange {
                team,
                by,
                shift,
                len,
                seed,
            } => self.exchange(*team, *by, *shift, *len, *seed),
            Step::Count { team } => {
                let (team, members) = self.team(*team);
                self.counted += members.len() as u64;
                (members, Deed::Count { team })
            }
            Step::Allocate { words } => {
                let (_, members) = self.team(0);
                (members, Deed::Allocate { words: *words })
            }
        };
        Moment {
            members,
            deed,
            after: self.memory.clone(),
        }
    }

    /// A team that is alive, and its members.
    fn team(&self, any: usize) -> (usize, Vec<usize>) {
        let alive: Vec<usize> = (0..self.teams.len())
            .filter(|team| self.teams[*team].is_some())
            .collect();
        let team = alive[any % alive.len()];
        (team, self.teams[team].clone().unwrap())
    }

    fn destroy(&mut self, any: usize) -> (Vec<usize>, Deed) {
        let (team, members) = self.team(any);
        // The world's cannot be.
        if team > 0 {
            self.teams[team] = None;
        }
        (members, Deed::Destroy { team })
    }

    fn split(&mut self, any: usize, shape: &Shape) -> (Vec<usize>, Deed) {
        if self.teams.iter().flatten().count() >= MOST_TEAMS {
            return self.destroy(any);
        }
        let (team, members) = self.team(any);
        let n = members.len();
        let (by, places): (Split, Vec<Vec<usize>>) = match *shape {
            Shape::Strided {
                start,
                stride,
                size,
            } => {
                let start = start % n;
                let left = if stride < 0 { start } else { n - 1 - start };
                let most = left.checked_div(stride.unsigned_abs()).unwrap_or(0) + 1;
                let size = 1 + size % most;
                let place = |i: usize| start.wrapping_add_signed(i as isize * stride);
                let places = (0..size).map(place).collect();
                (Split::Strided(start, stride, size), vec![places])
            }
            Shape::Listed { seed, size } => {
                let mut list: Vec<usize> = (0..n).collect();
                list.sort_unstable_by_key(|place| pattern(seed, *place));
                list.truncate(1 + size % n);
                (Split::Listed(list.clone()), vec![list])
            }
            Shape::Grid { xrange } => {
                let xrange = 1 + xrange % (n + 1);
                let wide = xrange.min(n);
                let rows = (0..n.div_ceil(wide))
                    .map(|row| (row * wide..n.min((row + 1) * wide)).collect());
                let columns =
                    (0..wide).map(|column| (column..n).step_by(wide).collect::<Vec<usize>>());
                (Split::Grid(xrange), rows.chain(columns).collect())
            }
        };
        let pes = |places: Vec<usize>| places.into_iter().map(|place| members[place]).collect();
        let made: Vec<Vec<usize>> = places.into_iter().map(pes).collect();
        let first = self.teams.len();
        self.teams.extend(made.iter().cloned().map(Some));
        let deed = Deed::Split {
            team,
            by,
            first,
            made,
        };
        (members, deed)
    }

    fn exchange(
        &mut self,
        any: usize,
        by: By,
        shift: usize,
        len: usize,
        seed: usize,
    ) -> (Vec<usize>, Deed) {
        let (team, members) = self.team(any);
        let n = members.len();
        let (len, shift) = (len.min(self.half), shift % n);
        let start = seed % (2 * self.half - len + 1);
        let into = start..start + len;
        for (from, pe) in members.iter().enumerate() {
            let to = members[(from + shift) % n];
            Arc::make_mut(&mut self.memory[to])[into.clone()].copy_from_slice(&put(*pe, seed, len));
        }
        let deed = Deed::Exchange {
            team,
            by,
            shift,
            into,
            seed,
        };
        (members, deed)
    }

    fn call(&mut self, any: usize, call: &Call) -> (Vec<usize>, Deed) {
        let (team, members) = self.team(any);
        let number = call.number % NUMBERS;
        let call = with_number!(number, settle(call, members.len(), self.half));
        let groups = by_host::groups(members.iter().copied(), &self.hosts);
        with_number!(
            number,
            perform(&mut self.memory, (&members, &groups), &call)
        );
        (members, Deed::Call { team, call })
    }
}

/// The bytes that a PE puts in an exchange.
pub fn put(pe: usize, seed: usize, len: usize) -> Vec<u8> {
    (0..len).map(|i| pattern(pe + 77, seed + i) as u8).collect()
}

/// Gives a call the sizes and places that fit.
fn settle<T: Number>(call: &Call, n: usize, half: usize) -> Settled {
    let half = half / size_of::<T>();
    let (ds, ss) = match call.kind {
        Kind::Alltoalls => call.strides,
        _ => (1, 1),
    };
    let most = half / n / ds.max(ss);
    let len = match call.len {
        Len::Few(len) => len.min(most),
        Len::Part(part) => most * part / 1000,
    };
    let spanned = |blocks: usize, stride: usize| match blocks * len {
        0 => 0,
        all => (all - 1) * stride + 1,
    };
    let (of_dst, of_src) = match call.kind {
        Kind::Sync | Kind::Barrier => (0, 0),
        Kind::Broadcast | Kind::Reduce | Kind::Inscan | Kind::Exscan => (1, 1),
        Kind::Collect | Kind::Fcollect => (n, 1),
        Kind::Alltoall | Kind::Alltoalls => (n, n),
        Kind::ReduceScatter => (1, n),
    };
    let place = |half_of: bool, any: usize, len: usize| {
        let start = usize::from(half_of) * half + any % (half - len + 1);
        start..start + len
    };
    let dst = place(call.flipped, call.places.0, spanned(of_dst, ds));
    let src = place(!call.flipped, call.places.1, spanned(of_src, ss));
    use Kind::{Broadcast, Exscan, Inscan, Reduce, ReduceScatter};
    let may_be_one = matches!(
        call.kind,
        Broadcast | Reduce | ReduceScatter | Inscan | Exscan
    );
    let in_place = call.in_place && may_be_one;
    let fold = T::FOLDS[call.fold % T::FOLDS.len()];
    // Any bytes are integers, and move; what is folded otherwise shall be numbers.
    let is_integer = T::FOLDS.len() == Fold::ALL.len();
    Settled {
        kind: call.kind,
        number: call.number % NUMBERS,
        fold,
        root: call.root % n,
        len,
        strides: (ds, ss),
        dst: match in_place {
            true => src.start..src.start + dst.len(),
            false => dst,
        },
        src,
        fresh: call.fresh || !is_integer,
        reused: call.reused && !in_place,
        seed: call.seed,
    }
}

fn read<T: Number>(memory: &[u8], which: Range<usize>) -> Vec<T> {
    let size = size_of::<T>();
    let bytes = &memory[which.start * size..which.end * size];
    bytes
        .chunks_exact(size)
        .map(bytemuck::pod_read_unaligned)
        .collect()
}

fn write<T: Number>(memory: &mut Arc<Vec<u8>>, at: usize, values: &[T]) {
    let bytes: &[u8] = bytemuck::cast_slice(values);
    let start = at * size_of::<T>();
    Arc::make_mut(memory)[start..start + bytes.len()].copy_from_slice(bytes);
}

/// Does a call: every member's destination, by definition.
fn perform<T: Number>(
    memory: &mut [Arc<Vec<u8>>],
    (members, groups): (&[usize], &[Vec<usize>]),
    call: &Settled,
) {
    if call.fresh {
        for (member, pe) in members.iter().enumerate() {
            write::<T>(&mut memory[*pe], call.src.start, &call.given(member));
        }
    }
    let (n, len) = (members.len(), call.len);
    let given: Vec<Vec<T>> = members
        .iter()
        .map(|pe| read(&memory[*pe], call.src.clone()))
        .collect();
    let fold = |of: Range<usize>, i: usize| {
        let mut values = of.map(|member| given[member][i]);
        T::fold(call.fold, &mut values).unwrap_or(T::nothing(call.fold))
    };
    let folds = |of: Range<usize>| (0..len).map(|i| fold(of.clone(), i)).collect();
    for (me, pe) in members.iter().enumerate() {
        let block = |member: usize| &given[member][me * len..(me + 1) * len];
        let values: Vec<T> = match call.kind {
            Kind::Sync | Kind::Barrier => continue,
            Kind::Broadcast => given[call.root].clone(),
            Kind::Fcollect => given.concat(),
            Kind::Collect => (0..n)
                .flat_map(|member| {
                    let part = call.part(member);
                    let start = part.start - call.src.start;
                    given[member][start..start + part.len()].to_vec()
                })
                .collect(),
            Kind::Alltoall => (0..n).flat_map(|member| block(member).to_vec()).collect(),
            Kind::Alltoalls => {
                let (ds, ss) = call.strides;
                for i in 0..n * len {
                    let value = given[i / len][(me * len + i % len) * ss];
                    write(&mut memory[*pe], call.dst.start + i * ds, &[value]);
                }
                continue;
            }
            Kind::Reduce => (0..len)
                .map(|i| by_host::folded(call.fold, groups, |member| given[member][i]))
                .collect(),
            Kind::Inscan => folds(0..me + 1),
            Kind::Exscan => folds(0..me),
            Kind::ReduceScatter => (me * len..(me + 1) * len).map(|i| fold(0..n, i)).collect(),
        };
        write(&mut memory[*pe], call.destination(me).start, &values);
    }
    if call.reused {
        for (member, pe) in members.iter().enumerate() {
            write::<T>(&mut memory[*pe], call.src.start, &call.next(member));
        }
    }
}
