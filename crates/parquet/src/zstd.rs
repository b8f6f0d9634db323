//! Pages compressed by Zstandard.
//!
//! The `parquet` crate decompresses Zstandard by the library in C, which takes ten times as long to build as a decoder
//! in Rust. So its page reader hands the pages on as they are stored, and they are decompressed here.

use std::fs::File;
use std::io::Read;
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::serialized_reader::SerializedPageReader;
use ruzstd::decoding::StreamingDecoder;

/// The pages of a column that is compressed by Zstandard.
pub(crate) struct ZstdPages {
    stored: SerializedPageReader<File>,
    /// Bytes of the whole column as its metadata say: no page is larger.
    most: u64,
}

impl ZstdPages {
    /// The pages of a column of `file`, of `rows` rows.
    pub(crate) fn new(file: &Arc<File>, column: &ColumnChunkMetaData, rows: usize) -> Result<Self> {
        let most = u64::try_from(column.uncompressed_size())?;
        let stored = column.clone().into_builder().set_compression(Compression::UNCOMPRESSED).build()?;
        Ok(ZstdPages { stored: SerializedPageReader::new(Arc::clone(file), &stored, rows, None)?, most })
    }

    /// The page with its values decompressed.
    fn decompressed(&self, mut page: Page) -> Result<Page> {
        match &mut page {
            Page::DataPage { buf, .. } | Page::DictionaryPage { buf, .. } => {
                *buf = decompress(buf, 0, self.most)?.into();
            }
            Page::DataPageV2 { buf, is_compressed, def_levels_byte_len, rep_levels_byte_len, .. } => {
                // Levels come first and are never compressed.
                let levels = u64::from(*def_levels_byte_len) + u64::from(*rep_levels_byte_len);
                if *is_compressed {
                    *buf = decompress(buf, usize::try_from(levels)?, self.most)?.into();
                    *is_compressed = false;
                }
            }
        }
        Ok(page)
    }
}

/// `stored`, with all but its first `plain` bytes decompressed; an error if that is more than `most` bytes.
fn decompress(stored: &[u8], plain: usize, most: u64) -> Result<Vec<u8>> {
    let damaged = |problem: String| ParquetError::General(format!("a Zstandard page is damaged: {problem}"));
    let (levels, mut frames) =
        stored.split_at_checked(plain).ok_or_else(|| damaged("its levels exceed it".to_owned()))?;
    let mut values = levels.to_vec();
    while !frames.is_empty() {
        let frame = StreamingDecoder::new(&mut frames).map_err(|error| damaged(error.to_string()))?;
        frame.take(most + 1).read_to_end(&mut values).map_err(|error| damaged(error.to_string()))?;
        if values.len() as u64 > most {
            return Err(damaged(format!("expected at most {most} bytes in it")));
        }
    }
    Ok(values)
}

impl PageReader for ZstdPages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.stored.get_next_page()?;
        page.map(|page| self.decompressed(page)).transpose()
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.stored.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.stored.skip_next_page()
    }

    fn supports_deferred_dictionary(&self) -> bool {
        self.stored.supports_deferred_dictionary()
    }

    fn take_deferred_dictionary(&mut self) -> Result<Option<Page>> {
        let page = self.stored.take_deferred_dictionary()?;
        page.map(|page| self.decompressed(page)).transpose()
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.stored.at_record_boundary()
    }
}

impl Iterator for ZstdPages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Result<Page>> {
        self.get_next_page().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::decompress;

    /// A frame by hand (RFC 8878, section 3.1.1): one raw block of four bytes.
    const FRAME: [u8; 13] = [0x28, 0xb5, 0x2f, 0xfd, 0x20, 4, 0x21, 0, 0, b'l', b'o', b'o', b'm'];

    #[test]
    fn frames_follow_levels() {
        assert_eq!(decompress(&FRAME, 0, 4).unwrap(), b"loom");
        let page = [&b"\x01\x02"[..], &FRAME, &FRAME].concat();
        assert_eq!(decompress(&page, 2, 10).unwrap(), b"\x01\x02loomloom");
        // A page without values has nothing to decompress.
        assert_eq!(decompress(b"\x01", 1, 10).unwrap(), b"\x01");
    }

    #[test]
    fn damage_is_refused() {
        let refusal = |page: &[u8], plain, most| decompress(page, plain, most).unwrap_err().to_string();
        assert!(refusal(&FRAME, 0, 3).contains("expected at most 3 bytes"));
        assert!(refusal(&FRAME, 14, 100).contains("its levels exceed it"));
        for cut in 1..FRAME.len() {
            assert!(refusal(&FRAME[..cut], 0, 100).contains("a Zstandard page is damaged"), "{cut}");
        }
    }
}
