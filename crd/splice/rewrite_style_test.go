package splice

import "testing"

// TestRewriteIndentation: new values are written like the rest of the document.
func TestRewriteIndentation(t *testing.T) {
	rewrites(t, []rewrite{
		{"flow in a line says nothing", "a: {b: 1}\nc: 1\n", "set /c {\"x\":1}", "a: {b: 1}\nc:\n  x: 1\n"},
		{"flow on lines says it", "a: {\n    b: 1,\n    d: 2\n}\nc: 1\n", "set /c {\"x\":1}", "a: {\n    b: 1,\n    d: 2\n}\nc:\n    x: 1\n"},
		{"three columns", "a:\n   b: 1\nc: 1\n", "set /c {\"x\":{\"y\":1}}", "a:\n   b: 1\nc:\n   x:\n      \"y\": 1\n"},
		{"most of them", "a:\n  b:\n      c:\n          d: 1\ne: 1\n", "set /e {\"x\":1}", "a:\n  b:\n      c:\n          d: 1\ne:\n    x: 1\n"},
		{"as many of both", "a:\n    b: 1\nc:\n  d: 1\ne: 1\n", "set /e {\"x\":1}", "a:\n    b: 1\nc:\n  d: 1\ne:\n  x: 1\n"},
		{"eight columns", "a:\n        b: 1\ne: 1\n", "set /e {\"x\":1}", "a:\n        b: 1\ne:\n        x: 1\n"},
		{"nine columns", "a:\n         b: 1\ne: 1\n", "set /e {\"x\":1}", "a:\n         b: 1\ne:\n  x: 1\n"},
		{"nine columns in flow", "a: {\n         b: 1\n}\ne: 1\n", "set /e {\"x\":1}", "a: {\n         b: 1\n}\ne:\n  x: 1\n"},
		{"far from its key in flow", "a: {b:\n              1}\ne: 1\n", "set /e {\"x\":1}", "a: {b:\n              1}\ne:\n  x: 1\n"},
		{"one column", "a:\n b: 1\ne: 1\n", "set /e {\"x\":[1]}", "a:\n b: 1\ne:\n x:\n - 1\n"},
		{"items indented by one", "a:\n - 1\nb: 1\n", "set /b [1]", "a:\n - 1\nb:\n  - 1\n"},
		{"items indented", "a:\n  - 1\nb: 1\n", "set /b [1,{\"c\":[2]}]", "a:\n  - 1\nb:\n  - 1\n  - c:\n      - 2\n"},
		{"items not indented", "a:\n- 1\nb: 1\n", "set /b [1,{\"c\":[2]}]", "a:\n- 1\nb:\n- 1\n- c:\n  - 2\n"},
		{"items both ways", "a:\n- 1\nb:\n  - 1\nc: 1\n", "set /c [1]", "a:\n- 1\nb:\n  - 1\nc:\n- 1\n"},
		{"items mostly indented", "a:\n- 1\nb:\n  - 1\nc:\n  - 1\nd: 1\n", "set /d [1]", "a:\n- 1\nb:\n  - 1\nc:\n  - 1\nd:\n  - 1\n"},
		{"items in items", "a:\n- - 1\n  - 2\n- 3\n", "insert /a/0/1 [4,[5]] ; set /a/1 [{\"b\":1,\"c\":2}]", "a:\n- - 1\n  - - 4\n    - - 5\n  - 2\n- - b: 1\n    c: 2\n"},
		{"an item set to an object", "- a\n- b # c\n", "set /1 {\"x\":1,\"y\":2}", "- a\n- x: 1 # c\n  \"y\": 2\n"},
		{"wide dashes", "-   a: 1\n    b: 2\n-   c: 3\n", "insert /0/d 4 ; insert /- {\"e\":1,\"f\":2}", "-   a: 1\n    b: 2\n    d: 4\n-   c: 3\n- e: 1\n  f: 2\n"},
		{"a text of lines", "a:\n  b: 1\n", "insert /a/c \"x\\ny\\n\" ; set /a/b \"u\\nv\"", "a:\n  b: |-\n    u\n    v\n  c: |\n    x\n    y\n"},
		{"a text of lines as an item", "a:\n  - b\n", "insert /a/- \"x\\ny\\n\"", "a:\n  - b\n  - |\n      x\n      y\n"},
		{"a tab", "a:\n  b: 1\n", "insert /a/c \"x\\ty\"", "a:\n  b: 1\n  c: \"x\\ty\"\n"},
		{"a carriage return", "a:\n  b: 1\n", "insert /a/c \"x\\r\\ny\"", "a:\n  b: 1\n  c: \"x\\r\\ny\"\n"},
		{"words of YAML", "a: 1\n", "insert /b [\"yes\",\"null\",\"1\",\"1.5\",\"~\",\"\",\"- x\",\"# x\",\"a: b\"]", "a: 1\nb:\n- \"yes\"\n- \"null\"\n- \"1\"\n- \"1.5\"\n- \"~\"\n- \"\"\n- '- x'\n- '# x'\n- 'a: b'\n"},
		{"numbers", "a: {b: 1}\n", "set /a/b [1.50,1e3,1E+30,-0.5e-7,12345678901234567890]", "a: {b: [1.50, 1e3, 1E+30, -0.5e-7, 12345678901234567890]}\n"},
		{"scalars", "a: 1\n", "insert /b [true,false,null,1,1.50,1e3,-2,{},[]]", "a: 1\nb:\n- true\n- false\n- null\n- 1\n- 1.50\n- 1e3\n- -2\n- {}\n- []\n"},
	})
}

