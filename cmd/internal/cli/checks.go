package cli

import (
	"encoding/json"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/espalier-dev/espalier/docs"
	"github.com/espalier-dev/espalier/finding"
)

func newChecks(a *App) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:     "checks [ID]",
		Aliases: []string{"rules"}, // the old name, which scripts use
		Short:   "List the checks, or explain one",
		Long: `Checks lists all checks of the commands: identifier, severity and one sentence.
With an identifier it shows the page of the check: why it exists, an example, and
how to fix a violation.

To change the severity of a check, or to turn it on or off, set it in
` + settingsName + `.`,
		Example: a.Example(`
  # List all checks
  %[1]s checks

  # Explain a check, and how to fix a violation
  %[1]s checks type-required`),
		Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			var ids []string
			for _, r := range catalog() {
				ids = append(ids, string(r.ID)+"\t"+r.Explanation)
			}
			return ids, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				return a.checkPage(finding.ID(args[0]))
			}
			switch format {
			case "text":
				return a.listChecks()
			case "json":
				return a.listChecksJSON()
			}
			return fmt.Errorf("there is no output format %q for checks: use text or json", format)
		},
	}
	cmd.Flags().StringVarP(&format, "output", "o", "text", "output format: text or json")
	return cmd
}

func (a *App) checkPage(id finding.ID) error {
	if _, ok := checkByID(id); !ok {
		hint := ""
		if near := nearestCheck(id); near != "" {
			hint = fmt.Sprintf(" Did you mean %s?", near)
		}
		return fmt.Errorf("there is no check %q.%s '%s checks' lists all", id, hint, a.Name)
	}
	_, err := fmt.Fprint(a.Out, docs.Page(id))
	return err
}

func (a *App) listChecks() error {
	w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	group := ""
	for _, r := range catalog() {
		if r.Group != group {
			if group != "" {
				fmt.Fprintln(w)
			}
			group = r.Group
			fmt.Fprintf(w, "# %s\n", group)
		}
		severity := r.Severity.String()
		if r.Off {
			severity += " (off)"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", r.ID, severity, r.Explanation)
	}
	return w.Flush()
}

func (a *App) listChecksJSON() error {
	type entry struct {
		ID          string `json:"id"`
		Group       string `json:"group"`
		Severity    string `json:"severity"`
		Off         bool   `json:"off,omitempty"`
		Explanation string `json:"explanation"`
		Source      string `json:"source"`
	}
	var out []entry
	for _, r := range catalog() {
		out = append(out, entry{string(r.ID), r.Group, r.Severity.String(), r.Off, r.Explanation, r.Source})
	}
	e := json.NewEncoder(a.Out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(out)
}
