package apitest

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
)

// Answer is a response of the server.
type Answer struct {
	tb       testing.TB
	Code     int
	Warnings []string // in quotes, without their code
	Body     []byte
	Object   map[string]any // the body, if it is an object in JSON
}

// Is fails the test unless the answer has the code.
func (a Answer) Is(code int) Answer {
	a.tb.Helper()
	if a.Code != code {
		a.tb.Fatalf("the answer is %d, not %d: %s", a.Code, code, a.Body)
	}
	return a
}

// Says fails the test unless the answer is a Status with the message.
func (a Answer) Says(message string) Answer {
	a.tb.Helper()
	if got := a.At("message"); got != message {
		a.tb.Fatalf("the message is\n%v\nnot\n%s", got, message)
	}
	return a
}

// Mentions fails the test unless the answer is a Status whose message has the
// text.
func (a Answer) Mentions(text string) Answer {
	a.tb.Helper()
	if got, _ := a.At("message").(string); !strings.Contains(got, text) {
		a.tb.Fatalf("the message is\n%s\nwithout\n%s\nin %s", got, text, a.Body)
	}
	return a
}

// Warns fails the test unless the answer has exactly these warnings.
func (a Answer) Warns(texts ...string) Answer {
	a.tb.Helper()
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = `"` + strings.ReplaceAll(text, `"`, `\"`) + `"`
	}
	if strings.Join(a.Warnings, "\n") != strings.Join(quoted, "\n") {
		a.tb.Fatalf("the warnings are %q, not %q", a.Warnings, quoted)
	}
	return a
}

// At returns the value at a dotted path, nil if there is none. Items of a list
// have their number as their name.
func (a Answer) At(path string) any {
	var value any = a.Object
	for name := range strings.SplitSeq(path, ".") {
		switch v := value.(type) {
		case map[string]any:
			value = v[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(v) {
				return nil
			}
			value = v[i]
		default:
			return nil
		}
	}
	return value
}

// Has fails the test unless the value at a dotted path equals, as JSON, the wanted
// one.
func (a Answer) Has(path string, want any) Answer {
	a.tb.Helper()
	got, err := json.Marshal(a.At(path))
	if err != nil {
		a.tb.Fatal(err)
	}
	wanted, err := json.Marshal(want)
	if err != nil {
		a.tb.Fatal(err)
	}
	if !bytes.Equal(got, wanted) {
		a.tb.Fatalf("%s is %s, not %s, in %s", path, got, wanted, a.Body)
	}
	return a
}
