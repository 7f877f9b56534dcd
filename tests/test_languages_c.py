"""C and C++ includes resolve as a compiler with the repository's include directories would."""

import json

import pytest
import tree_sitter

from repo2ctx.languages import c


def test_quoted_includes_start_beside_the_including_file(edges_of):
    files = {
        "pump/valve.h": "",
        "tank/valve.h": "",
        "tank/main.c": '#include "valve.h"\n#include "../pump/valve.h"\n',
    }
    assert edges_of(files) == {("tank/main.c", "tank/valve.h"), ("tank/main.c", "pump/valve.h")}


def test_headers_of_the_system_are_not_files_of_the_repository(edges_of, unresolved_of):
    files = {
        "src/string.h": "",
        "lib/sys/time.h": "",
        "util/vector": "",
        "src/a.c": "#include <string.h>\n#include <sys/time.h>\n#include <stdio.h>\n#include <openssl/ssl.h>\n",
        "src/b.cpp": "#include <vector>\n#include <util.h>\n",
    }
    assert edges_of(files) == set()
    assert unresolved_of(files) == set()


def test_a_named_directory_may_hold_headers_of_the_systems_names(edges_of):
    files = {
        "compat/string.h": "",
        "src/string.h": "",
        "src/a.c": "#include <string.h>\n",
        "Makefile": "CFLAGS += -O2 -Icompat\n",
    }
    assert edges_of(files) == {("src/a.c", "compat/string.h")}


def test_usual_places_are_the_folders_above_and_their_include_and_src(edges_of):
    files = {
        "include/gear/wheel.h": "",
        "src/gear/tooth.h": "",
        "tests/wheel_test.cc": '#include "gear/wheel.h"\n#include <gear/tooth.h>\n#include "tests/fixture.h"\n',
        "tests/fixture.h": "",
        "vendor/cog/include/cog.h": "",
        "vendor/cog/src/cog.c": "#include <cog.h>\n",
    }
    assert edges_of(files) == {
        ("tests/wheel_test.cc", "include/gear/wheel.h"),
        ("tests/wheel_test.cc", "src/gear/tooth.h"),
        ("tests/wheel_test.cc", "tests/fixture.h"),
        ("vendor/cog/src/cog.c", "vendor/cog/include/cog.h"),
        ("vendor/cog/include/cog.h", "vendor/cog/src/cog.c"),
    }


def test_nearest_build_file_wins(edges_of):
    files = {
        "Makefile": "CFLAGS = -Icommon\n",
        "common/opts.h": "",
        "part/Makefile": "CFLAGS = -I inc\n",
        "part/inc/opts.h": "",
        "part/code/a.c": '#include "opts.h"\n',
        "code/b.c": "#include <opts.h>\n",
    }
    assert edges_of(files) == {("part/code/a.c", "part/inc/opts.h"), ("code/b.c", "common/opts.h")}


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ("Makefile", "top = $(CURDIR)/deps\nCPPFLAGS += -DX=1 -I$(top)/zap/api\n"),
        ("Makefile", "CFLAGS = -O2 \\\n  -isystem deps/zap/api\n"),
        ("Makefile.am", 'AM_CPPFLAGS = -I"$(top_srcdir)/deps/zap/api"\n'),
        ("code/flags.mk", "INCLUDES := -Ideps/zap/api\n"),
        ("CMakeLists.txt", "include_directories(BEFORE SYSTEM deps/zap/api)\n"),
        ("CMakeLists.txt", "project(p C)\ntarget_include_directories(p PRIVATE ${PROJECT_SOURCE_DIR}/deps/zap/api)\n"),
        ("CMakeLists.txt", "set(ZAP ${CMAKE_SOURCE_DIR}/deps/zap)\ninclude_directories(${ZAP}/api)\n"),
        (
            "CMakeLists.txt",
            'target_include_directories(p\n  PUBLIC "$<BUILD_INTERFACE:${p_SOURCE_DIR}/deps/zap/api>"\n)\n',
        ),
        ("meson.build", "inc = include_directories('gone', 'deps/zap/api') # 'other'\n"),
        (".clangd", "CompileFlags:\n  Add: [-Wall, -Ideps/zap/api]\n"),
        ("compile_flags.txt", "-xc\n-Ideps/zap/api\n"),
    ],
)
def test_include_directories_of_build_files(edges_of, config, text):
    if "p_SOURCE_DIR" in text:
        text = "project(p)\n" + text
    files = {
        config: text,
        "deps/zap/api/zap.h": "",
        "other/zap.h": "",
        "code/a.c": "#include <zap.h>\n",
    }
    assert edges_of(files) == {("code/a.c", "deps/zap/api/zap.h")}


