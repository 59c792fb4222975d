package lsp

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-dev/espalier/crd/offline"
)

// The kinds of completion items.
const (
	itemFunction = 3
	itemField    = 5
	itemVariable = 6
	itemClass    = 7
	itemProperty = 10
	itemValue    = 12
	itemEnum     = 20
)

type completionList struct {
	IsIncomplete bool             `json:"isIncomplete"`
	Items        []CompletionItem `json:"items"`
}

// CompletionItem is a proposal.
type CompletionItem struct {
	Label         string         `json:"label"`
	Kind          int            `json:"kind"`
	Detail        string         `json:"detail,omitempty"`
	Documentation *markupContent `json:"documentation,omitempty"`
	SortText      string         `json:"sortText,omitempty"`
	FilterText    string         `json:"filterText,omitempty"`
	TextEdit      *TextEdit      `json:"textEdit,omitempty"`
}

type markupContent struct {
	Kind  string `json:"kind"`
	Value string `json:"value"`
}

func markdown(text string) *markupContent {
	if text == "" {
		return nil
	}
	return &markupContent{Kind: "markdown", Value: text}
}

// maxItems bounds the proposals of one answer.
const maxItems = 1000

func (s *Server) completion(_ context.Context, v *view) (any, error) {
	v.read(s.engine)
	items := s.complete(v)
	list := completionList{Items: items}
	if len(items) > maxItems {
		list = completionList{IsIncomplete: true, Items: items[:maxItems]}
	}
	if list.Items == nil {
		list.Items = []CompletionItem{}
	}
	return list, nil
}

func (s *Server) complete(v *view) []CompletionItem {
	e, inKey := v.outline.at(v.offset)
	if !inKey && e.parent != nil && (e.valueAt <= v.offset && v.offset <= e.valueEnd) && v.typesValue(e) {
		sub := subjectOf(e)
		if sub.isCRD() && expressionAt(&sub) {
			return s.completeCEL(v, e, &sub)
		}
		return s.completeValue(v, e, &sub)
	}
	if e.block && v.offset >= e.valueAt && v.offset <= e.valueEnd {
		return nil // text
	}
	return s.completeKey(v)
}

// typesValue reports whether the cursor is in the value of an entry, rather than where a key below it
// may begin.
func (v *view) typesValue(e *entry) bool {
	if e.block {
		return v.offset > e.valueAt || v.offset < e.valueEnd
	}
	if e.valueAt < len(v.chunk.content) && (v.chunk.content[e.valueAt] == '{' || v.chunk.content[e.valueAt] == '[') {
		return false
	}
	if e.item {
		return e.value != "" && !strings.ContainsAny(e.value[:1], "{[")
	}
	// On the line of the key, after its colon and a blank.
	between := v.chunk.content[e.keyEnd:v.offset]
	return !strings.Contains(between, "\n") && strings.HasPrefix(strings.TrimLeft(between, " "), ": ") || e.flow && strings.Contains(between, ":")
}

// cursorKey stands for the key that is being typed.
const cursorKey = "espalierCursor"

// completeKey proposes the fields of the object that the cursor is in.
func (s *Server) completeKey(v *view) []CompletionItem {
	content := v.chunk.content
	from, to := v.offset, v.offset
	for from > 0 && isKeyByte(content[from-1]) {
		from--
	}
	for to < len(content) && isKeyByte(content[to]) {
		to++
	}
	quoted := from > 0 && content[from-1] == '"' && to < len(content) && content[to] == '"'
	if quoted {
		from, to = from-1, to+1
	}
	o := newOutline(content[:from] + cursorKey + ": " + afterKey(content[to:]))
	e, _ := o.at(from + 1)
	if e == nil || e.parent == nil {
		return nil
	}
	edit := v.span(from, to)
	sub := subjectOf(e)
	colon := strings.HasPrefix(strings.TrimLeft(content[to:], " "), ":")
	if e.item { // within [ ]
		return valueItems(follow(s.root(&sub), sub.steps), edit)
	}
	around := sub.steps[:len(sub.steps)-1]
	root := s.root(&sub)
	if root == nil {
		if len(around) == 0 {
			return typeMetaItems(e, edit, colon)
		}
		return nil
	}
	n := follow(root, around)
	if n == nil {
		return nil
	}
	items := memberItems(n, e.parent, keysOf(root, around), edit, colon)
	after := ": "
	if colon {
		after = ""
	}
	for i := range items {
		if quoted { // JSON
			items[i].TextEdit.NewText = strconv.Quote(items[i].Label) + after
		}
	}
	if e.parent.item && len(e.parent.children) == 1 {
		items = append(items, valueItems(n, edit)...) // a list of values
	}
	return items
}

