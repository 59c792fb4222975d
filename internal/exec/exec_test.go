package exec

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/internal/plan"
)

// TestIsTimestamp: a time that is taken for canonical has to be one that
// metav1.Time writes back as it is.
func TestIsTimestamp(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	canonical := 0
	for range 200_000 {
		s := fmt.Sprintf(`"%04d-%02d-%02dT%02d:%02d:%02dZ"`, r.IntN(10000)*r.IntN(2), r.IntN(14), r.IntN(33), r.IntN(25), r.IntN(61), r.IntN(61))
		if r.IntN(20) == 0 {
			b := []byte(s)
			b[r.IntN(len(b))] = " 0:.-+tz\""[r.IntN(9)]
			s = string(b)
		}
		if !isTimestamp([]byte(s)) {
			continue
		}
		canonical++
		var m metav1.Time
		if err := m.UnmarshalJSON([]byte(s)); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
		if out, err := m.MarshalJSON(); err != nil || string(out) != s {
			t.Fatalf("%s is written as %s (%v)", s, out, err)
		}
	}
	if canonical < 1000 {
		t.Errorf("only %d of the times were canonical", canonical)
	}
	for _, s := range []string{`"0002-01-01T00:00:00Z"`, `"9999-12-31T23:59:59Z"`} {
		if !isTimestamp([]byte(s)) {
			t.Errorf("%s is not taken for canonical", s)
		}
	}
	for day := time.Date(1899, 12, 25, 0, 0, 0, 0, time.UTC); day.Year() < 2105; day = day.AddDate(0, 0, 1) {
		if s := day.Format(`"2006-01-02T15:04:05Z"`); !isTimestamp([]byte(s)) {
			t.Fatalf("%s is not taken for canonical", s)
		}
	}
}

func TestNearest(t *testing.T) {
	var list []plan.Prop
	for _, name := range []string{"replicas", "image", "imagePullPolicy", "env", "x", "serviceAccountName", "minReadySeconds"} {
		list = append(list, plan.Prop{Name: name})
	}
	props := plan.NewProps(list)
	for name, want := range map[string]string{
		"replica": "replicas", "Replicas": "replicas", "repilcas": "replicas", "imag": "image", "IMAGEPULLPOLICY": "imagePullPolicy",
		"imagePullpolicies": "imagePullPolicy", "X": "x", "y": "", "envs": "env", "serviceAccount": "", "unrelated": "", "": "",
	} {
		if got := new(Recorder).nearest(name, props); got != want {
			t.Errorf("nearest to %q is %q, want %q", name, got, want)
		}
	}
	r := &Recorder{comparisons: maxComparisons}
	if got := r.nearest("replica", props); got != "" {
		t.Errorf("the search goes on after its bound: %q", got)
	}
	r = &Recorder{}
	for range maxComparisons / props.Len() {
		r.nearest("replica", props)
	}
	if got := r.nearest("replica", props); got != "replicas" {
		t.Errorf("the search ends before its bound: %q", got)
	}
	if got := r.nearest("replica", props); got != "" {
		t.Errorf("the search goes on though %d names were compared: %q", r.comparisons, got)
	}
}

func TestPath(t *testing.T) {
	p := path{{key: []byte("spec")}, {kind: keyStep, key: []byte("a.b")}, {kind: indexStep, index: 3}, {key: []byte("")}, {key: []byte("c")}}
	if got := p.String(); got != "spec.a.b[3]..c" {
		t.Errorf("String: %s", got)
	}
	if got := p.field(); got != "spec[a.b][3][].c" {
		t.Errorf("field: %s", got)
	}
	if got := (path{{key: []byte("")}, {key: []byte("a")}}).String(); got != ".a" {
		t.Errorf("String after an empty key: %s", got)
	}
}

func TestRecorderIsBounded(t *testing.T) {
	r := &Recorder{}
	for range maxChanges + 5 {
		if !r.full() {
			r.add(Change{Path: "a"})
		}
	}
	if len(r.Changes) != maxChanges || r.Omitted != 5 {
		t.Errorf("%d changes, %d omitted", len(r.Changes), r.Omitted)
	}
	r = &Recorder{}
	for !r.full() {
		r.add(Change{Path: string(make([]byte, 1<<20))})
	}
	if len(r.Changes) != maxPathBytes>>20 {
		t.Errorf("%d changes with paths of 1 MiB", len(r.Changes))
	}
}