def test_cmake_folders_see_what_is_set_above_them(edges_of):
    files = {
        "CMakeLists.txt": "project(Top)\nset(API ${CMAKE_CURRENT_SOURCE_DIR}/api/v2)\n",
        "app/CMakeLists.txt": "project(App)\ninclude_directories(${API} ${Top_SOURCE_DIR}/misc ${UNKNOWN}/x)\n",
        "api/v2/call.h": "",
        "api/v1/call.h": "",
        "misc/extra.h": "",
        "old/extra.h": "",
        "app/main.c": '#include "call.h"\n#include "extra.h"\n',
    }
    assert edges_of(files) == {("app/main.c", "api/v2/call.h"), ("app/main.c", "misc/extra.h")}


def test_compile_commands_are_for_their_file_and_mapped_into_the_repository(edges_of):
    commands = [
        {"directory": "/ci/work/build", "file": "../one/a.c", "command": "cc -I../x -I/usr/include -c ../one/a.c"},
        {"directory": "/ci/work", "file": "/ci/work/two/b.c", "arguments": ["cc", "-I", "/ci/work/y", "-c", "two/b.c"]},
        {"directory": 7, "file": "c.c"},
        {"file": None},
        "nonsense",
    ]
    files = {
        "compile_commands.json": json.dumps(commands),
        "x/k.h": "",
        "y/k.h": "",
        "one/a.c": "#include <k.h>\n",
        "two/b.c": "#include <k.h>\n",
    }
    assert edges_of(files) == {("one/a.c", "x/k.h"), ("two/b.c", "y/k.h")}


def test_the_only_file_with_that_ending_is_taken(edges_of):
    files = {
        "engine/render/shade.h": "",
        "lib/a/pick.h": "",
        "lib/b/pick.h": "",
        "tool/x.c": '#include "shade.h"\n#include <render/shade.h>\n#include <pick.h>\n#include "pick.h"\n',
        "lib/b/deep/y.c": '#include "pick.h"\n#include <pick.h>\n',
    }
    assert edges_of(files) == {("tool/x.c", "engine/render/shade.h"), ("lib/b/deep/y.c", "lib/b/pick.h")}


def test_among_files_with_that_ending_quoted_includes_take_the_nearest(edges_of):
    files = {
        "lib/b/api/pick.h": "",
        "lib/a/api/pick.h": "",
        "lib/b/deep/y.c": '#include "pick.h"\n',
        "lib/b/deep/z.c": "#include <pick.h>\n",
        "app/tie.c": '#include "pick.h"\n',
    }
    assert edges_of(files) == {("lib/b/deep/y.c", "lib/b/api/pick.h")}


def test_all_ways_to_write_an_include(edges_of):
    names = [f"h{i}.h" for i in range(9)]
    source = (
        '#include "h0.h"\n  #  include "h1.h" // why\n#import "h2.h"\n/* a */ #include "h3.h"\n'
        '#if defined(A)\n#include "h4.h"\n#else\n#include\\\n "h5.h"\n#endif\n'
        'int f(void) {\n#include "h6.h"\n}\n#include MACRO\nint t[] = {\n#include "h7.h"\n};\r\n#include "h8.h"\r\n'
    )
    files = {"m.c": source, **dict.fromkeys(names, "")}
    assert edges_of(files) == {("m.c", name) for name in names}


def test_a_macro_may_name_the_included_file(edges_of, unresolved_of):
    files = {
        "a.c": '#ifndef CONF\n# define CONF "conf.h"\n#endif\n#include CONF\n#include OTHER\n#define LATE "late.h"\n',
        "b.c": "#ifdef X\n#define IMPL <x/one.h>\n#else\n#define IMPL <x/two.h>\n#endif\n  #  include IMPL\n",
        "conf.h": "", "late.h": "", "include/x/one.h": "", "include/x/two.h": "",
    }  # fmt: skip
    assert edges_of(files) == {("a.c", "conf.h"), ("b.c", "include/x/one.h"), ("b.c", "include/x/two.h")}
    assert not unresolved_of(files)


def test_a_header_that_a_build_makes_means_its_template(edges_of, unresolved_of):
    files = {
        "src/a.c": '#include "config.h"\n#include <tool/version.h>\n#include "own.h"\n#include "gone.h"\n',
        "config.h.in": "", "include/tool/version.h.cmake": "", "src/own.h": "", "src/own.h.in": "",
    }  # fmt: skip
    assert edges_of(files) == {
        ("src/a.c", "config.h.in"), ("src/a.c", "include/tool/version.h.cmake"), ("src/a.c", "src/own.h"),
    }  # fmt: skip
    assert unresolved_of(files) == {("src/a.c", "gone.h")}


