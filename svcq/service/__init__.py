"""What runs beside the workers, once on each machine."""
