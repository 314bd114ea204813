//! All to all: each member copies its block of every member's source.

use bytemuck::Pod;

use crate::collectives::algorithm::exchange::Part;
use crate::collectives::call::CollectiveCall;
use crate::collectives::select::CollectiveKind;
use crate::error::Result;
use crate::sym::Sym;

impl CollectiveCall<'_> {
    /// Copies block `me` of member `i`'s source to block `i` of this PE's destination. Both have the same length.
    pub(crate) fn alltoall<T: Pod>(
        &mut self,
        dst: Sym<T>,
        src: Sym<T>,
        valid: Result<()>,
    ) -> Result<()> {
        let (members, me) = (self.team.members.len(), self.team.members.me());
        let block = src.len() / members * size_of::<T>();
        let algorithm = self.algorithm(CollectiveKind::Alltoall, src);
        self.gather_parts(algorithm, dst, src, valid, |rank, source| {
            Ok(Part {
                into: rank * block..(rank + 1) * block,
                from: source.range(me * block..(me + 1) * block)?,
            })
        })
    }
}
