package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/espalier-dev/espalier/internal/authority"
	"github.com/espalier-dev/espalier/server/local"
)

// newcomer is what `espalier dev user` is told.
type newcomer struct {
	dir    string
	groups []string
	file   string
}

func newDevUser(a *app) *cobra.Command {
	var n newcomer
	cmd := &cobra.Command{
		Use:   "user NAME",
		Short: "Write a kubeconfig for a user of the control plane",
		Long: `User writes a kubeconfig with a certificate for a user, signed by the CA of the data
folder. Who has the file is that user, in the groups that are named here, for as long
as the CA is valid. What the user may do is what roles and bindings say: at first
hardly anything. Members of the group system:masters may do everything.

It asks nobody, so that it works whether the control plane is running or not. It has
to have been started once.`,
		Example: a.example(`
  # Bob of team-a
  %[1]s dev user bob --group team-a
  kubectl --kubeconfig .espalier/users/bob.kubeconfig auth whoami`),
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return n.run(a, args[0]) },
	}
	dataDirFlag(cmd, &n.dir)
	cmd.Flags().StringSliceVar(&n.groups, "group", nil, "group that the user is a member of")
	cmd.Flags().StringVarP(&n.file, "output", "o", "", "file to write, - for standard output (default users/NAME.kubeconfig in the data folder)")
	return cmd
}

func (n *newcomer) run(a *app, name string) error {
	if name == "" {
		return errors.New("a user has a name")
	}
	config, err := n.sign(name)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("there is no control plane in %s: start one with '%s dev', or name its folder with --data-dir (%w)", n.dir, a.name, err)
	}
	if err != nil {
		return err
	}
	data, err := local.Kubeconfig(config)
	if err != nil {
		return err
	}
	if n.file == "-" {
		_, err := a.out.Write(data)
		return err
	}
	if n.file == "" {
		if strings.ContainsAny(name, `/\`) || name == "." || name == ".." {
			return fmt.Errorf("%q cannot be the name of a file: say with --output where to write", name)
		}
		users := filepath.Join(n.dir, "users")
		if err := os.MkdirAll(users, 0o700); err != nil {
			return err
		}
		if info, err := os.Lstat(users); err != nil || !info.IsDir() {
			return fmt.Errorf("%s is not a folder: remove it, or say with --output where to write", users)
		}
		n.file = filepath.Join(users, name+".kubeconfig")
	}
	if err := writeSecret(n.file, data); err != nil {
		return err
	}
	fmt.Fprintln(a.out, exportLine(n.file))
	return nil
}

// sign makes a certificate for a user. Where the server is, the administrator's
// kubeconfig says.
func (n *newcomer) sign(name string) (*rest.Config, error) {
	data, err := findOwnData(n.dir)
	if err != nil {
		return nil, err
	}
	admin, err := clientcmd.LoadFromFile(filepath.Join(n.dir, kubeconfigName))
	if err != nil {
		return nil, err
	}
	server, err := clientcmd.NewDefaultClientConfig(*admin, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(n.dir, kubeconfigName), err)
	}
	signer, err := authority.Load(filepath.Join(data, "pki"))
	if err != nil {
		return nil, err
	}
	pair, err := signer.Client(name, n.groups...)
	if err != nil {
		return nil, err
	}
	return &rest.Config{Host: server.Host, TLSClientConfig: rest.TLSClientConfig{CAData: signer.CA, CertData: pair.Cert, KeyData: pair.Key}}, nil
}
