package cli

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// NewMan makes the command man. It is hidden: packages of the program run it, and few users do.
func NewMan(a *App) *cobra.Command {
	markdown := false
	cmd := &cobra.Command{
		Use:   "man DIR",
		Short: "Write the manual pages of this program",
		Long: `Man writes a page of section 1 for each command to a folder. Their date is that of
SOURCE_DATE_EPOCH, if it is set, and otherwise today.`,
		Example: a.Example(`
  # Install the pages for one user
  %[1]s man ~/.local/share/man/man1

  # Write them as Markdown
  %[1]s man --markdown docs/commands`),
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE:   func(cmd *cobra.Command, args []string) error { return a.man(cmd.Root(), args[0], markdown) },
	}
	cmd.Flags().BoolVar(&markdown, "markdown", false, "write Markdown instead of manual pages")
	return cmd
}

func (a *App) man(root *cobra.Command, dir string, markdown bool) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root.DisableAutoGenTag = true
	header := &doc.GenManHeader{Section: "1", Source: root.Name() + " " + Version(), Manual: "Espalier"}
	suffix, write := ".1", func() error { return doc.GenManTree(root, header, dir) }
	if markdown {
		suffix, write = ".md", func() error { return doc.GenMarkdownTree(root, dir) }
	}
	if err := write(); err != nil {
		return fmt.Errorf("write the manual pages: %w", err)
	}
	pages, err := filepath.Glob(filepath.Join(dir, root.Name()+"*"+suffix))
	if err != nil {
		return err
	}
	fmt.Fprintf(a.Err, "%d pages written to %s\n", len(pages), dir)
	return nil
}