// TestRewriteBlock: members and items on lines of their own.
func TestRewriteBlock(t *testing.T) {
	rewrites(t, []rewrite{
		{"the first member beside a dash", "- a: 1\n  b: 2\n  c: 3\n", "remove /0/a", "- b: 2\n  c: 3\n"},
		{"two members beside a dash", "- a: 1\n  b: 2\n  c: 3\n", "remove /0/a ; remove /0/b", "- c: 3\n"},
		{"the first and the last", "- a: 1\n  b: 2\n  c: 3\n", "remove /0/a ; remove /0/c", "- b: 2\n"},
		{"all beside a dash", "- a: 1\n  b: 2\n- c\n", "remove /0/a ; remove /0/b", "- {}\n- c\n"},
		{"beside a dash, a comment behind", "- a: 1 # x\n  b: 2 # y\n", "remove /0/a", "- b: 2 # y\n"},
		{"beside a dash, a comment between", "- a: 1\n  # x\n  b: 2\n", "remove /0/a", "- \n  # x\n  b: 2\n"},
		{"beside a dash, a comment after the next", "- a: 1\n  b: 2\n  # x\n  c: 3\n", "remove /0/a ; remove /0/b", "- \n  # x\n  c: 3\n"},
		{"beside a dash, blank lines between", "- a: 1\n\n  b: 2\n", "remove /0/a", "- b: 2\n"},
		{"beside a dash, a list below", "- a:\n  - 1\n  - 2\n  b: 2\n", "remove /0/a", "- b: 2\n"},
		{"a list beside a dash", "- - 1\n  - 2\n- 3\n", "remove /0/0", "- - 2\n- 3\n"},
		{"beside a dash, one before", "- a: 1\n  b: 2\n", "insert /0/c before=a {\"d\":1}", "- c:\n    d: 1\n  a: 1\n  b: 2\n"},
		{"beside a dash, exchanged", "- a: 1\n  b: 2\n", "remove /0/a ; insert /0/c before=b 3", "- c: 3\n  b: 2\n"},
		{"beside a dash, one after", "- a: 1\n  b: 2\n", "insert /0/c before=b 3", "- a: 1\n  c: 3\n  b: 2\n"},
		{"a dash above", "-\n  a: 1\n  b: 2\n-\n\n  c: 3\n", "remove /1", "-\n  a: 1\n  b: 2\n"},
		{"a dash above, the first", "-\n  a: 1\n  b: 2\n-\n\n  c: 3\n", "remove /0/a", "-\n  b: 2\n-\n\n  c: 3\n"},
		{"one before a dash above", "-\n  a: 1\n-\n\n  c: 3\n", "insert /1 9 ; insert /0 8", "- 8\n-\n  a: 1\n- 9\n-\n\n  c: 3\n"},
		{"the last item", "a:\n  - 1 # x\n", "remove /a/0", "a: [] # x\n"},
		{"the last member", "a: # x\n  b: 1 # y\nc: 2\n", "remove /a/b", "a: {} # x # y\nc: 2\n"},
		{"the last member, one added", "a: # x\n  b: 1 # y\nc: 2\n", "remove /a/b ; insert /a/d 3", "a: # x\n  d: 3\nc: 2\n"},
		{"the first line", "a: 1\nb: 2\n", "remove /a", "b: 2\n"},
		{"the first line exchanged", "a: 1\nb: 2\n", "remove /a ; insert /c before=b 3", "c: 3\nb: 2\n"},
		{"the first line exchanged for more", "a: 1\nb: 2\n", "remove /a ; insert /c before=b {\"x\":1} ; insert /d before=b 3", "c:\n  x: 1\nd: 3\nb: 2\n"},
		{"indented as a whole", "  a: 1\n  b: 2\n", "remove /a ; insert /c 3", "  b: 2\n  c: 3\n"},
		{"comments above stay", "a: 1\n# b\nb: 2\n# c\nc: 3\n", "remove /b", "a: 1\n# b\n# c\nc: 3\n"},
		{"one above comments", "# a\na: 1\n# b\nb: 2\n", "insert /c before=a 3 ; insert /d before=b 4", "c: 3\n# a\na: 1\nd: 4\n# b\nb: 2\n"},
		{"one above comments inside", "x:\n  # a\n  # aa\n  a: 1\n", "insert /x/c before=a {\"y\":1}", "x:\n  c:\n    \"y\": 1\n  # a\n  # aa\n  a: 1\n"},
		{"two above comments inside", "x:\n  # a\n  a: 1\n", "insert /x/c before=a 1 ; insert /x/d before=a 2", "x:\n  c: 1\n  d: 2\n  # a\n  a: 1\n"},
		{"comments of another column", "x:\n# a\n  a: 1\n", "insert /x/c before=a 3", "x:\n# a\n  c: 3\n  a: 1\n"},
		{"comments before a blank line", "# top\n\n# a\na: 1\n", "insert /c before=a 3", "# top\n\nc: 3\n# a\na: 1\n"},
		{"before what is not there", "a: 1\nb: 2\n", "insert /c before=x 3", "a: 1\nb: 2\nc: 3\n"},
		{"after a nested value", "a:\n  b:\n    c: 1 # x\n# y\nd: 2\n", "insert /a/e 3 ; insert /a/b/f 4 ; insert /g before=d 5", "a:\n  b:\n    c: 1 # x\n    f: 4\n  e: 3\ng: 5\n# y\nd: 2\n"},
		{"items before and after", "a:\n# x\n- 1 # y\n- 2\n", "insert /a/0 0 ; insert /a/- 3", "a:\n- 0\n# x\n- 1 # y\n- 2\n- 3\n"},
		{"a value with a comment becomes an object", "a: 1 # x\nb: 2\n", "set /a {\"c\":1,\"d\":2}", "a: # x\n  c: 1\n  d: 2\nb: 2\n"},
		{"an object with comments becomes a value", "a: # x\n  # y\n  c: 1\n  d: 2 # z\nb: 2\n", "set /a 1", "a: 1 # x # z\nb: 2\n"},
		{"an object with comments becomes another", "a: # x\n  c: 1\n  d: 2 # z\nb: 2\n", "set /a {\"e\":1}", "a: # x # z\n  e: 1\nb: 2\n"},
		{"an object becomes empty", "a:\n  c: 1\nb: 2\n", "set /a {}", "a: {}\nb: 2\n"},
		{"a list becomes empty", "a:\n- c: 1\nb: 2\n", "set /a []", "a: []\nb: 2\n"},
		{"an empty one is filled", "a: {} # x\nb: []\n", "insert /a/c {\"d\":[1]} ; insert /b/- \"x\"", "a: {c: {d: [1]}} # x\nb: [x]\n"},
		{"an item becomes an object", "- 1 # x\n-\n", "set /0 {\"a\":1} ; set /1 {\"b\":1}", "- a: 1 # x\n- b: 1\n"},
	})
}