// afterKey cuts the colon that belongs to the key at the cursor.
func afterKey(rest string) string {
	if trimmed := strings.TrimLeft(rest, " "); strings.HasPrefix(trimmed, ":") {
		return strings.TrimPrefix(trimmed, ":")
	}
	return rest
}

func isKeyByte(b byte) bool { return isName(b) || b == '-' || b == '.' || b == '$' || b == '/' }

// keysOf returns the keys of the list that the last step is an item of.
func keysOf(root node, steps []*entry) []string {
	if len(steps) == 0 || !steps[len(steps)-1].item {
		return nil
	}
	if list := follow(root, steps[:len(steps)-1]); list != nil {
		return list.facts().keys
	}
	return nil
}

// memberItems proposes the fields of a node that an entry does not have yet.
func memberItems(n node, parent *entry, keys []string, edit Range, colon bool) []CompletionItem {
	var items []CompletionItem
	for _, m := range n.members() {
		if parent.child(m.name) != nil {
			continue
		}
		f := facts{}
		if below := n.member(m.name); below != nil {
			f = below.facts()
		}
		item := CompletionItem{Label: m.name, Kind: itemField, Detail: f.typ, Documentation: markdown(f.markdown(m.required))}
		rank := "2"
		switch {
		case slices.Contains(keys, m.name):
			rank = "0"
			item.Detail = strings.TrimSpace(f.typ + " (key of the list)")
		case m.required:
			rank = "1"
			item.Detail = strings.TrimSpace(f.typ + " (required)")
		}
		item.SortText = rank + m.name
		item.TextEdit = &TextEdit{Range: edit, NewText: keyText(m.name, f.typ, colon)}
		items = append(items, item)
	}
	return items
}

// keyText is a key with its colon, unless there is one.
func keyText(name, typ string, colon bool) string {
	text := Scalar(name)
	switch {
	case colon:
		return text
	case typ == "object" || strings.HasPrefix(typ, "[]"):
		return text + ":"
	}
	return text + ": "
}

// typeMetaItems proposes the fields that say which kind a document is of.
func typeMetaItems(e *entry, edit Range, colon bool) []CompletionItem {
	var items []CompletionItem
	for _, name := range []string{"apiVersion", "kind", "metadata"} {
		if e.parent.child(name) != nil {
			continue
		}
		typ := "string"
		if name == "metadata" {
			typ = "object"
		}
		items = append(items, CompletionItem{Label: name, Kind: itemField, Detail: typ, Documentation: markdown(typeMetaDocs[name]),
			TextEdit: &TextEdit{Range: edit, NewText: keyText(name, typ, colon)}})
	}
	return items
}

// completeValue proposes values of a field.
func (s *Server) completeValue(v *view, e *entry, sub *subject) []CompletionItem {
	edit := v.span(e.valueAt, max(e.valueEnd, v.offset))
	if e.valueAt > v.offset {
		edit = v.span(v.offset, v.offset)
	}
	if len(sub.steps) == 1 {
		switch e.key {
		case "apiVersion":
			return s.kindItems(edit, func(gvk schema.GroupVersionKind) (label, detail string, ok bool) {
				return gvk.GroupVersion().String(), "", sub.kind == "" || sub.kind == gvk.Kind
			})
		case "kind":
			return s.kindItems(edit, func(gvk schema.GroupVersionKind) (label, detail string, ok bool) {
				return gvk.Kind, gvk.GroupVersion().String(), sub.apiVersion == "" || sub.apiVersion == gvk.GroupVersion().String()
			})
		}
	}
	n := follow(s.root(sub), sub.steps)
	if n == nil {
		return nil
	}
	if sub.isCRD() {
		if items := keywordValues(e.key, edit); items != nil {
			return items
		}
	}
	return valueItems(n, edit)
}

