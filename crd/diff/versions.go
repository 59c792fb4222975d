package diff

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/espalier-dev/espalier/crd"
)

// versions compares which versions there are and what each offers.
func (c *comparer) versions(d *crdPair) {
	defer func() { c.version = "" }()
	listed := pointerTo("spec", "versions")
	for i := range d.old.Versions {
		was := &d.old.Versions[i]
		if d.oldVersion(was.Name) != was {
			continue // a second one of the name
		}
		c.version = was.Name
		is := d.newVersion(was.Name)
		if is == nil {
			x := Change{Check: "version-removed", Level: Breaking, Breaks: Writers | Readers, Old: was.Name, OldPointer: versionPointer(d.was[was.Name]), NewPointer: listed,
				Message: fmt.Sprintf("version %s was removed: requests for it fail", was.Name)}
			if !was.Served {
				x.Level, x.Breaks = Safe, 0
				x.Message = fmt.Sprintf("version %s, which was not served, was removed", was.Name)
			}
			c.report(nil, x)
			continue
		}
		c.offers(d, was, is)
	}
	for i := range d.now.Versions {
		is := &d.now.Versions[i]
		if d.newVersion(is.Name) == is && d.oldVersion(is.Name) == nil {
			c.version = is.Name
			c.report(nil, Change{Check: "version-added", Level: Safe, Breaks: Readers, New: is.Name, OldPointer: listed, NewPointer: versionPointer(d.is[is.Name]),
				Message: fmt.Sprintf("version %s was added", is.Name)})
		}
	}
	c.version = ""
	c.stored(d)
}

// stored compares in which version objects lie in etcd.
func (c *comparer) stored(d *crdPair) {
	was, is := d.old.StorageVersion(), d.now.StorageVersion()
	listed := pointerTo("spec", "versions")
	if was != nil && is != nil && was.Name != is.Name {
		c.report(nil, Change{Check: "storage-version-changed", Level: Risky, Breaks: Stored, Old: was.Name, New: is.Name,
			OldPointer: versionPointer(d.was[was.Name]), NewPointer: versionPointer(d.is[is.Name]),
			Message: fmt.Sprintf("the storage version changed from %s to %s: existing objects stay in the old version until a client writes them, and %[1]s must stay in the CRD until then", was.Name, is.Name)})
	}
	names := slices.Concat(d.old.Status.StoredVersions, d.now.Status.StoredVersions)
	if was != nil {
		names = append(names, was.Name)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if d.oldVersion(name) != nil && d.newVersion(name) == nil {
			c.report(nil, Change{Check: "stored-version-dropped", Level: Breaking, Breaks: Stored, Old: name, OldPointer: listed, NewPointer: listed,
				Message: fmt.Sprintf("objects may be stored as %s, which was removed: the API server rejects the change as long as status.storedVersions lists the version, because it could not read these objects", name)})
		}
	}
}

// offers compares what two versions of the same name offer besides the schema.
func (c *comparer) offers(d *crdPair, was, is *crd.Version) {
	old, now := d.was[was.Name], d.is[is.Name]
	at := func(x Change, member ...string) Change {
		x.OldPointer, x.NewPointer = versionPointer(old, member...), versionPointer(now, member...)
		return x
	}
	switch {
	case was.Served && !is.Served:
		c.report(nil, at(Change{Check: "version-withdrawn", Level: Breaking, Breaks: Writers | Readers, Old: "true", New: "false",
			Message: fmt.Sprintf("version %s is no longer served: requests for it fail", was.Name)}, "served"))
	case is.Served && !was.Served:
		c.report(nil, at(Change{Check: "version-served", Level: Safe, Breaks: Readers, Old: "false", New: "true",
			Message: fmt.Sprintf("version %s is now served", was.Name)}, "served"))
	}
	if was.Deprecated != is.Deprecated {
		x := Change{Check: "deprecation-added", Level: Safe, Breaks: Writers | Readers, Old: yes(was.Deprecated), New: yes(is.Deprecated),
			Message: fmt.Sprintf("version %s is now deprecated: its clients get warnings", was.Name)}
		if was.Deprecated {
			x.Check, x.Message = "deprecation-removed", fmt.Sprintf("version %s is no longer deprecated", was.Name)
		}
		c.report(nil, at(x, "deprecated"))
	}
	c.subresources(was, is, at)
	if a, b := columnsText(was), columnsText(is); a != b {
		c.report(nil, at(Change{Check: "printer-columns-changed", Level: Safe, Breaks: Readers, Old: shorten(a), New: shorten(b),
			Message: "kubectl get shows other columns: scripts that parse its output may break"}, "additionalPrinterColumns"))
	}
	c.members("selectable-field-removed", "selectable-field-added", selectable(was), selectable(is), versionPointer(old, "selectableFields"), versionPointer(now, "selectableFields"), Breaking, Readers)
}

