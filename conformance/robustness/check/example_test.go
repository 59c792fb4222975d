package check_test

import (
	"fmt"

	"github.com/espalier-dev/espalier/conformance/robustness/check"
	"github.com/espalier-dev/espalier/conformance/robustness/history"
)

// A client is told that its patch was done, and etcd does not have it.
func ExampleAll() {
	created := history.Item{Name: "ns/a", UID: "u", Log: []string{"c1"}}
	patched := history.Item{Name: "ns/a", UID: "u", Revision: 6, Log: []string{"c1", "p1"}}
	h := &history.History{
		Operations: []history.Operation{
			{Verb: history.Create, Key: "ns/a", ID: "c1", Sent: created, Call: 1, Return: 2, Outcome: history.Unknown},
			{Verb: history.Patch, Key: "ns/a", ID: "p1", Mode: "json", Call: 3, Return: 4, Outcome: history.Done, Got: patched},
		},
		Writes: []history.Write{{Revision: 5, Key: "things/ns/a", Created: true, Item: created}},
	}
	for _, v := range check.All(h) {
		fmt.Println(v)
	}
	// Output:
	// log/lost things/ns/a: patch ns/a p1 (json) was acknowledged at revision 6 and is not in etcd's log [operations 1]
}
