"""What a Keystone deployment is made of: its settings, its configuration, its database, itself."""
