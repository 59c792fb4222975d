package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/espalier-dev/espalier/cmd/internal/cluster"
	"github.com/espalier-dev/espalier/cmd/internal/report"
	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/impact"
	"github.com/espalier-dev/espalier/crd/manifest"
	"github.com/espalier-dev/espalier/finding"
)

type planOptions struct {
	chartOptions
	objects []string
	old     []string
	from    cluster.Source
	format  string
	failOn  string
	list    int
	listed  bool // the user says how many
}

// defaultList is how many objects are listed in formats that fold the list away.
const defaultList = 20

// maxList is how many objects a server lists at most.
const maxList = 1000

func newPlan(a *App) *cobra.Command {
	var o planOptions
	cmd := &cobra.Command{
		Use:   "plan -f NEW [--objects PATH... [--old OLD]]",
		Short: "Find out what a change of a CRD does to the objects that are stored",
		Long: `Plan reads the objects of a CRD and says what the new CRD does to each: whether it
loses fields, cannot be read, converted or updated any more, is refused if it is
created again (as GitOps and backups do), gets new defaults or other values. It
also says whether the API server refuses the new CRD, and who writes and owns the
affected objects. It changes nothing.

The objects are those of the cluster that kubectl uses. A server of this project
makes the plan itself, from what is stored, and only the summary leaves it. Other
servers do not show in which version an object is stored: plan reads the objects
as clients do, in pages.

With --objects, the objects are those of files and folders: what kubectl get -o
yaml or json prints, manifests, or a backup, as a folder or .tar.gz. The CRD as it
is now comes from --old, or is among the objects.

NEW is a file, a folder or a Helm chart, with one or several CRDs. Compare the
schemas alone, without objects, with diff.

The exit code is 1 if the server refuses the CRD or an object loses data or stops
working for clients.`,
		Example: a.Example(`
  # Plan a change against the current cluster
  %[1]s plan -f config/crd/crons.yaml

  # Plan a change against objects in a file, without a cluster
  kubectl get crons -A -o yaml > crons.yaml
  %[1]s plan -f new.yaml --old old.yaml --objects crons.yaml

  # Plan a change against a backup of Velero, which contains the CRDs
  %[1]s plan -f new.yaml --objects backup.tar.gz

  # Write a comment for a pull request
  %[1]s plan -f config/crd -o markdown > comment.md

  # Show what happens to each of the first 100 objects
  %[1]s plan -f new.yaml --list 100`),
	}
	takesFiles(cmd, func(ctx context.Context, files []string) error {
		o.listed = cmd.Flags().Changed("list")
		return a.plan(ctx, files, o)
	})
	flags := cmd.Flags()
	flags.StringSliceVar(&o.objects, "objects", nil, "files or folders with the objects (default: those of the cluster)")
	flags.StringSliceVar(&o.old, "old", nil, "with --objects: file, folder or chart with the CRD as it is now (default: it is among the objects)")
	flags.StringVar(&o.from.Context, "context", "", "the context of the kubeconfig (default: that of the settings, or the current one)")
	flags.StringVar(&o.from.Kubeconfig, "kubeconfig", "", "the kubeconfig (default: kubectl's)")
	flags.StringVarP(&o.format, "output", "o", "text", "output format: "+strings.Join(report.PlanFormats, ", "))
	flags.IntVar(&o.list, "list", 0, fmt.Sprintf("list up to this many affected objects of a CRD, at most %d (default: %d; 0 in text)", maxList, defaultList))
	flags.StringVar(&o.failOn, "fail-on", "breaking", "exit with 1 if an object loses data or stops working (breaking), or if one changes at all (risky); never: always exit with 0")
	o.flags(cmd)
	fileFlags(cmd, "objects", "old")
	completeContext(cmd)
	Must(cmd.RegisterFlagCompletionFunc("list", cobra.NoFileCompletions))
	Must(cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(report.PlanFormats, cobra.ShellCompDirectiveNoFileComp)))
	Must(cmd.RegisterFlagCompletionFunc("fail-on", cobra.FixedCompletions([]string{"breaking", "risky", failNever}, cobra.ShellCompDirectiveNoFileComp)))
	return cmd
}

// check refuses flags that do not fit together, and fills in what depends on others.
func (o *planOptions) check(files []string) error {
	inputs := slices.Concat(files, o.objects, o.old)
	stdin := 0
	for _, p := range inputs {
		if p == manifest.Stdin {
			stdin++
		}
	}
	_, level := failLevels[o.failOn]
	switch {
	case !slices.Contains(report.PlanFormats, o.format):
		return report.UnknownPlanFormat(o.format)
	case !level && o.failOn != failNever:
		return fmt.Errorf("--fail-on must be breaking, risky or never, not %q", o.failOn)
	case stdin > 1:
		return errors.New("standard input can be read only once: give a file for the others")
	case len(o.old) > 0 && len(o.objects) == 0:
		return errors.New("--old needs --objects: the objects of a cluster have its CRD")
	case len(o.objects) > 0 && (o.from.Context != "" || o.from.Kubeconfig != ""):
		return errors.New("--objects and --context or --kubeconfig both say where the objects are: choose one")
	case o.list < 0 || o.list > maxList:
		return fmt.Errorf("--list must be between 0 and %d", maxList)
	}
	if !o.listed && o.format != "text" {
		o.list = defaultList
	}
	return nil
}

