package history

import (
	"math/rand/v2"
	"strconv"

	"github.com/espalier-dev/espalier/conformance/mutate"
	"github.com/espalier-dev/espalier/conformance/tree"
)

// A Maker makes histories.
type Maker struct {
	crds *mutate.CRDs
	pool *mutate.Pool
}

// New returns a maker of histories about real CRDs and about some that are made of parts of the pool.
func New(crds *mutate.CRDs, pool *mutate.Pool) *Maker { return &Maker{crds, pool} }

// A Start is how a history begins.
type Start struct {
	CRD    []byte
	Base   string
	Stored bool // the CRD is in storage, whatever a server would say about it today
	Steps  int
}

// Begin makes the CRD with which the history of a seed begins.
func (m *Maker) Begin(seed uint64) Start {
	w := m.writer(seed, 0)
	s := Start{Steps: 3 + w.IntN(6)}
	switch {
	case w.one(3) && m.crds.Len() > 0:
		var root *tree.Node
		root, s.Base = m.crds.Base(seed)
		w.root = root
	default:
		s.Base = "nothing"
		w.root = w.fresh()
	}
	if w.one(4) {
		s.Stored = true
		w.outdated()
	}
	if s.Stored || w.one(2) {
		w.establish()
	}
	s.CRD = w.root.Bytes()
	return s
}

// Step makes what a client sends as the step of a history whose state is given, and the names of the changes in it.
func (m *Maker) Step(seed uint64, step int, state []byte) (doc []byte, changes []string) {
	root, err := tree.Parse(state)
	if err != nil {
		return state, nil
	}
	w := m.writer(seed, uint64(step)+1)
	w.root = root
	n := 1
	if w.one(5) {
		n = 2
	}
	for try := 0; len(changes) < n && try < 20; try++ {
		if c := changeTable[w.IntN(len(changeTable))]; c.apply(w) {
			changes = append(changes, c.name)
		}
	}
	return root.Bytes(), changes
}

// Establish writes into a CRD that a server has stored what the server's controllers write.
func Establish(state []byte) []byte {
	root, err := tree.Parse(state)
	if err != nil {
		return state
	}
	(&writer{root: root}).establish()
	return root.Bytes()
}

type writer struct {
	*rand.Rand
	root *tree.Node
	pool *mutate.Pool
	seed uint64
}

func (m *Maker) writer(seed, step uint64) *writer {
	return &writer{Rand: rand.New(rand.NewPCG(seed, 0x686973746f7279<<8|step)), pool: m.pool, seed: seed<<12 | step<<8}
}

func (w *writer) one(n int) bool { return w.IntN(n) == 0 }

func (w *writer) choose(options ...string) string { return options[w.IntN(len(options))] }

func (w *writer) node(options ...string) *tree.Node { return tree.Must(w.choose(options...)) }

func (w *writer) spec() *tree.Node { return w.root.Have("spec", tree.Object) }

func (w *writer) metadata() *tree.Node { return w.root.Have("metadata", tree.Object) }

// versions returns the versions that are objects.
func (w *writer) versions() (list []*tree.Node) {
	for _, v := range w.spec().Have("versions", tree.Array).Kids {
		if v.Kind == tree.Object {
			list = append(list, v)
		}
	}
	return list
}

// version returns one of the versions, or nil.
func (w *writer) version() *tree.Node {
	list := w.versions()
	if len(list) == 0 {
		return nil
	}
	return list[w.IntN(len(list))]
}

// schema makes a schema, most likely a valid one.
func (w *writer) schema() *tree.Node {
	w.seed++
	switch w.IntN(6) {
	case 0:
		return tree.Must(string(w.pool.Enrich(w.seed).Schema))
	case 1:
		return tree.Must(string(w.pool.Vary(w.seed).Schema))
	}
	return w.node(plainSchemas...)
}

var plainSchemas = []string{
	`{"type":"object","properties":{"spec":{"type":"object","properties":{"replicas":{"type":"integer","default":1},"name":{"type":"string","maxLength":40}}},"status":{"type":"object","properties":{"replicas":{"type":"integer"}}}}}`,
	`{"type":"object","properties":{"spec":{"type":"object","properties":{"on":{"type":"boolean"},"level":{"type":"number"},"m":{"type":"object","additionalProperties":{"type":"string"}}}}}}`,
	`{"type":"object","properties":{"spec":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}`,
	`{"type":"object","properties":{"spec":{"type":"object","properties":{"l":{"type":"array","maxItems":9,"items":{"type":"string","maxLength":9}},"name":{"type":"string"}},"x-kubernetes-validations":[{"rule":"!has(self.l) || self.l.all(x, x.size() > 1)","message":"short"}]}}}`,
}

