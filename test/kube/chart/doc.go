// Package chart puts the Helm chart into a real control plane and takes it out again, with Helm's own library. All of it but this file is
// behind the build tag kubernetes.
package chart
