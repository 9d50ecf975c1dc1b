"""Methods as others published them, for those who must reproduce their figures."""
