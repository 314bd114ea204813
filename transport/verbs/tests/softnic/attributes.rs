//! Attributes that only a device sees: the flow labels of queue pairs, the completion vectors of queues.

use std::collections::HashSet;

use oxshmem_transport::{HostId, Job, Pe, Transport};
use oxshmem_verbs::{FlowLabel, Settings, Verbs};

use super::nic::counter;
use super::pair::{PE0, PE1};
use super::{connect_anew, impatient, put, sides};

/// The flow labels of both ends of some connections, which work.
fn labels(flow_label: FlowLabel) -> Vec<u64> {
    let settings = Settings {
        flow_label,
        global_route: true,
        ..impatient()
    };
    let [mut one, other] = sides(settings);
    let mut labels = Vec::new();
    for round in 0..4 {
        one.lane = one.domain.lane().unwrap();
        let endpoint = one.lane.endpoint(PE1).unwrap();
        let answer = other.domain.accept(PE0, &endpoint).unwrap();
        labels.push(counter("newest_flow_label"));
        one.lane.connect(PE1, &answer).unwrap();
        labels.push(counter("newest_flow_label"));
        put(&mut one, &other, round).unwrap();
    }
    connect_anew(&mut one, &other).unwrap();
    labels
}

#[test]
#[ignore = "needs the software NIC; run by ci/test-softnic"]
fn both_ends_of_a_connection_have_the_flow_label_that_is_set() {
    for label in [0, 0x12345, 0xfffff] {
        assert_eq!(labels(FlowLabel::Same(label)), [u64::from(label); 8]);
    }
}

#[test]
#[ignore = "needs the software NIC; run by ci/test-softnic"]
fn queue_pairs_have_flow_labels_of_their_own_if_they_are_to() {
    let all = labels(FlowLabel::PerPair);
    let distinct: HashSet<&u64> = all.iter().collect();
    assert_eq!(distinct.len(), all.len(), "{all:?}");
}

#[test]
#[ignore = "needs the software NIC; run by ci/test-softnic"]
fn completion_vectors_are_dealt_out_by_the_number_on_the_host() {
    let verbs = Verbs::with(Settings::default());
    let devices = verbs.probe().unwrap();
    // PEs of a job whose numbers go round two hosts: those of one host are 0, 2, 4, 6.
    let vectors = (0..4).map(|host_rank| {
        let job = Job {
            me: Pe(2 * host_rank),
            size: 8,
            host_rank,
            host: HostId("here".into()),
        };
        let domain = verbs.open(&devices[0], &job).unwrap();
        let _inbox = domain.inbox().unwrap();
        counter("newest_vector")
    });
    assert_eq!(vectors.collect::<Vec<_>>(), [0, 1, 2, 3]);
}
