package manifest_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/espalier-dev/espalier/crd/manifest"
)

const two = `kind: ConfigMap
apiVersion: v1
metadata: {name: a}
---
kind: List
apiVersion: v1
items:
- {kind: ConfigMap, apiVersion: v1, metadata: {name: b}}
`

// Standard input is a file like others.
func ExampleOpen() {
	file, err := manifest.Open(manifest.Stdin, strings.NewReader(two))
	if err != nil {
		log.Fatal(err)
	}
	documents, err := manifest.Parse(file)
	fmt.Println(len(documents), err)
	// Output:
	// 2 <nil>
}

func ExampleObjects() {
	file, err := manifest.Open(manifest.Stdin, strings.NewReader(two))
	if err != nil {
		log.Fatal(err)
	}
	objects, err := manifest.Objects(file)
	if err != nil {
		log.Fatal(err)
	}
	for _, o := range objects {
		place, _ := o.Locate("/metadata/name")
		fmt.Println(o.Kind, o.Name, "in line", place.Line)
	}
	// Output:
	// ConfigMap a in line 3
	// ConfigMap b in line 8
}

// Together with errors come the documents that can be read.
func ExampleParse() {
	file, err := manifest.Open(manifest.Stdin, strings.NewReader("a: [\n---\nb: 1\n"))
	if err != nil {
		log.Fatal(err)
	}
	documents, err := manifest.Parse(file)
	for _, d := range documents {
		fmt.Println(string(d.JSON))
	}
	fmt.Println(len(manifest.Errors(err)), "error")
	// Output:
	// {"b":1}
	// 1 error
}

func ExampleExpand() {
	dir, err := os.MkdirTemp("", "manifests-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	for _, name := range []string{"web.yaml", "web.json", "README.md", ".hidden.yaml"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			log.Fatal(err)
		}
	}
	files, err := manifest.Expand([]string{dir}, nil)
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range files {
		fmt.Println(filepath.Base(f))
	}
	// Output:
	// web.json
	// web.yaml
}
