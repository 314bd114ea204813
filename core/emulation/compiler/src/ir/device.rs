//! The device half of a file: what a GPU has and a CPU lacks.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;

use super::stub::Kernel;
use super::text;
use crate::error::Failure;

/// The device half with all passes done. `check`: for the race detector.
pub(crate) fn passes(device: &str, kernels: &[Kernel], check: bool) -> Result<String, Failure> {
    refuse_assembly(device)?;
    let renamed = static_variables(device);
    let mut out = String::with_capacity(device.len() * 2);
    for line in renamed.lines() {
        if let Some(changed) = shared_variable(line) {
            out.push_str(&changed);
        } else {
            if let Some(word) = polled_word(line) {
                let _ = writeln!(out, "  call void @softcuda_poll(ptr {word})");
                if let Some(call) = untold_atomic(line, word).filter(|_| check) {
                    out.push_str(&call);
                }
            }
            match check && line.starts_with(' ') {
                true => out.push_str(&line.replace(" @free(", " @softcuda_free(")),
                false => out.push_str(line),
            }
        }
        out.push('\n');
    }
    if !out.contains("declare void @softcuda_poll(") {
        out.push_str("\ndeclare void @softcuda_poll(ptr)\n");
    }
    if check {
        out.push_str("\n@softcuda_checked = weak_odr constant i32 1\n");
        if !out.contains("declare void @softcuda_atomic(") {
            out.push_str("declare void @softcuda_atomic(ptr, i32, i32)\n");
        }
        out.push_str("declare void @softcuda_free(ptr)\n");
    }
    let headers: HashMap<&str, &str> = renamed
        .lines()
        .filter(|line| line.starts_with("define "))
        .filter_map(text::header)
        .collect();
    for kernel in kernels {
        entry(&mut out, kernel, &headers)?;
    }
    Ok(out)
}

/// Refuses instructions of GPUs, which no CPU has.
fn refuse_assembly(device: &str) -> Result<(), Failure> {
    let mut faults = Vec::new();
    for line in device.lines() {
        let Some(at) = line.find(" asm ") else {
            continue;
        };
        if !line.trim_start().starts_with(['%', 'c', 't']) || !line.contains("call ") {
            continue;
        }
        let instruction = line[at..].split('"').nth(1).unwrap_or_default();
        // An empty one is a hint to the compiler alone.
        if !instruction.trim().is_empty() {
            faults.push(format!(
                "{}: asm(\"{}\")",
                location(device, line),
                shown(instruction)
            ));
        }
    }
    if faults.is_empty() {
        return Ok(());
    }
    Err(Failure::new(format!(
        "{}\ninline PTX in device code can not run on a CPU; put it behind #ifndef OXSHMEM_EMULATION, with C++ in its place",
        faults.join("\n")
    )))
}

fn shown(instruction: &str) -> String {
    let plain = instruction.replace("\\0A", " ").replace("\\09", " ");
    plain.chars().take(60).collect()
}

/// File and line of an instruction, by its debug location.
fn location(device: &str, line: &str) -> String {
    let node = |name: &str| {
        let begin = format!("{name} = ");
        device.lines().find_map(|line| line.strip_prefix(&begin))
    };
    let field = |text: &str, name: &str| {
        let at = text.find(&format!("{name}: "))? + name.len() + 2;
        let end = text[at..]
            .find([',', ')'])
            .map_or(text.len(), |end| at + end);
        Some(text[at..end].trim_matches('"').to_owned())
    };
    let find = || {
        let at = line.find("!dbg ")? + 5;
        let mark: String = line[at..]
            .chars()
            .take_while(|c| !",) ".contains(*c))
            .collect();
        let place = node(&mark)?;
        let row = field(place, "line")?;
        let mut scope = field(place, "scope")?;
        for _ in 0..32 {
            let text = node(&scope)?;
            if let Some(file) = field(text, "file") {
                return Some(format!("{}:{row}", field(node(&file)?, "filename")?));
            }
            scope = field(text, "scope")?;
        }
        None
    };
    find().unwrap_or_else(|| "in device code".to_owned())
}

