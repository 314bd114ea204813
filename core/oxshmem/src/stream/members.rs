//! A team's members in a collective call on streams: their meetings, and the copies between these.

use bytemuck::Pod;
use oxshmem_collectives::team::TeamInKernels;
use oxshmem_cuda::{DevicePtr, Stream};
use oxshmem_engine::progress::reason::WaitsOn;
use oxshmem_transport::Fold;

use crate::context::Context;
use crate::error::{Error, Result};
use crate::stream::gpu_streams::{GpuStreams, InCall};
use crate::stream::library_kernels::LibraryKernels;
use crate::stream::reach::Reach;
use crate::sym::Sym;
use crate::team::Team;

/// The way in which the members' streams meet, the same on all members.
enum Meeting<'a> {
    /// By the words of all PEs, which all map each other. The table of them, and this PE's count.
    OfAll(DevicePtr, DevicePtr),
    /// By a kernel of the device library.
    ByLibrary(&'a LibraryKernels, TeamInKernels),
}

/// A get whose operands are checked.
pub(super) struct Get<'a> {
    to: DevicePtr,
    from: Reach<'a>,
    bytes: usize,
    pe: usize,
}

/// The members of a team in one call.
pub(super) struct MembersOnStream<'a> {
    call: &'static str,
    context: &'a Context<'a>,
    streams: &'a GpuStreams,
    stream: &'a Stream,
    team: &'a Team<'a>,
    meeting: Meeting<'a>,
}

impl<'a> MembersOnStream<'a> {
    /// Refuses where the members cannot meet, or one is lost.
    pub(super) fn new(call: &'static str, team: &'a Team<'_>, stream: &'a Stream) -> Result<Self> {
        let context = team.context();
        let streams = context.gpu_streams_to_queue(call, stream)?;
        let state = team.state();
        let is_of_all = std::ptr::eq(state, &raw const context.pe.sync_area.all);
        let meeting = match (&streams.collective, streams.library.get()) {
            (Ok(()), _) if is_of_all => match streams.barrier_words() {
                Some((table, epoch)) => Meeting::OfAll(table, epoch),
                None => return Err(context.not_mapped(call, context.my_pe())),
            },
            (_, Some(library)) => match state.in_kernels.get() {
                Some(known) => Meeting::ByLibrary(library, *known),
                None => {
                    return Err(Error::Argument {
                        call,
                        what: "the device library does not know this team; call DeviceLibrary::add_team before, on all members".into(),
                    });
                }
            },
            (Err(why), None) if is_of_all => {
                return Err(Error::Unreachable {
                    call,
                    from: context.my_pe(),
                    pe: streams.unreached().unwrap_or(context.my_pe()),
                    why: format!(
                        "{why}; open World::device_library on all PEs, or use the calls without a stream"
                    ),
                });
            }
            (_, None) => {
                return Err(Error::Argument {
                    call,
                    what: "a team's calls on streams are by the device library; open World::device_library on all PEs, and call \
                           DeviceLibrary::add_team on all members"
                        .into(),
                });
            }
        };
        // Acknowledged or not: it would be waited for.
        context.refuse_after_loss(call, WaitsOn::Members(&state.members))?;
        Ok(MembersOnStream {
            call,
            context,
            streams,
            stream,
            team,
            meeting,
        })
    }

    /// Queues an arrival: the stream goes on when all members' streams have arrived. Operations towards members that are not mapped
    /// are complete then.
    pub(super) fn arrive(&self) -> Result<()> {
        let (table, epoch) = match self.meeting {
            Meeting::ByLibrary(library, known) => {
                let queued = library.barrier(self.stream, known.number, self.team.n_pes());
                return queued.in_call(self.call);
            }
            Meeting::OfAll(table, epoch) => (table, epoch),
        };
        let members = (self.team.n_pes() as u32, self.team.my_pe() as u32);
        let stop = self.streams.stop();
        let kernels = &self.streams.gpu.kernels;
        // SAFETY: the table, the words it names and the epoch are the library's own in heaps that are
        // mapped for the GPU while the world lives; the ending words live as long, and the world waits for
        // its streams before they are freed.
        let queued = unsafe { kernels.barrier(self.stream, table, members, epoch, stop) };
        queued.in_call(self.call)
    }

    /// Queues work between two arrivals: all have arrived before it, and none goes on before it is done.
    pub(super) fn between_arrivals(&self, queue: impl FnOnce() -> Result<()>) -> Result<()> {
        self.arrive()?;
        queue()?;
        self.arrive()
    }