// fresh makes a CRD from nothing.
func (w *writer) fresh() *tree.Node {
	group := w.choose("orchard.example", "garden.example.com", "x.k8s.io", "a.b.c.example")
	root := tree.Must(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{},"spec":{"names":{"plural":"trees","kind":"Tree"},"versions":[]}}`)
	root.Get("metadata").Set("name", tree.Str("trees."+group))
	if group == "x.k8s.io" {
		root.Get("metadata").Set("annotations", w.node(`{"api-approved.kubernetes.io":"https://a.b/c"}`, `{"api-approved.kubernetes.io":"unapproved, a trial"}`))
	}
	spec := root.Get("spec")
	spec.Set("group", tree.Str(group))
	spec.Set("scope", w.node(`"Namespaced"`, `"Cluster"`))
	same := w.schema()
	for i := range 1 + w.IntN(3) {
		v := tree.Must(`{"served":true}`)
		v.Set("name", tree.Str("v"+strconv.Itoa(i+1)))
		v.Set("storage", tree.Lit(strconv.FormatBool(i == 0)))
		s := same
		if i > 0 && w.one(2) {
			s = w.schema()
		}
		setSchema(v, s.Clone())
		list := spec.Get("versions")
		list.Kids = append(list.Kids, v)
	}
	return root
}

func setSchema(version, schema *tree.Node) {
	version.Set("schema", tree.Obj())
	version.Get("schema").Set("openAPIV3Schema", schema)
}

// outdated makes a CRD invalid, as those are that were stored before a check existed.
func (w *writer) outdated() {
	if w.one(2) {
		w.spec().Set("preserveUnknownFields", tree.Lit("true"))
	}
	for _, v := range w.versions() {
		if w.one(3) {
			continue
		}
		if w.one(6) {
			v.Del("schema")
			continue
		}
		setSchema(v, w.node(
			`{"properties":{"a":{}}}`, `{"type":"object","properties":{"a":{"type":"strange"}}}`, `{"anyOf":[{"type":"object"}]}`,
			`{"type":"object","properties":{"a":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"object"}}}}`,
			`{"type":"object","properties":{"a":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object","properties":{"k":{"type":"string"}}}}}}`,
			`{"type":"object","properties":{"a":{"type":"object","default":{"unknown":1}}}}`,
			`{"type":"object","properties":{"a":{"type":"string","format":"none-such"}}}`,
			costlySchema, costlySchema, costlySchema))
	}
	if w.one(4) {
		w.spec().Set("conversion", tree.Must(`{"strategy":"Webhook","webhook":{"conversionReviewVersions":["foo"],"clientConfig":{"url":"https://a.b/c","caBundle":"bm90IFBFTQ=="}}}`))
	}
}

const costlySchema = `{"type":"object","properties":{"spec":{"type":"object","properties":{"l":{"type":"array","items":{"type":"string"}}},"x-kubernetes-validations":[{"rule":"self.l.all(x, self.l.all(y, self.l.all(z, x != y || y != z)))"}]}}}`

// establish writes what controllers write into the status.
func (w *writer) establish() {
	status := w.root.Have("status", tree.Object)
	status.Set("conditions", tree.Must(`[{"type":"NamesAccepted","status":"True","lastTransitionTime":"2026-01-02T03:04:05Z","reason":"","message":""},`+
		`{"type":"Established","status":"True","lastTransitionTime":"2026-01-02T03:04:05Z","reason":"","message":""}]`))
	if names := w.root.Get("spec").Get("names"); names != nil {
		status.Set("acceptedNames", names.Clone())
	}
	if stored := status.Get("storedVersions"); stored == nil || len(stored.Kids) == 0 {
		list := tree.Arr()
		for _, v := range w.versions() {
			if v.Get("storage").Is("true") {
				list.Kids = append(list.Kids, tree.Str(v.Get("name").Text()))
			}
		}
		status.Set("storedVersions", list)
	}
	meta := w.metadata()
	for _, m := range [...][2]string{{"uid", `"0c1e"`}, {"resourceVersion", `"7"`}, {"creationTimestamp", `"2026-01-02T03:04:05Z"`}, {"generation", "1"}} {
		if meta.Get(m[0]) == nil || m[0] == "resourceVersion" || meta.Get(m[0]).Is("null") {
			meta.Set(m[0], tree.Lit(m[1]))
		}
	}
}
