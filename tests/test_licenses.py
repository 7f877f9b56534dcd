"""The licence of a repository: from texts, names and manifests, and never a permissive one in doubt."""

import re
import textwrap
import time

import pytest
from identify.vendor.licenses import LICENSES

from repo2ctx._license_manifests import declared_in
from repo2ctx._license_names import canonical, current, spdx_of
from repo2ctx._license_texts import told_by
from repo2ctx.config import load_config
from repo2ctx.errors import ConfigError
from repo2ctx.licenses import PERMISSIVE, UNKNOWN, UNREADABLE, allows, license_of, tells_license

TEXTS = dict(LICENSES)
WHOLE = [name for name in TEXTS if name != "ECL-2.0"]  # that one comes with an appendix the library has no pattern of
SHORT = ["0BSD", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "ISC", "MIT", "NCSA", "PostgreSQL", "Unlicense", "Zlib"]
MIT, APACHE, GPL3 = TEXTS["MIT"], TEXTS["Apache-2.0"], TEXTS["GPL-3.0"]


CLAUSES = [
    "The Software shall be used for Good, not Evil.",
    "Commercial use is prohibited.",
    "Non-commercial use only.",
    "You must send a postcard to the author.",
    "Military use excluded.",
    "Companies above 100 employees pay a fee.",
    "FOR RESEARCH PURPOSES.",
    "Without limiting other conditions in the License, the grant of rights under the License will not include, and the License "
    "does not grant to you, the right to Sell the Software.",
    "All advertising materials mentioning features or use of this software must display the following acknowledgement.",
]


def prefixed(text, mark):
    return "\n".join(mark + line for line in text.splitlines())


DRESSES = {
    "as it is": lambda t: t,
    "reflowed": lambda t: textwrap.fill(" ".join(t.split()), 60),
    "in capitals": str.upper,
    "Windows": lambda t: "\ufeff" + t.replace("\n", "\r\n"),
    "a comment": lambda t: "/*\n" + prefixed(t, " * ") + "\n */\n",
    "a script's comment": lambda t: prefixed(t, "# "),
    "HTML": lambda t: f"<html><body><pre>{t.replace('&', '&amp;').replace('<', '&lt;')}</pre></body></html>",
    "curly quotes": lambda t: t.replace('"AS IS"', "“AS IS”").replace("'", "’"),
    "a holder": lambda t: t.replace("[year]", "2009-2026").replace("[fullname]", "Ada & Sons, Inc."),
    "a title": lambda t: f"Ferry License\n=============\n\n{t}",
}


@pytest.mark.parametrize("dress", DRESSES)
def test_every_text_is_told_in_any_dress(dress):
    for name in WHOLE:
        told = told_by(DRESSES[dress](TEXTS[name]))
        assert (told.found, told.clear) == (current(name), True), name


def places(text):
    """Where a clause may be put: at the ends and after each sentence."""
    return [0, len(text), *(i + 1 for i, mark in enumerate(text) if mark in ".:;" and text[i + 1 : i + 2].isspace())]


@pytest.mark.parametrize("name", SHORT)
def test_an_added_clause_is_never_passed_over(name):
    text = TEXTS[name]
    for clause in CLAUSES:
        for at in places(text):
            changed = f"{text[:at]}\n\n{clause}\n\n{text[at:]}"
            for manifest in ({}, {"package.json": f'{{"license": "{name}"}}'}):
                found = license_of({"LICENSE": changed, **manifest})
                assert not allows(found, PERMISSIVE), (clause, text[max(0, at - 60) : at], manifest)


@pytest.mark.parametrize("clause", CLAUSES)
def test_nor_in_a_long_text(clause):
    for at in places(APACHE)[::9]:
        assert not allows(license_of({"LICENSE": f"{APACHE[:at]}\n{clause}\n{APACHE[at:]}"}), PERMISSIVE), APACHE[
            at - 60 : at
        ]
    gap = APACHE.replace("[name of copyright owner]", f"[name of copyright owner]\n\n   {clause}")
    assert not allows(license_of({"LICENSE": gap}), PERMISSIVE)


