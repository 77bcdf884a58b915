"""Any path becomes the domain that it holds."""

from pathlib import Path

import numpy as np
import pytest

from equida.data import ArrayDomain, ImageDomain, open_domain
from equida.errors import InputError


def test_each_kind_of_path(tmp_path: Path) -> None:
    (tmp_path / "photos" / "mug").mkdir(parents=True)
    (tmp_path / "photos" / "mug" / "1.jpg").touch()
    (tmp_path / "list.txt").write_text("/gone/mug/1.jpg 0\n")
    np.savez(tmp_path / "f.npz", a_x=np.zeros((2, 3)), b_x=np.ones((1, 3)))
    assert isinstance(open_domain(tmp_path / "photos"), ImageDomain)
    assert open_domain(tmp_path, domain="photos").name == "photos"
    listed = open_domain(tmp_path / "list.txt", root=tmp_path / "photos")
    assert listed.identity(0) == "mug/1.jpg"
    rows = open_domain(tmp_path / "f.npz", domain="b", classes=["mug"])
    assert isinstance(rows, ArrayDomain)
    assert (len(rows), rows.classes) == (1, ("mug",))


def test_what_cannot_be_opened(tmp_path: Path) -> None:
    for name, said in (("a.jpg", "one image; give its folder"), ("a.zip", "not known")):
        (tmp_path / name).touch()
        with pytest.raises(InputError, match=said):
            open_domain(tmp_path / name)
