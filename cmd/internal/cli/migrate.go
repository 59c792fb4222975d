package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/espalier-dev/espalier/cmd/internal/cluster"
)

// The annotations of StorageVersionMigrations that our server knows.
const (
	pausedAnnotation   = "migration.espalier.dev/paused"
	keepAnnotation     = "migration.espalier.dev/keep-preimages"
	undoAnnotation     = "migration.espalier.dev/undo"
	progressAnnotation = "migration.espalier.dev/progress"
	listedAnnotation   = "migration.espalier.dev/quarantined"
)

// migrationsResource is what kubectl is asked for, whatever other resources have this name.
const migrationsResource = "storageversionmigrations.v1.storagemigration.k8s.io"

type migrateOptions struct {
	from cluster.Source
	wait bool
	keep time.Duration
	name string
	poll time.Duration
}

func newMigrate(a *App) *cobra.Command {
	o := migrateOptions{poll: time.Second}
	cmd := &cobra.Command{
		Use:   "migrate RESOURCE.GROUP",
		Short: "Rewrite the stored objects of a CRD in its storage version",
		Long: `Migrate creates a StorageVersionMigration for the objects of a CRD, such as
widgets.example.com, or of a built-in resource, such as secrets. The server
rewrites the objects in the storage version and with the current encryption key.
If all of them could be rewritten, it removes the other versions from
status.storedVersions of the CRD.

An Espalier server can pause and resume a migration. With --keep-preimages it
keeps the stored bytes of each object for a time after the migration, and
'migrate undo' puts them back. Kubernetes 1.37 and later can do none of this.

Migrate uses kubectl and its kubeconfig.

Exit codes: 0 done, 1 the migration failed, 2 could not run.`,
		Example: a.Example(`
  # Migrate, wait for the end, and be able to undo it for a day
  %[1]s migrate widgets.example.com --wait --keep-preimages 24h

  # Show how far a migration is
  %[1]s migrate status widgets.example.com`),
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("no resource given: name a CRD, such as widgets.example.com")
			}
			return a.migrate(cmd.Context(), args[0], o)
		},
	}
	cmd.PersistentFlags().StringVar(&o.from.Context, "context", "", "the context of the kubeconfig (default: the current one)")
	cmd.PersistentFlags().StringVar(&o.from.Kubeconfig, "kubeconfig", "", "the kubeconfig (default: kubectl's)")
	cmd.Flags().BoolVar(&o.wait, "wait", false, "wait for the end of the migration")
	cmd.Flags().DurationVar(&o.keep, "keep-preimages", 0, "how long the server keeps the stored bytes of each object after the migration, for 'migrate undo'")
	cmd.Flags().StringVar(&o.name, "name", "", "the name of the StorageVersionMigration (default: that of the resource)")
	cmd.AddCommand(
		a.migrateCommand(&o, "status NAME", "Show how far a migration is",
			`Status shows the phase of a migration, how many objects are migrated, and which
objects the server has left as they are, and why.

Exit codes: 0 running or done, 1 the migration failed, 2 could not run.`,
			"status widgets.example.com", a.migrationStatus),
		a.migrateCommand(&o, "pause NAME", "Pause a migration",
			`Pause has an Espalier server stop a migration after the objects that it is
rewriting. 'migrate resume' continues it.`,
			"pause widgets.example.com", annotating(a, "pause", pausedAnnotation, "true", "pausing")),
		a.migrateCommand(&o, "resume NAME", "Resume a paused migration",
			`Resume has an Espalier server continue a migration that was paused.`,
			"resume widgets.example.com", annotating(a, "resume", pausedAnnotation, "", "resuming")),
		a.migrateCommand(&o, "undo NAME", "Put the objects back that a migration has rewritten",
			`Undo has an Espalier server put the stored bytes back that each object had before
the migration. Objects that have changed since stay as they are; 'migrate status'
lists them. The migration must have been created with --keep-preimages, and the
CRD must still have the version that the objects were stored in.`,
			"undo widgets.example.com", annotating(a, "undo", undoAnnotation, "true", "undoing")),
	)
	return cmd
}

// migrateCommand makes a subcommand about one migration.
func (a *App) migrateCommand(o *migrateOptions, use, short, long, example string, run func(ctx context.Context, name string, o migrateOptions) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Long: long, Example: a.Example("  %[1]s migrate " + example), Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return run(cmd.Context(), args[0], *o) },
	}
}

