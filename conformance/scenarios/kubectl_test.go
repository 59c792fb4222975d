package scenarios

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"
)

const boats = "boats.harbour.example.com"

// harbour gives the shared server the CRD of boats until the end of the test.
func harbour(t *testing.T) *kubectl {
	t.Helper()
	needsDiscovery(t)
	k := newKubectl(t, common(t))
	k.install("boats.yaml", boats)
	t.Cleanup(func() { removeCRD(t, k.server, boats) })
	return k
}

func TestKubectlKnowsTheResource(t *testing.T) {
	k := harbour(t)
	k.says([]string{"boats", "bt", "harbour.example.com/v1", "true", "Boat"}, "api-resources", "--api-group=harbour.example.com")
	k.says([]string{"customresourcedefinitions", "crd,crds", "apiextensions.k8s.io/v1"}, "api-resources")
	k.says([]string{"delete,deletecollection,get,list,patch,create,update,watch", "fleet"}, "api-resources", "-o", "wide", "--api-group=harbour.example.com")
	k.says([]string{"apiextensions.k8s.io/v1\n", "harbour.example.com/v1\n"}, "api-versions")
	k.says([]string{"GROUP:      harbour.example.com", "KIND:       Boat", "VERSION:    v1", "A boat that has a place in the harbour.", "spec\t<Object> -required-", "metadata\t<ObjectMeta>"}, "explain", "boats")
	k.says([]string{"FIELD: colour <string>", "Of the hull.", "ENUM:", "red"}, "explain", "boat.spec.colour")
	k.says([]string{"crew\t<[]Object>", "rank\t<string>", "berths\t<integer>"}, "explain", "bt", "--recursive")
	k.says([]string{"KIND:       CustomResourceDefinition", "spec\t<CustomResourceDefinitionSpec>"}, "explain", "crd")
	k.says([]string{"NAME", "CREATED AT", boats}, "get", "crd")
}

func TestKubectlReadsAndWrites(t *testing.T) {
	k := harbour(t)
	k.says([]string{"No resources found in default namespace."}, "get", "boats")
	k.says([]string{"boat.harbour.example.com/albatros created (server dry run)"}, "apply", "-f", "albatros.yaml", "--dry-run=server")
	k.fails([]string{`Error from server (NotFound): boats.harbour.example.com "albatros" not found`}, "get", "boat", "albatros")
	k.says([]string{"boat.harbour.example.com/albatros created"}, "apply", "-f", "albatros.yaml")
	k.says([]string{"boat.harbour.example.com/albatros unchanged"}, "apply", "-f", "albatros.yaml")
	k.says([]string{"NAME       OWNER   COLOUR   AGE\nalbatros   ada     red"}, "get", "bt")
	k.says([]string{"NAME       OWNER   COLOUR   PHASE   AGE"}, "get", "boat/albatros", "-o", "wide")
	k.says([]string{"NAMESPACE", "default     albatros"}, "get", "fleet", "-A")
	k.says([]string{"  berths: 1\n  colour: red\n  crew:\n  - name: grace\n    rank: sailor\n  length: 9.5\n  owner: ada\n"}, "get", "bt", "albatros", "-o", "yaml")
	k.says([]string{"ada 9.5"}, "get", "bt", "albatros", "-o", "jsonpath={.spec.owner} {.spec.length}")
	k.says([]string{"N          C\nalbatros   red\n"}, "get", "bt", "-o", "custom-columns=N:.metadata.name,C:.spec.colour")
	k.says([]string{"boat.harbour.example.com/albatros\n"}, "get", "bt", "-o", "name", "-l", "kind=sail")
	k.says([]string{"albatros   9.5"}, "get", "bt", "--sort-by=.spec.length", "-o", "custom-columns=N:.metadata.name,L:.spec.length")
	k.says([]string{"No resources found"}, "get", "bt", "-l", "kind=motor")
	k.says([]string{"Name:         albatros", "API Version:  harbour.example.com/v1", "Owner:   ada", "Events:"}, "describe", "boat", "albatros")
	k.says([]string{"boat.harbour.example.com/albatros labeled"}, "label", "boat", "albatros", "season=summer")
	k.says([]string{"boat.harbour.example.com/albatros annotated"}, "annotate", "boat", "albatros", "note=x")
	k.fails([]string{`The Boat "albatros" is invalid: `, `* spec.colour: Unsupported value: "pink": supported values: "red", "green", "blue"`},
		"patch", "boat", "albatros", "--type=merge", "-p", `{"spec":{"colour":"pink"}}`)
	k.fails([]string{"too long for its berths"}, "patch", "boat", "albatros", "--type=merge", "-p", `{"spec":{"length":100}}`)
	k.says([]string{`boat.harbour.example.com "albatros" deleted`}, "delete", "-f", "albatros.yaml")
	k.fails([]string{"NotFound"}, "get", "boat", "albatros")
	k.says([]string{`customresourcedefinition.apiextensions.k8s.io "` + boats + `" deleted`}, "delete", "crd", boats)
	k.fails([]string{"the server could not find the requested resource"}, "get", "boats")
	// One that has not kept what it discovered before.
	newKubectl(t, k.server).fails([]string{`the server doesn't have a resource type "boats"`}, "get", "boats")
}

