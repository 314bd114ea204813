//! Messages that arrive: their numbers, and what they ask for.

use std::collections::BTreeMap;

use oxshmem_transport::{Pe, RegionId, Remote, Reply};

use crate::lane_state::LaneState;
use crate::limits::WINDOW;
use crate::mailbox::{Mail, Mailbox};
use crate::message::{Body, HEAD, Head, Record};
use crate::peer::PeerState;
use crate::region::OwnRegions;

/// Messages that came too early, at most, from one PE: as many as it may have in flight.
const EARLY: usize = WINDOW as usize;

/// The parts of a domain that messages change.
#[derive(Debug)]
pub(crate) struct Receiver<'a> {
    /// The number that messages to this domain have.
    pub nonce: u64,
    pub peers: &'a mut [PeerState],
    pub lanes: &'a BTreeMap<u64, LaneState>,
    pub regions: &'a OwnRegions,
    pub mailbox: &'a mut Mailbox,
    /// The PE of the last message, if its head tells that it has served more than was known.
    pub acknowledges: Option<u32>,
}

/// The news of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// None for this side's operations; the sender is owed an acknowledgement.
    Owed(u32),
    /// A PE sends although the connection with it has failed on this side: it is owed that news.
    Refused(u32),
    /// The connection has failed on a PE's side.
    Ended(u32),
    /// A PE asks what it has sent that was served here: it is owed an answer.
    Asked { pe: u32, number: u64 },
    /// The answer to such a question of this side, and the number of this side's last message that was served.
    Answered { pe: u32, number: u64, served: u64 },
    /// A PE has put to memory that this side has not registered: it is owed that news.
    Misplaced { pe: u32, region: u32 },
    /// The same of this side's put, on a PE's side.
    PutRefused { pe: u32, region: u32 },
    /// None.
    Nothing,
    /// The message makes no sense, or was not meant for this domain.
    Strange,
}

