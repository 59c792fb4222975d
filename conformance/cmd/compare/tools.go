package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/conformance/mistakes"
)

// A tool is one of the programs.
type tool struct {
	name, program, home string
	// commands are the command lines for a case in a folder, none if the case is not the tool's job.
	commands func(t *tool, folder string, form mistakes.Form) [][]string
	input    func(c *mistakes.Case) []byte // standard input, if it reads the case there
	// reports says whether a run that ended well reports something; nil if the exit status says it.
	reports func(out []byte) (bool, error)
	// folder is the command line for all objects of a folder, nil if the tool does not read objects; files are those that it reports.
	folder func(t *tool, inputs string) []string
	files  func(out []byte) (map[string]bool, error)
}

// The files and folders of a case, and of the measurement.
const (
	crdFolder  = "crds"
	schemas    = "schemas" // for kubeconform
	crdFile    = crdFolder + "/crd.json"
	nextFile   = "next.json"
	objectFile = "object.json"
	oldFile    = "old.json"
)

// buildTools builds the tools as the modules of this folder pin them, and espalier as it is now.
func buildTools(ctx context.Context, built, home string) ([]*tool, error) {
	root, err := launch.Root()
	if err != nil {
		return nil, err
	}
	ours, err := launch.BuildCommandLine(ctx, built)
	if err != nil {
		return nil, err
	}
	tools := []*tool{
		{name: "espalier", program: ours, commands: espalierCommands, folder: espalierFolder, files: espalierFiles},
		{name: "kubeconform", commands: kubeconformCommands, folder: kubeconformFolder, files: kubeconformFiles},
		{name: "kubectl-validate", commands: kubectlCommands, folder: kubectlFolder, files: kubectlFiles},
		{name: "crdify", commands: crdifyCommands, input: crdifyInput, reports: crdifyReports},
	}
	packages := map[string]string{"kubeconform": "github.com/yannh/kubeconform/cmd/kubeconform", "kubectl-validate": "sigs.k8s.io/kubectl-validate", "crdify": "."}
	for _, t := range tools {
		t.home = home
		if t.program != "" {
			continue
		}
		t.program = filepath.Join(built, t.name)
		module := filepath.Join(root, "conformance", strings.ReplaceAll(t.name, "-", ""))
		cmd := exec.CommandContext(ctx, "go", "build", "-C", module, "-o", t.program, packages[t.name])
		cmd.Env = append(os.Environ(), "GOWORK=off")
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("building %s failed: %w\n%s", t.name, err, out)
		}
	}
	return tools, nil
}

// cost is what a run took.
type cost struct {
	elapsed, cpu time.Duration
	memory       int64 // peak, in bytes
}

// run runs the tool. It reports whether the tool says by exit status 1 that it has found something.
func (t *tool) run(ctx context.Context, argv []string, input []byte) (out []byte, found bool, took cost, err error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, t.program, argv...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), &stdout, &stderr
	cmd.Env = append(os.Environ(), "HOME="+t.home, "KUBECONFIG="+filepath.Join(t.home, "no-cluster"))
	began := time.Now()
	err = cmd.Run()
	took.elapsed = time.Since(began)
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
		return nil, false, took, fmt.Errorf("%s %s failed: %w: %s", t.name, strings.Join(argv, " "), err, tail(stderr.Bytes()))
	}
	took.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		took.memory = usage.Maxrss << 10
	}
	return stdout.Bytes(), err != nil, took, nil
}

func tail(text []byte) []byte { return text[max(0, len(text)-2000):] }

func espalierCommands(_ *tool, folder string, form mistakes.Form) [][]string {
	at := func(name string) string { return filepath.Join(folder, name) }
	validate := []string{"validate", "--config", "none", "--fail-on", "error", "--crd", at(crdFolder), at(objectFile)}
	switch form {
	case mistakes.Object:
		return [][]string{validate}
	case mistakes.Update:
		return [][]string{append(validate, "--old", at(oldFile))}
	case mistakes.CRD:
		return [][]string{{"check", "--config", "none", "--severity", "error", at(crdFile)}}
	}
	return [][]string{
		{"diff", "--config", "none", at(crdFile), at(nextFile)},
		{"check", "--config", "none", "--severity", "error", at(nextFile), "--old", at(crdFile)},
	}
}

func espalierFolder(_ *tool, inputs string) []string {
	return []string{"validate", "--config", "none", "--severity", "error", "-o", "json", "--crd", filepath.Join(inputs, crdFolder), filepath.Join(inputs, "objects")}
}

func espalierFiles(out []byte) (map[string]bool, error) {
	var report struct{ Diagnostics []struct{ File string } }
	if err := json.Unmarshal(out, &report); err != nil {
		return nil, err
	}
	found := map[string]bool{}
	for _, d := range report.Diagnostics {
		found[filepath.Base(d.File)] = true
	}
	return found, nil
}

func kubeconformArguments(folder string) []string {
	return []string{"-strict", "-schema-location", filepath.Join(folder, schemas) + "/{{.Group}}/{{.ResourceKind}}_{{.ResourceAPIVersion}}.json"}
}

func kubeconformCommands(_ *tool, folder string, form mistakes.Form) [][]string {
	if form != mistakes.Object {
		return nil
	}
	return [][]string{append(kubeconformArguments(folder), filepath.Join(folder, objectFile))}
}

func kubeconformFolder(_ *tool, inputs string) []string {
	return append(kubeconformArguments(inputs), "-output", "json", filepath.Join(inputs, "objects"))
}

func kubeconformFiles(out []byte) (map[string]bool, error) {
	var report struct {
		Resources []struct{ Filename, Status, Msg string }
	}
	if err := json.Unmarshal(out, &report); err != nil {
		return nil, err
	}
	found := map[string]bool{}
	for _, r := range report.Resources {
		if strings.Contains(r.Msg, "could not find schema") {
			return nil, fmt.Errorf("kubeconform: %s: %s", r.Filename, r.Msg)
		}
		found[filepath.Base(r.Filename)] = true
	}
	return found, nil
}

func kubectlCommands(_ *tool, folder string, form mistakes.Form) [][]string {
	switch form {
	case mistakes.Object:
		return [][]string{{"--local-crds", filepath.Join(folder, crdFolder), filepath.Join(folder, objectFile)}}
	case mistakes.CRD:
		return [][]string{{filepath.Join(folder, crdFile)}}
	}
	return nil
}

func kubectlFolder(_ *tool, inputs string) []string {
	return []string{"-o", "json", "--local-crds", filepath.Join(inputs, crdFolder), filepath.Join(inputs, "objects")}
}

func kubectlFiles(out []byte) (map[string]bool, error) {
	var report map[string][]struct{ Status, Message string }
	// Errors of the run may follow the report.
	if err := json.NewDecoder(bytes.NewReader(out)).Decode(&report); err != nil {
		return nil, err
	}
	found := map[string]bool{}
	for file, statuses := range report {
		for _, s := range statuses {
			if s.Status != "Success" {
				found[filepath.Base(file)] = true
			}
		}
	}
	return found, nil
}

func crdifyCommands(_ *tool, _ string, form mistakes.Form) [][]string {
	if form != mistakes.Change {
		return nil
	}
	return [][]string{{}}
}

func crdifyInput(c *mistakes.Case) []byte {
	return fmt.Appendf(nil, `{"old": %s, "new": %s}`, c.CRD, c.Next)
}

func crdifyReports(out []byte) (bool, error) {
	var answer struct{ Errors, Served []string }
	err := json.Unmarshal(out, &answer)
	return len(answer.Errors)+len(answer.Served) > 0, err
}
