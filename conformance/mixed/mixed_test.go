package mixed

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/espalier-dev/espalier/conformance/corpus"
)

// alone in the environment has the test binary answer one question.
const aloneVariable = "MIXED_TEST_ALONE"

func TestMain(m *testing.M) {
	if os.Getenv(aloneVariable) != "" {
		if err := Answer(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

var seedSchemas = []corpus.Schema{{Name: "seed", JSON: []byte(`{"type":"object","properties":{"spec":{"type":"object","required":["a"],"properties":{"a":{"type":"integer","enum":[0,1,2],"default":0},"b":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string","maxLength":5}},"c":{"type":"object","properties":{"d":{"type":"number","minimum":1},"e":{"type":"string","pattern":"^a+$"}}}}}}}`)}}

// TestSchemasAnswerAsIfAlone is the comparison with few schemas.
func TestSchemasAnswerAsIfAlone(t *testing.T) {
	t.Setenv(aloneVariable, "1")
	counts, err := Run(context.Background(), seedSchemas, Config{Seed: 1, Families: 5, Command: []string{os.Args[0]}, Progress: testLog{t}})
	if err != nil {
		t.Fatal(err)
	}
	if counts.Differences > 0 || counts.Answers < 10_000 || counts.Refused*3 > counts.Schemas {
		t.Error(&counts)
	}
	t.Log(&counts)
}

type testLog struct{ t *testing.T }

func (l testLog) Write(b []byte) (int, error) {
	l.t.Logf("%s", b)
	return len(b), nil
}

// TestDifferencesAreFound: an answer that is not the one of the process alone is counted.
func TestDifferencesAreFound(t *testing.T) {
	q := &Question{Schema: []byte(`{"type":"object","properties":{"x":{"type":"number","enum":[1]}}}`), Objects: [][]byte{[]byte(`{"x":1.5}`)}}
	twin := &Question{Schema: []byte(`{"type":"object","properties":{"x":{"type":"number","enum":[1.0]}}}`), Objects: q.Objects}
	a, b := q.compile(), twin.compile()
	r := runner{questions: []*Question{q, twin}, want: [][]string{a.answers(), b.answers()}}
	r.compare(0, a.answers())
	if r.counts.Differences != 0 || r.counts.Answers != 2 {
		t.Errorf("the same answers: %+v", r.counts)
	}
	r.compare(0, b.answers())
	if r.counts.Differences != 1 {
		t.Errorf("a twin's answers: %+v", r.counts)
	}
	r.compare(0, b.answers()[:1])
	if r.counts.Differences != 2 {
		t.Errorf("an answer is missing: %+v", r.counts)
	}
}

// TestProcessThatFails: a process that does not answer is an error, not an answer.
func TestProcessThatFails(t *testing.T) {
	if _, err := Run(context.Background(), nil, Config{Command: []string{"false"}}); err == nil {
		t.Error("no error")
	}
}
