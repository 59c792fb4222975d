package lint

import (
	"go/ast"
	"go/token"
	"regexp"
	"strconv"
	"strings"
)

// A phrase must not occur in logs, errors and help. Vale checks comments and pages
// only, so each of its rules in .vale/styles/Espalier has a phrase of the same name here.
type phrase struct {
	rule    string         // the name of Vale's rule
	pattern *regexp.Regexp // ignores case
	after   *regexp.Regexp // the phrase is allowed after this; may be nil
	before  *regexp.Regexp // the phrase is allowed before this; may be nil
	instead string         // completes "write"
}

func newPhrase(rule, pattern, instead string) phrase {
	return phrase{rule: rule, pattern: regexp.MustCompile(`(?i)\b(?:` + pattern + `)\b`), instead: instead}
}

// unlessAfter allows the phrase after what the pattern matches.
func (p phrase) unlessAfter(pattern string) phrase {
	p.after = regexp.MustCompile(`(?i)(?:` + pattern + `)$`)
	return p
}

// unlessBefore allows the phrase before what the pattern matches.
func (p phrase) unlessBefore(pattern string) phrase {
	p.before = regexp.MustCompile(`(?i)^(?:` + pattern + `)`)
	return p
}

var phrases = []phrase{
	newPhrase("Absent", `(?:is|are|was|were)\s+not\s+there|(?:isn't|aren't|wasn't|weren't)\s+there|that\s+there\s+(?:are|is)\s+not|what\s+must\s+be\s+there`,
		"what is missing and what follows: does not exist, is not installed"),
	newPhrase("Actor", `(?:some|every|no|any)body`, "the actor: the client, the user, the operator, the server"),
	newPhrase("Authority", `authorit(?:y|ies)`, "CA, or the actor that decides").unlessAfter(`certificate\s|:`),
	newPhrase("CannotBeTold", `(?:can\s?not|could\s+not|can't)\s+be\s+told`, "the actor, and what it does not know"),
	newPhrase("Definition", `definitions?`, "CRD").
		unlessAfter(`(?:custom\s?resource|openapi|json.schema|schema|swagger|type)\s`).
		unlessBefore(`\s+of\s+(?:a|the|this)\s+schema\b`),
	newPhrase("Forgive", `forg[ai]v\w+`, "ratchet: errors that the old object already had do not fail the update"),
	newPhrase("Inside", `(?:in|out)side\s+of`, "inside or outside, without of"),
	newPhrase("Judge", `judg\w+`, "validate, check or evaluate"),
	newPhrase("Junctor", `junctors?`, "the keywords: allOf, anyOf, oneOf, not").unlessAfter(`logical\s`),
	newPhrase("KeepOut", `(?:keep|keeps|keeping|kept)\s+(?:\w+\s+)?out`, "reject, refuse, exclude or deny"),
	newPhrase("LetIn", `(?:let|lets|letting)\s+(?:(?:him|her|it|them|one|all|users?|clients?|requests?|anyone)\s+)?in`, "authenticate, authorize, admit or accept").
		unlessBefore(`\s+(?:a|an|the|this|that|its)\b`),
	newPhrase("Mend", `mend(?:s|ed|ing)?`, "fix or repair"),
	newPhrase("Names", `vacat(?:e|es|ed|ing)|farewell|newcomers?|disguised?s?|veiled|court|stations`, "the field's term"),
	newPhrase("OfWhich", `of\s+which`, "a new sentence, with the noun as its subject"),
	newPhrase("OughtTo", `ought\s+to`, "must or should"),
	newPhrase("Result", `verdicts?|rulings?`, "result, answer or decision"),
	newPhrase("Who", `(?:for|to|by|from|of|with|than|about|so\s+that|whether|if)\s+who|those\s+who|who\s+has\s+none|whoever|one\s+who`, "the actor before who: users who have none"),
	newPhrase("World", `worlds?`, "test server, environment or control plane"),
}

// sentenceWho is a sentence whose subject is a relative clause; a question is fine.
var sentenceWho = phrase{
	rule:    "Who",
	pattern: regexp.MustCompile(`(?:^|[.:;]\s)(Who\s+\w+)`),
	before:  regexp.MustCompile(`^[^.?]*\?`),
	instead: "the actor as the subject: users who have none",
}

// A quotation is a text that contains a phrase and keeps it.
type quotation struct{ text, why string }

