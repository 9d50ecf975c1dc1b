"""A compute cloud beside Keystone: Nova with its fake driver, Placement, Glance, Neutron's API."""
