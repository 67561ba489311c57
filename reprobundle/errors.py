"""Every error this package raises, with the exit status it ends a command with.

One class per cause. Each keeps its facts as attributes, so a caller never parses a
message. Messages are one line: what, where, expected, got, and what to do next.

Exit statuses (spec.md, "Exit status"): 0, 10, 11 and 12 are verdicts and never come
from an exception; 20 is a bad call or environment, 21 a bundle that cannot be
trusted or read, 22 a command that failed under ``pack``.
"""

from __future__ import annotations

EXIT_BAD_CALL = 20
EXIT_BAD_BUNDLE = 21
EXIT_COMMAND_FAILED = 22


class ReprobundleError(Exception):
    """Base of every error this package raises on purpose.

    Attributes:
        exit_status: The status the command line ends with.
        advice: What to do next, one phrase, or an empty string.
    """

    exit_status: int = EXIT_BAD_CALL

    def __init__(self, message: str, *, advice: str = "") -> None:
        self.message = message
        self.advice = advice
        super().__init__(f"{message}; {advice}" if advice else message)


class BadCallError(ReprobundleError):
    """The call cannot be carried out as written: wrong arguments or settings."""


class EnvironmentUnusableError(ReprobundleError):
    """The machine lacks what the call needs: disk, permission, interpreter, package.

    Attributes:
        stop: The stop reason a replay record states for it; empty when the replay
            can be tried again on this machine as it is.
    """

    stop: str = ""


class LockFileError(EnvironmentUnusableError):
    """A lock file is damaged or of a version that is not understood."""


class NoResolutionError(EnvironmentUnusableError):
    """No lock for all targets could be made; its message says why."""


class UnfitPythonError(EnvironmentUnusableError):
    """No interpreter here can stand for the one that was recorded.

    Attributes:
        wanted: Version and implementation wanted, such as ``CPython 3.11``.
        found: What was found instead, one phrase for each interpreter.
    """

    stop = "platform"

    def __init__(self, message: str, *, wanted: str, found: tuple[str, ...]) -> None:
        self.wanted = wanted
        self.found = found
        super().__init__(
            message,
            advice=f"install Python {wanted.split()[-1]}, or name an interpreter of it",
        )


class MissingPackageError(EnvironmentUnusableError):
    """A locked package is served nowhere in the version and build recorded.

    Attributes:
        package: Its normalised name.
        version: The full version wanted.
        local_label: The build wanted, such as ``cpu``; empty for a plain release.
    """

    stop = "platform"

    def __init__(
        self, message: str, *, package: str, version: str, advice: str = ""
    ) -> None:
        self.package = package
        self.version = version
        self.local_label = version.partition("+")[2]
        super().__init__(message, advice=advice)


class HashMismatchError(EnvironmentUnusableError):
    """A package is served, but its archive is not the one recorded.

    Attributes:
        package: Its name, as far as the installer told it.
    """

    stop = "platform"

    def __init__(self, message: str, *, package: str, advice: str = "") -> None:
        self.package = package
        super().__init__(message, advice=advice)


class NoNetworkError(EnvironmentUnusableError):
    """Packages have to be fetched and nothing answers."""


class NoSpaceError(EnvironmentUnusableError):
    """The disk is too full.

    Attributes:
        folder: Where space is needed.
        needed_bytes: How much; 0 when only the failure is known.
        free_bytes: How much there is.
    """

    def __init__(
        self,
        message: str,
        *,
        folder: str,
        needed_bytes: int,
        free_bytes: int,
        advice: str = "",
    ) -> None:
        self.folder = folder
        self.needed_bytes = needed_bytes
        self.free_bytes = free_bytes
        super().__init__(message, advice=advice)


class NoPermissionError(EnvironmentUnusableError):
    """A folder cannot be written with the rights this process has.

    Attributes:
        folder: The folder.
    """

    def __init__(self, message: str, *, folder: str, advice: str = "") -> None:
        self.folder = folder
        super().__init__(message, advice=advice)


class RemoteFileError(EnvironmentUnusableError):
    """A file that lies elsewhere cannot be read there, or not as it has to be.

    Attributes:
        address: Where it lies, without what must not be shown.
    """

    def __init__(self, address: str, message: str, *, advice: str = "") -> None:
        self.address = address
        super().__init__(f"{address}: {message}", advice=advice)


class ChangedElsewhereError(RemoteFileError):
    """A file that lies elsewhere was replaced while it was read."""


class NoPartsError(RemoteFileError):
    """A server gives a file as a whole only.

    Attributes:
        size_bytes: Size of the file; None when the server does not tell it.
    """

    def __init__(
        self, address: str, message: str, *, size_bytes: int | None, advice: str = ""
    ) -> None:
        self.size_bytes = size_bytes
        super().__init__(address, message, advice=advice)


