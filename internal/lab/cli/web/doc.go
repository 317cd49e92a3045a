// Command web is `sluice forecast` as one page that sends nothing anywhere. Built for a browser (GOOS=js) it is the simulator, which the
// page runs in a worker; built for anything else it puts the page together: `make forecast-page`.
package main
