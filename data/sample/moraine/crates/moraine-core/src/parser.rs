//! Recursive descent: sum, then quotient, then adjacency, then sign and power.

use crate::ast::{Expr, Line, Op};
use crate::error::Error;
use crate::lexer::{lex, Token};

pub fn parse(line: &str) -> Result<Line, Error> {
    let mut parser = Parser { tokens: lex(line)?, next: 0, end: line.len() };
    let value = parser.sum()?;
    let target = match parser.peek() {
        Some(Token::Word(word)) if word == "in" => {
            parser.next += 1;
            let spelling = line[parser.offset()..].trim_end().to_string();
            Some((parser.sum()?, spelling))
        }
        _ => None,
    };
    let left_over = parser.peek().map(|_| parser.expected("the end of the line"));
    left_over.map_or(Ok(Line { value, target }), Err)
}

struct Parser {
    tokens: Vec<(usize, Token)>,
    next: usize,
    end: usize,
}

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.next).map(|(_, token)| token)
    }

    fn offset(&self) -> usize {
        self.tokens.get(self.next).map_or(self.end, |(at, _)| *at)
    }

    fn expected(&self, expected: &'static str) -> Error {
        Error::Syntax { at: self.offset(), expected }
    }

    fn symbol(&mut self, choices: &str) -> Option<char> {
        match self.peek() {
            Some(&Token::Symbol(symbol)) if choices.contains(symbol) => {
                self.next += 1;
                Some(symbol)
            }
            _ => None,
        }
    }

    fn sum(&mut self) -> Result<Expr, Error> {
        let mut left = self.product()?;
        while let Some(symbol) = self.symbol("+-") {
            let op = if symbol == '+' { Op::Add } else { Op::Sub };
            left = Expr::binary(op, left, self.product()?);
        }
        Ok(left)
    }

    fn product(&mut self) -> Result<Expr, Error> {
        let mut left = self.adjacent()?;
        while let Some(symbol) = self.symbol("*/") {
            let op = if symbol == '*' { Op::Mul } else { Op::Div };
            left = Expr::binary(op, left, self.adjacent()?);
        }
        Ok(left)
    }

    fn adjacent(&mut self) -> Result<Expr, Error> {
        let mut left = self.signed()?;
        while self.starts_factor() {
            left = Expr::binary(Op::Mul, left, self.power()?);
        }
        Ok(left)
    }

    fn starts_factor(&self) -> bool {
        matches!(self.peek(), Some(Token::Word(word)) if word != "in")
            || self.peek() == Some(&Token::Symbol('('))
    }

    fn signed(&mut self) -> Result<Expr, Error> {
        match self.symbol("-") {
            Some(_) => Ok(Expr::Neg(Box::new(self.signed()?))),
            None => self.power(),
        }
    }

    fn power(&mut self) -> Result<Expr, Error> {
        let base = self.atom()?;
        match self.symbol("^") {
            Some(_) => Ok(Expr::binary(Op::Pow, base, self.signed()?)),
            None => Ok(base),
        }
    }

    fn atom(&mut self) -> Result<Expr, Error> {
        let atom = match self.peek() {
            Some(Token::Number(number)) => Expr::Number(*number),
            Some(Token::Word(word)) if word != "in" => Expr::Unit(word.clone()),
            Some(Token::Symbol('(')) => {
                self.next += 1;
                let inner = self.sum()?;
                return self.symbol(")").map(|_| inner).ok_or_else(|| self.expected("`)`"));
            }
            _ => return Err(self.expected("a number or a unit")),
        };
        self.next += 1;
        Ok(atom)
    }
}
