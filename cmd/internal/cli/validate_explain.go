package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/cmd/internal/report"
	"github.com/espalier-dev/espalier/crd/request"
	"github.com/espalier-dev/espalier/finding"
	"github.com/espalier-dev/espalier/internal/jsondoc"
)

// change reports what normalization did to the object, in the words of the
// server where it has some.
func (v *result) change(c espalier.Change, fields string) {
	d := report.Diagnostic{Path: c.Path, Place: v.at(v.document.At(v.offsetOf(c)))}
	switch c.What {
	case espalier.Pruned:
		d.Check, d.Message = idFieldUnknown, `unknown field "`+c.Path+`"`
		if c.Nearest != "" {
			d.Fix = fmt.Sprintf("did you mean %q?", c.Nearest)
		}
	case espalier.NullDropped:
		d.Check, d.Message = idFieldNull, c.Path+": "+c.Detail
	case espalier.Coerced:
		d.Check, d.Message = idMetadataCoerced, c.Path+": "+c.Detail
	default:
		return
	}
	if c.What == espalier.Pruned {
		v.field(d, fields)
		return
	}
	v.add(d)
}

// field reports a field that is unknown or there twice, as field validation says.
func (v *result) field(d report.Diagnostic, fields string) {
	switch fields {
	case fieldsIgnore:
		return
	case fieldsWarn:
		d.Severity = finding.Warning
	default:
		d.Message = "strict decoding error: " + d.Message
	}
	v.add(d)
}

// maxLookups bounds the changes of an object that are looked for by their path.
const maxLookups = 100

// offsetOf is where a change is. Those in metadata that had to be decoded are
// known by their path alone.
func (v *result) offsetOf(c espalier.Change) int {
	if v.document.JSON[min(c.Offset, len(v.document.JSON)-1)] != '{' || v.lookups == maxLookups {
		return c.Offset
	}
	v.lookups++
	return max(c.Offset, v.lookup(c.Path))
}

// lookup returns the offset in the document of the value that a field path leads to, or of the last one on the way.
// A lookup walks over what comes before: callers bound their number.
func (v *result) lookup(path string) int {
	if v.source == nil {
		var err error
		if v.source, err = jsondoc.Parse(v.document.JSON, jsondoc.Limits{}); err != nil {
			return 0 // the object has been read before
		}
	}
	return v.source.Offset(below(v.source, jsondoc.Root, path).value)
}

// problems reports what validation has found.
func (v *result) problems(version *compiled, object []byte, found *request.Result) {
	if len(found.Problems)+len(found.Warnings)+len(found.ReadOnly) == 0 {
		return
	}
	l, err := locate(v.document, object, offsets(found))
	if err != nil {
		v.unreadable(err)
		return
	}
	defer l.source.Release()
	for i := range found.Problems {
		p := &found.Problems[i]
		var d report.Diagnostic
		if p.Violation != nil {
			d = v.violation(version, l, p.Violation)
		} else {
			d = v.scale(p)
		}
		d.Message, d.Path = p.Error.Error(), p.Field
		if found.Omitted > 0 && i == len(found.Problems)-1 {
			d.Notes = append(d.Notes, report.Note{Message: fmt.Sprintf("%d more errors are not shown", found.Omitted)})
		}
		v.add(d)
	}
	for i := range found.Warnings {
		d := v.violation(version, l, &found.Warnings[i])
		d.Severity = finding.Warning
		d.Notes = append(d.Notes, report.Note{Message: "the API server accepts it, because the update does not change the value (ratcheting)"})
		v.add(d)
	}
	for i := range found.ReadOnly {
		v.add(v.violation(version, l, &found.ReadOnly[i]))
	}
}

// offsets returns where in the object everything is that was found.
func offsets(found *request.Result) []int {
	var out []int
	for i := range found.Problems {
		if v := found.Problems[i].Violation; v != nil {
			out = append(out, v.Offset)
		}
	}
	for _, list := range [][]espalier.Violation{found.Warnings, found.ReadOnly} {
		for i := range list {
			out = append(out, list[i].Offset)
		}
	}
	return out
}