var quotations = []quotation{
	{"must not be used inside of resource meta", "apiextensions-apiserver's validation error, which clients compare"},
	{"definitions is not supported", "apiextensions-apiserver's validation error, about the keyword of JSON Schema"},
	{"The definitions are ", "the keyword of JSON Schema, in what crd/fix says about it"},
	{"unrecognized column definition", "apiextensions-apiserver's error for a printer column"},
	{"PolicyName indicates the policy definition which the policy binding binded to", "kube-apiserver's description of a printer column"},
}

// checkTexts finds phrases in string literals of the released modules, tests excepted.
// A literal of one word is a name and not a text.
func checkTexts(t *tree) []Finding {
	var found []Finding
	for dir, files := range t.packages {
		if under(dir, outside) {
			continue
		}
		for _, f := range files {
			if f.isTest() || ast.IsGenerated(f.syntax) {
				continue
			}
			for _, text := range textsOf(f.syntax) {
				found = append(found, text.check(f)...)
			}
		}
	}
	return found
}

// A text is a string literal, or a concatenation.
type text struct {
	content string
	starts  []start
}

// A start maps an offset of the content to the literal that begins there.
type start struct {
	offset int
	pos    token.Pos
	raw    bool // newlines in the content are newlines of the file
}

// textsOf returns the texts of a file. A concatenation is one text, so that checkTexts
// finds a phrase that spans two literals. Operands other than literals become an ellipsis.
func textsOf(file *ast.File) (list []*text) {
	var visit func(n ast.Node) bool
	visit = func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			ast.Inspect(n.Type, visit) // but not the tag
			return false
		case *ast.BinaryExpr:
			if n.Op == token.ADD {
				x := &text{}
				x.add(n, visit)
				list = append(list, x)
				return false
			}
		case *ast.BasicLit:
			if n.Kind == token.STRING {
				x := &text{}
				x.add(n, visit)
				list = append(list, x)
			}
		}
		return true
	}
	ast.Inspect(file, visit)
	return list
}

// add appends an operand. It visits other operands than literals for their own texts.
func (x *text) add(e ast.Expr, visit func(ast.Node) bool) {
	switch e := e.(type) {
	case *ast.ParenExpr:
		x.add(e.X, visit)
		return
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			x.add(e.X, visit)
			x.add(e.Y, visit)
			return
		}
	case *ast.BasicLit:
		if s, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			x.starts = append(x.starts, start{len(x.content), e.Pos(), e.Value[0] == '`'})
			x.content += s
			return
		}
	}
	x.content += "…"
	ast.Inspect(e, visit)
}

// code is a name between backquotes.
var code = regexp.MustCompile("`[^`\n]*`")

func (x *text) check(f *goFile) []Finding {
	if !strings.Contains(strings.TrimSpace(x.content), " ") {
		return nil
	}
	for _, q := range quotations {
		if strings.Contains(x.content, q.text) {
			return nil
		}
	}
	prose := code.ReplaceAllStringFunc(x.content, func(s string) string { return strings.Repeat("`", len(s)) })
	var found []Finding
	report := func(p *phrase, from, to int) {
		found = append(found, Finding{f.path, x.line(f, from), strconv.Quote(prose[from:to]) + " in a text (" + p.rule + "): write " + p.instead})
	}
	for i := range phrases {
		for _, at := range phrases[i].pattern.FindAllStringIndex(prose, -1) {
			if phrases[i].applies(prose[:at[0]], prose[at[1]:]) {
				report(&phrases[i], at[0], at[1])
			}
		}
	}
	for _, at := range sentenceWho.pattern.FindAllStringSubmatchIndex(prose, -1) {
		if sentenceWho.applies("", prose[at[3]:]) {
			report(&sentenceWho, at[2], at[3])
		}
	}
	return found
}

// Names in code are allowed: quoted, in a path, after a dot, before a parenthesis, with
// a hyphen.
var (
	nameBefore = regexp.MustCompile("[`.\\[/_\"'-]$")
	nameBehind = regexp.MustCompile("^(?:[`\\]/_\"'(]|[.-]\\w)")
)

func (p *phrase) applies(before, behind string) bool {
	return !(nameBefore.MatchString(before) || nameBehind.MatchString(behind) ||
		p.after != nil && p.after.MatchString(before) || p.before != nil && p.before.MatchString(behind))
}

// line is the line of the file on which the content at an offset is written.
func (x *text) line(f *goFile, offset int) int {
	s := x.starts[0]
	for _, next := range x.starts {
		if next.offset <= offset {
			s = next
		}
	}
	line := f.line(s.pos)
	if s.raw {
		line += strings.Count(x.content[s.offset:offset], "\n")
	}
	return line
}
