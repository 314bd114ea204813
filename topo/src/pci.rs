//! PCI addresses.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, quoted};

/// Where a PCI function answers. Prints and parses as `0000:3b:00.0`; orders as it prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PciAddress {
    /// The domain (segment).
    pub domain: u32,
    /// The bus.
    pub bus: u8,
    /// The device on the bus, below 32.
    pub device: u8,
    /// The function of the device, below 8.
    pub function: u8,
}

impl FromStr for PciAddress {
    type Err = Error;

    /// Takes capital letters too, and `3b:00.0` in domain 0.
    fn from_str(text: &str) -> Result<Self, Error> {
        let parse = || {
            let (rest, function) = text.rsplit_once('.')?;
            let (rest, device) = rest.rsplit_once(':')?;
            let (domain, bus) = rest.rsplit_once(':').unwrap_or(("0", rest));
            let address = Self {
                domain: hexadecimal(domain)?,
                bus: hexadecimal(bus)?.try_into().ok()?,
                device: hexadecimal(device)?.try_into().ok()?,
                function: hexadecimal(function)?.try_into().ok()?,
            };
            (address.device < 32 && address.function < 8).then_some(address)
        };
        parse().ok_or_else(|| Error::PciAddress {
            found: quoted(text),
        })
    }
}

impl fmt::Display for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            domain,
            bus,
            device,
            function,
        } = self;
        f.pad(&format!("{domain:04x}:{bus:02x}:{device:02x}.{function:x}"))
    }
}

/// Digits alone: Rust's own parser would take a sign too.
pub(crate) fn hexadecimal(digits: &str) -> Option<u32> {
    let digits_only = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    digits_only
        .then(|| u32::from_str_radix(digits, 16).ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_printed_address_parses_to_itself(
            domain: u32, bus: u8, device in 0..32u8, function in 0..8u8,
        ) {
            let address = PciAddress { domain, bus, device, function };
            prop_assert_eq!(address.to_string().parse::<PciAddress>().unwrap(), address);
        }
    }

    #[test]
    fn what_is_no_address_is_named() {
        for text in [
            "",
            "0000:00:20.0",
            "0:0:0.8",
            "+1:00:0.0",
            "1:2:3:4.5",
            "é:0.0",
            "0:100:0.0",
        ] {
            let message = text.parse::<PciAddress>().unwrap_err().to_string();
            assert!(message.contains(&quoted(text)), "{message}");
        }
        let short: PciAddress = "3B:1f.7".parse().unwrap();
        assert_eq!(short.to_string(), "0000:3b:1f.7");
    }
}
