package conformance

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	"k8s.io/apimachinery/pkg/api/equality"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/conformance/oracle"
	"github.com/espalier-dev/espalier/crd/fix"
)

// betaCRDs are the CRDs of v1beta1 in testdata.
func betaCRDs(t *testing.T) [][]byte {
	t.Helper()
	data, err := os.ReadFile("testdata/fix/v1beta1/definitions.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var list [][]byte
	for text := range strings.SplitSeq(string(data), "\n---\n") {
		doc, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, doc)
	}
	return list
}

// TestFixUpgrade turns CRDs of v1beta1 into v1. Upstream accepts the result, and reads it as it reads the old one,
// but for the schemas where unknown fields were preserved.
func TestFixUpgrade(t *testing.T) {
	for i, doc := range betaCRDs(t) {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			r, err := fix.CRD(doc)
			if err != nil {
				t.Fatal(err)
			}
			if !r.Changed || cannotRule(r) != nil {
				t.Fatalf("not fixed: %+v", r.Notes)
			}
			if v := oracle.CRD(r.JSON, oracle.CRDOptions{}); v.Undecodable != nil || v.Panic != nil || len(v.Errors) > 0 {
				t.Fatalf("upstream does not accept the result: %+v\n%s", v, r.JSON)
			}
			if again, err := fix.CRD(r.JSON); err != nil || again.Changed {
				t.Errorf("fixing the result changes it again: %v %+v", err, again.Edits)
			}
			old, now := betaSpec(t, doc), stableSpec(t, r.JSON)
			preserved := old.PreserveUnknownFields != nil && *old.PreserveUnknownFields
			for _, spec := range []*apiextensions.CustomResourceDefinitionSpec{old, now} {
				spec.PreserveUnknownFields = nil
				if preserved {
					forgetSchemas(spec)
				}
			}
			if !equality.Semantic.DeepEqual(old, now) {
				t.Errorf("upstream reads the old CRD as\n%+v\nand the new one as\n%+v", old, now)
			}
			for _, v := range stable(t, r.JSON).Spec.Versions {
				if root := v.Schema.OpenAPIV3Schema; preserved && (root.XPreserveUnknownFields == nil || !*root.XPreserveUnknownFields) {
					t.Errorf("version %s no longer preserves unknown fields", v.Name)
				}
			}
			said := slices.ContainsFunc(r.Notes, func(n fix.Note) bool { return n.Check == "preserve-unknown-fields" || n.Check == "schema-required" })
			if preserved != said {
				t.Errorf("unknown fields were preserved: %v, but the notes are %+v", preserved, r.Notes)
			}
		})
	}
}

func forgetSchemas(spec *apiextensions.CustomResourceDefinitionSpec) {
	spec.Validation = nil
	for i := range spec.Versions {
		spec.Versions[i].Schema = nil
	}
}

// betaSpec is the internal form of a CRD of v1beta1, with what stands for all versions in each of them.
func betaSpec(t *testing.T, doc []byte) *apiextensions.CustomResourceDefinitionSpec {
	t.Helper()
	var crd v1beta1.CustomResourceDefinition
	if err := kjson.UnmarshalCaseSensitivePreserveInts(doc, &crd); err != nil {
		t.Fatal(err)
	}
	v1beta1.SetObjectDefaults_CustomResourceDefinition(&crd)
	var internal apiextensions.CustomResourceDefinition
	if err := v1beta1.Convert_v1beta1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(&crd, &internal, nil); err != nil {
		t.Fatal(err)
	}
	// There and back, since only v1 knows where everything belongs.
	var v1 apiextensionsv1.CustomResourceDefinition
	if err := apiextensionsv1.Convert_apiextensions_CustomResourceDefinition_To_v1_CustomResourceDefinition(&internal, &v1, nil); err != nil {
		t.Fatal(err)
	}
	return internalSpec(t, &v1)
}

func stable(t *testing.T, doc []byte) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	var crd apiextensionsv1.CustomResourceDefinition
	if strict, err := kjson.UnmarshalStrict(doc, &crd); err != nil || len(strict) > 0 {
		t.Fatalf("the result has what v1 does not know: %v %v", err, strict)
	}
	apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(&crd)
	return &crd
}

func stableSpec(t *testing.T, doc []byte) *apiextensions.CustomResourceDefinitionSpec {
	t.Helper()
	return internalSpec(t, stable(t, doc))
}

func internalSpec(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) *apiextensions.CustomResourceDefinitionSpec {
	t.Helper()
	var internal apiextensions.CustomResourceDefinition
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(crd, &internal, nil); err != nil {
		t.Fatal(err)
	}
	return &internal.Spec
}
