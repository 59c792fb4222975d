package fix

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/espalier-dev/espalier/internal/jsondoc"
)

func split(pointer string) []string {
	return strings.Split(strings.TrimPrefix(pointer, "/"), "/")
}

func number(token string) int {
	n, _ := strconv.Atoi(token) // they are ours
	return n
}

// upgrade turns a definition of v1beta1 into one of v1, but for its schemas. It
// reports false if that cannot be.
func (d *draft) upgrade() bool {
	spec := d.root.object("spec")
	d.set("/apiVersion", strconv.Quote(apiVersion), reason{ruleVersion, "API servers have not served apiextensions.k8s.io/v1beta1 since Kubernetes 1.22."})
	if !d.upgradeVersions(spec) {
		return false
	}
	if spec.string("scope") == "" {
		d.put("/spec/scope", `"Namespaced"`, "versions", reason{ruleScope, "v1 has no default for the scope; this was the one of v1beta1."})
	}
	if !d.upgradeConversion(spec) {
		return false
	}
	d.dropStatus()
	if group := spec.string("group"); (group == "k8s.io" || group == "kubernetes.io" || strings.HasSuffix(group, ".k8s.io") || strings.HasSuffix(group, ".kubernetes.io")) &&
		!d.root.object("metadata").object("annotations").has("api-approved.kubernetes.io") {
		d.note(Cannot, "/metadata", ruleApproval, "v1 demands the annotation api-approved.kubernetes.io for groups of the Kubernetes project, with the address of the pull request that approved the API, or unapproved and a reason; only the author can know which")
	}
	return true
}

// put adds a member, in the place of null if need be.
func (d *draft) put(pointer, value, before string, why reason) {
	if parent, key := d.at(pointer); parent.index(key) >= 0 {
		d.set(pointer, value, why)
		return
	}
	d.insert(pointer, value, before, why)
}

// shared are the members of a v1beta1 spec that stand for all versions, and
// what v1 calls them in each.
var shared = []struct{ from, to string }{
	{"validation", "schema"},
	{"subresources", "subresources"},
	{"additionalPrinterColumns", "additionalPrinterColumns"},
	{"selectableFields", "selectableFields"},
}

func (d *draft) upgradeVersions(spec *node) bool {
	name := spec.string("version")
	if versions := spec.get("versions"); versions == nil || versions.kind == jsondoc.Array && len(versions.kids) == 0 {
		if name == "" {
			d.note(Cannot, "/spec/versions", ruleVersion, "the definition names no version")
			return false
		}
		d.put("/spec/versions", string(append(jsondoc.AppendString([]byte(`[{"name":`), name), `,"served":true,"storage":true}]`...)), "version",
			reason{ruleVersion, "In v1, versions are listed; the one in spec.version is served and stored."})
	} else if versions.kind != jsondoc.Array {
		d.note(Cannot, "/spec/versions", ruleVersion, "spec.versions is not a list")
		return false
	}
	versions := spec.items("versions")
	for i, v := range versions {
		if v.kind != jsondoc.Object {
			d.note(Cannot, fmt.Sprintf("/spec/versions/%d", i), ruleVersion, "a version is an object")
			return false
		}
	}
	if name != "" && versions[0].string("name") != name {
		d.note(Cannot, "/spec/version", ruleVersion, "spec.version names another version than the first of spec.versions: which of them is meant only the author can know")
		return false
	}
	if spec.index("version") >= 0 {
		d.remove("/spec/version", reason{ruleVersion, "In v1, spec.versions takes its place."})
	}
	for i, v := range versions {
		for _, flag := range []string{"served", "storage"} {
			if !v.has(flag) {
				d.put(fmt.Sprintf("/spec/versions/%d/%s", i, flag), "false", "", reason{ruleVersion, "Left out, it is false; v1 wants that said."})
			}
		}
	}
	for _, s := range shared {
		d.distribute(spec, s.from, s.to)
	}
	for i, v := range versions {
		for j, column := range v.items("additionalPrinterColumns") {
			at := fmt.Sprintf("/spec/versions/%d/additionalPrinterColumns/%d/", i, j)
			if column.has("JSONPath") && column.index("jsonPath") < 0 {
				d.carry(Move, at+"JSONPath", at+"jsonPath", reason{ruleVersion, "v1 spells it jsonPath."})
			}
		}
	}
	return true
}

// distribute moves what stands for all versions into each of them.
func (d *draft) distribute(spec *node, from, to string) {
	if spec.index(from) < 0 {
		return
	}
	source := "/spec/" + from
	value := spec.get(from)
	if from == "validation" && !value.has("openAPIV3Schema") || value == nil {
		d.remove(source, reason{ruleVersion, "It says nothing, and v1 does not know it."})
		return
	}
	why := reason{ruleVersion, "In v1, each version says it for itself."}
	var targets []string
	for i, v := range spec.items("versions") {
		target := fmt.Sprintf("/spec/versions/%d/%s", i, to)
		if v.has(to) {
			d.note(Advice, source, ruleVersion, "versions["+strconv.Itoa(i)+"] has a "+to+" of its own, which stays; what spec."+from+" said for all is not applied to it")
			continue
		}
		if v.index(to) >= 0 { // null
			d.remove(target, why)
		}
		targets = append(targets, target)
	}
	for i, target := range targets {
		if i < len(targets)-1 {
			d.carry(Copy, source, target, why)
		} else {
			d.carry(Move, source, target, why)
		}
	}
	if len(targets) == 0 {
		d.remove(source, why)
	}
}

func (d *draft) upgradeConversion(spec *node) bool {
	const at = "/spec/conversion"
	conversion := spec.get("conversion")
	if conversion == nil {
		return true
	}
	if conversion.kind != jsondoc.Object {
		d.note(Cannot, at, ruleVersion, "spec.conversion is not an object")
		return false
	}
	why := reason{ruleVersion, "In v1, what concerns the webhook is said in conversion.webhook."}
	client, reviews := conversion.index("webhookClientConfig") >= 0, conversion.index("conversionReviewVersions") >= 0
	if conversion.string("strategy") == "Webhook" && !conversion.has("webhook") {
		versions := `["v1beta1"]`
		if list := conversion.get("conversionReviewVersions"); list != nil && len(list.kids) > 0 {
			versions = string(list.appendJSON(nil))
		} else {
			d.note(Advice, at, ruleReviews, "conversionReviewVersions has no default in v1: the one of v1beta1 is written down; add v1 once the webhook understands it")
		}
		d.put(at+"/webhook", `{"conversionReviewVersions":`+versions+`}`, "", why)
		if conversion.has("webhookClientConfig") {
			d.carry(Move, at+"/webhookClientConfig", at+"/webhook/clientConfig", why)
			client = false
		}
	}
	if client {
		d.remove(at+"/webhookClientConfig", why)
	}
	if reviews {
		d.remove(at+"/conversionReviewVersions", why)
	}
	return true
}

// dropStatus removes the status that old generators wrote, with nothing in it.
func (d *draft) dropStatus() {
	status := d.root.get("status")
	if status == nil || status.kind != jsondoc.Object {
		return
	}
	names := status.object("acceptedNames")
	if names.string("kind") != "" || names.string("plural") != "" || len(status.items("conditions")) > 0 || len(status.items("storedVersions")) > 0 {
		return
	}
	d.remove("/status", reason{ruleVersion, "The status is for the API server to write; empty, it is not valid in v1."})
}
