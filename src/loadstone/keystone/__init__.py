"""Everything that knows Keystone."""
