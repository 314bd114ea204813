//! A structure of the program's own in symmetric memory; oxshmem's own derive macros suffice for
//! it.
#![forbid(unsafe_code)]

use oxshmem::{Pod, Result, World, Zeroable};

#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[bytemuck(crate = "oxshmem::bytemuck")]
#[repr(C)]
struct Particle {
    place: [f64; 3],
    mass: f32,
    kind: u32,
}

fn main() -> Result<()> {
    oxshmem::launch::self_with(2)?;
    let world = World::init()?;
    let (me, n) = (world.my_pe(), world.n_pes());
    let inbox = world.alloc_zeroed::<Particle>(1)?;
    assert_eq!(world.g(inbox, me)?, Particle::zeroed());
    world.barrier_all()?;
    let of = |pe| Particle {
        place: [pe as f64; 3],
        mass: 1.5,
        kind: 7,
    };
    world.p(inbox, of(me), (me + 1) % n)?;
    world.barrier_all()?;
    assert_eq!(world.g(inbox, me)?, of((me + n - 1) % n));
    world.free(inbox)?;
    world.finalize()
}
