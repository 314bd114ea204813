//! The facts about one way through libfabric: a provider on one interface, as `fi_getinfo` describes it.
//!
//! Pure data, so that all that is derived from it can be tested with the descriptions of machines elsewhere.

use std::net::IpAddr;

/// The facts that decide whether and how the transport uses a provider's interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    /// The provider with its layers, such as `tcp;ofi_rxm`.
    pub provider: String,
    /// The network, as the provider names it: `10.1.0.0/16` of IP, else a name.
    pub fabric: String,
    /// The interface.
    pub domain: String,
    /// The address of the interface, of providers over IP.
    pub address: Option<IpAddr>,
    pub address_format: u32,
    pub protocol: u32,
    pub caps: u64,
    pub mode: u64,
    /// The orders that the initiator's side and the target's both keep.
    pub order: u64,
    pub longest: u64,
    /// Whether a write can be completed on its delivery.
    pub delivers: bool,
    /// Up to this size data of a write lands after that of earlier writes.
    pub write_after_write: u64,
    /// Up to this size a read gives the data of earlier writes.
    pub read_after_write: u64,
    pub prefix: usize,
    pub mr_mode: u64,
    pub mr_key_size: usize,
    /// Whether data moves only while its process calls the provider.
    pub manual_progress: bool,
    /// The bandwidth in Mb/s; 0 if it is not told.
    pub megabits: u32,
    /// The name of the NIC, if it is told.
    pub nic: Option<String>,
}

/// Bits of `fi_info`, which are part of libfabric's ABI.
pub(crate) mod bits {
    use crate::fabric::sys;

    pub(crate) const MSG: u64 = sys::FI_MSG as u64;
    pub(crate) const RMA: u64 = sys::FI_RMA as u64;
    pub(crate) const READ: u64 = sys::FI_READ as u64;
    pub(crate) const WRITE: u64 = sys::FI_WRITE as u64;
    pub(crate) const RECV: u64 = sys::FI_RECV as u64;
    pub(crate) const SEND: u64 = sys::FI_SEND as u64;
    pub(crate) const REMOTE_READ: u64 = sys::FI_REMOTE_READ as u64;
    pub(crate) const REMOTE_WRITE: u64 = sys::FI_REMOTE_WRITE as u64;
    pub(crate) const COMPLETION: u64 = sys::FI_COMPLETION as u64;
    pub(crate) const DELIVERY_COMPLETE: u64 = sys::FI_DELIVERY_COMPLETE as u64;
    pub(crate) const ATOMIC: u64 = sys::FI_ATOMIC as u64;
    pub(crate) const HMEM: u64 = sys::FI_HMEM;
    pub(crate) const TRANSMIT: u64 = sys::FI_SEND as u64;

    pub(crate) const ORDER_RAR: u64 = sys::FI_ORDER_RAR as u64;
    pub(crate) const ORDER_RAW: u64 = sys::FI_ORDER_RAW as u64;
    pub(crate) const ORDER_WAW: u64 = sys::FI_ORDER_WAW as u64;
    pub(crate) const ORDER_RMA_RAR: u64 = sys::FI_ORDER_RMA_RAR;
    pub(crate) const ORDER_RMA_RAW: u64 = sys::FI_ORDER_RMA_RAW;
    pub(crate) const ORDER_RMA_WAW: u64 = sys::FI_ORDER_RMA_WAW;

    pub(crate) const MR_LOCAL: u64 = sys::FI_MR_LOCAL as u64;
    pub(crate) const MR_VIRT_ADDR: u64 = sys::FI_MR_VIRT_ADDR as u64;
    pub(crate) const MR_ALLOCATED: u64 = sys::FI_MR_ALLOCATED as u64;
    pub(crate) const MR_PROV_KEY: u64 = sys::FI_MR_PROV_KEY as u64;
    pub(crate) const MR_ENDPOINT: u64 = sys::FI_MR_ENDPOINT as u64;

    pub(crate) const MR_HMEM: u64 = sys::FI_MR_HMEM as u64;

    pub(crate) const CONTEXT: u64 = sys::FI_CONTEXT;
    pub(crate) const CONTEXT2: u64 = sys::FI_CONTEXT2;
}

impl Facts {
    /// The innermost provider, which owns the network: `tcp` of `tcp;ofi_rxm`.
    pub(crate) fn core_provider(&self) -> &str {
        core_of(&self.provider)
    }

