//! `netloom completions` and `netloom man`: what shells and manuals need, from the definition of the command line.

use std::fs;
use std::io::Write;

use clap::CommandFactory;

use crate::args::{Args, CompletionsArgs, ManArgs};
use crate::failure::Failure;
use crate::files::unwritable;

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
    let written = fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(Args::command(), folder));
    written.map_err(|error| unwritable(folder, &error))?;
    writeln!(std::io::stdout(), "manual pages in {}", folder.display())?;
    Ok(())
}
