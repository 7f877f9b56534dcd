//! Dimensions, quantities and the table of named units.

mod dimension;
mod quantity;
mod table;

pub use dimension::Dimension;
pub use quantity::Quantity;
pub use table::lookup;