    /// Whether it uses sockets of the operating system.
    pub(crate) fn uses_sockets(&self) -> bool {
        matches!(
            self.core_provider(),
            "tcp" | "net" | "udp" | "sockets" | "xnet"
        )
    }

    /// Whether its network is not known to be one of its own: a fabric's, or memory that processes of a host share. Others
    /// may use the network that everybody uses, as `psm3` and `ucx` do where they find no NIC of theirs.
    pub(crate) fn is_ordinary_network(&self) -> bool {
        let fabrics = ["cxi", "efa", "opx", "psm2", "verbs", "shm", "sm2"];
        !fabrics.contains(&self.core_provider())
    }

    /// Whether it ends a send of every length with an error when it closes its connection, as one provider over TCP
    /// alone does. The layer `ofi_rxm` does so up to its eager limit: it forgets longer ones, and their ends never come.
    /// Nothing is known of other providers.
    pub(crate) fn ends_long_sends(&self) -> bool {
        matches!(self.provider.as_str(), "tcp" | "net" | "xnet")
    }

    /// Whether a NIC places the data of writes in the target's memory, the target's CPU has no part in it, and a
    /// completion at delivery means that. Over `verbs` the layer `ofi_rxm` says so, and asks its provider for less.
    pub(crate) fn is_placed_by_nic(&self) -> bool {
        places_by_nic(self.core_provider())
    }

    /// Whether a NIC performs its atomics. All others do so in software: their man pages and sources name a message that the
    /// target's process serves, as ours are.
    pub(crate) fn has_atomics_of_nic(&self) -> bool {
        performs_atomics_by_nic(self.core_provider())
    }

    /// The reason why its writes may split a word of 8 bytes, or be completed before they are delivered; none if nothing
    /// is known against them.
    pub(crate) fn splits_words(&self) -> Option<String> {
        let core = self.core_provider();
        let in_software = self.uses_sockets() || matches!(core, "shm" | "sm2" | "lnx");
        if in_software {
            return Some(format!("{core} copies data in software, and splits words"));
        }
        // The layer says that it delivers, and does not ask its provider for that.
        let layered = self.provider != core;
        layered.then(|| {
            format!(
                "{} does not say when {core} has placed a word",
                self.provider
            )
        })
    }

    /// Whether data that arrive move only inside calls. EFA's provider says that it needs none and does, by fi_efa(7).
    /// Providers over sockets that could start a thread for it are asked for none.
    pub(crate) fn moves_in_calls(&self) -> bool {
        self.manual_progress || self.uses_sockets() || self.core_provider() == "efa"
    }

    /// Whether its address is reached from its own host only.
    pub(crate) fn is_on_this_host_only(&self) -> bool {
        self.core_provider() == "shm" || self.address.is_some_and(|address| address.is_loopback())
    }

    /// Whether an order is kept, declared for all operations or for reads and writes.
    pub(crate) fn has_order(&self, any: u64, of_rma: u64) -> bool {
        self.order & any != 0 || self.order & of_rma != 0
    }
}

/// The innermost provider of one with its layers.
pub(crate) fn core_of(provider: &str) -> &str {
    let mut layers = provider.split(';');
    let core = layers.find(|layer| !layer.starts_with("ofi_"));
    core.unwrap_or(provider)
}

/// Whether the NICs of a provider, by its name, place the data of writes.
pub(crate) fn places_by_nic(core: &str) -> bool {
    core == "cxi"
}

