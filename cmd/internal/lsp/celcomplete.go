package lsp

import (
	"strings"

	"github.com/espalier-dev/espalier/crd/cel"
)

// maxExpression bounds what is read before the cursor. Finding what a call is made on takes time in proportion to
// the calls before it.
const maxExpression = 4096

// completeCEL proposes fields, variables and functions in an expression.
func (s *Server) completeCEL(v *view, e *entry, sub *subject) []CompletionItem {
	content := v.chunk.content
	begin := e.valueAt
	if begin < len(content) && (content[begin] == '"' || content[begin] == '\'') {
		begin++
	}
	if v.offset < begin {
		return nil
	}
	from := v.offset
	for from > begin && isName(content[from-1]) {
		from--
	}
	edit := v.span(from, v.offset)
	before := strings.TrimRight(content[max(begin, from-maxExpression):from], " \t\r\n")
	var self node
	if schema, at, _ := schemaOf(v, sub); schema != nil {
		if root, ok := newSchemaNode(schema); ok {
			self = followPointer(root, at)
		}
	}
	scope := newScope(before, self)
	if chain, ok := strings.CutSuffix(before, "."); ok {
		n, known := scope.resolve(receiverOf(chain))
		return celMembers(n, known, edit)
	}
	var items []CompletionItem
	for i := len(scope.variables) - 1; i >= 0; i-- {
		x := scope.variables[i]
		item := CompletionItem{Label: x.name, Kind: itemVariable, SortText: "0" + x.name, TextEdit: &TextEdit{Range: edit, NewText: x.name}}
		if x.node != nil {
			item.Detail = x.node.facts().typ
		}
		items = append(items, item)
	}
	return append(items, celFunctions(edit, func(f *cel.Function) bool { return len(f.Receivers) == 0 })...)
}

// followPointer goes from the root of a schema to the node that a JSON pointer within the schema leads to.
func followPointer(root node, pointer string) node {
	n, ok := root.(schemaNode)
	if !ok {
		return nil
	}
	n.root = pointer == ""
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if pointer == "" {
			break
		}
		below := n.object(n.get(unescape.Replace(token)))
		if below == nil {
			return nil
		}
		n, _ = below.(schemaNode)
	}
	return n
}

// celMembers proposes what can follow a value and a dot.
func celMembers(n node, known bool, edit Range) []CompletionItem {
	var items []CompletionItem
	receiver := ""
	if n != nil {
		f := n.facts()
		receiver = celType(f.typ)
		for _, m := range n.members() {
			below := facts{}
			if b := n.member(m.name); b != nil {
				below = b.facts()
			}
			name := celName(m.name)
			items = append(items, CompletionItem{Label: name, Kind: itemProperty, Detail: below.typ, Documentation: markdown(below.markdown(m.required)),
				SortText: "0" + name, TextEdit: &TextEdit{Range: edit, NewText: name}})
		}
	}
	return append(items, celFunctions(edit, func(f *cel.Function) bool {
		for _, r := range f.Receivers {
			if r == "any" || r == receiver || receiver == "" && !known {
				return true
			}
		}
		return false
	})...)
}

// celType is the type of CEL for one of schemas; empty if any function may fit.
func celType(typ string) string {
	switch {
	case strings.HasPrefix(typ, "[]"), typ == "array":
		return "list"
	case typ == "object":
		return "map"
	case typ == "integer":
		return "int"
	case typ == "number":
		return "double"
	case typ == "boolean":
		return "bool"
	case typ == "string":
		return "string"
	}
	return ""
}

// celReserved are words that cannot be names of fields in CEL.
var celReserved = map[string]bool{
	"true": true, "false": true, "null": true, "in": true, "as": true, "break": true, "const": true, "continue": true, "else": true, "for": true, "function": true,
	"if": true, "import": true, "let": true, "loop": true, "package": true, "namespace": true, "return": true, "var": true, "void": true, "while": true,
}

// celName escapes the name of a field as CEL rules have to write it.
func celName(name string) string {
	if celReserved[name] {
		return "__" + name + "__"
	}
	return strings.NewReplacer("__", "__underscores__", ".", "__dot__", "-", "__dash__", "/", "__slash__").Replace(name)
}

// celField is the inverse of celName.
func celField(name string) string {
	if bare := strings.TrimSuffix(strings.TrimPrefix(name, "__"), "__"); celReserved[bare] && len(name) == len(bare)+4 {
		return bare
	}
	return strings.NewReplacer("__underscores__", "__", "__dot__", ".", "__dash__", "-", "__slash__", "/").Replace(name)
}

