"""Several hosts that send one load: agreement, cost, losses."""
