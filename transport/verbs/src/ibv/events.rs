//! Asynchronous events of a device.

use std::ffi::c_int;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;

use oxshmem_transport::Result;

use super::context::Context;
use super::result::failed;
use super::sys::{ibv_async_event, ibv_qp};

/// `ibv_async_event`, with its kind as a number: a newer library may have kinds that these bindings
/// do not know.
#[derive(Clone, Copy)]
#[repr(C)]
struct Raw {
    element: Element,
    kind: c_int,
}

#[derive(Clone, Copy)]
#[repr(C)]
union Element {
    pair: *mut ibv_qp,
    port: c_int,
    word: u64,
}

const _: () = assert!(
    size_of::<Raw>() == size_of::<ibv_async_event>()
        && align_of::<Raw>() == align_of::<ibv_async_event>()
);

/// An asynchronous event of a device.
#[doc(alias = "ibv_async_event")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The device does no more, or a queue of completions does; by the event's name.
    Fatal(&'static str),
    PortDown(u8),
    PortUp(u8),
    /// The queue pair of this number failed; by the event's name.
    PairFailed(u32, &'static str),
    /// The port's address, partition or speed may have changed, or that of any port; by the event's name.
    PortChanged(Option<u8>, &'static str),
    /// The failed queue pair of this number has completed the last shared receive buffer that it took.
    LastReceive(u32),
    /// Nothing that concerns connections as they are.
    Other(c_int),
}

impl Raw {
    fn read(self) -> Event {
        let port = || {
            // SAFETY: port events carry the port's number.
            u8::try_from(unsafe { self.element.port }).unwrap_or(0)
        };
        let number = || {
            // SAFETY: events of queue pairs carry the queue pair, which lives until its events are
            // acknowledged: destroying it waits for that.
            unsafe { (*self.element.pair).qp_num }
        };
        let pair = |name| Event::PairFailed(number(), name);
        match self.kind {
            0 => Event::Fatal("IBV_EVENT_CQ_ERR"),
            1 => pair("IBV_EVENT_QP_FATAL"),
            2 => pair("IBV_EVENT_QP_REQ_ERR"),
            3 => pair("IBV_EVENT_QP_ACCESS_ERR"),
            8 => Event::Fatal("IBV_EVENT_DEVICE_FATAL"),
            9 => Event::PortUp(port()),
            10 => Event::PortDown(port()),
            11 => Event::PortChanged(Some(port()), "IBV_EVENT_LID_CHANGE"),
            12 => Event::PortChanged(Some(port()), "IBV_EVENT_PKEY_CHANGE"),
            13 => Event::PortChanged(Some(port()), "IBV_EVENT_SM_CHANGE"),
            14 => Event::Fatal("IBV_EVENT_SRQ_ERR"),
            // IBV_EVENT_QP_LAST_WQE_REACHED.
            16 => Event::LastReceive(number()),
            17 => Event::PortChanged(Some(port()), "IBV_EVENT_CLIENT_REREGISTER"),
            18 => Event::PortChanged(Some(port()), "IBV_EVENT_GID_CHANGE"),
            // Names no port.
            20 => Event::PortChanged(None, "IBV_EVENT_DEVICE_SPEED_CHANGE"),
            other => Event::Other(other),
        }
    }
}

impl Context {
    /// The descriptor that is readable when there are events.
    pub(crate) fn event_descriptor(&self) -> BorrowedFd<'_> {
        // SAFETY: the context is open, and with it its descriptor.
        unsafe { BorrowedFd::borrow_raw((*self.as_raw()).async_fd) }
    }

    /// Has [`next_event`](Self::next_event) not wait.
    pub(super) fn without_waiting(&self) -> Result<()> {
        use std::os::fd::AsRawFd;
        let fd = self.event_descriptor().as_raw_fd();
        // SAFETY: two calls on a descriptor that is open, without memory.
        let code = unsafe {
            let flags = libc::fcntl(fd, libc::F_GETFL);
            libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK)
        };
        match code {
            -1 => Err(failed("fcntl O_NONBLOCK", io::Error::last_os_error())),
            _ => Ok(()),
        }
    }

    /// The next event, if there is one. It is acknowledged.
    #[doc(alias = "ibv_get_async_event")]
    pub(crate) fn next_event(&self) -> Option<Event> {
        let mut raw = MaybeUninit::<Raw>::zeroed();
        // SAFETY: the context is open; the event is written, which `Raw` is laid out as. The
        // descriptor does not block.
        let code = unsafe {
            let library = self.library();
            library.ibv_get_async_event(self.as_raw(), raw.as_mut_ptr().cast())
        };
        if code != 0 {
            return None;
        }
        // SAFETY: written by the call, and zero before: integers, all of whose values are valid.
        let event = unsafe { raw.assume_init() }.read();
        // SAFETY: an event that was got, acknowledged once.
        unsafe { self.library().ibv_ack_async_event(raw.as_mut_ptr().cast()) };
        Some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_known_by_number_and_a_newer_one_is_no_harm() {
        let event = |kind, port| {
            let mut element = Element { word: 0 };
            element.port = port;
            Raw { element, kind }.read()
        };
        assert_eq!(event(8, 0), Event::Fatal("IBV_EVENT_DEVICE_FATAL"));
        assert_eq!(event(10, 2), Event::PortDown(2));
        assert_eq!(event(9, 1), Event::PortUp(1));
        let changed = |port, name| Event::PortChanged(port, name);
        assert_eq!(event(11, 2), changed(Some(2), "IBV_EVENT_LID_CHANGE"));
        assert_eq!(event(18, 1), changed(Some(1), "IBV_EVENT_GID_CHANGE"));
        assert_eq!(event(20, 0), changed(None, "IBV_EVENT_DEVICE_SPEED_CHANGE"));
        assert_eq!(event(77, 0), Event::Other(77));
    }

    #[test]
    fn a_pair_that_failed_is_told_by_its_number() {
        // SAFETY: integers and pointers, for which zero is a value (the locks in it are not used).
        let mut pair: ibv_qp = unsafe { std::mem::zeroed() };
        pair.qp_num = 0x1234;
        let element = Element {
            pair: &raw mut pair,
        };
        let event = Raw { element, kind: 1 }.read();
        assert_eq!(event, Event::PairFailed(0x1234, "IBV_EVENT_QP_FATAL"));
        let last = Raw { element, kind: 16 }.read();
        assert_eq!(last, Event::LastReceive(0x1234));
    }
}
