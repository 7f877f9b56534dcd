"""Tests need what they are named after, where nothing else says so."""

import pytest
from conftest import graph_of_files

from repo2ctx.testnames import test_edges as named_edges


@pytest.mark.parametrize(
    ("test", "others", "target"),
    [
        ("tests/test_cart.py", ["shop/cart.py", "shop/cartel.py"], "shop/cart.py"),
        ("shop/cart_test.go", ["shop/cart.go", "other/cart.go"], "shop/cart.go"),
        ("src/a/__tests__/index.test.ts", ["src/a/index.ts", "src/b/index.ts"], "src/a/index.ts"),
        ("src/index.spec.ts", ["lib/index.ts"], None),
        ("src/test/java/org/shop/CartTest.java", ["src/main/java/org/shop/Cart.java", "src/x/Cart.java"], "src/main/java/org/shop/Cart.java"),
        ("test/models/user_test.rb", ["app/models/user.rb", "app/controllers/user.rb"], "app/models/user.rb"),
        ("spec/user_spec.rb", ["app/models/user.rb", "app/controllers/user.rb"], None),
        ("tests/TestCart.cs", ["Shop/Cart.cs"], "Shop/Cart.cs"),
        ("test/stream_test.rb", ["more/lib/stream.rb", "more/spec/a_spec.rb"], None),
        ("test/shop_test.rb", ["shop.gemspec", "bench/shop.rb"], None),
        ("lib/test_case.rb", ["lib/case.rb"], None),
        ("packages/core/tests/array.test.ts", ["packages/bench/array.ts"], None),
        ("src/latest.py", ["src/la.py"], None),
        ("src/Contest.java", ["src/Con.java"], None),
        ("test.py", ["py.py"], None),
        ("tests/test_gone.py", ["shop/cart.py"], None),
        ("tests/test_test_cart.py", ["tests/test_cart.py", "cart.py"], None),
    ],
)  # fmt: skip
def test_a_test_needs_what_its_name_says(test, others, target):
    found = [(e.source, e.target) for e in named_edges([test, *others], []) if e.source == test]
    assert found == ([(test, target)] if target else [])


def test_only_where_nothing_else_says_so_and_within_a_language():
    files = {
        "cart.py": "", "test_cart.py": "import cart\n", "till.py": "", "test_till.py": "import subprocess\n",
        "tests/test_shop.py": "from pack.shop import a\n", "pack/shop.py": "", "shop.py": "",
        "till.js": "", "helper.py": "import test_helper\n", "test_helper.py": "",
    }  # fmt: skip
    edges = {(e.source, e.target, e.kind, e.strength) for e in graph_of_files(files).edges}
    assert edges == {
        ("test_cart.py", "cart.py", "import", "hard"),
        ("test_till.py", "till.py", "test", "soft"),
        ("helper.py", "test_helper.py", "import", "hard"),
        ("tests/test_shop.py", "pack/shop.py", "import", "hard"),
    }
