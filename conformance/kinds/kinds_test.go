package kinds

import (
	"io/fs"
	"reflect"
	"strings"
	"testing"

	v1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/conformance/kinds/answer"
	"github.com/espalier-dev/espalier/conformance/kinds/generator"
)

// TestSeeds checks that all seeds can be read and that two objects of a seed have different names.
func TestSeeds(t *testing.T) {
	files, err := fs.Glob(seeds, "seeds/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 60 {
		t.Errorf("only %d files", len(files))
	}
	for _, file := range files {
		plural, rest, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(file, "seeds/"), ".yaml"), ".")
		version, group := "v1", rest
		if v, g, ok := strings.Cut(rest, "."); ok && stable.MatchString(v) {
			version, group = v, g
		}
		k := &Kind{ID: plural, Resource: v1.APIResource{Name: plural, Kind: "Any"}, Group: group, Version: version}
		if err := k.plant(); err != nil || len(k.Seeds) == 0 {
			t.Errorf("%s: %d seeds, %v", file, len(k.Seeds), err)
		}
		for i := range k.Seeds {
			a, b := k.seed(i, 3), k.seed(i, 4)
			if name := answer.Name(a); name != "" && name == answer.Name(b) {
				t.Errorf("%s: two objects are called %s", file, name)
			}
			if a["apiVersion"] != k.apiVersion() {
				t.Errorf("%s: apiVersion %v", file, a["apiVersion"])
			}
		}
	}
}

func TestSelect(t *testing.T) {
	all := []*Kind{
		{Resource: v1.APIResource{Name: "events"}, Version: "v1"}, {Resource: v1.APIResource{Name: "events"}, Group: "events.k8s.io", Version: "v1"},
		{Resource: v1.APIResource{Name: "scalers"}, Group: "g", Version: "v1"}, {Resource: v1.APIResource{Name: "scalers"}, Group: "g", Version: "v2"},
	}
	name(all)
	for names, want := range map[string][]string{
		"events":               {"events", "events.events.k8s.io"},
		"events.events.k8s.io": {"events.events.k8s.io"},
		"scalers.v2.g":         {"scalers.v2.g"},
		"scalers.g,events":     {"scalers.v1.g", "scalers.v2.g", "events", "events.events.k8s.io"},
	} {
		found, err := Select(all, strings.Split(names, ","))
		var ids []string
		for _, k := range found {
			ids = append(ids, k.ID)
		}
		if err != nil || !reflect.DeepEqual(ids, want) {
			t.Errorf("%s: %v, %v", names, ids, err)
		}
	}
	if _, err := Select(all, []string{"nothing"}); err == nil {
		t.Error("a kind that does not exist was selected")
	}
}

// exchange is the outcome of a write.
func exchange(there, here, same bool, misses ...answer.Miss) *Exchange {
	return &Exchange{Request: &Request{Purpose: "create"}, Outcome: answer.Outcome{There: there, Here: here, Equal: same && there, SameField: same && !there, Misses: misses}}
}

func TestReport(t *testing.T) {
	r := NewReport(1)
	miss := answer.Miss{What: answer.Admitted, Rule: "FieldValueInvalid spec.a: no"}
	script := &script{exchanges: []*Exchange{
		exchange(true, true, true), exchange(true, true, true), exchange(true, true, false), exchange(false, true, false, miss), exchange(false, false, true),
		exchange(false, false, false), exchange(false, false, true), exchange(true, false, false), {Table: true}, {Panic: true},
	}}
	r.add(&Kind{ID: "things"}, 7, script)
	want := "kinds: 1 kinds, 1 objects: stored equal in 66.67 % of those both accept, refused here but accepted there 1, accepted here but refused there 25.00 %, same field in 66.67 % of refusals"
	if got := r.Summary(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	rules := r.Rules()
	if len(rules) != 1 || rules[0].Example != "things/7" || rules[0].Count != 1 {
		t.Errorf("rules: %v", rules)
	}
	var text strings.Builder
	r.Write(&text)
	if !strings.HasSuffix(text.String(), "\n"+want+"\n") {
		t.Errorf("the report does not end in the summary:\n%s", text.String())
	}
	if _, err := r.JSON(); err != nil {
		t.Error(err)
	}
}

// TestShare checks that only a full share is printed as 100.
func TestShare(t *testing.T) {
	for in, want := range map[float64]string{100: "100", 99.9999: "99.99", 0: "0", 0.0001: "0.01", 66.666: "66.67"} {
		if got := short(in); got != want {
			t.Errorf("%v: %s, want %s", in, got, want)
		}
	}
}

// TestMissesOfOneCause checks that what a create has found is not told again for each update.
func TestMissesOfOneCause(t *testing.T) {
	miss := answer.Miss{What: answer.StoredMiss, Rule: "spec.a missing here"}
	update := exchange(true, true, false, miss, answer.Miss{What: answer.StoredMiss, Rule: "spec.b missing here"})
	update.Request.Purpose = "update"
	s := &script{exchanges: []*Exchange{exchange(true, true, false, miss, miss), update}}
	var rules []string
	for _, m := range s.misses() {
		rules = append(rules, m.Rule)
	}
	if want := []string{"spec.a missing here", "update: spec.b missing here"}; !reflect.DeepEqual(rules, want) {
		t.Errorf("got %q, want %q", rules, want)
	}
}

func TestSeedsAreNumbered(t *testing.T) {
	got := numbered(map[string]any{"a": []any{"x-INDEX", "1.HIGH.LOW"}}, 258)
	if want := (map[string]any{"a": []any{"x-258", "1.1.2"}}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v", got)
	}
	if !reflect.DeepEqual(generator.Copy(got), got) {
		t.Error("a copy differs")
	}
}