    /// Checks a get of `src` of a PE into this PE's `dst`.
    pub(super) fn get<T: Pod>(&self, dst: Sym<T>, src: Sym<T>, pe: usize) -> Result<Get<'a>> {
        Ok(Get {
            to: self.context.own_on_stream(self.call, self.streams, dst)?,
            from: self
                .context
                .reach_on_stream(self.call, self.streams, src, pe)?,
            bytes: dst.bytes(),
            pe,
        })
    }

    /// Queues such a get.
    pub(super) fn queue(&self, get: Get<'_>) -> Result<()> {
        let to = (get.to, get.bytes);
        self.context
            .get_by(self.call, self.stream, to, get.from, (get.pe, false))
    }

    /// Puts to each member the object that `part` gives for its number, from another one of this PE's, between two arrivals.
    pub(super) fn give<T: Pod>(
        &self,
        part: impl Fn(usize) -> Result<(Sym<T>, Sym<T>)>,
    ) -> Result<()> {
        self.between_arrivals(|| self.put_to_all(part))
    }

    /// Puts to each member as [`give`](Self::give) does. It begins with the next one, so that not all put to one at the same time.
    pub(super) fn put_to_all<T: Pod>(
        &self,
        part: impl Fn(usize) -> Result<(Sym<T>, Sym<T>)>,
    ) -> Result<()> {
        let (all, me) = (self.team.n_pes(), self.team.my_pe());
        for member in (1..=all).map(|step| (me + step) % all) {
            let (place, source) = part(member)?;
            // This PE's part of an object in place is there already.
            if member == me && place == source {
                continue;
            }
            let pe = self.team.state().members.pe(member);
            let to = self
                .context
                .reach_on_stream(self.call, self.streams, place, pe)?;
            let from = self
                .context
                .own_on_stream(self.call, self.streams, source)?;
            let from = (from, place.bytes());
            // An arrival completes it.
            self.context
                .put_by(self.call, self.stream, to, from, (pe, true))?;
        }
        Ok(())
    }

    /// Folds the members' `source` into this PE's `out`, and goes on with `then`, between two arrivals.
    pub(super) fn fold_and<T: Pod>(
        &self,
        fold: (Fold, &'static str),
        out: Sym<T>,
        source: Sym<T>,
        then: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let to = self.context.own_on_stream(self.call, self.streams, out)?;
        let from = self
            .context
            .own_on_stream(self.call, self.streams, source)?;
        let elements = source.len() as u64;
        let is_mapped = |pe| self.streams.address(pe, 0).is_some();
        let table = match self.meeting {
            _ if !self.team.world_pes().all(is_mapped) => None,
            Meeting::OfAll(..) => self.streams.heaps_table(),
            Meeting::ByLibrary(_, known) => Some(DevicePtr::from_raw(known.heaps)),
        };
        let staged = match self.meeting {
            Meeting::OfAll(..) => None,
            Meeting::ByLibrary(library, known) => library
                .staging
                .map(|staging| (library, known.number, staging)),
        };
        let most = staged.map_or(0, |(.., staging)| staging.bytes / 16);
        if table.is_none() && self.team.n_pes() as u64 > most {
            return Err(Error::Argument {
                call: self.call,
                what: format!(
                    "a team of {} members, some of which this PE's GPU does not reach, is too large; {most} is the most",
                    self.team.n_pes()
                ),
            });
        }
        self.between_arrivals(|| {
            if elements == 0 {
                return then();
            }
            let queued = match (table, staged) {
                (Some(table), _) => {
                    let sources = (table, self.team.n_pes() as u32, source.offset());
                    let reductions = &self.streams.reductions;
                    // SAFETY: the table and all heaps are mapped for the GPU while the world lives; the places
                    // are aligned for the type, and `to` is a source or apart, as was checked.
                    unsafe { reductions.reduce(self.stream, fold, to, sources, elements) }
                }
                (None, Some((library, number, staging))) => {
                    let places = (to, from, elements);
                    // SAFETY: all members have the elements, aligned for the type; `to` is a source or apart, as was checked.
                    unsafe { library.fold(self.stream, fold, number, places, staging) }
                }
                // The memory is there wherever a PE does not map another one.
                (None, None) => {
                    return Err(self.context.not_mapped(self.call, self.context.my_pe()));
                }
            };
            queued.in_call(self.call)?;
            then()
        })
    }
}