@pytest.mark.parametrize("name", SHORT)
def test_a_text_without_a_part_is_not_the_same(name):
    parts = [p for p in TEXTS[name].split("\n\n") if len(p.split()) > 12]
    for part in parts:
        told = told_by(TEXTS[name].replace(part, ""))
        kin = {"BSD-3-Clause": {"BSD-2-Clause"}, "MIT": {"MIT-0"}, "ISC": {"0BSD"}, "NCSA": set()}.get(name, set())
        assert not told.clear or told.found in kin or told.found not in PERMISSIVE, (name, part[:60], told)


def test_mit_without_a_permission_is_not_mit():
    for words in (", free of charge,", "without restriction, ", "sublicense, and/or sell", "sublicense, "):
        assert words in " ".join(MIT.split())
        assert license_of({"LICENSE": " ".join(MIT.split()).replace(words, " ")}) == UNKNOWN


def test_kin_are_told_apart():
    assert license_of({"LICENSE": GPL3}) == "GPL-3.0-only"
    assert license_of({"LICENSE": TEXTS["AGPL-3.0"]}) == "AGPL-3.0-only"
    assert license_of({"LICENSE": TEXTS["GPL-2.0"]}) == "GPL-2.0-only"
    assert license_of({"COPYING": TEXTS["LGPL-2.1"]}) == "LGPL-2.1-only"
    bare = " ".join(MIT.split()).replace(
        "subject to the following conditions: The above copyright notice and this permission notice shall be included in all "
        "copies or substantial portions of the Software.",
        "",
    )
    assert license_of({"LICENSE": bare.replace("furnished to do so, ", "furnished to do so. ")}) == "MIT-0"
    json = MIT.replace(
        'THE SOFTWARE IS PROVIDED "AS IS"',
        'The Software shall be used for Good, not Evil.\n\nTHE SOFTWARE IS PROVIDED "AS IS"',
    )
    assert license_of({"LICENSE": json}) == "JSON"
    without_appendix = APACHE[: APACHE.index("END OF TERMS AND CONDITIONS")]
    assert license_of({"LICENSE": without_appendix}) == "Apache-2.0"
    names = "Neither the name of the copyright holder"
    third = TEXTS["BSD-3-Clause"]
    fourth = third.replace(
        f"3. {names}",
        "3. All advertising materials mentioning features or use of this software must display the following acknowledgement: "
        f"This product includes software developed by Ada.\n\n4. {names}",
    )
    assert license_of({"LICENSE": fourth}) == "BSD-4-Clause"


def test_holders_and_titles_are_passed_over():
    title = "COPYRIGHT AND PERMISSION NOTICE\nCopyright (c) 1996 - 2026, Ada Quill, <ada@example.invalid>, and many\ncontributors, see the AUTHORS file."
    assert (
        license_of({"COPYING": MIT.replace("MIT License", "").replace("Copyright (c) [year] [fullname]", title)})
        == "MIT"
    )
    names = "Ferry is distributed with the MIT license.\n\n::\n\n   Copyright (c) 2004, Ferry Developers\n   Ada Quill <ada@example.invalid>\n   All rights reserved.\n"
    assert license_of({"LICENSE": MIT.replace("Copyright (c) [year] [fullname]", names)}) == "MIT"
    filled = GPL3.replace("<one line to give the program's name and a brief idea of what it does.>", "Ferry").replace(
        "<year>  <name of author>", "2020  Ada"
    )
    assert license_of({"COPYING": filled}) == "GPL-3.0-only"


