use std::fmt;

#[derive(Debug, Clone, PartialEq)]
pub enum Error {
    /// The text cannot be read; the offset is in bytes.
    Syntax { at: usize, expected: &'static str },
    UnknownUnit(String),
    /// Two dimensions, as text, that should have been the same.
    Mismatch(String, String),
    /// An exponent that is not a plain whole number.
    BadExponent,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Syntax { at, expected } => write!(f, "expected {expected} at offset {at}"),
            Error::UnknownUnit(name) => write!(f, "unknown unit `{name}`"),
            Error::Mismatch(left, right) => write!(f, "{left} does not fit {right}"),
            Error::BadExponent => write!(f, "an exponent must be a plain whole number"),
        }
    }
}

impl std::error::Error for Error {}
