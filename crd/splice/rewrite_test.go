package splice

import (
	"strings"
	"testing"
)

// rewrite is a document before and after edits, which " ; " separates. What
// begins with "error: " is the beginning of an error.
type rewrite struct{ name, before, edits, after string }

func rewrites(t *testing.T, cases []rewrite) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, edits := readEdits(t, strings.ReplaceAll(c.edits, " ; ", "\n"))
			out, err := Apply([]byte(c.before), 0, edits)
			if want, ok := strings.CutPrefix(c.after, "error: "); ok {
				if err == nil || !strings.HasPrefix(err.Error(), want) {
					t.Errorf("%s\nof\n%s\ngot %q and error %v, want %s", c.edits, c.before, out, err, want)
				}
				return
			}
			if err != nil || string(out) != c.after {
				t.Errorf("%s\nof\n%s\ngot\n%s\n%q\nwant\n%s\n%q\nerror %v", c.edits, c.before, out, out, c.after, c.after, err)
			}
		})
	}
}

// TestRewriteLines: lines are what YAML has as lines, and edits keep their breaks.
func TestRewriteLines(t *testing.T) {
	rewrites(t, []rewrite{
		{"a byte order mark", "\ufeffa: 1 # c\nb: 2\n", "set /a 3", "\ufeffa: 3 # c\nb: 2\n"},
		{"a backslash in single quotes", "a: 'c:\\'\nb: 'it''s' # c\n", "set /a 1 ; set /b 2", "a: 1\nb: 2 # c\n"},
		{"a backslash in single quotes in flow", "{a: 'c:\\', b: \"\\\"\", 'c\\': 3}\n", "set /a 1 ; set /b 2 ; set /c\\ 4", "{a: 1, b: 2, 'c\\': 4}\n"},
		{"a byte order mark before JSON", "\ufeff{a: 1, b: 2}\n", "remove /a", "\ufeff{b: 2}\n"},
		{"breaks of one carriage return", "a: 1\rb: 2\rc: 3\r", "set /b 4", "a: 1\rb: 4\rc: 3\r"},
		{"one carriage return, members below", "a:\r  b: 2\r  c: 3\r", "remove /a/b", "a:\r  c: 3\r"},
		{"CRLF added", "a: 1\r\nb:\r\n  c: 2\r\n", "insert /b/d {\"e\":[1]} ; set /a {\"x\":1}", "a:\r\n  x: 1\r\nb:\r\n  c: 2\r\n  d:\r\n    e:\r\n    - 1\r\n"},
		{"a break in a comment: U+2028", "a: 1 # x\u2028b: 2\nc: 3\n", "set /c 4 ; set /b 5", "a: 1 # x\u2028b: 5\nc: 4\n"},
		{"a break in a comment: U+2029", "a: 1 # x\u2029b: 2\nc: 3\n", "set /c 4 ; remove /b", "a: 1 # x\nc: 4\n"},
		{"a break in a comment: U+0085", "a: 1 # x\u0085b: 2\nc: 3\n", "set /c 4 ; set /b {\"d\":1}", "a: 1 # x\u0085b:\n  d: 1\nc: 4\n"},
		{"U+2028 at the end", "a: 1\nb: 2\u2028", "set /b 3", "a: 1\nb: 3\u2028"},
		{"U+0085 at the end", "a: 1\nb: 2\u0085", "set /b 3", "a: 1\nb: 3\u0085"},
		{"characters that begin like breaks", "a: éÀ‧\u202a € # c\nb: 2\n", "set /a 3", "a: 3 # c\nb: 2\n"},
		{"U+2028 in quotes", "a: \"x\u2028 y\"\nb: 2\n", "set /b 3", "a: \"x\u2028 y\"\nb: 3\n"},
		{"no break at the end", "a: 1\nb: 2", "insert /c 3", "a: 1\nb: 2\nc: 3"},
		{"no break at the end, removed", "a: 1\nb: 2", "remove /b", "a: 1"},
		{"no break at the end, first removed", "a: 1\nb: 2", "remove /a", "b: 2"},
		{"UTF-16", "\xff\xfea\x00:\x00 \x00'\x00x\x00( ( ( '\x00\n\x00b\x00:\x00 \x00{\x00}\x00\n\x00c\x00:\x00 \x00'\x00q\x00'\x00\n\x00d\x00:\x00 \x00\"\x00\"\x00\n\x00", "set /b 1", "error: set /b: line 5: cannot tell where this value ends: write it in plain block style first"},
		{"columns count characters", "é: {ü: 1, ö: [\"ß\", x]} # é\n", "set /é/ö/1 \"y\"", "é: {ü: 1, ö: [\"ß\", \"y\"]} # é\n"},
		{"empty lines around", "\n\na: 1\n\n\nb: 2\n\n", "remove /b", "\n\na: 1\n\n\n\n"},
		{"empty lines between", "a: 1\n\nb: 2\n\nc: 3\n", "remove /b", "a: 1\n\n\nc: 3\n"},
		{"empty lines, one added", "a: 1\n\nb: 2\n\nc: 3\n", "insert /d before=c 4", "a: 1\n\nb: 2\nd: 4\n\nc: 3\n"},
		{"documents", "# x\n---\na: 1\n...\n---\nb: 1\n", "insert /c 1", "# x\n---\na: 1\nc: 1\n...\n---\nb: 1\n"},
	})
}