// migrationObject is what the command reads of a StorageVersionMigration.
type migrationObject struct {
	Metadata struct {
		Name        string            `json:"name"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		Resource struct {
			Group    string `json:"group"`
			Resource string `json:"resource"`
		} `json:"resource"`
	} `json:"spec"`
	Status struct {
		Conditions []struct {
			Type    string `json:"type"`
			Status  string `json:"status"`
			Reason  string `json:"reason"`
			Message string `json:"message"`
		} `json:"conditions"`
	} `json:"status"`
}

// condition returns the status, reason and message of a condition.
func (m *migrationObject) condition(of string) (is bool, reason, message string) {
	for _, c := range m.Status.Conditions {
		if c.Type == of {
			return c.Status == "True", c.Reason, c.Message
		}
	}
	return false, "", ""
}

// migrate creates a migration, and waits for its end if that is wanted.
func (a *App) migrate(ctx context.Context, resource string, o migrateOptions) error {
	plural, group, _ := strings.Cut(resource, ".")
	if plural == "" {
		return fmt.Errorf("%q is not a resource: name a CRD, such as widgets.example.com", resource)
	}
	if o.keep < 0 {
		return fmt.Errorf("--keep-preimages must not be negative, it is %v", o.keep)
	}
	if o.name == "" {
		o.name = resource
	}
	metadata := map[string]any{"name": o.name}
	if o.keep > 0 {
		if err := o.known(ctx, "--keep-preimages", nil); err != nil {
			return err
		}
		metadata["annotations"] = map[string]string{keepAnnotation: o.keep.String()}
	}
	text, err := json.Marshal(map[string]any{
		"apiVersion": "storagemigration.k8s.io/v1", "kind": "StorageVersionMigration", "metadata": metadata,
		"spec": map[string]any{"resource": map[string]string{"group": group, "resource": plural}},
	})
	if err != nil {
		return err
	}
	if _, err := cluster.Run(ctx, o.from, string(text), "create", "-f", "-"); err != nil {
		return o.explain("creating the StorageVersionMigration "+o.name, err)
	}
	fmt.Fprintf(a.Out, "storageversionmigration/%s created\n", o.name)
	if !o.wait {
		return nil
	}
	return a.awaitMigration(ctx, o)
}

// explain adds what to do to an error of kubectl.
func (o *migrateOptions) explain(what string, err error) error {
	switch text := err.Error(); {
	case strings.Contains(text, "AlreadyExists"):
		return fmt.Errorf("%s failed: there is one of this name. Delete it, or give another --name: kubectl delete storageversionmigration %s%s", what, o.name, kubectlFlags(o.from))
	case strings.Contains(text, "no matches for kind"), strings.Contains(text, "doesn't have a resource type"):
		return fmt.Errorf("%s failed: the server has no storagemigration.k8s.io/v1, which Espalier and Kubernetes 1.37 have", what)
	default:
		return fmt.Errorf("%s failed: %w", what, err)
	}
}

// known returns an error if the server is not known to be ours. /version of our server
// names it, and our controller writes its progress into an annotation.
func (o *migrateOptions) known(ctx context.Context, what string, m *migrationObject) error {
	if m != nil && m.Metadata.Annotations[progressAnnotation] != "" {
		return nil
	}
	text, err := cluster.Run(ctx, o.from, "", "get", "--raw", "/version")
	if err != nil {
		return fmt.Errorf("reading the server's version failed: %w", err)
	}
	var version struct {
		GitVersion string `json:"gitVersion"`
	}
	if err := json.Unmarshal(text, &version); err != nil {
		return fmt.Errorf("reading the server's version failed: %w", err)
	}
	if !strings.Contains(version.GitVersion, "+espalier.") {
		return fmt.Errorf("the server does not know %s: it is Kubernetes %s, and only Espalier does", what, version.GitVersion)
	}
	return nil
}

// read gets a migration.
func (o *migrateOptions) read(ctx context.Context, name string) (*migrationObject, error) {
	text, err := cluster.Run(ctx, o.from, "", "get", migrationsResource, name, "-o", "json")
	if err != nil {
		return nil, o.explain("reading the StorageVersionMigration "+name, err)
	}
	m := &migrationObject{}
	if err := json.Unmarshal(text, m); err != nil {
		return nil, fmt.Errorf("reading the StorageVersionMigration %s failed: %w", name, err)
	}
	return m, nil
}

// awaitMigration waits for the end, and tells of the progress when it changes.
func (a *App) awaitMigration(ctx context.Context, o migrateOptions) error {
	last := ""
	for {
		m, err := o.read(ctx, o.name)
		if err != nil {
			return err
		}
		succeeded, _, _ := m.condition("Succeeded")
		failed, _, _ := m.condition("Failed")
		if succeeded || failed {
			return a.showMigration(m)
		}
		if _, _, message := m.condition("Running"); message != "" && message != last {
			fmt.Fprintln(a.Err, message)
			last = message
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(o.poll):
		}
	}
}

func (a *App) migrationStatus(ctx context.Context, name string, o migrateOptions) error {
	m, err := o.read(ctx, name)
	if err != nil {
		return err
	}
	return a.showMigration(m)
}

// showMigration prints a migration. A failed one is a finding.
func (a *App) showMigration(m *migrationObject) error {
	resource := m.Spec.Resource.Resource
	if m.Spec.Resource.Group != "" {
		resource += "." + m.Spec.Resource.Group
	}
	phase, message := "waiting", ""
	fails := false
	for _, c := range []struct{ condition, phase string }{{"Running", "running"}, {"Succeeded", "succeeded"}, {"Failed", "failed"}, {"Undone", "undone"}} {
		is, reason, text := m.condition(c.condition)
		switch {
		case is:
			phase, message, fails = c.phase, text, c.condition == "Failed"
		case reason == "Paused":
			phase, message = "paused", text
		case c.condition == "Undone" && reason == "Undoing":
			phase, message = "undoing", text
		case c.condition == "Undone" && reason != "":
			phase, message, fails = "undo waits", text, true
		}
	}
	fmt.Fprintf(a.Out, "%s: %s", resource, phase)
	if message != "" {
		fmt.Fprintf(a.Out, ": %s", oneLine(message))
	}
	fmt.Fprintln(a.Out)
	a.showProgress(m)
	if fails {
		return errFindings
	}
	return nil
}

// showProgress prints what only our server tells.
func (a *App) showProgress(m *migrationObject) {
	var p struct {
		Total, Migrated, Skipped, Quarantined, Rate, Preimages int64
		Expires                                                *time.Time
	}
	if json.Unmarshal([]byte(m.Metadata.Annotations[progressAnnotation]), &p) == nil {
		fmt.Fprintf(a.Out, "  %d objects: %d migrated, %d needed nothing, %d left as they are\n", p.Total, p.Migrated, p.Skipped, p.Quarantined)
		if p.Preimages > 0 && p.Expires != nil {
			fmt.Fprintf(a.Out, "  can be undone until %s\n", p.Expires.UTC().Format(time.RFC3339))
		}
	}
	var listed []struct{ Name, Reason string }
	if json.Unmarshal([]byte(m.Metadata.Annotations[listedAnnotation]), &listed) == nil {
		for _, one := range listed {
			fmt.Fprintf(a.Out, "  %s: %s\n", oneLine(one.Name), oneLine(one.Reason))
		}
	}
}

// oneLine is what a server says, without characters that a terminal acts on.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || 0x80 <= r && r < 0xa0 {
			return ' '
		}
		return r
	}, text)
}

// annotating returns a subcommand that sets an annotation, or removes it.
func annotating(a *App, what, annotation, value, doing string) func(context.Context, string, migrateOptions) error {
	return func(ctx context.Context, name string, o migrateOptions) error {
		m, err := o.read(ctx, name)
		if err != nil {
			return err
		}
		if err := o.known(ctx, what, m); err != nil {
			return err
		}
		change := annotation + "-"
		if value != "" {
			change = annotation + "=" + value
		}
		if _, err := cluster.Run(ctx, o.from, "", "annotate", "--overwrite", migrationsResource, name, change); err != nil {
			return o.explain("annotating the StorageVersionMigration "+name, err)
		}
		fmt.Fprintf(a.Out, "%s %s\n", doing, name)
		return nil
	}
}
