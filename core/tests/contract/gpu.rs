//! A GPU heap that is committed piece by piece, over a transport to which a GPU's memory is as any.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use std::sync::atomic::{AtomicU32, AtomicU64};

use oxshmem::{Builder, Error, GpuAccess, GpuMemory, Memory, MemoryKind, Result, World};
use oxshmem_example_tiny_transport::{Step, Tiny};
use oxshmem_transport::{AtomicOp, AtomicRequest, Pe, RegionId, Width};

use crate::setting::{DEADLINE, on_each, patterns};

const MIB: usize = 1 << 20;
/// Where the first pieces of a heap of 64 MiB end.
const ENDS: [usize; 3] = [4 * MIB, 8 * MIB, 16 * MIB];
const CUDA: MemoryKind = MemoryKind::Cuda;
/// The number of a GPU heap's first region: behind all pieces of the host's.
const FIRST: u32 = 16;

/// Host memory that stands for a GPU's.
#[derive(Debug)]
struct Bytes(NonNull<u8>, Layout);

// SAFETY: only names memory.
unsafe impl Send for Bytes {}
// SAFETY: as for Send.
unsafe impl Sync for Bytes {}

impl Drop for Bytes {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, freed once.
        unsafe { dealloc(self.0.as_ptr(), self.1) }
    }
}

#[derive(Debug)]
pub struct Growing {
    bytes: Arc<Bytes>,
    /// One past the last byte committed.
    committed: Arc<AtomicUsize>,
    /// Beyond this nothing is to be had.
    room: usize,
}

impl Growing {
    pub fn new(limit: usize, room: usize) -> Growing {
        let layout = Layout::from_size_align(limit, 4096).unwrap();
        // SAFETY: of more than no bytes.
        let base = NonNull::new(unsafe { alloc_zeroed(layout) }).unwrap();
        Growing {
            bytes: Arc::new(Bytes(base, layout)),
            committed: Arc::default(),
            room,
        }
    }
}

// SAFETY: pieces of one allocation, one behind the other, which their owner keeps.
unsafe impl GpuMemory for Growing {
    fn limit(&self) -> usize {
        self.bytes.1.size()
    }

    fn commit(&mut self, start: usize, len: usize) -> Result<Memory, String> {
        assert_eq!(start, self.committed.load(Ordering::Relaxed), "a gap");
        if start + len > self.room {
            return Err(format!("the GPU has {} bytes left", self.room - start));
        }
        self.committed.store(start + len, Ordering::Relaxed);
        let owner = Arc::clone(&self.bytes) as _;
        // SAFETY: within the allocation, which the owner keeps; used by the transport alone.
        Ok(unsafe { Memory::new(self.bytes.0.add(start), len, CUDA, None, owner) })
    }

    fn uncommit(&mut self, start: usize) {
        assert!(start < self.committed.swap(start, Ordering::Relaxed));
    }

    fn access(&mut self) -> Result<Option<Arc<dyn GpuAccess>>, String> {
        Ok(Some(Arc::new(Access {
            bytes: Arc::clone(&self.bytes),
            committed: Arc::clone(&self.committed),
        })))
    }
}

/// This PE's own way to it.
#[derive(Debug)]
struct Access {
    bytes: Arc<Bytes>,
    committed: Arc<AtomicUsize>,
}

impl Access {
    fn find(&self, offset: u64, len: usize) -> Result<*mut u8, String> {
        let committed = self.committed.load(Ordering::Relaxed);
        let end = (offset as usize).checked_add(len);
        match end.filter(|end| *end <= committed) {
            Some(_) => Ok(self.bytes.0.as_ptr().wrapping_add(offset as usize)),
            None => Err(format!("{len} bytes at {offset} are not there")),
        }
    }
}

impl GpuAccess for Access {
    unsafe fn write(&self, offset: u64, source: *const u8, len: usize) -> Result<(), String> {
        let to = self.find(offset, len)?;
        // SAFETY: within the allocation; the source is the caller's promise.
        unsafe { oxshmem_heap::copy::copy(to, source, len) };
        Ok(())
    }

    unsafe fn read(&self, offset: u64, destination: *mut u8, len: usize) -> Result<(), String> {
        let from = self.find(offset, len)?;
        // SAFETY: within the allocation; the destination is the caller's promise.
        unsafe { oxshmem_heap::copy::copy(destination, from, len) };
        Ok(())
    }

