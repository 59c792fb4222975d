package splice_test

import (
	"fmt"
	"log"

	"github.com/espalier-dev/espalier/crd/splice"
)

// Comments, order and quotes stay as they are.
func ExampleApply() {
	text, err := splice.Apply([]byte(`# the shop
spec:
  port: 8080 # behind the proxy
  host: 'example.com'
`), 0, []splice.Edit{{Op: splice.Set, Pointer: "/spec/port", Value: []byte("443")}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(string(text))
	// Output:
	// # the shop
	// spec:
	//   port: 443 # behind the proxy
	//   host: 'example.com'
}

func ExampleApplyAll() {
	text, err := splice.ApplyAll([]byte("a: 1\n---\na: 1\n"), map[int][]splice.Edit{
		0: {{Op: splice.Set, Pointer: "/a", Value: []byte("2")}},
		1: {{Op: splice.Insert, Pointer: "/b", Value: []byte("3")}},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(string(text))
	// Output:
	// a: 2
	// ---
	// a: 1
	// b: 3
}

func ExamplePatch() {
	patched, err := splice.Patch(map[string]any{"a": 1, "b": 2}, []splice.Edit{{Op: splice.Remove, Pointer: "/b"}})
	fmt.Println(patched, err)
	// Output:
	// map[a:1] <nil>
}
