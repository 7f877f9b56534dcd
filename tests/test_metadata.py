"""Descriptions in manifests: all of them are read, and emptied without touching anything else."""

import json
import time

import pytest

from repo2ctx.metadata import TARGET_MANIFESTS, descriptions, emptied, is_manifest

SAID = "A small index of plain-text notes"
LONG = "It reads folders of notes.\n\nIt finds the words in them."
SPACED = LONG.replace("\n", "\n  ").replace("  \n", "\n")

# path -> text, where <S> stands for the short description, <L> for the long one with both indented, and what is read
CASES: list[tuple[str, str, list[str]]] = [
    ("pyproject.toml", '[project]\nname = "x"\ndescription = "<S>"\nversion = "1"\n', [SAID]),
    ("a/pyproject.toml", "[tool.poetry]\ndescription = '<S>'  # \"so\"\n[a]\ndescription = \"another text of it\"\n", [SAID]),
    ("pyproject.toml", '[project]\nreadme = {text = """<L>""", content-type = "text/plain"}\ndescription = "<S>"\n', [SAID, SPACED]),
    ("pyproject.toml", 'project.description = "<S>"\nx = [{description = "n"}, "]"]\n[project.readme]\ntext = "a text of it"\n', [SAID, "a text of it"]),
    ("setup.cfg", "[metadata]\nname = x\ndescription = <S>\nversion = 1\n[x]\ndescription = no\n", [SAID]),
    ("setup.cfg", "[metadata]\r\nsummary: <S>\r\nlong_description =\r\n  Reads notes.\r\n\r\n  # no\r\n  And more.\r\nx = 1\r\n", [SAID, "Reads notes.\n\nAnd more."]),
    ("setup.py", 'import os\nfrom setuptools import setup\nsetup(name="x", description="<S>", version="1")\n', [SAID]),
    ("setup.py", 'D = "<S>"\nsetup(description=D, long_description="""<L>""", é="ü")\n', [SAID, LONG]),
    ("setup.py", 'é = dict(description=("A small index "  # ü\n  "of plain-text notes"))\nsetuptools.setup(**é)\n', [SAID]),
    ("setup.py", '"""<S>"""\nk = {}\nk["description"] = __doc__.strip()\nsetup(**{"name": "x"}, **k)\n', [SAID]),
    ("setup.py", 'setup(long_description=open("README.md").read(), description=f"{x} of plain-text notes")\n', []),
    ("package.json", '{\n\t"name": "x",\n\t"x": {"description": "something else"},\n\t"description": "<S>"\n}', [SAID]),
    ("package.json", json.dumps({"description": 'Says "hi" \\ to é'}), ['Says "hi" \\ to é']),
    ("deno.jsonc", '{ // "description": "no"\n "description": /* " */ "<S>", }', [SAID]),
    ("composer.json", '{"description":"<S>","require":[{"description":"n"}]}', [SAID]),
    ("Cargo.toml", '[package]\nname = "x"\ndescription = """\n<S>"""\nversion = "1"\n', [SAID]),
    ("Cargo.toml", '[workspace.package]\ndescription = "<S>"\n[package]\ndescription.workspace = true\n', [SAID]),
    ("pom.xml", '<?xml version="1.0" encoding="ISO-8859-1"?>\n<project xmlns="http://maven.example">\n<!-- é <description> -->\n<description>\n <S>\n</description><x><description>n</description></x></project>', [SAID]),
    ("pom.xml", '<m:project xmlns:m="a" b=">">\n<m:description c=">"><![CDATA[<S> & <b>]]></m:description></m:project>', [SAID + " & <b>"]),
    ("pom.xml", '<!DOCTYPE project [<!ENTITY a "b">]><project><description>&a; is this text</description></project>', []),
    ("build.gradle", "// description = 'no'\ntask x { description = 'of the task' }\ndescription '<S>'\n", [SAID]),
    ("build.gradle.kts", 'publishing { pom {\n  description.set("<S>")\n} }\ntasks.register("a") {\n  description = "of the task"\n}\n', [SAID]),
    ("build.gradle", "description = '''<L>'''\n/* description = 'no' */\nproject.description = \"A small index \" +\n  'of plain-text notes'\n", [SPACED, SAID]),
    ("build.gradle", 'description = "for ${name} only"\n', []),
    ("x.gemspec", 'Gem::Specification.new do |s|\n  s.description = <<~DESC.strip\n    <S>\n  DESC\n  s.summary = %q{A {small} index of it}\nend\n', ["A {small} index of it", SAID]),
    ("x.gemspec", "s.summary = s.description = \"A small \" \\\n  'index of plain-text notes'\ns.files = %w{a}\n", [SAID]),
    ("a.csproj", "<Project>\r\n<PropertyGroup>\r\n<Description>\r\n<S></Description></PropertyGroup>\r\n<Target><Description>n</Description></Target></Project>", [SAID]),
    ("a.nuspec", '\ufeff<package xmlns="http://n"><metadata><description><S></description><summary>A short text of it</summary></metadata></package>', ["A short text of it", SAID]),
    ("a.nuspec", "<package><metadata><description>$description$</description></metadata></package>", []),
    ("pubspec.yaml", "name: x\ndescription: >-\n  A small index\n  of plain-text notes\nversion: 1\n", [SAID]),
    ("Chart.yaml", "description: <S> # so\nx: {{ .Values }}\n", [SAID]),
    ("snapcraft.yaml", "summary: '<S>'\ndescription: |\n  It reads folders.\n\n  And more.\n\n\nparts:\n  description: n\n", [SAID, "It reads folders.\n\nAnd more."]),
    ("action.yml", '\ufeffdescription: "A small index\r\n  of plain-text notes"\r\nruns: [a]\r\n', [SAID]),
    (".github/settings.yml", "repository:\n  name: x\n  description: <S>\nx:\n  description: n\n", [SAID]),
    ("CITATION.cff", "abstract: &a <S>\n", [SAID]),
    ("mix.exs", '# description: "no"\ndef project, do: [\n  description: "<S>",\n]\n', [SAID]),
    ("mix.exs", 'defp description do\n  """\n  <S>\n  """\nend\n', [SAID]),
    ("x.cabal", "name: x\nsynopsis:   <S>\ndescription:\n  It reads.\n  .\n  And more.\nlibrary\n  description: n\n", [SAID, "It reads.\n\nAnd more."]),
    ("flake.nix", '{\n  description = "<S>";\n  outputs = { x = { description = "n"; meta = with lib; { description = \'\'A text of it\'\'; }; }; };\n}\n', [SAID, "A text of it"]),
    ("PKG-INFO", "Metadata-Version: 2.1\nSummary: <S>\nName: x\n\nIt reads.\n\nAnd more.\n", [SAID, "It reads.\n\nAnd more."]),
    ("debian/control", "Source: x\n\nPackage: x\nDescription: <S>\n It reads.\n .\n And more.\nDepends: y\n", [SAID, "It reads.\n\nAnd more."]),
    ("DESCRIPTION", "Package: x\nTitle: <S>\nDescription: It reads\n    the notes.\nLicense: MIT\n", [SAID, "It reads\nthe notes."]),
    ("x.spec", "Name: x\nSummary: <S>\n%description\nIt reads.\n\nAnd more.\n\n%description devel\nOf it.\n%prep\n", [SAID, "It reads.\n\nAnd more.", "Of it."]),
    ("Dockerfile", 'FROM a\n# LABEL description="no"\nLABEL a="b" \\\n  org.opencontainers.image.description="<S>" c=d\n', [SAID]),
    ("CMakeLists.txt", 'project(x VERSION 1\n  DESCRIPTION "<S>"\n  LANGUAGES C)\n', [SAID]),
    ("_config.yml", "title: x\ndescription: {{ site }}\n", []),
]  # fmt: skip


