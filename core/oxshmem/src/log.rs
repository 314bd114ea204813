//! The log on stderr that `OXSHMEM_LOG` asks for, where the program has no `tracing` subscriber of its own.

use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

use tracing::level_filters::LevelFilter;
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;

/// The PE that this process is, once it has joined.
static PE: OnceLock<u32> = OnceLock::new();

/// Reads a level, or levels by target, such as `warn,oxshmem_verbs=debug`.
pub(crate) fn parse(text: &str) -> Result<Option<Targets>, String> {
    if text == "none" {
        return Ok(None);
    }
    // A word without a level would name a target of which everything is logged.
    for part in text.split(',') {
        let level = part.rsplit('=').next().unwrap_or_default().trim();
        if level.is_empty() || LevelFilter::from_str(level).is_err() {
            return Err(
                "give error, warn, info, debug or trace, for all or by target, such as \
                        info,oxshmem_verbs=debug; or none"
                    .into(),
            );
        }
    }
    Targets::from_str(text)
        .map(Some)
        .map_err(|error| error.to_string())
}

/// Begins the log. Gives whether this process has it: not where the program has a subscriber.
pub(crate) fn begin(levels: Targets) -> bool {
    static OURS: OnceLock<bool> = OnceLock::new();
    *OURS.get_or_init(|| {
        let lines = tracing_subscriber::fmt::layer()
            .event_format(Line)
            .with_ansi(false)
            .log_internal_errors(false)
            .with_writer(std::io::stderr);
        let log = tracing_subscriber::registry().with(levels).with(lines);
        tracing::subscriber::set_global_default(log).is_ok()
    })
}

/// Sets the PE that later lines name.
pub(crate) fn joined(pe: u32) {
    let _ = PE.set(pe);
}

/// The format of a line: time, PE, level, target, message.
struct Line;

impl<S, N> FormatEvent<S, N> for Line
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut to: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        SystemTime.format_time(&mut to)?;
        match PE.get() {
            Some(pe) => write!(to, " PE {pe}")?,
            None => write!(to, " pid {}", std::process::id())?,
        }
        let (level, target) = (event.metadata().level(), event.metadata().target());
        write!(to, " {level} {target}: ")?;
        context.format_fields(to.by_ref(), event)?;
        writeln!(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_for_all_or_by_target() {
        let levels = parse("warn,oxshmem_verbs=debug").unwrap().unwrap();
        let enabled = |target, level| levels.would_enable(target, &level);
        assert!(enabled("oxshmem", tracing::Level::WARN));
        assert!(!enabled("oxshmem", tracing::Level::INFO));
        assert!(enabled("oxshmem_verbs::lane", tracing::Level::DEBUG));
        assert_eq!(parse("none"), Ok(None));
    }

    #[test]
    fn what_is_no_level_is_refused() {
        for text in ["", "loud", "verbs", "oxshmem=", "info,", "oxshmem=loud"] {
            let why = parse(text).unwrap_err();
            assert!(why.contains("error, warn, info, debug or trace"), "{why}");
        }
    }
}
