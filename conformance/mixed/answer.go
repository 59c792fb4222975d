package mixed

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/conformance/engine"
	"github.com/espalier-dev/espalier/conformance/oracle"
)

// A Question is a schema and the objects that it is asked about.
type Question struct {
	Schema  []byte
	Objects [][]byte
}

// asked is a schema that has been compiled for its question.
type asked struct {
	q       *Question
	checked string // about the schema
	schema  *engine.Schema
	err     error // why there is none
}

// compile checks and compiles the schema.
func (q *Question) compile() asked {
	v := engine.Check(q.Schema, false)
	a := asked{q: q, checked: v.String()}
	a.schema, a.err = engine.Compile(q.Schema)
	return a
}

// answers returns what the engine says about the schema and its objects: an answer for the schema, and one for each
// object.
func (a *asked) answers() []string {
	again := engine.Check(a.q.Schema, false)
	list := []string{fmt.Sprintf("%s\ncompiled: %v\nchecked again: %s", a.checked, a.err, again.String())}
	if a.err != nil {
		return list
	}
	var old []byte
	for _, object := range a.q.Objects {
		var b strings.Builder
		normalized := a.schema.Normalize(object, oracle.Request)
		fmt.Fprintln(&b, "normalized:", normalized.String())
		if normalized.Err == nil {
			out, v := a.schema.Admit(object, oracle.ValidateOptions{})
			fmt.Fprintf(&b, "admitted: %s, %s\n", out, v.String())
			v = a.schema.Validate(normalized.Bytes, oracle.ValidateOptions{})
			fmt.Fprintln(&b, "created:", v.String())
			if old != nil {
				v = a.schema.Validate(normalized.Bytes, oracle.ValidateOptions{Old: old, Ratchet: true})
				fmt.Fprintln(&b, "updated:", v.String())
			}
			old = normalized.Bytes
		}
		list = append(list, b.String())
	}
	return list
}

// Answer is all that a process does which has compiled no other schema.
func Answer(in io.Reader, out io.Writer) error {
	var q Question
	if err := json.NewDecoder(in).Decode(&q); err != nil {
		return err
	}
	a := q.compile()
	return json.NewEncoder(out).Encode(a.answers())
}

// patience is how long such a process may take. Most need a tenth of a second.
const patience = 2 * time.Minute

// alone asks a new process.
func alone(ctx context.Context, command []string, q *Question) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	in, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	var out, complaints bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), &out, &complaints
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, complaints.Bytes())
	}
	var answers []string
	return answers, json.Unmarshal(out.Bytes(), &answers)
}
