package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/cmd/internal/report"
	"github.com/espalier-dev/espalier/crd/manifest"
	"github.com/espalier-dev/espalier/crd/offline"
	"github.com/espalier-dev/espalier/crd/request"
	"github.com/espalier-dev/espalier/finding"
	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/object"
)

type validateOptions struct {
	crds          []string
	old           []string
	fields        string
	subresource   string
	ignoreMissing bool
	ifAny         bool
	kubernetes    string          // as given
	version       offline.Version // of kubernetes
}

func newValidate(a *App) *cobra.Command {
	var o validateOptions
	cmd := &cobra.Command{
		Use:   "validate [--crd FILE|DIR...] FILE|DIR|-...",
		Short: "Validate custom resources and built-in kinds as an API server does",
		Long: `Validate reports everything for which an API server would refuse objects: values
that do not match the schema of their CRD, CEL rules that fail, invalid metadata,
and unknown fields.

It looks for each custom resource's CRD in the files of --crd and among the
objects. It knows the built-in kinds, such as Deployments, Services and Jobs, and
reports their errors and warnings in the words of the server. It validates objects
without a namespace as objects of the namespace "default".

Kinds and fields are those of --kubernetes-version. The other rules of built-in
kinds are those of Kubernetes 1.37. Of a few kinds, such as webhook configurations,
it knows fields, types and metadata only: it says so with --severity info. It knows
no other object and no setting of a cluster: quotas, address ranges, admission.

With --old it validates updates, as the API server does: errors in unchanged
values do not fail the update (ratcheting), and CEL rules that use oldSelf are
evaluated. It converts old objects of another version, unless the CRD requires a
conversion webhook.`,
		Example: a.Example(`
  # Validate Deployments, Services and custom resources in one run
  %[1]s validate --crd config/crd config/samples

  # Validate built-in kinds only, for an older cluster
  %[1]s validate deploy/ --kubernetes-version 1.34

  # Validate the output of another program
  helm template ./chart | %[1]s validate --crd crds/ -

  # Validate an update
  git show main:web.yaml > old.yaml
  %[1]s validate --crd crds/ web.yaml --old old.yaml

  # Report unknown fields as warnings
  %[1]s validate --crd crds/ web.yaml --field-validation warn`),
	}
	takesFiles(cmd, func(ctx context.Context, files []string) error { return a.validate(ctx, files, o) })
	a.reportFlags(cmd)
	a.gateFlags(cmd)
	crdFlag(cmd, &o.crds)
	flags := cmd.Flags()
	flags.StringSliceVar(&o.old, "old", nil, "files or folders with the old objects: validate the change as the API server does on update")
	fieldsFlag(cmd, &o.fields)
	flags.StringVar(&o.subresource, "subresource", "", "validate an update of this subresource, with --old: status")
	flags.BoolVar(&o.ignoreMissing, "ignore-missing", false, "skip objects whose CRD is not given")
	flags.BoolVar(&o.ifAny, "if-any", false, "do not fail if there is no object to validate or no folder of --crd, and leave out files that are not for Kubernetes; for hooks that pass all changed files. Only errors make it exit with 1, unless --fail-on or the settings say otherwise")
	flags.StringVar(&o.kubernetes, "kubernetes-version", offline.Latest.String(), "version whose built-in kinds and fields the objects may have: "+offline.Oldest.String()+" to "+offline.Latest.String())
	fileFlags(cmd, "old")
	Must(cmd.RegisterFlagCompletionFunc("subresource", cobra.FixedCompletions([]string{"status"}, cobra.ShellCompDirectiveNoFileComp)))
	Must(cmd.RegisterFlagCompletionFunc("kubernetes-version", cobra.FixedCompletions(offline.Versions(), cobra.ShellCompDirectiveNoFileComp)))
	return cmd
}

func (a *App) validate(ctx context.Context, files []string, o validateOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	s, err := a.settings()
	if err != nil {
		return err
	}
	a.gate.hook = o.ifAny
	v := &validator{options: o}
	if o.ifAny {
		o.crds = existing(o.crds)
	}
	if v.resources, err = a.foundCRDs(ctx, o.crds, files, s, o.ifAny); err != nil {
		return err
	}
	if len(o.old) > 0 {
		if v.old, err = a.oldObjects(ctx, o.old, v.resources, s); err != nil {
			return err
		}
	}
	r, err := a.scan(ctx, files, s, o.ifAny, v.document)
	if err != nil {
		return err
	}
	if len(v.resources) == 0 && len(r.Subjects) > 0 && !v.known.Load() && !o.ignoreMissing && !o.ifAny {
		return noCRDs(files)
	}
	if len(r.Subjects) == 0 && len(r.Diagnostics) == 0 && !o.ignoreMissing && !o.ifAny {
		return fmt.Errorf("no custom resource and no object of a built-in kind in %s", strings.Join(files, ", "))
	}
	r.Noun = "object"
	return a.finish("validate", r, s)
}

