package compare

import (
	"bytes"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/conformance/oracle"
	"github.com/espalier-dev/espalier/conformance/tree"
)

// Shrink makes a difference smaller while it remains a difference of the same kind, for at most the given time.
func Shrink(d *Difference, limit time.Duration) *Difference {
	s := &shrinker{best: d, until: time.Now().Add(limit)}
	for round := 0; round < 3; round++ {
		before := s.best.size()
		if d.Object != nil {
			s.reduce(func() []byte { return s.best.Object }, func(b []byte) *Difference { return s.retry(s.best.Schema, b, s.best.How.Old) })
		}
		if d.How.Old != nil {
			s.both()
			s.reduce(func() []byte { return s.best.How.Old }, func(b []byte) *Difference { return s.retry(s.best.Schema, s.best.Object, b) })
		}
		s.reduce(func() []byte { return s.best.Schema }, func(b []byte) *Difference { return s.retry(b, s.best.Object, s.best.How.Old) })
		if s.best.size() == before {
			break
		}
	}
	return s.best
}

func (d *Difference) size() int { return len(d.Schema) + len(d.Object) + len(d.How.Old) }

// both reduces the old object together with the new one, where the two are the same: most of an update is unchanged,
// and what is unchanged cannot go from one side only.
func (s *shrinker) both() {
	object, err := tree.Parse(s.best.Object)
	if err != nil {
		return
	}
	old, err := tree.Parse(s.best.How.Old)
	if err != nil {
		return
	}
	accept := func() bool {
		d := s.retry(s.best.Schema, object.Bytes(), old.Bytes())
		if d != nil {
			s.best = d
		}
		return d != nil
	}
	for changed := true; changed && !s.late(); {
		changed = s.common(object, old, accept)
	}
}

// common cuts members that two objects have in common from both, outermost first.
func (s *shrinker) common(a, b *tree.Node, accept func() bool) bool {
	if a.Kind != tree.Object || b.Kind != tree.Object {
		return false
	}
	changed := false
	for i := len(a.Kids) - 1; i >= 0 && !s.late(); i-- {
		j := b.Find(tree.Unquote(a.Keys[i]))
		if j < 0 {
			continue
		}
		aKeys, aKids, bKeys, bKids := a.Keys, a.Kids, b.Keys, b.Kids
		a.Cut(i)
		b.Cut(j)
		if accept() {
			changed = true
			continue
		}
		a.Keys, a.Kids, b.Keys, b.Kids = aKeys, aKids, bKeys, bKids
		changed = s.common(a.Kids[i], b.Kids[j], accept) || changed
	}
	return changed
}

type shrinker struct {
	best     *Difference
	until    time.Time
	compiled []byte // the schema of pair, to compile once while the object shrinks
	pair     *Pair

	resources *Resources
}

func (s *shrinker) late() bool { return time.Now().After(s.until) }

// retry compares again with other inputs.
func (s *shrinker) retry(schema, object, old []byte) *Difference {
	var d *Difference
	switch {
	case strings.HasPrefix(s.best.What, modePrefix):
		return s.retryMode(schema, object, old)
	case strings.HasPrefix(s.best.What, crdPrefix):
		how := crdHow(s.best.What, old)
		how.Compatibility = s.best.Mode
		if d, _ = CRD(object, how); d == nil || signature(d) != signature(s.best) {
			return nil
		}
		d.Object, d.How.Old = bytes.Clone(d.Object), bytes.Clone(d.How.Old)
	case s.best.What == "schema":
		d, _ = Schema(schema, s.best.Status)
	case s.best.What == "compile":
		if v, theirs := Schema(schema, false); v != nil || !theirs.Accepted() {
			return nil
		}
		_, d = Compile(schema)
	case s.best.What == "rules-costs":
		if v, theirs := Schema(schema, false); v != nil || !theirs.Accepted() || len(theirs.Defaults) > 0 {
			return nil
		}
		d, _ = Costs(schema)
	case s.best.What == versioned:
		if v, theirs := Schema(schema, false); v != nil || !theirs.Accepted() || len(theirs.Defaults) > 0 {
			return nil
		}
		d = CostsAt(schema, s.best.At)
	case strings.HasPrefix(s.best.What, validatePrefix):
		return s.retryValidate(schema, object, old)
	case s.best.What == "format" || s.best.What == "pattern":
		return nil // it is one text
	case strings.HasPrefix(s.best.What, bothPrefix):
		if !s.compile(schema) {
			return nil
		}
		how := s.best.How
		how.Old = old
		d, _, _ = s.pair.AdmitBoth(object, s.pair.theirs.Normalize(object, oracle.Request), how)
	case strings.HasPrefix(s.best.What, wholePrefix):
		return s.retryWhole(schema, object, old)
	case strings.HasPrefix(s.best.What, requestPrefix):
		return s.retryRequest(schema, object, old)
	case s.best.What == admitted:
		if !s.compile(schema) {
			return nil
		}
		if out := s.pair.theirs.Normalize(object, oracle.Request); out.Err == nil {
			d = s.pair.Admit(object, out.Bytes, s.best.How)
		}
	default:
		if !s.compile(schema) {
			return nil
		}
		var out oracle.Outcome
		d, out = s.pair.Normalize(object, s.best.Source)
		if d == nil && strings.HasPrefix(s.best.What, routes) {
			d = s.pair.Routes(object, s.best.Source, out)
		}
	}
	if d == nil || d.What != s.best.What || failed(d.Ours) != failed(s.best.Ours) || failed(d.Theirs) != failed(s.best.Theirs) {
		return nil
	}
	d.Origin = s.best.Origin
	return d
}

