package lint

import (
	"slices"
	"strings"
	"unicode"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
)

// The tree of CEL has no ends: it says where an operator is, not how far its
// operands reach. A fix has to put text around a part of a rule and leave the rest as
// its author wrote it, so the logic of a rule is read from the text a second time.

// token is a piece of the text of an expression: a word, a string, or one or two
// characters of punctuation.
type token struct {
	from, to int // in characters
	text     string
	pair     int // the index of the bracket that belongs to it, 0 if it is none
}

// tokenize splits an expression that parses. It reports false for text that it cannot
// pair the brackets of.
func tokenize(text []rune) ([]token, bool) {
	list := []token{{}} // no bracket has the index 0
	var open []int
	for at := 0; at < len(text); {
		r := text[at]
		end := at + 1
		switch {
		case unicode.IsSpace(r):
			at++
			continue
		case r == '/' && end < len(text) && text[end] == '/':
			for at < len(text) && text[at] != '\n' {
				at++
			}
			continue
		case isQuote(r):
			end = stringEnd(text, at, false)
		case isWord(r):
			for end < len(text) && isWord(text[end]) {
				end++
			}
			if end < len(text) && isQuote(text[end]) && text[end] != '`' && end-at <= 2 && strings.Trim(string(text[at:end]), "rRbB") == "" {
				end = stringEnd(text, end, strings.ContainsAny(string(text[at:end]), "rR"))
			}
		case end < len(text) && slices.Contains(pairs, string(text[at:end+1])):
			end++
		}
		t := token{from: at, to: end, text: string(text[at:end])}
		switch t.text {
		case "(", "[", "{":
			open = append(open, len(list))
		case ")", "]", "}":
			if len(open) == 0 {
				return nil, false
			}
			t.pair = open[len(open)-1]
			open = open[:len(open)-1]
			list[t.pair].pair = len(list)
		}
		list = append(list, t)
		at = end
	}
	return list, len(open) == 0
}

// pairs are the operators of two characters.
var pairs = []string{"&&", "||", "==", "!=", "<=", ">="}

func isQuote(r rune) bool { return r == '\'' || r == '"' || r == '`' }

func isWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// stringEnd returns the end of the string that begins with a quote at a position.
func stringEnd(text []rune, at int, raw bool) int {
	quote := text[at]
	width := 1
	if quote != '`' && at+2 < len(text) && text[at+1] == quote && text[at+2] == quote {
		width = 3
	}
	for at += width; at < len(text); at++ {
		switch {
		case text[at] == '\\' && !raw:
			at++
		case text[at] == quote && (width == 1 || at+2 < len(text) && text[at+1] == quote && text[at+2] == quote):
			return at + width
		}
	}
	return len(text)
}

// logicKind is what a part of an expression is, as far as logic goes.
type logicKind uint8

const (
	isAtom logicKind = iota
	isAnd
	isOr
	isNot
	isChoice // parts: condition, then, else
	isAll    // parts: what holds for each element
	isExists
)

// logic is a part of an expression of type bool and the parts that it is made of.
type logic struct {
	kind     logicKind
	from, to int // in characters, without brackets around it
	parent   *logic
	parts    []*logic
	closed   bool // in brackets of its own
	unequal  bool // an atom that is a comparison with !=
	must     map[string]bool
}

// logicReader builds the logic of an expression. Each token is looked at once per bracket
// around it at most, because brackets are skipped.
type logicReader struct {
	text   []rune
	tokens []token
}

func readLogic(rule string) (*logicReader, *logic) {
	r := &logicReader{text: []rune(rule)}
	var ok bool
	if r.tokens, ok = tokenize(r.text); !ok || len(r.tokens) < 2 {
		return nil, nil
	}
	return r, r.read(1, len(r.tokens), nil)
}

// skip calls visit for the tokens from i to j that are in no bracket.
func (r *logicReader) skip(i, j int, visit func(at int) (more bool)) {
	for ; i < j; i++ {
		if !visit(i) {
			return
		}
		if p := r.tokens[i].pair; p > i {
			i = p
		}
	}
}

