"""The registry of losses: each entry agrees with itself, with torch, with the searches and with the native core."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from labelwood.parts.linear import LinearConfig
from labelwood.parts.losses import LOSSES, NAMES, PRIMAL
from labelwood.parts.search import COMBINERS
from labelwood.recipes.network_settings import FinetuneConfig

KERNELS = Path(__file__).resolve().parents[1] / "native" / "linear" / "kernels.h"
MARGINS = np.array([-7.5, -1.0, -0.25, 0.0, 0.5, 0.999, 1.001, 4.0])


@pytest.mark.parametrize("name", NAMES)
def test_a_slope_is_that_of_its_value(name):
    loss, step = LOSSES[name], 1e-6
    rise = (loss.value(MARGINS + step) - loss.value(MARGINS - step)) / (2 * step)
    assert loss.slope(MARGINS) == pytest.approx(rise, abs=1e-5)


def test_losses_by_hand():
    margins = np.array([2.0, 0.5, -3.0])
    assert LOSSES["hinge"].value(margins).tolist() == [0, 0.5, 4]
    assert LOSSES["squared-hinge"].value(margins).tolist() == [0, 0.25, 16]
    assert LOSSES["logistic"].value(margins) == pytest.approx(np.log(1 + np.exp(-margins)))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("positive", "negative"), [(1.0, 3.0), (5.0, 0.5), (0.01, 80.0)])
def test_a_prior_is_where_a_numeric_minimiser_ends(name, positive, negative):
    loss = LOSSES[name]

    def cost(bias: float) -> float:
        return positive * float(loss.value(np.array(bias))) + negative * float(loss.value(np.array(-bias)))

    found = float(loss.prior(np.array(positive), np.array(negative)))
    best = minimize_scalar(cost, bounds=(-20, 20), method="bounded", options={"xatol": 1e-9})
    assert cost(found) <= best.fun + 1e-9
    assert found == pytest.approx(best.x, abs=1e-3)


@pytest.mark.parametrize("name", NAMES)
def test_a_link_is_a_combiner_and_gives_the_likelihood_that_the_loss_is_of(name):
    """exp(-loss): sigmoid of margins, or exp(-max(0, 1 - m)^p), as a search combines them."""
    link = LOSSES[name].link
    assert link in COMBINERS
    power = int(link[1]) if link.endswith("hinge") else None
    linked = 1 / (1 + np.exp(-MARGINS)) if power is None else np.exp(-(np.maximum(0, 1 - MARGINS) ** power))
    assert np.exp(-LOSSES[name].value(MARGINS)) == pytest.approx(linked)


def test_numbers_are_those_of_the_native_core():
    enum = re.search(r"enum class Loss : int \{([^}]*)\}", KERNELS.read_text(encoding="utf-8"))
    assert enum is not None
    numbers = {name.replace("_", "-"): int(n) for name, n in re.findall(r"(\w+) = (\d+)", enum.group(1))}
    assert {name: loss.native for name, loss in LOSSES.items()} == numbers


def test_settings_offer_what_is_registered():
    for config in (LinearConfig, FinetuneConfig):
        (field,) = [f for f in config.__dataclass_fields__.values() if f.name == "loss"]
        assert tuple(field.metadata["choices"]) == NAMES
    assert PRIMAL == ("squared-hinge",)


@pytest.mark.parametrize("name", NAMES)
def test_torch_computes_the_same_value_and_slope(name):
    torch = pytest.importorskip("torch")
    from labelwood.neural.training.head import loss_of

    for true in (True, False):
        sign = 1 if true else -1
        logits = torch.tensor(sign * MARGINS, requires_grad=True)
        found = loss_of(name, logits, torch.full(logits.shape, true))
        found.sum().backward()
        assert found.detach().numpy() == pytest.approx(LOSSES[name].value(MARGINS))
        assert logits.grad.numpy() == pytest.approx(sign * LOSSES[name].slope(MARGINS))


def test_at_the_corner_a_hinge_has_no_slope():
    """As in torch's relu: a margin of exactly 1 is enough."""
    torch = pytest.importorskip("torch")
    from labelwood.neural.training.head import loss_of

    logits = torch.tensor([1.0], requires_grad=True)
    loss_of("hinge", logits, torch.tensor([True])).sum().backward()
    assert logits.grad.item() == 0
    assert LOSSES["hinge"].slope(np.array([1.0])).item() == 0
