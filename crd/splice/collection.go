package splice

import (
	"bytes"
	"slices"

	"go.yaml.in/yaml/v3"
)

// begin returns where a child begins: a member with its key, an item of a
// block sequence with its dash.
func (d *document) begin(s *spot) (int, error) {
	if s.key != nil {
		return s.key.start, nil
	}
	if s.parent.flow {
		return s.start, nil
	}
	// The dash is in the column of the sequence, in this line or above.
	for at := d.lineStart(s.start); ; at = d.lineStart(at - 1) {
		if dash := at + s.parent.column; dash < len(d.text) && dash <= s.start && d.text[dash] == '-' {
			return dash, nil
		}
		if at == 0 {
			return 0, errUnclear(s)
		}
	}
}

// finish returns where a child ends.
func (d *document) finish(s *spot) (int, error) {
	if s.end < 0 {
		return 0, errUnclear(s)
	}
	end := s.end
	if s.key != nil {
		colon, err := d.colon(s.key)
		if err != nil {
			if !s.parent.flow {
				return 0, err
			}
			colon = s.key.end // {a, b} has keys without colons
		}
		end = max(end, colon)
	}
	return end, nil
}

// atLineStart reports whether nothing but blanks is before a place in its line.
func (d *source) atLineStart(at int) bool {
	return at <= d.indents[d.line(at)]
}

// indentation returns the blanks that the line of a place begins with.
func (d *source) indentation(at int) []byte {
	i := d.line(at)
	return d.text[d.lines[i]:d.indents[i]]
}

// restructureBlock takes children out of a block collection and puts others in.
func (c *changer) restructureBlock(s *spot, r *restructuring) error {
	d := c.doc
	begins := make([]int, len(s.kids))
	for i, k := range s.kids {
		var err error
		if begins[i], err = d.begin(k); err != nil {
			return err
		}
	}
	column := s.column
	if len(begins) > 0 {
		column = begins[0] - d.lineStart(begins[0])
	}
	for i := 0; i < len(s.kids); i++ {
		if !r.removed[i] {
			continue
		}
		end, err := d.finish(s.kids[i])
		if err != nil {
			return err
		}
		switch begin := begins[i]; {
		case !d.atLineStart(begin):
			// Beside the dash of an item: the next one that stays takes the
			// place, unless comments are in between.
			if next := d.successor(s, r, begins, i); next > 0 {
				c.replace(begin, begins[next], nil)
				i = next - 1
				continue
			}
			c.replace(begin, d.lineEnd(end), nil)
		case r.moved[i]:
			c.removeLines(d.commentsAbove(begin, column), end)
		default:
			c.removeLines(begin, end)
		}
	}
	return c.addBlock(s, r, begins, column)
}

// successor returns the first child after i that stays, or 0 if there is none,
// or something else than blanks is between the children up to there.
func (d *document) successor(s *spot, r *restructuring, begins []int, i int) int {
	for ; i+1 < len(s.kids); i++ {
		end, err := d.finish(s.kids[i])
		if err != nil {
			return 0
		}
		if eol := d.lineEnd(end); eol > begins[i+1] || len(bytes.TrimSpace(d.text[eol:begins[i+1]])) > 0 {
			return 0
		}
		if !r.removed[i+1] {
			return i + 1
		}
	}
	return 0
}

// removeLines takes out the lines of a part of the text.
func (c *changer) removeLines(begin, end int) {
	d := c.doc
	line := d.lineStart(begin)
	if line == 0 {
		c.replace(0, d.nextLine(end), nil)
		return
	}
	// With the line break before it, so that an addition after it fits in.
	c.replace(d.lineEnd(line-1), d.lineEnd(end), nil)
}

