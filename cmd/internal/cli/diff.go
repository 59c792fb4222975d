package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/cmd/internal/cluster"
	"github.com/espalier-dev/espalier/cmd/internal/report"
	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/diff"
	"github.com/espalier-dev/espalier/crd/manifest"
	"github.com/espalier-dev/espalier/finding"
	"github.com/espalier-dev/espalier/internal/jsondoc"
)

type diffOptions struct {
	chartOptions
	objects []string
	failOn  string
	git     string
	cluster bool
	from    cluster.Source
}

// failLevels are the other values of --fail-on, and the least severity that fails.
var failLevels = map[string]finding.Severity{"breaking": finding.Error, "risky": finding.Warning}

func newDiff(a *App) *cobra.Command {
	var o diffOptions
	cmd := &cobra.Command{
		Use:   "diff OLD NEW | --git REVISION [NEW...] | --cluster NEW...",
		Short: "Compare two versions of a CRD, and report breaking changes",
		Long: `Diff compares CRDs by their effect: which objects that are valid now the API
server would refuse, prune or change. It says whom a change affects: writers
(clients that send objects written for OLD), readers (clients that get objects)
and stored objects. OLD and NEW are files, folders or Helm charts, which helm
renders. Diff matches the CRDs of two folders by name.

With --git it compares the files of this folder, or those that are named, with a
revision of the repository. With --cluster it compares them with the CRDs of a
live cluster, which kubectl reads.

To accept a change, add a waiver with its path and a reason to ` + settingsName + `.

Errors are breaking changes. Diff shows an object that OLD accepts and NEW refuses
or prunes, where it finds one. Warnings are changes that may break, depending on
objects or clients, or that diff cannot decide. --severity info also shows harmless
changes.

With --objects it validates objects with both CRDs, and lists objects that become
invalid, lose fields or get new defaults.`,
		Example: a.Example(`
  # Find out what the changes of a branch break
  %[1]s diff --git main

  # Compare with the CRDs of the current cluster
  %[1]s diff --cluster config/crd

  # Compare two files
  %[1]s diff old.yaml new.yaml

  # Compare all CRDs of two folders, including harmless changes
  %[1]s diff old/crds new/crds --severity info

  # Check the objects of a cluster against the change
  kubectl get trees -A -o yaml > trees.yaml
  %[1]s diff old.yaml new.yaml --objects trees.yaml`),
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case o.git != "" && o.cluster:
				return errors.New("--git and --cluster both say what to compare with: choose one")
			case o.git == "" && !o.cluster && len(args) != 2:
				return fmt.Errorf("diff takes two files or folders, the old and the new, or --git or --cluster\nSee '%s --help'", cmd.CommandPath())
			case o.cluster && len(args) == 0:
				return fmt.Errorf("name the files or folders to compare with the cluster\nSee '%s --help'", cmd.CommandPath())
			case o.from.Context != "" && !o.cluster:
				return errors.New("--context needs --cluster")
			case o.from.Kubeconfig != "" && !o.cluster:
				return errors.New("--kubeconfig needs --cluster")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.diff(cmd.Context(), args, o) },
	}
	a.reportFlags(cmd)
	cmd.Flags().StringSliceVar(&o.objects, "objects", nil, "files or folders with objects to validate with both CRDs")
	cmd.Flags().StringVar(&o.git, "git", "", "compare with this revision of the git repository, such as main or HEAD~1")
	cmd.Flags().BoolVar(&o.cluster, "cluster", false, "compare with the CRDs of the cluster that kubectl uses")
	cmd.Flags().StringVar(&o.from.Context, "context", "", "the context of the kubeconfig for --cluster (default: that of the settings, or the current one)")
	cmd.Flags().StringVar(&o.from.Kubeconfig, "kubeconfig", "", "the kubeconfig for --cluster (default: kubectl's)")
	o.flags(cmd)
	cmd.Flags().StringVar(&o.failOn, "fail-on", "breaking", "exit with 1 if a reported change is at least this severe: breaking or risky; never: always exit with 0")
	fileFlags(cmd, "objects")
	cmd.ValidArgsFunction = completeFiles
	Must(cmd.RegisterFlagCompletionFunc("git", completeLines("git", "for-each-ref", "--format=%(refname:short)", "refs/heads", "refs/remotes", "refs/tags")))
	completeContext(cmd)
	Must(cmd.RegisterFlagCompletionFunc("fail-on", cobra.FixedCompletions([]string{"breaking", "risky", "never"}, cobra.ShellCompDirectiveNoFileComp)))
	return cmd
}