// TestRewriteFlow: members and items in brackets.
func TestRewriteFlow(t *testing.T) {
	rewrites(t, []rewrite{
		{"the first", "{a: 1,  b: 2, c: 3}\n", "remove /a", "{b: 2, c: 3}\n"},
		{"the middle", "{a: 1,  b: 2, c: 3}\n", "remove /b", "{a: 1, c: 3}\n"},
		{"the last", "{a: 1,  b: 2, c: 3}\n", "remove /c", "{a: 1,  b: 2}\n"},
		{"the first two", "[a, b, c]\n", "remove /1 ; remove /0", "[c]\n"},
		{"all but the middle", "x: {a: 1, b: 2, c: 3}\n", "remove /x/a ; remove /x/c", "x: {b: 2}\n"},
		{"all", "x: { a: 1, b: 2 } # c\n", "remove /x/a ; remove /x/b", "x: {} # c\n"},
		{"all, one added", "x: { a: 1, b: 2 } # c\n", "remove /x/a ; remove /x/b ; insert /x/c 1 ; insert /x/d 2", "x: {c: 1, d: 2} # c\n"},
		{"all with a comma at the end", "x: [1, 2,]\n", "remove /x/1 ; remove /x/0", "x: []\n"},
		{"a comma at the end", "x: [1, 2, ]\nw: {a: 1,}\n", "insert /x/- 3 ; insert /w/b 2", "x: [1, 2, 3, ]\nw: {a: 1, b: 2,}\n"},
		{"before the first", "x: [1,  2]\nw: {a: 1}\nz: {a: 1,b: 2}\n", "insert /x/0 0 ; insert /w/b before=a 2 ; insert /z/c before=a 3", "x: [0,  1,  2]\nw: {b: 2, a: 1}\nz: {c: 3,a: 1,b: 2}\n"},
		{"after the first", "x: [1,  2]\nw: {a: 1}\nz: {a: 1,b: 2}\n", "insert /x/1 0 ; insert /w/b 2 ; insert /z/c before=b 3", "x: [1,  0,  2]\nw: {a: 1, b: 2}\nz: {a: 1,c: 3,b: 2}\n"},
		{"after the removed", "x: [1, 2, 3]\n", "remove /x/0 ; insert /x/0 9", "x: [9, 2, 3]\n"},
		{"members removed and added", "x: {a: 1, b: 2, c: 3}\n", "remove /x/a ; insert /x/d before=b 4 ; insert /x/e 5", "x: {d: 4, b: 2, c: 3, e: 5}\n"},
		{"on lines", "x: [\n  1, # a\n  2\n]\n", "insert /x/- 3 ; set /x/0 4", "x: [\n  4, # a\n  2,\n  3\n]\n"},
		{"on lines before", "x: {\n  a: 1,\n  b: 2\n}\n", "insert /x/c before=a 3", "x: {\n  c: 3,\n  a: 1,\n  b: 2\n}\n"},
		{"on lines removed", "x: {\n  a: 1,\n  b: 2 # c\n}\n", "remove /x/a", "x: {\n  b: 2 # c\n}\n"},
		{"comments inside", "x: [1, # ]\n  2 # }\n  ] # c\ny: 1\n", "set /x 3", "x: 3 # c\ny: 1\n"},
		{"keys alone", "x: {a, b, c}\n", "remove /x/b", "x: {a, c}\n"},
		{"keys alone at the end", "x: {a, b}\n", "set /x 1", "x: 1\n"},
		{"keys without values", "x: {a: , b: }\n", "set /x 1", "x: 1\n"},
		{"quoted keys", "x: {\"a\":1, 'b':2}\n", "set /x/a 3 ; remove /x/b", "x: {\"a\":3}\n"},
		{"a pair in a list", "x: [a: 1, b]\ny: 1\n", "set /x/0/a 2", "x: [a: 2, b]\ny: 1\n"},
		{"beside a pair in a list", "x: [a: 1, b]\ny: 1\n", "set /x/1 2", "x: [a: 1, 2]\ny: 1\n"},
		{"a pair at the end of a list", "x: [b, a: 1]\ny: 1\n", "set /x 2", "error: set /x: line 1: cannot tell where this value ends: write it in plain block style first"},
		{"words with commas", "x: {a: 1}\n", "insert /x/b \"u, v\" ; insert /x/c,d [\"[\",\"{}\",\"]\"] ; set /x/a {\"e\":1,\"f\":[2,3]}", "x: {a: {e: 1, f: [2, 3]}, b: \"u, v\", \"c,d\": [\"[\", \"{}\", \"]\"]}\n"},
		{"lines of text", "x: {a: 1}\n", "set /x/a \"u\\nv\"", "x: {a: \"u\\nv\"}\n"},
		{"plain words on lines", "x: {a: u\n  v, b: 1}\n", "set /x/a 1", "error: set /x/a: line 1: cannot tell where this value ends: write it in plain block style first"},
		{"becomes a block", "x: [1]\ny: 1\n", "set /x {\"a\":{\"b\":1}}", "x: {a: {b: 1}}\ny: 1\n"},
	})
}

