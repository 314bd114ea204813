//! All to all: each member copies its block of every member's source.

use bytemuck::Pod;

use crate::algorithm::exchange::Part;
use crate::call::CollectiveCall;
use crate::elements::Elements;
use crate::error::Result;
use crate::select::CollectiveKind;

impl CollectiveCall<'_> {
    /// Copies block `me` of member `i`'s source to block `i` of this PE's destination. Both have the same length.
    pub fn alltoall<T: Pod>(
        &mut self,
        dst: Elements<T>,
        src: Elements<T>,
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
