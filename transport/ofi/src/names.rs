//! The addresses of endpoints, as providers give them: checks of a peer's, and the part that means something on one host
//! only.

use crate::fabric::sys::_bindgen_ty_3::{FI_ADDR_STR, FI_SOCKADDR, FI_SOCKADDR_IN6};

/// Why a peer's address cannot be given to this side's provider, which has one of the same format.
pub(crate) fn refusal(format: u32, theirs: &[u8], ours: &[u8]) -> Option<&'static str> {
    if format == FI_ADDR_STR {
        // Strings differ in length. The provider reads them up to their end.
        let ends = theirs.iter().position(|byte| *byte == 0);
        let sound = ends.is_some_and(|end| end > 0 && end + 1 == theirs.len());
        return (!sound).then_some("its address is no string that ends with a zero byte");
    }
    (theirs.len() != ours.len()).then_some(
        "its address is of another kind than this PE's (IPv4 and IPv6?): name interfaces of one kind by OXSHMEM_OFI_INTERFACE",
    )
}

/// A peer's address as it is to be used here. An IPv6 address that is good within a link only comes with the number of an
/// interface of its own host. Here the link is that of this side's interface.
pub(crate) fn localized(format: u32, theirs: &[u8], ours: &[u8]) -> Vec<u8> {
    let mut address = theirs.to_vec();
    if is_link_local(format, theirs) && is_link_local(format, ours) {
        let scope = IN6_SCOPE..IN6_SCOPE + 4;
        if let (Some(to), Some(from)) = (address.get_mut(scope.clone()), ours.get(scope)) {
            to.copy_from_slice(from);
        }
    }
    address
}

/// The places of an address and of its scope in a `sockaddr_in6`.
const IN6_ADDRESS: usize = 8;
const IN6_SCOPE: usize = 24;
const IN6_LEN: usize = 28;

fn is_link_local(format: u32, name: &[u8]) -> bool {
    let family = name.first_chunk::<2>().map(|raw| u16::from_ne_bytes(*raw));
    let is_in6 = format == FI_SOCKADDR_IN6 || format == FI_SOCKADDR;
    is_in6
        && name.len() == IN6_LEN
        && family == Some(libc::AF_INET6 as u16)
        && name[IN6_ADDRESS] == 0xfe
        && name[IN6_ADDRESS + 1] & 0xc0 == 0x80
}

const _: () = {
    assert!(std::mem::offset_of!(libc::sockaddr_in6, sin6_addr) == IN6_ADDRESS);
    assert!(std::mem::offset_of!(libc::sockaddr_in6, sin6_scope_id) == IN6_SCOPE);
    assert!(size_of::<libc::sockaddr_in6>() == IN6_LEN);
};

#[cfg(test)]
mod tests {
    use super::*;

    fn in6(address: [u8; 2], last: u8, scope: u32) -> Vec<u8> {
        let mut bytes = vec![0; IN6_LEN];
        bytes[..2].copy_from_slice(&(libc::AF_INET6 as u16).to_ne_bytes());
        bytes[2..4].copy_from_slice(&4711_u16.to_be_bytes());
        bytes[IN6_ADDRESS..IN6_ADDRESS + 2].copy_from_slice(&address);
        bytes[IN6_SCOPE - 1] = last;
        bytes[IN6_SCOPE..].copy_from_slice(&scope.to_ne_bytes());
        bytes
    }

    #[test]
    fn a_link_local_address_is_used_on_the_link_of_this_sides_interface() {
        let ours = in6([0xfe, 0x80], 1, 2);
        let theirs = in6([0xfe, 0x80], 9, 7);
        for format in [FI_SOCKADDR_IN6, FI_SOCKADDR] {
            let used = localized(format, &theirs, &ours);
            assert_eq!(used, in6([0xfe, 0x80], 9, 2));
        }
        // Addresses that are good everywhere stay as they are, and so do other formats.
        let global = in6([0xfd, 0xb5], 9, 7);
        assert_eq!(localized(FI_SOCKADDR_IN6, &global, &ours), global);
        let unknown = FI_ADDR_STR + 1;
        assert_eq!(localized(unknown, &theirs, &ours), theirs);
        assert_eq!(
            localized(FI_SOCKADDR_IN6, &theirs[..16], &ours),
            theirs[..16]
        );
    }

    #[test]
    fn a_string_ends_with_its_only_zero_byte_and_may_have_any_length() {
        let ours = b"fi_shm://77\0";
        let judge = |theirs: &[u8]| refusal(FI_ADDR_STR, theirs, ours);
        assert_eq!(judge(b"fi_shm://123456\0"), None);
        for bad in [&b"fi_shm://77"[..], b"", b"\0", b"fi_shm\0//77\0", b"a\0\0"] {
            assert!(judge(bad).unwrap().contains("zero byte"), "{bad:?}");
        }
    }

    #[test]
    fn an_address_of_another_length_is_no_address_of_this_format() {
        let why = refusal(FI_SOCKADDR_IN6, &[0; 16], &[0; 28]).unwrap();
        assert!(why.contains("OXSHMEM_OFI_INTERFACE"), "{why}");
        assert_eq!(refusal(FI_SOCKADDR_IN6, &[0; 28], &[0; 28]), None);
    }
}