// TestRewriteJSON: JSON stays JSON, in the form that it has.
func TestRewriteJSON(t *testing.T) {
	rewrites(t, []rewrite{
		{"on a line", "{\"a\": 1, \"b\": [1, 2]}", "insert /c {\"d\":[1,{}],\"e\":null} ; insert /b/- true", "{\"a\": 1, \"b\": [1, 2, true], \"c\": {\"d\": [1, {}], \"e\": null}}"},
		{"without blanks", "{\"a\":1,\"b\":[1,2],\"c\":{}}", "insert /d {\"d\":[1,{}],\"e\":false} ; insert /b/- \"x\" ; insert /c/x 1 ; insert /c/y 2", "{\"a\":1,\"b\":[1,2,\"x\"],\"c\":{\"x\":1,\"y\":2},\"d\":{\"d\":[1,{}],\"e\":false}}"},
		{"one member without blanks", "{\"a\":1}", "insert /b 2 ; insert /c before=a 3", "{\"c\":3,\"a\":1,\"b\":2}"},
		{"one member with blanks", "{\"a\": 1}", "insert /b 2 ; insert /c before=a 3", "{\"c\": 3, \"a\": 1, \"b\": 2}"},
		{"on lines", "{\n  \"a\": 1,\n  \"b\": {}\n}\n", "insert /b/c {\"d\":[1,2]} ; insert /b/e [] ; set /a {\"x\":1}", "{\n  \"a\": {\n    \"x\": 1\n  },\n  \"b\": {\n    \"c\": {\n      \"d\": [\n        1,\n        2\n      ]\n    },\n    \"e\": []\n  }\n}\n"},
		{"on lines, four columns", "{\n    \"a\": {\n        \"b\": []\n    }\n}\n", "insert /a/b/- {\"c\":1}", "{\n    \"a\": {\n        \"b\": [\n            {\n                \"c\": 1\n            }\n        ]\n    }\n}\n"},
		{"beside the bracket", "{\n  \"a\": {\"b\": 1}\n}\n", "set /a/b {\"x\":[1,2]}", "{\n  \"a\": {\"b\": {\"x\": [1, 2]}}\n}\n"},
		{"beside the bracket, added", "{\n  \"a\": {\"b\": 1}\n}\n", "insert /a/c {\"x\":[1,2]}", "{\n  \"a\": {\"b\": 1, \"c\": {\"x\": [1, 2]}}\n}\n"},
		{"beside the bracket, all removed", "{\n  \"a\": {\"b\": 1}\n}\n", "remove /a/b ; insert /a/c 1 ; insert /a/d 2", "{\n  \"a\": {\"c\": 1, \"d\": 2}\n}\n"},
		{"all removed", "{\n  \"a\": [\n    1,\n    2\n  ]\n}\n", "remove /a/1 ; remove /a/0", "{\n  \"a\": []\n}\n"},
		{"all removed, some added", "{\n  \"a\": {\n    \"b\": 1\n  }\n}\n", "remove /a/b ; insert /a/c 1 ; insert /a/d 2", "{\n  \"a\": {\n    \"c\": 1,\n    \"d\": 2\n  }\n}\n"},
		{"the first removed", "{\n  \"a\": 1,\n  \"b\": 2\n}\n", "remove /a", "{\n  \"b\": 2\n}\n"},
		{"the last removed", "{\n  \"a\": 1,\n  \"b\": 2\n}\n", "remove /b", "{\n  \"a\": 1\n}\n"},
		{"the first added", "{\n  \"a\": 1,\n  \"b\": 2\n}\n", "insert /c before=a 3", "{\n  \"c\": 3,\n  \"a\": 1,\n  \"b\": 2\n}\n"},
		{"HTML", "{\"a\": 1}", "set /a \"<&>\" ; insert /<b> 1", "{\"a\": \"<&>\", \"<b>\": 1}"},
		{"renamed", "{\"a\": 1}", "move /b\"c from=/a", "{\"b\\\"c\": 1}"},
		{"moved", "{\"a\": {\"x\": [1]}, \"b\": {}}", "move /b/y from=/a/x", "{\"a\": {}, \"b\": {\"y\": [1]}}"},
		{"copied", "{\n  \"a\": {\n    \"x\": [\n      1\n    ]\n  },\n  \"b\": {}\n}\n", "copy /b/y from=/a/x", "{\n  \"a\": {\n    \"x\": [\n      1\n    ]\n  },\n  \"b\": {\n    \"y\": [\n      1\n    ]\n  }\n}\n"},
	})
}