    fn atomic(&self, offset: u64, request: AtomicRequest) -> Result<u64, String> {
        let AtomicRequest {
            op,
            width,
            operand,
            compare,
        } = request;
        let word = self.find(offset, width.bytes())?;
        macro_rules! update {
            ($atomic:ident, $t:ty) => {{
                // SAFETY: within the allocation, aligned as the library has checked, and accessed
                // atomically or at machine level only.
                let word = unsafe { $atomic::from_ptr(word.cast()) };
                let (operand, order) = (operand as $t, Ordering::SeqCst);
                u64::from(match op {
                    AtomicOp::Fetch => word.load(order),
                    AtomicOp::Set | AtomicOp::Swap => word.swap(operand, order),
                    AtomicOp::Add => word.fetch_add(operand, order),
                    AtomicOp::And => word.fetch_and(operand, order),
                    AtomicOp::Or => word.fetch_or(operand, order),
                    AtomicOp::Xor => word.fetch_xor(operand, order),
                    AtomicOp::CompareSwap => {
                        let swapped = word.compare_exchange(compare as $t, operand, order, order);
                        swapped.unwrap_or_else(|old| old)
                    }
                })
            }};
        }
        Ok(match width {
            Width::W32 => update!(AtomicU32, u32),
            Width::W64 => update!(AtomicU64, u64),
        })
    }
}

/// PEs of as many hosts, whose GPUs have so much room; what each has committed in the end.
fn run(rooms: &[usize], case: impl Fn(&World, &Tiny) -> Result<()> + Sync) -> Vec<usize> {
    let tiny = Tiny::nic();
    let committed: Vec<Arc<AtomicUsize>> = rooms.iter().map(|_| Arc::default()).collect();
    let builders = (0..)
        .zip(rooms)
        .zip(&committed)
        .map(|((pe, &room), committed)| {
            let committed = Arc::clone(committed);
            builder(&tiny, pe).gpu_memory(move |_| {
                let mut memory = Growing::new(64 * MIB, room);
                memory.committed = Arc::clone(&committed);
                Ok(Box::new(memory))
            })
        });
    on_each(builders.collect(), |world| case(world, &tiny));
    let all = committed.iter();
    all.map(|bytes| bytes.load(Ordering::Relaxed)).collect()
}

fn builder(tiny: &Tiny, pe: usize) -> Builder {
    World::builder()
        .transports(vec![Arc::new(tiny.clone())])
        .timeout(DEADLINE)
        .heap_limit(4 * MIB)
        .host_id(format!("host-{pe}"))
}

#[test]
fn m4_what_crosses_pieces_of_a_gpu_heap_arrives_whole() {
    let committed = run(&[64 * MIB; 3], |world, _| {
        let (me, right) = (world.my_pe(), (world.my_pe() + 1) % 3);
        let left = (me + 2) % 3;
        let x = world.alloc_on::<u64>(CUDA, 20 * MIB / 8)?;
        let y = world.alloc_on::<u64>(CUDA, 1000)?;
        for (round, end) in ENDS.into_iter().enumerate() {
            for len in [2, 128, 1000] {
                let middle = (end - x.offset() as usize) / 8;
                let part = x.range(middle - len / 2..middle + len / 2)?;
                let seen_at = |from, pe: usize| -> Result<Vec<u64>> {
                    let mut seen = vec![0; len];
                    world.get(&mut seen, from, pe)?;
                    Ok(seen)
                };
                world.put(part, &patterns(me + round, len), right)?;
                world.barrier_all()?;
                // A PE reads its own GPU's memory as it does others'.
                assert_eq!(seen_at(part, me)?, patterns(left + round, len));
                assert_eq!(seen_at(part, right)?, patterns(me + round, len));
                // Both sides on GPUs, each across pieces at another place.
                let other = y.range(..len)?;
                world.barrier_all()?;
                world.put_from(other, part, right)?;
                world.barrier_all()?;
                let left_of_left = (left + 2) % 3;
                assert_eq!(seen_at(other, me)?, patterns(left_of_left + round, len));
                world.get_into(other, part, right)?;
                assert_eq!(seen_at(other, me)?, patterns(me + round, len));
                world.barrier_all()?;
            }
        }
        world.free(y)?;
        world.free(x)
    });
    assert_eq!(committed, [32 * MIB; 3], "in pieces of doubling size");
}

