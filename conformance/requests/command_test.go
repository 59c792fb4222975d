package requests_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// batch is what one call of the command line validates.
type batch struct {
	def   *testCRD
	verb  verb
	mode  string
	oldAs string // the version of the old objects
}

// batches are the requests by the call that validates them.
func batches(all []*request) map[batch][]*request {
	list := map[batch][]*request{}
	for _, r := range all {
		key := batch{def: r.def, verb: r.verb, mode: r.mode}
		if r.oldAs != nil {
			key.oldAs = r.oldAs.Name
		}
		list[key] = append(list[key], r)
	}
	return list
}

// diagnostic is what is read of the command line's report.
type diagnostic struct {
	Rule     string `json:"rule"`
	Severity string `json:"severity"`
	Message  string `json:"message"`
	File     string `json:"file"`
}

// arguments writes the files of a batch and returns the arguments that validate them.
func (b batch) arguments(t *testing.T, dir string, all []*request) []string {
	t.Helper()
	write := func(name string, text []byte) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	args := []string{"validate", "--config", "none", "--severity", "info", "-o", "json", "--field-validation", strings.ToLower(b.mode),
		"--crd", b.def.write(t, dir)}
	if b.verb != create {
		for _, old := range b.def.olds {
			write("old/"+old.name+".json", old.json[b.oldAs])
		}
		args = append(args, "--old", filepath.Join(dir, "old"))
	}
	if b.verb == status {
		args = append(args, "--subresource", "status")
	}
	for _, r := range all {
		write("new/"+r.file(), r.body)
	}
	return append(args, filepath.Join(dir, "new"))
}

func (r *request) file() string { return fmt.Sprintf("%05d.json", r.number) }

// validate has the command line answer the requests of a batch.
func (b batch) validate(t *testing.T, program, dir string, all []*request) {
	t.Helper()
	args := b.arguments(t, dir, all)
	var out, complaints bytes.Buffer
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); cmd.ProcessState == nil || cmd.ProcessState.ExitCode() > 1 {
		t.Errorf("espalier %s: %v\n%s", strings.Join(args, " "), err, &complaints)
		return
	}
	var report struct {
		Diagnostics []diagnostic `json:"diagnostics"`
	}
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		t.Errorf("espalier %s: %v", strings.Join(args, " "), err)
		return
	}
	byFile := map[string]*request{}
	for _, r := range all {
		byFile[r.file()] = r
	}
	for _, d := range report.Diagnostics {
		r := byFile[filepath.Base(d.File)]
		if r == nil {
			t.Errorf("a diagnostic is of none of the files: %+v", d)
			continue
		}
		r.cli.add(d)
	}
}

// add adds a diagnostic to the answer. What is only worth knowing is none.
func (a *answer) add(d diagnostic) {
	one := said{d.Message, d.Rule}
	a.raw += fmt.Sprintf("%s %s: %s\n", d.Severity, d.Rule, d.Message)
	switch d.Severity {
	case "error":
		a.refused = true
		a.errors = append(a.errors, one)
	case "warning":
		if !advice[d.Rule] {
			a.warnings = append(a.warnings, one)
		}
	default:
		a.infos = append(a.infos, d.Rule)
	}
}

// advice are checks that only the command line has: servers do not warn, since they accept the request as it is.
// The comparison still sees whether the command line predicts the rest correctly, in the findings about the object
// that is left.
var advice = map[string]bool{
	"namespace-ignored": true, // servers drop the namespace of a cluster-scoped object, and go on
	"status-ignored":    true, // servers drop a status that is not to be written here, and go on
}
