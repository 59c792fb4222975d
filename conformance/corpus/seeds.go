package corpus

import (
	"context"
	"embed"
	"fmt"
	"path"
	"strings"
)

// seedFiles are schemas of this repository: small, and each about one feature.
//
//go:embed seeds/*.json
var seedFiles embed.FS

// Seeds returns the schemas that are part of the repository, each with the name of its file.
func Seeds() ([]Schema, error) {
	files, err := seedFiles.ReadDir("seeds")
	if err != nil {
		return nil, err
	}
	var list []Schema
	for _, f := range files {
		text, err := seedFiles.ReadFile(path.Join("seeds", f.Name()))
		if err != nil {
			return nil, err
		}
		list = append(list, Schema{Name: f.Name(), Source: seedSource{}.name(), JSON: text, Copies: 1})
	}
	return list, nil
}

// seedSource has CRDs around the seeds. Each has a group of its own, and two versions: another one with the schema of
// its neighbor.
type seedSource struct{}

// SeedSource is the name of the source whose CRDs are made around the seeds.
const SeedSource = "testdata"

func (seedSource) name() string { return SeedSource }

func (s seedSource) load(context.Context, Options, func(string, ...any)) (*part, error) {
	list, err := Seeds()
	if err != nil {
		return nil, err
	}
	var docs []document
	for i, seed := range list {
		name := strings.TrimSuffix(seed.Name, ".json")
		next := list[(i+1)%len(list)]
		docs = append(docs, document{seed.Name, fmt.Appendf(nil, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",`+
			`"metadata":{"name":"trees.%[1]s.orchard.example"},"spec":{"group":"%[1]s.orchard.example","scope":"Namespaced",`+
			`"names":{"plural":"trees","singular":"tree","kind":"Tree","listKind":"TreeList"},"versions":[`+
			`{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":%[2]s}},`+
			`{"name":"v1beta1","served":true,"storage":false,"subresources":{"status":{}},"schema":{"openAPIV3Schema":%[3]s}}]}}`, name, seed.JSON, next.JSON)})
	}
	return convertAll(s.name(), docs), nil
}