// TestRewriteBatches: edits that depend on those before them.
func TestRewriteBatches(t *testing.T) {
	rewrites(t, []rewrite{
		{"an item after one that came last", "a:\n- 1\nb: 2\n", "insert /a/- 3 ; insert /a/1 4", "a:\n- 1\n- 4\n- 3\nb: 2\n"},
		{"a copy after one that came last", "a:\n- 1\nb: 2\n", "insert /a/- 3 ; copy /a/1 from=/b", "a:\n- 1\n- 2\n- 3\nb: 2\n"},
		{"copies that come last", "a:\n- 1\nb: 2\nc: 3\n", "copy /a/- from=/b ; copy /a/- from=/c ; insert /a/2 4", "a:\n- 1\n- 2\n- 4\n- 3\nb: 2\nc: 3\n"},
		{"a move after one that came last", "a:\n- 1\nb: 2\nc: 3\n", "insert /a/- 3 ; move /a/1 from=/b", "a:\n- 1\n- 2\n- 3\nc: 3\n"},
		{"items in front of each other", "a: [1, 2, 3]\n", "insert /a/1 4 ; insert /a/1 5 ; set /a/0 6 ; set /a/4 7", "a: [6, 5, 4, 2, 7]\n"},
		{"items after removed ones", "a: [1, 2, 3]\n", "remove /a/0 ; remove /a/0 ; set /a/0 9", "a: [9]\n"},
		{"items before removed ones", "a: [1, 2, 3]\n", "remove /a/2 ; set /a/1 9 ; remove /a/0", "a: [9]\n"},
		{"inside a new one", "a: 1\n", "insert /b {} ; insert /b/c {} ; insert /b/c/d [] ; insert /b/c/d/- 1", "a: 1\nb: {c: {d: [1]}}\n"},
		{"inside one that came last", "a: []\n", "insert /a/- {\"b\":1} ; set /a/0/b 2", "a: [{b: 2}]\n"},
		{"set again", "a: 1\nb: 2\n", "set /a 3 ; set /a 4 ; set /b 5", "a: 4\nb: 5\n"},
		{"removed and back", "a: 1\nb: 2\n", "remove /a ; insert /a 3", "b: 2\na: 3\n"},
		{"removed inside a removed one", "a:\n  b: 1\n  c: 2\nd: 3\n", "remove /a/b ; remove /a", "d: 3\n"},
		{"moved and set", "a:\n  b: 1\nc: {}\nd: 1\n", "move /c/b from=/a/b ; set /c/b 2 ; set /d 3", "a: {}\nc: {b: 2}\nd: 3\n"},
		{"copied after a change", "a:\n  b: 1\nc:\n  x: 1\n", "set /a/b 2 ; copy /c/a from=/a", "a:\n  b: 2\nc:\n  x: 1\n  a:\n    b: 2\n"},
		{"copied before a change", "a:\n  b: 1\nc:\n  x: 1\n", "copy /c/a from=/a ; set /a/b 2", "a:\n  b: 2\nc:\n  x: 1\n  a:\n    b: 1\n"},
		{"numbers as names", "a:\n  \"0\": 1\n  \"1\": 2\n  \"2\": 3\n", "remove /a/0 ; set /a/1 4 ; remove /a/2", "a:\n  \"1\": 4\n"},
		{"the second fails", "a: 1\nb: 2\n", "set /a 3 ; set /b/c 4", "error: set /b/c: the place does not exist: /b has no \"c\""},
		{"renamed in a circle", "a: 1\nb: 2\n", "move /c from=/a ; move /a from=/b ; move /b from=/c", "b: 1\na: 2\n"},
		{"beside a dash in both", "- a: 1\n  b: 2\n- c: 3\n  d: 4\n", "remove /0/a ; remove /1/c ; insert /0/x 1 ; insert /1/y 2", "- b: 2\n  x: 1\n- d: 4\n  \"y\": 2\n"},
	})
}

