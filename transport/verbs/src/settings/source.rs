//! The parsers of settings.

use std::collections::HashSet;

use super::values::{Choice, FlowLabel, Partition, Rails, SettingsError};
use crate::address_range::AddressRange;
use crate::limits::MOST_RAILS;

/// The words of a [`Choice`].
pub(super) const CHOICES: &[(&str, Choice)] = &[
    ("auto", Choice::Auto),
    ("on", Choice::On),
    ("off", Choice::Off),
];

/// Whether a text has the form of a port's name, such as `mlx5_0:1`.
fn is_port(name: &str) -> bool {
    let parts = name.rsplit_once(':');
    parts.is_some_and(|(device, port)| !device.is_empty() && port.parse::<u8>().is_ok())
}

pub(super) struct Source<'a>(pub(super) &'a dyn Fn(&str) -> Option<String>);

impl Source<'_> {
    pub(super) fn parsed<T>(
        &self,
        name: &'static str,
        wanted: impl FnOnce() -> String,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, SettingsError> {
        let Some(value) = self.0(name) else {
            return Ok(None);
        };
        match parse(value.trim()) {
            Some(parsed) => Ok(Some(parsed)),
            None => Err(SettingsError {
                name,
                value,
                wanted: wanted(),
            }),
        }
    }

    pub(super) fn number(
        &self,
        name: &'static str,
        least: u64,
        most: u64,
    ) -> Result<Option<u64>, SettingsError> {
        let wanted = || format!("a number from {least} to {most}");
        self.parsed(name, wanted, |value| {
            let number = value.parse().ok()?;
            (least..=most).contains(&number).then_some(number)
        })
    }

    pub(super) fn word<T: Copy>(
        &self,
        name: &'static str,
        words: &[(&str, T)],
    ) -> Result<Option<T>, SettingsError> {
        let wanted = || {
            let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            words.join(" or ")
        };
        self.parsed(name, wanted, |value| {
            let found = words.iter().find(|(word, _)| *word == value);
            found.map(|(_, meant)| *meant)
        })
    }

    pub(super) fn address(
        &self,
        name: &'static str,
    ) -> Result<Option<AddressRange>, SettingsError> {
        let wanted = || {
            "an address, or the first of several with the number of bits that they \
                         have in common, such as 10.1.0.0/16 or fd00::/8"
        };
        self.parsed(name, || wanted().into(), AddressRange::parse)
    }

    pub(super) fn traffic_class(&self, name: &'static str) -> Result<Option<u8>, SettingsError> {
        let wanted = || "auto or a number from 0 to 255".into();
        let class = self.parsed(name, wanted, |value| match value {
            "auto" => Some(None),
            number => number.parse().ok().map(Some),
        })?;
        Ok(class.flatten())
    }

    pub(super) fn flow_label(
        &self,
        name: &'static str,
    ) -> Result<Option<FlowLabel>, SettingsError> {
        let wanted = || format!("auto or a number from 0 to {}", FlowLabel::LARGEST);
        self.parsed(name, wanted, |value| match value {
            "auto" => Some(FlowLabel::PerPair),
            number => {
                let label = number.parse().ok()?;
                (label <= FlowLabel::LARGEST).then_some(FlowLabel::Same(label))
            }
        })
    }

    pub(super) fn mtu(&self, name: &'static str) -> Result<Option<u8>, SettingsError> {
        let wanted = || "256, 512, 1024, 2048 or 4096".into();
        self.parsed(name, wanted, |value| match value {
            "256" => Some(1),
            "512" => Some(2),
            "1024" => Some(3),
            "2048" => Some(4),
            "4096" => Some(5),
            _ => None,
        })
    }

    pub(super) fn rails(&self, name: &'static str) -> Result<Option<Rails>, SettingsError> {
        let wanted = || {
            format!(
                "auto, a number from 1 to {MOST_RAILS}, or the names of up to {MOST_RAILS} ports, such as \
                 mlx5_0:1,mlx5_1:1 (`oxshmem info` lists them)"
            )
        };
        self.parsed(name, wanted, |value| match value {
            "auto" => Some(Rails::Auto),
            number if number.bytes().all(|byte| byte.is_ascii_digit()) => {
                let number = number.parse().ok()?;
                (1..=MOST_RAILS)
                    .contains(&usize::from(number))
                    .then_some(Rails::Count(number))
            }
            names => {
                let names: Vec<String> = names.split(',').map(|name| name.trim().into()).collect();
                let distinct: HashSet<&String> = names.iter().collect();
                let are_sound = names.len() <= MOST_RAILS
                    && distinct.len() == names.len()
                    && names.iter().all(|name| is_port(name));
                are_sound.then_some(Rails::Named(names))
            }
        })
    }

    pub(super) fn partition(&self, name: &'static str) -> Result<Option<Partition>, SettingsError> {
        let wanted = || "an index (0 to 65535) or a key (0x0001 to 0xffff)".into();
        self.parsed(name, wanted, |value| match value.strip_prefix("0x") {
            Some(key) => {
                let key = u16::from_str_radix(key, 16).ok()?;
                (key & 0x7fff != 0).then_some(Partition::Key(key))
            }
            None => value.parse().ok().map(Partition::Index),
        })
    }
}
