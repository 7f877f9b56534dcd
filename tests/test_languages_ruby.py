"""Ruby requires resolve as a test run would, and constants as Ruby looks them up."""

from conftest import graph_of_files, outputs_by_hash_seed

from repo2ctx.languages import RepoTree, ruby
from repo2ctx.parsing import scan


def test_require_finds_lib_then_the_gems_of_the_repository(edges_of):
    files = {
        "orders/orders.gemspec": 's.require_paths = ["code"]\n',
        "orders/code/orders.rb": 'require "orders/line"\nrequire "json"\nrequire "stock"\n',
        "orders/code/orders/line.rb": "",
        "stock/stock.gemspec": "",
        "stock/lib/stock.rb": 'require "stock/shelf.rb"\n',
        "stock/lib/stock/shelf.rb": "",
        "tool/lib/stock.rb": "",
        "tool/run.rb": 'require "stock"\n',
    }
    assert edges_of(files) == {
        ("orders/code/orders.rb", "orders/code/orders/line.rb"),
        ("orders/code/orders.rb", "stock/lib/stock.rb"),
        ("stock/lib/stock.rb", "stock/lib/stock/shelf.rb"),
        ("tool/run.rb", "tool/lib/stock.rb"),
    }


def test_reopening_a_class_that_is_elsewhere_defines_nothing(edges_of):
    files = {
        "lib/shop/main.rb": "class Rack::Builder\n  def shop; end\nend\nclass Rack::Own < Object\nend\n",
        "lib/rack/guard.rb": "module Rack\n  module Guard\n    X = Rack::Builder.new(Rack::Own)\n  end\nend\n",
        "lib/shop/use.rb": "Rack::Builder.new\nShop::Cart.new\n",
        "lib/shop/cart.rb": "class Shop::Cart\n  def a; end\nend\n",
    }
    assert edges_of(files) == {("lib/rack/guard.rb", "lib/shop/main.rb"), ("lib/shop/use.rb", "lib/shop/cart.rb")}
    files["lib/shop/main.rb"] = files["lib/shop/main.rb"].partition("class Rack::Own")[0]
    assert edges_of(files) == {("lib/shop/use.rb", "lib/shop/cart.rb")}


def test_what_rspec_requires_comes_before_the_specs():
    files = {
        ".rspec": "--color\n--require spec_helper\n-r gone\n", "spec/spec_helper.rb": "", "spec/a/cart_spec.rb": "", "spec/support.rb": "",
        "gem/.rspec": "--require spec_helper\n", "gem/spec/spec_helper.rb": "", "gem/spec/till_spec.rb": "",
    }  # fmt: skip
    assert {(e.source, e.target, e.kind, e.strength) for e in graph_of_files(files).edges} == {
        ("spec/a/cart_spec.rb", "spec/spec_helper.rb", "test", "soft"),
        ("gem/spec/till_spec.rb", "gem/spec/spec_helper.rb", "test", "soft"),
    }


def test_only_tests_require_from_the_test_folder(edges_of):
    files = {
        "lib/shop.rb": 'require "helper"\n',
        "test/helper.rb": 'require "shop"\n',
        "test/deep/shop_test.rb": 'require "helper"\n',
        "spec/shop_spec.rb": 'require "spec_helper"\n',
        "spec/spec_helper.rb": "",
    }
    assert edges_of(files) == {
        ("test/helper.rb", "lib/shop.rb"),
        ("test/deep/shop_test.rb", "test/helper.rb"),
        ("spec/shop_spec.rb", "spec/spec_helper.rb"),
        ("spec/shop_spec.rb", "lib/shop.rb"),
        ("test/deep/shop_test.rb", "lib/shop.rb"),
    }


def test_the_nearest_root_wins(edges_of):
    files = {
        "a/lib/version.rb": "",
        "a/a.gemspec": "",
        "b/lib/version.rb": "",
        "b/b.gemspec": "",
        "b/bin/start.rb": "require 'version'\n",
    }
    assert edges_of(files) == {("b/bin/start.rb", "b/lib/version.rb")}