// TestRewritePointers: a place that cannot be edited is an error that says why.
func TestRewritePointers(t *testing.T) {
	rewrites(t, []rewrite{
		{"a slash in a name", "a/b: 1\nc: 2\n", "set /a~1b 3", "a/b: 3\nc: 2\n"},
		{"a tilde in a name", "a~b: 1\nc: 2\n", "set /a~0b 3", "a~b: 3\nc: 2\n"},
		{"both", "x:\n  a~1b: 1\n  c: 2\n", "remove /x/a~01b", "x:\n  c: 2\n"},
		{"a new name", "a: 1\n", "insert /a~1~0b {\"c\":1}", "a: 1\na/~b:\n  c: 1\n"},
		{"a name inside", "a/b:\n  c: 1\n", "set /a~1b/c 2", "a/b:\n  c: 2\n"},
		{"an empty name", "\"\": 1\na: 2\n", "set / 3", "\"\": 3\na: 2\n"},
		{"an empty name above", "a:\n  \"\":\n    b: 1\n", "set /a//b 2", "a:\n  \"\":\n    b: 2\n"},
		{"the whole document", "a: 1\n", "set  1", "error: set : a whole document cannot be edited"},
		{"the whole document removed", "a: 1\n", "remove ", "error: remove : a whole document cannot be edited"},
		{"the whole document inserted", "a: 1\n", "insert  1", "error: insert : a whole document cannot be edited"},
		{"the whole document before others", "a: 1\n", "insert  1 ; set /b 1", "error: insert : a whole document cannot be edited"},
		{"the last member of a document", "a: 1\n", "remove /a", "error: a whole document cannot be edited"},
		{"a member that is not there", "a:\n  b: 1\n", "set /a/c 1", "error: set /a/c: the place does not exist: /a has no \"c\""},
		{"a member of a scalar", "a: 1\n", "set /a/b 1", "error: set /a/b: the place does not exist: /a has no \"b\""},
		{"a new member of a scalar", "a: 1\n", "insert /a/b 1", "error: insert /a/b: the place does not exist"},
		{"a member that is there", "a: 1\nb: 2\n", "insert /a 1", "error: insert /a: the place already exists"},
		{"an item that is not there", "a: [1]\n", "set /a/1 1", "error: set /a/1: the place does not exist: /a has no \"1\""},
		{"a negative item", "a: [1]\n", "set /a/-1 1", "error: set /a/-1: the place does not exist: /a has no \"-1\""},
		{"an item that is no number", "a: [1]\n", "remove /a/x", "error: remove /a/x: the place does not exist: /a has no \"x\""},
		{"an item after the end", "a: [1]\n", "insert /a/2 1", "error: insert /a/2: the place does not exist"},
		{"an item at the end", "a: [1]\n", "insert /a/1 2", "a: [1, 2]\n"},
		{"an item of no number", "a:\n- 1\n", "insert /a/x 2", "error: insert /a/x: the place does not exist"},
		{"move of an item", "a: [1]\nb: 1\n", "move /c from=/a/0", "error: move /c: only members of objects can be moved"},
		{"move into itself", "a:\n  b: 1\nc: 1\n", "move /a/b/c from=/a", "error: move /a/b/c: a value cannot be moved into itself"},
		{"copy onto itself", "a: 1\n", "copy /a from=/a", "error: copy /a: a value cannot be moved into itself"},
		{"move from nowhere", "a:\n  b: 1\n", "move /c from=/a/x", "error: move /c: the place does not exist: /a has no \"x\""},
		{"copy of a beginning of the name", "a: 1\nab:\n  c: 2\n", "copy /ab/d from=/a", "a: 1\nab:\n  c: 2\n  d: 1\n"},
		{"copy to what is there", "a: 1\nb:\n  c: 2\n", "copy /b/c from=/a", "error: copy /b/c: the place already exists"},
		{"two values", "a: 1\n", "set /a 1 2", "error: set /a: the new value is not JSON: there is more than one value"},
		{"two new values", "a: 1\n", "insert /b {} {}", "error: insert /b: the new value is not JSON: there is more than one value"},
		{"no value", "a: 1\n", "set /a", "error: set /a: the new value is not JSON: "},
		{"half a value", "a: 1\n", "set /a {\"b\":", "error: set /a: the new value is not JSON: "},
		{"half an array", "a: 1\n", "set /a [1,", "error: set /a: the new value is not JSON: "},
		{"half a name", "a: 1\n", "set /a {\"b", "error: set /a: the new value is not JSON: "},
		{"no name", "a: 1\n", "set /a {1:2}", "error: set /a: the new value is not JSON: "},
		{"no value in an array", "a: 1\n", "set /a [x]", "error: set /a: the new value is not JSON: "},
		{"twice the key", "a: 1\nb: 2\na: 3\n", "set /a 1", "error: set /a: line 1: duplicate key \"a\": remove one first"},
		{"beside a key twice", "a: 1\nb: 2\na: 3\n", "set /b 1", "a: 1\nb: 1\na: 3\n"},
		{"before a key twice", "a: 1\nb: 2\na: 3\n", "insert /c before=a 1", "error: insert /c: line 1: duplicate key \"a\": remove one first"},
		{"an anchor inside", "a:\n  b: &x 1\nc: *x\n", "remove /a", "error: remove /a: line 2: the anchor &x is used elsewhere: replace its aliases with the value first"},
		{"copy of an anchor", "a:\n  b: &x 1\nc: *x\nd: {}\n", "copy /d/a from=/a", "error: copy /d/a: line 2: the anchor &x is used elsewhere: replace its aliases with the value first"},
		{"move of an anchor", "a:\n  b: &x 1\nc: *x\nd: {}\n", "move /d/a from=/a", "error: move /d/a: line 2: the anchor &x is used elsewhere: replace its aliases with the value first"},
		{"rename with an anchor", "a:\n  b: &x 1\nc: *x\n", "move /d from=/a", "d:\n  b: &x 1\nc: *x\n"},
		{"an alias", "a: &x {b: 1}\nc: *x\n", "set /c/b 1", "error: set /c/b: line 2: replace the alias *x with its value first"},
		{"an alias removed", "a: &x {b: 1}\nc: *x\n", "remove /c", "error: remove /c: line 2: replace the alias *x with its value first"},
		{"beside an alias", "a: &x {b: 1}\nc: *x # c\nd: [*x , 1]\n", "set /d/1 2", "a: &x {b: 1}\nc: *x # c\nd: [*x , 2]\n"},
		{"a merge key around", "a: &x {b: 1}\nc:\n  <<: *x\n  d: 1\n", "insert /c/e 1", "error: insert /c/e: line 3: replace the merge key << with its members first"},
	})
}

