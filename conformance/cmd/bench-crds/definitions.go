package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/espalier-dev/espalier/conformance/corpus"
)

// A benchCRD is a CRD of the corpus, ready to be created in any group.
type benchCRD struct {
	group, plural, kind string
	version             string // one that is served
	metadata            map[string]any
	spec                map[string]json.RawMessage
}

// load returns the CRDs of the archive, one of every name.
func load(ctx context.Context) ([]*benchCRD, error) {
	set, err := corpus.Load(ctx, corpus.Options{NoModules: true})
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	var all []*benchCRD
	for _, d := range set.CRDs {
		if seen[d.Name] {
			continue
		}
		seen[d.Name] = true
		read, err := parse(d.JSON)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.Name, err)
		}
		all = append(all, read)
	}
	return all, nil
}

func parse(data []byte) (*benchCRD, error) {
	var crd struct {
		Metadata struct {
			Annotations, Labels map[string]string
		}
		Spec map[string]json.RawMessage
	}
	if err := json.Unmarshal(data, &crd); err != nil {
		return nil, err
	}
	// Conversion webhooks of the corpus are nowhere to be reached.
	delete(crd.Spec, "conversion")
	d := &benchCRD{spec: crd.Spec, metadata: map[string]any{"annotations": crd.Metadata.Annotations, "labels": crd.Metadata.Labels}}
	var names struct{ Plural, Kind string }
	var versions []struct {
		Name   string
		Served bool
	}
	for field, into := range map[string]any{"group": &d.group, "names": &names, "versions": &versions} {
		if err := json.Unmarshal(crd.Spec[field], into); err != nil {
			return nil, fmt.Errorf("spec.%s: %w", field, err)
		}
	}
	d.plural, d.kind = names.Plural, names.Kind
	for _, v := range versions {
		if v.Served {
			d.version = v.Name
		}
	}
	return d, nil
}

// in returns the same CRD in a group below another name; "" leaves the group as it is.
func (d *benchCRD) in(below string) *benchCRD {
	moved := *d
	if below != "" {
		moved.group = below + "." + d.group
	}
	return &moved
}

// body returns the CRD as it is sent.
func (d *benchCRD) body() ([]byte, error) {
	spec := make(map[string]any, len(d.spec))
	for field, value := range d.spec {
		spec[field] = value
	}
	spec["group"] = d.group
	metadata := map[string]any{"name": d.plural + "." + d.group}
	for field, value := range d.metadata {
		metadata[field] = value
	}
	return json.Marshal(map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": metadata, "spec": spec})
}

func (d *benchCRD) groupVersion() string { return "/apis/" + d.group + "/" + d.version }

func (d *benchCRD) collection() string { return d.groupVersion() + "/" + d.plural + "?limit=1" }

// protected reports groups whose CRDs need an approval that a copy cannot have.
func (d *benchCRD) protected() bool {
	return strings.HasSuffix(d.group, ".k8s.io") || strings.HasSuffix(d.group, ".kubernetes.io")
}
