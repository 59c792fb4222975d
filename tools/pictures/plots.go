package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A plot has lines of figures by the number in their names.
type plot struct {
	title, x string
	lines    []line
}

// line is what one benchmark has measured. The figures are those whose names match; the group is x.
type line struct{ label, benchmark, figures string }

var plots = []plot{
	{"CPU of the server", "objects", []line{
		{"page of 500", "bench-objects", `^(\d+)\.page from cache\.server$`},
		{"create", "bench-objects", `^(\d+)\.create\.server$`},
		{"list by index", "bench-objects", `^(\d+)\.indexed selector\.server$`},
		{"get", "bench-objects", `^(\d+)\.get\.server$`},
	}},
	{"memory of a replica", "objects in a watch cache", []line{{"resident", "bench-objects", `^(\d+)\.resident$`}}},
	{"memory of a replica", "watches", []line{
		{"resident", "bench-scale", `^(\d+) watches\.resident$`},
		{"heap", "bench-scale", `^(\d+) watches\.heap$`},
	}},
	{"memory of a replica", "tenants in use", []line{
		{"heap", "bench-scale", `^([1-9]\d*) in use\.heap$`},
	}},
	{"memory of a replica", "tenants, none in use any more", []line{
		{"resident", "bench-tenants", `^(\d+) used\.resident$`},
		{"heap", "bench-tenants", `^(\d+) used\.heap$`},
	}},
}

const (
	panelWidth, panelHeight = 430, 240
	plotLeft, plotTop       = 64, 52
	plotWidth, plotHeight   = 230, 140
	columns                 = 2
	colours                 = 4
	smallest                = 1e-9
)

// scale draws what things cost, by how many there are. Both axes are logarithmic: what is flat is flat, and
// what doubles with its number is a diagonal. Plots of benchmarks that have not been recorded are left out.
func scale(results []byte) (string, error) {
	var all map[string]result
	if err := json.Unmarshal(results, &all); err != nil {
		return "", err
	}
	var b strings.Builder
	var drawn []plot
	for _, p := range plots {
		if p.recorded(all) {
			drawn = append(drawn, p)
		}
	}
	for i, p := range drawn {
		if err := p.draw(&b, all, float64(i%columns*panelWidth), float64(40+i/columns*panelHeight)); err != nil {
			return "", fmt.Errorf("the plot of %s against %s: %w", p.title, p.x, err)
		}
	}
	rows := (len(drawn) + columns - 1) / columns
	const title = "What a replica costs, by how much there is. Both axes are logarithmic"
	return head(min(columns, len(drawn))*panelWidth+100, 40+rows*panelHeight, title) +
		"<style>.l0{stroke:#4a7c3f}.l1{stroke:#818b98}.l2{stroke:#9a6700}.l3{stroke:#0969da}polyline{fill:none;stroke-width:2}line{stroke:#d1d9e0;stroke-width:1}</style>\n" +
		fmt.Sprintf("<text class=\"name\" x=\"8\" y=\"20\">%s</text>\n<text class=\"row\" x=\"8\" y=\"36\">%s</text>\n", escape(title), escape(all[plots[0].lines[0].benchmark].Machine)) +
		b.String() + "</svg>\n", nil
}

// recorded reports whether the benchmarks have recorded what the lines need.
func (p plot) recorded(all map[string]result) bool {
	return !slices.ContainsFunc(p.lines, func(l line) bool {
		_, err := l.points(all)
		return errors.Is(err, errFew)
	})
}

var errFew = errors.New("a line needs two figures")

type point struct {
	x, y float64
	text string
}

// points are the figures of a line, by x.
func (l line) points(all map[string]result) (found []point, err error) {
	names := regexp.MustCompile(l.figures)
	for name, text := range all[l.benchmark].Figures {
		m := names.FindStringSubmatch(name)
		if m == nil {
			continue
		}
		x, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			return nil, err
		}
		y, err := figure(text)
		if err != nil {
			return nil, err
		}
		found = append(found, point{max(x, 1), max(y, smallest), text})
	}
	slices.SortFunc(found, func(a, b point) int { return cmp.Compare(a.x, b.x) })
	if len(found) < 2 {
		return nil, fmt.Errorf("%d figures of %s match %s: %w", len(found), l.benchmark, l.figures, errFew)
	}
	return found, nil
}

