package infer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/internal/spelling"
)

// work finds the rules of a pair of versions.
type work struct {
	pair *Pair
	left [2][]*node // what no rule converts
}

// context pairs what is below two objects that are converted into each other, and is reached from them by names alone.
func (w *work) context(a, b *node) {
	var open [2][]*node
	w.walk(a, b, &open)
	w.match(&open)
	for side, list := range open {
		listed, partly := map[*node]bool{}, map[*node]bool{}
		for _, n := range list {
			listed[n] = true
			for up := n.parent; n.taken && up != nil && !partly[up]; up = up.parent {
				partly[up] = true
			}
		}
		for _, n := range list {
			// Of objects without any rule only the outermost is reported.
			if n.parent != nil && listed[n.parent] && !partly[n.parent] || partly[n] || n.blocked() {
				continue
			}
			w.left[side] = append(w.left[side], n)
		}
	}
}

// walk pairs the fields with the same names of two objects. The others become open.
func (w *work) walk(a, b *node, open *[2][]*node) {
	second := b.children()
	byName := make(map[string]*node, len(second))
	for _, n := range second {
		byName[n.name] = n
	}
	for _, n := range a.children() {
		m := byName[n.name]
		switch {
		case m == nil:
			w.open(n, 0, open)
		case alike(n, m):
			delete(byName, n.name)
			w.same(n, m, open)
		default:
			delete(byName, n.name)
			if !w.other(n, m, open) {
				w.open(n, 0, open)
				w.open(m, 1, open)
			}
		}
	}
	for _, n := range second {
		if byName[n.name] != nil {
			w.open(n, 1, open)
		}
	}
}

// same goes on below a pair.
func (w *work) same(a, b *node, open *[2][]*node) {
	switch a.kind {
	case object:
		w.walk(a, b, open)
	case list, mapping:
		if x, y := a.item(), b.item(); x.kind == object && y.kind == object {
			w.context(x, y)
		} else {
			w.same(x, y, open)
		}
	case leaf:
		w.enum(a, b)
	}
}

// enum proposes to convert values of enums that differ.
func (w *work) enum(a, b *node) bool {
	from, to := a.enum(), b.enum()
	if len(from) == 0 || len(to) == 0 {
		return false
	}
	var values []string
	var guessed []string
	for _, v := range from {
		if slices.Contains(to, v) {
			continue
		}
		plain := strings.Join(words(v), "")
		i := slices.IndexFunc(to, func(x string) bool { return !slices.Contains(from, x) && strings.Join(words(x), "") == plain })
		if i < 0 {
			near := spelling.Nearest(v, func(yield func(string) bool) {
				for _, x := range to {
					if !slices.Contains(from, x) && !yield(x) {
						return
					}
				}
			})
			if i = slices.Index(to, near); i < 0 {
				continue
			}
			guessed = append(guessed, v+" may be "+near)
		}
		values = append(values, quote(v)+": "+quote(to[i]))
	}
	if len(values) == 0 {
		return false
	}
	target := ""
	if a.path != b.path {
		target = ", to: " + quote(b.path)
	}
	w.rule(len(guessed) == 0, strings.Join(guessed, ", "), "enum: {from: %s%s, values: {%s}}", quote(a.path), target, strings.Join(values, ", "))
	a.taken, b.taken = true, true
	return true
}

func (w *work) rule(sure bool, why, format string, args ...any) {
	w.pair.Rules = append(w.pair.Rules, Rule{Text: fmt.Sprintf(format, args...), Sure: sure, Why: why})
}

// other proposes a rule for fields of the same name and another type. It reports false if there is none.
func (w *work) other(a, b *node, open *[2][]*node) bool {
	from, to := a.scalar(), b.scalar()
	switch {
	case from != "" && to != "" && (from == "string" || to == "string"):
		w.rule(true, "", "move: {from: %s, to: %s}", quote(a.path), quote(b.path))
	case b.kind == list && identical(a, b.item()):
		w.rule(true, "", "wrap: {from: %s, to: %s}", quote(a.path), quote(b.path))
	case a.kind == list && identical(b, a.item()):
		w.rule(true, "", "unwrap: {from: %s, to: %s}", quote(a.path), quote(b.path))
	case w.keyed(a, b, true, ""):
	case a.kind == leaf && b.kind == object:
		return w.into(a, b, 1, open)
	case a.kind == object && b.kind == leaf:
		return w.into(b, a, 0, open)
	default:
		return false
	}
	a.taken, b.taken = true, true
	return true
}