// compile compiles a schema, once while only objects change.
func (s *shrinker) compile(schema []byte) bool {
	if !bytes.Equal(schema, s.compiled) {
		s.pair = nil
		s.compiled = bytes.Clone(schema)
		if v, theirs := Schema(schema, false); v == nil && theirs.Accepted() {
			s.pair, _ = Compile(schema)
		}
	}
	return s.pair != nil
}

// retryValidate compares a validation again. It must stay a difference about the same things.
func (s *shrinker) retryValidate(schema, object, old []byte) *Difference {
	if !s.compile(schema) {
		return nil
	}
	how := s.best.How
	how.Old = old
	validate := s.pair.Validate
	if strings.HasPrefix(s.best.What, rawPrefix) {
		validate = s.pair.ValidateRaw
	}
	d, _, _ := validate(object, how)
	if d == nil || signature(d) != signature(s.best) {
		return nil
	}
	d.Origin = s.best.Origin
	d.Schema, d.Object, d.How.Old = bytes.Clone(d.Schema), bytes.Clone(d.Object), bytes.Clone(d.How.Old)
	return d
}

// failed tells the kinds of results apart, so that shrinking does not slip from one difference into another.
func failed(result string) byte {
	if result == "" {
		return 0
	}
	switch c := result[0]; c {
	case 'm', 'r', 'u', 'w', 'a', '(', '<':
		return c
	}
	return 0
}

// reduce shrinks one document: by its structure if it has one, byte by byte otherwise.
func (s *shrinker) reduce(get func() []byte, try func([]byte) *Difference) {
	root, err := tree.Parse(get())
	if err != nil {
		s.reduceBytes(get, try)
		return
	}
	if d := try(root.Bytes()); d != nil { // without whitespace
		s.best = d
	}
	accept := func() bool {
		d := try(root.Bytes())
		if d != nil {
			s.best = d
		}
		return d != nil
	}
	for changed := true; changed && !s.late(); {
		changed = s.pass(&root, root, func(n *tree.Node) { root = n }, accept)
	}
}

// pass tries simplifications at n and below; replace puts another node in n's place.
func (s *shrinker) pass(root **tree.Node, n *tree.Node, replace func(*tree.Node), accept func() bool) bool {
	changed := s.chunks(n, accept)
	for i := len(n.Kids) - 1; i >= 0 && !s.late(); i-- {
		keys, kids := n.Keys, n.Kids
		n.Cut(i)
		if accept() {
			changed = true
			continue
		}
		n.Keys, n.Kids = keys, kids
	}
	for i := 0; i < len(n.Kids) && !s.late(); i++ {
		if s.pass(root, n.Kids[i], func(k *tree.Node) { n.Kids[i] = k }, accept) {
			changed = true
		}
	}
	if n.Kind == tree.Scalar || n == *root {
		return changed
	}
	for _, simpler := range append([]*tree.Node{tree.Lit("null"), tree.Lit("1"), tree.Obj()}, n.Kids...) {
		if s.late() || simpler.Kind == tree.Object && len(n.Kids) == 0 {
			break
		}
		replace(simpler)
		if accept() {
			return true
		}
		replace(n)
	}
	return changed
}

// chunks cuts runs of kids, long ones first: large documents would take too long one by one.
func (s *shrinker) chunks(n *tree.Node, accept func() bool) bool {
	changed := false
	for size := len(n.Kids) / 2; size > 1; size /= 2 {
		for at := 0; at+size <= len(n.Kids) && !s.late(); {
			keys, kids := n.Keys, n.Kids
			n.Kids = append(append([]*tree.Node(nil), kids[:at]...), kids[at+size:]...)
			if n.Kind == tree.Object {
				n.Keys = append(append([]string(nil), keys[:at]...), keys[at+size:]...)
			}
			if accept() {
				changed = true
				continue
			}
			n.Keys, n.Kids = keys, kids
			at += size
		}
	}
	return changed
}

// reduceBytes removes chunks, large ones first.
func (s *shrinker) reduceBytes(get func() []byte, try func([]byte) *Difference) {
	for size := len(get()) / 2; size > 0 && !s.late(); size /= 2 {
		for at := 0; at+size <= len(get()) && !s.late(); {
			b := get()
			cut := append(append([]byte(nil), b[:at]...), b[at+size:]...)
			if d := try(cut); d != nil {
				s.best = d
			} else {
				at += size
			}
		}
	}
}
