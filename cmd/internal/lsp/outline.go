package lsp

import "strings"

// entry is a line of YAML that has a key, or an item of a list. Entries form a tree by their indentation.
type entry struct {
	parent *entry
	item   bool   // it is an item of a list; its key is empty
	index  int    // of an item
	key    string // without quotes
	keyAt  int    // where the key or the dash begins, in the chunk
	keyEnd int
	column int // of the key or the dash
	// value is the text after the key, without quotes and comments. Block scalars have their text.
	value    string
	valueAt  int
	valueEnd int
	block    bool // a block scalar
	flow     bool // within { } or [ ]
	children []*entry
}

// outline is a tolerant reading of a document: it knows keys, items and scalars, by indentation and
// brackets, and makes the best of what is half typed.
type outline struct {
	text string
	root *entry
}

// maxDepth bounds the nesting that an outline follows.
const maxDepth = 200

// newOutline reads a chunk. It looks at each byte a bounded number of times.
func newOutline(text string) *outline {
	o := &outline{text: text, root: &entry{column: -1}}
	r := &outliner{outline: o, last: o.root}
	for r.at < len(text) {
		r.line()
	}
	return o
}

// outliner reads lines.
type outliner struct {
	*outline
	at   int    // the beginning of the line
	last *entry // the entry that was read last
}

// endOfLine returns where a line ends, and where the next one begins.
func endOfLine(text string, at int) (end, next int) {
	n := strings.IndexByte(text[at:], '\n')
	if n < 0 {
		return len(text), len(text)
	}
	return at + len(strings.TrimRight(text[at:at+n], "\r")), at + n + 1
}

func (r *outliner) line() {
	begin := r.at
	end, next := endOfLine(r.text, begin)
	r.at = next
	at := begin
	for at < end && (r.text[at] == ' ' || r.text[at] == '\t') {
		at++
	}
	if at == end || r.text[at] == '#' || at == begin && strings.HasPrefix(r.text[at:end], "---") {
		return
	}
	parent := r.around(at-begin, r.text[at] == '-' && (at+1 == end || r.text[at+1] == ' '))
	for depth := 0; at < end && r.text[at] == '-' && (at+1 == end || r.text[at+1] == ' ') && depth < maxDepth; depth++ {
		e := &entry{parent: parent, item: true, keyAt: at, keyEnd: at + 1, column: at - begin, index: parent.items()}
		parent.children = append(parent.children, e)
		r.last, parent = e, e
		at++
		for at < end && r.text[at] == ' ' {
			at++
		}
		e.valueAt, e.valueEnd = at, at
	}
	if at == end || r.text[at] == '#' {
		return
	}
	r.content(parent, begin, at, end)
}

// content reads what follows the dashes of a line: a key with its value, or a value.
func (r *outliner) content(parent *entry, begin, at, end int) {
	if c := r.text[at]; c == '{' || c == '[' {
		r.value(parent, begin, at, end)
		return
	}
	keyEnd, after, ok := keyAt(r.text[:end], at)
	if !ok {
		if parent.item && len(parent.children) == 0 {
			r.value(parent, begin, at, end)
			return
		}
		// A key without a colon is one that is being typed.
		if at-begin > parent.column && !parent.scalar() {
			word := strings.TrimRight(r.text[at:end], " \t")
			e := &entry{parent: parent, key: word, keyAt: at, keyEnd: at + len(word), column: at - begin, valueAt: end, valueEnd: end}
			parent.children = append(parent.children, e)
		}
		return
	}
	e := &entry{parent: parent, key: unquote(r.text[at:keyEnd]), keyAt: at, keyEnd: keyEnd, column: at - begin}
	parent.children = append(parent.children, e)
	r.last = e
	for after < end && (r.text[after] == ' ' || r.text[after] == '\t') {
		after++
	}
	r.value(e, begin, after, end)
}