def test_notes_beside_a_text():
    assert (
        license_of({"LICENSE": f"{MIT}\nPortions are based on Quay, licensed under the ISC license.\n\n{TEXTS['ISC']}"})
        == "MIT AND ISC"
    )
    assert license_of({"LICENSE": f"SPDX-License-Identifier: MIT\n\n{MIT}"}) == "MIT"
    both = f"SPDX-License-Identifier: MIT OR Apache-2.0\n\n{MIT}\n\n{APACHE}"
    assert license_of({"LICENSE": both}) == "MIT OR Apache-2.0"
    assert license_of({"LICENSE": f"{MIT}\n\n{APACHE}"}) == "MIT AND Apache-2.0"
    assert license_of({"LICENSE": "SPDX-License-Identifier: MIT\n"}) == "MIT"
    hidden = MIT.replace("Permission is", "The copyright holder forbids commercial use. Permission is", 1)
    assert license_of({"LICENSE": hidden}) == UNKNOWN
    assert license_of({"LICENSE": f'"Commons Clause" License Condition v1.0\n\n{CLAUSES[7]}\n\n{APACHE}'}) == UNKNOWN


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({"LICENSE-MIT": MIT, "LICENSE-APACHE": APACHE}, "Apache-2.0 OR MIT"),
        ({"MIT-LICENSE.txt": MIT}, "MIT"),
        ({"LICENCE": MIT}, "MIT"),
        ({"license.html": MIT}, "MIT"),
        ({"UNLICENSE": TEXTS["Unlicense"]}, "Unlicense"),
        ({"UNLICENSE": TEXTS["Unlicense"], "LICENSE-MIT": MIT}, "MIT OR Unlicense"),
        ({"UNLICENSE": TEXTS["Unlicense"], "LICENSE-MIT": MIT, "COPYING": "Dual-licensed under MIT and the Unlicense."}, "MIT OR Unlicense"),
        ({"COPYING": GPL3, "COPYING.LESSER": TEXTS["LGPL-3.0"]}, "LGPL-3.0-only"),
        ({"COPYING": TEXTS["GPL-2.0"], "COPYING.LIB": TEXTS["LGPL-2.1"]}, "LGPL-2.1-only"),
        ({"LICENSE": MIT, "COPYING": GPL3}, "GPL-3.0-only AND MIT"),
        ({"LICENSE": MIT, "LICENSE-3RD-PARTY": GPL3, "third-party-licenses.txt": GPL3}, "MIT"),
        ({"LICENSE": MIT, "LICENSE.extra": "Commercial use is prohibited."}, UNKNOWN),
        ({"LICENSE-GPL": GPL3, "LICENSE-MPL": TEXTS["MPL-2.0"], "LICENSE-MIT": MIT}, "GPL-3.0-only AND MIT AND MPL-2.0"),
        ({"LICENSES/MIT.txt": "", "LICENSES/CC0-1.0.txt": ""}, "CC0-1.0 AND MIT"),
        ({"LICENSES/LicenseRef-Ours.txt": "", "LICENSES/MIT.txt": ""}, UNKNOWN),
        ({"README.md": "# Ferry\n\nSPDX-License-Identifier: gpl-2.0+\n"}, "GPL-2.0-or-later"),
        ({"README.rst": "**License:** BSD 3-Clause\n"}, "BSD-3-Clause"),
        ({"README.md": "License: MIT\n\nLicense: GPLv3\n"}, UNKNOWN),
        ({"LICENSE": "Public Domain."}, UNKNOWN),
        ({"COPYING": "All rights reserved, do not look."}, UNKNOWN),
        ({}, UNKNOWN),
    ],
)  # fmt: skip
def test_several_files(files, found):
    assert all(tells_license(path) for path in files if "3RD" not in path and "third" not in path)
    assert license_of(files) == found


