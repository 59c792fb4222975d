// Command saas signs up the customers of a product whose API is a CRD. Each customer gets an API server of its own, a
// tenant of one Espalier server, with the quota of a plan.
//
//	POST /signup ──▶ Tenant, with the quota of the plan ──▶ administrator, APIBinding ──▶ kubeconfig
//	tenant platform: the CRD, and an APIExport for all tenants with the label customer=true
package main
