"""The service's doors for everyone but the owner's own programs: the API, its stream, the page."""