def test_manifests_and_files_together():
    def with_manifest(said, **files):
        return license_of({"package.json": f'{{"license": "{said}"}}', **files})

    assert with_manifest("GPL-3.0-or-later", LICENSE=GPL3) == "GPL-3.0-or-later"
    assert with_manifest("MIT OR Apache-2.0", LICENSE=MIT) == "MIT OR Apache-2.0"
    assert with_manifest("MIT", LICENSE=APACHE) == "MIT AND Apache-2.0"
    assert with_manifest("MIT", LICENSE=GPL3) == "MIT AND GPL-3.0-only"
    assert with_manifest("UNLICENSED", LICENSE=MIT) == "LicenseRef-Proprietary AND MIT"
    assert with_manifest("SEE LICENSE IN LICENSE", LICENSE=TEXTS["ISC"]) == "ISC"
    assert with_manifest("UNLICENSED") == "LicenseRef-Proprietary"
    assert with_manifest("LicenseRef-Ours") == UNKNOWN
    assert with_manifest("MIT", LICENSE="Ours. No one may copy this.") == UNKNOWN
    assert with_manifest("MIT", LICENSE="Ferry is under the MIT license; its text is on the web.") == "MIT"
    assert (
        license_of({"package.json": '{"license": "MIT"}', "setup.cfg": "[metadata]\nlicense = ISC\n"}) == "MIT AND ISC"
    )


