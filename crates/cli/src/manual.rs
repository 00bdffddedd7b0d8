//! `completions` and `man`: for shells and for `man`, made from the commands themselves.

use crate::exit::{Failure, Outcome};
use crate::show::screen::{note, print_generated};
use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;
use std::path::PathBuf;

#[derive(clap::Args)]
#[command(
    after_help = "bash: wattwise completions bash > ~/.local/share/bash-completion/completions/wattwise\n\
    zsh:  wattwise completions zsh > a folder of $fpath, as _wattwise\n\
    fish: wattwise completions fish > ~/.config/fish/completions/wattwise.fish"
)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

#[derive(clap::Args)]
#[command(after_help = "wattwise man | man -l -\nwattwise man --out ~/.local/share/man/man1")]
pub(crate) struct ManArgs {
    /// The page of this command, such as 'bench locks'; without it the program's
    #[arg(conflicts_with = "folder")]
    command: Vec<String>,
    /// Write the pages of all commands into this folder, which is made if need be
    #[arg(long = "out", value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

/// Prints the completions of the program for a shell.
pub(crate) fn completions(args: &CompletionsArgs, mut program: Command) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut program, "wattwise", &mut script);
    print_generated(&script)?;
    Ok(0)
}

/// Prints a page, or writes all.
pub(crate) fn man(args: &ManArgs, mut program: Command) -> Outcome {
    program.build();
    let mut pages = Vec::new();
    collect(&program, "wattwise", &mut pages);
    let Some(folder) = &args.folder else {
        let name = std::iter::once("wattwise").chain(args.command.iter().map(String::as_str));
        let name = name.collect::<Vec<_>>().join("-");
        let page = pages.iter().find(|(n, _)| *n == name).ok_or_else(|| {
            Failure::input(format!(
                "man {}: no such command; expected one of 'wattwise --help'",
                args.command.join(" ")
            ))
        })?;
        print_generated(&rendered(page)?)?;
        return Ok(0);
    };
    let named = |what: &std::path::Path, e| {
        Failure::input(format!("--out {}: {e}; expected a folder that can be written to", what.display()))
    };
    std::fs::create_dir_all(folder).map_err(|e| named(folder, e))?;
    for page in &pages {
        let path = folder.join(format!("{}.1", page.0));
        wattwise_output::write(&path, &rendered(page)?).map_err(|e| named(&path, e))?;
    }
    note!("{} pages written to {}", pages.len(), folder.display());
    Ok(0)
}

/// A command and all below it, each with the name of its page.
fn collect(command: &Command, name: &str, pages: &mut Vec<(String, Command)>) {
    pages.push((name.to_owned(), command.clone()));
    for below in command.get_subcommands().filter(|c| !c.is_hide_set() && c.get_name() != "help") {
        collect(below, &format!("{name}-{}", below.get_name()), pages);
    }
}

fn rendered((name, command): &(String, Command)) -> Result<Vec<u8>, Failure> {
    let mut page = Vec::new();
    let man = Man::new(command.clone()).title(name.clone()).section("1").manual("wattwise");
    man.render(&mut page).map_err(Failure::work)?;
    Ok(page)
}
