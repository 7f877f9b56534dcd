"""What a repository's Cargo.toml files say: which crates there are, and by which names they know each other."""

from __future__ import annotations

import posixpath
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from repo2ctx.languages import RepoTree, join


@dataclass(eq=False)
class Manifest:
    """A Cargo.toml, or the lack of one."""

    folder: str
    data: dict[str, Any] | None  # None: there is none, or it cannot be read
    depends: dict[str, str] = field(default_factory=dict)  # name in code -> folder of the crate's manifest
    old: bool = False  # edition 2015

    @cached_property
    def library_name(self) -> str:
        name = _table(self.data, "lib").get("name") or _table(self.data, "package").get("name")
        return str(name or posixpath.basename(self.folder)).replace("-", "_")


def _table(value: object, *keys: str) -> dict[str, Any]:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def read_manifests(tree: RepoTree) -> dict[str, Manifest]:
    """Folder -> its Cargo.toml, dependencies on crates of the repository resolved."""
    found: dict[str, Manifest] = {}
    for path in tree.configs("Cargo.toml"):
        try:
            data = tomllib.loads(tree.text(path) or "")
        except (ValueError, RecursionError):
            data = None
        found[posixpath.dirname(path)] = Manifest(posixpath.dirname(path), data)
    for manifest in found.values():
        workspace = _workspace(found, manifest)
        edition = _table(manifest.data, "package").get("edition", "2015")
        if isinstance(edition, dict):
            edition = _table(workspace.data, "workspace", "package").get("edition", "2015")
        manifest.old = manifest.data is not None and edition == "2015"
        for holder in (manifest.data, *_table(manifest.data, "target").values()):
            for kind in ("dependencies", "dev-dependencies", "build-dependencies"):
                for name, wanted in _table(holder, kind).items():
                    folder = _dependency(manifest, workspace, name, wanted)
                    if folder in found:
                        manifest.depends[name.replace("-", "_")] = folder
    for manifest in found.values():
        _use_library_names(found, manifest)
    return found


def _workspace(manifests: Mapping[str, Manifest], manifest: Manifest) -> Manifest:
    folder = manifest.folder
    while True:
        if folder in manifests and _table(manifests[folder].data, "workspace"):
            return manifests[folder]
        if not folder:
            return manifest
        folder = posixpath.dirname(folder)


def _dependency(manifest: Manifest, workspace: Manifest, name: str, wanted: object) -> str | None:
    """The folder of a dependency that the manifest places in the repository."""
    table, base = _table(wanted), manifest.folder
    if table.get("workspace") is True:
        table, base = _table(workspace.data, "workspace", "dependencies", name), workspace.folder
    path = table.get("path")
    if not isinstance(path, str):
        package = table.get("package", name)
        patches = (_table(source) for source in _table(workspace.data, "patch").values())
        path = next((p for p in (_table(patch, str(package)).get("path") for patch in patches) if p), None)
        base = workspace.folder
    return join(base, path) if isinstance(path, str) else None


def _use_library_names(manifests: Mapping[str, Manifest], manifest: Manifest) -> None:
    """A dependency that is not renamed goes by its library's name, which need not be the package's."""
    named: dict[str, str] = {}
    for name, folder in manifest.depends.items():
        other = manifests[folder]
        package = str(_table(other.data, "package").get("name", "")).replace("-", "_")
        named[other.library_name if name == package else name] = folder
    manifest.depends = named


def library(manifest: Manifest) -> str | None:
    path = _table(manifest.data, "lib").get("path")
    return join(manifest.folder, path if isinstance(path, str) else "src/lib.rs")


def entry_points(manifest: Manifest, roots: list[str]) -> list[str]:
    """Those of a package's root files that are its library's and its programs'."""
    usual = {library(manifest), join(manifest.folder, "src/main.rs")}
    programs = manifest.data.get("bin") if manifest.data else None
    named = (_table(program).get("path") for program in (programs if isinstance(programs, list) else ()))
    usual.update(join(manifest.folder, path) for path in named if isinstance(path, str))
    folder = posixpath.join(manifest.folder, "src/bin")
    return [path for path in roots if path in usual or path.startswith(f"{folder}/")]


def targets(tree: RepoTree, manifest: Manifest, mains: Mapping[str, list[str]]) -> list[str]:
    """The root files of the crates that Cargo builds for a manifest. `mains`: folder -> main.rs in folders in it."""
    data = manifest.data
    if data is not None and not _table(data, "package"):
        return []
    build = _table(data, "package").get("build")
    wanted = [library(manifest), *(join(manifest.folder, name) for name in ("src/main.rs", "build.rs"))]
    wanted += [join(manifest.folder, build)] if isinstance(build, str) else []
    for kind, folder in (("bin", "src/bin"), ("test", "tests"), ("example", "examples"), ("bench", "benches")):
        listed = data.get(kind) if data is not None else None
        for target in listed if isinstance(listed, list) else ():
            path = _table(target).get("path")
            wanted += [join(manifest.folder, path)] if isinstance(path, str) else []
        home = posixpath.join(manifest.folder, folder)
        wanted += [path for path in tree.by_directory.get(home, ()) if path.endswith(".rs")]
        wanted += mains.get(home, ())
    return list(dict.fromkeys(path for path in wanted if path is not None and path in tree.paths))
