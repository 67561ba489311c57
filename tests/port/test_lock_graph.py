"""A package that macOS has no file of blocks only where a Mac would install it."""

from __future__ import annotations

import pytest

from reprobundle.port.scan.scan import scan

HEAD = 'version = 1\nrequires-python = ">=3.11"\n'
LINUX = "sys_platform == 'linux'"


def package(name, *edges, version="1.0", more="", source='registry = "x"'):
    wheel = f"{name}-{version}-cp311-cp311-manylinux_2_28_x86_64.whl"
    needs = "".join(f"    {edge},\n" for edge in edges)
    return (
        f'\n[[package]]\nname = "{name}"\nversion = "{version}"\n'
        f"source = {{ {source} }}\ndependencies = [\n{needs}]\n{more}"
        + (
            f'wheels = [{{ url = "https://x/{wheel}" }}]\n'
            if "registry" in source
            else ""
        )
    )


def edge(name, marker="", more=""):
    marked = f', marker = "{marker}"' if marker else ""
    return f'{{ name = "{name}"{marked}{more} }}'


def project(*edges, more=""):
    return package("mine", *edges, more=more, source='virtual = "."')


def standings(folder, *parts):
    (folder / "uv.lock").write_text(HEAD + "".join(parts))
    return {f.term: (f.standing, f.because) for f in scan(folder).findings}


def test_what_the_project_needs_everywhere_blocks(tmp_path):
    found = standings(
        tmp_path, project(edge("a")), package("a", edge("k")), package("k")
    )
    assert found["k"][0] == "blocker"
    assert found["k"][1].endswith("wanted by a")
    assert found["a"][0] == "blocker"


def test_an_edge_for_another_system_leads_nowhere(tmp_path):
    found = standings(
        tmp_path, project(edge("a", LINUX)), package("a", edge("k")), package("k")
    )
    assert found["a"] == ("optional", f"is not wanted on macOS: {LINUX}")
    assert found["k"] == ("optional", "nothing wants it")


def test_a_second_way_without_a_marker_blocks(tmp_path):
    found = standings(
        tmp_path,
        project(edge("k", LINUX), edge("b")),
        package("b", edge("k")),
        package("k"),
    )
    assert found["k"][0] == "blocker"


@pytest.mark.parametrize(
    ("table", "kind"),
    [("optional-dependencies", "extra"), ("dev-dependencies", "group")],
)
def test_an_extra_or_group_alone_is_optional(table, kind, tmp_path):
    more = f"\n[package.{table}]\nfast = [\n    {edge('k')},\n]\n"
    found = standings(tmp_path, project(more=more), package("k"))
    assert found["k"] == ("optional", f"is wanted by the {kind} fast only")


def test_an_extra_of_a_dependency_that_is_asked_for_is_wanted(tmp_path):
    more = f"\n[package.optional-dependencies]\ncuda = [\n    {edge('k')},\n]\n"
    asked = edge("a", more=', extra = ["cuda"]')
    first = tmp_path / "with"
    second = tmp_path / "without"
    for folder in (first, second):
        folder.mkdir()
    library = package("a", source='git = "x"', more=more)
    assert standings(first, project(asked), library, package("k"))["k"][0] == "blocker"
    found = standings(second, project(edge("a")), library, package("k"))
    assert found["k"][0] == "optional"


def test_of_two_versions_the_macs_counts(tmp_path):
    other = f'resolution-markers = [\n    "{LINUX}",\n]\n'
    mac = "resolution-markers = [\n    \"sys_platform == 'darwin'\",\n]\n"
    linux = package("k", version="1.0+cu128", more=other)
    found = standings(
        tmp_path,
        project(edge("k", "sys_platform == 'darwin'"), edge("k", LINUX)),
        package("k", version="1.0", more=mac, source='git = "x"'),
        linux,
    )
    assert found["k"][0] == "optional"


def test_a_ring_of_packages_ends(tmp_path):
    found = standings(
        tmp_path,
        project(edge("a")),
        package("a", edge("b")),
        package("b", edge("a"), edge("k")),
        package("k"),
    )
    assert found["k"][0] == "blocker"


def test_a_lock_without_a_project_of_its_own_is_left_to_be_checked(tmp_path):
    found = standings(tmp_path, package("k"))
    assert found["k"][0] == "check"
