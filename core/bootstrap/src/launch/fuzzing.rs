//! Entry points for `ci/fuzz`.

use super::agent_protocol::{Inbox, Opening, opening};

/// A stream between the launcher and an agent, of commands or of reports, behind the agent's greeting.
pub fn agent(bytes: &[u8]) {
    let stream = match opening(bytes) {
        Opening::Greeted(end) => bytes.get(end..).unwrap_or_default(),
        Opening::Pending | Opening::Version(_) => bytes,
    };
    let mut commands = Inbox::of_bytes(stream);
    while let Ok(Some(_)) = commands.next_command() {}
    let mut reports = Inbox::of_bytes(stream);
    while let Ok(Some(_)) = reports.next_report() {}
}
