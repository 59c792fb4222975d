package generate

import (
	"bytes"
	"encoding/json"
	"regexp"
	"regexp/syntax"
	"testing"

	"github.com/espalier-dev/espalier/conformance/oracle"
	"github.com/espalier-dev/espalier/conformance/tree"
)

const schema = `{"type":"object","required":["spec"],"properties":{"apiVersion":{"type":"string"},"kind":{"type":"string"},"metadata":{"type":"object"},
"spec":{"type":"object","required":["name","size"],"properties":{"name":{"type":"string","maxLength":20,"minLength":3},"size":{"type":"integer","minimum":2,"maximum":9},
"mode":{"type":"string","enum":["A","B"],"default":"A"},"ports":{"type":"array","maxItems":5,"items":{"type":"object","properties":{"port":{"x-kubernetes-int-or-string":true},"name":{"type":"string","pattern":"^[a-z]{2,5}(-[0-9]+)?$"}}}},
"labels":{"type":"object","additionalProperties":{"type":"string"}},"free":{"x-kubernetes-preserve-unknown-fields":true},"ratio":{"type":"number"},"on":{"type":"boolean","nullable":true},
"template":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}}},"status":{"type":"object","properties":{"at":{"type":"string","format":"date-time"}}}}}`

func plan(t testing.TB) *Plan {
	p, err := Compile([]byte(schema))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestSeedsDetermineObjects(t *testing.T) {
	p, q := plan(t), plan(t)
	for _, mode := range []Mode{Valid, Near, Hostile} {
		for seed := range uint64(1000) {
			a, b := p.Append(nil, seed, Options{Mode: mode}), q.Append(nil, seed, Options{Mode: mode})
			if !bytes.Equal(a, b) {
				t.Fatalf("mode %d seed %d gave\n%s\n%s", mode, seed, a, b)
			}
		}
	}
}

func TestValidObjectsLoseNothing(t *testing.T) {
	p := plan(t)
	s, err := oracle.Compile([]byte(schema))
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(2000) {
		b := p.Append(nil, seed, Options{})
		if !json.Valid(b) {
			t.Fatalf("seed %d is no JSON:\n%s", seed, b)
		}
		out := s.Normalize(b, oracle.Request)
		if out.Err != nil || len(out.Unknown) > 0 {
			t.Fatalf("seed %d: %v\n%s", seed, out, b)
		}
	}
}

func TestSizeIsMet(t *testing.T) {
	p := plan(t)
	for _, size := range []int{500, 2000, 20000, 200000} {
		b := p.Append(nil, 1, Options{Size: size, Compact: true})
		if len(b) < size/4 || len(b) > size*2+500 {
			t.Errorf("wanted %d bytes, got %d", size, len(b))
		}
	}
}

// Hostile objects must reach every kind of outcome, the ordinary ones not too often.
func TestHostileObjectsSpread(t *testing.T) {
	p := plan(t)
	s, err := oracle.Compile([]byte(schema))
	if err != nil {
		t.Fatal(err)
	}
	var malformed, refused, pruned, clean int
	const n = 5000
	for seed := range uint64(n) {
		out := s.Normalize(p.Append(nil, seed, Options{Mode: Hostile}), oracle.Request)
		switch {
		case out.Malformed:
			malformed++
		case out.Err != nil:
			refused++
		case len(out.Unknown) > 0:
			pruned++
		default:
			clean++
		}
	}
	t.Logf("malformed %d, refused %d, pruned %d, clean %d of %d", malformed, refused, pruned, clean, n)
	if malformed < n/50 || malformed > n/4 || refused < n/20 || refused > n/2 || pruned < n/5 || clean < n/50 {
		t.Error("lopsided")
	}
}

func TestTablesAreJSON(t *testing.T) {
	for name, list := range map[string][]string{"oddNumbers": oddNumbers, "oddStrings": oddStrings, "oddKeys": oddKeys, "strangeKeys": strangeKeys, "oddVersions": oddVersions, "oddKinds": oddKinds, "oddMetas": oddMetas} {
		for _, raw := range list {
			if !json.Valid([]byte(raw)) {
				t.Errorf("%s: %q", name, raw)
			}
		}
	}
	list := oddMeta
	for _, u := range usualMeta {
		list = append(list, u.members...)
	}
	for _, raw := range list {
		if !json.Valid([]byte("{" + raw + "}")) {
			t.Errorf("metadata: %q", raw)
		}
	}
}

func TestWordsMatch(t *testing.T) {
	for _, pattern := range []string{`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`, `^\d{1,3}(\.\d+)?(Mi|Gi)$`, `^(a|b|)+c{2,4}$`, `^[^/]+/v\d$`, `^arn:aws:.*$`} {
		re, err := syntax.Parse(pattern, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		list := words(re.Simplify(), 0, 100)
		if len(list) == 0 {
			t.Errorf("%s: no words", pattern)
		}
		for _, raw := range list {
			if !regexp.MustCompile(pattern).MatchString(tree.Unquote(raw)) {
				t.Errorf("%s does not match %s", raw, pattern)
			}
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	p := plan(b)
	for name, mode := range map[string]Mode{"valid": Valid, "near": Near, "hostile": Hostile} {
		b.Run(name, func(b *testing.B) {
			var buf []byte
			size := 0
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				buf = p.Append(buf[:0], uint64(i), Options{Mode: mode})
				size += len(buf)
			}
			b.ReportMetric(float64(size)/float64(b.N), "B/object")
		})
	}
}
