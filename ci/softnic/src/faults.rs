//! Faults: commands of programs and tests, carried out, at once or on cue.

use std::ffi::c_int;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::abi::sys::ibv_event_type as event;
use crate::command::Command;
use crate::device::{Gid, Port};
use crate::world::{Element, Timer, World};

/// Requests that find their queue full when they are posted, though it is not.
static FULL: AtomicU32 = AtomicU32::new(0);
/// Requests that are posted before those.
static BEFORE_FULL: AtomicU32 = AtomicU32::new(0);

/// Whether a request that is posted finds its queue full on cue.
pub(crate) fn full_on_cue() -> bool {
    // Relaxed: counts of their own. The first look costs no write.
    let counts_down = |count: &AtomicU32| {
        let less = |left: u32| left.checked_sub(1);
        count
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less)
            .is_ok()
    };
    FULL.load(Ordering::Relaxed) > 0 && !counts_down(&BEFORE_FULL) && counts_down(&FULL)
}

/// Queue pairs that are awaited before those that wait for them go on.
static AWAITED: Mutex<u32> = Mutex::new(0);
/// Told when the last of these has come.
static MET: Condvar = Condvar::new();
/// The longest wait for the others.
const MEETING: Duration = Duration::from_secs(10);

/// Waits on cue until the others that are to become ready are about to do so, too.
pub(crate) fn meet_on_cue() -> Result<(), c_int> {
    let mut awaited = AWAITED.lock().unwrap_or_else(PoisonError::into_inner);
    if *awaited == 0 {
        return Ok(());
    }
    *awaited -= 1;
    MET.notify_all();
    let met = MET.wait_timeout_while(awaited, MEETING, |awaited| *awaited > 0);
    let (mut awaited, waited) = met.unwrap_or_else(PoisonError::into_inner);
    if waited.timed_out() {
        *awaited = 0;
        return Err(libc::ETIMEDOUT);
    }
    Ok(())
}

impl World {
    /// Whether a queue pair refuses to fail and to be destroyed, on cue.
    pub(crate) fn is_stuck(&mut self, number: u32) -> bool {
        let Some(pair) = self.pairs.get_mut(&number) else {
            return false;
        };
        if !pair.stuck && self.stuck > 0 {
            self.stuck -= 1;
            pair.stuck = true;
        }
        pair.stuck
    }

    /// Carries out the cues of the requests that a queue pair's queue has newly given.
    pub(crate) fn cues(&mut self, number: u32) {
        let Some(pair) = self.pairs.get_mut(&number) else {
            return;
        };
        let fresh = pair
            .ask
            .requests
            .iter()
            .rev()
            .take_while(|one| !one.counted)
            .count();
        if fresh == 0 {
            return;
        }
        let first = pair.ask.requests.len() - fresh;
        let mut due = Vec::new();
        for sending in pair.ask.requests.range_mut(first..) {
            sending.counted = true;
            self.fetched += 1;
            let at = self.fetched;
            self.cues.retain(|cue| {
                let now = cue.at == at || cue.at == 0;
                match (&cue.command, now) {
                    (Command::Status(status), true) => sending.failed = Some(*status),
                    (command, true) => due.push(command.clone()),
                    _ => {}
                }
                !now
            });
        }
        for command in due {
            // A device that is not there was refused when the cue was given.
            let _ = self.command(&command);
        }
    }

