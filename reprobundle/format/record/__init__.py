"""The run record: what one run of a command was, in one JSON document.

The reference and every replay share this one type (spec.md, "Run record"). A record
names its content members (outputs, logs, the memory series) and their digests; where
it lies decides what the names are relative to: ``runs/<n>/`` inside the seal,
``replays/<record id>/`` outside it.

Numbers that may be NaN or infinite are stored as the strings ``nan``, ``inf`` and
``-inf``: JSON has no form for them. Times are integer nanoseconds of a monotonic
clock, sizes are bytes.
"""

from reprobundle.format.record.devices import (
    BadIndex,
    Devices,
    Fallback,
    Float64Search,
    Float64Site,
    MappedCall,
    OperatorForm,
    OperatorUse,
    TensorForm,
    Transfer,
    Witness,
)
from reprobundle.format.record.document import RECORD_SCHEMA, STAND_IN, Record
from reprobundle.format.record.experiment import Experiment
from reprobundle.format.record.files import (
    ContentMember,
    FileRead,
    LeftOutFile,
    WithheldFile,
)
from reprobundle.format.record.memory import (
    AllocatorCall,
    Growth,
    GrowthKind,
    InputShape,
    Memory,
    MemorySample,
    MemorySeries,
)
from reprobundle.format.record.outcome import ErrorReport, Outcome, Remark, Restart
from reprobundle.format.record.outputs import (
    ArraySummary,
    ColumnSummary,
    Output,
    OutputKind,
    OutputRole,
    RoleSource,
    RowSample,
)
from reprobundle.format.record.phases import Phase
from reprobundle.format.record.processes import Command, Placeholder, Process, Rank
from reprobundle.format.record.randomness import (
    DrawMode,
    Drawn,
    Loader,
    Randomness,
    SeedCall,
    StartTensor,
    is_chosen_seed,
)
from reprobundle.format.record.truth import LeftOperator, Promotion
from reprobundle.format.record.values import (
    Count,
    Digest,
    DigestOrEmpty,
    Fact,
    FactValue,
    Number,
    Scalar,
    as_float,
    number,
)

__all__ = [
    "RECORD_SCHEMA",
    "STAND_IN",
    "AllocatorCall",
    "ArraySummary",
    "BadIndex",
    "ColumnSummary",
    "Command",
    "ContentMember",
    "Count",
    "Devices",
    "Digest",
    "DigestOrEmpty",
    "DrawMode",
    "Drawn",
    "ErrorReport",
    "Experiment",
    "Fact",
    "FactValue",
    "Fallback",
    "FileRead",
    "Float64Search",
    "Float64Site",
    "Growth",
    "GrowthKind",
    "InputShape",
    "LeftOperator",
    "LeftOutFile",
    "Loader",
    "MappedCall",
    "Memory",
    "MemorySample",
    "MemorySeries",
    "Number",
    "OperatorForm",
    "OperatorUse",
    "Outcome",
    "Output",
    "OutputKind",
    "OutputRole",
    "Phase",
    "Placeholder",
    "Process",
    "Promotion",
    "Randomness",
    "Rank",
    "Record",
    "Remark",
    "Restart",
    "RoleSource",
    "RowSample",
    "Scalar",
    "SeedCall",
    "StartTensor",
    "TensorForm",
    "Transfer",
    "WithheldFile",
    "Witness",
    "as_float",
    "is_chosen_seed",
    "number",
]