func celFunctions(edit Range, want func(*cel.Function) bool) []CompletionItem {
	all, err := cel.Functions("")
	if err != nil {
		return nil
	}
	var items []CompletionItem
	for i := range all {
		f := &all[i]
		if !want(f) {
			continue
		}
		item := CompletionItem{Label: f.Name, Kind: itemFunction, SortText: "1" + f.Name, TextEdit: &TextEdit{Range: edit, NewText: f.Name + "("}}
		if f.Macro {
			item.Detail = "macro"
		}
		if len(f.Signatures) > 0 {
			item.Detail = f.Signatures[0]
			item.Documentation = markdown("```\n" + strings.Join(f.Signatures, "\n") + "\n```")
		}
		items = append(items, item)
	}
	return items
}

// scope is what is known at the cursor in an expression.
type scope struct {
	variables []variable
}

type variable struct {
	name string
	node node
}

// newScope finds the variables at the end of the beginning of an expression: self, oldSelf, and those of
// macros around the cursor, such as i in self.items.all(i, |.
func newScope(before string, self node) *scope {
	s := &scope{variables: []variable{{"oldSelf", self}, {"self", self}}}
	type call struct {
		receiver string
		macro    bool
		args     int // where they begin
		bound    bool
	}
	var open []call
	variables := []int{} // how many there were before each bracket
	for i := 0; i < len(before); i++ {
		switch c := before[i]; c {
		case '"', '\'':
			i = quotedEnd(before, i, len(before)) - 1
		case '(', '[', '{':
			name := i
			for name > 0 && isName(before[name-1]) {
				name--
			}
			x := call{args: i + 1}
			if c == '(' && name > 0 && before[name-1] == '.' && comprehensions[before[name:i]] {
				x.macro, x.receiver = true, receiverOf(before[:name-1])
			}
			open = append(open, x)
			variables = append(variables, len(s.variables))
		case ')', ']', '}':
			if n := len(open) - 1; n >= 0 {
				s.variables = s.variables[:variables[n]]
				open, variables = open[:n], variables[:n]
			}
		case ',':
			if n := len(open) - 1; n >= 0 && open[n].macro && !open[n].bound {
				open[n].bound = true
				list, _ := s.resolve(open[n].receiver)
				s.variables = append(s.variables, variable{strings.TrimSpace(before[open[n].args:i]), element(list)})
			}
		}
	}
	return s
}

// comprehensions are the macros whose first argument is a variable.
var comprehensions = map[string]bool{"all": true, "exists": true, "exists_one": true, "existsOne": true, "map": true, "filter": true, "sortBy": true, "transformList": true}

// element is the node of what a macro runs over.
func element(n node) node {
	if n == nil {
		return nil
	}
	if item := n.item(); item != nil {
		return item
	}
	if n.facts().typ == "object" { // the keys of a map
		return textNode{}
	}
	return nil
}

// textNode is any string.
type textNode struct{}

func (textNode) member(string) node { return nil }
func (textNode) item() node         { return nil }
func (textNode) members() []member  { return nil }
func (textNode) facts() facts       { return facts{typ: "string"} }

// receiverOf returns the value that ends an expression: names, indexes and calls, joined by dots.
func receiverOf(before string) string {
	i := len(before)
	for i > 0 {
		switch c := before[i-1]; {
		case isName(c) || c == '.' || c == '?':
			i--
			continue
		case c == ')' || c == ']':
			depth := 0
			j := i
			for j > 0 {
				j--
				if b := before[j]; b == ')' || b == ']' {
					depth++
				} else if b == '(' || b == '[' {
					if depth--; depth == 0 {
						break
					}
				}
			}
			if depth == 0 && j < i {
				i = j
				continue
			}
		}
		break
	}
	return before[i:]
}

// resolve follows a value from its variable. It reports whether it knows where the way leads.
func (s *scope) resolve(chain string) (node, bool) {
	end := strings.IndexAny(chain, ".[?(")
	if end < 0 {
		end = len(chain)
	}
	var n node
	found := false
	for i := len(s.variables) - 1; i >= 0 && !found; i-- {
		if s.variables[i].name == chain[:end] {
			n, found = s.variables[i].node, true
		}
	}
	rest := chain[end:]
	for found && n != nil && rest != "" {
		switch rest[0] {
		case '.', '?':
			rest = rest[1:]
			end := strings.IndexAny(rest, ".[?(")
			if end < 0 {
				end = len(rest)
			}
			if end == 0 {
				continue
			}
			name := rest[:end]
			rest = rest[end:]
			if strings.HasPrefix(rest, "(") {
				if name != "filter" {
					return nil, false
				}
				rest = afterBracket(rest)
				continue
			}
			n = n.member(celField(name))
		case '[':
			rest = afterBracket(rest)
			if item := n.item(); item != nil {
				n = item
			} else {
				n = n.member("")
			}
		default:
			return nil, false
		}
	}
	return n, found && n != nil
}

// afterBracket cuts a part in brackets off.
func afterBracket(s string) string {
	depth := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '(', '[':
			depth++
		case ')', ']':
			if depth--; depth == 0 {
				return s[i+1:]
			}
		case '"', '\'':
			i = quotedEnd(s, i, len(s)) - 1
		}
	}
	return ""
}
