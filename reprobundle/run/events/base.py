"""What all events have in common."""

import msgspec


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="event"):
    """Base of all events; `t_ns` is when it was written."""

    t_ns: int
