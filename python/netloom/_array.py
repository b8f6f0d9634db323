"""Columns as NumPy arrays and pandas frames."""

from __future__ import annotations

import numpy as np


def column(values, dtype: str | None = None, missing: bytes | None = None) -> np.ndarray:
    """An array from a column's bytes; where some rows lack a value, floats that are NaN there; text as objects."""
    if dtype is None:
        return np.array(values, dtype=object)
    array = np.frombuffer(values, dtype)
    if missing is None:
        return array
    return np.where(np.frombuffer(missing, "?"), np.nan, array.astype("f8"))


def to_pandas(table):
    """The columns as a pandas data frame, with their units in ``frame.attrs["units"]``."""
    import pandas

    frame = pandas.DataFrame({name: table[name] for name in table.columns})
    frame.attrs["units"] = table.units
    return frame