    /// Carries out a command. `Err` says why it cannot be.
    pub(crate) fn command(&mut self, command: &Command) -> Result<(), String> {
        match command {
            Command::Status(_) => self.cues.push(crate::command::Cue {
                at: 0,
                command: command.clone(),
            }),
            Command::Dump => {
                eprintln!("softnic: {} timers", self.timers.len());
                self.pairs
                    .values()
                    .for_each(|pair| eprintln!("softnic: {pair:?}"));
            }
            Command::Flush(millis) => {
                let time = Duration::from_millis(*millis).mul_f64(self.settings.time_scale);
                self.late_flush = (*millis > 0).then_some(time);
            }
            // Relaxed: as in `full_on_cue`.
            Command::Full(count, after) => {
                BEFORE_FULL.store(*after, Ordering::Relaxed);
                FULL.store(*count, Ordering::Relaxed);
            }
            Command::Stuck(count) => (self.stuck, self.stuck_code) = (*count, libc::EBUSY),
            Command::Gone(count) => (self.stuck, self.stuck_code) = (*count, libc::EIO),
            Command::Meet(count) => {
                *AWAITED.lock().unwrap_or_else(PoisonError::into_inner) = *count;
            }
            Command::Down(name, port, millis) => {
                let number = self.device_of(name)?;
                self.port_of(number, *port)?.up = false;
                self.tell_port(number, *port, event::IBV_EVENT_PORT_ERR);
                if let Some(millis) = millis {
                    let scale = self.settings.time_scale;
                    let time = Duration::from_millis(*millis).mul_f64(scale);
                    self.port_of(number, *port)?.returns = Some(self.now + time);
                    self.after(time, Timer::Link(number, *port));
                }
            }
            Command::Up(name, port) => {
                let number = self.device_of(name)?;
                self.link_up(number, *port);
            }
            Command::Lid(name, port, lid) => {
                let number = self.device_of(name)?;
                self.port_of(number, *port)?.lid = *lid;
                self.tell_port(number, *port, event::IBV_EVENT_LID_CHANGE);
            }
            Command::Gid(name, port, index, to) => {
                let number = self.device_of(name)?;
                let kind = if self.devices[number].ethernet() {
                    2
                } else {
                    0
                };
                let table = &mut self.port_of(number, *port)?.gids;
                if *index >= 256 {
                    return Err(format!("{index} is no index of a GID table"));
                }
                table.resize(table.len().max(index + 1), None);
                table[*index] = to.map(|raw| Gid { raw, kind });
                self.tell_port(number, *port, event::IBV_EVENT_GID_CHANGE);
            }
            Command::Pkey(name, port, index, key) => {
                let number = self.device_of(name)?;
                let entry = self.port_of(number, *port)?.pkeys.get_mut(*index);
                *entry
                    .ok_or_else(|| format!("{index} is no index of a table of partition keys"))? =
                    *key;
                self.tell_port(number, *port, event::IBV_EVENT_PKEY_CHANGE);
            }
            Command::Fail(name, kind, pair) => {
                let number = self.device_of(name)?;
                let known = self.pairs.get(pair);
                if known.is_none_or(|known| known.device != number) {
                    return Err(format!("{name} has no queue pair {pair}"));
                }
                self.fail(*pair, Some(*kind));
            }
            Command::Event(name, kind, port) => {
                let number = self.device_of(name)?;
                match port {
                    _ if *kind == event::IBV_EVENT_SRQ_ERR => self.tell_shared(number, *kind),
                    Some(port) => self.tell_port(number, *port, *kind),
                    None => self.tell_all(number, *kind, Element::Device),
                }
            }
        }
        Ok(())
    }

    fn device_of(&self, name: &str) -> Result<usize, String> {
        let found = self.devices.iter().position(|one| one.name == name);
        found.ok_or_else(|| {
            let names: Vec<&str> = self.devices.iter().map(|one| one.name.as_str()).collect();
            format!("there is no device {name}; there are {}", names.join(", "))
        })
    }

    fn port_of(&mut self, device: usize, port: u8) -> Result<&mut Port, String> {
        let device = &mut self.devices[device];
        let name = device.name.clone();
        device
            .port_mut(port)
            .ok_or_else(|| format!("{name} has no port {port}"))
    }

    fn tell_port(&mut self, device: usize, port: u8, kind: event::Type) {
        self.tell_all(device, kind, Element::Port(port));
    }

    /// Tells all who have opened a device.
    fn tell_all(&mut self, device: usize, kind: event::Type, element: Element) {
        let of_device = self.cards.iter().filter(|(_, card)| card.device == device);
        let cards: Vec<u32> = of_device.map(|(card, _)| *card).collect();
        for card in cards {
            self.event(card, kind, element);
        }
    }

    /// Tells of each shared receive queue of a device.
    fn tell_shared(&mut self, device: usize, kind: event::Type) {
        let of_device = |card: u32| {
            self.cards
                .get(&card)
                .is_some_and(|one| one.device == device)
        };
        let all = self
            .shared
            .iter()
            .filter(|(_, queue)| of_device(queue.card));
        let all: Vec<(u32, u64)> = all.map(|(id, queue)| (queue.card, *id)).collect();
        for (card, id) in all {
            self.event(card, kind, Element::Receives(id));
        }
    }

    /// Puts a port's link up.
    pub(crate) fn link_up(&mut self, device: usize, port: u8) {
        let Some(found) = self.devices[device].port_mut(port) else {
            return;
        };
        if !std::mem::replace(&mut found.up, true) {
            found.returns = None;
            self.tell_port(device, port, event::IBV_EVENT_PORT_ACTIVE);
        }
    }

    /// Handles the end of the time for which a link was down.
    pub(crate) fn link_returns(&mut self, device: usize, port: u8) {
        let now = self.now;
        let returns = self.devices[device]
            .port(port)
            .and_then(|port| port.returns);
        if returns.is_some_and(|returns| returns <= now) {
            self.link_up(device, port);
        }
    }
}
