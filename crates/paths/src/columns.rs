//! Tables by columns, ready for a Parquet file or for the terminal.

/// A named table.
#[derive(Clone, Debug, PartialEq)]
pub struct ReportTable {
    /// Name in snake_case: the file it goes to.
    pub name: &'static str,
    /// Columns of equal length.
    pub columns: Vec<Column>,
}

/// A named column.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Name in snake_case.
    pub name: &'static str,
    /// Values, one per row.
    pub values: Values,
}

/// Values of one type.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Whole numbers.
    Count(Vec<u64>),
    /// Real numbers; NaN where a row has none.
    Float(Vec<f64>),
    /// Words.
    Text(Vec<String>),
}

impl Column {
    /// Names a column.
    pub fn new(name: &'static str, values: Values) -> Self {
        Column { name, values }
    }
}

impl Values {
    /// Number of rows.
    pub fn len(&self) -> usize {
        match self {
            Values::Count(values) => values.len(),
            Values::Float(values) => values.len(),
            Values::Text(values) => values.len(),
        }
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn cell(&self, row: usize) -> String {
        match self {
            Values::Count(values) => values[row].to_string(),
            Values::Float(values) if values[row].is_nan() => "-".to_owned(),
            Values::Float(values) => {
                // Four decimals, less the zeros that say nothing.
                let text = format!("{:.4}", values[row]);
                text.trim_end_matches('0').trim_end_matches('.').to_owned()
            }
            Values::Text(values) => values[row].clone(),
        }
    }
}

impl ReportTable {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |column| column.values.len())
    }

    /// What people read: the names of the columns, then row by row every cell.
    pub fn cells(&self) -> Vec<Vec<String>> {
        let names = self.columns.iter().map(|column| column.name.to_owned()).collect();
        let row = |row| self.columns.iter().map(|column| column.values.cell(row)).collect();
        std::iter::once(names).chain((0..self.rows()).map(row)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_read_row_by_row() {
        let table = ReportTable {
            name: "t",
            columns: vec![
                Column::new("name", Values::Text(vec!["a".into(), "longer".into()])),
                Column::new("n", Values::Count(vec![1, 200])),
                Column::new("share", Values::Float(vec![0.25, f64::NAN])),
            ],
        };
        assert_eq!(table.cells(), [["name", "n", "share"], ["a", "1", "0.25"], ["longer", "200", "-"]]);
    }
}
