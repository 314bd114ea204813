//! Tables in Markdown that are readable as text, too.

/// A table in Markdown, its columns aligned.
#[must_use]
pub fn markdown<const N: usize>(headings: [&str; N], rows: &[[String; N]]) -> String {
    let headings = headings.map(String::from);
    let width = |column: usize| {
        let cells = std::iter::once(&headings).chain(rows);
        cells
            .map(|row| row[column].chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: [usize; N] = std::array::from_fn(width);
    let line = |row: &[String; N]| {
        let padded = row.iter().zip(widths);
        let padded: Vec<String> = padded
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        format!("| {} |\n", padded.join(" | "))
    };
    let rule = widths.map(|width| "-".repeat(width + 2)).join("|");
    let body: String = rows.iter().map(line).collect();
    format!("{}|{rule}|\n{body}", line(&headings))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_as_wide_as_their_columns_widest() {
        let rows = [
            ["a".into(), "1 µs".into()],
            ["longer".into(), String::new()],
        ];
        assert_eq!(
            markdown(["row", "t"], &rows),
            "| row    | t    |\n|--------|------|\n| a      | 1 µs |\n| longer |      |\n"
        );
    }
}
