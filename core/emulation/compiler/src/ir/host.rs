//! The host half of a file: the place of the code for GPUs.

use std::collections::HashSet;
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

/// Has the compiler tell the race detector of the accesses of all functions. The mark is put into the text, since the option by which the front end
/// puts it in has headers of the C++ library make calls of the compiler's own detector.
pub(crate) fn check(host: &str) -> String {
    let group = |line: &str| -> Option<String> {
        let words = line.strip_prefix("define ")?.split_whitespace();
        let mut groups = words.filter(|word| {
            let number = word.strip_prefix('#').unwrap_or_default();
            !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
        });
        groups.next_back().map(str::to_owned)
    };
    let groups: HashSet<String> = host.lines().filter_map(group).collect();
    let mut out = String::with_capacity(host.len() + 1024);
    for line in host.lines() {
        let marked = line.strip_prefix("attributes ").and_then(|rest| {
            let (name, attributes) = rest.split_once(" = { ")?;
            groups.contains(name).then_some((name, attributes))
        });
        match marked {
            Some((name, attributes)) => {
                let _ = writeln!(out, "attributes {name} = {{ sanitize_thread {attributes}");
            }
            None => {
                out.push_str(line);
                out.push('\n');
            }
        }
    }
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

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn functions_are_marked_for_the_detector_and_calls_are_not() {
        let text = "define i32 @main() #0 !dbg !5 {\n  call void @f() #1\n}\ndeclare void @f() #2\nattributes #0 = { nounwind }\n\
                    attributes #1 = { nounwind }\nattributes #2 = { cold }\n";
        let marked = text.replace("#0 = { nounwind", "#0 = { sanitize_thread nounwind");
        assert_eq!(check(text), marked);
    }
}