// addBlock puts children into a block collection.
func (c *changer) addBlock(s *spot, r *restructuring, begins []int, column int) error {
	d := c.doc
	kind := byte('{')
	if s.node.Kind == yaml.SequenceNode {
		kind = '['
	}
	blanks := bytes.Repeat([]byte(" "), column)
	pad := slices.Concat(d.style.newline, blanks)
	top := -1 // the first line of the first child, with its comments
	for _, a := range r.added {
		text, err := d.appendChild(nil, kind, a.name, a.value, column)
		if err != nil {
			return err
		}
		if len(a.above) > 0 {
			// The first line is at the column already; the last ends with a break.
			text = slices.Concat(d.indent(bytes.TrimLeft(a.above, " "), column-a.shift), blanks, text)
		}
		if a.at == 0 && !r.removed[0] {
			if top < 0 {
				top = d.commentsAbove(begins[0], column)
			}
			if top < begins[0] {
				c.replace(top, top, slices.Concat(blanks, text, d.style.newline))
			} else {
				c.replace(top, top, append(text, pad...))
			}
			continue
		}
		after := max(a.at-1, 0)
		end, err := d.finish(s.kids[after])
		if err != nil {
			return err
		}
		if begin := begins[after]; r.removed[after] && d.atLineStart(begin) && d.lineStart(begin) == 0 {
			// The first line of the text goes with its break.
			eol := d.nextLine(end)
			c.replace(eol, eol, slices.Concat(blanks, text, d.style.newline))
			continue
		}
		eol := d.lineEnd(end)
		c.changes = append(c.changes, splicing{start: eol, end: eol, depth: s.depth, with: slices.Concat(pad, text)})
	}
	return nil
}

// commentsAbove returns the beginning of the comment lines right above a place,
// which belong to it, or the place itself if there are none.
func (d *document) commentsAbove(at, column int) int {
	if !d.atLineStart(at) {
		return at
	}
	top := at
	for line := d.lineStart(at); line > 0; {
		line = d.lineStart(line - 1)
		text := d.text[line:d.lineEnd(line)]
		trimmed := bytes.TrimLeft(text, " ")
		if len(trimmed) == 0 || trimmed[0] != '#' || len(text)-len(trimmed) != column {
			break
		}
		top = line
	}
	return top
}

// restructureFlow does the same to a flow collection: {…} and […].
func (c *changer) restructureFlow(s *spot, r *restructuring) error {
	d := c.doc
	if s.end < 0 {
		return errUnclear(s)
	}
	open := d.skipProperties(s)
	kept := 0
	for i := range s.kids {
		if !r.removed[i] {
			kept++
		}
	}
	if kept == 0 {
		inside, err := d.flowChildren(s, r.added)
		if err != nil {
			return err
		}
		c.replace(open+1, s.end-1, inside)
		return nil
	}
	begins, ends := make([]int, len(s.kids)), make([]int, len(s.kids))
	var err error
	for i, k := range s.kids {
		if begins[i], err = d.begin(k); err != nil {
			return err
		}
		if ends[i], err = d.finish(k); err != nil {
			return err
		}
	}
	first := 0
	for r.removed[first] {
		first++
	}
	for i := range s.kids {
		switch {
		case !r.removed[i]:
		case i < first:
			c.replace(begins[i], begins[i+1], nil)
		default:
			c.replace(ends[i-1], ends[i], nil)
		}
	}
	for _, a := range r.added {
		text, err := d.flowChild(s, a)
		if err != nil {
			return err
		}
		if a.at <= first {
			c.replace(begins[first], begins[first], slices.Concat(text, []byte(","), d.gap(s, first)))
		} else {
			c.replace(ends[a.at-1], ends[a.at-1], slices.Concat([]byte(","), d.gap(s, max(a.at-1, 0)), text))
		}
	}
	return nil
}

// gap returns the blanks between children of a flow collection, as they are
// before the child i or, if it is the first and begins beside the bracket, the
// next.
func (d *document) gap(s *spot, i int) []byte {
	begin, err := d.begin(s.kids[i])
	if err != nil {
		return []byte(" ")
	}
	if d.atLineStart(begin) && begin-d.lineStart(begin) <= maxColumn {
		return slices.Concat(d.style.newline, d.text[d.lineStart(begin):begin])
	}
	if i == 0 && len(s.kids) > 1 {
		return d.gap(s, 1)
	}
	if i > 0 {
		from := begin
		for from > 0 && (d.text[from-1] == ' ' || d.text[from-1] == '\t') {
			from--
		}
		if begin-from > maxColumn {
			return []byte(" ")
		}
		return d.text[from:begin]
	}
	if d.style.compact {
		return nil
	}
	return []byte(" ")
}
