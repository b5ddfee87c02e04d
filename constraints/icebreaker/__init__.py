"""iCEBreaker."""
