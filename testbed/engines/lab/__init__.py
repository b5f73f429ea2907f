"""What labs of all engines share: control, hosts and counters."""