// TestRewriteCarried: members move with their comments.
func TestRewriteCarried(t *testing.T) {
	rewrites(t, []rewrite{
		{"with comments", "a:\n  # above\n  # b\n  b: # behind\n    # inside\n    c: 1 # one\n  d: 2\ne:\n  f: 1\n", "move /e/g from=/a/b", "a:\n  d: 2\ne:\n  f: 1\n  # above\n  # b\n  g:\n    # inside\n    c: 1 # one\n"},
		{"copied with comments", "a:\n  # b\n  b:\n    c: 1 # one\n\n    d: 2\ne:\n  f: 1\n", "copy /e/g from=/a/b", "a:\n  # b\n  b:\n    c: 1 # one\n\n    d: 2\ne:\n  f: 1\n  # b\n  g:\n    c: 1 # one\n\n    d: 2\n"},
		{"up", "a:\n  b:\n    # c\n    c:\n      d: 1\n    x: 1\n", "move /c from=/a/b/c", "a:\n  b:\n    x: 1\n# c\nc:\n  d: 1\n"},
		{"down", "# a\na:\n  x: 1\nb:\n  c:\n    d: 1\n", "move /b/c/a from=/a", "b:\n  c:\n    d: 1\n    # a\n    a:\n      x: 1\n"},
		{"before another", "a:\n  x: 1 # x\nb:\n  # c\n  c: 1\n  d: 2\n", "copy /b/y from=/a/x before=c ; copy /b/z from=/a before=d", "a:\n  x: 1 # x\nb:\n  \"y\": 1\n  # c\n  c: 1\n  z:\n    x: 1 # x\n  d: 2\n"},
		{"a list", "a:\n- 1 # x\n- b: 1\n  # c\n  c: 2\nd:\n  e: 1\n", "move /d/a from=/a", "d:\n  e: 1\n  a:\n  - 1 # x\n  - b: 1\n    # c\n    c: 2\n"},
		{"a list, indented", "a:\n  - 1 # x\n  - b: 1\n    c: 2\nd:\n  e: 1\n", "copy /d/a from=/a", "a:\n  - 1 # x\n  - b: 1\n    c: 2\nd:\n  e: 1\n  a:\n    - 1 # x\n    - b: 1\n      c: 2\n"},
		{"into flow style", "a:\n  b: [1, {c: x}] # c\n  d: true\n  e: null\n  f: 1.5\n  g: False\n  h: ~\n  i: \"5\"\nx: {y: 1}\n", "copy /x/z from=/a", "a:\n  b: [1, {c: x}] # c\n  d: true\n  e: null\n  f: 1.5\n  g: False\n  h: ~\n  i: \"5\"\nx: {y: 1, z: {b: [1, {c: x}], d: true, e: null, f: 1.5, g: false, h: null, i: \"5\"}}\n"},
		{"out of flow style", "a: {b: {c: 1, d: [2]}, e: 1}\nx:\n  y: 1\n", "move /x/z from=/a/b", "a: {e: 1}\nx:\n  y: 1\n  z:\n    c: 1\n    d:\n    - 2\n"},
		{"a text of lines", "a:\n  b: |\n    x\n    y\n  c: 1\nd:\n  e:\n    f: 1\n", "move /d/e/b from=/a/b", "a:\n  c: 1\nd:\n  e:\n    f: 1\n    b: |\n      x\n      y\n"},
		{"an empty value", "a:\n  b:\n  c: 1\nd:\n  e: 1\n", "move /d/b from=/a/b", "a:\n  c: 1\nd:\n  e: 1\n  b: null\n"},
		{"to the top of the text", "a:\n  # b\n  b: 1\n  c: 2\n", "move /x from=/a/b before=a", "# b\nx: 1\na:\n  c: 2\n"},
		{"the last member", "a:\n  # b\n  b: 1\nc:\n  d: 1\n", "move /c/b from=/a/b", "a: {}\nc:\n  d: 1\n  # b\n  b: 1\n"},
		{"with an alias inside", "x: &x 1\na:\n  b:\n    c: *x\n  d: 1\ne:\n  f: 1\n", "move /e/b from=/a/b", "x: &x 1\na:\n  d: 1\ne:\n  f: 1\n  b:\n    c: *x\n"},
		{"with an alias into flow style", "x: &x 1\na:\n  b:\n    c: *x\n  d: 1\ne: {}\n", "move /e/b from=/a/b", "error: the text cannot be edited: the result would mean something else; write this part of the document in plain block style first"},
		{"a word below its key", "a:\n  one\nc:\n  d: 1\n", "move /c/a from=/a", "c:\n  d: 1\n  a: one\n"},
		{"brackets below their key", "a:\n  {b: 1}\nc:\n  d: 1\n", "move /c/a from=/a", "c:\n  d: 1\n  a:\n    b: 1\n"},
		{"beside a dash", "- a: 1\n  b: 2\n- c: 3\n", "move /1/a from=/0/a", "- b: 2\n- c: 3\n  a: 1\n"},
	})
}
