//! The destinations of PE 0's table and its progress.
//!
//! A PE's own stdout and stderr are pipes to its launcher, which passes whole lines on. The
//! progress bar is drawn on the launcher's terminal, which PE 0 opens for that. Rows go there too,
//! in step with the bar, if the launcher's stdout is that terminal.

use std::fs::File;
use std::io::{IsTerminal, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};

use console::Term;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressStyle};

use crate::output;

/// Redraws of the bar: few, since measuring matters more.
const REDRAWS_PER_SECOND: u8 = 10;

#[derive(Debug)]
pub struct Report {
    bar: ProgressBar,
    /// The launcher's stdout, if it is the terminal with the bar.
    rows: Option<File>,
}

impl Report {
    /// A report of `rows` rows. There is a progress bar if there is a launcher, given by its
    /// process number, and its stderr is a terminal.
    pub fn new(launcher: Option<u32>, rows: usize) -> Self {
        let drawing = launcher.and_then(|pid| {
            write_from_background();
            let terminal = terminal(pid, 2)?;
            let term = Term::read_write_pair(terminal.try_clone().ok()?, terminal);
            Some((
                ProgressDrawTarget::term(term, REDRAWS_PER_SECOND),
                self::terminal(pid, 1),
            ))
        });
        let (target, to) = drawing.unwrap_or((ProgressDrawTarget::hidden(), None));
        let bar = ProgressBar::with_draw_target(Some(rows as u64), target)
            .with_finish(ProgressFinish::AndClear);
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} rows, {elapsed}  {msg}");
        Report {
            bar: bar.with_style(style.unwrap_or(ProgressStyle::default_bar())),
            rows: to,
        }
    }

    /// Text for stdout; a line end is added.
    pub fn line(&mut self, text: &str) -> anyhow::Result<()> {
        let text = format!("{text}\n");
        match &mut self.rows {
            Some(terminal) => {
                output::closed(self.bar.suspend(|| terminal.write_all(text.as_bytes())))
            }
            None => output::print(&text),
        }
    }

    /// Shows the row that is being measured, after `done` others.
    pub fn progress(&self, done: usize, label: String) {
        self.bar.set_message(label);
        self.bar.set_position(done as u64);
    }

    /// Removes the bar.
    pub fn done(&self) {
        self.bar.finish_and_clear();
    }
}

/// Lets this process write to the launcher's terminal. Its process group is not the foreground one
/// there, and under `stty tostop` a write would stop it.
fn write_from_background() {
    // SAFETY: ignoring a signal runs no handler, and this signal means nothing to this command.
    unsafe { libc::signal(libc::SIGTTOU, libc::SIG_IGN) };
}

/// Another process's descriptor, opened again, if it is a terminal. The process is of the same
/// user.
fn terminal(pid: u32, descriptor: u32) -> Option<File> {
    let path = format!("/proc/{pid}/fd/{descriptor}");
    // Opening a pipe could block, or keep its reader from seeing its end.
    if !std::fs::metadata(&path).ok()?.file_type().is_char_device() {
        return None;
    }
    let no_controlling_terminal = i32::try_from(rustix::fs::OFlags::NOCTTY.bits()).ok()?;
    let mut options = File::options();
    let file = options
        .write(true)
        .custom_flags(no_controlling_terminal)
        .open(path)
        .ok()?;
    file.is_terminal().then_some(file)
}
