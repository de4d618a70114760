//! The final table: each figure with its limit.

/// Rows of work, measured value, limit and verdict.
#[derive(Default)]
pub struct Table {
    rows: Vec<[String; 4]>,
}

impl Table {
    /// Adds a figure with an upper limit.
    pub fn at_most(&mut self, work: &str, measured: f64, limit: f64, unit: &str) {
        self.row(work, measured, limit, unit, "at most", measured <= limit);
    }

    /// Adds a figure with a lower limit.
    pub fn at_least(&mut self, work: &str, measured: f64, limit: f64, unit: &str) {
        self.row(work, measured, limit, unit, "at least", measured >= limit);
    }

    /// Adds a figure without a limit.
    pub fn fact(&mut self, work: &str, measured: f64, unit: &str) {
        println!("  {work}: {} {unit}", number(measured));
        self.rows.push([
            work.to_owned(),
            format!("{} {unit}", number(measured)),
            String::new(),
            String::new(),
        ]);
    }

    fn row(&mut self, work: &str, measured: f64, limit: f64, unit: &str, sense: &str, holds: bool) {
        println!("  {work}: {} {unit}", number(measured));
        self.rows.push([
            work.to_owned(),
            format!("{} {unit}", number(measured)),
            format!("{sense} {} {unit}", number(limit)),
            if holds {
                "ok".to_owned()
            } else {
                "MISSED".to_owned()
            },
        ]);
    }

    /// Prints the table as Markdown.
    pub fn print(&self) {
        let headings = ["work", "measured", "must", ""].map(str::to_owned);
        let width = |column: usize| {
            self.rows
                .iter()
                .chain([&headings])
                .map(|row| row[column].chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..4).map(width).collect();
        let line = |row: &[String; 4]| {
            let cells: Vec<String> = row
                .iter()
                .zip(&widths)
                .map(|(cell, width)| format!("{cell:<width$}"))
                .collect();
            format!("| {} |", cells.join(" | "))
        };
        println!("\n{}", line(&headings));
        println!(
            "|{}|",
            widths
                .iter()
                .map(|width| "-".repeat(width + 2))
                .collect::<Vec<_>>()
                .join("|")
        );
        for row in &self.rows {
            println!("{}", line(row));
        }
    }
}

fn number(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 || v == v.trunc() => format!("{value:.0}"),
        v if v >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}
