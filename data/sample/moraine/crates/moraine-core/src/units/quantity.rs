use super::dimension::Dimension;
use crate::error::Error;

/// A number of base units of some dimension.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quantity {
    pub scale: f64,
    pub dimension: Dimension,
}

impl Quantity {
    pub fn plain(scale: f64) -> Quantity {
        Quantity { scale, dimension: Dimension::default() }
    }

    pub fn require_same(&self, other: &Quantity) -> Result<(), Error> {
        if self.dimension == other.dimension {
            return Ok(());
        }
        Err(Error::Mismatch(self.dimension.to_string(), other.dimension.to_string()))
    }

    pub fn add(&self, other: &Quantity) -> Result<Quantity, Error> {
        self.require_same(other)?;
        Ok(Quantity { scale: self.scale + other.scale, ..*self })
    }

    /// This quantity times another one raised to a power.
    pub fn multiply(&self, other: &Quantity, power: i32) -> Quantity {
        Quantity {
            scale: self.scale * other.scale.powi(power),
            dimension: self.dimension.combine(other.dimension, power),
        }
    }

    pub fn power(&self, power: i32) -> Quantity {
        Quantity::plain(1.0).multiply(self, power)
    }

    /// The value as a small whole number without a dimension.
    pub fn whole(&self) -> Option<i32> {
        let small = self.scale.fract() == 0.0 && self.scale.abs() <= 64.0;
        (small && self.dimension == Dimension::default()).then_some(self.scale as i32)
    }
}