@pytest.mark.parametrize(
    ("path", "text", "found"),
    [
        ("pyproject.toml", '[project]\nlicense = "BSD-3-Clause"\n', "BSD-3-Clause"),
        ("pyproject.toml", '[project]\nlicense = {text = "MIT License"}\n', "MIT"),
        ("pyproject.toml", '[project]\nlicense = {file = "LICENSE"}\n', ""),
        ("pyproject.toml", '[project]\nlicense = {text = "BSD"}\nclassifiers = ["License :: OSI Approved :: ISC License (ISCL)"]\n', "ISC"),
        ("pyproject.toml", '[tool.poetry]\nlicense = "gpl-2.0+"\n', "GPL-2.0-or-later"),
        ("pyproject.toml", "[project\n", ""),
        ("setup.cfg", "[metadata]\nlicense = Apache License 2.0\nlicense_files = LICENSE\n", "Apache-2.0"),
        ("setup.cfg", "[metadata]\nclassifiers =\n    Topic :: Text\n    License :: OSI Approved :: MIT License\n", "MIT"),
        ("setup.py", 'from setuptools import setup\nL = "MIT"\nsetup(license=L)\n', "MIT"),
        ("setup.py", 'setup(license=open("LICENSE").read())\n', ""),
        ("setup.py", 'setup(classifiers=["License :: OSI Approved :: GNU General Public License v3 or later (GPLv3+)"])\n', "GPL-3.0-or-later"),
        ("Cargo.toml", '[package]\nlicense = "MIT/Apache-2.0"\n', "MIT OR Apache-2.0"),
        ("Cargo.toml", '[workspace.package]\nlicense = "Zlib"\n', "Zlib"),
        ("package.json", '{"license": {"type": "MIT", "url": "x"}}', "MIT"),
        ("package.json", '{"licenses": [{"type": "MIT"}, {"type": "Apache-2.0"}]}', "MIT OR Apache-2.0"),
        ("package.json", '{"licenses": [{"type": "MIT"}, {"type": "Ours"}]}', ""),
        ("composer.json", '{"license": ["LGPL-2.1-only", "GPL-3.0-or-later"]}', "LGPL-2.1-only OR GPL-3.0-or-later"),
        ("pom.xml", "<project><licenses><license><name>The Apache Software License, Version 2.0</name></license></licenses></project>", "Apache-2.0"),
        ("pom.xml", "<project><licenses><license><name>MIT</name></license><license><name>EPL 2.0</name></license></licenses></project>", "MIT OR EPL-2.0"),
        ("pom.xml", '<!DOCTYPE a [<!ENTITY x "MIT">]><project><licenses><license><name>&x;</name></license></licenses></project>', ""),
        ("ferry.gemspec", 'Gem::Specification.new do |s|\n  s.license = "MIT"\nend\n', "MIT"),
        ("ferry.gemspec", "  s.licenses = ['MIT']\n", "MIT"),
        ("ferry.gemspec", "  s.licenses = ['MIT', 'GPL-2.0']\n", ""),
        ("Directory.Build.props", "<Project><PropertyGroup><PackageLicenseExpression>MIT</PackageLicenseExpression></PropertyGroup></Project>", "MIT"),
        ("ferry.csproj", "<Project><PropertyGroup><PackageLicenseExpression>apache-2.0</PackageLicenseExpression></PropertyGroup></Project>", "Apache-2.0"),
        ("build.gradle", 'pom {\n  name = "Ferry"\n  licenses {\n    license {\n      name = "MIT License"\n      url = "x"\n    }\n  }\n}\n', "MIT"),
        ("build.gradle.kts", 'pom { name.set("MIT"); licenses { license { name.set("Apache-2.0") } } }', "Apache-2.0"),
        ("sub/package.json", '{"license": "MIT"}', ""),
    ],
)  # fmt: skip
def test_manifests(path, text, found):
    assert declared_in(path, text) == found


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("mit", "MIT"), ("MIT license", "MIT"), ("The MIT License (MIT)", "MIT"), ("Expat", "MIT"), ("MIT/X11", "MIT"), ("MIT-0", "MIT-0"),
        ("Apache 2", "Apache-2.0"), ("Apache-2", "Apache-2.0"), ("Apache License v2.0", "Apache-2.0"), ("ASL 2.0", "Apache-2.0"),
        ("Apache License, Version 2.0", "Apache-2.0"), ("https://www.apache.org/licenses/LICENSE-2.0.txt", "Apache-2.0"),
        ("New BSD License", "BSD-3-Clause"), ("BSD 3-Clause", "BSD-3-Clause"), ("Simplified BSD", "BSD-2-Clause"),
        ("GPLv3", "GPL-3.0-only"), ("GPLv2+", "GPL-2.0-or-later"), ("GNU GPL, version 3 or later", "GPL-3.0-or-later"), ("AGPLv3", "AGPL-3.0-only"),
        ("GNU Lesser General Public License, Version 2.1", "LGPL-2.1-only"), ("LGPL-2.1", "LGPL-2.1-only"), ("AGPL-3.0", "AGPL-3.0-only"),
        ("GPL-2.0-with-classpath-exception", "GPL-2.0-only WITH Classpath-exception-2.0"),
        ("Mozilla Public License 2.0 (MPL 2.0)", "MPL-2.0"), ("Eclipse Public License - v 1.0", "EPL-1.0"), ("MIT or Apache 2.0", "MIT OR Apache-2.0"),
        ("(mit or apache-2.0) and bsd-2-clause", "(MIT OR Apache-2.0) AND BSD-2-Clause"), ("Business Source License 1.1", "BUSL-1.1"),
        ("BSD", ""), ("BSD License", ""), ("GPL", ""), ("LGPL or later", ""), ("Apache License", ""), ("Apache 1", ""), ("BSL 1.1", ""), ("Public Domain", ""),
        ("MIT with Commons Clause", ""), ("MIT, non-commercial", ""), ("Not MIT", ""), ("Proprietary", ""), ("UNLICENSED", ""), ("", ""), ("MIT " * 1000, ""),
        ("License :: OSI Approved :: BSD License", ""), ("License :: OSI Approved :: Apache Software License", ""), ("LicenseRef-MIT", ""),
    ],
)  # fmt: skip
def test_names(said, found):
    assert spdx_of(said) == found


def test_every_identifier_is_its_own_name():
    for name in PERMISSIVE:
        assert canonical(name) == spdx_of(name.lower()) == name