def test_comments_and_strings_include_nothing(edges_of):
    source = (
        '/*\n#include "a.h"\n*/\n// #include "a.h"\nconst char *s = "#include \\"a.h\\"";\n#define X #include "a.h"\n'
    )
    files = {"m.c": source, "n.cpp": 'auto s = R"(\n#include "a.h"\n)";\n', "a.h": ""}
    assert edges_of(files) == set()


def test_includes_amid_what_the_grammar_cannot_parse(edges_of):
    files = {
        "m.c": 'BEGIN(foo\n#include "a.h"\n{ ( [ @@@ \n#include "b.inc"\nstruct { int ; if (\n#include "c.def"\n',
        **dict.fromkeys(("a.h", "b.inc", "c.def"), ""),
    }
    assert edges_of(files) == {("m.c", "a.h"), ("m.c", "b.inc"), ("m.c", "c.def")}


def test_include_next_is_never_the_file_itself(edges_of):
    files = {
        "Makefile": "CFLAGS = -Iwrap -Iinclude\n",
        "wrap/zip.h": "#include_next <zip.h>\n",
        "include/zip.h": "",
    }
    assert edges_of(files) == {("wrap/zip.h", "include/zip.h")}


def test_headers_need_their_implementation_softly(strengths_of):
    files = {
        "lib/hash.h": "",
        "lib/hash.c": '#include "hash.h"\n',
        "lib/table.h": "",
        "lib/table.c": "int x;\n",
        "include/net/port.hpp": "",
        "src/net/port.cpp": '#include "net/port.hpp"\n',
        "tests/port.cpp": '#include "net/port.hpp"\n',
    }
    assert strengths_of(files) == {
        ("lib/hash.c", "lib/hash.h"): "hard",
        ("lib/hash.h", "lib/hash.c"): "soft",
        ("src/net/port.cpp", "include/net/port.hpp"): "hard",
        ("include/net/port.hpp", "src/net/port.cpp"): "soft",
        ("tests/port.cpp", "include/net/port.hpp"): "hard",
    }


def test_a_header_with_two_implementations_has_none(edges_of):
    files = {
        "include/os.h": "",
        "unix/os.c": '#include "os.h"\n',
        "win/os.c": '#include "os.h"\n',
    }
    assert edges_of(files) == {("unix/os.c", "include/os.h"), ("win/os.c", "include/os.h")}


def test_modules_of_cpp20(edges_of):
    files = {
        "shape.cpp": "module;\nexport module geo.shape;\nexport import :edge;\nimport std;\n",
        "edge.cpp": "export module geo.shape:edge;\n",
        "body.cpp": "module geo.shape;\n",
        "main.cpp": 'import geo.shape;\nimport "old.h";\n// import geo.shape:edge;\n',
        "old.h": "",
    }
    assert edges_of(files) == {
        ("shape.cpp", "edge.cpp"),
        ("body.cpp", "shape.cpp"),
        ("main.cpp", "shape.cpp"),
        ("main.cpp", "old.h"),
    }


def test_what_looks_internal_and_leads_nowhere_is_unresolved(unresolved_of):
    files = {
        "include/proj/a.h": '#include "gone.h"\n#include <proj/lost.h>\n#include <other/x.h>\n#include "absl/y.h"\n',
        "src/b.c": '#include "string.h"\n#include "../../out.h"\n#include "../x.h"\n',
        "Makefile": "CFLAGS = -Iinclude\n",
    }
    assert unresolved_of(files) == {
        ("include/proj/a.h", "gone.h"),
        ("include/proj/a.h", "<proj/lost.h>"),
        ("src/b.c", "../../out.h"),
        ("src/b.c", "../x.h"),
    }


def test_broken_build_files_are_as_good_as_none(edges_of):
    files = {
        "compile_commands.json": "[" * 100_000,
        "sub/compile_commands.json": '{"file": 3}',
        "Makefile": "A = $(B)$(B)$(B)\nB = $(A)$(A)\nCFLAGS = -I$(A)/x -I -I/ -I$( -I../../..\n",
        "CMakeLists.txt": "set(A ${A}${A})\nset(A ${A}${A})\ninclude_directories(${A} ${\nproject(\n",
        "meson.build": "include_directories(((('x'",
        "a.h": "",
        "a.c": '#include "a.h"\n',
    }
    assert edges_of(files) == {("a.c", "a.h"), ("a.h", "a.c")}


def test_odd_bytes_and_lines():
    source = b'\n\n\xff\xfe\n#include "caf\xe9.h"\n\x00#include "no.h"\n#include "b.h"'
    parser = tree_sitter.Parser(tree_sitter.Language(c.GRAMMARS["C"]()))
    found = c.scan(parser.parse(source).root_node, "x.c").imports
    assert [(i.name, i.line) for i in found] == [("caf\ufffd.h", 4), ("b.h", 6)]
    assert c.scan(parser.parse(b"").root_node, "x.c").imports == ()