func (c *comparer) subresources(was, is *crd.Version, at func(Change, ...string) Change) {
	if was.Status != is.Status {
		x := Change{Check: "status-subresource-added", Level: Breaking, Breaks: Writers,
			Message: "the status subresource was added: the API server ignores status in writes of the object, and controllers must write to /status"}
		if was.Status {
			x.Check, x.Message = "status-subresource-removed", "the status subresource was removed: controllers that write to /status fail, and any writer can change status"
		}
		c.report(nil, at(x, "subresources", "status"))
	}
	x := Change{Level: Breaking, Breaks: Writers | Readers}
	a, b := scaleText(was), scaleText(is)
	switch {
	case was.Scale != nil && is.Scale == nil:
		x.Check, x.Message = "scale-removed", "the scale subresource was removed: autoscalers and kubectl scale fail"
	case is.Scale != nil && was.Scale == nil:
		x.Check, x.Level, x.Message = "scale-added", Safe, "the scale subresource was added"
	case a != b:
		x.Check, x.Level, x.Old, x.New = "scale-changed", Risky, shorten(a), shorten(b)
		x.Message = "the scale subresource reads or writes other fields: autoscalers may find no value, or change a field that the controller does not read"
	default:
		return
	}
	c.report(nil, at(x, "subresources", "scale"))
}

func selectable(v *crd.Version) []string {
	list := make([]string, len(v.SelectableFields))
	for i := range list {
		list[i] = v.SelectableFields[i].JSONPath
	}
	return list
}

// columnsText returns the columns of a version as JSON; empty if it has none.
func columnsText(v *crd.Version) string {
	type column struct {
		Description string `json:"description,omitempty"`
		Format      string `json:"format,omitempty"`
		JSONPath    string `json:"jsonPath"`
		Name        string `json:"name"`
		Priority    int32  `json:"priority,omitempty"`
		Type        string `json:"type"`
	}
	if len(v.Columns) == 0 {
		return ""
	}
	list := make([]column, len(v.Columns))
	for i, c := range v.Columns {
		list[i] = column{Description: c.Description, Format: c.Format, JSONPath: c.JSONPath, Name: c.Name, Priority: c.Priority, Type: c.Type}
	}
	return text(list)
}

// scaleText returns the paths of the scale subresource as JSON; empty if there is none.
func scaleText(v *crd.Version) string {
	if v.Scale == nil {
		return ""
	}
	return text(struct {
		LabelSelectorPath  *string `json:"labelSelectorPath,omitempty"`
		SpecReplicasPath   string  `json:"specReplicasPath"`
		StatusReplicasPath string  `json:"statusReplicasPath"`
	}{v.Scale.LabelSelectorPath, v.Scale.SpecReplicasPath, v.Scale.StatusReplicasPath})
}

func text(v any) string {
	b, _ := json.Marshal(v) // of strings and numbers
	return string(b)
}
