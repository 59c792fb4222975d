package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/espalier-dev/espalier/conformance/kinds"
	"github.com/espalier-dev/espalier/conformance/launch"
)

// cost is what a run of a program took.
type cost struct {
	elapsed, cpu time.Duration
	memory       int64 // the most that was resident, in bytes
}

func (c cost) String() string {
	return fmt.Sprintf("%.2f s, %.2f s of CPU, %d MB", c.elapsed.Seconds(), c.cpu.Seconds(), c.memory>>20)
}

// measured runs a program that says by exit status 1 that it has found something.
func measured(cmd *exec.Cmd) (string, cost, error) {
	var out, failed bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &failed
	began := time.Now()
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
		return "", cost{}, fmt.Errorf("%s failed: %w: %s", filepath.Base(cmd.Path), err, &failed)
	}
	c := cost{elapsed: time.Since(began), cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		c.memory = usage.Maxrss << 10
	}
	return out.String(), c, nil
}

// kubeconform validates the files with kubeconform. Its schemas are the server's, in the form that its authors publish. It returns the
// files that it reports.
func kubeconform(ctx context.Context, dir, folder string, client *kinds.Client, samples []kinds.Sample) (map[string]bool, cost, error) {
	schemas := filepath.Join(dir, "schemas")
	if err := writeSchemas(ctx, schemas, client, samples); err != nil {
		return nil, cost{}, err
	}
	root, err := launch.Root()
	if err != nil {
		return nil, cost{}, err
	}
	program := filepath.Join(dir, "kubeconform")
	build := exec.CommandContext(ctx, "go", "build", "-C", filepath.Join(root, "conformance", "kubeconform"), "-o", program, "github.com/yannh/kubeconform/cmd/kubeconform")
	build.Env = append(os.Environ(), "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, cost{}, fmt.Errorf("building kubeconform failed: %w\n%s", err, out)
	}
	out, took, err := measured(exec.CommandContext(ctx, program, "-strict", "-output", "json", "-schema-location", schemas+"/{{.Group}}/{{.ResourceAPIVersion}}/{{.ResourceKind}}.json", folder))
	if err != nil {
		return nil, cost{}, err
	}
	var report struct {
		Resources []struct{ Filename, Status, Msg string }
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		return nil, cost{}, err
	}
	found, unknown := map[string]bool{}, 0
	for _, r := range report.Resources {
		if strings.Contains(r.Msg, "could not find schema") {
			unknown++ // the object says its kind twice, in keys of different case
		}
		found[filepath.Base(r.Filename)] = true
	}
	if unknown > len(samples)/100 {
		return nil, cost{}, fmt.Errorf("kubeconform has no schema for %d objects", unknown)
	}
	return found, took, nil
}

// writeSchemas writes a folder of JSON schemas: a file of types for each version, and one for each kind that refers to it.
func writeSchemas(ctx context.Context, folder string, client *kinds.Client, samples []kinds.Sample) error {
	written := map[string]bool{}
	for _, s := range samples {
		if written[s.Kind.ID] {
			continue
		}
		written[s.Kind.ID] = true
		at := filepath.Join(folder, cmp.Or(s.Kind.Group, s.Kind.Version), s.Kind.Version) // kubeconform takes v1 for the group of v1
		if !written[at] {
			written[at] = true
			document, err := client.OpenAPI(ctx, s.Kind)
			if err != nil {
				return err
			}
			if err := writeTypes(at, document); err != nil {
				return err
			}
		}
		ref := fmt.Sprintf(`{"$ref": "types.json#/definitions/%s"}`, s.Kind.Schema.Name)
		if err := os.WriteFile(filepath.Join(at, strings.ToLower(s.Kind.Resource.Kind)+".json"), []byte(ref), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// writeTypes writes the types of an OpenAPI document as kubeconform's authors publish them: no other fields than those of the schema, and
// null in place of all fields that are not required.
func writeTypes(folder string, document []byte) error {
	var d struct {
		Components struct{ Schemas map[string]any }
	}
	if err := json.Unmarshal(bytes.ReplaceAll(document, []byte("#/components/schemas/"), []byte("#/definitions/")), &d); err != nil {
		return err
	}
	for _, schema := range d.Components.Schemas {
		strict(schema)
	}
	text, err := json.Marshal(map[string]any{"definitions": d.Components.Schemas})
	if err != nil {
		return err
	}
	return errors.Join(os.MkdirAll(folder, 0o755), os.WriteFile(filepath.Join(folder, "types.json"), text, 0o600))
}

func strict(value any) {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			strict(item)
		}
	case map[string]any:
		properties, ok := v["properties"].(map[string]any)
		if _, open := v["additionalProperties"]; ok && !open {
			v["additionalProperties"] = false
		}
		required, _ := v["required"].([]any)
		for _, below := range v {
			strict(below)
		}
		for name, property := range properties {
			if !slices.Contains(required, any(name)) {
				properties[name] = map[string]any{"anyOf": []any{map[string]any{"type": "null"}, property}}
			}
		}
	}
}

// contrast prints what the two programs find of what the server refuses.
func contrast(samples []kinds.Sample, refused, ours, theirs map[string]bool, tookOurs, tookTheirs cost) {
	var bad, good, oursBad, oursGood, theirsBad, theirsGood int
	count := func(found bool, n *int) {
		if found {
			*n++
		}
	}
	for _, s := range samples {
		file := name(s)
		if refused[file] {
			bad++
			count(ours[file], &oursBad)
			count(theirs[file], &theirsBad)
		} else {
			good++
			count(ours[file], &oursGood)
			count(theirs[file], &theirsGood)
		}
	}
	fmt.Printf("offline: of %d objects that the server refuses, espalier reports %d, kubeconform %d; of %d that it accepts, %d and %d; espalier took %s, kubeconform %s\n",
		bad, oursBad, theirsBad, good, oursGood, theirsGood, tookOurs, tookTheirs)
}
