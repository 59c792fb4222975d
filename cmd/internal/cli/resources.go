package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/version"

	"github.com/espalier-dev/espalier/cmd/internal/report"
	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/manifest"
	"github.com/espalier-dev/espalier/crd/offline"
	"github.com/espalier-dev/espalier/crd/request"
	"github.com/espalier-dev/espalier/finding"
	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/spelling"
)

type groupKind struct{ group, kind string }

// resources are the CRDs by which objects are validated.
type resources map[groupKind]*resource

// resource is a CRD and where it was found.
type resource struct {
	document *manifest.Document
	crd      *crd.CRD
	versions map[string]*compiled

	once  sync.Once
	fault *report.Note // the first thing that a server refuses in the CRD
}

// compiled is a version of a resource, compiled when first needed.
type compiled struct {
	*resource
	version *crd.Version

	once   sync.Once
	kind   *request.Resource
	schema *request.Schema
	text   *jsondoc.Doc // of the schema; read by several goroutines, which rules out Members
	fault  *report.Note
}

// crdFlag adds --crd.
func crdFlag(cmd *cobra.Command, into *[]string) {
	cmd.Flags().StringSliceVar(into, "crd", nil, "file, folder or pattern with the CRDs of the objects, in addition to CRDs among the objects")
	fileFlags(cmd, "crd")
}

// resources reads the CRDs in crds and those among the objects. There must be one.
func (a *App) resources(ctx context.Context, crds, objects []string, s *settings) (resources, error) {
	all, err := a.foundCRDs(ctx, crds, objects, s, false)
	if err == nil && len(all) == 0 {
		err = noCRDs(objects)
	}
	return all, err
}

// noCRDs is the error for custom resources without a CRD.
func noCRDs(objects []string) error {
	return fmt.Errorf("no CRD in %s: give files or folders with --crd", strings.Join(objects, ", "))
}

// foundCRDs reads the CRDs in crds and those among the objects. With lenient, for hooks, crds need
// have none, and a CRD that differs in two files is left out with its objects.
func (a *App) foundCRDs(ctx context.Context, crds, objects []string, s *settings, lenient bool) (resources, error) {
	all := make(resources)
	twice := map[groupKind]*twiceError{}
	add := func(d *manifest.Document, right resources) error {
		err := all.add(d, right)
		if differs := (*twiceError)(nil); lenient && errors.As(err, &differs) {
			twice[differs.key] = differs
			return nil
		}
		return err
	}
	if slices.Contains(crds, manifest.Stdin) && slices.Contains(objects, manifest.Stdin) {
		return nil, errors.New("standard input can be read only once: give a file for --crd or for the objects")
	}
	if len(crds) == 0 {
		crds = s.crds()
	}
	if len(crds) > 0 {
		docs, err := a.objects(ctx, crds, s)
		if err != nil {
			return nil, err
		}
		for _, d := range docs {
			if err := add(d, nil); err != nil {
				return nil, err
			}
		}
		if len(all) == 0 && !lenient {
			return nil, fmt.Errorf("no CustomResourceDefinition in %s", strings.Join(crds, ", "))
		}
	}
	if err := a.among(ctx, objects, s, maps.Clone(all), add); err != nil {
		return nil, err
	}
	for key, differs := range twice {
		delete(all, key)
		fmt.Fprintf(a.Err, "%s: objects of kind %s are not validated: %v\n", a.Name, key.kind, differs)
	}
	return all, nil
}

// twiceError says that two files have a CRD in different forms.
type twiceError struct {
	key                 groupKind
	name, first, second string
}

func (e *twiceError) Error() string {
	return fmt.Sprintf("%s is in %s and, otherwise, in %s: leave one out", e.name, e.first, e.second)
}

