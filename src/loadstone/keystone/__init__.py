"""All that knows Keystone."""
