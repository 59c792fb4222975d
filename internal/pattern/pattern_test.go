package pattern

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func compile(t testing.TB, expr string) *Pattern {
	t.Helper()
	p, err := Compile(expr)
	if err != nil {
		t.Fatalf("Compile(%q): %v", expr, err)
	}
	return p
}

// hasTables reports whether a pattern is matched by an automaton.
func (p *Pattern) hasTables() bool {
	p.Match(nil)
	return p.ready.Load().general == nil
}

// TestManyCharacters: a pattern that tells more characters apart than a table has classes is
// matched without one.
func TestManyCharacters(t *testing.T) {
	var text []rune
	for r := rune(0x100); len(text) < 300; r++ {
		text = append(text, r)
	}
	p := compile(t, "^"+string(text)+"$")
	if p.hasTables() {
		t.Error("the pattern has a table")
	}
	if !p.Match([]byte(string(text))) || p.Match([]byte(string(text[1:]))) {
		t.Error("another text matches than that of the pattern")
	}
}

func TestMatchIsThatOfRegexp(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	matches := 0
	for _, expr := range slices.Concat(frequent, varied) {
		re, err := regexp.Compile(expr)
		if err != nil {
			if _, own := Compile(expr); own == nil || own.Error() != err.Error() {
				t.Errorf("Compile(%q): %v, want %v", expr, own, err)
			}
			continue
		}
		p := compile(t, expr)
		try := func(text []byte) {
			want := re.Match(text)
			if got := p.Match(text); got != want {
				t.Errorf("%q on %q: %v, want %v", expr, text, got, want)
			}
			if want {
				matches++
			}
		}
		for _, text := range texts {
			try([]byte(text))
		}
		for range 200 {
			choices := make([]byte, 40)
			for i := range choices {
				choices[i] = byte(rnd.Uint32())
			}
			text := sample(expr, choices)
			try(text)
			if len(text) > 0 {
				text[rnd.IntN(len(text))] = byte(rnd.Uint32())
				try(text)
			}
		}
	}
	if matches < 10000 {
		t.Errorf("only %d matches: the samples are no good", matches)
	}
}

func TestFrequentPatternsHaveTablesAndDoNotAllocate(t *testing.T) {
	for i, expr := range frequent {
		p, text := compile(t, expr), []byte(examples[i])
		if !p.hasTables() {
			t.Errorf("%q is left to regexp", expr)
		}
		if matched, want := p.Match(text), i < len(frequent)-1; matched != want {
			t.Errorf("%q on %q: %v", expr, text, matched)
		}
		for _, text := range append(texts, examples[i]) {
			b := []byte(text)
			if n := testing.AllocsPerRun(10, func() { p.Match(b) }); n != 0 {
				t.Errorf("%q on %q: %v allocations", expr, text, n)
			}
		}
	}
}

func TestMatchEndsEarly(t *testing.T) {
	for expr, read := range map[string]string{
		`^https://`: "x", `^x`: "x", `x`: "-x", `(?s)^x.*$`: "x", `^[a-w]+$`: "aax", `(?i)X.*`: "x", `x*`: "", `^a{3}$`: "aaaa",
	} {
		a, _ := newAutomaton(expr)
		for i := range len(read) + 1 {
			state := a.start
			for _, b := range []byte(read[:i]) {
				state = a.next[int(state)+int(a.ascii[b])]
			}
			if ended := state <= a.accept; ended != (i == len(read)) {
				t.Errorf("%q has a result after %q: %v", expr, read[:i], ended)
			}
		}
	}
}

