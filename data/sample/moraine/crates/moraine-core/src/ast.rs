//! What the parser builds and the evaluator walks.

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Op {
    Add,
    Sub,
    Mul,
    Div,
    Pow,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Expr {
    Number(f64),
    Unit(String),
    Neg(Box<Expr>),
    Binary(Op, Box<Expr>, Box<Expr>),
}

/// A whole line: a value and, after `in`, the unit wanted with its spelling.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    pub value: Expr,
    pub target: Option<(Expr, String)>,
}

impl Expr {
    pub fn binary(op: Op, left: Expr, right: Expr) -> Expr {
        Expr::Binary(op, Box::new(left), Box::new(right))
    }
}