def test_paths_from_the_file_itself(edges_of):
    files = {
        "lib/a/one.rb": (
            'require_relative "two"\nrequire_relative("../three.rb")\nrequire "#{__dir__}/four"\n'
            'require File.expand_path("../five", __FILE__)\nrequire File.join(File.dirname(__FILE__), "six")\n'
            'require File.dirname(__FILE__) + "/seven"\nload File.expand_path("../eight.rake", __dir__)\n'
            'require_relative name\nrequire "a/#{name}"\n'
        ),
        "lib/three.rb": "",
        "lib/eight.rake": "",
        **{f"lib/a/{n}.rb": "" for n in ("two", "four", "five", "six", "seven", "name")},
        "top.rb": 'require "#{__dir__}/lib/three"\nrequire File.join(File.dirname(__FILE__), "lib", "a", "two")\n',
    }
    near = {("lib/a/one.rb", f"lib/a/{n}.rb") for n in ("two", "four", "five", "six", "seven")}
    assert edges_of(files) == near | {
        ("lib/a/one.rb", "lib/three.rb"),
        ("lib/a/one.rb", "lib/eight.rake"),
        ("top.rb", "lib/three.rb"),
        ("top.rb", "lib/a/two.rb"),
    }


def test_paths_from_the_working_folder(edges_of):
    files = {"lib/a.rb": "", "tasks/b.rb": 'require "./lib/a"\nload "tasks/c.rb"\n', "tasks/c.rb": ""}
    assert edges_of(files) == {("tasks/b.rb", "lib/a.rb"), ("tasks/b.rb", "tasks/c.rb")}


def test_folders_added_to_the_load_path(edges_of):
    files = {
        "bench/setup.rb": "$LOAD_PATH.unshift File.expand_path('support', __dir__)\n",
        "bench/run.rb": 'require "timer"\n',
        "bench/support/timer.rb": "",
        "other.rb": 'require "timer"\n',
    }
    assert edges_of(files) == {("bench/run.rb", "bench/support/timer.rb")}


def test_requires_that_run_later_are_soft(strengths_of):
    files = {
        "lib/a.rb": (
            'require "b"\nbegin\n  require "c"\nrescue LoadError\nend\nrequire "d" if RUBY_PLATFORM\n'
            'def go\n  require "e"\nend\ndef self.go = require("f")\non_load(:x) do\n  require "g"\nend\n'
            'silence_warnings do\n  require "h"\nend\n->(x) { require "i" }\nautoload :J, "j"\n'
        ),
        **{f"lib/{n}.rb": "" for n in "bcdefghij"},
    }
    found = strengths_of(files)
    assert {target[4]: strength for (_, target), strength in found.items()} == {
        **dict.fromkeys("bcdh", "hard"),
        **dict.fromkeys("efgij", "soft"),
    }


def test_what_leads_nowhere(unresolved_of, edges_of):
    files = {
        "lib/shop.rb": (
            'require "shop/missing"\nrequire_relative "gone"\nrequire "rack/session"\nrequire "set"\n'
            'require_relative "../../outside"\nrequire_relative "native.so"\nautoload :Nix, "shop/nix"\n'
        ),
        "lib/shop/cart.rb": "",
        "lib/rack/shop.rb": "",
    }
    assert edges_of(files) == set()
    assert unresolved_of(files) == {
        ("lib/shop.rb", name) for name in ("shop/missing", "gone", "../../outside", "shop/nix")
    }


