"""Other content for an output: other values, NaN, another shape, nothing at all."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import TYPE_CHECKING

from reprobundle.format.policy import Policy
from reprobundle.format.record import Output, Record
from reprobundle.verify.rules import ignores, rule_for
from reprobundle.verify.selftest.mutation import NotPossibleError

if TYPE_CHECKING:
    import numpy as np

    Change = Callable[[np.ndarray], np.ndarray]
    Changed = Callable[[Output, bytes, Change], bytes]
    Json = dict[str, "Json"] | list["Json"] | bool | float | str | None

_FORMATS = ("npy", "safetensors")
_FLOATS = ("float16", "float32", "float64")


def float_output(record: Record, policy: Policy) -> Output:
    """Return the first compared output with a float array that is not empty.

    Raises:
        NotPossibleError: There is none.
    """
    for output in record.outputs:
        rule = rule_for(policy, output.name)
        if not _is_readable(output) or (rule is not None and not rule.compare):
            continue
        if any(_is_changeable(array.dtype, array.shape) for array in output.arrays):
            return output
    message = "no output is a float array in an npy, safetensors or checkpoint file"
    raise NotPossibleError(message)


def _is_readable(output: Output) -> bool:
    """Whether the arrays can be read without torch: a checkpoint's own never are."""
    if output.stored not in ("here", "sealed"):
        return False
    return output.format in _FORMATS or bool(output.arrays_member)


def arrays_member(output: Output) -> str:
    """Return the member that holds the arrays: of a checkpoint the exported ones."""
    return output.arrays_member or output.member


def with_array_changed(output: Output, data: bytes, change: Change) -> bytes:
    """Return `data` with its first float array changed."""
    import numpy as np

    if output.format == "npy":
        array = np.load(io.BytesIO(data), allow_pickle=False)
        stream = io.BytesIO()
        np.save(stream, change(array))
        return stream.getvalue()
    from safetensors.numpy import load, save

    arrays = load(data)
    name = next(
        array.name
        for array in output.arrays
        if _is_changeable(array.dtype, array.shape)
    )
    return bytes(save({**arrays, name: change(arrays[name])}))


def with_every_array_changed(output: Output, data: bytes, change: Change) -> bytes:
    """Return `data` with all of its arrays changed.

    Raises:
        NotPossibleError: Not all of them are float arrays that are not empty.
    """
    if not all(_is_changeable(array.dtype, array.shape) for array in output.arrays):
        raise NotPossibleError(f"{output.name} holds other arrays than floats")
    if output.format == "npy":
        return with_array_changed(output, data, change)
    from safetensors.numpy import load, save

    return bytes(save({name: change(array) for name, array in load(data).items()}))


def with_sample_changed(data: bytes) -> bytes:
    """Return a sample of an array with another value at its first place.

    Raises:
        NotPossibleError: It holds no floats that numpy can read.
    """
    from safetensors.numpy import load, save

    try:
        held = load(data)
    except KeyError as error:
        raise NotPossibleError(
            "the sample is of a dtype numpy does not know"
        ) from error
    for name, array in held.items():
        if name.endswith(".values") and array.dtype.name in _FLOATS and array.size:
            return bytes(save({**held, name: larger(array)}))
    raise NotPossibleError("no sample holds floats")


def document_output(record: Record, policy: Policy) -> Output:
    """Return the first compared JSON output.

    Raises:
        NotPossibleError: There is none.
    """
    for output in record.outputs:
        rule = rule_for(policy, output.name)
        held = output.stored in ("here", "sealed")
        if held and output.format == "json" and (rule is None or rule.compare):
            return output
    raise NotPossibleError("no output whose content is held is a JSON document")


def with_number_changed(output: Output, data: bytes, policy: Policy) -> bytes:
    """Return a JSON document with its first number that counts made larger.

    Raises:
        NotPossibleError: It holds no such number.
    """
    document = json.loads(data)
    if isinstance(document, float):
        return json.dumps(document * 1.5 + 1).encode()
    if not _raise_first(document, ignores(policy, output.name), ()):
        raise NotPossibleError("no JSON output holds a number that counts")
    return json.dumps(document).encode()


def _raise_first(
    node: dict[str, Json] | list[Json],
    is_ignored: Callable[[tuple[str, ...]], bool],
    keys: tuple[str, ...],
) -> bool:
    places = node.items() if isinstance(node, dict) else enumerate(node)
    for key, value in list(places):
        path = (*keys, key) if isinstance(key, str) else keys
        if is_ignored(path):
            continue
        if isinstance(value, (dict, list)):
            if _raise_first(value, is_ignored, path):
                return True
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            node[key] = value * 1.5 + 1  # type: ignore[call-overload,index]
            return True
    return False


def larger(array: np.ndarray) -> np.ndarray:
    """Return the array with its first element far outside any sound tolerance."""
    return _with_first(array, abs(float(array.flat[0])) * 1.5 + 1)


def four_in_ten_wrong(array: np.ndarray) -> np.ndarray:
    """Return the array with the last four of every ten elements far off.

    Raises:
        NotPossibleError: It has fewer than ten.
    """
    import numpy as np

    if array.size < 10:
        raise NotPossibleError("no output has ten elements")
    changed = np.array(array)
    at = np.arange(array.size) % 10 > 5
    changed.reshape(-1)[at] = 1e4
    return changed


def next_value(array: np.ndarray) -> np.ndarray:
    """Return the array with the next larger number as its first element."""
    import numpy as np

    changed = np.array(array)
    changed.flat[0] = np.nextafter(changed.flat[0], changed.dtype.type(np.inf))
    return changed


def with_nan(array: np.ndarray) -> np.ndarray:
    """Return the array with NaN as its first element."""
    return _with_first(array, float("nan"))


def with_axis(array: np.ndarray) -> np.ndarray:
    """Return the same values in a shape of one axis more."""
    import numpy as np

    return np.asarray(array[None])


def wider(array: np.ndarray) -> np.ndarray:
    """Return the same values in another dtype."""
    import numpy as np

    return np.asarray(array, np.float32 if array.dtype == np.float64 else np.float64)


def zeros(array: np.ndarray) -> np.ndarray:
    """Return zeros in their place."""
    import numpy as np

    return np.zeros(array.shape, array.dtype)


def _with_first(array: np.ndarray, value: float) -> np.ndarray:
    import numpy as np

    changed = np.array(array)
    changed.flat[0] = value
    return changed


def _is_changeable(dtype: str, shape: tuple[int, ...]) -> bool:
    return dtype in _FLOATS and 0 not in shape