def filled(text: str) -> str:
    return text.replace("<S>", SAID).replace("<L>", SPACED)


@pytest.mark.parametrize(("path", "text", "said"), CASES, ids=[f"{i}-{c[0]}" for i, c in enumerate(CASES)])
def test_descriptions_are_read_and_emptied_in_place(path, text, said):
    text = filled(text)
    assert is_manifest(path)
    assert descriptions(path, text) == said
    empty = emptied(path, text, said)
    if path == "CITATION.cff":  # its alias may stand elsewhere
        assert empty is None
        return
    assert empty is not None
    assert descriptions(path, empty) == []
    assert empty.count("\n") == text.count("\n")
    assert empty.count("\r") == text.count("\r")
    assert (empty == text) == (not said)
    assert is_rest(empty, text)
    for one in said:
        rest = emptied(path, text, [one])
        assert rest is not None
        assert descriptions(path, rest) == [s for s in said if s != one]


def is_rest(part: str, whole: str) -> bool:
    """Whether `part` is `whole` with something left out, but for empty literals and the dots of blank lines."""
    left = iter(whole)
    return all(c in left for c in part if c not in "\"'.") and part.count("\n") == whole.count("\n")


def test_values_around_stay_as_they_are():
    text = json.dumps({"description": SAID, "x": {"description": SAID + "!"}}, indent=1)
    assert emptied("package.json", text, [SAID]) == text.replace(json.dumps(SAID), '""')
    text = f'D = "{SAID}"\nsetup(description=D, long_description=D)\n'
    assert emptied("setup.py", text, [SAID]) == 'D = ""\nsetup(description=D, long_description=D)\n'
    text = f'setup(\n  description="{SAID[:9]}"\n    "{SAID[9:]}",\n)\n'
    assert emptied("setup.py", text, [SAID]) == 'setup(\n  description="""\n""",\n)\n'
    text = "Package: x\nDescription: a\n b\n .\n c\nDepends: y\n"
    assert emptied("debian/control", text, ["a", "b\n\nc"]) == "Package: x\nDescription: \n .\n .\n .\nDepends: y\n"
    assert emptied("package.json", text, []) == text


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("setup.py", f'D = "{SAID}"\nsetup(description="{SAID}")\n'),
        ("package.json", f'{{"description": "{SAID}", "x": {{"description": "{SAID}"}}}}'),
        ("pubspec.yaml", f"description: {SAID}\nx: {SAID}\n"),
    ],
)
def test_a_description_that_stays_elsewhere_is_not_emptied(path, text):
    assert descriptions(path, text) == [SAID]
    assert emptied(path, text, [SAID]) is None