// TestRewriteKeys: all forms of keys.
func TestRewriteKeys(t *testing.T) {
	rewrites(t, []rewrite{
		{"blanks before the colon", "a : 1 # c\nb\t: 2\n", "set /a 3 ; set /b 4", "a : 3 # c\nb\t: 4\n"},
		{"blanks before the colon, removed", "a : 1 # c\nb  : 2\nc: 3\n", "remove /b", "a : 1 # c\nc: 3\n"},
		{"quoted keys", "\"a\": 1\n'b': 2\n\"c\\\"d\": 3\n'e''f': 4\n", "set /a 5 ; set /b 6 ; set /c\"d 7 ; set /e'f 8", "\"a\": 5\n'b': 6\n\"c\\\"d\": 7\n'e''f': 8\n"},
		{"question marks set", "? a\n: 1\nb: 2\n", "set /a 1", "error: set /a: line 1: this form of a key cannot be edited: write it as key: value first"},
		{"question marks removed", "? a\n: 1\nb: 2\n", "remove /a", "error: line 1: this form of a key cannot be edited: write it as key: value first"},
		{"question marks, the other removed", "? a\n: 1\nb: 2\n", "remove /b", "? a\n: 1\n"},
		{"question marks, one added", "b: 2\n? a\n: 1\n", "insert /c 3", "error: line 2: this form of a key cannot be edited: write it as key: value first"},
		{"question marks renamed", "? a\n: 1\nb: 2\n", "move /c from=/a", "? c\n: 1\nb: 2\n"},
		{"a tagged key", "!!str a: 1\nb: 2\n", "set /a 2", "error: set /a: line 1: cannot tell where this value ends: write it in plain block style first"},
		{"a tagged key renamed", "!!str a: 1\nb: 2\n", "move /c from=/a", "error: move /c: line 1: cannot tell where this value ends: write it in plain block style first"},
		{"an anchor at the key", "&x a: 1\nb: 2\n", "remove /a", "error: line 1: cannot tell where this value ends: write it in plain block style first"},
		{"renamed", "a: 1 # c\nb: 2\n", "move /c from=/a", "c: 1 # c\nb: 2\n"},
		{"renamed in quotes", "\"a\": 1 # c\nb: 2\n", "move /c from=/a", "\"c\": 1 # c\nb: 2\n"},
		{"renamed in single quotes", "'a': 1 # c\nb: 2\n", "move /c from=/a", "c: 1 # c\nb: 2\n"},
		{"renamed to what needs quotes", "a: 1\nb: 2\n", "move /true from=/a", "\"true\": 1\nb: 2\n"},
		{"renamed to the first", "a: 1\nb: 2\n", "move /a from=/b", "error: move /a: the place already exists"},
		{"renamed to the last", "a: 1\nb: 2\n", "move /b from=/a", "error: move /b: the place already exists"},
		{"renamed in flow style", "{\"a\": 1, b: 2}\n", "move /x from=/a ; move /y from=/b", "{\"x\": 1, \"y\": 2}\n"},
		{"renamed with members", "a:\n  # c\n  b: 1 # d\ne: 2\n", "move /f from=/a", "f:\n  # c\n  b: 1 # d\ne: 2\n"},
		{"new names that need quotes", "a: 1\n", "insert /1 1 ; insert /null 2 ; insert /y 3 ; insert /x:y 4", "a: 1\n\"1\": 1\n\"null\": 2\n\"y\": 3\nx:y: 4\n"},
	})
}

