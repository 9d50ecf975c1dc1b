"""OpenID Connect providers: discovery, login, users and scenarios."""