func (a *App) diff(ctx context.Context, args []string, o diffOptions) error {
	least, ok := failLevels[o.failOn]
	if !ok && o.failOn != failNever {
		return fmt.Errorf("--fail-on must be breaking, risky or never, not %q", o.failOn)
	}
	s, err := a.settings()
	if err != nil {
		return err
	}
	before, after, err := a.sides(ctx, args, s, o)
	if err != nil {
		return err
	}
	var objects []*manifest.Document
	if len(o.objects) > 0 {
		if objects, err = a.objects(ctx, o.objects, s); err != nil {
			return err
		}
	}
	r, err := compared(ctx, before, after, objects, o.git == "" && !o.cluster)
	if err != nil {
		return err
	}
	if n := s.waive(r, time.Now()); n > 0 {
		fmt.Fprintf(a.Err, "%s accepted by waivers of %s\n", report.Counted(n, "change"), settingsName)
	}
	err = a.finish("diff", r, s)
	if errors.Is(err, errFindings) && (o.failOn == failNever || !slices.ContainsFunc(r.Diagnostics, func(d report.Diagnostic) bool { return d.Severity.AtLeast(least) })) {
		return nil
	}
	return err
}

// sides reads the CRDs before and after.
func (a *App) sides(ctx context.Context, args []string, s *settings, o diffOptions) (before, after map[string]*manifest.Document, err error) {
	stdin := 0
	for _, p := range append(slices.Clone(args), o.objects...) {
		if p == manifest.Stdin {
			stdin++
		}
	}
	if stdin > 1 {
		return nil, nil, errors.New("standard input can be read only once: give a file for the others")
	}
	var files []*manifest.File
	switch {
	case o.git != "":
		if len(args) == 0 {
			args = []string{"."}
		}
		files, err = atRevision(ctx, o.git, args, o.charts())
	case o.cluster:
		if o.from.Kubeconfig == "" {
			o.from.Context = cmp.Or(o.from.Context, s.Cluster.Context)
		}
		files, err = ofCluster(ctx, o.from)
	default:
		if before, err = a.named(ctx, args[:1], s, o.charts()); err == nil {
			after, err = a.named(ctx, args[1:], s, o.charts())
		}
		return before, after, err
	}
	if err != nil {
		return nil, nil, err
	}
	if before, err = a.crdsByName(files); err != nil {
		return nil, nil, err
	}
	if after, err = a.named(ctx, args, s, o.charts()); err != nil {
		return nil, nil, err
	}
	if o.cluster {
		// What the cluster has beyond these files is not theirs to delete.
		maps.DeleteFunc(before, func(name string, _ *manifest.Document) bool { return after[name] == nil })
	}
	return before, after, nil
}

// change is a CRD before and after.
type change struct {
	old, now *manifest.Document
	object   string
}

// compared compares CRDs of the same name; with pair, if there is one on each side, these
// two.
func compared(ctx context.Context, before, after map[string]*manifest.Document, objects []*manifest.Document, pair bool) (*report.Report, error) {
	r := &report.Report{Noun: "CRD"}
	var evaluated findings
	only := pair && len(before) == 1 && len(after) == 1
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		c := change{old: before[name], now: after[name], object: "CustomResourceDefinition/" + name}
		if only {
			c.now = slices.Collect(maps.Values(after))[0]
		}
		if c.now == nil {
			r.Subjects = append(r.Subjects, report.Subject{File: c.old.File.Name, Object: c.object})
			r.Diagnostics = append(r.Diagnostics, c.gone())
			continue
		}
		r.Subjects = append(r.Subjects, report.Subject{File: c.now.File.Name, Object: c.object})
		changes, err := c.compare(objects, &evaluated)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.object, err)
		}
		for i := range changes {
			r.Diagnostics = append(r.Diagnostics, c.diagnostic(&changes[i]))
		}
	}
	if len(evaluated.subjects) > 0 {
		r.Noun = "document"
		r.Subjects = append(r.Subjects, evaluated.subjects...)
		r.Diagnostics = append(r.Diagnostics, evaluated.diagnostics...)
	}
	return r, nil
}

// gone reports a CRD that NEW does not have.
func (c *change) gone() report.Diagnostic {
	return report.Diagnostic{
		Check: "name-changed", Severity: finding.Error, Object: c.object, Place: report.At(c.old.File, c.old.Of(0)), Why: explanation("name-changed"),
		Message: "the new files do not contain this CRD (breaks writers, readers, stored objects): deleting it deletes all its objects",
		Fix:     "keep the CRD until no client uses it, or give the file that contains it",
	}
}

