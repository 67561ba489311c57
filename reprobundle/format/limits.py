"""Sizes and counts no bundle may exceed (spec.md, "Limits").

A reader compares every stated size with these before it allocates anything.
"""

from __future__ import annotations

MEMBER_COUNT = 100_000
ENTRY_COUNT = 200_000
"""Sealed members and unsealed entries together."""

REPLAY_COUNT = 1_000
ACCEPTANCE_COUNT = 1_000
"""Each is judged anew by every verification, and derived or compared for it."""

CHUNK_BYTES = 4 << 20
"""Plain bytes in one chunk: the unit that is compressed, hashed and read alone."""

FRAME_BYTES = CHUNK_BYTES + (64 << 10)
"""Stored bytes of one zstd frame; incompressible content grows by far less."""

WINDOW_BYTES = 8 << 20
"""Memory a frame may ask a decoder to keep."""

RAW_BYTES = 16 << 10
"""Content up to this size is stored as it is, for readers without zstd."""

ALIGN_BYTES = 64
"""Content above `RAW_BYTES` that is stored as it is starts at a multiple of this."""

DOCUMENT_BYTES = 64 << 20
DOCUMENT_DEPTH = 64
DOCUMENT_VALUES = 2_000_000
"""A value takes up to 50 times its bytes in memory."""

DIRECTORY_BYTES = 64 << 20
FILE_BYTES = (1 << 53) - 1
"""Largest size a JSON reader of any language holds exactly."""

NAME_BYTES = 1024
NAME_LEVELS = 32
COMPONENT_BYTES = 255
FOLDER_COUNT = 200_000
"""Folders that all names lie in; each is kept by name to find its twins."""
