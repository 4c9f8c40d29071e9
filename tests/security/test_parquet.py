"""Untrusted Parquet: nothing in it is executed, and a few bytes do not become many rows."""

from __future__ import annotations

import base64
import io
import pickle
import warnings
from contextlib import suppress
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hostile import Bomb, within
from qpignn import read_graph
from qpignn.data import parquet_table
from qpignn.data.parquet_table import read_parquet
from qpignn.errors import ReadError


def test_types_that_would_be_unpickled_are_not(tmp_path: Path) -> None:
    """pyarrow before 14.0.1 unpickled the types that such a file names (CVE-2023-47248)."""
    payload = pickle.dumps(Bomb(tmp_path / "trace"))
    pickle.loads(payload)
    assert (tmp_path / "trace").exists()  # the bomb is a real one
    (tmp_path / "trace").unlink()
    metadata = {
        b"ARROW:extension:name": b"arrow.py_extension_type",
        b"ARROW:extension:metadata": payload,
    }
    fields = [pa.field("id", pa.int64()), pa.field("x", pa.float64(), metadata=metadata)]
    table = pa.table([[1, 2], [1.0, 2.0]], schema=pa.schema(fields))
    path = tmp_path / "nodes.parquet"
    pq.write_table(table, path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some versions say that they do not know the type
        data = read_graph(path, None, target=None)
    assert data.x.tolist() == [[1.0], [2.0]]
    assert not (tmp_path / "trace").exists()


def test_pandas_own_notes_are_not_executed(tmp_path: Path) -> None:
    payload = base64.b64encode(pickle.dumps(Bomb(tmp_path / "trace"))).decode()
    table = pa.table({"id": [1, 2], "x": [1.0, 2.0]})
    notes = f'{{"index_columns": [], "columns": [], "attributes": {{"x": "{payload}"}}}}'
    table = table.replace_schema_metadata({b"pandas": notes.encode(), b"PANDAS_ATTRS": b"[]"})
    path = tmp_path / "nodes.parquet"
    pq.write_table(table, path)
    with suppress(ReadError):
        assert read_graph(path, None, target=None).num_nodes == 2
    assert not (tmp_path / "trace").exists()


def test_rows_are_counted_before_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = pa.table({"id": pa.DictionaryArray.from_arrays(pa.array([0] * 10**6), pa.array(["x"]))})
    path = tmp_path / "nodes.parquet"
    pq.write_table(pa.concat_tables([part] * 300), path)
    assert path.stat().st_size < 10**6
    monkeypatch.setattr(parquet_table, "free_memory", lambda: 2**30)
    with (
        within(megabytes=100),
        pytest.raises(ReadError, match=r"fits into memory .* got 300,000,000 rows"),
    ):
        read_parquet(path)


def test_read_parquet_footer_beyond_the_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "nodes.parquet"
    stream = io.BytesIO()
    pq.write_table(pa.table({"id": [1]}), stream)
    whole = stream.getvalue()
    path.write_bytes(whole[:-8] + (2**31 - 1).to_bytes(4, "little") + b"PAR1")
    with within(megabytes=100), pytest.raises(ReadError, match="cannot be read as a table"):
        read_parquet(path)


def test_text_that_is_not_utf_8(tmp_path: Path) -> None:
    """Arrow itself takes the bytes on trust, and stumbles over them only when they are used."""
    broken = pa.Array.from_buffers(
        pa.string(), 2, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0\2\0\0\0"), pa.py_buffer(b"a\xff")]
    )
    path = tmp_path / "nodes.parquet"
    pq.write_table(pa.table({"id": broken, "x": [1.0, 2.0]}), path)
    with pytest.raises(ReadError, match=r"nodes\.parquet: cannot be read as a table"):
        read_graph(path, None, target=None)


def test_read_graph_parquet_unknown_pandas_type_is_refused(tmp_path: Path) -> None:
    table = pa.Table.from_pandas(pd.DataFrame({"id": [1, 2], "x": [1.0, 2.0]}))
    notes = table.schema.metadata[b"pandas"].replace(b"float64", b"floay64")
    path = tmp_path / "nodes.parquet"
    pq.write_table(table.replace_schema_metadata({b"pandas": notes}), path)
    with pytest.raises(ReadError, match="floay64"):
        read_graph(path, None, target=None)
