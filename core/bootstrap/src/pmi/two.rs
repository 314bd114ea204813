//! PMI-2: messages that begin with their length.

use std::time::Instant;

use super::fields::{Fields, length, message};
use super::socket::Socket;
use super::version::{MAPPING, Protocol, Settings, agree, unexpected};
use crate::error::Result;

/// Bytes that tell a message's length.
const HEADER_BYTES: usize = 6;

/// A client whose session is accepted.
#[derive(Debug)]
pub(super) struct Client {
    socket: Socket,
}

impl Client {
    pub(super) fn open(socket: Socket, settings: &Settings) -> Result<Client> {
        let step = "joining";
        let mut client = Client { socket };
        // The versions are agreed on in PMI-1's form.
        let (socket, interface) = (&mut client.socket, settings.version.name());
        socket.send(step, b"cmd=init pmi_version=2 pmi_subversion=0\n")?;
        let line = socket.line(step)?;
        let answer = Fields::of_line(&line).expect(interface, step, "response_to_init")?;
        if answer.get("pmi_version") != Some("2") {
            let what = "the process manager does not speak PMI-2".to_owned();
            return Err(unexpected(interface, step, what));
        }
        let &Settings { rank, size, .. } = settings;
        // Slurm will not go without the job's name; hydra has none and takes any.
        let job = settings.job.as_deref().unwrap_or("1");
        let number = rank.to_string();
        let question = [
            ("cmd", "fullinit"),
            ("pmijobid", job),
            ("pmirank", number.as_str()),
            ("threaded", "FALSE"),
        ];
        let answer = client.ask(step, &question)?;
        for (name, expected) in [("rank", rank), ("size", size)] {
            if let Some(number) = answer.get(name).and_then(|text| text.parse().ok()) {
                agree(interface, name, expected, number)?;
            }
        }
        Ok(client)
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

impl Protocol for Client {
    fn wait_until(&mut self, end: Instant) {
        self.socket.wait_until(end);
    }

    fn mapping(&mut self) -> Result<String> {
        let question = [("cmd", "info-getjobattr"), ("key", MAPPING)];
        let answer = self.ask("finding the PEs' hosts", &question)?;
        Ok(answer.get("value").unwrap_or_default().to_owned())
    }

    fn exchange(&mut self, key: &str, published: Option<&str>) -> Result<String> {
        if let Some(value) = published {
            let question = [("cmd", "kvs-put"), ("key", key), ("value", value)];
            self.ask("publishing the rendezvous", &question)?;
        }
        self.ask("waiting for the other PEs", &[("cmd", "kvs-fence")])?;
        let step = "looking up the rendezvous";
        // Rank 0 published it; -1 asks without a hint of where.
        let question = [
            ("cmd", "kvs-get"),
            ("jobid", ""),
            ("srcid", "-1"),
            ("key", key),
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
        Ok(value.to_owned())
    }

    fn finalize(&mut self) -> Result<()> {
        self.ask("finalizing", &[("cmd", "finalize")])?;
        Ok(())
    }
}
