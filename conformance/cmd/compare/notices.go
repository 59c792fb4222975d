package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/espalier-dev/espalier/conformance/mistakes"
)

// notices prints what each tool notices of each case.
func notices(ctx context.Context, tools []*tool, dir string) error {
	cases, err := mistakes.Cases()
	if err != nil {
		return err
	}
	fmt.Printf("\n| case | form | upstream |")
	for _, t := range tools {
		fmt.Printf(" %s |", t.name)
	}
	fmt.Printf("\n|---|---|---|%s\n", strings.Repeat("---|", len(tools)))
	counts := map[string]int{}
	for i := range cases {
		c := &cases[i]
		refused, err := mistakes.Upstream().Evaluate(c)
		if err != nil {
			return err
		}
		folder := filepath.Join(dir, fmt.Sprint(i))
		if err := writeCase(folder, c); err != nil {
			return err
		}
		verdict := "accepts"
		if len(refused) > 0 {
			verdict = "refuses"
		}
		counts[string(c.Form)+" "+verdict]++
		fmt.Printf("| %s | %s | %s |", c.Name, c.Form, verdict)
		for _, t := range tools {
			result, err := t.result(ctx, folder, c, len(refused) > 0)
			if err != nil {
				return err
			}
			counts[string(c.Form)+" "+t.name+" "+result]++
			fmt.Printf(" %s |", result)
		}
		fmt.Println()
	}
	summary(tools, counts)
	return nil
}

// The results of a tool.
const (
	noticed    = "noticed"
	missed     = "missed"
	falseAlarm = "false alarm"
	quiet      = "accepted"
	notItsJob  = "–"
)

func (t *tool) result(ctx context.Context, folder string, c *mistakes.Case, mistake bool) (string, error) {
	commands := t.commands(t, folder, c.Form)
	if len(commands) == 0 {
		return notItsJob, nil
	}
	reported := false
	for _, argv := range commands {
		var input []byte
		if t.input != nil {
			input = t.input(c)
		}
		out, found, _, err := t.run(ctx, argv, input)
		if err == nil && t.reports != nil {
			found, err = t.reports(out)
		}
		if err != nil {
			return "", fmt.Errorf("%s: %w", c.Name, err)
		}
		reported = reported || found
	}
	switch {
	case reported && mistake:
		return noticed, nil
	case reported:
		return falseAlarm, nil
	case mistake:
		return missed, nil
	}
	return quiet, nil
}

// summary prints and records how many cases of each form each tool gets right.
func summary(tools []*tool, counts map[string]int) {
	fmt.Printf("\n| form | tool | mistakes noticed | false alarms |\n|---|---|---:|---:|\n")
	for _, form := range []mistakes.Form{mistakes.Object, mistakes.Update, mistakes.CRD, mistakes.Change} {
		bad, good := counts[string(form)+" refuses"], counts[string(form)+" accepts"]
		figures.Set(string(form)+".mistakes", "%d", bad)
		figures.Set(string(form)+".correct", "%d", good)
		for _, t := range tools {
			of := string(form) + " " + t.name + " "
			if counts[of+notItsJob] > 0 {
				continue
			}
			figures.Set(string(form)+"."+t.name+".noticed", "%d", counts[of+noticed])
			figures.Set(string(form)+"."+t.name+".false", "%d", counts[of+falseAlarm])
			fmt.Printf("| %s | %s | %d of %d | %d of %d |\n", form, t.name, counts[of+noticed], bad, counts[of+falseAlarm], good)
		}
	}
}

func writeCase(folder string, c *mistakes.Case) error {
	files := map[string][]byte{crdFile: c.CRD, nextFile: c.Next, objectFile: c.Object, oldFile: c.Old}
	for name, text := range files {
		if text == nil {
			continue
		}
		if err := writeFile(filepath.Join(folder, name), text); err != nil {
			return err
		}
	}
	return writeSchemas(filepath.Join(folder, schemas), c.CRD)
}

func writeFile(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}

// crdDocument is what this command reads of a CRD.
type crdDocument struct {
	Spec struct {
		Group, Scope string
		Names        struct{ Kind string }
		Versions     []struct {
			Name    string
			Storage bool
			Schema  struct{ OpenAPIV3Schema json.RawMessage }
		}
	}
}

// writeSchemas converts a CRD for kubeconform, to the schemas that its script openapi2jsonschema makes: below the root, objects with
// properties have no others, and the format int-or-string is both types. Unlike the script, it takes a property that is called properties for
// one.
func writeSchemas(folder string, crd []byte) error {
	var d crdDocument
	if err := json.Unmarshal(crd, &d); err != nil {
		return err
	}
	for _, v := range d.Spec.Versions {
		if v.Schema.OpenAPIV3Schema == nil {
			continue
		}
		var root map[string]any
		decoder := json.NewDecoder(bytes.NewReader(v.Schema.OpenAPIV3Schema))
		decoder.UseNumber()
		if err := decoder.Decode(&root); err != nil {
			return err
		}
		convertBelow(root)
		text, err := json.Marshal(root)
		if err != nil {
			return err
		}
		if err := writeFile(filepath.Join(folder, d.Spec.Group, strings.ToLower(d.Spec.Names.Kind)+"_"+v.Name+".json"), text); err != nil {
			return err
		}
	}
	return nil
}

// convertBelow converts what is below a schema.
func convertBelow(schema map[string]any) {
	for key, below := range schema {
		properties, ok := below.(map[string]any)
		if key != "properties" || !ok {
			schema[key] = converted(below)
			continue
		}
		for name, property := range properties { // names, not keywords: one may be called properties
			properties[name] = converted(property)
		}
	}
}

func converted(value any) any {
	switch v := value.(type) {
	case []any:
		for i := range v {
			v[i] = converted(v[i])
		}
	case map[string]any:
		if v["format"] == "int-or-string" {
			return map[string]any{"oneOf": []any{map[string]any{"type": "string"}, map[string]any{"type": "integer"}}}
		}
		convertBelow(v)
		_, has := v["properties"]
		if _, open := v["additionalProperties"]; has && !open {
			v["additionalProperties"] = false
		}
	}
	return value
}