func (o *validateOptions) check() error {
	if err := checkFields(o.fields); err != nil {
		return err
	}
	var err error
	if o.version, err = offline.ParseVersion(o.kubernetes); err != nil {
		return fmt.Errorf("--kubernetes-version: %w", err)
	}
	switch {
	case o.subresource != "" && o.subresource != "status":
		return fmt.Errorf("--subresource must be status, not %q", o.subresource)
	case o.subresource != "" && len(o.old) == 0:
		return errors.New("status can only be updated: give the old objects with --old")
	}
	return nil
}

// existing returns the paths that exist, and patterns.
func existing(paths []string) (list []string) {
	for _, p := range paths {
		if _, err := os.Stat(p); err == nil || p == manifest.Stdin || strings.ContainsAny(p, "*?[{") {
			list = append(list, p)
		}
	}
	return list
}

// identity is what makes an object the same as another one.
type identity struct{ group, kind, namespace, name string }

// identity returns what an object is the same by. Those of cluster scope have no namespace.
func (all resources) identity(t typeMeta) identity {
	namespace := t.namespace
	if r, ok := all[groupKind{t.group(), t.kind}]; ok && !r.crd.Namespaced {
		namespace = ""
	} else if k := offline.Find(t.groupVersionKind()); !ok && k != nil && !k.Namespaced {
		namespace = ""
	} else if namespace == "" {
		namespace = defaultNamespace
	}
	return identity{t.group(), t.kind, namespace, t.name}
}

// oldObjects reads the objects as they are now.
func (a *App) oldObjects(ctx context.Context, files []string, all resources, s *settings) (map[identity]*manifest.Document, error) {
	docs, err := a.objects(ctx, files, s)
	if err != nil {
		return nil, err
	}
	old := make(map[identity]*manifest.Document)
	for _, d := range docs {
		t := typeMetaOf(d)
		if t.name == "" {
			continue
		}
		key := all.identity(t)
		if _, twice := old[key]; twice {
			return nil, fmt.Errorf("%s: %s occurs twice", d.File.Name, t.object())
		}
		d.File.Lines() // finds them now: places are asked for by several goroutines
		old[key] = d
	}
	return old, nil
}

// validator validates objects.
type validator struct {
	options   validateOptions
	resources resources
	old       map[identity]*manifest.Document
	known     atomic.Bool // there was an object that needs no CRD
}

// result collects what is found in one object.
type result struct {
	document *manifest.Document
	object   string
	into     *findings
	lookups  int
	source   *jsondoc.Doc // of the document, once a path was looked up; never released
}

// add completes a diagnostic with its check and the object.
func (v *result) add(d report.Diagnostic) {
	if r, ok := checkByID(d.Check); ok {
		if d.Severity == finding.Error { // the default, unless the caller set another severity
			d.Severity = r.Severity
		}
		if d.Why == "" {
			d.Why = r.Explanation
		}
		if d.Fix == "" {
			d.Fix = fix(d.Check)
		}
	}
	d.Object = v.object
	if _, words, ok := strings.Cut(d.Message, d.Path+" in body "); ok && d.Summary == "" && d.Path != "" {
		d.Summary = d.Path + ": " + words // without the value, and the path twice
	}
	v.into.add(d)
}

// at is a place in the object's file.
func (v *result) at(p manifest.Position) report.Place { return report.At(v.document.File, p) }

// of is the place of a member of the object, or of the object.
func (v *result) of(pointer string) report.Place {
	p, found := v.document.Locate(pointer)
	if !found {
		p = v.document.At(0)
	}
	return v.at(p)
}

// key is the place of the key of a member of the object.
func (v *result) key(pointer string) report.Place {
	p, _ := v.document.LocateKey(pointer)
	return v.at(p)
}

func (v *validator) document(d *manifest.Document, into *findings) {
	meta := typeMetaOf(d)
	if meta.isCRD() {
		return
	}
	into.went("objects")
	out := &result{document: d, object: meta.object(), into: into}
	version, unknown := v.resources.find(meta)
	if version == nil {
		if unknown.Check != idObjectType && v.builtin(meta, out) {
			return
		}
		v.unknown(unknown, out)
		return
	}
	into.subject(d, out.object)
	if !version.usable(out) {
		return
	}
	if version.version.Deprecated {
		out.add(report.Diagnostic{Check: idVersionDeprecate, Message: request.DeprecationWarning(version.crd, version.version), Pointer: "/apiVersion", Place: out.of("/apiVersion")})
	}
	status := v.options.subresource == "status"
	if status && !version.kind.Status {
		out.add(report.Diagnostic{Check: idNoSubresource, Pointer: "/apiVersion", Place: out.of("/apiVersion"),
			Message: fmt.Sprintf("%s.%s %q not found", version.crd.Plural, version.crd.Group, meta.name)})
		return
	}
	w, ok := version.decode(d.JSON, out)
	if !ok {
		return
	}
	w.decoded(v.options.fields, out)
	if status {
		w.target = request.Status
	}
	if v.old != nil {
		if w.old, ok = v.before(meta, version, out); !ok {
			return
		}
	}
	w.validate(out)
}

