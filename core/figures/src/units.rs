//! Numbers in a readable form.

use std::fmt;

/// Nanoseconds with three digits, in the unit that fits.
#[derive(Clone, Copy, Debug)]
pub struct Time(pub f64);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (value, unit) = match self.0 {
            ns if ns < 999.5 => (ns, "ns"),
            ns if ns < 999.5e3 => (ns / 1e3, "µs"),
            ns if ns < 999.5e6 => (ns / 1e6, "ms"),
            ns => (ns / 1e9, "s"),
        };
        f.pad(&format!("{value:.*} {unit}", digits(value)))
    }
}

/// Bytes, in the largest unit of 1024 that divides them.
#[derive(Clone, Copy, Debug)]
pub struct Bytes(pub usize);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
        let unit = units
            .into_iter()
            .find(|(unit, _)| self.0 >= *unit && self.0.is_multiple_of(*unit));
        let (unit, name) = unit.unwrap_or((1, "B"));
        f.pad(&format!("{} {name}", self.0 / unit))
    }
}

/// Bytes, rounded in the unit that fits.
#[derive(Clone, Copy, Debug)]
pub struct Rounded(pub usize);

impl fmt::Display for Rounded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
        match units.into_iter().find(|(unit, _)| self.0 >= *unit) {
            Some((unit, name)) => write!(f, "{:.1} {name}", self.0 as f64 / unit as f64),
            None => write!(f, "{} B", self.0),
        }
    }
}

/// An amount per second with three digits, in the unit of 1000 that fits.
#[derive(Clone, Copy, Debug)]
pub struct PerSecond(pub f64, pub &'static str);

impl fmt::Display for PerSecond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
        let unit = units.into_iter().find(|(unit, _)| self.0 >= unit * 0.9995);
        let (unit, name) = unit.unwrap_or((1.0, ""));
        let value = self.0 / unit;
        f.pad(&format!("{value:.*} {name}{}", digits(value), self.1))
    }
}

/// Digits after the point, of three in all.
fn digits(value: f64) -> usize {
    match value {
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shown_in_the_unit_that_fits() {
        let times = [0.496, 9.99, 12.34, 999.4, 999.6, 123_456.0, 5e6, 2e9];
        let shown: Vec<String> = times.map(|ns| Time(ns).to_string()).to_vec();
        let expected = [
            "0.50 ns", "9.99 ns", "12.3 ns", "999 ns", "1.00 µs", "123 µs", "5.00 ms", "2.00 s",
        ];
        assert_eq!(shown, expected);
        let bytes = [1, 1000, 1024, 1536, 8 << 20, 3 << 30].map(|b| Bytes(b).to_string());
        assert_eq!(
            bytes,
            ["1 B", "1000 B", "1 KiB", "1536 B", "8 MiB", "3 GiB"]
        );
        let rates = [0.5, 999.0, 999.9, 12_345.0, 7e6, 1.5e9, 2e12, 3e15];
        let shown = rates.map(|rate| PerSecond(rate, "B/s").to_string());
        let expected = [
            "0.50 B/s",
            "999 B/s",
            "1.00 kB/s",
            "12.3 kB/s",
            "7.00 MB/s",
            "1.50 GB/s",
            "2.00 TB/s",
            "3000 TB/s",
        ];
        assert_eq!(shown, expected);
    }
}
