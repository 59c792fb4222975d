package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/espalier-dev/espalier/cmd/internal/cli"
)

// assets is the variable that tells envtest where its programs are.
const assets = "KUBEBUILDER_ASSETS"

func newEnvtest(a *app) *cobra.Command {
	var what string
	cmd := &cobra.Command{
		Use:   "envtest [DIR]",
		Short: cli.EnvtestShort,
		Long: `Make a folder with the programs that controller-runtime's envtest starts, etcd and
kube-apiserver, and print the environment variable that points envtest to it. Both are
links to this program, which runs etcd or the API server depending on the name that it
is called by. Tests need no change, and nothing is downloaded. If kubectl is in PATH,
the folder gets a link to it, too.

The default folder is in the user's cache folder. If you move this program, run the
command again.`,
		Example: a.Example(`
  # Run the tests of a project
  eval "$(%[1]s envtest)" && go test ./...

  # In a Makefile, instead of setup-envtest
  KUBEBUILDER_ASSETS="$(shell %[1]s envtest --print path)" go test ./...`),
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			dir, err := assetsFolder(args)
			if err != nil {
				return err
			}
			text, err := assetsText(what, dir)
			if err != nil {
				return err
			}
			if err := writeAssets(dir); err != nil {
				return err
			}
			_, err = fmt.Fprintln(a.Out, text)
			return err
		},
	}
	prints := []string{"env", "path"}
	cmd.Flags().StringVarP(&what, "print", "p", "env", "what to print: env (a shell command that sets the variable) or path (of the folder)")
	cli.Must(cmd.RegisterFlagCompletionFunc("print", cobra.FixedCompletions(prints, cobra.ShellCompDirectiveNoFileComp)))
	return cmd
}

// assetsFolder is the folder to write, as an absolute path: tests run in others.
func assetsFolder(args []string) (string, error) {
	if len(args) > 0 {
		return filepath.Abs(args[0])
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("%w: give a folder as argument", err)
	}
	return filepath.Join(cache, "espalier", "envtest"), nil
}

func assetsText(what, dir string) (string, error) {
	switch {
	case what == "path":
		return dir, nil
	case what != "env":
		return "", fmt.Errorf("--print must be env or path, not %q", what)
	case runtime.GOOS == "windows":
		return "$env:" + assets + " = '" + strings.ReplaceAll(dir, "'", "''") + "'", nil
	}
	return "export " + assets + "=" + shellQuote(dir), nil
}

// shellQuote writes a text so that a shell reads it as one word.
func shellQuote(text string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+,:@%", r)
	}
	if text != "" && strings.IndexFunc(text, func(r rune) bool { return !plain(r) }) < 0 {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// writeAssets makes the folder.
func writeAssets(dir string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := own(dir); err != nil {
		return err
	}
	for _, name := range []string{etcdProgram, kubeAPIServer} {
		if err := place(self, dir, name); err != nil {
			return err
		}
	}
	// One that came from there would be a link to itself.
	kubectl, err := exec.LookPath("kubectl")
	if err != nil || filepath.Dir(kubectl) == dir {
		return nil
	}
	if kubectl, err = filepath.Abs(kubectl); err != nil {
		return err
	}
	return place(kubectl, dir, "kubectl")
}

// place has a program in a folder, under a name.
func place(program, dir, name string) error {
	name = cli.ProgramFile(name)
	path := filepath.Join(dir, name)
	if sameFile(path, program) {
		return nil
	}
	// Another process may be doing the same: what is there is whole at all times.
	fresh, err := os.MkdirTemp(dir, ".new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(fresh)
	temporary := filepath.Join(fresh, name)
	if lasting(program) {
		err = os.Symlink(program, temporary)
	} else {
		err = copyProgram(program, temporary)
	}
	if err != nil {
		return err
	}
	return os.Rename(temporary, path)
}

func sameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// ours is a file that says that a folder is this command's.
const ours = ".espalier-envtest"

// own marks a folder as made by this command. It refuses one that has programs from
// elsewhere, such as a real kube-apiserver.
func own(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	sign := filepath.Join(dir, ours)
	if _, err := os.Stat(sign); err == nil {
		return nil
	}
	for _, name := range []string{etcdProgram, kubeAPIServer, "kubectl"} {
		path := filepath.Join(dir, cli.ProgramFile(name))
		if _, err := os.Lstat(path); err == nil {
			return fmt.Errorf("%s exists and was not made by this command: remove it, or give another folder", path)
		}
	}
	return os.WriteFile(sign, []byte("This folder is made by `espalier envtest`, which replaces what is in it.\n"), 0o644)
}

// lasting reports whether a link to a program is good for longer than this process:
// `go run` removes what it has built.
func lasting(program string) bool {
	if runtime.GOOS == "windows" {
		return false // links are for administrators
	}
	relative, err := filepath.Rel(os.TempDir(), program)
	return err != nil || strings.HasPrefix(relative, "..")
}

func copyProgram(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
