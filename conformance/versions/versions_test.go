package versions

import (
	"bytes"
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write versions.json of crd/offline")

// releases are the last patches of the minor versions, the oldest first.
var releases = []struct {
	minor   int
	version string
}{{33, "v0.33.13"}, {34, "v0.34.13"}, {35, "v0.35.10"}, {36, "v0.36.6"}, {37, "v0.37.2"}}

// stable are the packages of stable versions.
var stable = regexp.MustCompile(`^[a-z]+/v[0-9]+$`)

// TestGoldenVersions compares versions.json with the Go types of five releases.
func TestGoldenVersions(t *testing.T) {
	since := map[string]map[string]int{} // by type and field; the field "" is the type itself
	known := map[string]bool{}
	for i, release := range releases {
		for name := range fields(t, download(t, release.version)) {
			if known[name] {
				continue
			}
			known[name] = true
			if i == 0 {
				continue
			}
			typeName, field, _ := strings.Cut(name, " ")
			if since[typeName] == nil {
				since[typeName] = map[string]int{}
			}
			since[typeName][field] = release.minor
		}
	}
	for _, fields := range since {
		if whole, ok := fields[""]; ok { // a new type has only new fields
			for name, minor := range fields {
				if name != "" && minor == whole {
					delete(fields, name)
				}
			}
		}
	}
	want, err := json.MarshalIndent(since, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	file := filepath.Join("..", "..", "crd", "offline", "versions.json")
	if *update {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("crd/offline/versions.json differs from the Go types of k8s.io/api: run `go test ./versions -update` in conformance")
	}
}

// download returns the folder of a release of k8s.io/api.
func download(t *testing.T, version string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", "k8s.io/api@"+version).Output()
	if err != nil {
		t.Fatalf("go mod download k8s.io/api@%s failed: %v: %s", version, err, out)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(out, &module); err != nil {
		t.Fatal(err)
	}
	return module.Dir
}

// fields returns the types of stable packages, as "core/v1.Pod ", and their fields, as "core/v1.Pod spec".
func fields(t *testing.T, dir string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*", "v*", "types*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no types: %v", dir, err)
	}
	found := map[string]bool{}
	for _, file := range files {
		folder, _ := filepath.Rel(dir, filepath.Dir(file))
		folder = filepath.ToSlash(folder)
		if !stable.MatchString(folder) || strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			fields, ok := spec.Type.(*ast.StructType)
			if !ok {
				return false
			}
			name := folder + "." + spec.Name.Name
			found[name+" "] = true
			for _, f := range fields.Fields.List {
				if tag := jsonName(f); tag != "" {
					found[name+" "+tag] = true
				}
			}
			return false
		})
	}
	return found
}

// jsonName is what a field is called in JSON; nothing if it is inlined or left out.
func jsonName(f *ast.Field) string {
	if f.Tag == nil {
		return ""
	}
	tag, err := strconv.Unquote(f.Tag.Value)
	if err != nil {
		return ""
	}
	name, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
	if name == "-" {
		return ""
	}
	return name
}