// among adds the CRDs in files of objects that --crd does not name. Standard input is kept,
// to be read again. What cannot be read or parsed is reported when the objects are read.
func (a *App) among(ctx context.Context, objects []string, s *settings, named resources, add func(*manifest.Document, resources) error) error {
	files, err := s.expand(ctx, objects)
	if err != nil {
		return err
	}
	for _, path := range files {
		if path == manifest.Stdin {
			text, err := io.ReadAll(a.In)
			if err != nil {
				return err
			}
			a.In = bytes.NewReader(text)
			defer func() { a.In = bytes.NewReader(text) }()
		}
		f, err := manifest.Open(path, a.In)
		if err != nil || !bytes.Contains(f.Text, []byte("CustomResourceDefinition")) {
			continue
		}
		found, _ := manifest.Objects(f)
		for _, object := range found {
			if err := add(object, named); err != nil {
				return err
			}
		}
	}
	return nil
}

// add adds the CRD that a document is, if it is one and not among those that are known to be
// the right ones.
func (all resources) add(d *manifest.Document, right resources) error {
	if !typeMetaOf(d).isCRD() {
		return nil
	}
	parsed, err := crd.Parse(d.JSON)
	if err != nil {
		return fmt.Errorf("%s: %w", d.File.Name, err)
	}
	parsed.Release() // few of many are needed again
	if parsed.Group == "" || parsed.Kind == "" {
		return nil // kustomize patches are no whole CRDs
	}
	key := groupKind{parsed.Group, parsed.Kind}
	if before, ok := all[key]; ok {
		if right[key] != nil || sameJSON(before.document.JSON, d.JSON) {
			return nil
		}
		return &twiceError{key: key, name: parsed.Name, first: before.document.File.Name, second: d.File.Name}
	}
	d.File.Lines() // finds them now: places are asked for by several goroutines
	r := &resource{document: d, crd: parsed, versions: make(map[string]*compiled)}
	for i := range parsed.Versions {
		v := &parsed.Versions[i]
		r.versions[v.Name] = &compiled{resource: r, version: v}
	}
	all[key] = r
	return nil
}

func sameJSON(a, b []byte) bool {
	return bytes.Equal(canonicalJSON(a), canonicalJSON(b))
}

// canonicalJSON returns the canonical form of JSON, or nothing if it is none.
func canonicalJSON(text []byte) []byte {
	doc, err := jsondoc.Parse(text, jsondoc.Limits{})
	if err != nil {
		return nil
	}
	defer doc.Release()
	return doc.AppendCanonical(nil, jsondoc.Root)
}

// load compiles the version, once, and reports whether it can be used.
func (c *compiled) load() bool {
	c.once.Do(func() {
		if c.fault = c.refusal(); c.fault != nil {
			return
		}
		var err error
		c.kind = request.New(c.crd, c.version)
		if c.schema, err = request.Compile(c.version, c.crd.PreserveUnknownFields); err != nil {
			c.fault = &report.Note{Message: err.Error(), Place: report.At(c.document.File, c.document.Of(c.version.Offset))}
			return
		}
		text := c.version.Schema
		if text == nil {
			text = []byte("{}")
		}
		if c.text, err = jsondoc.Parse(text, jsondoc.Limits{}); err != nil {
			c.fault = &report.Note{Message: err.Error()}
		}
	})
	return c.fault == nil
}

// refusal returns the first error for which an API server refuses the CRD. CRDs of
// v1beta1 are taken as stored, because current servers do not accept v1beta1.
func (r *resource) refusal() *report.Note {
	r.once.Do(func() {
		if strings.HasSuffix(r.crd.APIVersion, "/v1beta1") {
			return
		}
		found, err := crd.Validate(r.crd, crd.ValidateOptions{})
		r.crd.Release()
		if err != nil {
			d := unreadable(r.document, err)
			r.fault = &report.Note{Message: d.Message, Place: d.Place}
			return
		}
		for _, f := range found {
			if f.Severity == finding.Error {
				r.fault = &report.Note{Message: f.Error(), Place: report.At(r.document.File, r.document.Of(f.Offset))}
				return
			}
		}
	})
	return r.fault
}

// served lists the versions that are served, the newest first.
func (r *resource) served() []string {
	var names []string
	for _, v := range r.crd.Versions {
		if v.Served {
			names = append(names, v.Name)
		}
	}
	sort.SliceStable(names, func(i, j int) bool { return version.CompareKubeAwareVersionStrings(names[i], names[j]) > 0 })
	return names
}

