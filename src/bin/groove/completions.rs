//! `groove completions` and `groove man`: what a shell and `man` know of the
//! program, made from the definition of its commands.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "manual pages are written to where the user says"
)]

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, Command, CommandFactory as _, ValueEnum};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::cli::Cli;
use crate::print;

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: ShellName,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ShellName {
    Bash,
    Zsh,
    Fish,
    #[value(name = "powershell")]
    PowerShell,
}

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Write a page for each command into this folder instead of printing the
    /// page of the program
    #[arg(long, value_name = "PATH")]
    out: Option<PathBuf>,
}

/// Prints the script that completes commands and flags in a shell.
pub(crate) fn run(arguments: &CompletionsArgs) -> anyhow::Result<ExitCode> {
    let shell = match arguments.shell {
        ShellName::Bash => Shell::Bash,
        ShellName::Zsh => Shell::Zsh,
        ShellName::Fish => Shell::Fish,
        ShellName::PowerShell => Shell::PowerShell,
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "groove", &mut script);
    print::result(&String::from_utf8_lossy(&script)).context("cannot write the script")?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the program's page, or writes one for each command.
pub(crate) fn man(arguments: &ManArgs) -> anyhow::Result<ExitCode> {
    let mut program = Cli::command();
    // Each command's page is to name the flags that every command takes.
    program.build();
    match &arguments.out {
        None => {
            let page = page_of(&program).context("cannot make the page")?;
            print::result(&String::from_utf8_lossy(&page)).context("cannot write the page")?;
        }
        Some(folder) => {
            std::fs::create_dir_all(folder)
                .with_context(|| format!("cannot make the folder {}", folder.display()))?;
            write_pages(&program, folder)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes the page of a command and of those below it.
fn write_pages(command: &Command, folder: &Path) -> anyhow::Result<()> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    let file = folder.join(format!("{name}.1"));
    page_of(command)
        .and_then(|page| std::fs::write(&file, page))
        .with_context(|| format!("cannot write {}", file.display()))?;
    command.get_subcommands().try_for_each(|below| write_pages(below, folder))
}

fn page_of(command: &Command) -> std::io::Result<Vec<u8>> {
    let mut page = Vec::new();
    Man::new(command.clone()).render(&mut page)?;
    Ok(page)
}
