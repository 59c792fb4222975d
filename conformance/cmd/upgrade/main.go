package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/conformance/generate"
	"github.com/espalier-dev/espalier/conformance/releases"
	"github.com/espalier-dev/espalier/crd"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "upgrade:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	var (
		from    = flag.String("from", "", "the old release, as module@version")
		to      = flag.String("to", "", "the new release, as module@version")
		name    = flag.String("crd", "", "the name of the CRD")
		objects = flag.Int("objects", 1000, "objects to generate")
		version = flag.String("version", "", "that objects are stored in (default: the storage version of the old CRD)")
		seed    = flag.Uint64("seed", 1, "of the objects")
		out     = flag.String("out", "", "folder for old.json, new.json and objects.json")
	)
	flag.Parse()
	if *from == "" || *to == "" || *name == "" || *out == "" {
		return errors.New("-from, -to, -crd and -out are needed; see -help")
	}
	old, err := load(ctx, *from, *name)
	if err != nil {
		return err
	}
	now, err := load(ctx, *to, *name)
	if err != nil {
		return err
	}
	list, tried, err := write(old, *version, *objects, *seed)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(*out, 0o755); err != nil {
		return err
	}
	for file, data := range map[string][]byte{"old.json": old, "new.json": now, "objects.json": list} {
		if err := os.WriteFile(filepath.Join(*out, file), data, 0o600); err != nil {
			return err
		}
	}
	fmt.Printf("%s: %s to %s, %d objects (%d generated)\n", *name, *from, *to, *objects, tried)
	return nil
}

// load returns a CRD of a release.
func load(ctx context.Context, release, name string) ([]byte, error) {
	all, err := releases.Load(ctx, release, func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) })
	if err != nil {
		return nil, err
	}
	var known []string
	for _, c := range all {
		if c.Name == name {
			return withoutLabels(c.JSON)
		}
		known = append(known, c.Name)
	}
	return nil, fmt.Errorf("%s has no CRD %s, but %s", release, name, strings.Join(known, ", "))
}

// withoutLabels removes the labels of a CRD: in releases they are often templates.
func withoutLabels(data []byte) ([]byte, error) {
	var o map[string]any
	if err := json.Unmarshal(data, &o); err != nil {
		return nil, err
	}
	if metadata, ok := o["metadata"].(map[string]any); ok {
		delete(metadata, "labels")
	}
	return json.Marshal(o)
}

// write returns a list of objects that a version of the CRD accepts, and how many it took to get them.
func write(data []byte, version string, n int, seed uint64) (list []byte, tried int, err error) {
	d, err := crd.Parse(data)
	if err != nil {
		return nil, 0, err
	}
	defer d.Release()
	v := d.StorageVersion()
	if version != "" {
		v = d.Version(version)
	}
	if v == nil || v.Schema == nil {
		return nil, 0, errors.New("the old CRD has no such version, or no schema for it")
	}
	plan, err := generate.Compile(v.Schema)
	if err != nil {
		return nil, 0, err
	}
	schema, rules, err := v.Compile(espalier.CompileOptions{})
	if err != nil {
		return nil, 0, err
	}
	apiVersion := d.Group + "/" + v.Name
	out := bytes.NewBufferString(`{"apiVersion":"v1","kind":"List","items":[`)
	for kept := 0; kept < n; tried++ {
		if tried > 1000*n {
			return nil, tried, fmt.Errorf("only %d of %d generated objects are valid", kept, tried)
		}
		metadata := fmt.Sprintf(`{"name":"generated-%d"}`, kept)
		if d.Namespaced {
			metadata = fmt.Sprintf(`{"name":"generated-%d","namespace":"default"}`, kept)
		}
		object := plan.Append(nil, seed+uint64(tried), generate.Options{APIVersion: apiVersion, Kind: d.Kind, Compact: true, Metadata: metadata, Resolve: true})
		admitted, found, err := schema.Admit(object, espalier.AdmitOptions{Validate: espalier.ValidateOptions{Rules: rules}})
		if err != nil || len(found.Errors) > 0 {
			continue
		}
		if kept > 0 {
			out.WriteByte(',')
		}
		out.Write(admitted.Bytes)
		kept++
	}
	out.WriteString("]}\n")
	return out.Bytes(), tried, nil
}
