// Package certificates serves CertificateSigningRequests. It authorizes approval and
// signing, and has the controller that signs.
//
//	kubectl apply csr ─▶ Pending ─▶ approve (right to approve the signer) ─▶ Run signs ─▶ Issued ─▶ removed after an hour
//	                        └─────▶ deny
//
// The controller signs for one signer, kubernetes.io/kube-apiserver-client, with the CA
// of --cluster-signing-cert-file. Requests to other signers are left to programs that
// have the right to sign for them. Kubernetes has the same in kube-controller-manager,
// and the checks as admission plugins; here they are part of the resource, so that the
// admission chain stays idle without webhooks.
package certificates
