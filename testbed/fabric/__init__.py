"""What a fabric is and how its frames are to go: topologies, routing, VLANs, rules, proofs; pure."""
