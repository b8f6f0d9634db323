//! Reading claims: words, then terms by recursive descent.

use std::ops::Range;

use super::expression::ExpressionError;
use super::term::{Form, Term};

/// Reads a whole expression.
pub(super) fn parse(text: &str) -> Result<Term, ExpressionError> {
    let words = split(text)?;
    if let Some((_, span)) = words.get(MOST_WORDS) {
        let message = format!("an expression has at most {MOST_WORDS} words");
        return Err(ExpressionError { message, span: span.clone() });
    }
    let mut parser = Parser { words, next: 0, end: text.len() };
    let root = parser.any_of()?;
    match parser.peek() {
        None => Ok(root),
        Some(_) => Err(parser.expected("an operator or the end")),
    }
}

/// Words, numbers and signs that an expression may have: a chain of operators is as deep as it is long.
const MOST_WORDS: usize = 2000;

#[derive(Clone, Debug, PartialEq)]
enum Word {
    Number(f64),
    Text(String),
    Name(String),
    Symbol(&'static str),
}

/// Longer symbols first.
const SYMBOLS: [&str; 13] = ["<=", ">=", "==", "!=", "<", ">", "+", "-", "*", "/", "(", ")", ","];

fn split(text: &str) -> Result<Vec<(Word, Range<usize>)>, ExpressionError> {
    let mut words = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let fail = |message: String, length: usize| {
            Err(ExpressionError { message, span: at..(at + length).min(text.len()) })
        };
        let length = |inside: &dyn Fn(char) -> bool| rest.find(|c| !inside(c)).unwrap_or(rest.len());
        let (word, taken) = if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        } else if first.is_ascii_digit() || first == '.' {
            let taken = number_length(rest);
            match rest[..taken].parse::<f64>() {
                Ok(number) if number.is_infinite() => {
                    return fail(format!("`{}` is too large", &rest[..taken]), taken);
                }
                Ok(number) => (Word::Number(number), taken),
                Err(_) => return fail(format!("`{}` is not a number", &rest[..taken]), taken),
            }
        } else if first == '"' || first == '\'' {
            match rest[1..].find(first) {
                Some(end) => (Word::Text(rest[1..=end].to_owned()), end + 2),
                None => return fail(format!("a closing {first} is missing"), rest.len()),
            }
        } else if first.is_alphabetic() || first == '_' {
            let taken = length(&|c: char| c.is_alphanumeric() || c == '_' || c == '.');
            let name = &rest[..taken];
            match ["and", "or", "not"].into_iter().find(|word| *word == name) {
                Some(word) => (Word::Symbol(word), taken),
                None => (Word::Name(name.to_owned()), taken),
            }
        } else if let Some(symbol) = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) {
            (Word::Symbol(symbol), symbol.len())
        } else {
            return fail(format!("`{first}` means nothing here"), first.len_utf8());
        };
        words.push((word, at..at + taken));
        at += taken;
    }
    Ok(words)
}

/// Length of the decimal number at the start of the text, with an exponent if there is a whole one.
fn number_length(text: &str) -> usize {
    let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let mantissa = digits(text);
    let rest = &text[mantissa..];
    if !rest.starts_with(['e', 'E']) {
        return mantissa;
    }
    let sign = usize::from(rest[1..].starts_with(['+', '-']));
    match digits(&rest[1 + sign..]) {
        0 => mantissa,
        exponent => mantissa + 1 + sign + exponent,
    }
}

struct Parser {
    words: Vec<(Word, Range<usize>)>,
    next: usize,
    end: usize,
}

/// How deep brackets may nest; beyond this the text is no claim but an attack on the stack.
const DEEPEST: usize = 100;

impl Parser {
    fn peek(&self) -> Option<&Word> {
        self.words.get(self.next).map(|(word, _)| word)
    }

    fn span(&self) -> Range<usize> {
        self.words.get(self.next).map_or(self.end..self.end, |(_, span)| span.clone())
    }

    fn expected(&self, what: &str) -> ExpressionError {
        let found = match self.peek() {
            None => "the end".to_owned(),
            Some(Word::Number(number)) => format!("`{number}`"),
            Some(Word::Text(text)) => format!("\"{text}\""),
            Some(Word::Name(name)) => format!("`{name}`"),
            Some(Word::Symbol(symbol)) => format!("`{symbol}`"),
        };
        ExpressionError { message: format!("expected {what}, found {found}"), span: self.span() }
    }