// lookup follows member names. Without success it returns the root.
func lookup(doc *jsondoc.Doc, v jsondoc.Value, names ...string) (jsondoc.Value, bool) {
	for _, name := range names {
		if doc.Kind(v) != jsondoc.Object {
			return jsondoc.Root, false
		}
		var ok bool
		if v, ok = doc.Get(v, name); !ok {
			return jsondoc.Root, false
		}
	}
	return v, true
}

// builtin are groups of Kubernetes whose kinds are not validated: those that are off by default or
// not stored, and those of files that configure tools. There are no CRDs for them.
var builtin = map[string]bool{
	"admission.k8s.io": true, "apiextensions.k8s.io": true, "apiregistration.k8s.io": true,
	"apiserver.config.k8s.io": true, "audit.k8s.io": true, "authentication.k8s.io": true, "authorization.k8s.io": true,
	"client.authentication.k8s.io": true, "imagepolicy.k8s.io": true, "internal.apiserver.k8s.io": true, "kubeadm.k8s.io": true,
	"kubelet.config.k8s.io": true, "kubeproxy.config.k8s.io": true, "kubescheduler.config.k8s.io": true, "kustomize.config.k8s.io": true,
}

// find returns the version that an object is of, or what keeps a server from
// knowing it: a diagnostic with the check, the message and what to do.
func (all resources) find(t typeMeta) (*compiled, report.Diagnostic) {
	if missing := t.missing(); missing != "" {
		return nil, report.Diagnostic{Check: idObjectType, Message: "Object '" + missing + "' is missing"}
	}
	none := t.noMatches()
	r, ok := all[groupKind{t.group(), t.kind}]
	if !ok {
		skipped := builtin[t.group()] || !strings.Contains(t.group(), ".")
		if offline.Find(t.groupVersionKind()) != nil {
			skipped = true // unless the command knows built-in kinds
		} else if offline.HasGroup(t.group()) || t.group() == "extensions" { // which has lost all its kinds to other groups
			return nil, unknownKind(t)
		}
		if skipped {
			return nil, report.Diagnostic{Check: idObjectSkipped, Message: fmt.Sprintf("%s is not validated: %s has no CRD", t.object(), t.apiVersion)}
		}
		return nil, report.Diagnostic{Check: idCRDMissing, Message: none, Fix: all.suggest(t)}
	}
	served := "use a version that is served: " + strings.Join(r.served(), ", ")
	c, ok := r.versions[t.version()]
	switch {
	case !ok:
		return nil, report.Diagnostic{Check: idVersionUnknown, Message: none, Fix: served}
	case !c.version.Served:
		return nil, report.Diagnostic{Check: idVersionUnserved, Message: none, Fix: served}
	}
	return c, report.Diagnostic{}
}

// missing names what an object does not say about its type.
func (t typeMeta) missing() string {
	switch {
	case t.kind == "":
		return "Kind"
	case t.apiVersion == "":
		return "apiVersion"
	}
	return ""
}

// suggest says what else an object of a kind without a CRD may be meant
// to be.
func (all resources) suggest(t typeMeta) string {
	var kinds, groups []string
	for key := range all {
		if key.group == t.group() {
			kinds = append(kinds, key.kind)
		}
		if key.kind == t.kind {
			groups = append(groups, key.group)
		}
	}
	if kind := nearest(t.kind, kinds); kind != "" {
		return fmt.Sprintf("did you mean kind %q?", kind)
	}
	if len(groups) > 0 {
		return fmt.Sprintf("did you mean group %q?", slices.Min(groups))
	}
	return "give the file with its CRD with --crd, or leave such objects out with --ignore-missing"
}

// nearest returns the candidate that is most like a name, if one is alike enough
// to be what was meant and not the name itself; of several the first in the
// alphabet.
func nearest(name string, candidates []string) string {
	slices.Sort(candidates)
	return spelling.Nearest(name, func(yield func(string) bool) {
		for _, c := range candidates {
			if c != name && !yield(c) {
				return
			}
		}
	})
}
