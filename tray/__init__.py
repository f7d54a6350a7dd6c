"""The tray app: a client of the service, nothing more. Installed as `svcq_tray`."""
