//! Arithmetic on quantities with units.

mod ast;
mod error;
mod eval;
mod lexer;
mod parser;
pub mod units;

pub use error::Error;
pub use eval::Answer;

/// Evaluate one line, for example `5 ft + 10 inch in cm`.
pub fn evaluate(line: &str) -> Result<Answer, Error> {
    eval::answer(&parser::parse(line)?)
}
