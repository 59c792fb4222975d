// Command upgrade prepares the upgrade of a real CRD, with generated objects, for espalier plan.
//
//	upgrade -from sigs.k8s.io/gateway-api@v1.0.0 -to sigs.k8s.io/gateway-api@v1.6.0 -crd httproutes.gateway.networking.k8s.io -out DIR
//	espalier plan -f DIR/new.json --old DIR/old.json --objects DIR/objects.json
//
// Objects are generated from the schema of the version that the old CRD stores, and only those
// are kept that the old CRD accepts, as a server would have stored them.
package main
