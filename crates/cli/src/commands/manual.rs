//! `netloom completions` and `netloom man`: what shells and manuals need, from the definition of the command line.

use std::fs;
use std::io::Write;
use std::path::Path;

use clap::CommandFactory;

use crate::args::{Args, CompletionsArgs, ManArgs};
use crate::failure::Failure;
use crate::files::{unwritable, write_file};

/// Prints a shell's completion script.
pub(crate) fn completions(args: &CompletionsArgs) -> Result<(), Failure> {
    // Into memory first: the generator panics where nobody reads.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "netloom", &mut script);
    std::io::stdout().write_all(&script)?;
    Ok(())
}

/// Prints the page of netloom itself, or writes one page per command.
pub(crate) fn man(args: &ManArgs) -> Result<(), Failure> {
    let Some(folder) = &args.out else {
        let mut page = Vec::new();
        clap_mangen::Man::new(Args::command()).render(&mut page)?;
        std::io::stdout().write_all(&page)?;
        return Ok(());
    };
    fs::create_dir_all(folder).map_err(|error| unwritable(folder, &error))?;
    let mut command = Args::command().disable_help_subcommand(true);
    // Options and names of subcommands are complete only then.
    command.build();
    write_pages(&command, folder)?;
    writeln!(crate::show::out(), "manual pages in {}", folder.display())?;
    Ok(())
}

/// Writes the page of a command and those of its subcommands, each as a whole.
fn write_pages(command: &clap::Command, folder: &Path) -> Result<(), Failure> {
    for command in command.get_subcommands().filter(|command| !command.is_hide_set()) {
        write_pages(command, folder)?;
    }
    let page = clap_mangen::Man::new(command.clone());
    let mut text = Vec::new();
    page.render(&mut text)?;
    write_file(&folder.join(page.get_filename()), &text)
}