func TestKubectlPatches(t *testing.T) {
	k := harbour(t)
	k.ok("create", "-f", "albatros.yaml")
	k.fails([]string{"AlreadyExists"}, "create", "-f", "albatros.yaml")
	k.says([]string{"patched"}, "patch", "boat", "albatros", "--type=merge", "-p", `{"spec":{"colour":"green"}}`)
	k.says([]string{"patched (no change)"}, "patch", "boat", "albatros", "--type=merge", "-p", `{"spec":{"colour":"green"}}`)
	k.says([]string{"patched"}, "patch", "boat", "albatros", "--type=json", "-p", `[{"op":"test","path":"/spec/colour","value":"green"},{"op":"add","path":"/spec/crew/-","value":{"name":"joan"}}]`)
	k.says([]string{"green grace,joan,sailor,sailor"}, "get", "boat", "albatros", "-o", "jsonpath={.spec.colour} {.spec.crew[0].name},{.spec.crew[1].name},{.spec.crew[0].rank},{.spec.crew[1].rank}")
	k.fails([]string{"The request is invalid: the server rejected our request due to an error in our request"}, "patch", "boat", "albatros", "--type=json", "-p", `[{"op":"test","path":"/spec/colour","value":"red"}]`)
	k.fails([]string{"the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"},
		"patch", "boat", "albatros", "--type=strategic", "-p", `{"spec":{"colour":"red"}}`)
	k.says([]string{"3"}, "get", "boat", "albatros", "-o", "jsonpath={.metadata.generation}")
	k.says([]string{"boat.harbour.example.com/albatros replaced"}, "replace", "-f", "albatros.yaml")
}

func TestKubectlEditsAndDiffs(t *testing.T) {
	k := harbour(t)
	k.ok("apply", "-f", "albatros.yaml")
	editor := write(t, "editor", "#!/bin/sh\nsed -i 's/colour: red/colour: green/' \"$1\"\n")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := k.command(ctx, "edit", "boat", "albatros")
	cmd.Env = append(cmd.Env, "KUBE_EDITOR="+editor)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "boat.harbour.example.com/albatros edited") {
		t.Errorf("edit: %v\n%s", err, out)
	}
	if out, code := k.do("diff", "-f", "albatros.yaml"); code != 1 || !strings.Contains(out, "-  colour: green\n+  colour: red\n") {
		t.Errorf("diff: exit code %d\n%s", code, out)
	}
	k.says([]string{"configured"}, "apply", "-f", "albatros.yaml")
	if out, code := k.do("diff", "-f", "albatros.yaml"); code != 0 {
		t.Errorf("diff after apply: exit code %d\n%s", code, out)
	}
}

