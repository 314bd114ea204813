//! Sizes of LLVM's types on x86-64.

use std::collections::HashMap;

use super::text;

/// The named types of a module.
pub(super) struct Types<'a>(HashMap<&'a str, &'a str>);

/// Bytes and alignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) size: u64,
    alignment: u64,
}

impl Layout {
    fn new(size: u64, alignment: u64) -> Layout {
        Layout { size, alignment }
    }
}

impl<'a> Types<'a> {
    /// Reads the definitions `%name = type ...`.
    pub(super) fn read(module: &'a str) -> Types<'a> {
        let defined = module.lines().filter(|line| line.starts_with('%'));
        Types(
            defined
                .filter_map(|line| line.split_once(" = type "))
                .collect(),
        )
    }

    /// The layout of a type; `None` if it has none or is not known.
    pub(super) fn layout(&self, kind: &str) -> Option<Layout> {
        let kind = kind.trim();
        if let Some(bits) = kind.strip_prefix('i') {
            let bits: u64 = bits.parse().ok()?;
            let bytes = bits.div_ceil(8).next_power_of_two();
            return Some(Layout::new(bytes, bytes.min(16)));
        }
        match kind {
            "ptr" | "double" => return Some(Layout::new(8, 8)),
            "float" => return Some(Layout::new(4, 4)),
            "half" | "bfloat" => return Some(Layout::new(2, 2)),
            "x86_fp80" | "fp128" => return Some(Layout::new(16, 16)),
            _ => {}
        }
        if kind.starts_with('%') {
            return self.layout(self.0.get(kind)?);
        }
        if let Some(packed) = kind.strip_prefix("<{") {
            return self.members(packed.strip_suffix("}>")?, true);
        }
        if let Some(members) = kind.strip_prefix('{') {
            return self.members(members.strip_suffix('}')?, false);
        }
        let inner = kind.get(1..kind.len().checked_sub(1)?)?;
        let (count, element) = inner.split_once(" x ")?;
        let count: u64 = count.trim().parse().ok()?;
        let element = self.layout(element)?;
        let size = count.checked_mul(element.size)?;
        if kind.starts_with('<') {
            let whole = size.next_power_of_two();
            return Some(Layout::new(whole, whole));
        }
        Some(Layout::new(size, element.alignment))
    }

    fn members(&self, list: &str, packed: bool) -> Option<Layout> {
        let (mut size, mut alignment) = (0u64, 1);
        for member in text::parts(list) {
            let member = self.layout(member)?;
            let needed = if packed { 1 } else { member.alignment };
            alignment = alignment.max(needed);
            size = size.next_multiple_of(needed) + member.size;
        }
        Some(Layout::new(size.next_multiple_of(alignment), alignment))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_the_platform() {
        let types = Types::read(
            "%struct.P = type { ptr, i32 }\n%\"struct.a::E\" = type { i8 }\n%struct.N = type <{ i8, %struct.P, [3 x half] }>\n",
        );
        for (kind, size) in [
            ("%struct.P", 16),
            ("%\"struct.a::E\"", 1),
            ("%struct.N", 23),
            ("[4 x %struct.P]", 64),
            ("<2 x float>", 8),
            ("i24", 4),
            ("{ i8, { i16, i64 }, i8 }", 32),
        ] {
            assert_eq!(
                types.layout(kind).map(|layout| layout.size),
                Some(size),
                "{kind}"
            );
        }
        assert_eq!(types.layout("%struct.Unknown"), None);
    }
}