impl Receiver<'_> {
    /// Serves one message, and those that waited for it.
    pub(crate) fn receive(&mut self, message: &[u8]) -> News {
        let Some((head, data)) = Head::read(message) else {
            return News::Strange;
        };
        let Some(peer) = self.peers.get_mut(head.pe as usize) else {
            return News::Strange;
        };
        if head.nonce != self.nonce {
            return News::Strange;
        }
        peer.was_heard = true;
        if peer.is_gone() {
            let asks = head.body.is_numbered() || matches!(head.body, Body::Question { .. });
            let tells = !peer.lost && asks;
            return match tells {
                true => News::Refused(head.pe),
                false => News::Nothing,
            };
        }
        // Nobody can have served more than was sent.
        let served = head.served.min(peer.sent);
        if served > peer.served {
            peer.served = served;
            self.acknowledges = Some(head.pe);
        }
        match (head.body, peer.refused) {
            (Body::Ended, _) => News::Ended(head.pe),
            (Body::Refused { region }, _) => News::PutRefused {
                pe: head.pe,
                region,
            },
            (Body::Acknowledge, _) => News::Nothing,
            (Body::Answer { number }, _) => News::Answered {
                pe: head.pe,
                number,
                served,
            },
            (_, Some(region)) => News::Misplaced {
                pe: head.pe,
                region,
            },
            (Body::Question { number }, None) => News::Asked {
                pe: head.pe,
                number,
            },
            _ if head.number == peer.received + 1 => self.serve_from(head, data),
            _ if head.number > peer.received && peer.early.len() < EARLY => {
                peer.early.insert(head.number, message.to_vec());
                News::Owed(head.pe)
            }
            _ => News::Strange,
        }
    }

    /// Serves the next numbered message of a PE, and those behind it that are here, up to one that it refuses.
    fn serve_from(&mut self, head: Head, data: &[u8]) -> News {
        let pe = head.pe;
        // Nobody waits for the acknowledgement of a reply: other messages bring it, or a question.
        let mut is_awaited = !matches!(head.body, Body::Reply { .. });
        let mut served = self.serve(&head, data);
        while let Some(peer) = self.peers.get_mut(pe as usize) {
            if let Err(region) = served {
                // Not received: it is never acknowledged.
                peer.refused = Some(region);
                return News::Misplaced { pe, region };
            }
            peer.received += 1;
            let next = peer.received + 1;
            let Some(message) = peer.early.remove(&next) else {
                break;
            };
            if let Some((head, data)) = Head::read(&message) {
                is_awaited |= !matches!(head.body, Body::Reply { .. });
                served = self.serve(&head, data);
            }
        }
        let many = |peer: &PeerState| peer.received - peer.acknowledged >= WINDOW / 16;
        match is_awaited || self.peers.get(pe as usize).is_some_and(many) {
            true => News::Owed(pe),
            false => News::Nothing,
        }
    }

    /// Serves one message. `Err` has the region that it names wrongly; nothing is done then, and of a batch what is before.
    fn serve(&mut self, head: &Head, data: &[u8]) -> Result<(), u32> {
        match head.body {
            Body::Put {
                region,
                offset,
                signal,
            } => match self.regions.put((region, offset), data, signal) {
                true => Ok(()),
                false => Err(region),
            },
            Body::Batch => self.serve_batch(data),
            Body::Message => {
                let mail = Mail::new(Pe(head.pe), head.lane, data);
                let reply = self.mailbox.deliver(mail);
                if let (Some(reply), Some(peer)) = (reply, self.peers.get_mut(head.pe as usize)) {
                    peer.replies.push_back((head.lane, reply));
                }
                Ok(())
            }
            Body::Reply {
                region,
                offset,
                value,
                number,
            } => {
                let region = RegionId(region);
                let to = Remote { region, offset };
                // A lane that was dropped gets no reply.
                if self.lanes.contains_key(&head.lane) {
                    self.regions.reply(&Reply { to, value, number });
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn serve_batch(&self, mut rest: &[u8]) -> Result<(), u32> {
        while !rest.is_empty() {
            // Bytes that are no record name no region either.
            let (record, behind) = Record::read(rest).ok_or(u32::MAX)?;
            let place = (record.region, record.offset);
            if !self.regions.put(place, record.data, None) {
                return Err(record.region);
            }
            rest = behind;
        }
        Ok(())
    }
}

const _: () = assert!(HEAD.is_multiple_of(8));

#[cfg(test)]
mod tests {
    use super::*;

    struct Side {
        peers: Vec<PeerState>,
        lanes: BTreeMap<u64, LaneState>,
        regions: OwnRegions,
        mailbox: Mailbox,
    }

    impl Side {
        fn new() -> Side {
            Side {
                peers: vec![PeerState::default(), PeerState::default()],
                lanes: BTreeMap::new(),
                regions: OwnRegions::default(),
                mailbox: Mailbox::default(),
            }
        }

        fn receive(&mut self, nonce: u64, number: u64, body: Body, data: &[u8]) -> News {
            self.receive_with(0, nonce, number, body, data).0
        }

        /// The news of a message, and the PE that acknowledges something by it.
        fn receive_with(
            &mut self,
            served: u64,
            nonce: u64,
            number: u64,
            body: Body,
            data: &[u8],
        ) -> (News, Option<u32>) {
            let mut bytes = [0; HEAD];
            let head = Head {
                pe: 1,
                nonce,
                number,
                lane: 3,
                served,
                body,
            };
            head.write(&mut bytes);
            let mut receiver = Receiver {
                nonce: 7,
                peers: &mut self.peers,
                lanes: &self.lanes,
                regions: &self.regions,
                mailbox: &mut self.mailbox,
                acknowledges: None,
            };
            let news = receiver.receive(&[&bytes[..], data].concat());
            (news, receiver.acknowledges)
        }
    }

    #[test]
    fn m17_messages_are_served_in_the_order_sent_in_whatever_order_they_come() {
        let mut side = Side::new();
        for number in [3, 2, 5, 1, 4] {
            let news = side.receive(7, number, Body::Message, &[number as u8]);
            assert_eq!(news, News::Owed(1));
        }
        let mails = std::iter::from_fn(|| side.mailbox.take());
        let order: Vec<u8> = mails.map(|mail| mail.bytes()[0]).collect();
        assert_eq!(order, [1, 2, 3, 4, 5]);
        assert_eq!(side.peers[1].received, 5);
    }

    #[test]
    fn a_message_that_comes_twice_is_served_once() {
        let mut side = Side::new();
        assert_eq!(side.receive(7, 1, Body::Message, &[]), News::Owed(1));
        assert_eq!(side.receive(7, 1, Body::Message, &[]), News::Strange);
        assert!(side.mailbox.take().is_some() && side.mailbox.is_empty());
    }

    #[test]
    fn a_connection_that_failed_on_one_side_ends_on_the_other() {
        let mut side = Side::new();
        assert_eq!(side.receive(7, 0, Body::Ended, &[]), News::Ended(1));
        side.peers[1].failure = Some(crate::peer::Failure {
            is_loss: true,
            why: "it ended".into(),
        });
        assert_eq!(side.receive(7, 1, Body::Message, &[]), News::Refused(1));
        // The news is no answer to itself, or it would go back and forth.
        assert_eq!(side.receive(7, 0, Body::Ended, &[]), News::Nothing);
        assert!(side.mailbox.is_empty());
    }

    #[test]
    fn a_question_is_answered_and_a_failed_connection_answers_with_its_failure() {
        let mut side = Side::new();
        let question = Body::Question { number: 9 };
        let asked = News::Asked { pe: 1, number: 9 };
        assert_eq!(side.receive(7, 0, question, &[]), asked);
        // Messages behind a gap are not served, and the answer says so.
        side.peers[1].sent = 5;
        assert_eq!(side.receive(7, 2, Body::Ping, &[]), News::Owed(1));
        assert_eq!(side.peers[1].received, 0);
        let answered = News::Answered {
            pe: 1,
            number: 4,
            served: 3,
        };
        let answer = Body::Answer { number: 4 };
        let told = side.receive_with(3, 7, 0, answer, &[]);
        assert_eq!(told, (answered, Some(1)));
        side.peers[1].failure = Some(crate::peer::Failure::other("it ended"));
        assert_eq!(side.receive(7, 0, question, &[]), News::Refused(1));
        assert_eq!(side.receive(7, 0, answer, &[]), News::Nothing);
    }

    #[test]
    fn replies_are_numbered_and_acknowledged_with_others_or_once_there_are_many() {
        let mut side = Side::new();
        let reply = Body::Reply {
            region: 0,
            offset: 0,
            value: 0,
            number: 0,
        };
        for number in 1..WINDOW / 16 {
            assert_eq!(side.receive(7, number, reply, &[]), News::Nothing);
        }
        assert_eq!(side.receive(7, WINDOW / 16, reply, &[]), News::Owed(1));
        side.peers[1].acknowledged = WINDOW / 16;
        let next = WINDOW / 16 + 1;
        // One that came too early is served in its turn.
        assert_eq!(side.receive(7, next + 1, Body::Ping, &[]), News::Owed(1));
        assert_eq!(side.receive(7, next, reply, &[]), News::Owed(1));
        assert_eq!(side.peers[1].received, next + 1);
    }

    #[test]
    fn a_pe_that_sends_more_than_its_window_is_not_believed() {
        let mut side = Side::new();
        for number in 2..WINDOW + 2 {
            assert_eq!(side.receive(7, number, Body::Ping, &[]), News::Owed(1));
        }
        assert_eq!(side.receive(7, WINDOW + 2, Body::Ping, &[]), News::Strange);
    }

    #[test]
    fn a_message_for_another_domain_changes_nothing() {
        let mut side = Side::new();
        assert_eq!(side.receive(8, 1, Body::Message, &[]), News::Strange);
        assert!(side.mailbox.is_empty() && !side.peers[1].was_heard);
    }

    #[test]
    fn m35_a_put_outside_of_every_region_is_refused_with_all_behind_it_and_never_acknowledged() {
        let mut side = Side::new();
        let body = Body::Put {
            region: 5,
            offset: 0,
            signal: None,
        };
        let refused = News::Misplaced { pe: 1, region: 5 };
        assert_eq!(side.receive(7, 1, Body::Message, &[]), News::Owed(1));
        // One that came too early is refused in its turn.
        assert_eq!(side.receive(7, 3, body, &[1]), News::Owed(1));
        assert_eq!(side.receive(7, 2, Body::Ping, &[]), refused);
        assert_eq!(side.receive(7, 4, Body::Message, &[]), refused);
        assert_eq!(side.peers[1].received, 2);
        assert!(side.mailbox.take().is_some() && side.mailbox.is_empty());
        // The answer is for whoever put, and answers itself with nothing.
        let answer = Body::Refused { region: 5 };
        let told = News::PutRefused { pe: 1, region: 5 };
        assert_eq!(side.receive(7, 0, answer, &[]), told);
    }

    #[test]
    fn every_message_acknowledges_those_before_it_and_none_more_than_was_sent() {
        let mut side = Side::new();
        side.peers[1].sent = 4;
        let told = side.receive_with(2, 7, 1, Body::Message, &[]);
        assert_eq!(told, (News::Owed(1), Some(1)));
        assert_eq!(side.peers[1].served, 2);
        let again = side.receive_with(2, 7, 0, Body::Acknowledge, &[]);
        assert_eq!(again, (News::Nothing, None));
        let told = side.receive_with(u64::MAX, 7, 0, Body::Acknowledge, &[]);
        assert_eq!(told, (News::Nothing, Some(1)));
        assert_eq!(side.peers[1].served, 4);
    }
}
