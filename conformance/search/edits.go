package search

import (
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/espalier-dev/espalier/conformance/tree"
)

// editor changes a schema.
type editor struct {
	*rand.Rand
	root *tree.Node
}

// site is a schema that may be edited.
type site struct {
	n      *tree.Node
	parent *tree.Node
	name   string // of the property, if it is one
	inside bool   // below allOf, anyOf, oneOf or not
}

func (e *editor) one(n int) bool                     { return e.IntN(n) == 0 }
func (e *editor) choose(options ...string) string    { return options[e.IntN(len(options))] }
func (e *editor) node(options ...string) *tree.Node  { return tree.Must(e.choose(options...)) }
func kind(n *tree.Node) string                       { return n.Get("type").Text() }
func isList(n *tree.Node) bool                       { return n != nil && n.Kind == tree.Array && len(n.Kids) > 0 }
func isObject(n *tree.Node) bool                     { return n != nil && n.Kind == tree.Object }
func (e *editor) kid(n *tree.Node) (int, *tree.Node) { i := e.IntN(len(n.Kids)); return i, n.Kids[i] }
func (s *site) structural() bool                     { return !s.inside && s.parent != nil }
func hasProperties(n *tree.Node) bool {
	p := n.Get("properties")
	return isObject(p) && len(p.Kids) > 0
}

// sites lists the schemas of the tree, but for those of the resource's own metadata.
func (e *editor) sites() (all []*site) {
	var down func(s *site)
	down = func(s *site) {
		if !isObject(s.n) {
			return
		}
		all = append(all, s)
		for i, raw := range s.n.Keys {
			switch key, child := tree.Unquote(raw), s.n.Kids[i]; key {
			case "properties":
				for j := range child.Keys {
					name := tree.Unquote(child.Keys[j])
					if s.parent == nil && (name == "metadata" || name == "kind" || name == "apiVersion") {
						continue
					}
					down(&site{child.Kids[j], s.n, name, s.inside})
				}
			case "items", "additionalProperties":
				down(&site{child, s.n, "", s.inside})
			case "not":
				down(&site{child, s.n, "", true})
			case "allOf", "anyOf", "oneOf":
				if child.Kind == tree.Array {
					for _, k := range child.Kids {
						down(&site{k, s.n, "", true})
					}
				}
			}
		}
	}
	down(&site{n: e.root})
	return all
}

// Edit returns a schema with one to three edits, and their names. Some seeds give nothing.
func Edit(schema []byte, seed uint64) ([]byte, []string) {
	root, err := tree.Parse(schema)
	if err != nil {
		return nil, nil
	}
	e := &editor{Rand: rand.New(rand.NewPCG(seed, 0x64696666)), root: root}
	count := 1
	if e.one(4) {
		count += 1 + e.IntN(2)
	}
	var applied []string
	for tries := 0; len(applied) < count && tries < 40; tries++ {
		sites := e.sites()
		x := edits[e.IntN(len(edits))]
		if x.apply(e, sites[e.IntN(len(sites))]) {
			applied = append(applied, x.name)
		}
	}
	return root.Bytes(), applied
}

// Focus returns a schema without most of its fields, so that the others occur in nearly every object.
func Focus(schema []byte, seed uint64) []byte {
	root, err := tree.Parse(schema)
	if err != nil {
		return schema
	}
	e := &editor{Rand: rand.New(rand.NewPCG(seed, 0x666f637573)), root: root}
	for _, s := range e.sites() {
		if s.inside || !hasProperties(s.n) {
			continue
		}
		props := s.n.Get("properties")
		if len(props.Kids) <= 2 {
			continue
		}
		kept := tree.Obj()
		for range 1 + e.IntN(2) {
			i, field := e.kid(props)
			kept.Set(tree.Unquote(props.Keys[i]), field)
		}
		s.n.Set("properties", kept)
		// What may refer to the fields that are gone goes with them.
		for _, k := range []string{"required", "x-kubernetes-validations", "allOf", "anyOf", "oneOf", "not", "default"} {
			s.n.Del(k)
		}
	}
	return root.Bytes()
}

type edit struct {
	name  string
	apply func(*editor, *site) bool
}