/// Gives a static variable that is used before its definition the name that clang gives it there.
fn static_variables(device: &str) -> String {
    let names: HashSet<&str> = device
        .lines()
        .filter(|line| line.starts_with('@'))
        .filter_map(|line| text::name(line).map(|(name, _)| name))
        .collect();
    let mut renamed = HashMap::new();
    for name in &names {
        if let Some((plain, _)) = name.split_once("__static__")
            && names.contains(plain)
        {
            renamed.insert(plain, *name);
        }
    }
    if renamed.is_empty() {
        return device.to_owned();
    }
    let mut out = String::with_capacity(device.len());
    for line in device.lines() {
        if text::name(line).is_some_and(|(name, _)| renamed.contains_key(name)) {
            continue;
        }
        let mut rest = line;
        while let Some(at) = rest.find('@') {
            out.push_str(&rest[..at]);
            let Some((name, behind)) = text::name(&rest[at..]) else {
                out.push('@');
                rest = &rest[at + 1..];
                continue;
            };
            out.push_str(renamed.get(name).copied().unwrap_or(name));
            rest = behind;
        }
        out.push_str(rest);
        out.push('\n');
    }
    out
}

/// The definition of a `__shared__` variable as a thread-local one, which is emulated by the block.
/// Such a variable has an undefined initial value, or no size if the launch says it.
fn shared_variable(line: &str) -> Option<String> {
    let (name, rest) = text::name(line).filter(|_| line.starts_with('@'))?;
    let rest = rest.strip_prefix(" = ")?;
    let (before, behind) = rest.split_once("global ")?;
    if before.contains('"') || before.contains("extern_weak") {
        return None;
    }
    let (kind, tail) = text::leading_type(behind)?;
    let alignment = tail
        .split(',')
        .map(str::trim)
        .find(|word| word.starts_with("align "))
        .map_or(String::new(), |word| format!(", {word}"));
    let dynamic = before.contains("external") && kind.starts_with("[0 x ");
    let fixed = tail.trim_start().starts_with("undef");
    (dynamic || fixed)
        .then(|| format!("{name} = internal thread_local global {kind} zeroinitializer{alignment}"))
}

/// The address that an instruction reads which others may change meanwhile.
fn polled_word(line: &str) -> Option<&str> {
    if !line.starts_with(' ') {
        return None;
    }
    let line = line.trim_start();
    let body = match line.split_once(" = ") {
        Some((to, body)) if to.starts_with('%') => body,
        _ => line,
    };
    let reads = ["load volatile ", "load atomic ", "cmpxchg ", "atomicrmw "];
    if !reads.iter().any(|begin| body.starts_with(begin)) {
        return None;
    }
    let from = if body.starts_with("load") {
        body.find(", ptr ")? + 6
    } else {
        body.find(" ptr ")? + 5
    };
    let operand = &body[from..];
    let length = match text::name(operand) {
        Some((name, _)) => name.len(),
        None => {
            let open = operand.find('(')?;
            open + text::closing(&operand[open..])?
        }
    };
    Some(&operand[..length])
}

/// The call that tells the race detector of an atomic operation for which the compiler has no call.
fn untold_atomic(line: &str, word: &str) -> Option<String> {
    const TOLD: [&str; 7] = ["xchg", "add", "sub", "and", "or", "xor", "nand"];
    let (_, operation) = line.split_once("atomicrmw ")?;
    let operation = operation.strip_prefix("volatile ").unwrap_or(operation);
    if TOLD.contains(&operation.split(' ').next()?) {
        return None;
    }
    let behind = operation.split_once(word)?.1.strip_prefix(", ")?;
    let size = match behind.split(' ').next()? {
        "i8" => 1,
        "i16" | "half" | "bfloat" => 2,
        "i32" | "float" | "<2" => 4,
        _ => 8,
    };
    // As compilers number them.
    let orders = [
        ("monotonic", 0),
        ("acquire", 2),
        ("release", 3),
        ("acq_rel", 4),
        ("seq_cst", 5),
    ];
    let named = |(name, _): &&(&str, u32)| behind.contains(&format!(" {name}"));
    let order = orders.iter().find(named).map_or(5, |(_, number)| *number);
    let place = line
        .split_once("!dbg ")
        .and_then(|(_, place)| place.split([',', ' ']).next())
        .map_or(String::new(), |place| format!(", !dbg {place}"));
    Some(format!(
        "  call void @softcuda_atomic(ptr {word}, i32 {size}, i32 {order}){place}\n"
    ))
}

