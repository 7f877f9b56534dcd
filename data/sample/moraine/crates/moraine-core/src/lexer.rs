use crate::error::Error;

#[derive(Debug, Clone, PartialEq)]
pub enum Token {
    Number(f64),
    Word(String),
    /// One of `+ - * / ^ ( )`.
    Symbol(char),
}

/// Split a line into tokens, each with the byte offset where it starts.
pub fn lex(line: &str) -> Result<Vec<(usize, Token)>, Error> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = line[at..].chars().next() {
        let start = at;
        let rest = &line[start..];
        if first.is_whitespace() {
            at += first.len_utf8();
        } else if first.is_ascii_digit() || first == '.' {
            let digits = span(rest, |c| c.is_ascii_digit() || c == '.');
            let number = digits.parse().map_err(|_| Error::Syntax { at, expected: "a number" })?;
            at += digits.len();
            tokens.push((start, Token::Number(number)));
        } else if first.is_alphabetic() {
            let word = span(rest, char::is_alphabetic);
            at += word.len();
            tokens.push((start, Token::Word(word.to_string())));
        } else if "+-*/^()".contains(first) {
            at += 1;
            tokens.push((start, Token::Symbol(first)));
        } else {
            return Err(Error::Syntax { at, expected: "a number, a unit or an operator" });
        }
    }
    Ok(tokens)
}

fn span(text: &str, keep: impl Fn(char) -> bool) -> &str {
    let end = text.find(|c| !keep(c)).unwrap_or(text.len());
    &text[..end]
}
