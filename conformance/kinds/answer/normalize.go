package answer

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/conformance/kinds/generator"
)

// near is how far from now a time may be to count as one that the server chose.
const near = 15 * time.Minute

// A Normalizer replaces values that one server chooses by slots, and remembers them for later requests about the same object.
type Normalizer struct {
	values map[generator.Slot]any
	asked  map[any]bool   // values that requests gave for fields that the server else fills
	moved  map[any]string // values of slots that requests gave for other fields, and what they are
	named  bool           // a request gave the name
	now    time.Time
}

// NewNormalizer returns a normalizer for one object.
func NewNormalizer(now time.Time) *Normalizer {
	return &Normalizer{values: map[generator.Slot]any{}, asked: map[any]bool{}, moved: map[any]string{}, now: now}
}

// allocated are the fields of Services that the server fills if the client does not.
var allocated = map[string]string{"clusterIP": "clusterIP", "clusterIPs": "clusterIP", "nodePort": "nodePort", "healthCheckNodePort": "nodePort"}

// Asked notes what a request asks for, before slots are filled.
func (n *Normalizer) Asked(request any) {
	n.ask(request, "")
	if object, ok := request.(map[string]any); ok && Name(object) != "" {
		n.named = true
	}
}

func (n *Normalizer) ask(value any, key string) {
	switch v := value.(type) {
	case map[string]any:
		for k, e := range v {
			n.ask(e, k)
		}
	case []any:
		for _, e := range v {
			n.ask(e, key)
		}
	case string, int64:
		// JSON patches have the field in their path and the value beside it.
		if allocated[key] != "" || key == "value" {
			n.asked[v] = true
		}
	}
}

// Fill returns a request with this server's values.
func (n *Normalizer) Fill(request any) any {
	n.move(request, "")
	return generator.Fill(request, func(s generator.Slot) (any, bool) {
		v, ok := n.values[s]
		return v, ok
	})
}

// move notes the values that a request has elsewhere than the object. A server stores them there.
func (n *Normalizer) move(request any, path string) {
	switch v := request.(type) {
	case map[string]any:
		for k, e := range v {
			n.move(e, path+"."+k)
		}
	case []any:
		for i, e := range v {
			n.move(e, path+"["+strconv.Itoa(i)+"]")
		}
	case generator.Slot:
		if value, ok := n.values[v]; ok && path != "" && path != v.Path {
			n.moved[value] = v.What
		}
	}
}

// Object returns the object with slots.
func (n *Normalizer) Object(object map[string]any) map[string]any {
	if object == nil {
		return nil
	}
	w := walker{Normalizer: n}
	meta, _ := object["metadata"].(map[string]any)
	w.uid, _ = meta["uid"].(string)
	if name, _ := meta["name"].(string); name != "" && name == n.values[slot("name", ".metadata.name")] {
		w.name = name // which the server gave it with the first request
	}
	if !n.named {
		w.name, _ = meta["name"].(string)
		if details, ok := object["details"].(map[string]any); ok {
			w.name, _ = details["name"].(string)
		}
	}
	out, _ := w.walk(object, "", "").(map[string]any)
	return out
}

// unordered are lists whose order says nothing: those of SelfSubjectRulesReviews come from a Go map, managed fields are sorted by a time
// of whole seconds.
var unordered = map[string]func(any) string{
	".status.resourceRules":    func(v any) string { return fmt.Sprint(v) },
	".status.nonResourceRules": func(v any) string { return fmt.Sprint(v) },
	".metadata.managedFields": func(v any) string {
		entry, _ := v.(map[string]any)
		return fmt.Sprint(entry["operation"], " ", entry["manager"], " ", entry["subresource"], " ", entry["apiVersion"])
	},
}

type walker struct {
	*Normalizer
	uid, name string
}

