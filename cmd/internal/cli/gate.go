package cli

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/espalier-dev/espalier/cmd/internal/report"
	"github.com/espalier-dev/espalier/finding"
)

// gate says which findings make a command fail.
type gate struct {
	failOn        string
	baseline      string
	writeBaseline bool
	hook          bool // warnings do not fail unless they are asked to
}

// gateFlags are for commands that are steps of CI.
func (a *App) gateFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&a.gate.failOn, "fail-on", "", "exit with 1 if a reported finding is at least this severe: error, warning or info; never: always exit with 0 (default: any reported finding)")
	flags.StringVar(&a.gate.baseline, "baseline", "", "file with known findings, which are not reported again")
	flags.BoolVar(&a.gate.writeBaseline, "write-baseline", false, "write all findings to the file of --baseline, and exit with 0")
	Must(cmd.RegisterFlagCompletionFunc("fail-on", cobra.FixedCompletions([]string{"error", "warning", "info", failNever}, cobra.ShellCompDirectiveNoFileComp)))
}

// failNever is the value of --fail-on with which nothing fails.
const failNever = "never"

// failLevel reads a value of --fail-on. Without one, every finding fails.
func failLevel(name string) (fails func(finding.Severity) bool, err error) {
	switch name {
	case "":
		return func(finding.Severity) bool { return true }, nil
	case failNever:
		return func(finding.Severity) bool { return false }, nil
	}
	least, err := finding.ParseSeverity(name)
	if err != nil {
		return nil, fmt.Errorf("use error, warning, info or never, not %q", name)
	}
	return func(s finding.Severity) bool { return s.AtLeast(least) }, nil
}

// finish applies the settings to a report, writes it, and says whether there was anything in
// it that makes the command fail.
func (a *App) finish(command string, r *report.Report, s *settings) error {
	least, err := finding.ParseSeverity(a.severity)
	if err != nil {
		return err
	}
	color, err := a.Colored()
	if err != nil {
		return err
	}
	failOn := a.gate.failOn
	if failOn == "" {
		failOn = s.FailOn
	}
	if failOn == "" && a.gate.hook {
		failOn = finding.Error.String()
	}
	fails, err := failLevel(failOn)
	if err != nil {
		return fmt.Errorf("--fail-on: %w", err)
	}
	s.choose(r, least)
	if done, err := a.known(r, s); done || err != nil {
		return err
	}
	r.Checks = checksOf(r.Diagnostics)
	if err := r.Write(a.Out, a.format, report.Options{Color: color, Version: Version(), Command: command}); err != nil {
		return err
	}
	for i := range r.Diagnostics {
		if fails(r.Diagnostics[i].Severity) {
			return errFindings
		}
	}
	return nil
}

// known leaves out the findings of the baseline, or writes them. done says that there is
// nothing else to do.
func (a *App) known(r *report.Report, s *settings) (done bool, err error) {
	path := a.gate.baseline
	if path == "" && s.Baseline != "" {
		path = filepath.Join(s.dir, filepath.FromSlash(s.Baseline))
	}
	switch {
	case path == "" && a.gate.writeBaseline:
		return true, errors.New("--write-baseline needs --baseline FILE, or baseline in " + settingsName)
	case path == "":
		return false, nil
	case a.gate.writeBaseline:
		if err := writeBaseline(r, path); err != nil {
			return true, err
		}
		_, err := fmt.Fprintf(a.Out, "%s written to %s\n", report.Counted(len(r.Diagnostics), "finding"), path)
		return true, err
	}
	gone, err := leaveOut(r, path)
	if err == nil && gone > 0 {
		fmt.Fprintf(a.Err, "%s of %s not found any more: write it again with --write-baseline\n", report.Counted(gone, "finding"), path)
	}
	return false, err
}