// value reads the value of an entry, which may take several lines.
func (r *outliner) value(e *entry, begin, at, end int) {
	e.valueAt, e.valueEnd = at, end
	if at >= end {
		return
	}
	switch r.text[at] {
	case '{', '[':
		f := &flow{outline: r.outline, at: at, line: begin, column: e.column}
		f.collection(e, 0)
		e.valueEnd = f.at
		if f.at > end {
			_, r.at = endOfLine(r.text, f.at)
		}
		return
	case '|', '>':
		e.block = true
		e.valueAt = r.at
		for r.at < len(r.text) {
			lineEnd, next := endOfLine(r.text, r.at)
			indent := 0
			for r.at+indent < lineEnd && r.text[r.at+indent] == ' ' {
				indent++
			}
			// The text of a block scalar is indented deeper than its key, or than the dash before it.
			if r.at+indent < lineEnd && indent <= e.outer() {
				break
			}
			r.at = next
		}
		e.valueEnd = max(r.at, e.valueAt)
		e.value = r.text[e.valueAt:e.valueEnd]
		return
	case '"', '\'':
		e.valueEnd = quotedEnd(r.text, at, end)
		e.value = unquote(r.text[at:e.valueEnd])
		return
	}
	e.valueEnd = at + plainLength(r.text[at:end])
	e.value = r.text[at:e.valueEnd]
}

// outer is the column that the text of a block scalar must be beyond.
func (e *entry) outer() int { return e.column }

// scalar reports whether the entry has a value, so that nothing can be below it.
func (e *entry) scalar() bool { return e.value != "" || e.flow }

func (e *entry) items() int {
	for i := len(e.children) - 1; i >= 0; i-- {
		if e.children[i].item {
			return e.children[i].index + 1
		}
	}
	return 0
}

// around returns the entry that a line with an indentation belongs to. Items of a list may be as far left as
// its key.
func (r *outliner) around(column int, dash bool) *entry {
	e := r.last
	for e.parent != nil && e.column >= column {
		if dash && e.column == column && !e.item {
			break
		}
		e = e.parent
	}
	return e
}

// keyAt finds the end of a key that begins at a place, and what is after its colon.
func keyAt(text string, at int) (keyEnd, after int, ok bool) {
	if text[at] == '"' || text[at] == '\'' {
		end := quotedEnd(text, at, len(text))
		i := end
		for i < len(text) && text[i] == ' ' {
			i++
		}
		if i < len(text) && text[i] == ':' {
			return end, i + 1, true
		}
		return 0, 0, false
	}
	for i := at; i < len(text); i++ {
		switch {
		case text[i] == ':' && (i+1 == len(text) || text[i+1] == ' ' || text[i+1] == '\t'):
			return at + len(strings.TrimRight(text[at:i], " ")), i + 1, true
		case text[i] == '#' && i > at && text[i-1] == ' ':
			return 0, 0, false
		}
	}
	return 0, 0, false
}

// quotedEnd returns the end of a quoted scalar, which is that of the line if it is not closed.
func quotedEnd(text string, at, end int) int {
	quote := text[at]
	for i := at + 1; i < end; i++ {
		switch {
		case quote == '"' && text[i] == '\\':
			i++
		case text[i] == quote && quote == '\'' && i+1 < end && text[i+1] == quote:
			i++
		case text[i] == quote:
			return i + 1
		}
	}
	return end
}

// plainLength is the length of a plain scalar without the comment after it.
func plainLength(s string) int {
	if i := strings.Index(s, " #"); i >= 0 {
		s = s[:i]
	}
	if strings.HasPrefix(s, "#") {
		return 0
	}
	return len(strings.TrimRight(s, " \t"))
}

// unquote returns the text of a scalar on one line. Escapes other than of quotes stay as they are: no
// name of a field has some.
func unquote(s string) string {
	if len(s) > 0 && (s[0] == '"' || s[0] == '\'') {
		quote := s[:1]
		s = s[1:]
		if strings.HasSuffix(s, quote) {
			s = s[:len(s)-1]
		}
		if quote == "'" {
			return strings.ReplaceAll(s, "''", "'")
		}
		return strings.ReplaceAll(s, `\"`, `"`)
	}
	return s
}

// flow reads { } and [ ], over lines.
type flow struct {
	*outline
	at     int
	line   int // the beginning of the line that the collection begins in
	column int // of the entry around it
}

