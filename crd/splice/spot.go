package splice

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sort"
	"sync"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// source is a text and where its lines are.
type source struct {
	text    []byte
	lines   []int // offsets of the beginnings of lines, as YAML counts them
	indents []int // offsets of what is first in them that is no blank
	newline []byte
	several bool        // lines, apart from empty ones at both ends
	json    func() bool // whether all of it is JSON
}

// document is one document of a text and where everything in it is.
type document struct {
	*source
	root  *spot
	style style
	// The place that was found last. Nodes are looked for in their order, so
	// that no part of a long line is read twice.
	row, column, at int
	last            *spot
}

// spot is a value in the text.
type spot struct {
	node       *yaml.Node
	start, end int // end is -1 if it is not known
	limit      int // where the next one starts
	column     int // of the start, from 0, in bytes
	flow       bool
	parent     *spot
	depth      int     // the number of values around it
	index      int     // among the kids of parent
	key        *spot   // of a member
	kids       []*spot // values of members, or items

	byName map[string]int // indexes of members, -1 for those that are there twice; made when needed
	merge  *spot          // the merge key, found with them
}

// breakAt returns the length of the line break that text begins with, as YAML
// 1.1 has them.
func breakAt(text []byte) int {
	if len(text) == 0 {
		return 0
	}
	switch text[0] {
	case '\n':
		return 1
	case '\r':
		if len(text) > 1 && text[1] == '\n' {
			return 2
		}
		return 1
	case 0xc2: // U+0085
		if len(text) > 1 && text[1] == 0x85 {
			return 2
		}
	case 0xe2: // U+2028 and U+2029
		if len(text) > 2 && text[1] == 0x80 && text[2]&^1 == 0xa8 {
			return 3
		}
	}
	return 0
}

// index finds the lines of a text.
func index(text []byte) *source {
	s := &source{text: text, lines: []int{0}, newline: []byte("\n")}
	if i := bytes.IndexByte(text, '\n'); i > 0 && text[i-1] == '\r' {
		s.newline = []byte("\r\n")
	}
	s.several = bytes.IndexByte(bytes.TrimSpace(text), '\n') >= 0
	s.json = sync.OnceValue(func() bool { return json.Valid(text) })
	blank := true
	for i := 0; i < len(text); {
		n := breakAt(text[i:])
		if blank && (n > 0 || text[i] != ' ') {
			blank = false
			s.indents = append(s.indents, i)
		}
		if n > 0 {
			s.lines = append(s.lines, i+n)
			blank = true
		}
		i += max(n, 1)
	}
	if blank {
		s.indents = append(s.indents, len(text))
	}
	return s
}

// parse finds the wanted documents of a text, by their indexes.
func parse(text []byte, wanted map[int][]Edit) (map[int]*document, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	lines := index(text)
	found := make(map[int]*document, len(wanted))
	for i := 0; len(found) < len(wanted); i++ {
		var node yaml.Node
		err := decoder.Decode(&node)
		if errors.Is(err, io.EOF) {
			return nil, missing(wanted, found)
		}
		if err != nil {
			return nil, err
		}
		if _, ok := wanted[i]; !ok {
			continue
		}
		if len(node.Content) == 0 {
			return nil, errNotThere
		}
		d := &document{source: lines}
		d.root = d.spot(node.Content[0], nil)
		d.last.limit = len(text)
		d.ends(d.root, -1)
		d.style = d.detect()
		found[i] = d
	}
	return found, nil
}

func missing(wanted map[int][]Edit, found map[int]*document) error {
	for _, i := range slices.Sorted(maps.Keys(wanted)) {
		if found[i] == nil {
			return fmt.Errorf("the file has no document %d", i)
		}
	}
	return nil
}

// offset returns the place of a node, whose columns count characters.
func (d *document) offset(n *yaml.Node) int {
	if n.Line < 1 || n.Line > len(d.lines) {
		return len(d.text)
	}
	if n.Line != d.row || n.Column < d.column {
		d.row, d.column, d.at = n.Line, 1, d.lines[n.Line-1]
		if n.Line == 1 {
			d.at += len(d.text) - len(bytes.TrimPrefix(d.text, []byte("\ufeff")))
		}
	}
	for ; d.column < n.Column && d.at < len(d.text); d.column++ {
		_, size := utf8.DecodeRune(d.text[d.at:])
		d.at += size
	}
	return d.at
}

