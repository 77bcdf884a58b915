"""What a config and a task are turned into."""

import pytest

from equida.errors import InputError
from equida.training.build import make_objective
from equida.training.config import RunConfig
from equida.training.recipe import recipe


@pytest.mark.parametrize("shape", [(3, 28, 28), (1, 56, 56), (28, 28)])
def test_samples_that_the_backbone_cannot_take(shape: tuple[int, ...]) -> None:
    config = RunConfig("nsm", recipe("digits"), backbone="lenet")
    with pytest.raises(InputError, match=r"samples are of shape .* takes \(1, 28, 28\)"):
        make_objective(config, 10, shape)


def test_the_network_of_the_digits_has_ten_classes() -> None:
    config = RunConfig("nsm", recipe("digits"), backbone="lenet")
    objective, backbone = make_objective(config, 10, (1, 28, 28))
    assert backbone is not None
    assert objective.network.classifier.weight.shape == (10, backbone.width)
