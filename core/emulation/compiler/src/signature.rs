//! Signatures of the calls of `shmem.h` and `shmemx.h`: their parameters, as the processor's convention passes them.

use crate::library_files::HEADERS;

/// A call's parameters.
pub(crate) struct Signature {
    parameters: Vec<Parameter>,
}

struct Parameter {
    /// The type without the pointer's star.
    kind: &'static str,
    is_address: bool,
    name: &'static str,
    /// The number among those that are no floating-point numbers: the first six are in registers.
    number: Option<u32>,
}

impl Signature {
    /// The signature of a call that one of the headers declares.
    pub(crate) fn of(call: &str) -> Option<Signature> {
        let headers = HEADERS.iter().flat_map(|files| files.iter());
        let mut texts = headers.filter(|(name, _)| matches!(*name, "shmem.h" | "shmemx.h"));
        let begin = format!("{call}(");
        let list = texts.find_map(|(_, text)| {
            let declared = text.match_indices(&begin).find(|(at, _)| {
                // The whole name, and no macro's.
                let before = text[..*at].chars().next_back();
                before.is_some_and(|before| before == ' ' || before == '*')
            });
            let (at, _) = declared?;
            Some(text[at + begin.len()..].split_once(')')?.0)
        })?;
        let mut next = 0;
        let parameters = list.split(',').map(str::trim);
        let parameters = parameters.filter(|text| !matches!(*text, "void" | "..."));
        let parameter = |text: &'static str| {
            let end = text.rfind([' ', '*']).map_or(0, |at| at + 1);
            let (kind, name) = text.split_at(end);
            let is_address = kind.contains('*');
            let is_floating = ["float", "double", "omplex"]
                .iter()
                .any(|part| kind.contains(part));
            let number = (is_address || !is_floating).then_some(next);
            next += u32::from(number.is_some());
            let kind = kind.trim_end().trim_end_matches('*').trim_end();
            Parameter {
                kind: kind.strip_prefix("const ").unwrap_or(kind),
                is_address,
                name,
                number,
            }
        };
        let parameters = parameters.map(parameter).collect();
        Some(Signature { parameters })
    }

    /// The registers that have addresses, as bits.
    pub(crate) fn addresses(&self) -> u32 {
        let addresses = self.parameters.iter().filter(|one| one.is_address);
        let numbers = addresses.filter_map(|one| one.number);
        numbers
            .filter(|number| *number < 6)
            .fold(0, |bits, number| bits | 1 << number)
    }

    fn parameter(&self, name: &str) -> Option<&Parameter> {
        self.parameters.iter().find(|one| one.name == name)
    }

    /// The number of a parameter among those in the registers of integers, and behind these on the stack.
    pub(crate) fn number(&self, name: &str) -> Option<u32> {
        self.parameter(name)?.number
    }

    /// The type at an address.
    pub(crate) fn element(&self, name: &str) -> Option<&'static str> {
        self.parameter(name).map(|one| one.kind)
    }
}

#[cfg(test)]
mod tests {
    use super::Signature;

    #[test]
    fn addresses_are_known_by_their_types() {
        for (call, addresses) in [
            ("shmem_long_put", 0b11),
            ("shmem_ctx_getmem", 0b110),
            ("shmem_double_p", 0b1),
            ("shmem_ctx_putmem_signal_nbi", 0b1_0110),
            ("shmem_barrier_all", 0),
            ("shmemx_cuda_ptr", 0b1),
        ] {
            let signature = Signature::of(call).unwrap();
            assert_eq!(signature.addresses(), addresses, "{call}");
        }
        assert!(Signature::of("shmem_no_such_call").is_none());
        // A floating-point number is in no such register.
        let signature = Signature::of("shmem_double_p").unwrap();
        assert_eq!(signature.number("pe"), Some(1));
        assert_eq!(signature.number("value"), None);
    }
}
