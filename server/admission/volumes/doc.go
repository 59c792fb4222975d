// Package volumes has the admission plugins for PersistentVolumes and their claims.
//
//	new claim                ─▶ Default    ─▶ the default StorageClass, if the claim has none
//	new volume, claim, class ─▶ Protection ─▶ a finalizer, which a controller removes
//	claim that grows         ─▶ Resize     ─▶ its StorageClass allows it, or 403
//
// An informer knows the StorageClasses for Default (see [lister.Lister]). Resize reads the
// class from the server: few claims grow, and a class that was just changed must have its
// effect.
package volumes
