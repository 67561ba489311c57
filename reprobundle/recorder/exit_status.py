"""Leave the process's exit status where the launcher finds it.

Inside Python nothing tells a bare ``raise SystemExit(3)`` from falling off the end:
the interpreter handles that exception after the last of our code has run. The C
library knows: ``on_exit(3)`` of glibc calls a C function with the status, and
``putw(3)`` is one that takes an int and a stream. Its stream here is a page of memory
that is shared with a file, so no Python runs, and no descriptor is open that a script
could close.

Other C libraries have no ``on_exit``: there the status stays unknown unless
`ending` saw it.
"""

# ruff: noqa: ANN401 -- the C library's functions have no types
from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# No C program ends with it: exit(3) is only ever given what fits into 16 bits.
NOT_WRITTEN = -(2**31)
_INT_BYTES = 4
# fmemopen ends what it holds with a zero byte; that must not be one of the status.
_STREAM_BYTES = 8
_UNBUFFERED = 2
# The numbers of mmap(2) below are those of these machines.
_MACHINES = ("x86_64", "aarch64")
_READ_WRITE, _SHARED, _PRIVATE, _FIXED, _ANONYMOUS = 3, 1, 2, 0x10, 0x20
_MAP_FAILED = 2**64 - 1


class ExitStatus:
    """The page that the exit status of this process will be written to."""

    def __init__(self) -> None:
        self._libc: CLibrary | None = None
        self._address = 0

    def install(self, path: str) -> None:
        """Have the C library write this process's exit status to a new file.

        Where the C library offers no way to do so, nothing happens.

        Args:
            path: Of the file: one int in the machine's byte order, `NOT_WRITTEN`
                until the process exits.
        """
        if not sys.platform.startswith("linux") or os.uname().machine not in _MACHINES:
            return
        libc = CLibrary()
        if not libc.has("on_exit") or not libc.has("gnu_get_libc_version"):
            return
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
        try:
            os.ftruncate(descriptor, _STREAM_BYTES)
            address = libc.map_page(None, _SHARED, descriptor)
            stream = libc.open_stream(address, _STREAM_BYTES)
            # After fmemopen, which clears the first byte.
            sentinel = NOT_WRITTEN.to_bytes(_INT_BYTES, sys.byteorder, signed=True)
            os.pwrite(descriptor, sentinel, 0)
        finally:
            os.close(descriptor)
        libc.at_exit("putw", stream)
        self._libc, self._address = libc, address

    def continue_in_fork(self) -> None:
        """Put a page of its own in the place of the parent's.

        The C library's list of exit functions was inherited and cannot be shortened.
        """
        if self._libc is not None:
            self._libc.map_page(self._address, _PRIVATE | _FIXED | _ANONYMOUS, -1)


class CLibrary:
    """The few functions of the C library that are needed here.

    The module ``ctypes`` is not imported for them: it imports ``struct``, and a
    script may have a module of that name.
    """

    def __init__(self) -> None:
        import _ctypes

        self._native: Any = _ctypes
        self._handle = self._native.dlopen(None, 0)
        self._types = {
            code: type(f"Simple_{code}", (_ctypes._SimpleCData,), {"_type_": code})
            for code in ("i", "l", "L", "P", "z")
        }

    def has(self, name: str) -> bool:
        """Tell whether the C library has a function of this name."""
        try:
            return bool(self._native.dlsym(self._handle, name))
        except OSError:
            return False

    def _function(self, name: str, result: str, arguments: str) -> Any:
        kind = type(
            "Function",
            (self._native.CFuncPtr,),
            {
                "_flags_": self._native.FUNCFLAG_CDECL,
                "_restype_": self._types[result],
                "_argtypes_": tuple(self._types[code] for code in arguments),
            },
        )
        return kind(self._native.dlsym(self._handle, name))

    def map_page(self, address: int | None, flags: int, descriptor: int) -> int:
        """Call mmap(2) for reading and writing and return the address.

        Not by the module ``mmap``: the interpreter would unmap its object before the
        exit functions run.
        """
        mmap = self._function("mmap", "P", "PLiiil")
        place = mmap(address, _STREAM_BYTES, _READ_WRITE, flags, descriptor, 0)
        if place in (None, _MAP_FAILED):
            message = "the page for the exit status cannot be mapped"
            raise OSError(message)
        return int(place)

    def open_stream(self, address: int, size_bytes: int) -> int:
        """Return an unbuffered stream that writes to memory."""
        stream = self._function("fmemopen", "P", "PLz")(address, size_bytes, b"w")
        if not stream:
            message = "no stream can be opened on memory"
            raise OSError(message)
        self._function("setvbuf", "i", "PziL")(stream, None, _UNBUFFERED, 0)
        return int(stream)

    def at_exit(self, function: str, stream: int) -> None:
        """Have `function` called with the exit status and `stream`."""
        address = self._native.dlsym(self._handle, function)
        self._function("on_exit", "i", "PP")(address, stream)