#[test]
fn m13_a_gpu_without_room_fails_the_allocation_on_all_pes_and_changes_nothing() {
    let committed = run(&[64 * MIB, 8 * MIB], |world, _| {
        let x = world.alloc_on::<u64>(CUDA, 100)?;
        for _ in 0..3 {
            let error = world.alloc_on::<u64>(CUDA, 12 * MIB / 8).unwrap_err();
            let Error::OutOfMemory { why, .. } = &error else {
                panic!("{error}");
            };
            assert!(why.contains("the GPU has 0 bytes left"), "{error}");
            assert_eq!(why.contains("PE 1"), world.my_pe() == 0, "{error}");
        }
        // There is still what there was, and room for what fits.
        let y = world.alloc_on::<u64>(CUDA, 6 * MIB / 8)?;
        let last = y.at(y.len() - 1)?;
        world.put(last, &[7], 1 - world.my_pe())?;
        world.barrier_all()?;
        assert_eq!(world.g(last, world.my_pe())?, 7);
        world.free(y)?;
        world.free(x)
    });
    assert_eq!(committed, [8 * MIB; 2]);
}

#[test]
fn m13_a_piece_that_cannot_be_registered_or_imported_by_one_pe_is_taken_back_by_all() {
    let piece = RegionId(FIRST + 1);
    run(&[64 * MIB; 3], |world, tiny| {
        for step in [Step::Register, Step::Import] {
            world.barrier_all()?;
            if world.my_pe() == 0 {
                tiny.refuse(step, Pe(1), piece, true);
            }
            world.barrier_all()?;
            assert!(
                world.alloc_on::<u64>(CUDA, 6 * MIB / 8).is_err(),
                "{step:?}"
            );
            world.barrier_all()?;
            if world.my_pe() == 0 {
                tiny.refuse(step, Pe(1), piece, false);
            }
            world.barrier_all()?;
        }
        let x = world.alloc_on::<u64>(CUDA, 6 * MIB / 8)?;
        let last = x.at(x.len() - 1)?;
        let right = (world.my_pe() + 1) % 3;
        world.put(last, &[1 + world.my_pe() as u64], right)?;
        world.barrier_all()?;
        assert_eq!(world.g(last, right)?, 1 + world.my_pe() as u64);
        world.free(x)
    });
}

/// The error that each PE gets when it joins.
pub fn refusals(builders: Vec<Builder>) -> Vec<String> {
    let told = Mutex::new(Vec::new());
    let group = oxshmem_bootstrap::InProcess::group(builders.len() as u32);
    std::thread::scope(|threads| {
        for (bootstrap, builder) in group.into_iter().zip(builders) {
            let told = &told;
            threads.spawn(move || {
                let error = builder.bootstrap(bootstrap as Arc<_>).join().unwrap_err();
                let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
                told.push(error.to_string());
            });
        }
    });
    told.into_inner().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn m14_pes_agree_on_the_smallest_gpu_heap() {
    let tiny = Tiny::nic();
    let limits = [64 * MIB, 24 * MIB];
    let builders = (0..).zip(limits).map(|(pe, limit)| {
        builder(&tiny, pe).gpu_memory(move |_| Ok(Box::new(Growing::new(limit, limit))))
    });
    on_each(builders.collect(), |world| {
        assert_eq!(world.gpu_heap_limit(), 24 * MIB);
        assert!(world.alloc_on::<u8>(CUDA, 25 * MIB).is_err());
        let x = world.alloc_on::<u8>(CUDA, 23 * MIB)?;
        world.free(x)
    });
}

#[test]
fn a_pe_without_the_gpu_memory_that_the_others_have_ends_the_joining_on_all() {
    let tiny = Tiny::nic();
    let with = builder(&tiny, 0).gpu_memory(|_| Ok(Box::new(Growing::new(MIB, MIB))));
    for (without, words) in [
        (
            builder(&tiny, 1).gpu_memory(|_| Err("no CUDA driver here".into())),
            ["PE 1", "no CUDA driver here"],
        ),
        (
            builder(&tiny, 1),
            ["whether there is a GPU heap", "OXSHMEM_CUDA_SYMMETRIC_SIZE"],
        ),
        (
            builder(&tiny, 1).gpu_memory(|_| Ok(Box::new(Growing::new(MIB, 0)))),
            ["PE 1", "the GPU has 0 bytes left"],
        ),
    ] {
        let told = refusals(vec![with.clone(), without]);
        assert_eq!(told.len(), 2);
        for error in told {
            let one = words.iter().all(|word| error.contains(word));
            assert!(one || error.contains(words[1]), "{error}");
        }
    }
}