func (v *result) violation(version *compiled, l *locator, x *espalier.Violation) report.Diagnostic {
	s := l.spots[x.Offset]
	schema, known := version.schemaAt(s.pointer)
	d := report.Diagnostic{
		Check: checkOfKeyword[x.Keyword], Message: x.Error(), Path: x.Path, Pointer: s.pointer, Notes: branchNotes(x),
	}
	at := s
	switch x.Keyword {
	case "x-kubernetes-validations":
		// A rule can blame a field below the one that it is for.
		if rest, ok := strings.CutPrefix(x.Path, x.At); ok && s.there && !s.key && rest != "" && x.Path != "<nil>" {
			if at = below(l.source, s.value, rest); at.key && at.there {
				at.value, at.key = at.value+1, false
			}
		}
		if known {
			d.Notes = append(d.Notes, ruleNote(version.text, schema, x.Detail)...)
		}
	case "metadata":
		if _, path, ok := strings.Cut(x.Path, "metadata."); ok && s.there && strings.HasSuffix(s.pointer, "/metadata") {
			at = below(l.source, s.value, path)
		}
	}
	d.Place = v.at(l.position(at))
	if known {
		d.Fix = version.hint(x, schema, d.Place)
		if request.NotChecked(x) {
			d.Last, d.Complete = true, true
			d.Summary = "some CEL rules were not checked because of the other errors"
		}
	}
	return d
}

// The bounds of what is told about branches.
const (
	maxBranches = 10
	maxReasons  = 3
)

// branchNotes lists the violations of each branch of allOf, anyOf or oneOf.
func branchNotes(x *espalier.Violation) []report.Note {
	var notes []report.Note
	for i, branch := range x.Branches {
		if i == maxBranches {
			notes = append(notes, report.Note{Message: fmt.Sprintf("%d more branches", len(x.Branches)-i)})
			break
		}
		var reasons []string
		for j, b := range branch {
			if j == maxReasons {
				reasons = append(reasons, fmt.Sprintf("and %d more", len(branch)-j))
				break
			}
			reasons = append(reasons, b.Error())
		}
		if len(branch) == 0 {
			reasons = []string{"satisfied"}
		}
		notes = append(notes, report.Note{Message: fmt.Sprintf("%s branch %d: %s", x.Keyword, i+1, strings.Join(reasons, "; "))})
	}
	return notes
}

// ruleNote shows the rule whose message is all that the server says.
func ruleNote(doc *jsondoc.Doc, schema jsondoc.Value, detail string) []report.Note {
	rules, _ := lookup(doc, schema, "x-kubernetes-validations")
	if doc.Kind(rules) != jsondoc.Array {
		return nil
	}
	for _, r := range doc.Items(rules) {
		message, rule := textAt(doc, r, "message"), textAt(doc, r, "rule")
		if message != "" && message == detail && rule != "" {
			return []report.Note{{Message: "CEL rule: " + rule}}
		}
	}
	return nil
}

// textAt returns a member that is a string.
func textAt(doc *jsondoc.Doc, v jsondoc.Value, name string) string {
	if m, ok := lookup(doc, v, name); ok && doc.Kind(m) == jsondoc.String {
		return doc.Text(m)
	}
	return ""
}

// schemaAt returns what the schema says about the value that a JSON pointer
// leads to.
func (c *compiled) schemaAt(pointer string) (jsondoc.Value, bool) {
	v := jsondoc.Root
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if pointer == "" {
			break
		}
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		var ok bool
		if v, ok = c.below(v, token); !ok {
			return jsondoc.Root, false
		}
	}
	return v, true
}

// below returns the schema of a member or item of what a schema describes.
func (c *compiled) below(v jsondoc.Value, token string) (jsondoc.Value, bool) {
	if items, ok := lookup(c.text, v, "items"); ok {
		return items, c.text.Kind(items) == jsondoc.Object
	}
	if p, ok := lookup(c.text, v, "properties", token); ok {
		return p, true
	}
	p, ok := lookup(c.text, v, "additionalProperties")
	return p, ok && c.text.Kind(p) == jsondoc.Object
}