func (a *App) plan(ctx context.Context, files []string, o planOptions) error {
	if err := o.check(files); err != nil {
		return err
	}
	color, err := a.Colored()
	if err != nil {
		return err
	}
	s, err := a.settings()
	if err != nil {
		return err
	}
	after, err := a.named(ctx, files, s, o.charts())
	if err != nil {
		return err
	}
	var plans report.Plans
	if len(o.objects) > 0 {
		plans, err = a.planFiles(ctx, after, s, &o)
	} else {
		if o.from.Kubeconfig == "" {
			o.from.Context = cmp.Or(o.from.Context, s.Cluster.Context)
		}
		plans, err = a.planCluster(ctx, after, &o)
	}
	if err != nil {
		return err
	}
	if err := plans.Write(a.Out, o.format, report.Options{Color: color}); err != nil {
		return err
	}
	fails := slices.ContainsFunc(plans, func(p *report.Plan) bool {
		return p.Breaks() || o.failOn == "risky" && p.Summary.Affected > 0
	})
	if fails && o.failOn != failNever {
		return errFindings
	}
	return nil
}

// planning is a plan that is being made.
type planning struct {
	*report.Plan
	document *manifest.Document // the new CRD
	old, now *crd.CRD           // old is nil if there is none yet, now if it cannot be read
	change   *impact.Change     // nil if it does not compile
	batch    [][]byte
	size     int // bytes of the batch
}

// newPlanning validates the new CRD and compiles the change. Without an old CRD the new one is created.
func newPlanning(d *manifest.Document, old []byte, source string, list int) (*planning, error) {
	p := &planning{Plan: &report.Plan{CRD: d.Name, File: d.File.Name, Source: source}, document: d}
	p.Summary.Most = list
	var err error
	if old != nil {
		if p.old, err = crd.Parse(old); err != nil {
			return nil, fmt.Errorf("the CRD %s as it is now: %w", d.Name, err)
		}
	}
	if p.now, err = crd.Parse(d.JSON); err != nil {
		return nil, fmt.Errorf("%s: %w", d.File.Name, err)
	}
	p.validate()
	return p, nil
}

// maxRefused bounds the errors of a CRD that are reported.
const maxRefused = 20

// validate records why a server refuses the new CRD.
func (p *planning) validate() {
	if strings.HasSuffix(p.now.APIVersion, "/v1beta1") {
		p.refuse("API servers do not accept CRDs of apiextensions.k8s.io/v1beta1: espalier fix rewrites it", 0)
		return
	}
	found, err := crd.Validate(p.now, crd.ValidateOptions{Old: p.old})
	if err != nil {
		d := unreadable(p.document, err)
		p.Refused = append(p.Refused, report.Note{Message: d.Message, Place: d.Place})
		return
	}
	for _, f := range finding.Errors(found) {
		p.refuse(f.Error(), f.Offset)
	}
}

func (p *planning) refuse(message string, offset int) {
	if len(p.Refused) < maxRefused {
		p.Refused = append(p.Refused, report.Note{Message: message, Place: report.At(p.document.File, p.document.Of(offset))})
	}
}

// unknownUntilCorrect is said of a CRD whose schemas cannot be applied to objects.
const unknownUntilCorrect = "what happens to its objects is not known before the CRD is correct"

// compile makes the change. If that fails, because a server would refuse the CRD, the objects are not looked at.
func (p *planning) compile(stock bool) error {
	change, err := impact.New(p.old, p.now, impact.Options{Stock: stock})
	switch {
	case err == nil:
		p.change = change
	case len(p.Refused) > 0:
		p.Unplanned = unknownUntilCorrect
	default:
		return fmt.Errorf("%s: %w", p.CRD, err)
	}
	return nil
}

// The bounds of a batch of objects in memory.
const (
	maxBatch      = 500
	maxBatchBytes = 16 << 20
)

// add takes an object. It does not keep the text.
func (p *planning) add(ctx context.Context, object []byte) error {
	p.batch = append(p.batch, slices.Clone(object))
	if p.size += len(object); len(p.batch) < maxBatch && p.size < maxBatchBytes {
		return nil
	}
	return p.flush(ctx)
}

// flush works on the objects that were taken, on all processors, and counts them in their order.
func (p *planning) flush(ctx context.Context) error {
	parts := slices.Collect(slices.Chunk(p.batch, max(1, (len(p.batch)+runtime.GOMAXPROCS(0)-1)/runtime.GOMAXPROCS(0))))
	outcomes, errs := make([][]impact.Outcome, len(parts)), make([]error, len(parts))
	var workers sync.WaitGroup
	for i := range parts {
		workers.Go(func() { outcomes[i], errs[i] = p.change.Page(ctx, parts[i]) })
	}
	workers.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, part := range outcomes {
		for i := range part {
			p.Summary.Add(&part[i])
		}
	}
	p.batch, p.size = p.batch[:0], 0
	return nil
}

// finish ends a plan of objects that were read.
func (p *planning) finish(ctx context.Context) (*report.Plan, error) {
	if p.change != nil {
		if err := p.flush(ctx); err != nil {
			return nil, err
		}
	}
	p.complete()
	return p.Plan, nil
}

// complete adds what follows from the numbers.
func (p *planning) complete() {
	p.Summary.Order()
	if n := p.Summary.Refused; n > 0 {
		p.Notes = append(p.Notes, fmt.Sprintf("today's CRD already refuses %s if created again", count(int(n), "object")))
	}
}

// created is the plan for a CRD that does not exist yet.
func (p *planning) created(where string) *report.Plan {
	p.Unplanned = where + " has no CRD of this name: it is new, and has no objects"
	return p.Plan
}

func sortedNames(m map[string]*manifest.Document) []string { return slices.Sorted(maps.Keys(m)) }
