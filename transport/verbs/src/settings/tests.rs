//! Values that are taken, and values that are refused.

use super::*;

fn with(name: &str, value: &str) -> Result<Settings, SettingsError> {
    Settings::read(|asked| (asked == name).then(|| value.to_owned()))
}

#[test]
fn nothing_set_gives_the_defaults() {
    assert_eq!(Settings::read(|_| None), Ok(Settings::default()));
}

#[test]
fn every_variable_of_the_table_is_read_and_a_wrong_value_names_it() {
    for variable in VARIABLES {
        let error = with(variable.name, "pudding").unwrap_err();
        assert_eq!(error.name, variable.name);
        let told = error.to_string();
        assert!(
            told.contains(variable.name) && told.contains("pudding"),
            "{told}"
        );
        assert!(!error.wanted.is_empty());
    }
}

#[test]
fn values_outside_their_range_are_refused() {
    for (name, value) in [
        ("OXSHMEM_VERBS_TIMEOUT", "0"),
        ("OXSHMEM_VERBS_TIMEOUT", "32"),
        ("OXSHMEM_VERBS_RETRY_COUNT", "8"),
        ("OXSHMEM_VERBS_DEPTH", "15"),
        ("OXSHMEM_VERBS_DEPTH", "8193"),
        ("OXSHMEM_VERBS_DEPTH", "-1"),
        ("OXSHMEM_VERBS_RAILS", "0"),
        ("OXSHMEM_VERBS_RAILS", "9"),
        ("OXSHMEM_VERBS_RAILS", ""),
        ("OXSHMEM_VERBS_RAILS", "mlx5_0"),
        ("OXSHMEM_VERBS_RAILS", "mlx5_0:1,"),
        ("OXSHMEM_VERBS_RAILS", "mlx5_0:1,mlx5_0:1"),
        ("OXSHMEM_VERBS_QPS", "0"),
        ("OXSHMEM_VERBS_QPS", "9"),
        ("OXSHMEM_VERBS_STRIPE", "63"),
        ("OXSHMEM_VERBS_SERVICE_LEVEL", "16"),
        ("OXSHMEM_VERBS_FLOW_LABEL", "1048576"),
        ("OXSHMEM_VERBS_FLOW_LABEL", "0xfffff"),
        ("OXSHMEM_VERBS_GID_INDEX", "256"),
        ("OXSHMEM_VERBS_ADDRESS", "10.1.0.0/33"),
        ("OXSHMEM_VERBS_MTU", "1500"),
        ("OXSHMEM_VERBS_PKEY", "0x0000"),
        ("OXSHMEM_VERBS_PKEY", "0x10000"),
        ("OXSHMEM_VERBS_BOUNCE", "4096"),
    ] {
        assert!(with(name, value).is_err(), "{name}={value}");
    }
}

#[test]
fn values_are_taken() {
    assert_eq!(with("OXSHMEM_VERBS_MTU", "1024").unwrap().mtu, Some(3));
    let pkey = |value| with("OXSHMEM_VERBS_PKEY", value).unwrap().partition;
    assert_eq!(pkey("0x8001"), Partition::Key(0x8001));
    assert_eq!(pkey("3"), Partition::Index(3));
    let relaxed = with("OXSHMEM_VERBS_RELAXED_ORDERING", "off").unwrap();
    assert_eq!(relaxed.relaxed_ordering, Choice::Off);
    let class = |value| with("OXSHMEM_VERBS_TRAFFIC_CLASS", value).map(|s| s.traffic_class);
    assert_eq!((class("auto"), class("0")), (Ok(None), Ok(Some(0))));
    assert!(class("256").is_err());
    let label = |value| with("OXSHMEM_VERBS_FLOW_LABEL", value).map(|s| s.flow_label);
    assert_eq!(label("auto"), Ok(FlowLabel::PerPair));
    assert_eq!(label("1048575"), Ok(FlowLabel::Same(0xfffff)));
    let rails = |value| with("OXSHMEM_VERBS_RAILS", value).unwrap().rails;
    assert_eq!((rails("auto"), rails("8")), (Rails::Auto, Rails::Count(8)));
    let named = Rails::Named(vec!["mlx5_0:1".into(), "mlx5_1:2".into()]);
    assert_eq!(rails("mlx5_0:1, mlx5_1:2"), named);
    let in_order = |value| with("OXSHMEM_VERBS_IN_ORDER", value).unwrap().in_order;
    assert_eq!(in_order("off"), Choice::Off);
    assert_eq!(in_order("on"), Choice::On);
    let gpudirect = |value| with("OXSHMEM_VERBS_GPUDIRECT", value).unwrap().gpudirect;
    assert_eq!(gpudirect("peermem"), GpuDirect::PeerMemory);
    assert_eq!(gpudirect("dma-buf"), GpuDirect::DmaBuf);
    assert_eq!(
        with("OXSHMEM_VERBS_GID_INDEX", "7").unwrap().gid_index,
        Some(7)
    );
    assert!(
        with("OXSHMEM_VERBS_GLOBAL_ROUTE", "on")
            .unwrap()
            .global_route
    );
}

#[test]
fn each_queue_pair_has_a_flow_label_of_its_own_or_all_have_the_one_that_is_set() {
    let labels = |wanted: FlowLabel| {
        let numbers = (0..8).flat_map(|ours| (0..8).map(move |theirs| (ours, theirs)));
        let all = numbers.map(|(ours, theirs)| wanted.of_pair(ours, theirs));
        all.collect::<std::collections::HashSet<u32>>()
    };
    assert_eq!(labels(FlowLabel::Same(77)), [77].into());
    let own = labels(FlowLabel::PerPair);
    assert_eq!(own.len(), 64);
    assert!(
        own.iter()
            .all(|label| (1..=FlowLabel::LARGEST).contains(label))
    );
    // On RoCE v2 these bits choose the UDP source port.
    let ports: std::collections::HashSet<u32> = own.iter().map(|label| label & 0x3fff).collect();
    assert!(ports.len() > 60, "{}", ports.len());
}
