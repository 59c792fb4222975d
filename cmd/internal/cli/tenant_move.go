package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/espalier-dev/espalier/cmd/internal/cluster"
)

const (
	// rootEtcd is the name of the etcd of the server itself, and tenantFinalizer is on a tenant that was used.
	rootEtcd, tenantFinalizer = "root", "espalier.dev/tenant"
	// movePoll is how often to look how far a move is.
	movePoll = 500 * time.Millisecond
)

// tenantView is what is read of a tenant.
type tenantView struct {
	Metadata struct {
		ResourceVersion string   `json:"resourceVersion"`
		Finalizers      []string `json:"finalizers"`
	} `json:"metadata"`
	Spec struct {
		Etcd string `json:"etcd"`
	} `json:"spec"`
	Status struct {
		Etcd string `json:"etcd"`
		Move *struct {
			To, Phase, Message string
		} `json:"move"`
		Leftovers  []string `json:"leftovers"`
		Conditions []struct{ Type, Status, Reason, Message string }
	} `json:"status"`
}

// at is the etcd that the tenant is in.
func (v *tenantView) at() string {
	if v.Status.Etcd == "" {
		return rootEtcd
	}
	return v.Status.Etcd
}

// progress says how far the move is.
func (v *tenantView) progress() string {
	if v.Status.Move != nil {
		return v.Status.Move.Phase + ": " + v.Status.Move.Message
	}
	for _, c := range v.Status.Conditions {
		if c.Type == "Moving" && c.Reason == "Waiting" {
			return c.Reason + ": " + c.Message
		}
	}
	return ""
}

func (a *App) newTenantMove(o *tenantOptions) *cobra.Command {
	cancel := false
	cmd := &cobra.Command{
		Use: "move NAME ETCD", Short: "Move a tenant to another etcd while it is used",
		Long: `Move copies a tenant to another etcd, of 'etcd list' or root, while clients use it. Then
requests wait for some tenths of a second, and go on there. Watches end, and clients that
begin them again are told to list first. Resource versions grow.

The server moves the tenant, also without --wait, and tries again until it succeeds.
--cancel ends a move: the tenant stays where it is.

Exit codes: 0 requested, or with --wait moved, 2 could not run.`,
		Example: a.Example("  %[1]s tenant move shop east --wait\n  %[1]s tenant move shop --cancel"),
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkTenantName(args[0]); err != nil {
				return err
			}
			switch {
			case cancel && len(args) == 2:
				return errors.New("--cancel takes no etcd: the tenant stays where it is")
			case cancel:
				return a.cancelMove(cmd.Context(), args[0], *o)
			case len(args) == 1:
				return errors.New("the etcd is missing: give a name of 'etcd list', or root")
			}
			return a.moveTenant(cmd.Context(), args[0], args[1], *o)
		},
	}
	cmd.Flags().BoolVar(&o.wait, "wait", false, "wait until the tenant has moved")
	cmd.Flags().BoolVar(&cancel, "cancel", false, "end the move that is under way")
	return cmd
}

// viewTenant reads a tenant.
func (a *App) viewTenant(ctx context.Context, name string, o tenantOptions) (*tenantView, error) {
	text, err := cluster.Run(ctx, o.from, "", "get", tenantsResource, name, "-o", "json")
	if err != nil {
		return nil, explainTenant("reading the tenant "+name, err)
	}
	v := &tenantView{}
	if err := json.Unmarshal(text, v); err != nil {
		return nil, fmt.Errorf("reading the tenant %s failed: %w", name, err)
	}
	return v, nil
}

// setEtcd writes where a tenant is to be. With a resource version, it must not have changed since.
func (a *App) setEtcd(ctx context.Context, name, etcd, version string, o tenantOptions) error {
	patch := map[string]any{"spec": map[string]string{"etcd": etcd}}
	if version != "" {
		patch["metadata"] = map[string]string{"resourceVersion": version}
	}
	text, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	_, err = cluster.Run(ctx, o.from, "", "patch", tenantsResource, name, "--type=merge", "--patch", string(text))
	return err
}

// moveTenant has the server move a tenant.
func (a *App) moveTenant(ctx context.Context, name, etcd string, o tenantOptions) error {
	what := fmt.Sprintf("moving the tenant %s to the etcd %s", name, etcd)
	if etcd != rootEtcd {
		if _, err := cluster.Run(ctx, o.from, "", "get", etcdsResource, etcd); err != nil {
			if strings.Contains(err.Error(), "NotFound") {
				return fmt.Errorf("%s failed: there is no such etcd; 'etcd list' shows which there are", what)
			}
			return explainTenant(what, err)
		}
	}
	v, err := a.viewTenant(ctx, name, o)
	if err != nil {
		return err
	}
	if err := a.setEtcd(ctx, name, etcd, "", o); err != nil {
		return explainTenant(what, err)
	}
	switch {
	case !slices.Contains(v.Metadata.Finalizers, tenantFinalizer):
		fmt.Fprintf(a.Err, "tenant/%s was never used, and has nothing to move: its first request finds it in %s\n", name, etcd)
		return nil
	case !o.wait:
		fmt.Fprintf(a.Err, "tenant/%s is being moved from %s to %s\n", name, v.at(), etcd)
		return nil
	}
	return a.awaitMove(ctx, name, etcd, o)
}

// awaitMove says how far a move is, until it is complete.
func (a *App) awaitMove(ctx context.Context, name, etcd string, o tenantOptions) error {
	for last := ""; ; {
		v, err := a.viewTenant(ctx, name, o)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && strings.Contains(err.Error(), "NotFound"):
			return err
		case err != nil: // the server may be restarting
			v = &tenantView{}
			v.Spec.Etcd = etcd
		case v.Spec.Etcd != etcd:
			return fmt.Errorf("moving the tenant %s to the etcd %s failed: the move was canceled, and spec.etcd of the tenant is %q", name, etcd, v.Spec.Etcd)
		case v.at() == etcd && v.Status.Move == nil:
			fmt.Fprintf(a.Err, "tenant/%s moved to %s\n", name, etcd)
			return nil
		}
		if now := v.progress(); now != "" && now != last {
			last = now
			fmt.Fprintf(a.Err, "tenant/%s %s\n", name, now)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(movePoll):
		}
	}
}

// cancelMove has a tenant stay where it is.
func (a *App) cancelMove(ctx context.Context, name string, o tenantOptions) error {
	for {
		v, err := a.viewTenant(ctx, name, o)
		if err != nil {
			return err
		}
		if v.Status.Move == nil && (v.Spec.Etcd == "" || v.Spec.Etcd == v.at()) {
			fmt.Fprintf(a.Err, "tenant/%s is not being moved: it is in %s\n", name, v.at())
			return nil
		}
		err = a.setEtcd(ctx, name, v.at(), v.Metadata.ResourceVersion, o)
		if err != nil && strings.Contains(err.Error(), "Conflict") {
			continue // the move has gone on
		}
		if err != nil {
			return explainTenant("canceling the move of the tenant "+name, err)
		}
		fmt.Fprintf(a.Err, "tenant/%s stays in %s\n", name, v.at())
		return nil
	}
}
