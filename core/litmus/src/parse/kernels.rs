//! The parser of litmus programs of kernels: blocks of threads instead of PEs.

use super::line::{Line, quote};
use super::{HEADER, Parser};
use crate::error::Error;
use crate::kernels::program::{Block, Call, Group, Kernels, Statement};
use crate::limits;
use crate::program::MemoryModel;

impl Kernels {
    /// Reads a program from its text; [`kernels`](crate::kernels) describes the format.
    ///
    /// # Errors
    ///
    /// [`Error::Syntax`] if it is malformed, beyond [`limits`], or the PEs' blocks call different collectives (M36).
    pub fn parse(text: &str) -> Result<Kernels, Error> {
        let mut parser = Parser::new(text)?;
        let mut blocks: Vec<Block> = Vec::new();
        let mut last = 0;
        for (index, text) in text.lines().enumerate() {
            last = index + 1;
            let mut line = Line::of(text, last);
            let first = line.peek().map_or("", |token| token.text);
            match (first, blocks.last_mut()) {
                ("", _) => {}
                ("PE", _) => {
                    let block = parser.block(&mut line, &blocks)?;
                    blocks.push(block);
                }
                (_, None) => parser.line(&mut line)?,
                (word, Some(_)) if HEADER.contains(&word) => {
                    let problem = format!("`{word}` stands among the calls of a block");
                    return Err(line.here(problem, "put it before the first `PE n block b:`"));
                }
                (_, Some(block)) => {
                    let statement = parser.kernel_statement(&mut line, block.lanes)?;
                    block.statements.push(statement);
                }
            }
        }
        let at_end = |problem: &str, remedy: &str| Error::Syntax {
            line: last.max(1),
            column: 1,
            problem: problem.into(),
            remedy: remedy.into(),
        };
        if parser.program.name.is_empty() {
            return Err(at_end("the program has no name", "add a line `name …`"));
        }
        if blocks.is_empty() {
            return Err(at_end(
                "the program has no block",
                "add `PE 0 block 0:` and calls below it",
            ));
        }
        if !parser.program.models.is_empty() || !parser.named_models.is_empty() {
            let remedy = "leave out `models`, and `ordered` or `relaxed` in `expect`";
            return Err(at_end("programs of kernels have one memory model", remedy));
        }
        parser.program.models = MemoryModel::ALL.into();
        parser.check_expectations()?;
        let collectives = |pe: usize| -> Vec<&Call> {
            let of_pe = blocks.iter().filter(|block| block.pe == pe);
            let all = of_pe
                .flat_map(|block| &block.statements)
                .map(|statement| &statement.call);
            all.filter(|call| call.is_collective()).collect()
        };
        if (1..parser.pes).any(|pe| collectives(pe) != collectives(0)) {
            let remedy = "all PEs make the same collective calls in the same order (M36)";
            return Err(at_end("the PEs call different collectives", remedy));
        }
        Ok(Kernels {
            pes: parser.pes,
            head: parser.program,
            blocks,
        })
    }
}

impl Parser {
    /// `PE 0 block 1 lanes 4:`
    fn block(&mut self, line: &mut Line<'_>, before: &[Block]) -> Result<Block, Error> {
        const FORM: &str = "write `PE 0 block 1:` or `PE 0 block 1 lanes 4:`";
        line.next("`PE`")?;
        let token = line.next("a PE's number")?;
        if token.text.ends_with(':') {
            return Err(line.at(token, "the PE has no block", FORM));
        }
        let pe = self.pe_number(line, token, token.text)?;
        line.word("block")?;
        let token = line.next("a block's number")?;
        let (text, is_end) = token
            .text
            .strip_suffix(':')
            .map_or((token.text, false), |text| (text, true));
        let number = line.number(token, text, "a block's number")? as usize;
        let lanes = if is_end {
            1
        } else {
            line.word("lanes")?;
            let count = line.next("the number of threads and a colon")?;
            let Some(text) = count.text.strip_suffix(':') else {
                return Err(line.at(count, format!("{} has no colon", quote(count.text)), FORM));
            };
            line.number(count, text, "a number of threads")? as usize
        };
        line.end()?;
        if number >= limits::BLOCKS || !(1..=limits::LANES).contains(&lanes) {
            let remedy = format!(
                "blocks are 0 to {}, of 1 to {} threads",
                limits::BLOCKS - 1,
                limits::LANES
            );
            return Err(line.at(token, "there can be no such block", remedy));
        }
        if before
            .iter()
            .any(|block| (block.pe, block.number) == (pe, number))
        {
            let problem = format!("block {number} of PE {pe} had its calls already");
            return Err(line.at(token, problem, "write all of them under one heading"));
        }
        Ok(Block {
            pe,
            number,
            lanes,
            statements: Vec::new(),
        })
    }

    /// `[lane 2] [r0 … =] [warp|block] call …`
    fn kernel_statement(&mut self, line: &mut Line<'_>, lanes: usize) -> Result<Statement, Error> {
        let start = line.peek();
        let lane = match start {
            Some(token) if token.text == "lane" => {
                line.optional();
                let token = line.next("a thread's number")?;
                let lane = line.number(token, token.text, "a thread's number")? as usize;
                if lane >= lanes {
                    let problem = format!("the block has no thread {lane}");
                    return Err(line.at(token, problem, format!("it has {lanes}")));
                }
                Some(lane)
            }
            _ => None,
        };
        let into = self.registers(line)?;
        let group = match line.peek().map(|token| token.text) {
            Some("warp") => Group::Warp,
            Some("block") => Group::Block,
            _ => Group::Thread,
        };
        if group != Group::Thread {
            line.optional();
        }
        let name = line.next("a call")?;
        let call = self.kernel_call(line, name, &into)?;
        line.end()?;
        let group = match name.text {
            "syncwarp" => Group::Warp,
            "syncthreads" => Group::Block,
            "next_kernel" => Group::Grid,
            _ => group,
        };
        let at = start.unwrap_or(name);
        if call.registers() != into.as_slice() {
            let problem = format!(
                "`{}` fills {} registers, and {} stand before it",
                name.text,
                call.registers().len(),
                into.len()
            );
            return Err(line.at(at, problem, "write one for each value: `r0 = …`"));
        }
        if group != Group::Thread && (!call.takes_group() || lane.is_some()) {
            let problem = format!("`{}` is not made by a group here", name.text);
            return Err(line.at(at, problem, "leave out `warp` or `block`, or `lane`"));
        }
        if lanes > 1
            && group == Group::Thread
            && lane.is_none()
            && (!into.is_empty() || call.is_collective())
        {
            let problem = format!("each of {lanes} threads would make this call");
            return Err(line.at(at, problem, "write `lane 0` before it, or `block`"));
        }
        Ok(Statement { lane, group, call })
    }
}