func TestKubectlGetWatch(t *testing.T) {
	k := harbour(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	k.ok("apply", "-f", "albatros.yaml")
	cmd := k.command(ctx, "get", "boats", "-w", "--output-watch-events")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cancel()
		_ = cmd.Wait()
	}()
	lines := bufio.NewScanner(stdout)
	expect := func(event, name, colour string) {
		t.Helper()
		for lines.Scan() {
			// EVENT NAME OWNER COLOUR AGE
			if f := strings.Fields(lines.Text()); len(f) == 5 && f[0] != "EVENT" {
				if f[0] != event || f[1] != name || f[3] != colour {
					t.Errorf("event %q, not %s %s %s", lines.Text(), event, name, colour)
				}
				return
			}
		}
		t.Fatalf("the watch ended before %s %s %s: %v", event, name, colour, lines.Err())
	}
	expect("ADDED", "albatros", "red")
	k.ok("patch", "boat", "albatros", "--type=merge", "-p", `{"spec":{"colour":"green"}}`)
	expect("MODIFIED", "albatros", "green")
	// A change of the schema alone closes no watch.
	k.ok("patch", "crd", boats, "--type=json", "-p", `[{"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/flag","value":{"type":"string"}}]`)
	k.ok("patch", "boat", "albatros", "--type=merge", "-p", `{"spec":{"colour":"blue"}}`)
	expect("MODIFIED", "albatros", "blue")
	k.ok("delete", "boat", "albatros")
	expect("DELETED", "albatros", "blue")
}

func TestKubectlServerSideApply(t *testing.T) {
	k := harbour(t)
	k.says([]string{"boat.harbour.example.com/albatros serverside-applied"}, "apply", "--server-side", "--field-manager=a", "-f", "albatros.yaml")
	other := write(t, "other.yaml", "apiVersion: harbour.example.com/v1\nkind: Boat\nmetadata: {name: albatros, namespace: default}\nspec: {colour: green, crew: [{name: joan, rank: captain}]}\n")
	k.fails([]string{"Apply failed with 1 conflict", `conflict with "a": .spec.colour`}, "apply", "--server-side", "--field-manager=b", "-f", other)
	k.says([]string{"serverside-applied"}, "apply", "--server-side", "--field-manager=b", "--force-conflicts", "-f", other)
	k.says([]string{"ada green grace joan"}, "get", "boat", "albatros", "-o", "jsonpath={.spec.owner} {.spec.colour} {.spec.crew[*].name}")
	k.says([]string{"manager: a", "manager: b", "operation: Apply", `k:{"name":"joan"}`}, "get", "boat", "albatros", "-o", "yaml", "--show-managed-fields")
	// What b no longer applies goes, what a applies stays.
	less := write(t, "less.yaml", "apiVersion: harbour.example.com/v1\nkind: Boat\nmetadata: {name: albatros, namespace: default}\nspec: {colour: green}\n")
	k.says([]string{"serverside-applied"}, "apply", "--server-side", "--field-manager=b", "-f", less)
	k.says([]string{"grace\n"}, "get", "boat", "albatros", "-o", "jsonpath={.spec.crew[*].name}{\"\\n\"}")
	k.says([]string{"serverside-applied (server dry run)"}, "apply", "--server-side", "--dry-run=server", "--field-manager=b", "--force-conflicts", "-f", other)
}

