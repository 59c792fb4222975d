package corpus

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"runtime"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/yaml"
)

// crd is as much of a CustomResourceDefinition, v1 or v1beta1, as it takes to reach the schemas.
type crd struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Version      string       `json:"version"`
		Validation   *validation  `json:"validation"`
		Subresources *subresource `json:"subresources"`
		Versions     []struct {
			Name         string       `json:"name"`
			Schema       *validation  `json:"schema"`
			Subresources *subresource `json:"subresources"`
		} `json:"versions"`
	} `json:"spec"`
}

type validation struct {
	OpenAPIV3Schema json.RawMessage `json:"openAPIV3Schema"`
}

type subresource struct {
	Status *struct{} `json:"status"`
}

func (s *subresource) status() bool { return s != nil && s.Status != nil }

// convertAll turns a source's files into entries, in the files' order, on as many cores as there are.
func convertAll(name string, docs []document) *part {
	type result struct {
		entries [][]entry // per CRD document
		sums    [][32]byte
		broken  bool
	}
	results := make([]result, len(docs))
	var workers errgroup.Group
	workers.SetLimit(runtime.GOMAXPROCS(0))
	for i := range docs {
		workers.Go(func() error {
			r := &results[i]
			for _, doc := range split(docs[i].data) {
				if !mentionsCRD(doc) {
					continue
				}
				entries, sum, err := convert(doc)
				if err != nil {
					r.broken = true
					continue
				}
				if len(entries) > 0 {
					r.entries = append(r.entries, entries)
					r.sums = append(r.sums, sum)
				}
			}
			return nil
		})
	}
	_ = workers.Wait() // there are no errors

	p := &part{source: Source{Name: name}}
	seen := map[[32]byte]bool{}
	for _, r := range results {
		if r.broken {
			p.source.Unparsed++
		}
		for i, entries := range r.entries {
			if seen[r.sums[i]] {
				continue
			}
			seen[r.sums[i]] = true
			p.entries = append(p.entries, entries...)
		}
	}
	p.count()
	return p
}

func (p *part) count() {
	p.source.CRDs, p.source.WithRules, p.source.Versions = 0, 0, len(p.entries)
	counted := false // whether the CRD at hand is among those with rules
	for _, e := range p.entries {
		if e.CRD != nil {
			p.source.CRDs++
			counted = false
		}
		if !counted && HasRules(e.JSON) {
			p.source.WithRules++
			counted = true
		}
	}
}

// HasRules reports whether a schema has x-kubernetes-validations.
func HasRules(schema []byte) bool {
	return bytes.Contains(schema, []byte(`"x-kubernetes-validations":[{`))
}

// split cuts a YAML stream at its document markers.
func split(data []byte) [][]byte {
	var docs [][]byte
	for _, d := range bytes.Split(append([]byte("\n"), data...), []byte("\n---")) {
		if len(bytes.TrimSpace(d)) > 0 {
			docs = append(docs, d)
		}
	}
	return docs
}

// convert reads one YAML document. A document that is no CRD yields nothing. The sum is that of its canonical JSON.
func convert(doc []byte) ([]entry, [32]byte, error) {
	js, err := yaml.YAMLToJSON(doc)
	if err != nil {
		return nil, [32]byte{}, err
	}
	var c crd
	if err := json.Unmarshal(js, &c); err != nil {
		if !bytes.Contains(js, []byte(`"kind":"CustomResourceDefinition"`)) {
			err = nil // something else that merely mentions CRDs and has members of other types
		}
		return nil, [32]byte{}, err
	}
	if c.Kind != "CustomResourceDefinition" {
		return nil, [32]byte{}, nil
	}
	var entries []entry
	add := func(version string, v *validation, sub *subresource) {
		if v == nil {
			v = c.Spec.Validation
		}
		if sub == nil {
			sub = c.Spec.Subresources
		}
		if v == nil || !bytes.HasPrefix(v.OpenAPIV3Schema, []byte("{")) {
			return
		}
		e := entry{Name: c.Metadata.Name + "/" + version, Status: sub.status(), JSON: bytes.Clone(v.OpenAPIV3Schema)}
		if len(entries) == 0 {
			e.CRD = js
		}
		entries = append(entries, e)
	}
	for _, v := range c.Spec.Versions {
		add(v.Name, v.Schema, v.Subresources)
	}
	if len(c.Spec.Versions) == 0 && c.Spec.Version != "" {
		add(c.Spec.Version, nil, nil)
	}
	return entries, sha256.Sum256(js), nil
}
