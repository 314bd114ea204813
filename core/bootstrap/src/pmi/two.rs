//! PMI-2: messages that begin with their length.

use super::fields::{Fields, length, message};
use super::socket::Socket;
use super::{KEY, Settings, agree, place, unexpected};
use crate::Result;
use crate::environment::meeting::{Manager, Place};

/// Bytes that tell a message's length.
const HEADER_BYTES: usize = 6;

/// A session that has been accepted.
#[derive(Debug)]
pub(super) struct Session {
    socket: Socket,
    settings: Settings,
}

impl Session {
    pub(super) fn open(socket: Socket, settings: Settings) -> Result<Session> {
        let step = "joining";
        let mut session = Session { socket, settings };
        // The versions are agreed on in PMI-1's form.
        let (socket, interface) = (&mut session.socket, session.settings.version.name());
        socket.send(step, b"cmd=init pmi_version=2 pmi_subversion=0\n")?;
        let line = socket.line(step)?;
        let answer = Fields::of_line(&line).expect(interface, step, "response_to_init")?;
        if answer.get("pmi_version") != Some("2") {
            let what = "the process manager does not speak PMI-2".to_owned();
            return Err(unexpected(interface, step, what));
        }
        let Settings { rank, size, .. } = session.settings;
        // Slurm will not go without the job's name; hydra has none and takes any.
        let job = session.settings.job.clone();
        let (number, job) = (rank.to_string(), job.as_deref().unwrap_or("1"));
        let question = [
            ("cmd", "fullinit"),
            ("pmijobid", job),
            ("pmirank", number.as_str()),
            ("threaded", "FALSE"),
        ];
        let answer = session.ask(step, &question)?;
        for (name, expected) in [("rank", rank), ("size", size)] {
            if let Some(number) = answer.get(name).and_then(|text| text.parse().ok()) {
                agree(interface, name, expected, number)?;
            }
        }
        Ok(session)
    }

    /// Asks with these pairs, of which the first is the command, and gives its answer's.
    fn ask(&mut self, step: &'static str, question: &[(&str, &str)]) -> Result<Fields> {
        self.socket.send(step, &message(question))?;
        let header = self.socket.exactly(step, HEADER_BYTES)?;
        let interface = self.socket.interface;
        let count = length(&header)
            .ok_or_else(|| unexpected(interface, step, "a message without length".to_owned()))?;
        let body = self.socket.exactly(step, count)?;
        let command = question.first().map_or("", |(_, command)| *command);
        Fields::of_message(&body).expect(interface, step, &format!("{command}-response"))
    }
}

impl Manager for Session {
    fn place(&self) -> Place {
        place(&self.settings)
    }

    fn name(&self) -> &'static str {
        self.socket.interface
    }

    fn meet(mut self: Box<Self>, published: Option<&str>) -> Result<String> {
        if let Some(value) = published {
            let question = [("cmd", "kvs-put"), ("key", KEY), ("value", value)];
            self.ask("publishing the rendezvous", &question)?;
        }
        self.ask("waiting for the other PEs", &[("cmd", "kvs-fence")])?;
        let step = "looking up the rendezvous";
        // Rank 0 published it; -1 asks without a hint of where.
        let question = [
            ("cmd", "kvs-get"),
            ("jobid", ""),
            ("srcid", "-1"),
            ("key", KEY),
        ];
        let answer = self.ask(step, &question)?;
        let found = answer.get("found") != Some("FALSE");
        let Some(value) = answer
            .get("value")
            .filter(|value| found && !value.is_empty())
        else {
            let what = "rank 0 has published nothing".to_owned();
            return Err(unexpected(self.socket.interface, step, what));
        };
        self.ask("finalizing", &[("cmd", "finalize")])?;
        Ok(value.to_owned())
    }
}
