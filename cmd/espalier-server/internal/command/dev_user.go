package command

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/espalier-dev/espalier/server/auth/ca"
	"github.com/espalier-dev/espalier/server/local"
)

// userOptions are the flags of `espalier dev user`.
type userOptions struct {
	dir    string
	groups []string
	file   string
}

func newDevUser(a *app) *cobra.Command {
	var o userOptions
	cmd := &cobra.Command{
		Use:   "user NAME",
		Short: "Write a kubeconfig for a user of the control plane",
		Long: `Write a kubeconfig with a client certificate for a user, signed by the CA of the data
folder. The file authenticates its holder as that user, in the groups of --group, until
the CA expires. A new user has almost no rights; grant some with roles and bindings.
Members of the group system:masters may do everything.

The control plane need not run, but it must have been started once.`,
		Example: a.Example(`
  # Bob of team-a
  %[1]s dev user bob --group team-a
  kubectl --kubeconfig .espalier/users/bob.kubeconfig auth whoami`),
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return o.run(a, args[0]) },
	}
	dataDirFlag(cmd, &o.dir)
	cmd.Flags().StringSliceVar(&o.groups, "group", nil, "group of the user; may be repeated")
	cmd.Flags().StringVarP(&o.file, "output", "o", "", "file to write, - for standard output (default users/NAME.kubeconfig in the data folder)")
	return cmd
}

func (o *userOptions) run(a *app, name string) error {
	if name == "" {
		return errors.New("the name of the user must not be empty")
	}
	config, err := o.sign(name)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("there is no control plane in %s: start one with '%s dev', or name its folder with --data-dir (%w)", o.dir, a.Name, err)
	}
	if err != nil {
		return err
	}
	data, err := local.Kubeconfig(config)
	if err != nil {
		return err
	}
	if o.file == "-" {
		_, err := a.Out.Write(data)
		return err
	}
	if o.file == "" {
		if strings.ContainsAny(name, `/\`) || name == "." || name == ".." {
			return fmt.Errorf("%q is not a valid file name: give a file with --output", name)
		}
		users := filepath.Join(o.dir, "users")
		if err := os.MkdirAll(users, 0o700); err != nil {
			return err
		}
		if info, err := os.Lstat(users); err != nil || !info.IsDir() {
			return fmt.Errorf("%s is not a folder: remove it, or give a file with --output", users)
		}
		o.file = filepath.Join(users, name+".kubeconfig")
	}
	if err := writeSecret(o.file, data); err != nil {
		return err
	}
	fmt.Fprintln(a.Out, exportLine(o.file))
	return nil
}

// sign makes a certificate for a user. Where the server is, the administrator's
// kubeconfig says.
func (o *userOptions) sign(name string) (*rest.Config, error) {
	data, err := findOwnData(o.dir)
	if err != nil {
		return nil, err
	}
	admin, err := clientcmd.LoadFromFile(filepath.Join(o.dir, kubeconfigName))
	if err != nil {
		return nil, err
	}
	server, err := clientcmd.NewDefaultClientConfig(*admin, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(o.dir, kubeconfigName), err)
	}
	signer, err := ca.Load(filepath.Join(data, "pki"))
	if err != nil {
		return nil, err
	}
	pair, err := signer.Client(name, o.groups...)
	if err != nil {
		return nil, err
	}
	return &rest.Config{Host: server.Host, TLSClientConfig: rest.TLSClientConfig{CAData: signer.CA, CertData: pair.Cert, KeyData: pair.Key}}, nil
}
