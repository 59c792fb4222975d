package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/espalier-dev/espalier/cmd/internal/cluster"
	"github.com/espalier-dev/espalier/cmd/internal/doctor"
	"github.com/espalier-dev/espalier/cmd/internal/report"
	"github.com/espalier-dev/espalier/finding"
)

type doctorOptions struct {
	from   cluster.Source
	output string
	failOn string
}

func newDoctor(a *App) *cobra.Command {
	o := doctorOptions{}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look for what is wrong with a running server, and say what to do",
		Long: `Doctor examines the server of a kubeconfig: when its certificates and those of the
kubeconfig expire, its clock, its readiness, CRDs that are not served or have stored
versions that are gone, webhooks that are unreachable, untrusted or slow, API services,
quotas, deletions that do not end, and controllers without a leader. Of an Espalier server
it also reads the members, versions, quota and alarms of etcd.

It changes nothing. It tries conversion webhooks by listing one object in each served
version, and it connects from this machine to admission webhooks with URLs, to see their
certificates. Metrics are of the replica that answers. What it cannot read, it lists as
not checked. 'serve --check' validates the settings of a server.

Doctor uses kubectl and its kubeconfig. It reads everything that it needs as a member of
system:masters, or of system:monitoring with the ClusterRole view.

Exit codes: 0 no finding is an error, 1 at least one is (--fail-on), 2 could not run.`,
		Example: a.Example(`
  # Examine the current cluster
  %[1]s doctor

  # For a job: fail on warnings as well
  %[1]s doctor --context production --fail-on warning -o json`),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.doctor(cmd.Context(), &o) },
	}
	cmd.Flags().StringVar(&o.from.Context, "context", "", "the context of the kubeconfig (default: the current one)")
	cmd.Flags().StringVar(&o.from.Kubeconfig, "kubeconfig", "", "the kubeconfig (default: kubectl's)")
	cmd.Flags().StringVarP(&o.output, "output", "o", "text", "output format: text or json")
	cmd.Flags().StringVar(&o.failOn, "fail-on", "error", "exit with 1 if a finding is at least this severe: error, warning or info; never: always exit with 0")
	Must(cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(textAndJSON, cobra.ShellCompDirectiveNoFileComp)))
	Must(cmd.RegisterFlagCompletionFunc("fail-on", cobra.FixedCompletions([]string{"error", "warning", "info", failNever}, cobra.ShellCompDirectiveNoFileComp)))
	return cmd
}

// textAndJSON are the formats of commands about a running server.
var textAndJSON = []string{"text", "json"}

// doctor examines a server and prints what it has found.
func (a *App) doctor(ctx context.Context, o *doctorOptions) error {
	fails, err := failLevel(o.failOn)
	if err != nil {
		return fmt.Errorf("--fail-on: %w", err)
	}
	color, err := a.Colored()
	if err != nil {
		return err
	}
	if o.output != "text" && o.output != "json" {
		return fmt.Errorf("--output is text or json, not %q", o.output)
	}
	bar := &progress{}
	r, err := doctor.Examine(ctx, o.from, func(steps int) { bar = a.progress(steps, "steps") }, func() { bar.add(1) })
	bar.stop()
	if err != nil {
		return err
	}
	if o.output == "json" {
		err = writeJSON(a.Out, r)
	} else {
		_, err = io.WriteString(a.Out, doctorText(r, color))
	}
	if err == nil && r.Fails(fails) {
		err = errFindings
	}
	return err
}

// writeJSON writes a value for programs.
func writeJSON(out io.Writer, value any) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}

// doctorText is a report for people.
func doctorText(r *doctor.Report, color bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n", r.Server, r.Version)
	counts := map[finding.Severity]int{}
	for _, f := range r.Findings {
		counts[f.Severity]++
		severity := f.Severity.String()
		if color {
			severity = map[finding.Severity]string{finding.Error: "\x1b[31m", finding.Warning: "\x1b[33m", finding.Info: "\x1b[36m"}[f.Severity] + severity + "\x1b[0m"
		}
		fmt.Fprintf(&b, "\n%s: %s: %s [%s]\n     why: %s\n     fix: %s\n", severity, f.Where, f.Message, f.Check, f.Why, f.Fix)
	}
	fmt.Fprintf(&b, "\nchecked: %s\n", strings.Join(r.Checked, ", "))
	for _, s := range r.Skipped {
		fmt.Fprintf(&b, "not checked: %s: %s\n", s.What, s.Reason)
	}
	if len(r.Findings) == 0 {
		b.WriteString("nothing found\n")
		return b.String()
	}
	var parts []string
	for _, one := range []struct {
		severity finding.Severity
		noun     string
	}{{finding.Error, "error"}, {finding.Warning, "warning"}, {finding.Info, "note"}} {
		if n := counts[one.severity]; n > 0 {
			parts = append(parts, report.Counted(n, one.noun))
		}
	}
	fmt.Fprintln(&b, strings.Join(parts, ", "))
	return b.String()
}
