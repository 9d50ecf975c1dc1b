"""Show an audit, one module per format."""