def test_words_that_are_no_calls(edges_of):
    files = {
        "lib/a.rb": (
            '# require "b"\nx = \'require "b"\'\nfoo.require "b"\n:require\nputs <<~END\n  require "b"\n'
            '  Big\nEND\n"Big"\n:Big\n{Big: 1}\n=begin\nrequire "b"\nBig\n=end\nx.Big\nputs 1 # Big\n'
        ),
        "lib/b.rb": "",
        "lib/big.rb": "class Big\nend\n",
    }
    assert edges_of(files) == set()


def test_autoload_with_and_without_a_path(edges_of):
    files = {
        "lib/shop.rb": (
            "module Shop\n  extend ActiveSupport::Autoload\n  autoload :Cart\n"
            '  autoload :Odd, "shop/strange_name"\n  eager_autoload do\n    autoload :HTMLPage\n  end\n'
            '  autoload_under "inner" do\n    autoload :Lock\n  end\n'
            '  autoload_at "shop/errors" do\n    autoload :NotFound\n    autoload :Full\n  end\nend\n'
        ),
        **{f"lib/shop/{n}.rb": "" for n in ("cart", "strange_name", "html_page", "inner/lock", "errors")},
        "lib/cart.rb": "",
    }
    names = ("cart", "strange_name", "html_page", "inner/lock", "errors")
    assert edges_of(files) == {("lib/shop.rb", f"lib/shop/{n}.rb") for n in names}


def test_autoload_says_where_a_constant_is(edges_of):
    files = {
        "lib/shop.rb": 'module Shop\n  autoload :NotFound, "shop/failures"\nend\n',
        "lib/shop/failures.rb": "module Shop\n  class NotFound < StandardError\n  end\nend\n",
        "lib/shop/other.rb": "class Shop::NotFound\nend\n",
        "lib/shop/cart.rb": "class Shop::Cart\n  def x = raise(Shop::NotFound)\nend\n",
    }
    assert ("lib/shop/cart.rb", "lib/shop/failures.rb") in edges_of(files)
    assert ("lib/shop/cart.rb", "lib/shop/other.rb") not in edges_of(files)


def test_constants_are_looked_up_innermost_first(edges_of):
    files = {
        "app/models/tax.rb": "class Tax\nend\n",
        "app/models/ledger.rb": "class Ledger\nend\n",
        "app/models/billing/tax.rb": "module Billing\n  class Tax\n    RATE = 2\n  end\nend\n",
        "app/models/billing/nested.rb": "module Billing\n  class Nested\n    X = [Tax::RATE, Ledger, ::Ledger]\n  end\nend\n",
        "app/models/billing/compact.rb": "class Billing::Compact\n  def x = Tax.new\nend\n",
        "app/models/billing/absolute.rb": "module Billing\n  class Absolute\n    X = ::Tax\n  end\nend\n",
        "app/models/other/ledger.rb": "module Other\n  class Ledger\n  end\nend\n",
    }
    assert edges_of(files) == {
        ("app/models/billing/nested.rb", "app/models/billing/tax.rb"),
        ("app/models/billing/nested.rb", "app/models/ledger.rb"),
        ("app/models/billing/compact.rb", "app/models/tax.rb"),
        ("app/models/billing/absolute.rb", "app/models/tax.rb"),
    }


def test_a_compact_name_in_a_module_may_start_at_the_top(edges_of):
    files = {
        "lib/a.rb": "class A\nend\n",
        "lib/m.rb": "module M\n  class A::Inner\n  end\n  X = 1\nend\n",
        "lib/user.rb": "A::Inner\n",
    }
    assert edges_of(files) == {("lib/user.rb", "lib/m.rb"), ("lib/m.rb", "lib/a.rb")}


def test_inherited_constants(edges_of):
    files = {
        "app/models/base.rb": "class Base\n  include Shared\nend\n",
        "app/models/base/part.rb": "class Base::Part\nend\n",
        "app/models/part.rb": "class Part\nend\n",
        "app/models/concerns/shared.rb": "module Shared\n  X = 1\nend\n",
        "app/models/shared/deep.rb": "class Shared::Deep\nend\n",
        "app/models/child.rb": "class Child < Base\n  def x = [Part, Deep]\nend\n",
    }
    found = {target for source, target in edges_of(files) if source == "app/models/child.rb"}
    assert found == {"app/models/base.rb", "app/models/base/part.rb", "app/models/shared/deep.rb"}