var edits = []edit{
	{"number", moveNumber}, {"number", moveNumber}, {"number", moveNumber},
	{"limit", addLimit}, {"limit", addLimit},
	{"drop", dropKeyword}, {"drop", dropKeyword},
	{"enum", editEnum}, {"enum", editEnum},
	{"required", editRequired},
	{"default", editDefault},
	{"field removed", removeField},
	{"field added", addField},
	{"type", changeType},
	{"nullable", flip("nullable")},
	{"preserve", flip("x-kubernetes-preserve-unknown-fields")},
	{"map", editMap},
	{"list type", editListType},
	{"restate", restate}, {"restate", restate}, {"restate", restate},
	{"logical", editLogical}, {"logical", editLogical}, {"logical", editLogical},
	{"rule", editRule}, {"rule", editRule}, {"rule", editRule},
	{"pattern", editPattern}, {"pattern", editPattern},
	{"embedded", editEmbedded},
}

// moveNumber changes a limit a little, in either direction.
func moveNumber(e *editor, s *site) bool {
	var found []string
	for _, k := range []string{"maximum", "minimum", "multipleOf", "maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties"} {
		if s.n.Get(k) != nil {
			found = append(found, k)
		}
	}
	if len(found) == 0 {
		return false
	}
	k := e.choose(found...)
	if k == "maximum" || k == "minimum" {
		if e.one(4) {
			flip("exclusiveM"+k[1:])(e, s)
			return true
		}
		if f, err := strconv.ParseFloat(s.n.Get(k).Raw, 64); err == nil {
			f += []float64{1, -1, 0.5, -0.5, 10, -10}[e.IntN(6)]
			s.n.Set(k, tree.Lit(strconv.FormatFloat(f, 'g', -1, 64)))
			return true
		}
		return false
	}
	i, err := strconv.Atoi(s.n.Get(k).Raw)
	if err != nil {
		return false
	}
	i += []int{1, -1, 2, -2}[e.IntN(4)]
	if k == "multipleOf" {
		i = []int{i + 1, i * 2, i / 2, 1}[e.IntN(4)]
	}
	s.n.Set(k, tree.Lit(strconv.Itoa(max(i, 0))))
	return true
}

var limits = map[string][]string{
	"integer": {`{"minimum":1}`, `{"maximum":100}`, `{"multipleOf":2}`, `{"format":"int32"}`, `{"minimum":0,"exclusiveMinimum":true}`, `{"maximum":3000}`, `{"enum":[1,2,3]}`, `{"format":"int64"}`},
	"number":  {`{"minimum":0.5}`, `{"maximum":100}`, `{"multipleOf":0.5}`, `{"format":"float"}`, `{"maximum":2.5,"exclusiveMaximum":true}`, `{"minimum":2}`},
	"string":  {`{"maxLength":10}`, `{"minLength":3}`, `{"pattern":"^[a-z]+$"}`, `{"pattern":"."}`, `{"format":"date"}`, `{"format":"uuid"}`, `{"enum":["apple","pear","a"]}`, `{"pattern":"^(a|p).*$"}`, `{"maxLength":100}`, `{"minLength":0}`},
	"array":   {`{"maxItems":2}`, `{"minItems":1}`, `{"maxItems":1000000}`},
	"object":  {`{"maxProperties":2}`, `{"minProperties":1}`, `{"maxProperties":1000000}`},
	"boolean": {`{"enum":[true]}`, `{"enum":[false,true]}`},
}

func addLimit(e *editor, s *site) bool {
	list := limits[kind(s.n)]
	if len(list) == 0 {
		return false
	}
	x := e.node(list...)
	for i, raw := range x.Keys {
		s.n.Set(tree.Unquote(raw), x.Kids[i])
	}
	return true
}

// dropped are keywords that a schema may lose and stay one.
var droppable = []string{"maximum", "minimum", "multipleOf", "maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties", "pattern", "format", "enum", "required", "default", "allOf", "anyOf", "oneOf", "not", "nullable",
	"x-kubernetes-validations", "x-kubernetes-map-type", "x-kubernetes-embedded-resource", "x-kubernetes-preserve-unknown-fields", "additionalProperties", "items", "properties"}