/// Whether the NICs of a provider, by its name, perform atomics.
pub(crate) fn performs_atomics_by_nic(core: &str) -> bool {
    core == "cxi"
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A mode that this transport does not meet.
    const ASYNC_IOV: u64 = crate::fabric::sys::FI_ASYNC_IOV;

    /// Reads the first description of `fi_info -v`.
    pub(crate) fn of_dump(text: &str) -> Facts {
        let field = |name: &str| -> Vec<String> {
            let lines = text.lines().map(str::trim);
            let found = lines.filter_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            found.map(str::to_owned).collect()
        };
        let first = |name: &str| field(name).first().cloned().unwrap_or_default();
        let set = |list: &str| -> Vec<String> {
            let list = list.trim_matches(['[', ']', ' ']);
            list.split(", ").map(str::to_owned).collect()
        };
        let number = |name: &str| first(name).parse::<u64>().unwrap_or(0);
        let mask = |names: &[String], known: &[(&str, u64)]| {
            let bits = known
                .iter()
                .filter(|(name, _)| names.iter().any(|n| n == name));
            bits.fold(0, |all, (_, bit)| all | bit)
        };
        let orders = [
            ("FI_ORDER_RAR", bits::ORDER_RAR),
            ("FI_ORDER_RAW", bits::ORDER_RAW),
            ("FI_ORDER_WAW", bits::ORDER_WAW),
            ("FI_ORDER_RMA_RAR", bits::ORDER_RMA_RAR),
            ("FI_ORDER_RMA_RAW", bits::ORDER_RMA_RAW),
            ("FI_ORDER_RMA_WAW", bits::ORDER_RMA_WAW),
        ];
        let order: Vec<u64> = field("msg_order")
            .iter()
            .map(|o| mask(&set(o), &orders))
            .collect();
        let caps = [
            ("FI_MSG", bits::MSG),
            ("FI_RMA", bits::RMA),
            ("FI_ATOMIC", bits::ATOMIC),
            ("FI_HMEM", bits::HMEM),
            ("FI_READ", bits::READ),
            ("FI_WRITE", bits::WRITE),
            ("FI_SEND", bits::SEND),
            ("FI_RECV", bits::RECV),
            ("FI_REMOTE_READ", bits::REMOTE_READ),
            ("FI_REMOTE_WRITE", bits::REMOTE_WRITE),
        ];
        let registration = [
            ("FI_MR_LOCAL", bits::MR_LOCAL),
            ("FI_MR_VIRT_ADDR", bits::MR_VIRT_ADDR),
            ("FI_MR_ALLOCATED", bits::MR_ALLOCATED),
            ("FI_MR_PROV_KEY", bits::MR_PROV_KEY),
            ("FI_MR_ENDPOINT", bits::MR_ENDPOINT),
        ];
        // FI_BUFFERED_RECV, which providers offer and do not demand, is told only where no mode is asked for.
        let modes = [
            ("FI_CONTEXT", bits::CONTEXT),
            ("FI_CONTEXT2", bits::CONTEXT2),
            ("FI_ASYNC_IOV", ASYNC_IOV),
        ];
        let names = field("name");
        let address = first("src_addr");
        let address = address.rsplit_once("://").map(|(_, rest)| rest);
        let address = address
            .and_then(|rest| rest.rsplit_once(':'))
            .map(|(ip, _)| ip);
        Facts {
            provider: first("prov_name"),
            fabric: names.last().cloned().unwrap_or_default(),
            domain: names.first().cloned().unwrap_or_default(),
            address: address.and_then(|ip| ip.trim_matches(['[', ']']).parse().ok()),
            address_format: 0,
            protocol: 0,
            caps: mask(&set(&first("caps")), &caps),
            mode: mask(&set(&first("mode")), &modes),
            order: order.iter().fold(u64::MAX, |all, one| all & one),
            longest: number("max_msg_size"),
            delivers: true,
            write_after_write: number("max_order_waw_size"),
            read_after_write: number("max_order_raw_size"),
            prefix: number("msg_prefix_size") as usize,
            mr_mode: mask(&set(&first("mr_mode")), &registration),
            mr_key_size: number("mr_key_size") as usize,
            manual_progress: first("data_progress") == "FI_PROGRESS_MANUAL",
            megabits: 0,
            nic: None,
        }
    }

    #[test]
    fn the_provider_that_owns_the_network_is_told_from_its_layers() {
        let facts = of_dump(include_str!("../tests/fixtures/tcp-rxm-1.17.txt"));
        assert_eq!(facts.provider, "tcp;ofi_rxm");
        assert_eq!(facts.core_provider(), "tcp");
        assert_eq!(core_of("ofi_rxm;tcp"), "tcp");
        assert!(facts.uses_sockets() && !facts.is_placed_by_nic());
        assert_eq!(facts.address, Some(IpAddr::from([192, 0, 2, 2])));
        assert!(facts.manual_progress);
    }

    #[test]
    fn one_provider_over_tcp_ends_sends_of_every_length_and_moves_data_in_calls() {
        let net = of_dump(include_str!("../tests/fixtures/net-1.17.txt"));
        assert!(net.ends_long_sends() && net.moves_in_calls());
        let layered = of_dump(include_str!("../tests/fixtures/tcp-rxm-1.17.txt"));
        assert!(!layered.ends_long_sends() && layered.moves_in_calls());
    }
}
