"""Parts of a Keystone deployment: settings, configuration, database, Keystone itself."""
