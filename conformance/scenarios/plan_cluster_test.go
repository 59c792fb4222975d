package scenarios

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// espalier plan says what a change does to the objects of a real server, as the real kubectl asks it. The numbers are the
// same whether the server plans itself or its objects are read.
func TestPlanWithCluster(t *testing.T) {
	k := harbour(t)
	w := newWorkstation(t, k.server.Kubeconfig)
	old := readFile(t, "testdata/boats.yaml")
	file := filepath.Join(w.home, "boats.yaml")
	var fleet strings.Builder
	for i := range 7 {
		fmt.Fprintf(&fleet, "---\napiVersion: harbour.example.com/v1\nkind: Boat\nmetadata: {name: boat-%d}\nspec: {owner: ada, colour: %s}\n", i, []string{"red", "green", "blue"}[i%3])
	}

	writeFile(t, file, old)
	w.exits(0, []string{boats + ": there are no objects"}, "plan", "-f", "boats.yaml")
	k.ok("create", "-f", write(t, "fleet.yaml", fleet.String()))
	w.exits(0, []string{boats + ": all 7 objects stay as they are"}, "plan", "-f", "boats.yaml")

	// Two are green, and all have berths from a default that was stored with them.
	writeFile(t, file, strings.NewReplacer("enum: [red, green, blue]", "enum: [red, blue]", "              length:\n                type: number\n", "              sails:\n                type: integer\n                default: 2\n",
		`            - rule: "!has(self.length) || self.length <= 12.0 * double(self.berths) + 12.0"`, `            - rule: "self.berths >= 0"`).Replace(old))
	w.exits(1, []string{
		boats + ": 2 of 7 objects are refused if they are created again, 5 change otherwise", "spec.colour (v1): 2 objects: default/boat-1, default/boat-4",
		`Unsupported value: "green": supported values: "red", "blue"`, "spec.sails (v1): 7 objects", "written by: kubectl-create (7)",
	}, "plan", "-f", "boats.yaml")
	w.exits(1, []string{"| **are refused if they are created again** | `spec.colour (v1)`"}, "plan", "-f", "boats.yaml", "-o", "markdown")

	// The server refuses the CRD.
	writeFile(t, file, strings.Replace(old, "  scope: Namespaced", "  scope: Cluster", 1))
	w.exits(1, []string{boats + ": the server refuses this change", "spec.scope: Invalid value: \"Cluster\": field is immutable"}, "plan", "-f", "boats.yaml")

	// A user who may read neither the CRD nor the objects.
	stranger := filepath.Join(w.home, "stranger")
	writeFile(t, stranger, kubeconfigOf(must[*rest.Config](t)(k.server.Client("stranger")), k.server.URL))
	w.exits(2, []string{"reading " + boats + " of the cluster of ", "Forbidden", "See that kubectl can read it: kubectl get crd " + boats}, "plan", "-f", "boats.yaml", "--kubeconfig", stranger)
}