func (c *change) diagnostic(x *diff.Change) report.Diagnostic {
	d := report.Diagnostic{
		Check: x.Check, Severity: x.Level.Severity(), Object: c.object, Path: x.Path, Pointer: x.NewPointer,
		Message: where(x) + x.Message, Why: explanation(x.Check), Fix: x.Fix,
	}
	if x.Level != diff.Safe {
		d.Message = fmt.Sprintf("%s%s %s: %s", where(x), map[diff.Level]string{diff.Risky: "may break", diff.Breaking: "breaks"}[x.Level], x.Breaks, x.Message)
	}
	at, _ := c.now.LocateKey(x.NewPointer)
	d.Place = report.At(c.now.File, at)
	if x.OldPointer != "" {
		at, _ := c.old.LocateKey(x.OldPointer)
		d.Notes = []report.Note{{Message: "before", Place: report.At(c.old.File, at)}}
	}
	d.Notes = append(d.Notes, witnessOf(x)...)
	return d
}

// witnessOf shows the object that proves that a change breaks.
func witnessOf(x *diff.Change) []report.Note {
	const most = 2000
	show := func(object string) string {
		if len(object) > most {
			return strings.ToValidUTF8(object[:most], "") + "…"
		}
		return object
	}
	w := &x.Witness
	if w.Object == "" {
		return nil
	}
	text := "OLD accepts this object: " + show(w.Object)
	if w.Before != "" {
		text = "OLD accepts this update: " + show(w.Before) + " to " + show(w.Object)
	}
	return []report.Note{{Message: text}, {Message: "NEW: " + w.Refusal}}
}

// where renders what a change is about.
func where(x *diff.Change) string {
	at := strings.TrimSpace(x.Version + " " + x.Path)
	if at == "" {
		return ""
	}
	return at + ": "
}

// compare returns the changes of the CRD, and reports what becomes of objects.
func (c *change) compare(objects []*manifest.Document, into *findings) ([]diff.Change, error) {
	old, err := crd.Parse(c.old.JSON)
	if err != nil {
		return nil, fmt.Errorf("the old CRD: %w", err)
	}
	defer old.Release()
	now, err := crd.Parse(c.now.JSON)
	if err != nil {
		return nil, fmt.Errorf("the new CRD: %w", err)
	}
	defer now.Release()
	changes, err := diff.Compare(old, now)
	if err != nil {
		return nil, err
	}
	return changes, fates(old, now, objects, into)
}

// fates reports what becomes of the objects of a CRD.
func fates(old, now *crd.CRD, objects []*manifest.Document, into *findings) error {
	var own []*manifest.Document
	var texts [][]byte
	for _, d := range objects {
		if meta := typeMetaOf(d); meta.kind == old.Kind && meta.group() == old.Group {
			into.subject(d, meta.object())
			own = append(own, d)
			texts = append(texts, d.JSON)
		}
	}
	outcomes, err := diff.Objects(old, now, texts, espalier.Limits{})
	if err != nil {
		return err
	}
	for i := range outcomes {
		fate(own[i], &outcomes[i], into)
	}
	return nil
}

// fate reports what becomes of one object.
func fate(d *manifest.Document, x *diff.Outcome, into *findings) {
	object := typeMetaOf(d).object()
	add := func(check finding.ID, severity finding.Severity, path, message string) {
		into.add(report.Diagnostic{Check: check, Severity: severity, Object: object, Path: path, Message: object + ": " + message,
			Place: placeOf(d, path), Why: explanation(check)})
	}
	for _, v := range x.Invalid {
		add(checkOfKeyword[v.Keyword], finding.Error, v.At, "becomes invalid: "+v.Error())
	}
	for _, path := range x.Pruned {
		add(idFieldUnknown, finding.Error, path, "loses "+path+", which the new CRD prunes")
	}
	for _, path := range x.Defaulted {
		add("default-added", finding.Warning, path, "gets "+path+" from a default")
	}
	for _, path := range x.Kept {
		add("field-added", finding.Info, path, "keeps "+path+", which the old CRD prunes")
	}
	switch {
	case x.Fate&diff.NotServed != 0:
		add(idVersionUnserved, finding.Error, "", x.Explanation)
	case x.Fate&diff.Unknown != 0:
		add(idVersionUnknown, finding.Warning, "", x.Explanation)
	case x.Fate&diff.BecomesInvalid != 0 && len(x.Invalid) == 0:
		add(idMetadata, finding.Error, "", "becomes invalid: "+x.Explanation)
	case x.Fate&diff.ChangesOtherwise != 0:
		add("default-changed", finding.Warning, "", x.Explanation)
	}
}

// placeOf is where a field path leads in an object, as far as it does.
func placeOf(d *manifest.Document, path string) report.Place {
	doc, err := jsondoc.Parse(d.JSON, jsondoc.Limits{})
	if err != nil {
		return report.At(d.File, d.Of(0))
	}
	defer doc.Release()
	s := below(doc, jsondoc.Root, path)
	if s.key {
		return report.At(d.File, d.At(doc.Offset(s.value)))
	}
	return report.At(d.File, d.Of(doc.Offset(s.value)))
}
