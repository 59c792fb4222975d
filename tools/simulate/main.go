package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	root := flag.String("root", "..", "the repository")
	flag.Parse()
	tables, err := run(*root)
	if err != nil {
		fmt.Fprintln(os.Stderr, "simulate:", err)
		os.Exit(1)
	}
	fmt.Print(tables)
}

// most is how many replicas a site has at most.
const most = 1000

// usual is a load of customers: one in twenty works at the moment, for ten minutes.
var usual = load{inUse: 0.05, rate: 2, writes: 0.2, session: 600}

// table is what docs/scale.md says.
func table(p parts) string {
	var b strings.Builder
	b.WriteString("| etcds | requests of a tenant go to | tenants | requests/s | replicas | p99 | in use on a replica | more of them exhaust |\n|---|---|---|---|---|---|---|---|\n")
	for _, etcds := range []int{1, 10, 100} {
		for _, sticky := range []bool{true, false} {
			to := "any replica"
			if sticky {
				to = "one replica"
			}
			l, s, o, first := carries(p, etcds, sticky, usual)
			if first == "" {
				first = "not known: the search ends at " + grouped(mostTenants)
			}
			fmt.Fprintf(&b, "| %d | %s | %s | %s | %s | %.0f ms | %s | %s |\n", etcds, to, grouped(l.tenants), grouped(int(float64(l.tenants)*l.inUse*l.rate)),
				grouped(s.replicas), max(1, o.p99*1e3), grouped(int(o.planes)), first)
		}
	}
	return b.String()
}

func grouped(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

func run(root string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "results.json"))
	if err != nil {
		return "", err
	}
	r, err := parse(text)
	if err != nil {
		return "", err
	}
	p, err := r.read()
	if err != nil {
		return "", err
	}
	points, err := measure(r)
	if err != nil {
		return "", err
	}
	return table(p) + "\n" + comparison(points), nil
}