// into proposes that a value became a field of an object with its name. side is that of the object.
func (w *work) into(value, holder *node, side int, open *[2][]*node) bool {
	var fits []*node
	children := holder.children()
	for _, c := range children {
		if alike(value, c) {
			fits = append(fits, c)
		}
	}
	if len(fits) == 0 {
		return false
	}
	best := fits[0]
	for _, name := range []string{"value", "name", value.name, "type"} {
		if i := slices.IndexFunc(fits, func(c *node) bool { return c.name == name }); i >= 0 {
			best = fits[i]
			break
		}
	}
	from, to := value.path, best.path
	if side == 0 {
		from, to = to, from
	}
	why := ""
	if len(fits) > 1 {
		why = fmt.Sprintf("%s may also be %s", value.path, fits[len(fits)-1].path)
		if fits[len(fits)-1] == best {
			why = fmt.Sprintf("%s may also be %s", value.path, fits[0].path)
		}
	}
	w.rule(len(fits) == 1, why, "move: {from: %s, to: %s}", quote(from), quote(to))
	value.taken, best.taken = true, true
	for _, c := range children {
		if c != best {
			w.open(c, side, open)
		}
	}
	return true
}

// identical reports whether values of one node are values of the other, with all that is below them.
func identical(a, b *node) bool {
	if !alike(a, b) {
		return false
	}
	switch a.kind {
	case object:
		x, y := a.children(), b.children()
		keepsA := a.schema.PreserveUnknownFields != nil && *a.schema.PreserveUnknownFields
		keepsB := b.schema.PreserveUnknownFields != nil && *b.schema.PreserveUnknownFields
		return keepsA == keepsB && slices.EqualFunc(x, y, func(c, d *node) bool { return c.name == d.name && identical(c, d) })
	case list, mapping:
		return identical(a.item(), b.item())
	}
	return true
}

// keyed proposes that a list became a map, or a map a list. It reports false if they cannot.
func (w *work) keyed(a, b *node, sure bool, why string) bool {
	l, m, word := a, b, "listToMap"
	if a.kind == mapping {
		l, m, word = b, a, "mapToList"
	}
	if l.kind != list || m.kind != mapping {
		return false
	}
	item, value := l.item(), m.item()
	if item.kind != object {
		return false
	}
	key := ""
	for _, name := range append(slices.Clone(l.schema.ListMapKeys), "name", "key", "id") {
		if p := item.schema.Property(name); p != nil && p.Type == "string" {
			key = name
			break
		}
	}
	if key == "" {
		return false
	}
	rule := fmt.Sprintf("%s: {list: %s, key: %s, map: %s", word, quote(l.path), quote(key), quote(m.path))
	if value.kind == object {
		w.rule(sure, why, "%s}", rule)
		return true
	}
	for _, c := range item.children() {
		if c.name != key && alike(c, value) {
			w.rule(sure, why, "%s, value: %s}", rule, quote(c.name))
			return true
		}
	}
	return false
}

// maxOpen bounds the open fields of a context that are compared.
const maxOpen = 2000

// open adds a field that has no partner of the same path, and what is below it.
func (w *work) open(n *node, side int, open *[2][]*node) {
	if len(open[side]) >= maxOpen {
		if !n.taken {
			w.left[side] = append(w.left[side], n)
		}
		return
	}
	open[side] = append(open[side], n)
	if n.kind == object {
		for _, c := range n.children() {
			w.open(c, side, open)
		}
	}
}

// preserve lists what no rule converts.
func (w *work) preserve() {
	for side, version := range []string{w.pair.From, w.pair.To} {
		for _, n := range w.left[side] {
			w.pair.Preserved[version] = append(w.pair.Preserved[version], n.path)
		}
		slices.SortFunc(w.pair.Preserved[version], cmp.Compare[string])
	}
}
