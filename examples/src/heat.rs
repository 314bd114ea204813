//! Heat that spreads over a plate: the division of its rows, its initial state, one step on the
//! CPU, and a picture of it. The steps of many PEs are in [`heat2d`](crate::heat2d), those on GPUs
//! in the program `gpu_heat`.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::path::Path;

use anyhow::{Context, ensure};

/// A plate of `height` rows of `width` numbers, from 0 (cold) to 1 (hot). Its first and last row and
/// column are edges, which keep their heat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plate {
    /// Numbers in a row, at least 3.
    pub width: usize,
    /// Rows, at least 3.
    pub height: usize,
}

impl Plate {
    /// A plate that has a row for each PE at least; each side is 3 or more.
    pub fn for_pes(width: u32, height: u32, pes: usize) -> anyhow::Result<Self> {
        let (width, height) = (width as usize, height as usize);
        ensure!(
            height >= 3 && pes <= height - 2,
            "{} rows between the edges are too few for {pes} PEs",
            height.saturating_sub(2)
        );
        Ok(Plate { width, height })
    }

    /// The rows, without edges, that a PE computes. Shares differ by one row at most.
    #[must_use]
    pub fn rows_of(&self, pe: usize, pes: usize) -> Range<usize> {
        let inner = self.height - 2;
        1 + inner * pe / pes..1 + inner * (pe + 1) / pes
    }

    /// The initial heat: a hot ring and a hot part of the upper edge on a cold plate.
    #[must_use]
    pub fn start(&self, x: usize, y: usize) -> f32 {
        let (dx, dy) = (
            2 * x as i64 - self.width as i64,
            2 * y as i64 - self.height as i64,
        );
        let from_middle = dx * dx + dy * dy;
        let size = self.width.min(self.height) as i64;
        let ring = (size * size / 8..size * size / 4).contains(&from_middle);
        let stretch = y == 0 && (self.width / 4..self.width / 2).contains(&x);
        if ring || stretch { 1.0 } else { 0.0 }
    }

    /// The initial heat of some rows.
    #[must_use]
    pub fn start_of(&self, rows: Range<usize>) -> Vec<f32> {
        let points = rows.flat_map(|y| (0..self.width).map(move |x| (x, y)));
        points.map(|(x, y)| self.start(x, y)).collect()
    }

    /// Computes one step of some rows, without edges, with additions in the order of the kernel
    /// `heat_step`. Both grids are of these rows' plate, or of a part of it that contains the
    /// neighbouring rows too.
    pub fn step(&self, rows: Range<usize>, next: &mut [f32], now: &[f32]) {
        let width = self.width;
        for y in rows {
            let row = |y: usize| &now[y * width..(y + 1) * width];
            let (above, here, below) = (row(y - 1), row(y), row(y + 1));
            let next = &mut next[y * width..(y + 1) * width];
            for x in 1..width - 1 {
                let neighbours = ((above[x] + here[x - 1]) + here[x + 1]) + below[x];
                next[x] = 0.125 * (neighbours + 4.0 * here[x]);
            }
        }
    }

    /// The whole plate after so many steps, computed here.
    #[must_use]
    pub fn after(&self, steps: usize) -> Vec<f32> {
        let mut now = self.start_of(0..self.height);
        let mut next = now.clone();
        for _ in 0..steps {
            self.step(1..self.height - 1, &mut next, &now);
            std::mem::swap(&mut now, &mut next);
        }
        now
    }

    /// Writes heat as a PNG picture, a pixel for each number.
    pub fn picture(&self, heat: &[f32], to: impl Write) -> Result<(), png::EncodingError> {
        let side = |points: usize| {
            u32::try_from(points).map_err(|error| std::io::Error::other(error.to_string()))
        };
        let mut encoder = png::Encoder::new(to, side(self.width)?, side(self.height)?);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let points: Vec<u8> = heat.iter().copied().flat_map(colour).collect();
        encoder.write_header()?.write_image_data(&points)
    }

    /// Writes [`picture`](Self::picture) to a file.
    pub fn save(&self, heat: &[f32], path: &Path) -> anyhow::Result<()> {
        let saved = File::create(path)
            .map_err(Into::into)
            .and_then(|file| self.picture(heat, BufWriter::new(file)));
        saved.with_context(|| format!("writing {}", path.display()))
    }

    /// Fails unless this is the heat after so many steps, each number the same to the bit.
    pub fn check(&self, heat: &[f32], steps: usize) -> anyhow::Result<()> {
        let wanted = self.after(steps);
        ensure!(
            heat.len() == wanted.len(),
            "wrong: {} numbers instead of {}",
            heat.len(),
            wanted.len()
        );
        let wrong = (0..heat.len()).find(|at| heat[*at].to_bits() != wanted[*at].to_bits());
        if let Some(at) = wrong {
            let (x, y) = (at % self.width, at / self.width);
            let (is, should) = (heat[at], wanted[at]);
            anyhow::bail!(
                "wrong: after {steps} steps column {x} of row {y} is {is:?}, computed serially {should:?}"
            );
        }
        Ok(())
    }
}

/// The colour from black by red and yellow to white.
fn colour(heat: f32) -> [u8; 3] {
    // The square root makes little heat visible, too.
    let level = 3.0 * heat.clamp(0.0, 1.0).sqrt();
    [level, level - 1.0, level - 2.0].map(|part| (part.clamp(0.0, 1.0) * 255.0) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLATE: Plate = Plate {
        width: 9,
        height: 12,
    };

    #[test]
    fn every_inner_row_is_one_pes() {
        for pes in 1..=10 {
            let rows: Vec<usize> = (0..pes).flat_map(|pe| PLATE.rows_of(pe, pes)).collect();
            assert_eq!(rows, (1..11).collect::<Vec<_>>(), "{pes} PEs");
        }
    }

    #[test]
    fn heat_stays_between_its_extremes_and_spreads() {
        let start = PLATE.after(0);
        assert!(start.contains(&0.0) && start.contains(&1.0));
        let later = PLATE.after(50);
        assert!(later.iter().all(|heat| (0.0..=1.0).contains(heat)));
        let inner = (1..11).flat_map(|y| (1..8).map(move |x| y * 9 + x));
        assert!(inner.clone().all(|at| later[at] > 0.0));
        assert_eq!(later[..9], start[..9], "an edge keeps its heat");
    }

    #[test]
    fn a_picture_has_the_plates_size_and_its_colours() {
        let mut file = Vec::new();
        let heat = vec![0.0; 9 * 11]
            .into_iter()
            .chain(vec![1.0; 9])
            .collect::<Vec<_>>();
        PLATE.picture(&heat, &mut file).unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(file))
            .read_info()
            .unwrap();
        let mut points = vec![0; 9 * 12 * 3];
        let info = reader.next_frame(&mut points).unwrap();
        assert_eq!((info.width, info.height), (9, 12));
        assert_eq!(
            (&points[..3], &points[points.len() - 3..]),
            (&[0; 3][..], &[255; 3][..])
        );
    }
}
