use std::io::{self, BufRead};
use std::process::ExitCode;

use moraine_core::evaluate;

fn show(line: &str) -> bool {
    let result = evaluate(line);
    match &result {
        Ok(answer) => println!("{answer}"),
        Err(error) => eprintln!("moraine: {error}"),
    }
    result.is_ok()
}

/// Evaluate the arguments as one line, or else every line of standard input.
fn main() -> ExitCode {
    let line = std::env::args().skip(1).collect::<Vec<_>>().join(" ");
    let fine = if line.is_empty() {
        io::stdin().lock().lines().map_while(Result::ok).filter(|line| !show(line)).count() == 0
    } else {
        show(&line)
    };
    if fine { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