// skip moves over white space and comments. It reports false at the end of the text, and at a line
// that begins with a key of the block around: the collection was not closed.
func (f *flow) skip() bool {
	for f.at < len(f.text) {
		switch c := f.text[f.at]; {
		case c == '\n':
			f.at++
			f.line = f.at
			i := f.at
			for i < len(f.text) && f.text[i] == ' ' {
				i++
			}
			if i < len(f.text) && i-f.line <= f.column && !strings.ContainsRune("}],\r\n\"#", rune(f.text[i])) {
				f.at--
				return false
			}
		case c == ' ' || c == '\t' || c == '\r':
			f.at++
		case c == '#' && f.at > 0 && (f.text[f.at-1] == ' ' || f.text[f.at-1] == '\n'):
			f.at, _ = endOfLine(f.text, f.at)
		default:
			return true
		}
	}
	return false
}

// collection reads a collection and makes entries of its members below e.
func (f *flow) collection(e *entry, depth int) {
	list := f.text[f.at] == '['
	e.flow = true
	f.at++
	for f.skip() {
		switch f.text[f.at] {
		case '}', ']':
			f.at++
			return
		case ',':
			f.at++
			continue
		}
		m := &entry{parent: e, keyAt: f.at, keyEnd: f.at, column: f.at - f.line, flow: true}
		if list {
			m.item, m.index = true, e.items()
		} else {
			m.keyEnd = f.scalar(":,}]")
			m.key = unquote(strings.TrimRight(f.text[m.keyAt:m.keyEnd], " "))
			m.keyEnd = m.keyAt + len(strings.TrimRight(f.text[m.keyAt:m.keyEnd], " "))
			m.valueAt, m.valueEnd = f.at, f.at
			e.children = append(e.children, m)
			if !f.skip() {
				return
			}
			if f.text[f.at] != ':' {
				if f.at == m.keyAt {
					f.at++ // a character that begins nothing
				}
				continue
			}
			f.at++
			m.valueAt, m.valueEnd = f.at, f.at
			if !f.skip() {
				return
			}
		}
		m.valueAt, m.valueEnd = f.at, f.at
		if list {
			e.children = append(e.children, m)
		}
		switch c := f.text[f.at]; {
		case (c == '{' || c == '[') && depth < maxDepth:
			f.collection(m, depth+1)
			m.valueEnd = f.at
		case c == ',' || c == '}' || c == ']':
		default:
			m.valueEnd = f.scalar(",}]")
			if m.valueEnd == m.valueAt {
				f.at++
			}
			m.valueEnd = m.valueAt + len(strings.TrimRight(f.text[m.valueAt:m.valueEnd], " \t"))
			m.value = unquote(f.text[m.valueAt:m.valueEnd])
		}
	}
}

// scalar moves over a scalar that one of some characters ends.
func (f *flow) scalar(ends string) int {
	if c := f.text[f.at]; c == '"' || c == '\'' {
		end, _ := endOfLine(f.text, f.at)
		f.at = quotedEnd(f.text, f.at, end)
		return f.at
	}
	for f.at < len(f.text) {
		c := f.text[f.at]
		if c == '\n' || c == '\r' || c != ':' && strings.IndexByte(ends, c) >= 0 {
			break
		}
		if c == ':' && strings.IndexByte(ends, ':') >= 0 && (f.at+1 >= len(f.text) || strings.IndexByte(" \t\r\n,}]", f.text[f.at+1]) >= 0) {
			break
		}
		f.at++
	}
	return f.at
}

// child returns the last member with a key.
func (e *entry) child(key string) *entry {
	for i := len(e.children) - 1; i >= 0; i-- {
		if c := e.children[i]; !c.item && c.key == key {
			return c
		}
	}
	return nil
}

// steps returns the entries from below the root to e.
func (e *entry) steps() []*entry {
	var all []*entry
	for ; e.parent != nil; e = e.parent {
		all = append(all, e)
	}
	for i, j := 0, len(all)-1; i < j; i, j = i+1, j-1 {
		all[i], all[j] = all[j], all[i]
	}
	return all
}

// at returns the entry whose key or value a byte is in, and whether it is in the key.
func (o *outline) at(offset int) (e *entry, inKey bool) {
	e = o.root
	for {
		var next *entry
		for _, c := range e.children {
			if c.keyAt > offset {
				break
			}
			next = c
		}
		if next == nil {
			return e, false
		}
		if offset <= next.keyEnd && !next.item {
			return next, true
		}
		if len(next.children) == 0 || next.children[0].keyAt > offset {
			return next, false
		}
		e = next
	}
}
