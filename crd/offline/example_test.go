package offline_test

import (
	"fmt"
	"log"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-dev/espalier/crd/offline"
)

// A built-in kind is decoded and validated as kube-apiserver does it.
func ExampleFind() {
	kind := offline.Find(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
	object, refused, err := kind.Decode([]byte(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "Settings"}, "dat": {}}`), offline.Latest)
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range refused {
		fmt.Println(f, "- did you mean", f.Nearest)
	}
	for _, e := range kind.Create(object, "default").Errors {
		fmt.Println(e.Field, e.Type)
	}
	// Output:
	// unknown field "dat" - did you mean data
	// metadata.name Invalid value
}

func ExampleParseVersion() {
	version, err := offline.ParseVersion("v1.34.2")
	fmt.Println(version, err)
	// Output:
	// 1.34 <nil>
}
