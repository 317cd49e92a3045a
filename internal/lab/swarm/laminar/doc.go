// Package laminar is the flow of core/federation/flow as a mechanism for lean nodes: gates draw a home zone for each task by the zones'
// digests, the zone's own party searches among its nodes with a ticket, a node decides alone and grants, and the home claims and redeems.
// After "Laminar" (arXiv 2602.13789), with our definitions (adr 0036). Decisions are flow's; here are places, messages and timers.
//
// What is durable in the real actors survives a zone's death here too: that a home has a task, and that it has claimed a place for it.
package laminar