func (w walker) walk(value any, key, path string) any {
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = w.walk(e, k, path+"."+k)
		}
		return out
	case []any:
		if by := unordered[path]; by != nil {
			v = slices.Clone(v)
			slices.SortStableFunc(v, func(a, b any) int { return cmp.Compare(by(a), by(b)) })
		}
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = w.walk(e, key, path+"["+strconv.Itoa(i)+"]")
		}
		return out
	case string:
		return w.text(v, key, path)
	case int64:
		if what := allocated[key]; what == "nodePort" && v != 0 && !w.asked[v] && strings.HasPrefix(path, ".spec") {
			return w.keep(what, path, v)
		}
		if what := w.moved[v]; what != "" {
			return slot(what, path)
		}
	}
	return value
}

func (w walker) text(v, key, path string) any {
	switch {
	case v == "":
	case path == ".details.uid": // of the Status that answers a deletion
		return w.keep("uid", path, v)
	case path == ".metadata.resourceVersion":
		return w.keep("resourceVersion", path, v)
	case strings.HasPrefix(v, "X509SHA256="): // each server has certificates of its own
		return w.keep("credential", path, v)
	case v == w.uid:
		return w.keep("uid", path, v)
	case v == w.name:
		return w.keep("name", path, v)
	case allocated[key] == "clusterIP" && v != "None" && !w.asked[v] && strings.HasPrefix(path, ".spec"):
		return w.keep("clusterIP", path, v)
	case w.moved[v] != "":
		return slot(w.moved[v], path)
	case len(v) >= 20 && v[4] == '-':
		if t, err := time.Parse(time.RFC3339Nano, v); err == nil && t.Sub(w.now).Abs() < near {
			return w.keep("time", path, v)
		}
	}
	return v
}

func (w walker) keep(what, path string, value any) any {
	s := slot(what, path)
	w.values[s] = value
	return s
}

// refused notes the name that the server gave to an object before it refused it.
func (n *Normalizer) refused(a *Answer) {
	details, _ := a.Object()["details"].(map[string]any)
	if name, _ := details["name"].(string); name != "" && !n.named {
		n.values[slot("name", ".metadata.name")] = name
	}
}

var (
	uuids    = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	moments  = regexp.MustCompile(`20[0-9]{2}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}`)
	versions = regexp.MustCompile(`(resourceVersion[\\":]+)[0-9]+`)
	ports    = regexp.MustCompile(`\b3[0-2][0-9]{3}\b`) // the range of node ports
	pointers = regexp.MustCompile(`0x[0-9a-f]{8,}`)
)

// Text returns a message without the values of slots. Long values are replaced first: one address may begin with another.
func (n *Normalizer) Text(message string) string {
	var known []replacement
	for s, v := range n.values {
		text := fmt.Sprint(v)
		if len(text) > 4 && (s.What != "resourceVersion" || len(text) > 6) {
			known = append(known, replacement{text, "<" + s.What + ">"})
		}
	}
	slices.SortFunc(known, func(a, b replacement) int {
		return cmp.Or(cmp.Compare(len(b.old), len(a.old)), cmp.Compare(a.old, b.old), cmp.Compare(a.new, b.new))
	})
	for _, r := range known {
		message = strings.ReplaceAll(message, r.old, r.new)
	}
	message = uuids.ReplaceAllString(message, "<uid>")
	message = versions.ReplaceAllString(message, "${1}<resourceVersion>")
	message = ports.ReplaceAllStringFunc(message, func(text string) string {
		if number, err := strconv.ParseInt(text, 10, 64); err == nil && !n.asked[number] {
			return "<nodePort>"
		}
		return text
	})
	message = pointers.ReplaceAllString(message, "<pointer>")
	return moments.ReplaceAllStringFunc(message, func(text string) string {
		t, err := time.Parse(time.DateTime, strings.Replace(text, "T", " ", 1))
		if err == nil && t.Sub(n.now).Abs() < near {
			return "<time>"
		}
		return text
	})
}

type replacement struct{ old, new string }