    fn take(&mut self, symbols: &[&'static str]) -> Option<&'static str> {
        match self.peek() {
            Some(Word::Symbol(symbol)) if symbols.contains(symbol) => {
                let symbol = *symbol;
                self.next += 1;
                Some(symbol)
            }
            _ => None,
        }
    }

    /// A chain of left-associative operators over what `operand` reads.
    fn chain(
        &mut self,
        symbols: &[&'static str],
        operand: fn(&mut Self) -> Result<Term, ExpressionError>,
    ) -> Result<Term, ExpressionError> {
        let mut left = operand(self)?;
        while let Some(symbol) = self.take(symbols) {
            let right = operand(self)?;
            let span = left.span.start..right.span.end;
            left = Term { span, form: Form::Binary(symbol, Box::new(left), Box::new(right)) };
        }
        Ok(left)
    }

    fn any_of(&mut self) -> Result<Term, ExpressionError> {
        self.chain(&["or"], |parser| parser.chain(&["and"], Self::negated))
    }

    fn negated(&mut self) -> Result<Term, ExpressionError> {
        let start = self.span().start;
        let count = std::iter::from_fn(|| self.take(&["not"])).count();
        let term = self.comparison()?;
        if count % 2 == 0 {
            return Ok(term);
        }
        Ok(Term { span: start..term.span.end, form: Form::Not(Box::new(term)) })
    }

    fn comparison(&mut self) -> Result<Term, ExpressionError> {
        let first = self.sum()?;
        let mut rest = Vec::new();
        while let Some(symbol) = self.take(&["<=", ">=", "==", "!=", "<", ">"]) {
            rest.push((symbol, self.sum()?));
        }
        match rest.last() {
            None => Ok(first),
            Some((_, last)) => {
                let span = first.span.start..last.span.end;
                Ok(Term { span, form: Form::Compare(Box::new(first), rest) })
            }
        }
    }

    fn sum(&mut self) -> Result<Term, ExpressionError> {
        self.chain(&["+", "-"], |parser| parser.chain(&["*", "/"], Self::signed))
    }

    fn signed(&mut self) -> Result<Term, ExpressionError> {
        let start = self.span().start;
        let count = std::iter::from_fn(|| self.take(&["-"])).count();
        let term = self.primary()?;
        if count % 2 == 0 {
            return Ok(term);
        }
        Ok(Term { span: start..term.span.end, form: Form::Negate(Box::new(term)) })
    }

    fn primary(&mut self) -> Result<Term, ExpressionError> {
        let span = self.span();
        match self.peek().cloned() {
            Some(Word::Number(number)) => {
                self.next += 1;
                Ok(Term { span, form: Form::Number(number) })
            }
            Some(Word::Text(text)) => {
                self.next += 1;
                Ok(Term { span, form: Form::Text(text) })
            }
            Some(Word::Symbol("(")) => {
                self.descend()?;
                let inner = self.any_of()?;
                self.close()?;
                Ok(inner)
            }
            Some(Word::Name(name)) => {
                self.next += 1;
                if self.peek() != Some(&Word::Symbol("(")) {
                    return Err(self.expected(&format!("`(` after `{name}`")));
                }
                self.descend()?;
                let mut arguments = Vec::new();
                while self.peek() != Some(&Word::Symbol(")")) {
                    arguments.push(self.any_of()?);
                    if self.take(&[","]).is_none() {
                        break;
                    }
                }
                let end = self.span().end;
                self.close()?;
                Ok(Term { span: span.start..end, form: Form::Call(name, arguments) })
            }
            _ => Err(self.expected("a number, a metric or `(`")),
        }
    }

    /// Takes an opening bracket.
    fn descend(&mut self) -> Result<(), ExpressionError> {
        let open = self.words[..self.next].iter().filter(|(word, _)| *word == Word::Symbol("(")).count();
        if open >= DEEPEST {
            let message = format!("an expression has at most {DEEPEST} opening brackets");
            return Err(ExpressionError { message, span: self.span() });
        }
        self.next += 1;
        Ok(())
    }

    fn close(&mut self) -> Result<(), ExpressionError> {
        match self.take(&[")"]) {
            Some(_) => Ok(()),
            None => Err(self.expected("`)`")),
        }
    }
}
