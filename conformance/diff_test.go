package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/conformance/oracle"
	"github.com/espalier-dev/espalier/conformance/search"
	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/diff"
	"github.com/espalier-dev/espalier/finding"
)

// A diffPair is two CRDs, what is to be reported about the change, and maybe what it breaks: the spec of an object
// that is valid under the old one, and refused or changed by the new one.
type diffPair struct {
	name                    string
	old, now, witness, want string
}

// diffPairs reads testdata/diff, in which each file has many pairs: sections called name/old, name/new, name/want and,
// where there is one, name/witness.
func diffPairs(t *testing.T) (pairs []*diffPair) {
	files, err := filepath.Glob("testdata/diff/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no pairs: %v", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		family := strings.TrimSuffix(filepath.Base(file), ".txtar")
		var into *string
		for line := range strings.Lines(string(data)) {
			if header, ok := strings.CutPrefix(line, "-- "); ok {
				name, section, _ := strings.Cut(strings.TrimSuffix(header, " --\n"), "/")
				if name = family + "/" + name; section == "old" {
					pairs = append(pairs, &diffPair{name: name})
				}
				p := pairs[len(pairs)-1]
				if p.name != name {
					t.Fatalf("%s: section %q is out of place", file, header)
				}
				into = map[string]*string{"old": &p.old, "new": &p.now, "witness": &p.witness, "want": &p.want}[section]
			} else if into != nil {
				*into += line
			}
		}
	}
	return pairs
}

func parseCRD(t *testing.T, text []byte) *crd.CRD {
	t.Helper()
	d, err := crd.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// diffCRD makes a CRD of a section: of the schema of spec, or of a merge patch to a CRD.
func diffCRD(t *testing.T, section string) (parsed *crd.CRD, schema []byte) {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(section))
	if err != nil {
		t.Fatal(err)
	}
	var patch struct {
		CRD map[string]any `json:"crd"`
	}
	schema = []byte(`{"type":"object","properties":{"spec":{"type":"object","properties":{"f":{"type":"string"}}}}}`)
	if err := json.Unmarshal(raw, &patch); err != nil || patch.CRD == nil {
		schema = fmt.Appendf(nil, `{"type":"object","properties":{"spec":%s}}`, raw)
		return parseCRD(t, search.CRD(schema)), schema
	}
	var base any
	if err := json.Unmarshal(search.CRD(schema), &base); err != nil {
		t.Fatal(err)
	}
	merged, err := json.Marshal(mergePatch(base, patch.CRD))
	if err != nil {
		t.Fatal(err)
	}
	return parseCRD(t, merged), nil
}

// mergePatch applies an RFC 7386 merge patch.
func mergePatch(to, patch any) any {
	p, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	m, ok := to.(map[string]any)
	if !ok {
		m = map[string]any{}
	}
	for k, v := range p {
		if v == nil {
			delete(m, k)
		} else {
			m[k] = mergePatch(m[k], v)
		}
	}
	return m
}

func diffLine(x *diff.Change) string {
	breaks := strings.NewReplacer(", ", ",", " objects", "").Replace(x.Breaks.String())
	version := x.Version
	if version == "v1" { // goes without saying
		version = ""
	}
	return strings.Join(strings.Fields(fmt.Sprintf("%s %s %s %s %s", x.Level, x.Check, or(breaks, "nobody"), version, x.Path)), " ")
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// TestDiff compares labelled pairs. What a witness stands for is confirmed by the reference.
func TestDiff(t *testing.T) {
	pairs := diffPairs(t)
	if len(pairs) < 140 {
		t.Errorf("there are only %d pairs", len(pairs))
	}
	kinds := map[finding.ID]diff.CheckInfo{}
	for _, r := range diff.Checks() {
		kinds[r.ID] = r
	}
	seen := map[finding.ID]bool{}
	for _, p := range pairs {
		t.Run(p.name, func(t *testing.T) {
			old, oldSchema := diffCRD(t, p.old)
			now, newSchema := diffCRD(t, p.now)
			changes, err := diff.Compare(old, now)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			worst := diff.Safe
			for i := range changes {
				x := &changes[i]
				got = append(got, diffLine(x))
				if x.Breaks&(diff.Writers|diff.Stored) != 0 {
					worst = max(worst, x.Level)
				}
				k, ok := kinds[x.Check]
				if !ok || x.Level > k.Level || x.Level == k.Level && x.Breaks&^k.Breaks != 0 && x.Level != diff.Safe || x.Message == "" {
					t.Errorf("%s is not what Checks says about it: %+v", x.Check, x)
				}
				seen[x.Check] = true
			}
			if want := strings.Fields(p.want); !slices.Equal(strings.Fields(strings.Join(got, "\n")), want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), p.want)
			}
			if same, err := diff.Compare(now, now); err != nil || len(same) > 0 {
				t.Errorf("the new CRD differs from itself: %v %v", same, err)
			}
			if p.witness != "" {
				if worst == diff.Safe {
					t.Error("there is a witness, and nothing is reported")
				}
				confirmWitness(t, oldSchema, newSchema, p.witness)
			}
		})
	}
	for id := range kinds {
		// That one takes CRDs that are too large for a table: it is tested beside the package.
		if !seen[id] && id != "not-compared" && !t.Failed() {
			t.Errorf("no pair has a change of %s", id)
		}
	}
}

// confirmWitness asks the reference whether an object is stored as it is under the old schema and not under the new.
func confirmWitness(t *testing.T, old, now []byte, spec string) {
	raw, err := yaml.YAMLToJSON([]byte(spec))
	if err != nil {
		t.Fatal(err)
	}
	object := fmt.Appendf(nil, `{"apiVersion":"orchard.example/v1","kind":"Tree","metadata":{"name":"a"},"spec":%s}`, raw)
	stored := func(schema, object []byte) ([]byte, string) {
		s, err := oracle.Compile(schema)
		if err != nil {
			t.Fatal(err)
		}
		out := s.Normalize(object, oracle.Request)
		if out.Err != nil {
			return nil, out.Err.Error()
		}
		v := s.Validate(out.Bytes, oracle.ValidateOptions{})
		if !v.Valid() {
			return nil, v.Text()
		}
		return out.Bytes, ""
	}
	before, refused := stored(old, object)
	if refused != "" {
		t.Fatalf("the witness is not valid under the old schema: %s", refused)
	}
	if after, _ := stored(now, before); bytes.Equal(before, after) {
		t.Errorf("nothing happens to the witness: %s", after)
	}
}

// TestDiffSearch is a short form of cmd/search-diff on the seed schemas.
func TestDiffSearch(t *testing.T) {
	cfg := search.Config{Seed: 7, Pairs: 1500}
	if testing.Short() {
		cfg.Pairs = 200
	}
	counts, misses, err := search.Run(context.Background(), seeds(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(counts)
	for _, m := range misses {
		t.Error(m)
	}
	if counts.Misses.Load() > 0 {
		t.Errorf("%d misses", counts.Misses.Load())
	}
	if counts.Broken.Load() == 0 || counts.Safe.Load() == 0 || counts.Objects.Load() < int64(cfg.Pairs) {
		t.Error("too little was tried")
	}
}