func TestKubectlSubresources(t *testing.T) {
	k := harbour(t)
	k.ok("apply", "-f", "albatros.yaml")
	k.says([]string{"boat.harbour.example.com/albatros scaled"}, "scale", "boat", "albatros", "--replicas=3")
	k.says([]string{"3"}, "get", "boat", "albatros", "-o", "jsonpath={.spec.berths}")
	k.fails([]string{"spec.berths: Invalid value: 11: spec.berths in body should be less than or equal to 10"}, "scale", "boat", "albatros", "--replicas=11")
	k.says([]string{"patched"}, "patch", "boat", "albatros", "--subresource=status", "--type=merge", "-p", `{"status":{"phase":"Moored","moored":2,"selector":"boat=albatros"},"spec":{"colour":"green"}}`)
	k.says([]string{"Moored red 2"}, "get", "boat", "albatros", "-o", "jsonpath={.status.phase} {.spec.colour} {.metadata.generation}")
	k.says([]string{"patched (no change)"}, "patch", "boat", "albatros", "--type=merge", "-p", `{"status":{"phase":"Lost"}}`)
	k.says([]string{"kind: Scale", "replicas: 3", "replicas: 2", "selector: boat=albatros"}, "get", "boat", "albatros", "--subresource=scale", "-o", "yaml")
	k.says([]string{"Moored"}, "get", "boat", "albatros", "--subresource=status", "-o", "jsonpath={.status.phase}")
	k.says([]string{"condition met"}, "wait", "boat/albatros", "--for=jsonpath={.status.phase}=Moored", "--timeout=10s")
}

func TestKubectlValidates(t *testing.T) {
	k := harbour(t)
	typo := write(t, "typo.yaml", "apiVersion: harbour.example.com/v1\nkind: Boat\nmetadata: {name: typo, namespace: default}\nspec: {owner: ada, color: red}\n")
	k.fails([]string{`unknown field "spec.color"`}, "apply", "--validate=strict", "-f", typo)
	k.fails([]string{".spec.color: field not declared in schema"}, "apply", "--server-side", "-f", typo)
	k.says([]string{`Warning: unknown field "spec.color"`, "created"}, "apply", "--validate=warn", "-f", typo)
	k.ok("delete", "boat", "typo")
	if out := k.ok("apply", "--validate=ignore", "-f", typo); strings.Contains(out, "Warning") {
		t.Errorf("--validate=ignore warns: %s", out)
	}
	if out := k.ok("get", "boat", "typo", "-o", "yaml"); strings.Contains(strings.SplitN(out, "\nspec:", 2)[1], "color:") {
		t.Errorf("an unknown field was kept:\n%s", out)
	}
	// kubectl turns YAML into JSON and loses what is there twice; others do not.
	twice := `{"apiVersion":"harbour.example.com/v1","kind":"Boat","metadata":{"name":"twice"},"spec":{"owner":"ada","owner":"grace"}}`
	status, _, answer, err := dial(t, k.server).Do(t.Context(), http.MethodPost, boatsPath+"?fieldValidation=Strict", []byte(twice))
	if err != nil || status != http.StatusBadRequest || !strings.Contains(string(answer), `strict decoding error: duplicate field \"spec.owner\"`) {
		t.Errorf("a duplicate field: %d, %v, %s", status, err, answer)
	}
	k.fails([]string{"spec.owner: Required value"}, "create", "-f", write(t, "empty.yaml", "apiVersion: harbour.example.com/v1\nkind: Boat\nmetadata: {name: e, namespace: default}\nspec: {}\n"))
}

func TestKubectlDeletes(t *testing.T) {
	k := harbour(t)
	for _, cascade := range []string{"foreground", "orphan", "background"} {
		k.ok("apply", "-f", "albatros.yaml")
		k.ok("delete", "boat", "albatros", "--cascade="+cascade)
		k.fails([]string{"NotFound"}, "get", "boat", "albatros")
	}

	k.ok("apply", "-f", "albatros.yaml")
	k.says([]string{`boat.harbour.example.com "albatros" deleted`}, "delete", "boats", "--all")
	k.ok("apply", "-f", "albatros.yaml")
	k.ok("delete", "crd", boats)
	k.install("boats.yaml", boats)
	k.says([]string{"No resources found"}, "get", "boats")
}
