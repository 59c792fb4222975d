package command

import (
	"github.com/spf13/cobra"

	"github.com/espalier-dev/espalier/server/controllers/rollout"
)

func newRolloutCRD(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "rollout-crd",
		Short: "Print the CRD of CRDRollouts",
		Long: `Print the CRD of CRDRollouts, which change a CRD that has objects in phases: expand,
backfill, verify, contract. The server carries them out where this CRD is installed.`,
		Example: a.Example(`
  # Install the CRD
  %[1]s rollout-crd | kubectl apply -f -`),
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := a.Out.Write(rollout.CRD)
			return err
		},
	}
}