// kindItems proposes something of all kinds that are known, each once.
func (s *Server) kindItems(edit Range, of func(schema.GroupVersionKind) (label, detail string, ok bool)) []CompletionItem {
	var items []CompletionItem
	seen := make(map[string]bool)
	add := func(gvk schema.GroupVersionKind, rank string) {
		label, detail, ok := of(gvk)
		if key := label + " " + detail; ok && !seen[key] {
			seen[key] = true
			items = append(items, CompletionItem{Label: label, Detail: detail, Kind: itemClass, SortText: rank + label, TextEdit: &TextEdit{Range: edit, NewText: label}})
		}
	}
	for _, kind := range s.workspace.All() {
		for _, version := range s.workspace.versions(kind) {
			add(schema.GroupVersionKind{Group: kind.Group, Version: version, Kind: kind.Kind}, "0")
		}
	}
	for _, k := range offline.All() {
		add(k.GroupVersionKind, "1")
	}
	add(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}, "1")
	return items
}

// keywordValues proposes the values of keywords of schemas, which Go types do not have.
func keywordValues(key string, edit Range) []CompletionItem {
	values := map[string][]string{
		"type":                                 {"object", "array", "string", "integer", "number", "boolean"},
		"format":                               {"date-time", "date", "duration", "byte", "uuid", "uri", "email", "hostname", "ipv4", "ipv6", "cidr", "int32", "int64", "double", "float", "password"},
		"x-kubernetes-list-type":               {"atomic", "set", "map"},
		"x-kubernetes-map-type":                {"granular", "atomic"},
		"x-kubernetes-preserve-unknown-fields": {"true"},
		"x-kubernetes-embedded-resource":       {"true"},
		"x-kubernetes-int-or-string":           {"true"},
		"reason":                               {"FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate"},
	}[key]
	var items []CompletionItem
	for _, v := range values {
		items = append(items, CompletionItem{Label: v, Kind: itemEnum, TextEdit: &TextEdit{Range: edit, NewText: v}})
	}
	return items
}

// valueItems proposes the values that a schema names: enum, booleans, the default.
func valueItems(n node, edit Range) []CompletionItem {
	if n == nil {
		return nil
	}
	f := n.facts()
	var items []CompletionItem
	add := func(raw, detail string, kind int) {
		text := yamlOf(raw)
		if text == "" || slices.ContainsFunc(items, func(i CompletionItem) bool { return i.TextEdit.NewText == text }) {
			return
		}
		items = append(items, CompletionItem{Label: text, Kind: kind, Detail: detail, SortText: strconv.Itoa(1000 + len(items)), TextEdit: &TextEdit{Range: edit, NewText: text}})
	}
	for _, raw := range f.enum {
		detail := ""
		if raw == f.value {
			detail = "default"
		}
		add(raw, detail, itemEnum)
	}
	if f.typ == "boolean" {
		add("true", "", itemValue)
		add("false", "", itemValue)
	}
	if f.value != "" && !strings.ContainsAny(f.value[:1], "{[") {
		add(f.value, "default", itemValue)
	}
	return items
}

// yamlOf writes a scalar of JSON as YAML; nothing for others.
func yamlOf(raw string) string {
	if strings.HasPrefix(raw, `"`) {
		var text string
		if json.Unmarshal([]byte(raw), &text) != nil {
			return ""
		}
		return Scalar(text)
	}
	if raw == "" || raw[0] == '{' || raw[0] == '[' {
		return ""
	}
	return raw
}

// Scalar writes a string as YAML, in quotes where a plain one would be something else.
func Scalar(text string) string {
	safe := text != "" && (isName(text[0]) && (text[0] < '0' || text[0] > '9') || text[0] == '/' || text[0] == '$')
	for i := range len(text) {
		safe = safe && (isKeyByte(text[i]) || text[i] == ' ' && i+1 < len(text))
	}
	switch strings.ToLower(text) {
	case "y", "n", "yes", "no", "on", "off", "true", "false", "null":
		safe = false
	}
	if safe {
		return text
	}
	quoted, _ := json.Marshal(text)
	return string(quoted)
}
