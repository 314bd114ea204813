//! The types of elements, and the sets of them that families of functions take.

/// A type of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Type {
    /// Its part of functions' names.
    pub name: &'static str,
    /// Its name in C.
    pub c: &'static str,
    /// Its name in the Rust code that implements the functions.
    pub rust: &'static str,
}

/// The types that a family has functions of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Set {
    /// No type: there is one function.
    None,
    /// Bytes without a type.
    Mem,
    /// Elements of 8 to 128 bits without a type.
    Sizes,
    /// Elements of 32 and 64 bits without a type.
    OldSizes,
    /// Types of puts, gets and the collectives of teams that copy or compare.
    Rma,
    /// Types of waits, and of atomics that compute or compare.
    Standard,
    /// Types of atomic fetch, set and swap.
    Extended,
    /// Types of bitwise atomics.
    Bitwise,
    /// Types of fetch, set and swap in OpenSHMEM 1.3.
    OldExtended,
    /// Types of the other atomics of OpenSHMEM 1.3.
    OldStandard,
    /// Types of waits and tests beside the standard ones.
    OldWaits,
    /// Types of `shmem_T_wait`.
    OldWait,
    /// Types of bitwise reductions.
    ReduceBits,
    /// Types of sums, products and scans.
    ReduceSum,
    /// Types of bitwise reductions over active sets; other libraries have these over teams, too.
    OldReduceBits,
    /// Types of maxima and minima over active sets.
    OldReduceOrder,
    /// Types of sums and products over active sets.
    OldReduceSum,
}

/// All types that have a name, each C type's own name before those that stand for it as well.
pub const ALL: &[Type] = &[
    of_type("float", "float", "f32"),
    of_type("double", "double", "f64"),
    of_type("longdouble", "long double", "LongDouble"),
    of_type("char", "char", "i8"),
    of_type("schar", "signed char", "i8"),
    of_type("short", "short", "i16"),
    of_type("int", "int", "i32"),
    of_type("long", "long", "i64"),
    of_type("longlong", "long long", "i64"),
    of_type("uchar", "unsigned char", "u8"),
    of_type("ushort", "unsigned short", "u16"),
    of_type("uint", "unsigned int", "u32"),
    of_type("ulong", "unsigned long", "u64"),
    of_type("ulonglong", "unsigned long long", "u64"),
    of_type("int8", "int8_t", "i8"),
    of_type("int16", "int16_t", "i16"),
    of_type("int32", "int32_t", "i32"),
    of_type("int64", "int64_t", "i64"),
    of_type("uint8", "uint8_t", "u8"),
    of_type("uint16", "uint16_t", "u16"),
    of_type("uint32", "uint32_t", "u32"),
    of_type("uint64", "uint64_t", "u64"),
    of_type("size", "size_t", "usize"),
    of_type("ptrdiff", "ptrdiff_t", "isize"),
    of_type("complexd", "oxshmem_complexd", "Complex<f64>"),
    of_type("complexf", "oxshmem_complexf", "Complex<f32>"),
];

const fn of_type(name: &'static str, c: &'static str, rust: &'static str) -> Type {
    Type { name, c, rust }
}

const SIZES: &[Type] = &[
    of_type("8", "void", "u8"),
    of_type("16", "void", "u16"),
    of_type("32", "void", "u32"),
    of_type("64", "void", "u64"),
    of_type("128", "void", "[u64; 2]"),
];

/// The types of a set. `None` in it is a function without a type.
#[must_use]
pub fn of(set: Set) -> Vec<Option<Type>> {
    let sized = |names: &[&str]| {
        let chosen = SIZES.iter().filter(|of| names.contains(&of.name));
        chosen.copied().map(Some).collect()
    };
    match set {
        Set::None => vec![None],
        Set::Mem => vec![Some(of_type("mem", "void", "u8"))],
        Set::Sizes => sized(&["8", "16", "32", "64", "128"]),
        Set::OldSizes => sized(&["32", "64"]),
        _ => {
            let chosen = ALL.iter().filter(|of| has(set, of.name));
            chosen.copied().map(Some).collect()
        }
    }
}

fn has(set: Set, name: &str) -> bool {
    const BITS: &[&str] = &[
        "uint",
        "ulong",
        "ulonglong",
        "int32",
        "int64",
        "uint32",
        "uint64",
    ];
    let complex = name.starts_with("complex");
    let floats = ["float", "double", "longdouble"].contains(&name);
    let narrow = ["char", "schar", "short", "uchar", "ushort"].contains(&name);
    let narrow = narrow || (name.ends_with("t8") || name.ends_with("t16"));
    match set {
        Set::None | Set::Mem | Set::Sizes | Set::OldSizes => false,
        Set::Rma => !complex,
        Set::Standard => !complex && !floats && !narrow,
        Set::Extended => !complex && !narrow && name != "longdouble",
        Set::Bitwise => BITS.contains(&name),
        Set::OldExtended => ["float", "double", "int", "long", "longlong"].contains(&name),
        Set::OldStandard => ["int", "long", "longlong"].contains(&name),
        Set::OldWaits => ["short", "ushort"].contains(&name),
        Set::OldWait | Set::OldReduceBits => ["short", "int", "long", "longlong"].contains(&name),
        Set::ReduceBits => {
            let unsigned = name.starts_with('u') || name == "size";
            unsigned || ["int8", "int16", "int32", "int64"].contains(&name)
        }
        Set::ReduceSum => true,
        Set::OldReduceOrder => has(Set::OldReduceBits, name) || floats,
        Set::OldReduceSum => has(Set::OldReduceOrder, name) || complex,
    }
}

/// The C type that a name stands for on 64-bit Linux, where that is another name's too.
#[must_use]
pub fn distinct(c: &str) -> &str {
    match c {
        "int8_t" => "signed char",
        "int16_t" => "short",
        "int32_t" => "int",
        "int64_t" | "ptrdiff_t" => "long",
        "uint8_t" => "unsigned char",
        "uint16_t" => "unsigned short",
        "uint32_t" => "unsigned int",
        "uint64_t" | "size_t" => "unsigned long",
        other => other,
    }
}