func dropKeyword(e *editor, s *site) bool {
	var found []string
	for _, k := range droppable {
		if s.n.Get(k) != nil && (s.parent != nil || k != "properties") {
			found = append(found, k)
		}
	}
	if len(found) == 0 {
		return false
	}
	s.n.Del(e.choose(found...))
	return true
}

func editEnum(e *editor, s *site) bool {
	enum := s.n.Get("enum")
	if !isList(enum) {
		return false
	}
	switch e.IntN(4) {
	case 0:
		if len(enum.Kids) < 2 {
			return false
		}
		enum.Cut(e.IntN(len(enum.Kids)))
	case 1:
		enum.Kids = append(enum.Kids, e.node(`"quince"`, `7`, `null`, `"pear"`, `true`))
	case 2:
		e.Shuffle(len(enum.Kids), func(i, j int) { enum.Kids[i], enum.Kids[j] = enum.Kids[j], enum.Kids[i] })
	case 3:
		i, _ := e.kid(enum)
		enum.Kids[i] = e.node(`"medlar"`, `8`, `"a"`)
	}
	return true
}

func editRequired(e *editor, s *site) bool {
	if !hasProperties(s.n) {
		return false
	}
	props := s.n.Get("properties")
	required := s.n.Get("required")
	if isList(required) && e.one(2) {
		required.Cut(e.IntN(len(required.Kids)))
		if len(required.Kids) == 0 {
			s.n.Del("required")
		}
		return true
	}
	required = s.n.Have("required", tree.Array)
	required.Kids = append(required.Kids, tree.Lit(props.Keys[e.IntN(len(props.Keys))]))
	return true
}

var defaults = map[string][]string{
	"string": {`"apple"`, `"a"`, `""`}, "integer": {`1`, `5`, `0`}, "number": {`1.5`, `2`}, "boolean": {`true`, `false`}, "array": {`[]`}, "object": {`{}`},
}

func editDefault(e *editor, s *site) bool {
	if !s.structural() {
		return false
	}
	if s.n.Get("default") != nil && e.one(2) {
		s.n.Del("default")
		return true
	}
	list := defaults[kind(s.n)]
	if len(list) == 0 {
		return false
	}
	s.n.Set("default", e.node(list...))
	return true
}

func removeField(e *editor, s *site) bool {
	if !hasProperties(s.n) || s.inside {
		return false
	}
	props := s.n.Get("properties")
	i := e.IntN(len(props.Keys))
	if name := tree.Unquote(props.Keys[i]); s.parent == nil && (name == "metadata" || name == "kind" || name == "apiVersion") {
		return false
	}
	props.Cut(i)
	if len(props.Kids) == 0 {
		s.n.Del("properties")
	}
	return true
}

func addField(e *editor, s *site) bool {
	if s.inside || kind(s.n) != "object" || s.n.Get("additionalProperties") != nil {
		return false
	}
	s.n.Have("properties", tree.Object).Set(e.choose("novel", "apple", "pear", "name"), e.node(`{"type":"string"}`, `{"type":"integer","minimum":3}`, `{"type":"object","properties":{"a":{"type":"string"}}}`, `{"type":"string","default":"x"}`, `{"type":"array","items":{"type":"string"}}`, `{"x-kubernetes-preserve-unknown-fields":true}`, `{"x-kubernetes-preserve-unknown-fields":true,"nullable":true}`))
	return true
}

func changeType(e *editor, s *site) bool {
	if !s.structural() {
		return false
	}
	switch kind(s.n) {
	case "integer":
		if e.one(2) {
			s.n.Set("type", tree.Str("number"))
		} else {
			s.n.Del("type")
			s.n.Set("x-kubernetes-int-or-string", tree.Lit("true"))
		}
	case "number":
		s.n.Set("type", tree.Str("integer"))
	case "string":
		if e.one(2) {
			s.n.Set("type", tree.Str(e.choose("integer", "boolean")))
		} else {
			s.n.Del("type")
			s.n.Set("x-kubernetes-int-or-string", tree.Lit("true"))
		}
	case "":
		if !s.n.Get("x-kubernetes-int-or-string").Is("true") {
			return false
		}
		s.n.Del("x-kubernetes-int-or-string")
		s.n.Set("type", tree.Str(e.choose("integer", "string")))
	case "object", "array":
		*s.n = *e.node(`{"type":"string"}`, `{"x-kubernetes-preserve-unknown-fields":true}`, `{"type":"object","x-kubernetes-preserve-unknown-fields":true}`, `{"type":"object"}`, `{"type":"array","items":{"type":"string"}}`)
	default:
		return false
	}
	return true
}

