//! The program `edgelect`: the commands of the npm package for machines without Node.

#[cfg(not(unix))]
compile_error!("the program edgelect needs process groups, which this system does not have");

mod child;
mod command;
mod doctor;
mod guard;
mod operator;
mod place;
mod processes;
mod profile;
mod run;
mod runner;
mod slot;
mod status;
mod tell;
mod watch;

use std::process::exit;

use clap::ArgMatches;

use command::{code, flags_of};

fn main() {
    let mut args = std::env::args_os();
    if args.nth(1).is_some_and(|first| first == processes::NAME) {
        let told: Vec<String> = args.map(|one| one.to_string_lossy().into_owned()).collect();
        return guard::watch(&told);
    }
    let matches = command::matches();
    let (name, matches) = matches.subcommand().expect("clap requires a command");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let ended = match runtime {
        Ok(runtime) => runtime.block_on(carry_out(name, matches)),
        Err(error) => {
            tell::error(&error.to_string());
            code("failed")
        }
    };
    tell::settle();
    // Not by a return: what is still under way, such as the look-up of a name, is not waited for.
    exit(ended);
}

async fn carry_out(name: &str, matches: &ArgMatches) -> i32 {
    let flags = flags_of(name, matches);
    let ended = match name {
        "run" => run::run(&flags).await,
        "slot" => slot::slot(&flags).await,
        "status" => status::status(&flags).await,
        "watch" => watch::watch(&flags).await,
        "doctor" => doctor::doctor(&flags).await,
        "init" => doctor::init(&flags).await,
        _ => operator::ask(name, &flags).await,
    };
    ended.unwrap_or_else(|failure| failure.tell(name))
}