// unknown reports an object without a usable CRD, which gets no other finding.
func (v *validator) unknown(d report.Diagnostic, out *result) {
	pointer := "/kind"
	switch d.Check {
	case idCRDMissing:
		if v.options.ignoreMissing {
			return
		}
	case idVersionUnknown, idVersionUnserved:
		pointer = "/apiVersion"
	case idObjectType:
		out.object = ""
	}
	if d.Check != idCRDMissing {
		v.known.Store(true)
	}
	if d.Check != idObjectSkipped {
		out.into.subject(out.document, out.object)
	}
	d.Place, d.Pointer = out.of(pointer), pointer
	out.add(d)
}

// usable loads the version and reports it if it cannot be used.
func (c *compiled) usable(out *result) bool {
	if c.load() {
		return true
	}
	out.add(report.Diagnostic{
		Check: idCRDInvalid, Pointer: "/kind", Place: out.of("/kind"), Notes: []report.Note{*c.fault},
		Message: fmt.Sprintf("the CRD of kind %q is invalid", c.crd.Kind),
	})
	return false
}

// unreadable reports an object that cannot be normalized.
func (v *result) unreadable(err error) {
	var object *espalier.ObjectError
	if !errors.As(err, &object) {
		v.add(unreadable(v.document, err))
		return
	}
	check := idMetadata
	if object.Path == "" {
		check = idObjectType
	}
	d := report.Diagnostic{Check: check, Message: object.Error(), Path: object.Path, Place: v.at(v.document.Of(object.Offset))}
	v.mistypedText(&d)
	v.add(d)
}

// mistypedText points to the label or annotation that is no string: decoders
// name only the field around it.
func (v *result) mistypedText(d *report.Diagnostic) {
	for _, field := range []string{"labels", "annotations"} {
		if d.Path != "metadata" || !strings.Contains(d.Message, "ObjectMeta."+field+" ") {
			continue
		}
		doc, err := jsondoc.Parse(v.document.JSON, jsondoc.Limits{})
		if err != nil {
			return
		}
		defer doc.Release()
		list, _ := lookup(doc, jsondoc.Root, "metadata", field)
		for m := range doc.Members(list) {
			if kind := doc.Kind(m.Value); kind != jsondoc.String && kind != jsondoc.Null {
				d.Place = v.at(v.document.Of(doc.Offset(m.Value)))
				d.Fix = hintType("string", d.Place)
				return
			}
		}
	}
}

// isNew reports that there is no old object.
func (v *result) isNew() {
	v.add(report.Diagnostic{Check: idObjectNew, Message: v.object + " is not among the old objects: validated as a create", Place: v.of("/metadata/name")})
}

// before returns the object as it is now. It reports false if that cannot be
// read; there is nothing if the object is new.
func (v *validator) before(meta typeMeta, now *compiled, out *result) (*object.Object, bool) {
	d, ok := v.old[v.resources.identity(meta)]
	if !ok {
		out.isNew()
		return nil, true
	}
	stored := now.stored(typeMetaOf(d).version())
	if !stored.usable(out) {
		return nil, false
	}
	o, err := stored.schema.DecodeStored(d.JSON)
	if err == nil {
		o.SetGroupVersionKind(now.kind.Kind)
		if stored != now {
			o, err = now.schema.DecodeConverted(o)
		}
	}
	if err != nil {
		hidden := &result{document: d, into: new(findings)}
		hidden.unreadable(err)
		for _, d := range hidden.into.diagnostics {
			d.Object = out.object
			d.Message = "the old object: " + d.Message
			out.into.add(d)
		}
		return nil, false
	}
	return o, true
}

// stored returns the version whose schema an old object went through when it was stored: the storage
// version. With a conversion webhook the stored form is unknown, and it is the version of the object.
func (c *compiled) stored(version string) *compiled {
	if c.crd.Conversion.Strategy == "Webhook" {
		if v, ok := c.versions[version]; ok {
			return v
		}
		return c
	}
	if v := c.crd.StorageVersion(); v != nil {
		return c.versions[v.Name]
	}
	return c
}