def test_setup_py_is_never_run(tmp_path):
    trap = tmp_path / "sprung"
    text = f'open({str(trap)!r}, "w")\nfrom setuptools import setup\nsetup(description="{SAID}")\n'
    assert descriptions("setup.py", text) == [SAID]
    assert not trap.exists()


@pytest.mark.parametrize(
    "value", ["file: README.md", "attr: x.__doc__", "${project.name}", "{{ name }}", "$description$"]
)
def test_references_are_no_description(value):
    for path, text in (
        ("setup.cfg", f"[metadata]\ndescription = {value}\n"),
        ("package.json", json.dumps({"description": value})),
        ("pom.xml", f"<project><description>{value}</description></project>"),
    ):
        assert descriptions(path, text) == []
        assert emptied(path, text, []) == text
    assert descriptions("package.json", '{"description": "Logic-less {{mustache}} templates for all"}')


def test_what_is_a_manifest():
    for path in (
        "a/b/Cargo.toml",
        "Pom.xml",
        "x/y.gemspec",
        "debian/control",
        "Dockerfile.dev",
        ".github/settings.yml",
    ):
        assert is_manifest(path)
    for path in ("a.py", "control", "settings.yml", "README.md", "x.toml"):
        assert not is_manifest(path)
        assert descriptions(path, "description: A small index of notes\n") == []
    assert all(is_manifest(name if name[0] != "." else "x" + name) for name in TARGET_MANIFESTS)


PIECES = [
    "'", '"', "`", "\\", "/*", "//", "#", "<", "<!--", "<![CDATA[", "{", "[", "(", "}", "{{", "${", "%", "%{", "\r", "\n", "\r\n", "\t", " ", "a", "é",
    "\0", "\ufeff", ".", ",", ":", "=", "+", "- ", "? ", "&a ", "*a ", '"""', "'''", "''", "a.", "a = ", "[a]\n", "{a = ", "description", "description = ",
    'description = "', "description '", "description: ", "description: [", "description:\n ", '"description": "a" ', "s.description = <<A\n", "<<~A",
    "s.summary = %q{", "s.summary = 'a' ", "LABEL ", 'LABEL description="a" ', "project(", "<description>", "<project><description>", "Summary: a\n",
    "%description\n", "Description: a\n b\n", "pom {", "meta = {", "setup(description=", "setup(**a)\na = dict(**a, description=a + a)\n", "\ndescription: |\n",
]  # fmt: skip
FIRST = {
    ".cfg": "[metadata]\n",
    "PKG-INFO": "Metadata-Version: 1\n",
    ".xml": "<project><description>",
    ".yml": "repository:\n description: ",
}


@pytest.mark.parametrize("count", [30_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("path", sorted({c[0] for c in CASES}))
def test_whatever_is_in_a_manifest_reading_it_ends(path, count):
    first = next((text for end, text in FIRST.items() if path.endswith(end)), "")
    for piece in PIECES:
        text = first + piece * (count // len(piece))
        start = time.monotonic()
        found = descriptions(path, text)
        emptied(path, text, found)
        assert time.monotonic() - start < (1 if count <= 30_000 else 15), piece
