use std::fmt;

const SYMBOLS: [&str; 3] = ["m", "kg", "s"];

/// Powers of length, mass and time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Dimension(pub [i32; 3]);

impl Dimension {
    /// This dimension times another one raised to a power.
    pub fn combine(self, other: Dimension, power: i32) -> Dimension {
        Dimension(std::array::from_fn(|i| self.0[i] + power * other.0[i]))
    }
}

impl fmt::Display for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = SYMBOLS
            .iter()
            .zip(self.0)
            .filter(|(_, power)| *power != 0)
            .map(|(symbol, power)| match power {
                1 => symbol.to_string(),
                _ => format!("{symbol}^{power}"),
            })
            .collect();
        f.write_str(if parts.is_empty() { "(plain)" } else { "" })?;
        f.write_str(&parts.join(" "))
    }
}
