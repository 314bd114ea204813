//! Variables of each kind, well and badly set, and the job that is read from them.

use super::backend::{described_rank, describes_job};
use super::*;
use crate::pmi::version::{Settings, Version};

const KEY: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

fn read(variables: &[(&str, &str)]) -> Result<Job> {
    Job::read(&|name| {
        variables
            .iter()
            .find(|(set, _)| *set == name)
            .map(|(_, value)| (*value).to_owned())
    })
}

fn complaint(variables: &[(&str, &str)]) -> String {
    read(variables).unwrap_err().to_string()
}

#[test]
fn no_variables_make_a_world_of_one() {
    assert!(matches!(read(&[]), Ok(Job::Single)));
    assert!(matches!(
        read(&[(JOB_KEY, KEY), ("MASTER_ADDR", "x")]),
        Ok(Job::Single)
    ));
    assert!(matches!(
        read(&[("RANK", "0"), ("WORLD_SIZE", "1")]),
        Ok(Job::Single)
    ));
}

#[test]
fn launcher_variables_come_before_torchrun_ones() {
    let job = read(&[
        (RANK, "1"),
        (SIZE, "3"),
        (LOCAL_RANK, "1"),
        (RENDEZVOUS, "127.0.0.1:99"),
        (JOB_KEY, KEY),
        ("RANK", "7"),
        ("WORLD_SIZE", "9"),
    ]);
    let Ok(Job::Launched { address, hello }) = job else {
        panic!("{job:?}")
    };
    assert_eq!(
        (address.as_str(), hello.rank, hello.size),
        ("127.0.0.1:99", 1, 3)
    );
}

#[test]
fn torchrun_variables_name_rank_zeros_host() {
    let base = [
        ("RANK", "1"),
        ("WORLD_SIZE", "2"),
        ("MASTER_PORT", "29500"),
        (JOB_KEY, KEY),
    ];
    for (host, expected) in [("node7", "node7:29500"), ("fe80::1", "[fe80::1]:29500")] {
        let job = read(&[&base[..], &[("MASTER_ADDR", host)]].concat());
        let Ok(Job::Hosted { address, .. }) = job else {
            panic!("{job:?}")
        };
        assert_eq!(address, expected);
    }
    let job = read(&[&base[..], &[("MASTER_ADDR", "h"), (MASTER_PORT, "5")]].concat());
    let Ok(Job::Hosted { address, .. }) = job else {
        panic!("{job:?}")
    };
    assert_eq!(address, "h:5");
}

#[test]
fn half_set_variables_are_named() {
    assert!(complaint(&[(RANK, "0")]).contains("OXSHMEM_RANK is set but OXSHMEM_SIZE is not"));
    assert!(complaint(&[("RANK", "0")]).contains("RANK is set but WORLD_SIZE is not"));
    let launched = [(RANK, "0"), (SIZE, "2"), (RENDEZVOUS, "h:1")];
    assert!(complaint(&launched).contains("openssl rand -hex 32"));
    let hosted = [
        ("RANK", "0"),
        ("WORLD_SIZE", "2"),
        ("MASTER_ADDR", "h"),
        ("MASTER_PORT", "1"),
    ];
    assert!(complaint(&hosted).contains("openssl rand -hex 32"));
    assert!(complaint(&hosted[..3]).contains("MASTER_PORT is not"));
}

#[test]
fn malformed_variables_are_named_with_their_value() {
    let with = |changed: (&'static str, &'static str)| {
        let base = [
            (RANK, "0"),
            (SIZE, "2"),
            (RENDEZVOUS, "h:1"),
            (JOB_KEY, KEY),
        ];
        complaint(&base.map(|pair| if pair.0 == changed.0 { changed } else { pair }))
    };
    for (name, value) in [
        (RANK, "2"),
        (RANK, "-1"),
        (RANK, "one"),
        (RANK, ""),
        (SIZE, "0"),
        (SIZE, "99999999"),
        (RENDEZVOUS, "nohost"),
        (RENDEZVOUS, ":1"),
        (RENDEZVOUS, "h:0"),
    ] {
        let complaint = with((name, value));
        assert!(
            complaint.contains(&format!("{name}={value:?}")),
            "{complaint}"
        );
    }
}

#[test]
fn a_malformed_key_is_reported_but_not_shown() {
    let complaint = complaint(&[
        (RANK, "0"),
        (SIZE, "2"),
        (RENDEZVOUS, "h:1"),
        (JOB_KEY, "5ecret"),
    ]);
    assert!(
        complaint.contains(JOB_KEY) && !complaint.contains("5ecret"),
        "{complaint}"
    );
}

