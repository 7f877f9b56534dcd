use std::fmt;

use crate::ast::{Expr, Line, Op};
use crate::error::Error;
use crate::units::{lookup, Quantity};

/// A number and the text of the unit it is counted in.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    pub number: f64,
    pub unit: String,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rounded = (self.number * 1e6).round() / 1e6;
        write!(f, "{} {}", rounded, self.unit)
    }
}

pub fn answer(line: &Line) -> Result<Answer, Error> {
    let value = quantity(&line.value)?;
    match &line.target {
        None => Ok(Answer { number: value.scale, unit: value.dimension.to_string() }),
        Some((unit, spelling)) => {
            let unit = quantity(unit)?;
            value.require_same(&unit)?;
            Ok(Answer { number: value.scale / unit.scale, unit: spelling.clone() })
        }
    }
}

/// The value of an expression in base units.
pub fn quantity(expr: &Expr) -> Result<Quantity, Error> {
    Ok(match expr {
        Expr::Number(number) => Quantity::plain(*number),
        Expr::Unit(name) => lookup(name)?,
        Expr::Neg(inner) => {
            let inner = quantity(inner)?;
            Quantity { scale: -inner.scale, ..inner }
        }
        Expr::Binary(op, left, right) => {
            let (left, right) = (quantity(left)?, quantity(right)?);
            match op {
                Op::Add => left.add(&right)?,
                Op::Sub => left.add(&Quantity { scale: -right.scale, ..right })?,
                Op::Mul => left.multiply(&right, 1),
                Op::Div => left.multiply(&right, -1),
                Op::Pow => left.power(right.whole().ok_or(Error::BadExponent)?),
            }
        }
    })
}