class InstallFailedError(EnvironmentUnusableError):
    """The installer failed for a reason of its own.

    Attributes:
        log: Path of its whole output.
    """

    def __init__(self, message: str, *, log: str, advice: str = "") -> None:
        self.log = log
        super().__init__(message, advice=advice)


class DataRuleError(BadCallError):
    """The policy sealed in a bundle is against what is asked for with its data."""


class JobRunningError(BadCallError):
    """A replay of the same bundle is already running in the background.

    Attributes:
        job: Name of the running job.
    """

    def __init__(self, message: str, *, job: str, advice: str = "") -> None:
        self.job = job
        super().__init__(message, advice=advice)


class UnknownJobError(BadCallError):
    """There is no background job of that name."""


class PackRefusedError(ReprobundleError):
    """``pack`` will not write a bundle that could not be trusted or compared."""


class SensitiveContentError(PackRefusedError):
    """What would be sealed holds secrets or personal data that were not allowed.

    Attributes:
        places: ``KIND@PATH`` of each place; what stands there is told nowhere.
    """

    def __init__(
        self, message: str, *, places: tuple[str, ...], advice: str = ""
    ) -> None:
        self.places = places
        super().__init__(message, advice=advice)


class CommandFailedError(ReprobundleError):
    """The user's command failed under ``pack``; no bundle was written.

    Attributes:
        status: The command's exit status; negative for a signal number.
    """

    exit_status = EXIT_COMMAND_FAILED

    def __init__(self, message: str, *, status: int, advice: str = "") -> None:
        self.status = status
        super().__init__(message, advice=advice)


class NotExportedError(ReprobundleError):
    """A bundle was altered or lacks its documents: it is carried nowhere else."""

    def __init__(self, message: str, *, is_altered: bool, advice: str = "") -> None:
        self.exit_status = EXIT_BAD_BUNDLE if is_altered else EXIT_BAD_CALL
        super().__init__(message, advice=advice)


class BundleError(ReprobundleError):
    """A bundle or a part of it is unreadable, unsafe or altered.

    Attributes:
        rule: The number of the rule in spec.md that is broken, such as ``R-4.3``.
        where: The member, entry or byte position concerned.
        file: Name of the file that could not be opened; empty if it is none of these.
    """

    exit_status = EXIT_BAD_BUNDLE
    file = ""

    def __init__(
        self, message: str, *, rule: str, where: str = "", advice: str = ""
    ) -> None:
        self.rule = rule
        self.where = where
        prefix = f"{where}: " if where else ""
        super().__init__(f"{prefix}{message} [{rule}]", advice=advice)


class NotABundleError(BundleError):
    """The file is no bundle at all: another format, empty, or cut short."""


class InlineTextError(BundleError):
    """A text is no bundle written as text, or not all of one."""


class UnsupportedVersionError(BundleError):
    """The bundle follows a newer format than this reader knows.

    Attributes:
        version: The format version the bundle states.
    """

    def __init__(self, message: str, *, version: str, rule: str) -> None:
        self.version = version
        super().__init__(message, rule=rule, advice="update reprobundle")


class StructureError(BundleError):
    """The container's bytes contradict each other or hide something."""


class UnsafeNameError(BundleError):
    """A member name could escape its folder or collide on another system.

    Attributes:
        name: The offending name.
    """

    def __init__(self, name: str, message: str, *, rule: str, advice: str = "") -> None:
        self.name = name
        super().__init__(
            f"unsafe member name {name!r}: {message}", rule=rule, advice=advice
        )


class LimitError(BundleError):
    """A stated size, count or depth is beyond the format's limits."""


class DocumentError(BundleError):
    """A JSON document inside the bundle breaks its schema or canonical form."""


class DigestError(BundleError):
    """Content does not have the digest that was sealed.

    Attributes:
        expected: The sealed BLAKE3 digest, 64 hexadecimal digits.
        got: The digest of the bytes found.
    """

    def __init__(self, where: str, *, expected: str, got: str, rule: str) -> None:
        self.expected = expected
        self.got = got
        super().__init__(
            f"blake3 is {got[:12]}…, sealed was {expected[:12]}…",
            rule=rule,
            where=where,
            advice="the content was altered or damaged; obtain the bundle again",
        )


class MissingMemberError(BundleError):
    """A member that the manifest lists, or that was asked for, is not there."""


class AbsentMemberError(MissingMemberError):
    """A member lies in the other part of the bundle, which is not here.

    The part is as it must be, so its status is not that of a bad bundle.
    """

    exit_status = EXIT_BAD_CALL


class UnreadableOutputError(ReprobundleError):
    """An output's content is not what its format promises.

    It never ends a command: the output is then handled as plain bytes, and the
    message is the stated reason.
    """


class DecoderMissingError(ReprobundleError):
    """A file could be read, but an optional part of the installation is not there.

    It never ends a command: the output is then not compared, and the message is the
    stated reason.
    """
