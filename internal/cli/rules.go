package cli

import (
	"encoding/json"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/espalier-dev/espalier/docs"
	"github.com/espalier-dev/espalier/finding"
)

func newRules(a *app) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "rules [ID]",
		Short: "List the rules, or explain one",
		Long: `Rules lists the identifiers of everything that the commands can find, with the
severity and one sentence each. With an identifier it shows the rule's page: why
it exists, an example, and how to mend a violation.

Severities can be changed, and rules switched on and off, in ` + settingsName + `.`,
		Example: a.example(`
  # All rules
  %[1]s rules

  # Why is this an error, and what can I do?
  %[1]s rules type-required`),
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
				return a.rulePage(finding.ID(args[0]))
			}
			switch format {
			case "text":
				return a.listRules()
			case "json":
				return a.listRulesJSON()
			}
			return fmt.Errorf("there is no output format %q for rules: use text or json", format)
		},
	}
	cmd.Flags().StringVarP(&format, "output", "o", "text", "output format: text or json")
	return cmd
}

func (a *app) rulePage(id finding.ID) error {
	if _, ok := ruleByID(id); !ok {
		hint := ""
		if near := nearestRule(id); near != "" {
			hint = fmt.Sprintf(" Did you mean %s?", near)
		}
		return fmt.Errorf("there is no rule %q.%s '%s rules' lists all", id, hint, a.name)
	}
	_, err := fmt.Fprint(a.out, docs.Page(id))
	return err
}

func (a *app) listRules() error {
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
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

func (a *app) listRulesJSON() error {
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
	e := json.NewEncoder(a.out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(out)
}
