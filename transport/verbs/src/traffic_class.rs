//! The traffic class of packets, where the user sets none: that in which the network is lossless, if it has one.
//!
//! On RoCE the class holds the DSCP and ECN bits, by which switches choose the queue. Administrators of NVIDIA's NICs set a
//! class for a whole port; where they set none, 106 is the class of the vendor's guides and of UCX.

/// The class of NVIDIA's guides for RoCE: DSCP 26, and ECN.
const OF_GUIDES: u8 = 106;

/// The class of a port. `global`: what the file of the port's global class has in it.
fn choose(global: Option<&str>, ethernet: bool, is_mlx5: bool) -> u8 {
    let line = |text: &str| {
        let value = text
            .lines()
            .find_map(|line| line.strip_prefix("Global tclass="))?;
        value.trim().parse().ok()
    };
    match global.and_then(line) {
        Some(class) => class,
        None if ethernet && is_mlx5 => OF_GUIDES,
        None => 0,
    }
}

/// The class of a port of this machine.
pub(crate) fn of_port(device: &str, port: u8, ethernet: bool, is_mlx5: bool) -> u8 {
    let path = format!("/sys/class/infiniband/{device}/tc/{port}/traffic_class");
    let global = std::fs::read_to_string(path).ok();
    choose(global.as_deref(), ethernet, is_mlx5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ports_global_class_comes_first() {
        for (ethernet, is_mlx5) in [(true, true), (true, false), (false, true)] {
            let of = |text| choose(Some(text), ethernet, is_mlx5);
            assert_eq!(of("Global tclass=160\n"), 160);
            assert_eq!(of("Global tclass=0\n"), 0);
            assert_eq!(of("rule 1\nGlobal tclass=98\n"), 98);
        }
    }

    #[test]
    fn without_one_only_roce_of_mlx5_has_another_than_0() {
        for global in [None, Some(""), Some("Global tclass=300"), Some("tclass=5")] {
            assert_eq!(choose(global, true, true), OF_GUIDES);
            assert_eq!(choose(global, true, false), 0, "soft-RoCE, and others");
            assert_eq!(choose(global, false, true), 0, "InfiniBand");
        }
    }
}
