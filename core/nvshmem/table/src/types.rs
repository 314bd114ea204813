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
    /// Its number of bytes.
    pub bytes: usize,
}

impl Type {
    /// Whether it is one of the two types of 16-bit floating-point numbers, for which C has no name.
    #[must_use]
    pub fn is_half(self) -> bool {
        self.rust.starts_with("half::")
    }

    /// Whether it is an integer.
    #[must_use]
    pub fn is_integer(self) -> bool {
        !self.is_half() && !self.rust.starts_with('f')
    }

    /// The integer of CUDA C++ that kernels compute with in its place, so that types of one size and sign share their code.
    #[must_use]
    pub fn canonical(self) -> &'static str {
        match self.rust {
            "i8" => "signed char",
            "u8" => "unsigned char",
            "i16" => "short",
            "u16" => "unsigned short",
            "i32" => "int",
            "u32" => "unsigned int",
            "i64" | "isize" => "long long",
            "u64" | "usize" => "unsigned long long",
            _ => self.c,
        }
    }

    /// The unsigned integer of CUDA C++ of its size.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self.bytes {
            1 => "unsigned char",
            2 => "unsigned short",
            4 => "unsigned int",
            _ => "unsigned long long",
        }
    }
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
    /// Elements of 16 bits, by a name of NVSHMEM 3.5.1 that lacks a digit.
    Misspelt,
    /// Types of puts, gets and collectives that copy.
    Rma,
    /// Types of sums, products, minima and maxima.
    Reduce,
    /// Types of bitwise reductions.
    ReduceBits,
    /// Types of atomics that compute or compare.
    Standard,
    /// Types of atomic fetch, set and swap.
    Extended,
    /// Types of bitwise atomics.
    Bitwise,
    /// Types of atomic additions of floating-point numbers.
    FloatAdd,
    /// Types of waits and tests.
    Wait,
}

/// All types that have a name.
pub const ALL: &[Type] = &[
    of_type("float", "float", "f32", 4),
    of_type("double", "double", "f64", 8),
    of_type("half", "half", "half::f16", 2),
    of_type("bfloat16", "__nv_bfloat16", "half::bf16", 2),
    of_type("char", "char", "i8", 1),
    of_type("schar", "signed char", "i8", 1),
    of_type("short", "short", "i16", 2),
    of_type("int", "int", "i32", 4),
    of_type("long", "long", "i64", 8),
    of_type("longlong", "long long", "i64", 8),
    of_type("uchar", "unsigned char", "u8", 1),
    of_type("ushort", "unsigned short", "u16", 2),
    of_type("uint", "unsigned int", "u32", 4),
    of_type("ulong", "unsigned long", "u64", 8),
    of_type("ulonglong", "unsigned long long", "u64", 8),
    of_type("int8", "int8_t", "i8", 1),
    of_type("int16", "int16_t", "i16", 2),
    of_type("int32", "int32_t", "i32", 4),
    of_type("int64", "int64_t", "i64", 8),
    of_type("uint8", "uint8_t", "u8", 1),
    of_type("uint16", "uint16_t", "u16", 2),
    of_type("uint32", "uint32_t", "u32", 4),
    of_type("uint64", "uint64_t", "u64", 8),
    of_type("size", "size_t", "u64", 8),
    of_type("ptrdiff", "ptrdiff_t", "i64", 8),
];

const SIZES: &[Type] = &[
    of_type("8", "void", "u8", 1),
    of_type("16", "void", "u16", 2),
    of_type("32", "void", "u32", 4),
    of_type("64", "void", "u64", 8),
    of_type("128", "void", "[u64; 2]", 16),
];

const fn of_type(name: &'static str, c: &'static str, rust: &'static str, bytes: usize) -> Type {
    Type {
        name,
        c,
        rust,
        bytes,
    }
}

/// The types of a set. `None` in it is a function without a type.
#[must_use]
pub fn of(set: Set) -> Vec<Option<Type>> {
    match set {
        Set::None => vec![None],
        Set::Mem => vec![Some(of_type("mem", "void", "u8", 1))],
        Set::Sizes => SIZES.iter().copied().map(Some).collect(),
        Set::Misspelt => vec![Some(of_type("6", "void", "u16", 2))],
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
    const STANDARD: &[&str] = &["int", "long", "longlong", "size", "ptrdiff"];
    const SHORT: &[&str] = &["short", "ushort"];
    const REDUCE_BITS: &[&str] = &[
        "uchar", "ushort", "int8", "int16", "uint8", "uint16", "size",
    ];
    const FLOATS: &[&str] = &["float", "double", "half"];
    match set {
        Set::None | Set::Mem | Set::Sizes | Set::Misspelt => false,
        Set::Rma => true,
        Set::Reduce => name != "ptrdiff",
        Set::ReduceBits => BITS.contains(&name) || REDUCE_BITS.contains(&name),
        Set::Standard => STANDARD.contains(&name) || BITS.contains(&name),
        Set::Extended => has(Set::Standard, name) || FLOATS.contains(&name),
        Set::Bitwise => BITS.contains(&name),
        Set::FloatAdd => FLOATS.contains(&name),
        Set::Wait => has(Set::Standard, name) || SHORT.contains(&name),
    }
}