// line returns the index of the line of an offset.
func (d *source) line(at int) int {
	return sort.SearchInts(d.lines, at+1) - 1
}

// lineStart returns where the line of an offset begins.
func (d *source) lineStart(at int) int { return d.lines[d.line(at)] }

// lineEnd returns where the line of an offset ends, without its break.
func (d *source) lineEnd(at int) int {
	i := d.line(at)
	if i+1 == len(d.lines) {
		return len(d.text)
	}
	end := d.lines[i+1]
	for _, n := range []int{2, 3} { // \r\n and U+0085, U+2028 and U+2029
		if end-n >= d.lines[i] && breakAt(d.text[end-n:]) == n {
			return end - n
		}
	}
	return end - 1
}

// nextLine returns where the line after that of an offset begins.
func (d *source) nextLine(at int) int {
	if i := d.line(at); i+1 < len(d.lines) {
		return d.lines[i+1]
	}
	return len(d.text)
}

// spot finds where a node and everything in it starts.
func (d *document) spot(n *yaml.Node, parent *spot) *spot {
	s := &spot{node: n, parent: parent, start: d.offset(n), end: -1}
	s.column = s.start - d.lineStart(s.start)
	s.flow = n.Style&yaml.FlowStyle != 0 || parent != nil && parent.flow
	if parent != nil {
		s.depth = parent.depth + 1
	}
	if d.last != nil {
		d.last.limit = max(d.last.start, s.start)
	}
	d.last = s
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := d.spot(n.Content[i], s)
			value := d.spot(n.Content[i+1], s)
			value.key, value.index = key, len(s.kids)
			s.kids = append(s.kids, value)
		}
	case yaml.SequenceNode:
		for i, c := range n.Content {
			s.kids = append(s.kids, d.spot(c, s))
			s.kids[i].index = i
		}
	}
	return s
}

// ends finds where a value and everything in it ends. indent is the column that
// what is inside it, if it is in block style, must be right of.
func (d *document) ends(s *spot, indent int) {
	for _, k := range s.kids {
		if k.key != nil {
			k.key.end = d.keyEnd(k.key)
			d.ends(k, k.key.column)
		} else {
			d.ends(k, s.column)
		}
	}
	s.end = d.end(s, indent)
}

// skipProperties returns where a node's own text begins, after its anchor and
// tag.
func (d *document) skipProperties(s *spot) int {
	at := s.start
	for at < s.limit && (d.text[at] == '&' || d.text[at] == '!') {
		for at < s.limit && !blank(d.text[at]) {
			at++
		}
		for at < s.limit && blank(d.text[at]) {
			at++
		}
	}
	return at
}

func blank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// end finds where a value ends, or returns -1.
func (d *document) end(s *spot, indent int) int {
	n := s.node
	switch n.Kind {
	case yaml.MappingNode, yaml.SequenceNode:
		if n.Style&yaml.FlowStyle != 0 {
			return d.flowEnd(s)
		}
		if len(s.kids) == 0 {
			return -1
		}
		return s.kids[len(s.kids)-1].end
	case yaml.AliasNode:
		return s.start + 1 + len(n.Value)
	case yaml.ScalarNode:
		at := s.start
		if n.Anchor != "" || n.Style&yaml.TaggedStyle != 0 {
			at = d.skipProperties(s)
			for (n.Value != "" || n.Style&^yaml.TaggedStyle != 0) && at < s.limit && d.text[at] == '#' {
				// Comments are between the tag and the value, which is below.
				for at = d.lineEnd(at); at < s.limit && blank(d.text[at]); {
					at++
				}
			}
		}
		return d.scalarEnd(s, at, indent)
	}
	return -1
}

