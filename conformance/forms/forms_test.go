package forms

import (
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/conformance/tree"
)

const schema = `{"type":"object","properties":{"spec":{"type":"object","properties":{"size":{"type":"integer","default":2.0},"default":{"type":"number","enum":[1.0,-0.0]}}}}}`

func TestWrap(t *testing.T) {
	for form, want := range map[Form][]string{
		{}:                                       {`"apiextensions.k8s.io/v1"`, `"default":2}`, `"enum":[1,0]`, `"versions":[{"name":"v1","served":true,"storage":true,"schema":`},
		{Beta: true}:                             {`/v1beta1"`, `"preserveUnknownFields":false`},
		{Beta: true, Shared: true, Single: true}: {`"validation":{"openAPIV3Schema":`, `"version":"v1"`},
		{Beta: true, Shared: true, Status: true}: {`"subresources":{"status":{}}`, `"versions":[{"name":"v1","served":true,"storage":true}]`},
		{Preserve: true, Cluster: true}:          {`"preserveUnknownFields":true`, `"scope":"Cluster"`, `"size":{"type":"integer"}`},
		{Scale: true}:                            {`"specReplicasPath":".spec.size"`, `"statusReplicasPath":".status.replicas"`},
	} {
		doc, err := form.Wrap([]byte(schema))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tree.Parse(doc); err != nil {
			t.Errorf("%s: %v", form, err)
		}
		for _, part := range want {
			if !strings.Contains(string(doc), part) {
				t.Errorf("%s: there is no %s in %s", form, part, doc)
			}
		}
	}
	if _, err := (Form{}).Wrap([]byte("{")); err == nil {
		t.Error("a schema that is not JSON was wrapped")
	}
}

func TestOfCoversAllForms(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(30000) {
		if f := Of(seed); f != Of(seed) {
			t.Fatalf("seed %d gives two forms", seed)
		}
		seen[Of(seed).String()] = true
	}
	for _, word := range []string{"v1", "v1beta1", "v1beta1 shared single preserving cluster status scale odd", "v1 preserving status"} {
		if !seen[word] {
			t.Errorf("no seed gives %s", word)
		}
	}
}