def test_limits_take_deprecated_identifiers():
    assert allows("GPL-3.0-only", ["GPL-3.0"])
    assert allows("GPL-3.0", ["GPL-3.0-only"])
    assert allows("GPL-3.0-or-later", ["gpl-3.0"])
    assert allows("GPL-2.0-or-later", ["GPL-2.0+"])
    assert not allows("GPL-3.0-only", ["GPL-3.0+"])
    assert not allows("GPL-3.0-only", ["GPL-2.0"])


def test_hostile_files_take_bounded_time():
    million = 1_000_000
    hostile = [
        mark * (million // len(mark))
        for mark in ("a ", "](http://", "{#", "<a ", "&#", "copyright ", "(c) ", "permission is hereby granted ", MIT, GPL3[:9000], "creative commons corporation ")
    ]  # fmt: skip
    start = time.monotonic()
    for text in hostile:
        assert license_of({"LICENSE": text}) == UNKNOWN
        assert license_of({"COPYING": text[:199_000], "README": text, "setup.py": text, "pom.xml": text}) == UNKNOWN
    assert license_of({"package.json": "[" * 100_000, "pyproject.toml": "a = " + "[" * 100_000}) == UNKNOWN
    bomb = '<!DOCTYPE a [<!ENTITY a "MIT">' + "".join(f'<!ENTITY a{i} "{"&a;" * 10}">' for i in range(30)) + "]>"
    assert license_of({"pom.xml": bomb + "<project>&a29;</project>"}) == UNKNOWN
    assert license_of({"pom.xml": "<a>" * 200_000}) == UNKNOWN
    assert time.monotonic() - start < 60


@pytest.mark.parametrize(
    "added",
    [
        "禁止用于商业用途。", "Kommerzielle Nutzung Verboten.", "Uso Comercial Prohibido.", "Не для продажи", "Ｎｏｔ ｆｏｒ ｓａｌｅ",
        "Companies Have To Buy A License.", "For Internal Testing", "Trial Version", "Changes Go Upstream.", "Share Alike",
        "This license is valid for 30 days, based on your order.", "Derived works have to send all changes back to the authors.",
        "<not for commercial use>", "SPDX-License-Identifier: MIT but not for commercial use", "N O C O M M E R C I A L U S E",
        "Banks have to buy this from us before running it in production.",
    ],
)  # fmt: skip
def test_a_clause_in_any_words_or_script_is_not_permissive(added):
    declared = {"package.json": '{"license": "MIT"}'}
    holder = re.sub("Copyright .*", f"Copyright (c) 2024 Acme. {added}", MIT, count=1)
    for text in (f"{MIT}\n\n{added}\n", f"{added}\n\n{MIT}", *([holder] if "SPDX" not in added else [])):
        for files in ({"LICENSE": text}, {"LICENSE": text} | declared):
            assert not allows(license_of(files), PERMISSIVE), files


def test_a_file_that_cannot_be_read_or_a_declaration_of_none_is_a_doubt():
    declared = {"package.json": '{"license": "MIT"}'}
    assert license_of({"LICENSE": UNREADABLE} | declared) == UNKNOWN
    assert license_of({"LICENSE": MIT, "COMMONS-CLAUSE.md": "You may not sell it."} | declared) == UNKNOWN
    assert (
        license_of({"LICENSE": "SPDX-License-Identifier: MIT\n\nBanks have to ask before they run this.\n"}) == UNKNOWN
    )
    unlicensed = {"package.json": '{"license": "UNLICENSED"}', "LICENSE": MIT}
    assert not allows(license_of(unlicensed), PERMISSIVE)


def test_the_configuration_takes_identifiers_and_our_list_of_them():
    for said, kept in (("MIT", ("MIT",)), (["permissive", "GPL-3.0"], ("permissive", "GPL-3.0")), (None, None)):
        assert load_config(None, {"limits": {"licenses": said}}).limits.licenses == kept
    for wrong in ("permisive", ["MIT", "Freeware"], 4, [None]):
        with pytest.raises(ConfigError, match="no SPDX identifier"):
            load_config(None, {"limits": {"licenses": wrong}})