const HYDRA: [(&str, &str); 3] = [("PMI_FD", "6"), ("PMI_RANK", "1"), ("PMI_SIZE", "4")];
const PMIX: [(&str, &str); 2] = [("PMIX_NAMESPACE", "n"), ("PMIX_RANK", "2")];
const TORCHRUN: [(&str, &str); 5] = [
    ("RANK", "3"),
    ("WORLD_SIZE", "4"),
    ("MASTER_ADDR", "h"),
    ("MASTER_PORT", "1"),
    (JOB_KEY, KEY),
];

#[test]
fn process_managers_come_before_torchrun_style_variables() {
    let job = read(&[&HYDRA[..], &TORCHRUN].concat());
    let Ok(Job::Pmi(settings)) = job else {
        panic!("{job:?}")
    };
    let expected = Settings {
        version: Version::One,
        descriptor: 6,
        rank: 1,
        size: 4,
        job: None,
    };
    assert_eq!(settings, expected);
    let job = read(&[&PMIX[..], &TORCHRUN].concat());
    assert!(matches!(job, Ok(Job::Pmix)), "{job:?}");
}

#[test]
fn torchrun_that_a_process_manager_started_comes_before_it() {
    let elastic = [("TORCHELASTIC_RUN_ID", "none")];
    for outer in [&HYDRA[..], &PMIX] {
        let job = read(&[outer, &TORCHRUN, &elastic].concat());
        assert!(
            matches!(job, Ok(Job::Hosted { ref hello, .. }) if hello.rank == 3),
            "{job:?}"
        );
    }
}

#[test]
fn the_way_may_be_chosen() {
    let all = |backend| {
        [
            &HYDRA[..],
            &PMIX,
            &TORCHRUN,
            &[("OXSHMEM_BOOTSTRAP", backend)],
        ]
        .concat()
    };
    let pmi = |backend| match read(&all(backend)) {
        Ok(Job::Pmi(settings)) => settings.version,
        other => panic!("{other:?}"),
    };
    assert_eq!(pmi("pmi1"), Version::One);
    assert_eq!(pmi("pmi2"), Version::Two);
    assert!(matches!(read(&all("pmix")), Ok(Job::Pmix)));
    assert!(matches!(read(&all("torchrun")), Ok(Job::Hosted { .. })));
    assert!(matches!(read(&all("single")), Ok(Job::Single)));
    let words = complaint(&all("launcher"));
    assert!(
        words.contains("OXSHMEM_BOOTSTRAP is set but OXSHMEM_SIZE is not"),
        "{words}"
    );
    assert!(complaint(&all("mpi")).contains("pmix"));
}

#[test]
fn two_process_managers_at_once_are_ambiguous() {
    let words = complaint(&[&HYDRA[..], &PMIX].concat());
    assert!(
        words.contains("PMIX_NAMESPACE") && words.contains("OXSHMEM_BOOTSTRAP"),
        "{words}"
    );
}

#[test]
fn what_a_process_manager_left_out_is_named() {
    for (index, missing) in ["PMI_FD", "PMI_RANK", "PMI_SIZE"].into_iter().enumerate() {
        let mut rest = HYDRA.to_vec();
        rest.remove(index);
        assert!(
            complaint(&rest).contains(&format!("but {missing} is not")),
            "{missing}"
        );
    }
    assert!(complaint(&PMIX[1..]).contains("but PMIX_NAMESPACE is not"));
    assert!(complaint(&PMIX[..1]).contains("but PMIX_RANK is not"));
    let wrong = [("PMI_FD", "-1"), HYDRA[1], HYDRA[2]];
    assert!(complaint(&wrong).contains("PMI_FD=\"-1\""));
}

#[test]
fn a_process_managers_only_process_is_a_world_of_one() {
    let alone = [("PMI_FD", "6"), ("PMI_RANK", "0"), ("PMI_SIZE", "1")];
    assert!(matches!(read(&alone), Ok(Job::Single)));
    assert!(!describes(&alone));
}

fn describes(variables: &[(&str, &str)]) -> bool {
    describes_job(&lookup_in(variables))
}

fn lookup_in<'a>(variables: &'a [(&str, &str)]) -> impl Fn(&str) -> Option<String> + 'a {
    |name| {
        let found = variables.iter().find(|(set, _)| *set == name);
        found.map(|(_, value)| (*value).to_owned())
    }
}

#[test]
fn jobs_and_ranks_are_seen_without_joining() {
    for (variables, rank) in [
        (&HYDRA[..], 1),
        (&PMIX, 2),
        (&TORCHRUN, 3),
        (&[(RANK, "5")], 5),
    ] {
        assert!(describes(variables), "{variables:?}");
        assert_eq!(described_rank(&lookup_in(variables)), Some(rank));
    }
    assert!(describes(&[&HYDRA[..], &PMIX].concat()));
    assert!(!describes(
        &[&HYDRA[..], &[("OXSHMEM_BOOTSTRAP", "single")]].concat()
    ));
    assert!(!describes(&[]));
    assert_eq!(described_rank(&lookup_in(&[])), None);
}