def test_constants_are_soft_superclasses_and_mixins_too(strengths_of):
    files = {
        "app/models/user.rb": (
            "class User < Record\n  include Named\n  extend Found\n  validates Rule\n  included do\n"
            "    include Late\n  end\n  def x = Mail.new\nend\n"
        ),
        **{
            f"app/models/{n.lower()}.rb": f"class {n}\nend\n"
            for n in ("Record", "Named", "Found", "Rule", "Late", "Mail")
        },
    }
    found = {target[11:-3]: strength for (_, target), strength in strengths_of(files).items()}
    assert found == dict.fromkeys(("record", "named", "found", "rule", "late", "mail"), "soft")


def test_a_reopened_namespace_is_the_file_that_its_path_spells(edges_of):
    files = {
        "lib/shop.rb": "module Shop\n  NAME = 1\nend\n",
        "lib/shop/a.rb": "module Shop\n  class A\n  end\nend\n",
        "lib/shop/b.rb": "module Shop\n  class B\n    def x = Shop.config\n  end\nend\n",
        "lib/depot/a.rb": "module Depot\n  class A\n  end\nend\n",
        "lib/depot/b.rb": "module Depot\n  class B\n    def x = Depot.config\n  end\nend\n",
    }
    assert edges_of(files) == {("lib/shop/b.rb", "lib/shop.rb")}


def test_a_constant_with_one_file_needs_no_path_that_spells_it(edges_of):
    files = {
        "lib/shop/errors.rb": "module Shop\n  class Failed < StandardError\n  end\n  class Twice\n  end\nend\n",
        "lib/shop/more.rb": "module Shop\n  class Twice\n  end\nend\n",
        "lib/shop/cart.rb": "module Shop\n  class Cart\n    def x = [Failed, Twice]\n  end\nend\n",
        "config/patch.rb": "module Gem1\n  class Base\n    X = 1\n  end\nend\nclass Lonely\nend\n",
        "lib/shop/user.rb": "Gem1::Base\nLonely\n",
    }
    assert edges_of(files) == {("lib/shop/cart.rb", "lib/shop/errors.rb")}


def test_spelling_ignores_inflections(edges_of):
    files = {
        "lib/net/http_api.rb": "module Net\n  class HTTPApi\n  end\nend\n",
        "app/services/oauth_flow.rb": "class OAuthFlow\n  X = Net::HTTPApi\nend\n",
        "app/services/login.rb": "class Login\n  X = OAuthFlow\nend\n",
    }
    assert edges_of(files) == {
        ("app/services/oauth_flow.rb", "lib/net/http_api.rb"),
        ("app/services/login.rb", "app/services/oauth_flow.rb"),
    }


def test_core_classes_that_are_reopened_are_no_files_of_ours(edges_of):
    files = {
        "lib/string.rb": "class String\n  def shout = upcase\nend\n",
        "lib/user.rb": "class User\n  def x = String.new\nend\n",
        "lib/model/string.rb": "module Model\n  class String\n  end\nend\n",
        "lib/model/field.rb": "module Model\n  class Field\n    X = String\n  end\nend\n",
    }
    assert edges_of(files) == {("lib/model/field.rb", "lib/model/string.rb")}


def test_code_never_needs_tests(edges_of):
    files = {
        "lib/shop/cart.rb": "module Shop\n  class Cart\n    def x = [Fake, Post]\n  end\nend\n",
        "test/shop/fake.rb": "module Shop\n  class Fake\n  end\nend\n",
        "test/post.rb": "class Post\nend\n",
        "test/cart_test.rb": "class CartTest\n  X = [Shop::Cart, Shop::Fake, Post]\nend\n",
        "engine/test/cart_test.rb": "class OtherTest\n  X = [Post, Shop::Fake]\nend\n",
    }
    assert edges_of(files) == {
        ("test/cart_test.rb", target) for target in ("lib/shop/cart.rb", "test/shop/fake.rb", "test/post.rb")
    }


