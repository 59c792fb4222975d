package main

import (
	"fmt"
	"slices"
	"strings"
)

// diagram is rows of boxes, from top to bottom, and arrows between them. Its source is
//
//	row NAME
//	  box NAME: line | line
//	FROM -> TO TO
//
// and lines that begin with # are comments. The first comment is the title.
type diagram struct {
	title  string
	rows   []row
	arrows [][2]string
}

type row struct {
	name  string
	boxes []box
}

type box struct {
	name  string
	lines []string
}

func parse(text string) (*diagram, error) {
	d := &diagram{}
	for number, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		name, isRow := strings.CutPrefix(line+" ", "row ")
		described, isBox := strings.CutPrefix(line, "box ")
		from, to, isArrow := strings.Cut(line, " -> ")
		switch {
		case line == "":
		case strings.HasPrefix(line, "#"):
			if d.title == "" {
				d.title = strings.TrimSpace(line[1:])
			}
		case isRow:
			d.rows = append(d.rows, row{name: strings.TrimSpace(name)})
		case isBox && len(d.rows) > 0:
			name, lines, _ := strings.Cut(described, ":")
			b := box{name: strings.TrimSpace(name)}
			for _, l := range strings.Split(lines, "|") {
				if l = strings.TrimSpace(l); l != "" {
					b.lines = append(b.lines, l)
				}
			}
			last := &d.rows[len(d.rows)-1]
			last.boxes = append(last.boxes, b)
		case isArrow:
			for _, t := range strings.Fields(to) {
				d.arrows = append(d.arrows, [2]string{strings.TrimSpace(from), t})
			}
		default:
			return nil, fmt.Errorf("line %d: %q is no row, box or arrow", number+1, line)
		}
	}
	for _, a := range d.arrows {
		for _, name := range a {
			if !d.has(name) {
				return nil, fmt.Errorf("an arrow names %s, which is no box", name)
			}
		}
	}
	return d, nil
}

func (d *diagram) has(name string) bool {
	return slices.ContainsFunc(d.rows, func(r row) bool {
		return slices.ContainsFunc(r.boxes, func(b box) bool { return b.name == name })
	})
}

// reduced returns the arrows without those that a longer way says already.
func (d *diagram) reduced() [][2]string {
	next := map[string][]string{}
	for _, a := range d.arrows {
		next[a[0]] = append(next[a[0]], a[1])
	}
	var reaches func(from, to string, seen map[string]bool) bool
	reaches = func(from, to string, seen map[string]bool) bool {
		if from == to {
			return true
		}
		if seen[from] {
			return false
		}
		seen[from] = true
		return slices.ContainsFunc(next[from], func(n string) bool { return reaches(n, to, seen) })
	}
	return slices.DeleteFunc(slices.Clone(d.arrows), func(a [2]string) bool {
		return slices.ContainsFunc(next[a[0]], func(n string) bool { return n != a[1] && reaches(n, a[1], map[string]bool{a[0]: true}) })
	})
}

// Sizes in pixels. A character of the font is about charWidth wide.
const (
	charWidth, lineHeight   = 8, 18
	padding, between, label = 10, 24, 110
	rowGap                  = 46
)

func (b box) width() int {
	longest := len(b.name)
	for _, l := range b.lines {
		longest = max(longest, len([]rune(l)))
	}
	return longest*charWidth + 2*padding
}

func (b box) height() int { return (1+len(b.lines))*lineHeight + padding }

// place is where a box is drawn.
type place struct{ x, y, w, h int }

func (d *diagram) svg() string {
	width := 0
	for _, r := range d.rows {
		w := label
		for _, b := range r.boxes {
			w += b.width() + between
		}
		width = max(width, w)
	}
	places, y := map[string]place{}, between
	var boxes strings.Builder
	for _, r := range d.rows {
		total, height := -between, 0
		for _, b := range r.boxes {
			total += b.width() + between
			height = max(height, b.height())
		}
		x := label + (width-label-total)/2
		fmt.Fprintf(&boxes, "<text class=\"row\" x=\"8\" y=\"%d\">%s</text>\n", y+height/2+4, escape(r.name))
		for _, b := range r.boxes {
			p := place{x, y, b.width(), height}
			places[b.name] = p
			fmt.Fprintf(&boxes, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"5\"/>\n", p.x, p.y, p.w, p.h)
			fmt.Fprintf(&boxes, "<text class=\"name\" x=\"%d\" y=\"%d\">%s</text>\n", p.x+padding, p.y+lineHeight, escape(b.name))
			for i, l := range b.lines {
				fmt.Fprintf(&boxes, "<text x=\"%d\" y=\"%d\">%s</text>\n", p.x+padding, p.y+(i+2)*lineHeight, escape(l))
			}
			x += b.width() + between
		}
		y += height + rowGap
	}
	var arrows strings.Builder
	for _, a := range d.reduced() {
		from, to := places[a[0]], places[a[1]]
		if from.y == to.y { // beside each other: below both
			fmt.Fprintf(&arrows, "<path d=\"M%d %dC%d %d %d %d %d %d\"/>\n", from.x+from.w/2, from.y+from.h,
				from.x+from.w/2, from.y+from.h+rowGap/2, to.x+to.w/2, to.y+to.h+rowGap/2, to.x+to.w/2, to.y+to.h)
			continue
		}
		x1, y1, x2, y2 := from.x+from.w/2, from.y+from.h, to.x+to.w/2, to.y
		if from.y > to.y {
			y1, y2 = from.y, to.y+to.h
		}
		fmt.Fprintf(&arrows, "<path d=\"M%d %dC%d %d %d %d %d %d\"/>\n", x1, y1, x1, (y1+y2)/2, x2, (y1+y2)/2, x2, y2)
	}
	return head(width, y-rowGap+between, d.title) + arrows.String() + boxes.String() + "</svg>\n"
}

// head begins a picture. It has a background of its own: pages may be dark.
func head(width, height int, title string) string {
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%[1]d" height="%[2]d" role="img" aria-label="%s">
<title>%[3]s</title>
<style>
text { font: 12px ui-monospace, Menlo, Consolas, monospace; fill: #1f2328 }
.name { font-weight: bold }
.row { fill: #59636e; font-family: sans-serif }
rect { fill: #f0f6ee; stroke: #4a7c3f }
rect.other { fill: #d1d9e0; stroke: #818b98 }
path { fill: none; stroke: #818b98; marker-end: url(#tip) }
</style>
<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" style="fill: #818b98; stroke: none; marker-end: none"/></marker></defs>
<rect width="%[1]d" height="%[2]d" style="fill: #ffffff; stroke: none"/>
`, width, height, escape(title))
}

var escape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;").Replace