func flip(keyword string) func(*editor, *site) bool {
	return func(_ *editor, s *site) bool {
		if s.inside && (keyword == "nullable" || strings.HasPrefix(keyword, "x-")) || s.parent == nil && keyword == "nullable" {
			return false
		}
		if strings.Contains(keyword, "preserve") && kind(s.n) != "object" {
			return false
		}
		if s.n.Get(keyword).Is("true") {
			s.n.Del(keyword)
		} else {
			s.n.Set(keyword, tree.Lit("true"))
		}
		return true
	}
}

// editMap changes what becomes of fields that are not specified.
func editMap(e *editor, s *site) bool {
	if !s.structural() || kind(s.n) != "object" {
		return false
	}
	switch more := s.n.Get("additionalProperties"); {
	case more != nil && e.one(2):
		s.n.Set("additionalProperties", e.node(`true`, `false`, `{"type":"string"}`, `{"x-kubernetes-preserve-unknown-fields":true}`))
	case more != nil:
		s.n.Del("additionalProperties")
		if e.one(2) {
			s.n.Set("x-kubernetes-preserve-unknown-fields", tree.Lit("true"))
		}
		if e.one(2) && isObject(more) {
			props := tree.Obj()
			props.Add(e.choose("a", "apple", "team"), more.Clone())
			s.n.Set("properties", props)
		}
	default:
		s.n.Del("properties")
		s.n.Del("required")
		s.n.Set("additionalProperties", e.node(`{"type":"string"}`, `{"type":"integer"}`, `true`))
	}
	return true
}

func editListType(e *editor, s *site) bool {
	if !s.structural() || kind(s.n) != "array" {
		return false
	}
	s.n.Del("x-kubernetes-list-type")
	s.n.Del("x-kubernetes-list-map-keys")
	items := s.n.Get("items")
	switch {
	case e.one(3) || items == nil:
	case hasProperties(items) && kind(items) == "object":
		required := items.Get("required")
		if !isList(required) {
			return true
		}
		keys := tree.Arr()
		for range 1 + e.IntN(2) {
			_, k := e.kid(required)
			keys.Kids = append(keys.Kids, k.Clone())
		}
		s.n.Set("x-kubernetes-list-type", tree.Str("map"))
		s.n.Set("x-kubernetes-list-map-keys", keys)
	default:
		s.n.Set("x-kubernetes-list-type", tree.Str("set"))
	}
	return true
}

func editEmbedded(e *editor, s *site) bool {
	if !s.structural() || kind(s.n) != "object" || s.n.Get("additionalProperties") != nil {
		return false
	}
	if s.n.Get("x-kubernetes-embedded-resource").Is("true") {
		s.n.Del("x-kubernetes-embedded-resource")
		return true
	}
	s.n.Set("x-kubernetes-embedded-resource", tree.Lit("true"))
	s.n.Set("x-kubernetes-preserve-unknown-fields", tree.Lit("true"))
	return true
}

func editPattern(e *editor, s *site) bool {
	p := s.n.Get("pattern").Text()
	if p == "" {
		return false
	}
	var n string
	switch e.IntN(6) {
	case 0:
		n = "^(" + p + ")$"
	case 1:
		n = p + "|^quince$"
	case 2:
		n = strings.NewReplacer("+", "*", "a-z", "a-zA-Z").Replace(p)
	case 3:
		n = strings.NewReplacer("*", "+", "a-z", "a-f").Replace(p)
	case 4:
		n = "(" + p + ")"
	case 5:
		n = strings.TrimSuffix(strings.TrimPrefix(p, "^"), "$")
	}
	s.n.Set("pattern", tree.Str(n))
	return true
}
