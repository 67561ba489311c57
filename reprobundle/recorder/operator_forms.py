"""Note the shapes, strides and dtypes that decide how MPS runs an operator.

Some kernels leave for the CPU by themselves above a size or for a dtype, and some are
known to be wrong for a layout. Which, differs by version of torch; whoever has the
table judges. Here only the forms of these few operators are kept, once for each place.
"""

# ruff: noqa: ANN401 -- objects of the user's libraries pass through here
from __future__ import annotations

from .callers import caller
from .evidence import Observer
from .steered import HOST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from .operators import OperatorCall
    from .phases import Clock
    from .session import Session

# Those of reprobundle/verify/mps_kernels.py; a test holds both together.
WATCHED = frozenset(
    {
        "aten::_adaptive_avg_pool2d",
        "aten::_linalg_eigh",
        "aten::_linalg_svd",
        "aten::adaptive_max_pool2d",
        "aten::addmm",
        "aten::avg_pool2d",
        "aten::baddbmm",
        "aten::bmm",
        "aten::convolution",
        "aten::convolution_overrideable",
        "aten::embedding",
        "aten::index_select",
        "aten::linalg_qr",
        "aten::mm",
        "aten::native_batch_norm_backward",
        "aten::nonzero",
    }
)
_MOST_FORMS = 400


class OperatorForms(Observer):
    """Count the forms in which the watched operators were called on an accelerator.

    Args:
        session: Where the events go.
        clock: Knows the open phase.
        holds: In a forecast, tells whether a tensor would be on one.
        layer_of: In a forecast, names what MPS is asked for in the place of a product;
            it is then never asked for the product in this form.
    """

    name = "forms"
    sees_operators = True

    def __init__(
        self,
        session: Session,
        clock: Clock,
        holds: Callable[[Any], bool] | None = None,
        layer_of: Callable[[OperatorCall], str] | None = None,
    ) -> None:
        self._session = session
        self._holds = holds
        self._layer_of = layer_of
        self._clock = clock
        self._torch: Any = None
        self._forms: dict[tuple[Any, ...], int] = {}
        self._lost = 0

    def start(self, torch: Any) -> None:
        """Remember torch."""
        self._torch = torch

    def operator(self, call: OperatorCall) -> None:
        """Count the form of one call, if its operator is one of the few."""
        schema = call.operator._schema
        if schema.name not in WATCHED:
            return
        tensors = tuple(self._tensors(call.arguments))
        device = next(filter(None, map(self._device, tensors)), "")
        if not device or (self._layer_of is not None and self._layer_of(call)):
            return
        where = caller(self._session.project)
        shown = "" if "/site-packages/" in where else where
        options = tuple(_options(schema, call))
        form = tuple(_form(tensor) for tensor in tensors)
        key = (str(call.operator), device, form, options, shown, call.phase)
        if key not in self._forms and len(self._forms) >= _MOST_FORMS:
            self._lost += 1
            return
        self._forms[key] = self._forms.get(key, 0) + 1

    def _tensors(self, values: Any) -> Iterator[Any]:
        for value in values:
            if isinstance(value, self._torch.Tensor):
                yield value

    def _device(self, tensor: Any) -> str:
        """Return the accelerator that a tensor is on, or nothing."""
        if self._holds is not None:
            return "steered" if self._holds(tensor) else ""
        kind: str = tensor.device.type
        return "" if kind in HOST else kind

    def finish(self) -> None:
        """Send all forms."""
        events: list[dict[str, object]] = [
            {
                "event": "operator_form",
                "operator": operator,
                "device": device,
                "tensors": [
                    {"dtype": dtype, "shape": shape, "stride": stride}
                    for dtype, shape, stride in form
                ],
                "options": dict(options),
                "where": where,
                "phase": phase,
                "count": count,
            }
            for (
                (operator, device, form, options, where, phase),
                count,
            ) in self._forms.items()
        ]
        if self._lost:
            message = f"{self._lost} further forms of operators were not kept"
            self._session.trouble("operator forms", message)
        self._session.emit_all(events)


def _form(tensor: Any) -> tuple[str, tuple[int, ...], tuple[int, ...]]:
    strided = str(tensor.layout) == "torch.strided"
    strides = tuple(tensor.stride()) if strided else ()
    return str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape), strides


def _options(schema: Any, call: OperatorCall) -> Iterator[tuple[str, str]]:
    """Yield the whole numbers among the arguments, and a pool's size, by name."""
    names = (argument.name for argument in schema.arguments)
    given = {**dict(zip(names, call.arguments, strict=False)), **call.named}
    for name, value in given.items():
        if isinstance(value, int):
            yield name, str(value)
        elif name == "output_size":
            yield name, ",".join(map(str, value))