// hint says how to fix a violation, if the schema and the value determine it.
func (c *compiled) hint(x *espalier.Violation, schema jsondoc.Value, at report.Place) string {
	switch x.Keyword {
	case "x-kubernetes-validations":
		if request.NotChecked(x) {
			return "correct the other errors first"
		}
	case "required":
		return c.hintRequired(x, schema)
	case "enum":
		return c.hintEnum(x, schema)
	case "type":
		return hintType(textAt(c.text, schema, "type"), at)
	}
	return ""
}

// hintRequired describes the field that is missing.
func (c *compiled) hintRequired(x *espalier.Violation, parent jsondoc.Value) string {
	list, _ := lookup(c.text, parent, "required")
	if c.text.Kind(list) != jsondoc.Array {
		return ""
	}
	for _, item := range c.text.Items(list) {
		if c.text.Kind(item) != jsondoc.String {
			continue
		}
		name := c.text.Text(item)
		if !strings.HasSuffix("."+x.Path, "."+name) {
			continue
		}
		hint := "add " + name
		field, ok := c.below(parent, name)
		if !ok {
			return hint
		}
		if kind := textAt(c.text, field, "type"); kind != "" {
			hint += ", of type " + kind
		}
		if values := c.values(field); values != "" {
			hint += ", one of " + values
		}
		if about := sentence(textAt(c.text, field, "description")); about != "" {
			hint += ": " + about
		}
		return hint
	}
	return ""
}

// maxValues bounds the values of an enum that are listed.
const maxValues = 12

// values lists the values of an enum, as they are in JSON.
func (c *compiled) values(schema jsondoc.Value) string {
	enum, _ := lookup(c.text, schema, "enum")
	if c.text.Kind(enum) != jsondoc.Array || c.text.Len(enum) > maxValues {
		return ""
	}
	var all []string
	for _, v := range c.text.Items(enum) {
		all = append(all, string(c.text.Raw(v)))
	}
	return strings.Join(all, ", ")
}

func (c *compiled) hintEnum(x *espalier.Violation, schema jsondoc.Value) string {
	bad, ok := x.BadValue.(string)
	enum, _ := lookup(c.text, schema, "enum")
	if !ok || c.text.Kind(enum) != jsondoc.Array {
		return ""
	}
	var all []string
	for _, v := range c.text.Items(enum) {
		if c.text.Kind(v) == jsondoc.String {
			all = append(all, c.text.Text(v))
		}
	}
	if near := nearest(bad, all); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return ""
}

// hintType recognises values that only have quotes too many or too few.
func hintType(want string, at report.Place) string {
	line := []rune(at.Excerpt)
	if at.Column < 1 || at.EndColumn-1 > len(line) || at.EndColumn <= at.Column {
		return ""
	}
	token := string(line[at.Column-1 : at.EndColumn-1])
	if strings.HasPrefix(strings.TrimLeft(string(line[at.EndColumn-1:]), " "), ":") {
		return "" // it is the key of a list or an object, for which quotes do nothing
	}
	bare := strings.Trim(token, `'"`)
	quoted := bare != token
	_, notInt := strconv.ParseInt(bare, 10, 64)
	_, notNumber := strconv.ParseFloat(bare, 64)
	switch {
	case quoted && (want == "integer" && notInt == nil || want == "number" && notNumber == nil || want == "boolean" && (bare == "true" || bare == "false")):
		return "remove the quotes: " + bare
	case !quoted && want == "string" && !strings.ContainsAny(token, "{[:|>&*"):
		return "put it in quotes: " + strconv.Quote(token)
	}
	return ""
}

// sentence is the first one of a description.
func sentence(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if first, _, ok := strings.Cut(text, ". "); ok {
		text = first
	}
	const most = 120
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return strings.TrimSuffix(text, ".")
}
