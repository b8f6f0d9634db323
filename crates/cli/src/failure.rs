//! Why the command did not do what it was asked, and how it says so.

use std::io::{self, Write};
use std::process::ExitCode;

use annotate_snippets::{AnnotationKind, Element, Level, Renderer, Snippet};
use netloom_record::OutcomeError;
use netloom_scenario::{Problem, Problems, RunError};

use crate::show;

#[derive(Debug)]
pub(crate) enum Failure {
    /// What the user wrote is wrong; nothing was run.
    Input(Problems),
    /// Something could not be read or written.
    Output(String),
    /// A study's gate does not hold or a cell failed; its tables have said so.
    Gate,
    /// netloom made a mistake.
    Bug(String),
    /// Ctrl-C, SIGTERM or SIGHUP; what was complete is written.
    Interrupted,
    /// Nobody reads our output any more.
    PipeClosed,
}

impl Failure {
    /// Says what is wrong on standard error, and gives the exit code.
    pub(crate) fn report(self) -> ExitCode {
        match self {
            Failure::Input(problems) => {
                report_problems(&problems);
                ExitCode::from(2)
            }
            Failure::Output(message) => {
                complain(&format!("error: {message}\n"));
                ExitCode::from(1)
            }
            Failure::Gate => ExitCode::from(1),
            Failure::Bug(message) => {
                complain(&format!(
                    "error: {message}\nThis is a bug in netloom. Please report it together with the scenario.\n"
                ));
                ExitCode::from(70)
            }
            Failure::Interrupted => ExitCode::from(crate::interrupt::INTERRUPTED),
            Failure::PipeClosed => ExitCode::SUCCESS,
        }
    }
}

/// What `--strict` makes of warnings.
pub(crate) fn strictly(warnings: &[String]) -> Failure {
    Problems(warnings.iter().map(|warning| Problem::new("--strict", warning)).collect()).into()
}

/// Prints what the command line's parser has to say, and gives the exit code: help and versions, which it breaks itself, or what is wrong with the arguments.
pub(crate) fn answer(answer: &clap::Error) -> ExitCode {
    if !answer.use_stderr() {
        let _ = answer.print();
        return ExitCode::SUCCESS;
    }
    let text = answer.render();
    print(&if is_coloured() { text.ansi().to_string() } else { text.to_string() });
    ExitCode::from(2)
}

/// Prints to standard error. If nothing reads it, the exit code still says it.
pub(crate) fn complain(text: &str) {
    print(&show::visible(text));
}

/// Prints to standard error what needs no escapes, broken at the terminal's width.
fn print(text: &str) {
    let fitted = width().map(|width| show::fit_within(text, width));
    let _ = io::stderr().write_all(fitted.as_deref().unwrap_or(text).as_bytes());
}

/// How wide a line of standard error may be; `None` where it goes elsewhere than to a terminal.
fn width() -> Option<usize> {
    console::Term::stderr().size_checked().map(|(_, width)| usize::from(width))
}

fn is_coloured() -> bool {
    io::IsTerminal::is_terminal(&io::stderr())
        && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

fn report_problems(problems: &Problems) {
    let renderer = if is_coloured() { Renderer::styled() } else { Renderer::plain() };
    for problem in &problems.0 {
        // The renderer's own colours are control characters, too.
        let _ = writeln!(io::stderr(), "{}", render(problem, &renderer, width()));
    }
    if problems.0.len() > 1 {
        complain(&format!("{} problems found; nothing was run.\n", problems.0.len()));
    }
}

/// A problem with the lines it stands in, as Rust's compiler shows them. What is said of it is broken at `width`.
fn render(problem: &Problem, renderer: &Renderer, width: Option<usize>) -> String {
    // The renderer puts a word and a colon before each line of a message.
    let fit = |text: &str, label: &str| match width {
        Some(width) => {
            let width = width.saturating_sub(label.len()).max(20);
            // In a list of names with what they are, the latter goes on below where it begins.
            let wrap = |line: &str| show::wrap_within(line, width, line.rfind("  ").map_or(0, |gap| gap + 2));
            text.lines().map(wrap).collect::<Vec<_>>().join("\n")
        }
        None => text.to_owned(),
    };
    let lines = problem.place.as_ref().map(|place| {
        // A reader who sees where it begins finds the end.
        const LONGEST: usize = 60;
        let text = place.source.text();
        let end =
            (place.span.start..=place.span.end).take(LONGEST).filter(|&at| text.is_char_boundary(at)).last();
        let here = AnnotationKind::Primary.span(place.span.start..end.unwrap_or(place.span.end));
        let name = show::visible(place.source.name());
        Element::from(Snippet::source(place.source.text()).path(name).annotation(here))
    });
    let help = problem
        .help
        .as_ref()
        .map(|help| Element::from(Level::HELP.message(fit(&show::visible(help), "  = help: "))));
    let report = Level::ERROR
        .primary_title(fit(&show::visible(&problem.to_string()), "error: "))
        .elements(lines.into_iter().chain(help));
    renderer.render(&[report])
}

impl From<Problems> for Failure {
    fn from(problems: Problems) -> Self {
        Failure::Input(problems)
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Failure::Input(problem.into())
    }
}

impl From<OutcomeError> for Failure {
    fn from(error: OutcomeError) -> Self {
        Failure::Output(error.to_string())
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Scenario(problems) => problems.into(),
            RunError::Outcome(error) => error.into(),
            RunError::Simulation(netloom_sim::RunError::Conservation(error)) => {
                Failure::Bug(error.to_string())
            }
            RunError::Memory(_) => Failure::Output(error.to_string()),
            RunError::Simulation(error) => Failure::Output(error.to_string()),
        }
    }
}

/// Errors of printing; those of files are turned into [`Failure::Output`] with the file's name where they arise.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::PipeClosed,
            _ => Failure::Output(format!("cannot print: {error}")),
        }
    }
}
