use super::dimension::Dimension;
use super::quantity::Quantity;
use crate::error::Error;
use crate::{eval, parser};

const BASE: [(&str, [i32; 3]); 3] = [("m", [1, 0, 0]), ("kg", [0, 1, 0]), ("s", [0, 0, 1])];

/// Units in terms of others; a definition uses only rows above it.
const DERIVED: &[(&str, &str)] = &[
    ("cm", "m / 100"),
    ("km", "1000 m"),
    ("inch", "2.54 cm"),
    ("ft", "12 inch"),
    ("mile", "5280 ft"),
    ("min", "60 s"),
    ("h", "60 min"),
    ("mph", "mile / h"),
    ("g", "kg / 1000"),
    ("lb", "0.45359237 kg"),
    ("l", "1000 cm^3"),
    ("N", "kg m / s^2"),
    ("J", "N m"),
    ("W", "J / s"),
];

/// Find a unit by name, evaluating its definition if it has one.
pub fn lookup(name: &str) -> Result<Quantity, Error> {
    if let Some((_, powers)) = BASE.iter().find(|(base, _)| *base == name) {
        return Ok(Quantity { scale: 1.0, dimension: Dimension(*powers) });
    }
    match DERIVED.iter().find(|(derived, _)| *derived == name) {
        Some((_, definition)) => eval::quantity(&parser::parse(definition)?.value),
        None => Err(Error::UnknownUnit(name.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_definition_evaluates() {
        for (name, _) in DERIVED {
            assert!(lookup(name).is_ok(), "{name}");
        }
    }
}
