"""What watches or acts during a trial: hooks, SLA aborts, resources, requests, profiles."""