func (d *document) scalarEnd(s *spot, at, indent int) int {
	n := s.node
	switch {
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return d.blockScalarEnd(at, s.limit, indent)
	case at < s.limit && n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0:
		return quotedEnd(d.text[:s.limit], at)
	case n.Value == "":
		return at
	case s.flow:
		if bytes.HasPrefix(d.text[at:], []byte(n.Value)) {
			return at + len(n.Value)
		}
		return -1
	}
	return d.plainEnd(at, s.limit, indent)
}

// keyEnd finds the end of a key, which is followed by a colon.
func (d *document) keyEnd(key *spot) int {
	if key.node.Kind != yaml.ScalarNode || key.node.Style&^(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 || key.node.Anchor != "" {
		return -1
	}
	if key.node.Style == 0 {
		if !bytes.HasPrefix(d.text[key.start:], []byte(key.node.Value)) {
			return -1
		}
		return key.start + len(key.node.Value)
	}
	return d.scalarEnd(key, key.start, 0)
}

func quotedEnd(text []byte, at int) int {
	quote := text[at]
	for i := at + 1; i < len(text); i++ {
		switch {
		case quote == '"' && text[i] == '\\':
			i++
		case text[i] != quote:
		case quote == '\'' && i+1 < len(text) && text[i+1] == '\'':
			i++
		default:
			return i + 1
		}
	}
	return -1
}

// plainEnd finds the end of a plain scalar in block style, which may go on in
// the lines below that are indented.
func (d *document) plainEnd(at, limit, indent int) int {
	end := plainLine(d.text, at, d.lineEnd(at))
	for line := d.nextLine(at); end == trimRight(d.text, at, d.lineEnd(at)) && line < limit; line = d.nextLine(line) {
		stop := d.lineEnd(line)
		first := line
		for first < stop && (d.text[first] == ' ' || d.text[first] == '\t') {
			first++
		}
		if first == stop {
			continue
		}
		if first-line <= indent || d.text[first] == '#' {
			break
		}
		at, end = first, plainLine(d.text, first, stop)
	}
	return end
}

// plainLine finds where a plain scalar's part of a line ends: before a comment
// and the blanks there.
func plainLine(text []byte, at, stop int) int {
	for i := at; i < stop; i++ {
		if text[i] == '#' && i > at && (text[i-1] == ' ' || text[i-1] == '\t') {
			stop = i
		}
	}
	return trimRight(text, at, stop)
}

func trimRight(text []byte, at, stop int) int {
	for stop > at && (text[stop-1] == ' ' || text[stop-1] == '\t') {
		stop--
	}
	return stop
}

// blockScalarEnd finds the end of a literal or folded scalar: the last line
// that is indented. Blank lines after it count only if they are kept.
func (d *document) blockScalarEnd(at, limit, indent int) int {
	header := d.text[at:d.lineEnd(at)]
	if i := bytes.IndexByte(header, '#'); i >= 0 {
		header = header[:i]
	}
	keep := bytes.IndexByte(header, '+') >= 0
	end := trimRight(d.text, at, d.lineEnd(at))
	for line := d.nextLine(at); line < limit; line = d.nextLine(line) {
		stop := d.lineEnd(line)
		first := d.indents[d.line(line)]
		switch {
		case first == stop && !keep:
		case first == stop || first-line > indent:
			end = stop
		default:
			return end
		}
		if stop == len(d.text) {
			break
		}
	}
	return end
}

// flowEnd finds the bracket that ends a flow collection: nothing but commas,
// blanks and comments stand between it and the last child.
func (d *document) flowEnd(s *spot) int {
	open := d.skipProperties(s)
	if open >= len(d.text) || d.text[open] != '{' && d.text[open] != '[' {
		return -1
	}
	at := open + 1
	if len(s.kids) > 0 {
		last := s.kids[len(s.kids)-1]
		at = last.end
		if last.key != nil && at >= 0 {
			at = max(at, last.key.end)
		}
		if at < 0 {
			return -1
		}
	}
	for at < len(d.text) {
		switch c := d.text[at]; {
		case c == '}' || c == ']':
			return at + 1
		case c == '#':
			at = d.lineEnd(at)
		case c == ',' || blank(c):
			at++
		default:
			return -1
		}
	}
	return -1
}