func TestErrorsAreThoseOfRegexp(t *testing.T) {
	deep := strings.Repeat("(", 1001) + strings.Repeat(")", 1001)
	for _, expr := range []string{
		`(`, `)`, `[`, `a**`, `*`, `a{1001}`, `(a{50}){50}`, `\8`, `(?<n`, `(?i`, `\pX`, `[b-a]`, "\xff", `a\`,
		`(?!x)`, `(?<=x)y`, `[[:foo:]]`, `x{2,1}`, deep, strings.Repeat(`.{1000}`, 4000),
	} {
		_, want := regexp.Compile(expr)
		p, err := Compile(expr)
		if want == nil || err == nil || err.Error() != want.Error() || p != nil {
			t.Errorf("Compile(%.40q): %v, %v, want %v", expr, p, err, want)
		}
	}
}

// hostile are expressions whose automaton would be large, or expensive.
var hostile = map[string]string{
	"exponential":     `(a|b)*a(a|b){20}$`,
	"many letters":    `[a-y]*[b-z][a-y]{12}$`,
	"long repetition": `^(.{1000}){1}x$`,
	"repetitions":     strings.Repeat(`[ab]{0,900}`, 20),
	"nested":          `^((a{0,30}){0,30}b)*$`,
	"every category":  `^[\pL\pN\pS\pP\pM\pZ]\pL\pN\pS\pP\pM\pZ\p{Greek}\p{Han}\p{Latin}\p{Cyrillic}$`,
	"alternatives":    strings.Repeat("ab|ba|", 6000),
	"many runes":      string(manyRunes()),
	"long":            "^" + strings.Repeat("[ab]", maxExpr/4) + "$",
}

func manyRunes() []rune {
	var runes []rune
	for r := rune(0x4e00); len(runes) < 1000; r += 3 {
		runes = append(runes, r)
	}
	return runes
}

func TestHostileExpressionsAreBounded(t *testing.T) {
	for name, expr := range hostile {
		t.Run(name, func(t *testing.T) {
			if b, ok := newBuilder(expr); ok {
				a, _ := b.build()
				if len(a.next) > maxKept || len(a.first) > maxRanges || len(b.rows) > maxEntries {
					t.Errorf("%d entries of %d, %d ranges", len(a.next), len(b.rows), len(a.first))
				}
				// It is looked at before each entry, which has few visits to the same instruction.
				if b.budget < -6*maxInsts {
					t.Errorf("took %d steps", maxSteps-b.budget)
				}
			}
			re, p := regexp.MustCompile(expr), compile(t, expr)
			for i := range 8 {
				text := sample(expr, slices.Repeat([]byte{byte(3*i + 1), byte(i)}, 200))
				for _, text := range [][]byte{text, text[:len(text)/2], nil} {
					if got, want := p.Match(text), re.Match(text); got != want {
						t.Errorf("%q: %v, want %v", text, got, want)
					}
				}
			}
		})
	}
	if _, ok := newAutomaton(hostile["exponential"]); ok {
		t.Error("an automaton of a million states?")
	}
}

func TestTablesAreMinimal(t *testing.T) {
	for expr, want := range map[string]int{
		``:                                2, // dead and accept are always there
		`^.*`:                             2,
		`(?s)^.*$`:                        2,
		`^$`:                              3,
		`x`:                               3,
		`^[a-z]+$`:                        4,
		`^([a-z]+|[a-f]+)$`:               4,
		`^(ab|cb|db)$`:                    5,
		`^[0-9]{8}$`:                      11,
		`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`: 5,
		`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`: 5,
	} {
		a, ok := newAutomaton(expr)
		if got := len(a.next) / (int(a.end) + 1); !ok || got != want {
			t.Errorf("%q has %d states, want %d", expr, got, want)
		}
	}
}

func TestEqualPatternsAreShared(t *testing.T) {
	expr := func(i int) string { return fmt.Sprintf("^shared-%d$", i) }
	count := func() int {
		registry.Lock()
		defer registry.Unlock()
		n := 0
		for e := range registry.patterns {
			if strings.HasPrefix(e, "^shared-") {
				n++
			}
		}
		return n
	}
	var held []*Pattern
	for i := range 100 {
		held = append(held, compile(t, expr(i)))
		if again := compile(t, expr(i)); again != held[i] {
			t.Fatalf("%s is there twice", expr(i))
		}
	}
	runtime.GC()
	if n := count(); n != 100 {
		t.Errorf("%d patterns are held, 100 should be", n)
	}
	runtime.KeepAlive(held) // and no longer
	for range 100 {
		runtime.GC() // cleanups run some time after
		if count() == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if n := count(); n != 0 {
		t.Errorf("%d patterns are left", n)
	}
	if !compile(t, expr(0)).Match([]byte("shared-0")) {
		t.Error("a pattern that was dropped does not come back")
	}
}

func TestConcurrentUse(t *testing.T) {
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 200 {
				p, err := Compile(fmt.Sprintf(`^concurrent-%d(a|b)*$`, i%10))
				if err != nil || !p.Match(fmt.Appendf(nil, "concurrent-%dabba", i%10)) || p.Match([]byte("x")) {
					t.Errorf("goroutine %d: %v %v", g, p, err)
				}
			}
		})
	}
	wg.Wait()
}

func FuzzMatch(f *testing.F) {
	for i, expr := range slices.Concat(frequent, varied) {
		f.Add(expr, []byte(texts[i%len(texts)]))
	}
	for i, expr := range frequent {
		f.Add(expr, []byte(examples[i]))
	}
	f.Fuzz(func(t *testing.T, expr string, text []byte) {
		if len(expr) > 300 || len(text) > 300 {
			t.Skip() // regexp takes too long to be asked often
		}
		re, want := regexp.Compile(expr)
		p, err := Compile(expr)
		if want != nil || err != nil {
			if fmt.Sprint(err) != fmt.Sprint(want) {
				t.Fatalf("Compile(%q): %v, want %v", expr, err, want)
			}
			return
		}
		similar := sample(expr, text)
		broken := slices.Clone(similar)
		if len(broken) > 0 && len(text) > 1 {
			broken[int(text[0])%len(broken)] = text[1]
		}
		for _, text := range [][]byte{text, similar, broken} {
			if got, want := p.Match(text), re.Match(text); got != want {
				t.Fatalf("%q on %q: %v, want %v", expr, text, got, want)
			}
		}
	})
}

func BenchmarkMatch(b *testing.B) {
	for i, expr := range frequent {
		p, re, text := compile(b, expr), regexp.MustCompile(expr), []byte(examples[i])
		name := fmt.Sprintf("%02d", i+1)
		p.Match(text) // builds the tables
		b.Run(name+"/pattern", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p.Match(text)
			}
		})
		b.Run(name+"/regexp", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				re.Match(text)
			}
		})
	}
}

func BenchmarkBuild(b *testing.B) {
	b.Run("pattern", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			for _, expr := range frequent {
				newAutomaton(expr)
			}
		}
	})
	b.Run("regexp", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			for _, expr := range frequent {
				regexp.MustCompile(expr)
			}
		}
	})
}
