//! Symmetric statics (M2): variables of the program that exist on every PE.
//!
//! The [`symmetric!`](crate::symmetric) macro declares a template; each world copies all templates
//! into its heap when it is made, so that several worlds of one process have their own.

use bytemuck::Pod;
use linkme::distributed_slice;

use crate::context::Context;
use crate::error::{Error, Result};
use crate::place::placed;
use crate::sym::Sym;
use oxshmem_collectives::signature::CallSignature;

/// Every template of the program.
#[doc(hidden)]
#[distributed_slice]
pub static TEMPLATES: [Template];

/// One symmetric static's type and initial bytes.
#[doc(hidden)]
pub struct Template {
    name: &'static str,
    align: usize,
    initial: &'static (dyn Bytes + Sync),
}

impl std::fmt::Debug for Template {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Template")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// The bytes of an initial value.
#[doc(hidden)]
pub trait Bytes {
    fn bytes(&self) -> &[u8];
}

/// A `T` seen as bytes.
#[doc(hidden)]
#[repr(transparent)]
#[derive(Debug)]
pub struct Initial<T>(pub T);

impl<T: Pod> Bytes for Initial<T> {
    fn bytes(&self) -> &[u8] {
        bytemuck::bytes_of(&self.0)
    }
}

impl Template {
    #[doc(hidden)]
    pub const fn new<T: Pod + Sync>(name: &'static str, initial: &'static Initial<T>) -> Self {
        Template {
            name,
            align: align_of::<T>(),
            initial,
        }
    }
}

/// A symmetric static, declared by [`symmetric!`](crate::symmetric).
#[derive(Debug)]
pub struct Static<T> {
    template: &'static Template,
    marker: std::marker::PhantomData<fn() -> T>,
}

impl<T: Pod> Static<T> {
    #[doc(hidden)]
    pub const fn new(template: &'static Template) -> Self {
        Static {
            template,
            marker: std::marker::PhantomData,
        }
    }

    /// The object in `world`: one element.
    ///
    /// # Errors
    ///
    /// The code that declares the static was loaded after the world was made (a plug-in): only the main program's statics are
    /// symmetric (M2).
    #[track_caller]
    pub fn get(&self, world: &Context<'_>) -> Result<Sym<T>> {
        placed(|| self.get_inner(world))
    }

    fn get_inner(&self, world: &Context<'_>) -> Result<Sym<T>> {
        let address = std::ptr::from_ref(self.template).addr();
        let first = TEMPLATES.as_ptr().addr();
        let object = address
            .checked_sub(first)
            .and_then(|distance| world.pe.statics.get(distance / size_of::<Template>()));
        match object {
            Some(object) => object.cast(),
            None => Err(Error::Argument {
                call: "Static::get",
                what: format!(
                    "{} is not a static of the main program; allocate it instead",
                    self.template.name
                ),
            }),
        }
    }
}

/// Declares symmetric statics: one object on every PE, with the same initial value.
///
/// ```
/// use oxshmem::{Result, testing::spmd};
///
/// oxshmem::symmetric! {
///     /// Number of greetings received.
///     static GREETINGS: u64 = 0;
///     static LIMITS: [u32; 2] = [1, 100];
/// }
///
/// fn main() -> Result<()> {
///     spmd(3, |world| {
///         let greetings = GREETINGS.get(world)?;
///         world.inc(greetings, 0)?;
///         world.barrier_all()?;
///         assert_eq!(world.g(greetings, 0)?, 3);
///         assert_eq!(world.g(LIMITS.get(world)?, 2)?, [1, 100]);
///         Ok(())
///     })?;
///     Ok(())
/// }
/// ```
#[macro_export]
macro_rules! symmetric {
    ($($(#[$attr:meta])* $vis:vis static $name:ident: $t:ty = $initial:expr;)*) => {$(
        $(#[$attr])*
        $vis static $name: $crate::Static<$t> = {
            static INITIAL: $crate::__private::Initial<$t> = $crate::__private::Initial($initial);
            #[$crate::__private::linkme::distributed_slice($crate::__private::TEMPLATES)]
            #[linkme(crate = $crate::__private::linkme)]
            static TEMPLATE: $crate::__private::Template =
                $crate::__private::Template::new(
                    concat!(module_path!(), "::", stringify!($name)),
                    &INITIAL,
                );
            $crate::Static::new(&TEMPLATE)
        };
    )*};
}

/// A digest of the statics and their order, for the comparison of PEs.
pub(crate) fn digest() -> u64 {
    TEMPLATES
        .iter()
        .fold(CallSignature::of("statics"), |digest, t| {
            digest
                .and(CallSignature::of(t.name).value())
                .and(t.initial.bytes().len() as u64)
                .and(t.align as u64)
        })
        .value()
}

/// The layout of all statics: their bytes, their alignment, and each one's offset.
pub(crate) fn layout() -> (usize, usize, Vec<usize>) {
    let align = TEMPLATES.iter().map(|t| t.align).max().unwrap_or(1);
    let mut end = 0_usize;
    let offsets = TEMPLATES
        .iter()
        .map(|t| {
            let offset = end.next_multiple_of(t.align);
            end = offset + t.initial.bytes().len();
            offset
        })
        .collect();
    (end, align, offsets)
}

/// Each static's initial bytes, in order.
pub(crate) fn initial() -> impl Iterator<Item = &'static [u8]> {
    TEMPLATES.iter().map(|t| t.initial.bytes())
}
