//! The forwarding of calls, for transports that wrap others.

/// Forwards calls of a [`Domain`](crate::Domain) or a [`Lane`](crate::Lane), unchanged, to the one that a field holds.
/// Every call of a domain can be named, and of a lane `connect`, `counters`, `endpoint`, `fence`, `progress` and `reusable`. A call that is not
/// named has the trait's default, which rarely suits a transport that wraps another.
///
/// ```
/// use std::sync::Arc;
/// use oxshmem_transport::{Domain, MemoryKind, Peer, Reach, forward};
///
/// /// A domain whose peers are never mapped.
/// #[derive(Debug)]
/// struct Unmapped {
///     inner: Arc<dyn Domain>,
/// }
///
/// impl Domain for Unmapped {
///     forward!(accept, address, atomics_towards, capabilities, explain, guarantees, guarantees_towards => inner);
///     forward!(import, inbox, lane, make_visible, message_window, peer_lost, put_signal_towards, register, register_local, schedule, shutdown, wants_descriptor => inner);
///
///     fn reach(&self, peer: &Peer, kind: MemoryKind) -> Reach {
///         match self.inner.reach(peer, kind) {
///             Reach::Mapped { .. } => Reach::Remote,
///             other => other,
///         }
///     }
/// }
/// ```
#[macro_export]
macro_rules! forward {
    ($($call:ident),+ => $($to:tt)+) => {
        $crate::forward!(@each [$($to)+] $($call)+);
    };
    (@each $to:tt $($call:ident)+) => {
        $($crate::forward!(@$call $to);)+
    };

    (@inbox [$($to:tt)+]) => {
        fn inbox(&self) -> $crate::Result<Box<dyn $crate::Inbox>> {
            self.$($to)+.inbox()
        }
    };
    (@capabilities [$($to:tt)+]) => {
        fn capabilities(&self) -> &$crate::Capabilities {
            self.$($to)+.capabilities()
        }
    };
    (@guarantees [$($to:tt)+]) => {
        fn guarantees(&self, kind: $crate::MemoryKind) -> Option<$crate::Guarantees> {
            self.$($to)+.guarantees(kind)
        }
    };
    (@guarantees_towards [$($to:tt)+]) => {
        fn guarantees_towards(
            &self,
            peer: &$crate::Peer,
            kind: $crate::MemoryKind,
        ) -> Option<$crate::Guarantees> {
            self.$($to)+.guarantees_towards(peer, kind)
        }
    };
    (@atomics_towards $to:tt) => {
        $crate::forward!(@towards $to atomics_towards AtomicTable);
    };
    (@put_signal_towards $to:tt) => {
        $crate::forward!(@towards $to put_signal_towards SignalSupport);
    };
    (@towards [$($to:tt)+] $call:ident $promise:ident) => {
        fn $call(&self, peer: &$crate::Peer) -> $crate::$promise {
            self.$($to)+.$call(peer)
        }
    };
    (@message_window [$($to:tt)+]) => {
        fn message_window(&self, peer: &$crate::Peer) -> Option<u32> {
            self.$($to)+.message_window(peer)
        }
    };
    (@explain [$($to:tt)+]) => {
        fn explain(&self, peer: &$crate::Peer) -> Option<String> {
            self.$($to)+.explain(peer)
        }
    };
    (@address [$($to:tt)+]) => {
        fn address(&self) -> Vec<u8> {
            self.$($to)+.address()
        }
    };
    (@reach $to:tt) => {
        $crate::forward!(@memory_of $to reach $crate::Reach);
    };
    (@wants_descriptor $to:tt) => {
        $crate::forward!(@memory_of $to wants_descriptor bool);
    };
    (@memory_of [$($to:tt)+] $call:ident $answer:ty) => {
        fn $call(&self, peer: &$crate::Peer, kind: $crate::MemoryKind) -> $answer {
            self.$($to)+.$call(peer, kind)
        }
    };
    (@register [$($to:tt)+]) => {
        fn register(
            &self,
            id: $crate::RegionId,
            memory: &$crate::Memory,
        ) -> $crate::Result<Box<dyn $crate::Region>> {
            self.$($to)+.register(id, memory)
        }
    };
    (@register_local [$($to:tt)+]) => {
        unsafe fn register_local(
            &self,
            addr: *mut u8,
            len: usize,
            written: bool,
        ) -> $crate::Result<Box<dyn $crate::LocalRegion>> {
            // SAFETY: the caller's promise.
            unsafe { self.$($to)+.register_local(addr, len, written) }
        }
    };
    (@import [$($to:tt)+]) => {
        fn import(
            &self,
            peer: &$crate::Peer,
            region: $crate::RegionId,
            key: &[u8],
            descriptor: Option<std::os::fd::OwnedFd>,
        ) -> $crate::Result<std::sync::Arc<dyn $crate::RemoteRegion>> {
            self.$($to)+.import(peer, region, key, descriptor)
        }
    };
    (@lane [$($to:tt)+]) => {
        fn lane(&self) -> $crate::Result<Box<dyn $crate::Lane>> {
            self.$($to)+.lane()
        }
    };
    (@accept [$($to:tt)+]) => {
        fn accept(&self, pe: $crate::Pe, endpoint: &[u8]) -> $crate::Result<Vec<u8>> {
            self.$($to)+.accept(pe, endpoint)
        }
    };
    (@make_visible [$($to:tt)+]) => {
        fn make_visible(&self, kind: $crate::MemoryKind) -> $crate::Result<()> {
            self.$($to)+.make_visible(kind)
        }
    };
    (@schedule [$($to:tt)+]) => {
        fn schedule(&self) -> Option<std::sync::Arc<dyn $crate::Schedule>> {
            self.$($to)+.schedule()
        }
    };
    (@peer_lost [$($to:tt)+]) => {
        fn peer_lost(&self, pe: $crate::Pe) {
            self.$($to)+.peer_lost(pe);
        }
    };
    (@shutdown [$($to:tt)+]) => {
        fn shutdown(&self) {
            self.$($to)+.shutdown();
        }
    };

    (@endpoint [$($to:tt)+]) => {
        fn endpoint(&mut self, pe: $crate::Pe) -> $crate::Result<Vec<u8>> {
            self.$($to)+.endpoint(pe)
        }
    };
    (@connect [$($to:tt)+]) => {
        fn connect(&mut self, pe: $crate::Pe, endpoint: &[u8]) -> $crate::Result<()> {
            self.$($to)+.connect(pe, endpoint)
        }
    };
    (@fence [$($to:tt)+]) => {
        fn fence(&mut self, pe: $crate::Pe) {
            self.$($to)+.fence(pe);
        }
    };
    (@progress [$($to:tt)+]) => {
        fn progress(&mut self) -> $crate::Result<()> {
            self.$($to)+.progress()
        }
    };
    (@reusable [$($to:tt)+]) => {
        fn reusable(&self, pe: $crate::Pe) -> u64 {
            self.$($to)+.reusable(pe)
        }
    };
    (@counters [$($to:tt)+]) => {
        fn counters(&self, pe: $crate::Pe) -> $crate::Counters {
            self.$($to)+.counters(pe)
        }
    };
}