// TestRewriteScalars: a value ends where YAML ends it, and comments behind it stay.
func TestRewriteScalars(t *testing.T) {
	rewrites(t, []rewrite{
		{"a tag before quotes", "a: !!str \"x\" # c\nb: 1\n", "set /a 2", "a: 2 # c\nb: 1\n"},
		{"a tag before single quotes", "a: !!str 'x' # c\nb: 1\n", "set /a 2", "a: 2 # c\nb: 1\n"},
		{"a tag before a plain one", "a: !!str 12 # c\nb: 1\n", "set /a 2", "a: 2 # c\nb: 1\n"},
		{"a tag and a comment before empty quotes", "a: !!str # c\n  \"\"\nb: 1\n", "set /a 2", "a: 2 # c\nb: 1\n"},
		{"a tag alone at the end", "b: 1\na: !!str", "set /b 2", "b: 2\na: !!str"},
		{"a tag and blanks at the end", "b: 1\na: !!str  ", "set /b 2", "b: 2\na: !!str  "},
		{"an anchor alone", "b: 1\na: &x\n", "set /b 2", "b: 2\na: &x\n"},
		{"an anchor before flow", "b: 1\na: &x {c: 1}\n", "insert /a/d 2", "b: 1\na: &x {c: 1, d: 2}\n"},
		{"an anchor and a tag before flow", "b: 1\na: &x !!map {c: 1}\n", "insert /a/d 2", "b: 1\na: &x !!map {c: 1, d: 2}\n"},
		{"an anchor above flow", "b: 1\na: &x\n  [1]\n", "insert /a/- 2", "b: 1\na: &x\n  [1, 2]\n"},
		{"an anchor before a block", "b: 1\na: &x\n  c: 1\n", "insert /a/d 2", "b: 1\na: &x\n  c: 1\n  d: 2\n"},
		{"# in a plain one", "a: x#y # c\nb: 1\n", "set /a 2", "a: 2 # c\nb: 1\n"},
		{"# after a tab", "a: x\t# c\nb: 1\n", "set /a 2", "a: 2\t# c\nb: 1\n"},
		{"two comment signs", "a: x # c # d\nb: 1\n", "set /a 2", "a: 2 # c # d\nb: 1\n"},
		{"blanks at the end", "a: x  \t\nb: 1\n", "set /a 2", "a: 2  \t\nb: 1\n"},
		{"a plain one on lines", "a: x\n  y\n\n  z # c\nb: 1\n", "set /a 2", "a: 2 # c\nb: 1\n"},
		{"a plain one on lines, a comment below", "a: x\n  y\n  # c\nb: 1\n", "set /a 2", "a: 2\n  # c\nb: 1\n"},
		{"a plain one below its key", "a:\n  x\n  y\nb: 1\n", "set /a 2", "a: 2\nb: 1\n"},
		{"a plain one below its key, a comment behind the key", "a: # c\n  x # d\nb: 1\n", "set /a 2", "a: 2 # c # d\nb: 1\n"},
		{"a plain one on lines, an item", "- x\n  y\n- z\n", "set /0 2", "- 2\n- z\n"},
		{"a plain one on lines, a tab", "a: x\n \ty\nb: 1\n", "set /a 2", "a: 2\nb: 1\n"},
		{"quotes on lines", "a: \"x\n  y\" # c\nb: 1\n", "set /a 2", "a: 2 # c\nb: 1\n"},
		{"quotes in quotes", "a: \"x\\\"\\\\\" # c\nb: 'it''s' # d\nc: ''\n", "set /a 2 ; set /b 3 ; set /c 4", "a: 2 # c\nb: 3 # d\nc: 4\n"},
		{"nothing", "a:\nb: # c\nc: 1\n", "set /a 2 ; set /b 3", "a: 2\nb: 3 # c\nc: 1\n"},
		{"nothing, a list", "a:\nb: # c\nc: 1\n", "set /a [2] ; set /b {\"d\":3}", "a:\n- 2\nb: # c\n  d: 3\nc: 1\n"},
		{"nothing, an item", "-\n- # c\n- 1\n", "set /0 2 ; set /1 3", "- 2\n- 3 # c\n- 1\n"},
		{"nothing, in flow style", "{a: , b: , c: [1]}\n", "set /a 2 ; set /b 3", "{a:  2, b:  3, c: [1]}\n"},
		{"a literal", "a: |\n  x\n  # y\nb: 1\n", "set /a 2", "a: 2\nb: 1\n"},
		{"a literal, blank lines after it", "a: |\n  x\n\n\nb: 1\n", "set /a 2", "a: 2\n\n\nb: 1\n"},
		{"a literal that keeps blank lines", "a: |+\n  x\n\n\nb: 1\n", "set /a 2", "a: 2\nb: 1\n"},
		{"a literal with a comment", "a: | # +\n  x\n\nb: 1\n", "set /a 2", "a: 2\n\nb: 1\n"},
		{"a literal below its tag and a comment", "a: !!str # +\n  |\n  x\n\nb: 1\n", "set /a 2", "a: 2 # +\n\nb: 1\n"},
		{"quotes below a tag and a comment", "a: !!str # c\n  'x' # d\nb: 1\n", "set /a 2", "a: 2 # c # d\nb: 1\n"},
		{"an object below a tag and a comment", "a: !!map # c\n  d: 1\nb: 1\n", "remove /a/d", "a: {} # c\nb: 1\n"},
		{"an object below a tag and a comment set", "a: !!map # c\n  d: 1\nb: 1\n", "set /a {\"e\":2}", "a: # c\n  e: 2\nb: 1\n"},
		{"an item below a tag and a comment", "- !!str # c\n  'x'\n- 1\n", "set /0 2", "- 2 # c\n- 1\n"},
		{"a literal, comments after it", "a: |\n  x\n# c\nb: 1\n", "set /a 2", "a: 2\n# c\nb: 1\n"},
		{"a literal at the end", "b: 1\na: |\n  x", "set /a 2", "b: 1\na: 2"},
		{"a literal that keeps, at the end", "b: 1\na: |+\n  x\n\n", "set /a 2", "b: 1\na: 2\n"},
		{"an empty literal", "a: |\nb: 1\n", "set /a 2", "a: 2\nb: 1\n"},
		{"a folded one", "a: >-\n  x\n\n  y\nb: 1\n", "set /a \"x\\ny\"", "a: |-\n  x\n  y\nb: 1\n"},
		{"a literal as an item", "a:\n- |\n  x\n- y\n", "set /a/0 1", "a:\n- 1\n- y\n"},
		{"a literal removed", "a: 1\nb: |\n  x\n\nc: 1\n", "remove /b", "a: 1\n\nc: 1\n"},
		{"a literal indented by one", "a: |\n x\nb: 1\n", "set /a 2", "a: 2\nb: 1\n"},
		{"a literal with blanks in its first lines", "a: |2\n\n   x\n  y\nb: 1\n", "set /a 2", "a: 2\nb: 1\n"},
	})
}
