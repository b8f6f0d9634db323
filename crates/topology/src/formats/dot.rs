//! DOT, the language of Graphviz.

use std::fmt::Write as _;

use crate::cable::Cable;
use crate::error::NetworkError;
use crate::formats::graph_file::{GraphFile, graph_attributes, link_attributes, node_attributes};
use crate::formats::reader::{Reader, graph_format};
use crate::network::Network;

graph_format! {
    /// An undirected graph from a DOT (Graphviz) file, with attribute defaults, edge chains and subgraphs.
    ///
    /// The same attributes are read as from GraphML. If no node is marked as a host, the rules of `edge-list` apply.
    Dot
}

fn parse(reader: &Reader, default: Cable) -> Result<GraphFile, NetworkError> {
    let tokens = tokenise(reader)?;
    let mut parser = Parser { reader, default, tokens, position: 0, graph: GraphFile::default() };
    parser.file()?;
    Ok(parser.graph)
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    /// A name, number or quoted text; keywords are names that were not quoted.
    Id { text: String, quoted: bool },
    /// `{ } [ ] ; , = :`
    Sign(char),
    /// `--`
    Edge,
    /// `->`
    Arc,
}

/// Tokens with their lines.
fn tokenise(reader: &Reader) -> Result<Vec<(Token, usize)>, NetworkError> {
    let mut tokens = Vec::new();
    let mut line = 1;
    let mut rest = reader.text.as_str();
    // Skips what was recognised and counts its lines.
    fn take<'a>(rest: &mut &'a str, length: usize, line: &mut usize) -> &'a str {
        let (taken, after) = rest.split_at(length);
        *line += taken.matches('\n').count();
        *rest = after;
        taken
    }
    while let Some(first) = rest.chars().next() {
        let start = line;
        let until = |end: &str| rest[2..].find(end).map(|at| at + 2 + end.len());
        if first.is_whitespace() {
            take(&mut rest, first.len_utf8(), &mut line);
        } else if rest.starts_with("//") || first == '#' {
            let length = rest.find('\n').unwrap_or(rest.len());
            take(&mut rest, length, &mut line);
        } else if rest.starts_with("/*") {
            let length = until("*/").ok_or_else(|| reader.error(start, "a comment without end"))?;
            take(&mut rest, length, &mut line);
        } else if rest.starts_with("--") || rest.starts_with("->") {
            let token = if take(&mut rest, 2, &mut line) == "--" { Token::Edge } else { Token::Arc };
            tokens.push((token, start));
        } else if "{}[];,=:".contains(first) {
            take(&mut rest, 1, &mut line);
            tokens.push((Token::Sign(first), start));
        } else if first == '"' {
            let (text, length) =
                quoted(rest).ok_or_else(|| reader.error(start, "a quotation without end"))?;
            take(&mut rest, length, &mut line);
            tokens.push((Token::Id { text, quoted: true }, start));
        } else if first == '<' {
            let length = html_length(rest).ok_or_else(|| reader.error(start, "an HTML label without end"))?;
            let text = take(&mut rest, length, &mut line).to_owned();
            tokens.push((Token::Id { text, quoted: true }, start));
        } else {
            let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
            let sign = usize::from(first == '-');
            let length = sign + rest[sign..].find(|c| !is_name(c)).unwrap_or(rest.len() - sign);
            if length == sign {
                return Err(reader.error(start, format!("unexpected character '{first}'")));
            }
            let text = take(&mut rest, length, &mut line).to_owned();
            tokens.push((Token::Id { text, quoted: false }, start));
        }
    }
    Ok(tokens)
}

/// The text of a quotation and its length with the quotes; `\"` stands for a quote, `\\` for a backslash.
fn quoted(rest: &str) -> Option<(String, usize)> {
    let mut text = String::new();
    let mut characters = rest.char_indices().skip(1);
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((text, at + 1)),
            '\\' => match characters.next()?.1 {
                escaped @ ('"' | '\\') => text.push(escaped),
                other => text.extend(['\\', other]),
            },
            _ => text.push(character),
        }
    }
    None
}

