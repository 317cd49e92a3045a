// Package browser tests what Sluice has for browsers in a real Chromium: `make forecast-page-test`. It is a module of its own, so that
// what drives the browser is not in the project's go.mod.
package browser