def test_applications_beside_each_other_do_not_share_models(edges_of):
    application = "module Demo\n  class Application\n  end\nend\n"
    files = {
        "one/config/application.rb": application,
        "one/app/models/user.rb": "class User\nend\n",
        "one/app/models/group.rb": "class Group\n  X = User\nend\n",
        "two/config/application.rb": application,
        "two/app/models/group.rb": "class Group\n  X = User\nend\n",
        "packs/mail/app/models/letter.rb": "class Letter\nend\n",
        "app/models/box.rb": "class Box\n  X = Letter\nend\n",
    }
    assert edges_of(files) == {
        ("one/app/models/group.rb", "one/app/models/user.rb"),
        ("app/models/box.rb", "packs/mail/app/models/letter.rb"),
    }


def test_odd_input_is_survived(edges_of):
    deep = "module A\n" * 3000 + "B" + "\nend" * 3000
    files = {
        "lib/a.rb": deep,
        "lib/b.rb": "class B\nend\nautoload\nrequire\nrequire()\ninclude(*X)\nautoload :x\nautoload 1, 2\nclass self::C; end",
        "lib/c.rb": "class C < \n module ::D::E \n require 'b' \n )]} class = 1",
        "lib/d.rb": "A" + "::A" * 5000 + "\n" + "B::\n",
        "lib/e.gemspec": "x.require_paths = [" + "," * 1000,
        "lib/f.gemspec": 's.require_paths = ["../../..", "/etc"]\n',
    }
    edges_of(files)
    found = scan(
        "Ruby", "lib/x.rb", b"\n\n  \xff\xfe class \xc3\x28 < Foo\n require 'b\xff'\nX = '\x00/a'\nrequire \"\x00/a\""
    )
    list(ruby.resolve(RepoTree(["lib/x.rb"]), {"lib/x.rb": found}))


def test_the_result_does_not_depend_on_the_hash_seed():
    program = """
from repo2ctx.languages import RepoTree, ruby
import tree_sitter
parser = tree_sitter.Parser(tree_sitter.Language(ruby.GRAMMARS["Ruby"]()))
names = ["One", "Two", "Three", "Four"]
files = {f"lib/p/{n.lower()}.rb": f"module P\\n  class {n}\\n    X = [{', '.join(names)}]\\n  end\\nend\\n" for n in names}
files["other/lib/p/one.rb"] = files["lib/p/one.rb"]
syntax = {p: ruby.scan(parser.parse(t.encode()).root_node, p) for p, t in files.items()}
print(syntax, list(ruby.resolve(RepoTree(files), syntax)))
"""
    assert len(outputs_by_hash_seed(program)) == 1


def test_a_require_that_only_a_test_run_satisfies_is_of_the_kind_test():
    files = {
        "lib/shop.rb": "",
        "test/test_helper.rb": "require 'shop'",
        "test/models/cart.rb": "",
        "test/cart_test.rb": "require 'test_helper'\nrequire 'models/cart'\nrequire_relative 'helpers'\n",
        "test/helpers.rb": "",
    }
    found = {(e.source, e.target): (e.kind, e.strength) for e in graph_of_files(files).edges}
    assert found == {
        ("test/test_helper.rb", "lib/shop.rb"): ("require", "hard"),
        ("test/cart_test.rb", "test/test_helper.rb"): ("test", "hard"),
        ("test/cart_test.rb", "test/models/cart.rb"): ("test", "hard"),
        ("test/cart_test.rb", "test/helpers.rb"): ("require", "hard"),
    }
