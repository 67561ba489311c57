"""``reprobundle export``: the group of other forms a bundle can take."""

from __future__ import annotations

from importlib import import_module

import click

# Form: the module of this package that holds its command, and the command's name there.
FORMS = {
    "inline": ("export_inline", "inline"),
    "ro-crate": ("export_papers", "ro_crate"),
    "bagit": ("export_papers", "bagit"),
    "in-toto": ("export_papers", "in_toto"),
    "badge": ("export_papers", "badge"),
}


class _Forms(click.Group):
    """A group that imports a form's command when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return all forms."""
        return list(FORMS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the form's command, or None when there is none of that name."""
        if cmd_name not in FORMS:
            return None
        module, name = FORMS[cmd_name]
        command = getattr(import_module(f"reprobundle.cli.{module}"), name)
        return command if isinstance(command, click.Command) else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the form's command; without a form say which there are."""
        if args and args[0] not in FORMS:
            forms = ", ".join(FORMS)
            raise click.UsageError(
                f"{args[0]!r} is no form: choose from {forms}, such as "
                f"reprobundle export inline BUNDLE",
                ctx,
            )
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take ``export BUNDLE --inline`` for ``export inline BUNDLE``."""
        if "--inline" in args:
            args = ["inline", *(one for one in args if one != "--inline")]
        return super().parse_args(ctx, args)


@click.group(cls=_Forms)
def export() -> None:
    """Write a bundle in another form: text to paste, a crate, a bag, a badge.

    `export BUNDLE --inline` is the same as `export inline BUNDLE`.
    """