/// Appends a kernel's entry, which takes the addresses of the parameters, and the list of their sizes.
fn entry(out: &mut String, kernel: &Kernel, headers: &HashMap<&str, &str>) -> Result<(), Failure> {
    let name = &kernel.name;
    let Some(parameters) = headers.get(format!("@{name}").as_str()) else {
        return Err(Failure::new(format!(
            "kernel {name} has no body in the device half of its file"
        )));
    };
    let parameters = text::parts(parameters);
    if parameters.len() != kernel.pieces.len() {
        return Err(Failure::new(format!(
            "kernel {name} has other parameters in the device half of its file than in the host half"
        )));
    }
    let mut body = String::new();
    let mut arguments = Vec::new();
    for (number, (parameter, piece)) in parameters.iter().zip(&kernel.pieces).enumerate() {
        let _ = writeln!(
            body,
            "  %a{number} = getelementptr ptr, ptr %arguments, i64 {}\n  %p{number} = load ptr, ptr %a{number}",
            piece.parameter
        );
        let Some((kind, last)) = text::parameter(parameter) else {
            return Err(Failure::new(format!(
                "kernel {name}: parameter {parameter:?} is not understood"
            )));
        };
        let attributes = parameter[..parameter.len() - last.len()].trim_end();
        let value = if piece.in_memory {
            format!("%p{number}")
        } else {
            let _ = writeln!(
                body,
                "  %q{number} = getelementptr i8, ptr %p{number}, i64 {}",
                piece.offset
            );
            let _ = if kind == "i1" {
                writeln!(
                    body,
                    "  %b{number} = load i8, ptr %q{number}\n  %v{number} = trunc i8 %b{number} to i1"
                )
            } else {
                writeln!(body, "  %v{number} = load {kind}, ptr %q{number}, align 1")
            };
            format!("%v{number}")
        };
        arguments.push(format!("{attributes} {value}"));
    }
    let sizes: Vec<String> = std::iter::once(kernel.sizes.len() as u64)
        .chain(kernel.sizes.iter().copied())
        .map(|size| format!("i64 {size}"))
        .collect();
    let _ = writeln!(
        out,
        "\n@{name}__parameters = weak_odr constant [{} x i64] [{}]\n\n\
         define weak_odr void @{name}__packed(ptr %arguments) {{\n{body}  call void @{name}({})\n  ret void\n}}",
        sizes.len(),
        sizes.join(", "),
        arguments.join(", ")
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::stub;

    #[test]
    fn shared_variables_become_the_blocks_own() {
        assert_eq!(
            shared_variable(
                "@_ZZ1kE2sm = linkonce_odr global [32 x float] undef, comdat, align 16"
            )
            .as_deref(),
            Some(
                "@_ZZ1kE2sm = internal thread_local global [32 x float] zeroinitializer, align 16"
            )
        );
        assert_eq!(
            shared_variable("@dyn = external global [0 x float], align 4").as_deref(),
            Some("@dyn = internal thread_local global [0 x float] zeroinitializer, align 4")
        );
        for other in [
            "@counter = externally_initialized global i32 0, align 4",
            "@other = external global i32, align 4",
            "@threadIdx = extern_weak global %struct.oxshmem_threadIdx_t, align 1",
        ] {
            assert_eq!(shared_variable(other), None);
        }
    }

    #[test]
    fn each_read_of_a_word_that_others_change_is_polled() {
        for (line, word) in [
            ("  %1 = load volatile i32, ptr %v, align 4", Some("%v")),
            (
                "  %1 = load atomic i32, ptr @flag acquire, align 4",
                Some("@flag"),
            ),
            (
                "  %2 = cmpxchg weak ptr %at, i32 %a, i32 %b monotonic monotonic, align 4",
                Some("%at"),
            ),
            (
                "  %3 = atomicrmw fadd ptr getelementptr (i8, ptr @x, i64 4), float %v monotonic",
                Some("getelementptr (i8, ptr @x, i64 4)"),
            ),
            ("  %4 = load i32, ptr %v, align 4", None),
            ("  store volatile i32 0, ptr %v, align 4", None),
        ] {
            assert_eq!(polled_word(line), word, "{line}");
        }
    }

    #[test]
    fn the_race_detector_is_told_of_what_the_compiler_does_not_tell() {
        let line = "  %3 = atomicrmw fadd ptr %at, float %v monotonic, align 4, !dbg !12";
        let call = "  call void @softcuda_atomic(ptr %at, i32 4, i32 0), !dbg !12\n";
        assert_eq!(untold_atomic(line, "%at").as_deref(), Some(call));
        let line = "  %3 = atomicrmw volatile umax ptr %at, i64 %v acq_rel, align 8";
        let call = "  call void @softcuda_atomic(ptr %at, i32 8, i32 4)\n";
        assert_eq!(untold_atomic(line, "%at").as_deref(), Some(call));
        for told in [
            "  %3 = atomicrmw add ptr %at, i32 %v monotonic, align 4",
            "  %3 = load atomic i32, ptr %at acquire, align 4",
        ] {
            assert_eq!(untold_atomic(told, "%at"), None);
        }
        let text = passes("define void @f() {\n  ret void\n}\n", &[], true).unwrap();
        assert!(text.contains("@softcuda_checked"));
    }

    #[test]
    fn a_static_variable_has_one_name() {
        let text = "@_ZL2st = external global i32\n@_ZL2st__static__ab = global i32 0\n  load i32, ptr @_ZL2st, align 4\n";
        let changed = static_variables(text);
        assert!(
            !changed.contains("@_ZL2st,") && !changed.contains("@_ZL2st ="),
            "{changed}"
        );
    }

    #[test]
    fn assembly_is_refused_with_its_place() {
        let text = "  call void asm sideeffect \"st.release.sys.u32 [$0], $1;\", \"l,r\"(ptr %p, i32 %v), !dbg !7\n\
                    !7 = !DILocation(line: 12, column: 3, scope: !8)\n!8 = distinct !DISubprogram(name: \"k\", scope: !9, file: !9, line: 3)\n\
                    !9 = !DIFile(filename: \"a.cu\", directory: \"/x\")\n";
        let words = refuse_assembly(text).unwrap_err().to_string();
        assert!(words.starts_with("a.cu:12: asm(\"st.release"), "{words}");
        assert!(refuse_assembly("  call void asm sideeffect \"\", \"~{memory}\"()\n").is_ok());
    }

    #[test]
    fn parameters_are_put_together_from_their_pieces() {
        let host = "%struct.P = type { ptr, i32 }\n%struct.E = type { i8 }\n%struct.B = type { [5 x double] }\n\
@0 = private unnamed_addr constant [3 x i8] c\"_Zk\\00\", align 1\n\
\ndefine void @stub(ptr noundef %o, ptr %s.coerce0, i32 %s.coerce1, ptr noundef byval(%struct.B) align 8 %b, i1 noundef zeroext %f) #5 {\nentry:\n\
  %e = alloca %struct.E, align 1\n  %s = alloca %struct.P, align 8\n  %o.addr = alloca ptr, align 8\n  %f.addr = alloca i8, align 1\n\
  %3 = getelementptr inbounds { ptr, i32 }, ptr %s, i32 0, i32 0\n  store ptr %s.coerce0, ptr %3, align 8\n\
  %4 = getelementptr inbounds { ptr, i32 }, ptr %s, i32 0, i32 1\n  store i32 %s.coerce1, ptr %4, align 8\n\
  store ptr %o, ptr %o.addr, align 8\n  %storedv = zext i1 %f to i8\n  store i8 %storedv, ptr %f.addr, align 1\n\
  %kernel_args = alloca ptr, i64 5, align 16\n\
  %5 = getelementptr ptr, ptr %kernel_args, i32 0\n  store ptr %o.addr, ptr %5, align 8\n\
  %6 = getelementptr ptr, ptr %kernel_args, i32 1\n  store ptr %e, ptr %6, align 8\n\
  %7 = getelementptr ptr, ptr %kernel_args, i32 2\n  store ptr %s, ptr %7, align 8\n\
  %8 = getelementptr ptr, ptr %kernel_args, i32 3\n  store ptr %b, ptr %8, align 8\n\
  %9 = getelementptr ptr, ptr %kernel_args, i32 4\n  store ptr %f.addr, ptr %9, align 8\n\
  %19 = call i32 @__cudaPopCallConfiguration(ptr %grid_dim)\n  ret void\n}\n\
  %1 = call i32 @__cudaRegisterFunction(ptr %0, ptr @stub, ptr @0, ptr @0, i32 -1, ptr null)\n";
        let kernels = stub::kernels(host).unwrap();
        assert_eq!(kernels[0].name, "_Zk");
        assert_eq!(kernels[0].sizes, [8, 1, 16, 40, 1]);
        let places: Vec<(usize, u64, bool)> = kernels[0]
            .pieces
            .iter()
            .map(|p| (p.parameter, p.offset, p.in_memory))
            .collect();
        assert_eq!(
            places,
            [
                (0, 0, false),
                (2, 0, false),
                (2, 8, false),
                (3, 0, true),
                (4, 0, false)
            ]
        );
        let device = "define void @_Zk(ptr noundef %o, ptr %s.coerce0, i32 %s.coerce1, ptr noundef byval(%struct.B) align 8 %b, i1 noundef zeroext %f) #4 {\n  ret void\n}\n";
        let text = passes(device, &kernels, false).unwrap();
        assert!(text.contains("@_Zk__parameters = weak_odr constant [6 x i64] [i64 5, i64 8, i64 1, i64 16, i64 40, i64 1]"));
        assert!(text.contains("call void @_Zk(ptr noundef %v0, ptr %v1, i32 %v2, ptr noundef byval(%struct.B) align 8 %p3, i1 noundef zeroext %v4)"), "{text}");
    }
}
