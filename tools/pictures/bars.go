package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// result is what a benchmark has written into docs/results.json.
type result struct {
	Command, Machine, Date, Commit string
	Figures                        map[string]string
}

// bars are the figures of the picture: upstream's and ours, in one run of the benchmark.
var bars = []struct{ benchmark, label, upstream, ours string }{
	{"bench-cli", "check 2,816 CRD files", "upstream.time", "espalier check --no-lint.time"},
	{"bench-start", "start a test server with 100 CRDs", "upstream.100.first", "espalier.100.first"},
	{"bench-engine", "compile the schema of a CRD", "crd.compile.upstream", "crd.compile.ours"},
	{"bench-engine", "memory per compiled CRD", "crd.heap.upstream", "crd.heap.ours"},
	{"bench-crds", "memory per served CRD", "upstream.idle", "espalier.idle"},
}

// speed draws our figures beside upstream's.
func speed(results []byte) (string, error) {
	var all map[string]result
	if err := json.Unmarshal(results, &all); err != nil {
		return "", err
	}
	const left, full, step = 300, 400, 52
	var b strings.Builder
	y := 46
	for _, bar := range bars {
		r := all[bar.benchmark]
		theirs, err := figure(r.Figures[bar.upstream])
		if err != nil {
			return "", fmt.Errorf("%s of %s: %w", bar.upstream, bar.benchmark, err)
		}
		ours, err := figure(r.Figures[bar.ours])
		if err != nil {
			return "", fmt.Errorf("%s of %s: %w", bar.ours, bar.benchmark, err)
		}
		largest := max(theirs, ours)
		fmt.Fprintf(&b, "<text x=\"8\" y=\"%d\">%s</text>\n", y+20, escape(bar.label))
		fmt.Fprintf(&b, "<text class=\"row\" x=\"8\" y=\"%d\">make %s, %s, %s</text>\n", y+35, bar.benchmark, r.Date, r.Commit)
		for i, v := range []struct {
			value       float64
			text, class string
		}{{ours, "Espalier " + r.Figures[bar.ours], ""}, {theirs, "upstream " + r.Figures[bar.upstream], " class=\"other\""}} {
			length := max(2, int(v.value/largest*full))
			fmt.Fprintf(&b, "<rect%s x=\"%d\" y=\"%d\" width=\"%d\" height=\"14\"/>\n", v.class, left, y+6+i*18, length)
			fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\">%s</text>\n", left+length+6, y+17+i*18, escape(v.text))
		}
		y += step
	}
	title, machine := "Espalier beside k8s.io/apiextensions-apiserver: shorter is better", all["bench-engine"].Machine
	return head(left+full+150, y+10, title) + fmt.Sprintf("<text class=\"name\" x=\"8\" y=\"20\">%s</text>\n<text class=\"row\" x=\"8\" y=\"36\">%s</text>\n", escape(title), escape(machine)) +
		b.String() + "</svg>\n", nil
}

// figure reads a figure and its unit. Both figures of a bar must have the same unit, or units of time.
func figure(text string) (float64, error) {
	number, unit, _ := strings.Cut(text, " ")
	value, err := strconv.ParseFloat(strings.ReplaceAll(number, ",", ""), 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no figure", text)
	}
	scale, known := map[string]float64{"": 1, "ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1, "KB": 1e3, "MB": 1e6}[unit]
	if !known {
		return 0, fmt.Errorf("%q has an unknown unit", text)
	}
	return value * scale, nil
}