func (p plot) draw(b *strings.Builder, all map[string]result, left, top float64) error {
	low, high := point{math.Inf(1), math.Inf(1), ""}, point{}
	lines := make([][]point, len(p.lines))
	for i, l := range p.lines {
		var err error
		if lines[i], err = l.points(all); err != nil {
			return err
		}
		for _, at := range lines[i] {
			low.x, low.y, high.x, high.y = min(low.x, at.x), min(low.y, at.y), max(high.x, at.x), max(high.y, at.y)
		}
	}
	low.y, high.y = decade(low.y, math.Floor), decade(high.y, math.Ceil)
	low.x, high.x = decade(low.x, math.Floor), decade(high.x, math.Ceil)
	px := func(x float64) float64 { return left + plotLeft + plotWidth*math.Log(x/low.x)/math.Log(high.x/low.x) }
	py := func(y float64) float64 {
		return top + plotTop + plotHeight*(1-math.Log(y/low.y)/math.Log(high.y/low.y))
	}
	r := all[p.lines[0].benchmark]
	fmt.Fprintf(b, "<text class=\"name\" x=\"%.0f\" y=\"%.0f\">%s</text>\n", left+8, top+22, escape(p.title))
	fmt.Fprintf(b, "<text class=\"row\" x=\"%.0f\" y=\"%.0f\">make %s, %s, %s</text>\n", left+8, top+38, p.lines[0].benchmark, r.Date, r.Commit)
	memory := strings.HasSuffix(lines[0][0].text, "B")
	for y := low.y; y <= high.y*1.01; y *= 10 {
		fmt.Fprintf(b, "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1[3]f\"/><text class=\"row\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
			left+plotLeft, left+plotLeft+plotWidth, py(y), left+plotLeft-6, py(y)+4, unit(y, memory))
	}
	for x := low.x; x <= high.x*1.01; x *= 10 {
		fmt.Fprintf(b, "<line x1=\"%.1f\" x2=\"%.1[1]f\" y1=\"%.1f\" y2=\"%.1f\"/><text class=\"row\" x=\"%.1[1]f\" y=\"%.1[4]f\" text-anchor=\"middle\">%[5]s</text>\n",
			px(x), top+plotTop, top+plotTop+plotHeight, top+plotTop+plotHeight+16, short(x))
	}
	fmt.Fprintf(b, "<text class=\"row\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%s</text>\n", left+plotLeft+plotWidth/2, top+plotTop+plotHeight+34, escape(p.x))
	ends := make([]float64, len(lines))
	for i, points := range lines {
		var at []string
		for _, one := range points {
			at = append(at, fmt.Sprintf("%.1f,%.1f", px(one.x), py(one.y)))
		}
		fmt.Fprintf(b, "<polyline class=\"l%d\" points=\"%s\"/>\n", i%colours, strings.Join(at, " "))
		ends[i] = py(points[len(points)-1].y)
	}
	nameLines(b, p, lines, ends, px)
	return nil
}

// nameLines writes the names of the lines and their last figures beside their ends, one below the other.
func nameLines(b *strings.Builder, p plot, lines [][]point, ends []float64, px func(float64) float64) {
	order := make([]int, len(lines))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(ends[i], ends[j]) })
	const apart = 26
	free := math.Inf(-1)
	for _, i := range order {
		y := max(ends[i], free)
		free = y + apart
		last := lines[i][len(lines[i])-1]
		fmt.Fprintf(b, "<text x=\"%.1f\" y=\"%.1f\">%s<tspan class=\"row\" x=\"%.1[1]f\" dy=\"12\">%[4]s</tspan></text>\n", px(last.x)+6, y+2, escape(p.lines[i].label), escape(last.text))
	}
}

// decade is the power of ten next to a number.
func decade(n float64, round func(float64) float64) float64 {
	return math.Pow(10, round(math.Log10(n)))
}

func short(n float64) string {
	switch {
	case n >= 1e6:
		return fmt.Sprintf("%.0fM", n/1e6)
	case n >= 1e3:
		return fmt.Sprintf("%.0fk", n/1e3)
	}
	return fmt.Sprintf("%.0f", n)
}

// unit writes a power of ten as bytes or as a time.
func unit(n float64, memory bool) string {
	units := []struct {
		of   float64
		name string
	}{{1, "s"}, {1e-3, "ms"}, {1e-6, "µs"}, {1e-9, "ns"}}
	if memory {
		units = []struct {
			of   float64
			name string
		}{{1e9, "GB"}, {1e6, "MB"}, {1e3, "KB"}}
	}
	for _, u := range units {
		if n >= u.of*0.99 {
			return fmt.Sprintf("%.0f %s", n/u.of, u.name)
		}
	}
	return fmt.Sprint(n)
}
