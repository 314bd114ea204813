//! Results for people: numbers with their units and bounds, and pictures as SVG. The command, the
//! examples and the benchmarks use it.

mod bars;
mod bound;
mod curves;
mod error;
mod file;
mod heat;
mod style;
pub mod units;

pub use self::bars::bars;
pub use self::bound::Bound;
pub use self::curves::{Curve, Panel, Values, panels};
pub use self::error::Error;
pub use self::file::{check_writable, write};
pub use self::heat::{Heat, heat};
pub use self::style::Words;
