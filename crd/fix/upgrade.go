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

// upgrade turns a CRD of v1beta1 into one of v1, but for its schemas. It
// reports false if that cannot be.
func (d *draft) upgrade() bool {
	spec := d.root.object("spec")
	d.set("/apiVersion", strconv.Quote(apiVersion), reason{idVersion, "Kubernetes 1.22 removed apiextensions.k8s.io/v1beta1."})
	if !d.upgradeVersions(spec) {
		return false
	}
	if spec.string("scope") == "" {
		d.put("/spec/scope", `"Namespaced"`, "versions", reason{idScope, "v1 has no default for the scope. This was the default in v1beta1."})
	}
	if !d.upgradeConversion(spec) {
		return false
	}
	d.dropStatus()
	if group := spec.string("group"); (group == "k8s.io" || group == "kubernetes.io" || strings.HasSuffix(group, ".k8s.io") || strings.HasSuffix(group, ".kubernetes.io")) &&
		!d.root.object("metadata").object("annotations").has("api-approved.kubernetes.io") {
		d.note(Cannot, "/metadata", idApproval, "v1 requires the annotation api-approved.kubernetes.io for groups of the Kubernetes project: the author must set it to the URL of the pull request that approved the API, or to unapproved and a reason")
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
			d.note(Cannot, "/spec/versions", idVersion, "the CRD names no version")
			return false
		}
		d.put("/spec/versions", string(append(jsondoc.AppendString([]byte(`[{"name":`), name), `,"served":true,"storage":true}]`...)), "version",
			reason{idVersion, "In v1, spec.versions lists the versions. The version in spec.version is served and stored."})
	} else if versions.kind != jsondoc.Array {
		d.note(Cannot, "/spec/versions", idVersion, "spec.versions must be a list")
		return false
	}
	versions := spec.items("versions")
	for i, v := range versions {
		if v.kind != jsondoc.Object {
			d.note(Cannot, fmt.Sprintf("/spec/versions/%d", i), idVersion, "a version must be an object")
			return false
		}
	}
	if name != "" && versions[0].string("name") != name {
		d.note(Cannot, "/spec/version", idVersion, "spec.version must be the first version in spec.versions: the author must correct one of them")
		return false
	}
	if spec.index("version") >= 0 {
		d.remove("/spec/version", reason{idVersion, "In v1, spec.versions replaces it."})
	}
	for i, v := range versions {
		for _, flag := range []string{"served", "storage"} {
			if !v.has(flag) {
				d.put(fmt.Sprintf("/spec/versions/%d/%s", i, flag), "false", "", reason{idVersion, "v1 requires the field. Its default in v1beta1 was false."})
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
				d.carry(Move, at+"JSONPath", at+"jsonPath", reason{idVersion, "The name in v1 is jsonPath."})
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
		d.remove(source, reason{idVersion, "The field is empty, and v1 does not have it."})
		return
	}
	why := reason{idVersion, "In v1, each version has its own setting."}
	var targets []string
	for i, v := range spec.items("versions") {
		target := fmt.Sprintf("/spec/versions/%d/%s", i, to)
		if v.has(to) {
			d.note(Advice, source, idVersion, "versions["+strconv.Itoa(i)+"] keeps its own "+to+"; spec."+from+" is not applied to it")
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
		d.note(Cannot, at, idVersion, "spec.conversion must be an object")
		return false
	}
	why := reason{idVersion, "In v1, the settings of the webhook are in conversion.webhook."}
	client, reviews := conversion.index("webhookClientConfig") >= 0, conversion.index("conversionReviewVersions") >= 0
	if conversion.string("strategy") == "Webhook" && !conversion.has("webhook") {
		versions := `["v1beta1"]`
		if list := conversion.get("conversionReviewVersions"); list != nil && len(list.kids) > 0 {
			versions = string(list.appendJSON(nil))
		} else {
			d.note(Advice, at, idReviews, "conversionReviewVersions has no default in v1, so the default of v1beta1 is set; add v1 once the webhook supports it")
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
	d.remove("/status", reason{idVersion, "The API server writes status. An empty status is not valid in v1."})
}
