//! The host half of a file: the place of the code for GPUs.

use std::fmt::Write;

/// The section of an object file in which its device code lies until it is linked.
pub(crate) const SECTION: &str = ".oxshmem_device";
/// The head of each piece in that section, before its length in eight bytes.
pub(crate) const PIECE: [u8; 8] = *b"OXSHDEV\x01";
/// The head of an image for the driver, before its length in eight bytes.
const IMAGE: [u8; 8] = *b"OXSHGPU\x01";
/// The name that clang gives to the function of a file whose device code is linked later.
const LINKED: &str = "@__cudaRegisterLinkedBinary_";

/// The bytes of an image: the head and the shared object.
pub(crate) fn image(object: &[u8]) -> Vec<u8> {
    with_head(IMAGE, object)
}

/// The bytes of a piece of device code that is linked later.
pub(crate) fn piece(object: &[u8]) -> Vec<u8> {
    let mut bytes = with_head(PIECE, object);
    bytes.resize(bytes.len().next_multiple_of(16), 0);
    bytes
}

fn with_head(head: [u8; 8], object: &[u8]) -> Vec<u8> {
    let length = (object.len() as u64).to_le_bytes();
    [&head, &length, object].concat()
}

/// Puts an image where clang has put the code for GPUs.
pub(crate) fn embed(host: &str, image: &[u8]) -> String {
    let mut out = String::with_capacity(host.len() + 3 * image.len());
    for line in host.lines() {
        match line.split_once(" = ") {
            Some((name, rest)) if rest.contains("section \".nv_fatbin\"") => {
                let _ = write!(out, "{name} = private constant ");
                constant(&mut out, image);
                out.push_str(", section \".nv_fatbin\", align 16\n");
            }
            _ => {
                out.push_str(line);
                out.push('\n');
            }
        }
    }
    out
}

/// Adds a piece of device code, and has the file's kernels registered with what it is linked to.
pub(crate) fn carry(host: &str, piece: &[u8], unit: &str) -> String {
    let mut out = String::with_capacity(host.len() + 3 * piece.len());
    for line in host.lines() {
        match line.find(LINKED) {
            Some(at) => {
                let behind = &line[at..];
                let end = behind.find('(').unwrap_or(behind.len());
                let _ = writeln!(
                    out,
                    "{}@__oxshmemRegisterLinkedBinary{}",
                    &line[..at],
                    &behind[end..]
                );
            }
            None => {
                out.push_str(line);
                out.push('\n');
            }
        }
    }
    let _ = write!(out, "@__oxshmem_device_{unit} = hidden constant ");
    constant(&mut out, piece);
    let _ = writeln!(out, ", section \"{SECTION}\", align 16, !exclude !{{}}");
    out
}

fn constant(out: &mut String, bytes: &[u8]) {
    let _ = write!(out, "[{} x i8] c\"", bytes.len());
    for byte in bytes {
        match byte {
            b' '..=b'~' if !b"\"\\".contains(byte) => out.push(char::from(*byte)),
            _ => {
                let _ = write!(out, "\\{byte:02X}");
            }
        }
    }
    out.push('"');
}
