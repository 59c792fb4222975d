package generate

import "strconv"

// An object is written as a series of members; members remembers how it is going.
type members struct {
	depth int
	count int
	nth   int // which item of a list the object is
}

// key begins a member.
func (w *writer) key(m *members, raw string) {
	if m.count > 0 {
		w.dst = append(w.dst, ',')
	}
	m.count++
	w.gap(m.depth + 1)
	if w.mode == Hostile && w.one(30) {
		w.escaped(raw)
	} else {
		w.raw(raw)
	}
	if w.style == wild {
		w.gap(m.depth + 1)
	}
	w.dst = append(w.dst, ':')
	w.gap(m.depth + 1)
}

// escaped writes a key with some of its letters as escapes, which must not make it another key.
func (w *writer) escaped(raw string) {
	const hex = "0123456789abcdefABCDEF"
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		if c == '\\' && i+1 < len(raw) { // an escape already: leave it alone
			w.dst = append(w.dst, c, raw[i+1])
			i++
			continue
		}
		if c > ' ' && c < 0x7f && c != '"' && w.one(3) {
			lo := hex[c&15]
			if c&15 > 9 && w.one(2) {
				lo = hex[c&15+6]
			}
			w.dst = append(w.dst, '\\', 'u', '0', '0', hex[c>>4], lo)
			continue
		}
		w.dst = append(w.dst, c)
	}
}

// object writes an object: required properties, then others in an order that starts somewhere, then map entries.
func (w *writer) object(n *node, share, depth int) {
	began := len(w.dst)
	w.dst = append(w.dst, '{')
	m := members{depth: depth, nth: w.nth}
	w.properties(n, &m, share, began, false)
	w.entries(n, &m, share, began)
	w.strangers(n, &m)
	if m.count > 0 {
		w.gap(depth)
	}
	w.dst = append(w.dst, '}')
}

// properties writes specified properties. Those of TypeMeta and ObjectMeta are skipped in resources.
func (w *writer) properties(n *node, m *members, share, began int, resource bool) {
	if len(n.props) == 0 || m.depth > 60 {
		return
	}
	write := func(p *prop) {
		if resource && (p.key == `"apiVersion"` || p.key == `"kind"` || p.key == `"metadata"`) {
			return
		}
		room := max(w.room(share, began), 0)
		if room > 400 {
			room = room/4 + w.n(room/2)
		}
		w.member(p, m, room)
	}
	for i := range n.required {
		if w.keeps() {
			write(&n.props[i])
		}
	}
	optional := n.props[n.required:]
	if len(optional) == 0 {
		return
	}
	at := w.n(len(optional))
	density := 2 + w.n(3)
	if m.depth == 0 {
		density = 1 // spec and status are optional in most schemas and the point of all objects
	}
	for range optional {
		if w.room(share, began) <= 0 {
			break
		}
		if density == 1 || w.n(density) == 0 {
			write(&optional[at])
		}
		if at++; at == len(optional) {
			at = 0
		}
	}
}

// keeps decides whether a required property is there.
func (w *writer) keeps() bool {
	switch w.mode {
	case Valid:
		return true
	case Breach:
		return !w.one(150)
	}
	return !w.one(12)
}

// member writes a property, in hostile objects sometimes twice.
func (w *writer) member(p *prop, m *members, room int) {
	if w.mode == Hostile && w.one(40) {
		w.key(m, p.key)
		w.wrong(p.n, room/2, m.depth+1)
	}
	w.key(m, p.key)
	if p.unique && w.mode != Hostile && !w.one(12) {
		w.nthValue(p.n, m.nth)
		return
	}
	w.value(p.n, room, m.depth+1)
	if w.mode == Hostile && w.one(50) {
		w.key(m, p.key)
		w.value(p.n, room/2, m.depth+1)
	}
}

// nthValue writes a scalar that differs from those of other n, as far as the schema has enough of them.
func (w *writer) nthValue(n *node, nth int) {
	switch {
	case len(n.samples) > 0:
		w.raw(n.samples[nth%len(n.samples)])
	case n.kind == integerKind || n.kind == numberKind:
		w.dst = strconv.AppendInt(w.dst, n.min+int64(nth), 10)
	case n.kind == stringKind || n.kind == intOrStringKind:
		w.dst = append(w.dst, '"', 'k')
		w.dst = strconv.AppendInt(w.dst, int64(nth), 10)
		for i := 2; i < min(n.minLen, 64); i++ {
			w.dst = append(w.dst, '-')
		}
		w.dst = append(w.dst, '"')
	default:
		w.plain(n, 40, 1)
	}
}

// entries writes the entries of a map, or preserved fields.
func (w *writer) entries(n *node, m *members, share, began int) {
	more := n.additional
	if more == nil {
		if !n.preserve && n.kind != anyKind {
			return
		}
		more = free
	}
	count := max(w.n(4), min(n.minProps, 20))
	if share > 4000 {
		count = 20000
	}
	if m.depth > 40 {
		count = 0
	}
	for i := 0; i < count && (i == 0 || w.room(share, began) > 0); i++ {
		if m.count > 0 {
			w.dst = append(w.dst, ',')
		}
		m.count++
		w.gap(m.depth + 1)
		if w.mode == Hostile && w.one(6) {
			w.raw(w.of(oddKeys))
		} else {
			w.text(1, 40)
			if i > 3 { // keep the keys of large maps apart
				w.dst = w.dst[:len(w.dst)-1]
				w.dst = append(w.dst, '.', byte('a'+i%26), byte('a'+i/26%26), byte('a'+i/676%26), '"')
			}
		}
		w.dst = append(w.dst, ':')
		w.gap(m.depth + 1)
		w.value(more, min(max(w.room(share, began), 0), 200+share/6), m.depth+1)
	}
}

// strangers adds members that the schema does not know.
func (w *writer) strangers(n *node, m *members) {
	if w.mode == Valid || w.mode == Breach && !w.one(20) || !w.trouble() {
		return
	}
	for range 1 + w.n(2) {
		key := w.of(strangeKeys)
		if w.mode == Hostile && w.one(2) {
			key = w.of(oddKeys)
		} else if len(n.props) > 0 && w.one(3) {
			key = typo(n.props[w.n(len(n.props))].key, w.n(4))
		}
		w.key(m, key)
		w.junk(3)
	}
}

// typo is a key as people mistype it. Only plain words are touched.
func typo(raw string, how int) string {
	for i := 1; i < len(raw)-1; i++ {
		if c := raw[i] | 0x20; c < 'a' || c > 'z' {
			return raw
		}
	}
	if len(raw) < 4 {
		return raw
	}
	switch how {
	case 0:
		return `"` + string(rune(raw[1]^0x20)) + raw[2:] // the other case
	case 1:
		return raw[:len(raw)-1] + `s"`
	case 2:
		return raw[:len(raw)-2] + `"`
	}
	return `"` + raw[2:3] + raw[1:2] + raw[3:]
}
