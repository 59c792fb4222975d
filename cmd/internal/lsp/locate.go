package lsp

import (
	"reflect"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/espalier-dev/espalier/crd/manifest"
	"github.com/espalier-dev/espalier/crd/offline"
)

// view is what a request sees of a file: it does not change any more.
type view struct {
	text    *text
	chunk   *chunk
	good    *chunk // the chunk, or its last form that could be parsed; may be nil
	outline *outline
	offset  int // of the cursor, in the chunk
	uri     string
	version int
}

// view takes the text of a file. The caller holds the mutex.
func (s *Server) view(uri string, at Position) *view {
	d := s.documents[uri]
	if d == nil || d.skipped {
		return nil
	}
	v := &view{text: d.text, uri: uri, version: d.version}
	offset := d.text.offset(at)
	number := 0
	for i, c := range d.split() {
		if c.offset <= offset {
			v.chunk, number = c, i
		}
	}
	v.offset = offset - v.chunk.offset
	v.good = d.lastGood[number]
	return v
}

// read parses what the request needs.
func (v *view) read(e Engine) {
	v.outline = newOutline(v.chunk.content)
	v.chunk.parse(e)
	if v.chunk.good() {
		v.good = v.chunk
	}
}

// span is the range of a part of the chunk.
func (v *view) span(from, to int) Range { return v.text.span(v.chunk.offset+from, v.chunk.offset+to) }

// subject is the object that an entry belongs to, and the way to the entry.
type subject struct {
	object     *entry
	steps      []*entry // below object
	apiVersion string
	kind       string
	list       string // the JSON pointer of an object of a list
}

// subjectOf finds the object around an entry: the document, or an item of a list of objects.
func subjectOf(e *entry) subject {
	steps := e.steps()
	s := subject{steps: steps}
	root := e
	for root.parent != nil {
		root = root.parent
	}
	s.object = root
	if kind := valueOf(root, "kind"); strings.HasSuffix(kind, "List") && len(steps) > 2 && steps[0].key == "items" && steps[1].item {
		s.object, s.steps, s.list = steps[1], steps[2:], "/items/"+strconv.Itoa(steps[1].index)
	}
	s.apiVersion, s.kind = valueOf(s.object, "apiVersion"), valueOf(s.object, "kind")
	return s
}

func valueOf(e *entry, key string) string {
	if c := e.child(key); c != nil {
		return c.value
	}
	return ""
}

func (s *subject) groupVersionKind() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(s.apiVersion, s.kind)
}

func (s *subject) isCRD() bool {
	return s.kind == "CustomResourceDefinition" && strings.HasPrefix(s.apiVersion, "apiextensions.k8s.io/")
}

// crd returns the CRD of the object, or nil.
func (s *Server) crdOf(sub *subject) CRD {
	gvk := sub.groupVersionKind()
	return s.workspace.Find(GroupKind{gvk.Group, gvk.Kind})
}

// root returns what is known about objects of a kind, or nil.
func (s *Server) root(sub *subject) node {
	if sub.isCRD() {
		return goNode{t: reflect.TypeFor[apiextensions.CustomResourceDefinition]()}
	}
	gvk := sub.groupVersionKind()
	if crd := s.crdOf(sub); crd != nil {
		if text, _, ok := crd.Schema(gvk.Version); ok {
			if n, ok := newSchemaNode(text); ok {
				return n
			}
		}
		return nil
	}
	if kind := offline.Find(gvk); kind != nil {
		return goNode{t: reflect.TypeOf(kind.New()).Elem()}
	}
	return nil
}

// follow goes down from a node.
func follow(n node, steps []*entry) node {
	for _, e := range steps {
		if n == nil {
			return nil
		}
		if e.item {
			n = n.item()
		} else {
			n = n.member(e.key)
		}
	}
	return n
}

// pointer is the JSON pointer of the steps.
func pointer(steps []*entry) string {
	var b strings.Builder
	for _, e := range steps {
		b.WriteByte('/')
		if e.item {
			b.WriteString(strconv.Itoa(e.index))
		} else {
			b.WriteString(escape.Replace(e.key))
		}
	}
	return b.String()
}

var (
	escape   = strings.NewReplacer("~", "~0", "/", "~1")
	unescape = strings.NewReplacer("~1", "/", "~0", "~")
)

// goodObject returns the last good form of the object that a subject is.
func (v *view) goodObject(s *subject) *manifest.Document {
	if v.good == nil {
		return nil
	}
	for _, o := range v.good.objects {
		if o.List == s.list {
			return o
		}
	}
	return nil
}