// read reads the tokens from i to j, an expression.
func (r *logicReader) read(i, j int, parent *logic) *logic {
	n := &logic{parent: parent, closed: parent == nil || parent.kind == isAll || parent.kind == isExists}
	for i < j && r.tokens[i].text == "(" && r.tokens[i].pair == j-1 {
		i, j = i+1, j-1
		n.closed = true
	}
	if i >= j {
		return n
	}
	n.from, n.to = r.tokens[i].from, r.tokens[j-1].to
	var ors, ands []int
	question, colon, operator := 0, 0, false
	r.skip(i, j, func(at int) bool {
		switch t := r.tokens[at].text; t {
		case "?":
			if question == 0 && r.tokens[at-1].text != "." {
				question = at
			}
		case ":":
			if colon == 0 {
				colon = at
			}
		case "||":
			ors = append(ors, at)
		case "&&":
			ands = append(ands, at)
		case "!=":
			n.unequal, operator = true, true
		case "==", "<", ">", "<=", ">=", "in", "+", "-", "*", "/", "%":
			operator = true
		}
		return true
	})
	switch {
	case question > 0:
		if colon < question {
			return n
		}
		n.kind = isChoice
		n.parts = []*logic{r.read(i, question, n), r.read(question+1, colon, n), r.read(colon+1, j, n)}
	case len(ors) > 0:
		n.kind = isOr
		r.split(n, i, j, ors)
	case len(ands) > 0:
		n.kind = isAnd
		r.split(n, i, j, ands)
	case r.tokens[i].text == "!" && !operator:
		n.kind = isNot
		n.parts = []*logic{r.read(i+1, j, n)}
	case !operator:
		r.macro(n, i, j)
	}
	return n
}

func (r *logicReader) split(n *logic, i, j int, at []int) {
	for _, end := range append(at, j) {
		n.parts = append(n.parts, r.read(i, end, n))
		i = end + 1
	}
}

// macro recognises list.all(x, …) and list.exists(x, …).
func (r *logicReader) macro(n *logic, i, j int) {
	open := r.tokens[j-1].pair
	if r.tokens[j-1].text != ")" || open < i+3 || r.tokens[open-2].text != "." {
		return
	}
	kind := map[string]logicKind{"all": isAll, "exists": isExists}[r.tokens[open-1].text]
	if kind == isAtom {
		return
	}
	last := 0
	r.skip(open+1, j-1, func(at int) bool {
		if r.tokens[at].text == "," {
			last = at
		}
		return true
	})
	if last > 0 {
		n.kind = kind
		n.parts = []*logic{r.read(last+1, j-1, n)}
	}
}

// at returns the smallest part that a character is in, but not a part of an atom.
func (n *logic) at(offset int) *logic {
	for {
		i := slices.IndexFunc(n.parts, func(p *logic) bool { return p.from <= offset && offset < p.to })
		if i < 0 {
			return n
		}
		n = n.parts[i]
	}
}

// maxAtom is how many characters of an atom are looked at.
const maxAtom = 4 << 10

// strict returns what n must read: if one of it is absent, n fails. An || or && with an
// error on one side has a value if the other side decides, so both must read it.
func (r *logicReader) strict(n *logic) map[string]bool {
	if n.must != nil {
		return n.must
	}
	n.must = map[string]bool{}
	switch n.kind {
	case isAtom, isAll, isExists:
		if n.to-n.from > maxAtom {
			return n.must
		}
		if tree, issues := parser().Parse(string(r.text[n.from:n.to])); issues.Err() == nil {
			strictReads(tree.NativeRep().Expr(), n.must)
		}
	case isNot:
		n.must = r.strict(n.parts[0])
	case isChoice:
		n.must = shared(r.strict(n.parts[1]), r.strict(n.parts[2]))
		for k := range r.strict(n.parts[0]) {
			n.must[k] = true
		}
	case isAnd, isOr:
		var all map[string]bool
		for _, p := range n.parts {
			all = shared(all, r.strict(p))
		}
		n.must = all
	}
	return n.must
}

// shared returns what is in two sets; nil has everything.
func shared(a, b map[string]bool) map[string]bool {
	c := map[string]bool{}
	for k := range b {
		if a == nil || a[k] {
			c[k] = true
		}
	}
	return c
}

// strictReads adds what the evaluation of e always reads.
func strictReads(e ast.Expr, into map[string]bool) {
	switch e.Kind() {
	case ast.SelectKind:
		if !e.AsSelect().IsTestOnly() {
			into[spell(e)] = true
		}
		strictReads(e.AsSelect().Operand(), into)
	case ast.ListKind:
		for _, x := range e.AsList().Elements() {
			strictReads(x, into)
		}
	case ast.ComprehensionKind:
		strictReads(e.AsComprehension().IterRange(), into)
	case ast.CallKind:
		x := e.AsCall()
		args := x.Args()
		switch name := x.FunctionName(); {
		case name == operators.LogicalAnd || name == operators.LogicalOr:
			return // either side may decide alone
		case name == operators.Conditional && len(args) == 3:
			strictReads(args[0], into)
			return
		case name == operators.Index && len(args) == 2:
			into[spell(e)] = true
		case name == "or" || name == "orValue":
			args = nil // evaluated only if the target has no value
		}
		if x.IsMemberFunction() {
			strictReads(x.Target(), into)
		}
		for _, a := range args {
			strictReads(a, into)
		}
	}
}