/// Length of an HTML label: up to the bracket that closes the first.
fn html_length(rest: &str) -> Option<usize> {
    let mut depth = 0;
    rest.char_indices().find_map(|(at, character)| {
        depth += i32::from(character == '<') - i32::from(character == '>');
        (depth == 0).then_some(at + 1)
    })
}

/// Attribute defaults of a scope (`node [...]`, `edge [...]`).
#[derive(Clone, Default)]
struct Defaults {
    node: Vec<Attribute>,
    edge: Vec<Attribute>,
}

type Attribute = (String, String, usize);

struct Parser<'a> {
    reader: &'a Reader,
    default: Cable,
    tokens: Vec<(Token, usize)>,
    position: usize,
    graph: GraphFile,
}

/// Subgraphs nested deeper than this are refused rather than recursed into.
const DEEPEST: usize = 100;

impl Parser<'_> {
    fn file(&mut self) -> Result<(), NetworkError> {
        self.accept_keyword("strict");
        if self.accept_keyword("digraph") {
            return Err(self.error("expected an undirected graph: every link has both directions"));
        }
        if !self.accept_keyword("graph") {
            return Err(self.error("expected \"graph\""));
        }
        self.accept_id();
        self.statements(&mut Defaults::default(), 0)?;
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.error("expected the file to end after the graph")),
        }
    }

    /// Statements in braces; returns the nodes they name.
    fn statements(&mut self, defaults: &mut Defaults, depth: usize) -> Result<Vec<usize>, NetworkError> {
        if depth > DEEPEST {
            return Err(self.error("subgraphs are nested too deep"));
        }
        self.expect('{')?;
        let mut nodes = Vec::new();
        while !self.accept('}') {
            if self.accept(';') {
                continue;
            }
            if self.accept_keyword("graph") {
                for (key, value, line) in self.attributes()? {
                    self.set_graph(depth, &key, &value, line)?;
                }
            } else if self.accept_keyword("node") {
                let attributes = self.attributes()?;
                defaults.node.extend(attributes);
            } else if self.accept_keyword("edge") {
                let attributes = self.attributes()?;
                defaults.edge.extend(attributes);
            } else if let Some((key, value, line)) = self.assignment()? {
                self.set_graph(depth, &key, &value, line)?;
            } else {
                nodes.extend(self.nodes_or_edges(defaults, depth)?);
            }
        }
        Ok(nodes)
    }

    /// Attributes of the whole graph; those of subgraphs describe drawings.
    fn set_graph(&mut self, depth: usize, key: &str, value: &str, line: usize) -> Result<(), NetworkError> {
        if depth == 0 { self.graph.set_graph(self.reader, line, key, value) } else { Ok(()) }
    }

    /// `a`, `a -- b -- c` or `a -- { b c }`, with attributes.
    fn nodes_or_edges(&mut self, defaults: &Defaults, depth: usize) -> Result<Vec<usize>, NetworkError> {
        let line = self.line();
        let mut ends = vec![self.operand(defaults, depth)?];
        while self.accept_token(&Token::Edge) {
            ends.push(self.operand(defaults, depth)?);
        }
        if self.peek() == Some(&Token::Arc) {
            return Err(self.error("expected \"--\", since every link has both directions"));
        }
        let own = if self.peek() == Some(&Token::Sign('[')) { self.attributes()? } else { Vec::new() };
        if let [nodes] = &ends[..] {
            for &node in nodes {
                for (key, value, line) in &own {
                    self.graph.set_node(self.reader, *line, node, key, value)?;
                }
            }
        }
        for pair in ends.windows(2) {
            for &a in &pair[0] {
                for &b in &pair[1] {
                    let link = self.graph.link(a, b, self.default, line);
                    for (key, value, line) in defaults.edge.iter().chain(&own) {
                        self.graph.set_link(self.reader, *line, link, key, value)?;
                    }
                }
            }
        }
        Ok(ends.concat())
    }

    /// A node, or the nodes of a subgraph.
    fn operand(&mut self, defaults: &Defaults, depth: usize) -> Result<Vec<usize>, NetworkError> {
        let is_subgraph = self.accept_keyword("subgraph");
        if is_subgraph {
            self.accept_id();
        }
        if is_subgraph || self.peek() == Some(&Token::Sign('{')) {
            return self.statements(&mut defaults.clone(), depth + 1);
        }
        let line = self.line();
        let Some(name) = self.accept_id() else { return Err(self.error("expected a node or a subgraph")) };
        // A port and a compass point say where on the node the line is drawn.
        while self.accept(':') {
            self.accept_id();
        }
        let known = self.graph.knows(&name);
        let node = self.graph.node(&name, line);
        if !known {
            for (key, value, line) in &defaults.node {
                self.graph.set_node(self.reader, *line, node, key, value)?;
            }
        }
        Ok(vec![node])
    }

    /// One or more `[key = value, …]`.
    fn attributes(&mut self) -> Result<Vec<Attribute>, NetworkError> {
        let mut attributes = Vec::new();
        self.expect('[')?;
        loop {
            while self.accept(',') || self.accept(';') {}
            if self.accept(']') {
                if !self.accept('[') {
                    return Ok(attributes);
                }
                continue;
            }
            match self.assignment()? {
                Some(attribute) => attributes.push(attribute),
                None => return Err(self.error("expected \"key = value\" or \"]\"")),
            }
        }
    }

    /// `key = value`, if that comes next.
    fn assignment(&mut self) -> Result<Option<Attribute>, NetworkError> {
        let line = self.line();
        let start = self.position;
        if let Some(key) = self.accept_id()
            && self.accept('=')
        {
            let value = self.accept_id().ok_or_else(|| self.error("expected a value"))?;
            return Ok(Some((key, value, line)));
        }
        self.position = start;
        Ok(None)
    }

    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.position).map(|(token, _)| token)
    }

    fn line(&self) -> usize {
        self.tokens.get(self.position).or(self.tokens.last()).map_or(1, |&(_, line)| line)
    }

    fn error(&self, message: &str) -> NetworkError {
        let found = match self.peek() {
            None => "the end of the file".to_owned(),
            Some(Token::Id { text, .. }) => format!("\"{text}\""),
            Some(Token::Sign(sign)) => format!("\"{sign}\""),
            Some(Token::Edge) => "\"--\"".to_owned(),
            Some(Token::Arc) => "\"->\"".to_owned(),
        };
        self.reader.error(self.line(), format!("{message}; found {found}"))
    }

    fn accept_token(&mut self, token: &Token) -> bool {
        let found = self.peek() == Some(token);
        self.position += usize::from(found);
        found
    }

    fn accept(&mut self, sign: char) -> bool {
        self.accept_token(&Token::Sign(sign))
    }

    fn expect(&mut self, sign: char) -> Result<(), NetworkError> {
        if self.accept(sign) { Ok(()) } else { Err(self.error(&format!("expected \"{sign}\""))) }
    }

    fn accept_keyword(&mut self, keyword: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Id { text, quoted: false }) if text.eq_ignore_ascii_case(keyword));
        self.position += usize::from(found);
        found
    }

    fn accept_id(&mut self) -> Option<String> {
        let Some(Token::Id { text, .. }) = self.peek() else { return None };
        let text = text.clone();
        self.position += 1;
        Some(text)
    }
}

impl Network {
    /// The network in DOT that `dot` reads back unchanged.
    pub fn to_dot(&self) -> String {
        let list = |attributes: &[(&str, String)]| -> String {
            let entries: Vec<String> =
                attributes.iter().map(|(key, value)| format!("{key}=\"{}\"", escape(value))).collect();
            entries.join(", ")
        };
        // Names from files may hold anything; those by number need no quotes.
        let name = |node| match self.has_own_names() {
            true => format!("\"{}\"", escape(&self.node_name(node))),
            false => self.node_name(node),
        };
        let mut text = format!("graph {{\n  graph [{}];\n", list(&graph_attributes(self)));
        for node in 0..self.nodes() {
            writeln!(text, "  {} [{}];", name(node), list(&node_attributes(self, node)))
                .expect("writing to a string");
        }
        for (id, link) in (0..).zip(self.links()) {
            let (a, b) = (name(link.a), name(link.b));
            writeln!(text, "  {a} -- {b} [{}];", list(&link_attributes(self, id)))
                .expect("writing to a string");
        }
        text + "}\n"
    }
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}
